//! Who is let in: other sites, other names, other machines, and whoever has no token.

#![allow(clippy::unwrap_used, reason = "where something is missing the test has failed")]

mod common;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use common::{TestServer, options};
use jiff::Timestamp;
use serde_json::json;
use trunkline_server::{Connections, ServeError, Server, Tokens, Transport, tokens_folder};
use trunkline_testkit::mutation::{Mutator, panics_of, seed};

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
    for accepted in ["*/*", "text/html"] {
        let none = server.ask("GET", "/api/v1/none", &[("accept", accepted)], None);
        assert_eq!((none.status, none.json()["error"]["kind"].as_str().unwrap()), (404, "not-found"));
    }
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

/// Whether the server has closed a connection at which nothing was asked; waits for it.
fn is_closed(mut silent: impl std::io::Read) -> bool {
    // A connection that is cut may be reset.
    matches!(silent.read(&mut [0; 16]), Ok(0) | Err(_))
}

/// A connection whose reads wait longer than any limit of the server here.
fn connect(server: &TestServer) -> TcpStream {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

#[test]
fn silent_connections_keep_nobody_out() {
    let place = tempfile::tempdir().unwrap();
    let limits = Connections { strangers: 4, patience: Duration::from_secs(3600), ..Connections::default() };
    let server = TestServer::start_in(place.path(), |options| options.connections = limits);
    let silent: Vec<TcpStream> = (0..12).map(|_| connect(&server)).collect();
    assert_eq!(server.get("/api/v1/server").status, 200, "the newcomer gets a place");
    // So many have lost theirs, the oldest first.
    assert!(silent.iter().take(8).all(is_closed));
}

#[test]
fn there_is_a_limit_for_those_that_are_let_in() {
    let place = tempfile::tempdir().unwrap();
    let limits = Connections { known: 0, ..Connections::default() };
    let server = TestServer::start_in(place.path(), |options| options.connections = limits);
    assert_eq!(server.get("/api/v1/server").status, 503);
}

#[test]
fn connections_that_show_nothing_are_closed_from_their_first_moment_on() {
    let place = tempfile::tempdir().unwrap();
    let limits = Connections { patience: Duration::from_millis(300), ..Connections::default() };
    let server = TestServer::start_in(place.path(), |options| {
        options.connections = limits;
        options.transport = Transport::OwnTls;
        options.authenticate = true;
    });
    let certificate = std::fs::read(place.path().join("secrets/https-certificate.der")).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.into()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let shake = |asked: &str| {
        let client = rustls::ClientConnection::new(Arc::clone(&config), "localhost".try_into().unwrap());
        let mut stream = rustls::StreamOwned::new(client.unwrap(), connect(&server));
        stream.write_all(asked.as_bytes()).and_then(|()| stream.flush()).unwrap();
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).unwrap();
        }
        stream
    };
    assert!(is_closed(connect(&server)), "no handshake");
    assert!(is_closed(shake("")), "no byte behind the handshake");
    assert!(is_closed(shake("GET / HT")), "no whole request");
    // The page is everybody's: whoever has it is still a stranger.
    let mut page = shake("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let mut answer = Vec::new();
    let _ = page.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    // With a token a connection may stay: it is used again after the others' time.
    let token = tokens(place.path()).make_program("a program", Timestamp::now()).unwrap();
    let request =
        format!("GET /api/v1/server HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    let mut known = shake(&request);
    assert!(is_closed(connect(&server)), "another one's time is over");
    known.write_all(request.as_bytes()).unwrap();
    let mut read = Vec::new();
    while String::from_utf8_lossy(&read).matches("HTTP/1.1 200").count() < 2 {
        let mut piece = [0; 4096];
        let length = known.read(&mut piece).unwrap();
        assert_ne!(length, 0, "closed after {}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&piece[..length]);
    }
}

#[test]
fn one_address_has_a_share_of_the_places() {
    let place = tempfile::tempdir().unwrap();
    let limits = Connections { of_address: 2, patience: Duration::from_secs(3600), ..Connections::default() };
    let server = TestServer::start_in(place.path(), |options| {
        options.connections = limits;
        options.listen = "0.0.0.0:0".parse().unwrap();
        options.transport = Transport::OwnTls;
    });
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], server.address.port()));
    let connect = || {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    };
    let silent: Vec<TcpStream> = (0..5).map(|_| connect()).collect();
    assert!(silent.iter().take(3).all(is_closed), "two places are of this address");
}

fn tokens(place: &Path) -> Tokens {
    Tokens::open(&tokens_folder(&place.join("secrets"))).unwrap()
}

#[test]
fn damaged_requests_get_an_answer_or_an_end_and_the_server_goes_on() {
    let panics = panics_of(&["serve"]);
    let server = TestServer::start();
    let host = server.address;
    let post = |path: &str, body: &str| {
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    let text = json!({ "text": common::SHORT }).to_string();
    let requests = [
        format!("GET /api/v1/server HTTP/1.1\r\nhost: {host}\r\n\r\n"),
        format!("GET /api/v1/runs?limit=10 HTTP/1.1\r\nhost: {host}\r\naccept-encoding: gzip\r\n\r\n"),
        post("/api/v1/check", &text),
        post("/api/v1/drawing", &text),
    ];
    let (mut mutator, mut answered) = (Mutator::new(seed()), 0);
    for round in 0..400 {
        let mut request = requests[round % requests.len()].clone().into_bytes();
        for _ in 0..=mutator.below(4) {
            mutator.damage(&mut request);
        }
        let mut stream = connect(&server);
        // The server may have had enough before the end.
        let _ = stream.write_all(&request).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let status = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
        assert!(!status.ends_with("500"), "{}\n{}", request.escape_ascii(), answer.escape_ascii());
        answered += usize::from(status.starts_with("HTTP/1.1"));
    }
    assert!(answered > 100, "{answered} requests were answered");
    assert_eq!(server.get("/api/v1/server").status, 200);
    assert_eq!(panics(), 0, "with {} the same happens", seed());
}
