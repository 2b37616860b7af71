//! The page's files: built into the program.

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Redirect, Response};

use crate::api::ApiError;

/// A file of the page.
struct Embedded {
    /// Its path in `web/dist`.
    name: &'static str,
    bytes: &'static [u8],
    /// Compressed, if that is shorter.
    brotli: Option<&'static [u8]>,
    etag: &'static str,
}

static FILES: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// What stands in the place of a page that was not built.
const PLACEHOLDER: &str = include_str!("placeholder.html");

/// Answers with a file of the page.
pub(crate) async fn asset(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let name = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        "docs" | "docs/" => "docs/introduction.html",
        name => name,
    };
    if method != Method::GET && method != Method::HEAD {
        return ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            crate::api::ErrorKind::Input,
            "this address does not support this method",
        )
        .into_response();
    }
    if let Some(bytes) = read(name) {
        return typed(kind(name), bytes.into());
    }
    match FILES.iter().find(|file| file.name == name) {
        Some(file) => file.answer(&headers),
        None if name == "index.html" => typed("text/html; charset=utf-8", PLACEHOLDER.as_bytes().into()),
        // Somebody typed an address: the page says that nothing is there, in words.
        None if !name.starts_with("api/") && takes_pages(&headers) => {
            Redirect::to(&page_of(name)).into_response()
        }
        None => {
            ApiError::not_found(format_args!("there is no `{}`", uri.path().escape_debug())).into_response()
        }
    }
}

/// A text of the page's build, for a file in which the page is saved.
pub(crate) fn text(name: &str) -> Option<String> {
    let built = || FILES.iter().find(|file| file.name == name).map(|file| file.bytes.to_vec());
    String::from_utf8(read(name).or_else(built)?).ok()
}

/// True for a browser that shows the answer; the page itself asks for its parts without HTML.
fn takes_pages(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|value| value.split(',').any(|kind| kind.trim().starts_with("text/html")))
}

/// The page's own address for `runs/12`; where it begins for what it cannot have.
fn page_of(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_".contains(c);
    if name.chars().all(is_plain) { format!("/#/{name}") } else { "/".to_owned() }
}

impl Embedded {
    fn answer(&self, headers: &HeaderMap) -> Response {
        // Names of built files change with what is in them.
        let caching = match self.name.starts_with("assets/") {
            true => "public, max-age=31536000, immutable",
            false => "no-cache",
        };
        let known = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
        let is_known = known
            .is_some_and(|tags| tags.split(',').any(|tag| tag.trim().trim_start_matches("W/") == self.etag));
        let mut response = match (is_known, self.brotli.filter(|_| takes_brotli(headers))) {
            (true, _) => StatusCode::NOT_MODIFIED.into_response(),
            (false, Some(brotli)) => {
                let mut response = typed(kind(self.name), brotli.into());
                response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("br"));
                response
            }
            (false, None) => typed(kind(self.name), self.bytes.into()),
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
        headers.insert(header::ETAG, HeaderValue::from_static(self.etag));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        response
    }
}

/// A file of a build on disk: for who works on the page. `TRUNKLINE_WEB` names its folder.
#[cfg(debug_assertions)]
fn read(name: &str) -> Option<Vec<u8>> {
    let folder = std::path::PathBuf::from(std::env::var_os("TRUNKLINE_WEB")?);
    let is_inside =
        std::path::Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    is_inside.then(|| std::fs::read(folder.join(name)).ok()).flatten()
}

#[cfg(not(debug_assertions))]
fn read(_name: &str) -> Option<Vec<u8>> {
    None
}

fn typed(kind: &'static str, body: Body) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response()
}

fn takes_brotli(headers: &HeaderMap) -> bool {
    let accepted =
        headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("br") && parts.all(|part| part.replace(' ', "") != "q=0")
    })
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_was_typed_leads_to_the_page() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, value.parse().unwrap());
            takes_pages(&headers)
        };
        assert!(with("text/html,application/xhtml+xml;q=0.9"));
        assert!(!with("*/*") && !with("application/json"));
        assert_eq!(page_of("runs/12"), "/#/runs/12");
        for odd in ["a\r\nb", "../x", "a?b", "//x.org", "%0d"] {
            let page = page_of(odd);
            assert!(page == "/" || page.starts_with("/#/"), "{page}");
        }
    }

    #[test]
    fn compressed_files_go_to_who_takes_them() {
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, value.parse().unwrap());
            takes_brotli(&headers)
        };
        assert!(with("gzip, deflate, br, zstd"));
        assert!(with("br;q=0.5"));
        assert!(!with("gzip, br;q=0"));
        assert!(!with("brotli"));
    }
}
