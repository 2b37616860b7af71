//! Lets requests in, or not.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap};
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;

use super::Access;
use super::tokens::TokenKind;
use crate::api::ApiError;
use crate::app::App;
use crate::door::Place;
use crate::routes::BASE;

/// The cookie of a browser that is logged in.
pub(crate) const SESSION: &str = "trunkline";

/// Lets a request in, or answers why not.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let place = request.extensions().get::<Arc<Place>>();
    match app.access.judge(&request) {
        Ok(Shown::Permission) if place.is_some_and(|place| !place.know()) => {
            ApiError::busy("too many open connections: close other pages and programs, and try again")
                .into_response()
        }
        Ok(_) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// The authorisation of an admitted request.
pub(super) enum Shown {
    /// It may use the API.
    Permission,
    /// None: the resource is public.
    Nothing,
}

/// The value of a cookie of the request.
pub(crate) fn cookie_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    cookies.flat_map(|value| value.split(';')).find_map(|cookie| {
        let (key, value) = cookie.split_once('=')?;
        (key.trim() == name).then(|| value.trim())
    })
}

impl Access {
    pub(super) fn judge(&self, request: &Request) -> Result<Shown, ApiError> {
        let headers = request.headers();
        let host = host_of(request)?;
        self.check_host(&host)?;
        self.check_site(headers, &host)?;
        let path = request.uri().path();
        // The page itself is no secret, and somebody who logs in has no token yet.
        let is_open = !path.starts_with(BASE) || path == "/api/v1/login";
        if is_open && !self.is_open() {
            return Ok(Shown::Nothing);
        }
        self.check_token(headers).map(|()| Shown::Permission)
    }

    /// Whether browsers that come by HTTPS can trust that it will always be so.
    pub(crate) fn is_vouched(&self) -> bool {
        self.is_vouched
    }

    /// On this machine only under its own names: another may have been made to lead here.
    fn check_host(&self, host: &Authority) -> Result<(), ApiError> {
        let Some(local) = self.local else { return Ok(()) };
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        let address: Option<IpAddr> = name.parse().ok();
        let is_ours = name.eq_ignore_ascii_case("localhost")
            || address.is_some_and(|ip| ip.to_canonical().is_loopback() || ip == local.ip());
        match is_ours {
            true => Ok(()),
            false => Err(ApiError::forbidden(format_args!(
                "this server is not called `{}`: it serves its own machine, as http://{local}",
                host.host().escape_debug()
            ))),
        }
    }

    /// Not for pages of other sites.
    fn check_site(&self, headers: &HeaderMap, host: &Authority) -> Result<(), ApiError> {
        let other = || ApiError::forbidden("requests from pages of other sites are refused");
        if let Some(origin) = headers.get(header::ORIGIN) {
            let origin = origin.to_str().map_err(|_| other())?.to_ascii_lowercase();
            let scheme = if self.is_encrypted { "https" } else { "http" };
            let own =
                self.origin.clone().unwrap_or_else(|| format!("{scheme}://{host}").to_ascii_lowercase());
            if origin != own {
                return Err(other());
            }
        }
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        let mode = headers.get("sec-fetch-mode").map(|mode| mode.as_bytes());
        // A link on another page may lead here.
        let is_link = mode == Some(b"navigate") && !headers.contains_key(header::ORIGIN);
        match site {
            Some(b"cross-site" | b"same-site") if !is_link => Err(other()),
            _ => Ok(()),
        }
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        let Some(tokens) = &self.tokens else { return Ok(()) };
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
        let shown = match bearer {
            Some(token) => Some((token.trim(), TokenKind::Program)),
            None => cookie_of(headers, SESSION).map(|token| (token, TokenKind::Browser)),
        };
        let Some((token, kind)) = shown else {
            return Err(ApiError::unauthorised(
                "log in first: `trunkline serve token` on the server's machine prints a login link; programs \
                send `Authorization: Bearer TOKEN`",
            ));
        };
        match tokens.find(token, Timestamp::now()) {
            Ok(Some(found)) if found.kind == kind => Ok(()),
            Ok(_) => Err(ApiError::unauthorised(
                "this token is invalid or has expired: `trunkline serve token` on the server's machine makes \
                a new one",
            )),
            Err(error) => Err(ApiError::environment(error)),
        }
    }
}

/// Under which name the server was asked.
fn host_of(request: &Request) -> Result<Authority, ApiError> {
    let named = match request.uri().authority() {
        Some(authority) => Some(authority.clone()),
        None => {
            let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
            host.and_then(|host| host.parse().ok())
        }
    };
    named.ok_or_else(|| ApiError::input("the request has no host"))
}
