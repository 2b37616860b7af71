//! The server itself.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use utoipa::openapi::OpenApi;

use crate::BROWSER_LASTS;
use crate::access::{SESSION, cookie_of};
use crate::api::{ApiError, Backend, Login, ServerBackend, ServerInfo};
use crate::app::{App, Shared};
use crate::extract::Body;

/// Version, machine and available backends of the server.
#[utoipa::path(get, path = "/server", tag = "server", responses((status = 200, body = ServerInfo)))]
pub(crate) async fn server(State(app): Shared) -> Json<ServerInfo> {
    let availability: Vec<ServerBackend> = [Backend::Sim, Backend::Wire, Backend::Live]
        .map(|backend| ServerBackend { backend, unavailable: app.unavailable(backend) })
        .into();
    Json(ServerInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: app.machine.clone(),
        backends: availability.iter().filter(|b| b.unavailable.is_none()).map(|b| b.backend).collect(),
        availability,
        authenticated: !app.access.is_open(),
        store: app.place.clone(),
    })
}

/// This document.
#[utoipa::path(get, path = "/openapi.json", tag = "server", responses((status = 200, body = Object)))]
pub(crate) async fn document() -> Json<OpenApi> {
    Json(super::openapi())
}

/// Logs in with the code of a link from `trunkline serve token`, which is valid once, and sets a session cookie. Programs
/// send a token instead: `Authorization: Bearer TOKEN`.
#[utoipa::path(post, path = "/login", tag = "server", request_body = Login, responses((status = 204)))]
pub(crate) async fn login(State(app): Shared, Body(login): Body<Login>) -> Result<Response, ApiError> {
    let Some(tokens) = app.access.tokens.clone() else {
        // Nobody has to.
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    let session = app
        .blocking(move |_| tokens.redeem(login.code.trim(), Timestamp::now()).map_err(ApiError::environment))
        .await?
        .ok_or_else(|| {
            ApiError::unauthorised(
                "this link is invalid or has expired: it works once, within ten minutes; `trunkline serve \
                token` on the server's machine prints a new one",
            )
        })?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie(&app, &session, BROWSER_LASTS.as_secs())?)])
        .into_response())
}

/// Logs out.
#[utoipa::path(post, path = "/logout", tag = "server", responses((status = 204)))]
pub(crate) async fn logout(State(app): Shared, headers: HeaderMap) -> Result<Response, ApiError> {
    let session = cookie_of(&headers, SESSION).map(str::to_owned);
    if let (Some(tokens), Some(session)) = (app.access.tokens.clone(), session) {
        app.blocking(move |_| tokens.drop_token(&session).map_err(ApiError::environment)).await?;
    }
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie(&app, "", 0)?)]).into_response())
}

fn cookie(app: &App, value: &str, seconds: i64) -> Result<HeaderValue, ApiError> {
    let secure = if app.access.is_encrypted { "; Secure" } else { "" };
    let cookie = format!("{SESSION}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&cookie).map_err(ApiError::environment)
}
