//! Who is let in: other sites, other names, other machines, and whoever has no token.

#![allow(clippy::unwrap_used, reason = "where something is missing the test has failed")]

mod common;

use std::path::Path;

use common::{TestServer, options};
use jiff::Timestamp;
use serde_json::json;
use trunkline_server::{ServeError, Server, Tokens, Transport, tokens_folder};

#[test]
fn pages_of_other_sites_are_refused() {
    let server = TestServer::start();
    let own = format!("http://{}", server.address);
    let port = server.address.port();
    let with = |headers: &[(&str, &str)]| server.ask("GET", "/api/v1/server", headers, None).status;
    assert_eq!(with(&[("origin", &own)]), 200);
    assert_eq!(with(&[("origin", "https://evil.example")]), 403);
    assert_eq!(with(&[("origin", "null")]), 403);
    assert_eq!(with(&[("origin", &format!("http://localhost:{port}"))]), 403, "another name is another site");
    assert_eq!(with(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]), 403);
    assert_eq!(with(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]), 200, "a link");
    assert_eq!(with(&[("sec-fetch-site", "same-origin")]), 200);
    // What a form can send is no JSON, and comes with an origin.
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(server.ask("POST", "/api/v1/runs", &form, Some(b"text=x")).status, 415);
    let evil = [("origin", "https://evil.example"), ("content-type", "application/json")];
    assert_eq!(server.ask("POST", "/api/v1/runs/1/resume", &evil, Some(b"{}")).status, 403);
}

#[test]
fn names_that_were_made_to_lead_here_are_refused() {
    let server = TestServer::start();
    let port = server.address.port();
    let under = |host: &str| server.ask("GET", "/api/v1/server", &[("host", host)], None).status;
    for own in [
        format!("localhost:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::1]:{port}"),
        "localhost:9999".to_owned(),
    ] {
        assert_eq!(under(&own), 200, "{own}");
    }
    for other in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1.evil.example", "10.0.0.1"] {
        assert_eq!(under(other), 403, "{other}");
    }
    assert_eq!(server.ask("GET", "/", &[("host", "evil.example")], None).status, 403, "the page too");
}

#[test]
fn other_machines_are_not_served_without_tls() {
    let place = tempfile::tempdir().unwrap();
    let refused = |transport: Transport| {
        let mut options = options(place.path());
        options.listen = "0.0.0.0:0".parse().unwrap();
        options.transport = transport;
        Server::bind(options)
    };
    let error = refused(Transport::Plain).unwrap_err();
    assert!(matches!(error, ServeError::Open(_)) && error.is_bad_input());
    assert!(error.to_string().contains("--certificate"), "{error}");
    assert!(refused(Transport::BehindProxy("http://plain.example".to_owned())).is_err());
    let server = refused(Transport::OwnTls).unwrap();
    assert!(server.asks_for_tokens());
    assert!(server.url().starts_with("https://"));
}

#[test]
fn whoever_has_no_token_is_told_to_log_in() {
    let place = tempfile::tempdir().unwrap();
    let server = TestServer::start_in(place.path(), |options| options.authenticate = true);
    let tokens = tokens(place.path());
    let with = |headers: &[(&str, &str)]| server.ask("GET", "/api/v1/server", headers, None);
    let refused = with(&[]);
    assert_eq!((refused.status, refused.json()["error"]["kind"].as_str().unwrap()), (401, "unauthorised"));
    assert_eq!(server.get("/").status, 200, "the page itself says how to log in");
    assert_eq!(server.get("/api/v1/events").status, 401);

    let token = tokens.make_program("a program", Timestamp::now()).unwrap();
    let bearer = format!("Bearer {token}");
    assert_eq!(with(&[("authorization", &bearer)]).json()["authenticated"], true);
    assert_eq!(with(&[("authorization", "Bearer guessed")]).status, 401);
    assert_eq!(with(&[("cookie", &format!("trunkline={token}"))]).status, 401, "a program is no browser");
    tokens.revoke("a program").unwrap();
    assert_eq!(with(&[("authorization", &bearer)]).status, 401);
}

#[test]
fn a_link_logs_a_browser_in_once() {
    let place = tempfile::tempdir().unwrap();
    let server = TestServer::start_in(place.path(), |options| options.authenticate = true);
    let code = tokens(place.path()).make_link(Timestamp::now()).unwrap();
    let with = |headers: &[(&str, &str)]| server.ask("GET", "/api/v1/server", headers, None).status;
    assert_eq!(with(&[("authorization", &format!("Bearer {code}"))]), 401, "a link's code is no token");
    let login = server.post("/api/v1/login", &json!({ "code": code }));
    assert_eq!(login.status, 204);
    let cookie = login.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(with(&[("cookie", &format!("other=1; {cookie}"))]), 200);
    assert_eq!(server.post("/api/v1/login", &json!({ "code": code })).status, 401, "once");
    assert_eq!(server.post("/api/v1/login", &json!({ "code": "guessed" })).status, 401);

    let out = server.ask("POST", "/api/v1/logout", &[("cookie", cookie)], None);
    assert_eq!(out.status, 204);
    assert_eq!(with(&[("cookie", cookie)]), 401);
}

#[test]
fn a_proxy_has_one_origin() {
    let place = tempfile::tempdir().unwrap();
    let server = TestServer::start_in(place.path(), |options| {
        options.transport = Transport::BehindProxy("https://trunkline.example.org".to_owned());
    });
    let code = tokens(place.path()).make_link(Timestamp::now()).unwrap();
    let body = json!({ "code": code }).to_string();
    let from = |origin: &str| {
        let headers = [("content-type", "application/json"), ("origin", origin), ("host", "inside:4780")];
        server.ask("POST", "/api/v1/login", &headers, Some(body.as_bytes()))
    };
    assert_eq!(from("https://evil.example").status, 403);
    assert_eq!(from("http://inside:4780").status, 403);
    let login = from("https://trunkline.example.org");
    assert_eq!(login.status, 204);
    assert!(login.header("set-cookie").unwrap().contains("Secure"));
}

#[test]
fn answers_tell_browsers_to_be_careful() {
    let server = TestServer::start();
    for path in ["/", "/api/v1/server", "/none"] {
        let reply = server.get(path);
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    assert_eq!(server.get("/api/v1/server").header("cache-control"), Some("no-store"));
    let none = server.get("/api/v1/none");
    assert_eq!((none.status, none.json()["error"]["kind"].as_str().unwrap()), (404, "not-found"));
    let wrong = server.ask("DELETE", "/api/v1/server", &[], None);
    assert_eq!((wrong.status, wrong.json()["error"]["kind"].as_str().unwrap()), (405, "input"));
}

#[test]
fn long_bodies_are_refused() {
    let server = TestServer::start();
    let body = format!("{{\"text\": \"{}\"}}", "x".repeat(9 << 20));
    let reply =
        server.ask("POST", "/api/v1/check", &[("content-type", "application/json")], Some(body.as_bytes()));
    assert_eq!(reply.status, 413);
}

fn tokens(place: &Path) -> Tokens {
    Tokens::open(&tokens_folder(&place.join("secrets"))).unwrap()
}
