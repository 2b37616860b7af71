//! What a server does with clients that are none.

use std::net::TcpListener;

use trunkline_calls::{Client, Request, Role, Server, ServerOptions, SessionError, TransportChoice};
use trunkline_peer::message::VERSION;

use crate::support::{Running, frame, hello, hello_for, packet, until};
use trunkline_calls::{Line as _, now};
use trunkline_testkit::real_time::in_real_time;

#[test]
fn nonsense_is_refused_in_a_sentence_and_the_server_goes_on() {
    let server = Running::new();
    let message = |body: &str| [hello(), frame(b'M', body)].concat();
    let open = |request: &str| message(&format!(r#"{{"open":{{"request":{request}}}}}"#));
    let old = r#"{"version":9,"program":"9.1","purpose":"session"}"#;
    let cases: [(Vec<u8>, &str); 9] = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "a frame of 1195725856 bytes; at most 16384 are allowed"),
        (frame(b'H', old), "the client runs Trunkline 9.1 (protocol 9)"),
        (frame(b'M', r#""bye""#), "a frame with tag 0x4d instead of a greeting"),
        (hello_for("control"), "not an agent"),
        ([hello(), frame(b'T', "12345678")].concat(), "a session must start with `open`"),
        (open(&format!("\"{}\"", "x".repeat(20_000))), "at most 16384 are allowed"),
        (open(r#"{"role":"echo","transport":"udb"}"#), "did you mean `udp`?"),
        (open(r#"{"role":"dance","transport":"udp"}"#), "unknown variant `dance`"),
        (open(r#"{"role":"play","transport":"udp"}"#), "this server does not play"),
    ];
    for (bytes, expected) in cases {
        let mut raw = server.speak();
        raw.say(&bytes);
        let mut said = raw.hear().unwrap_or_else(|| panic!("no answer to what should be told `{expected}`"));
        if said["version"] == VERSION {
            said = raw.hear().unwrap_or_else(|| panic!("no answer to what should be told `{expected}`"));
        }
        let why = said["refused"]["refusal"]["why"].as_str().unwrap_or_default();
        assert!(why.contains(expected), "{said} for `{expected}`");
        assert_eq!(raw.hear(), None);
    }
    let mut session = server.connect(Role::Echo, "udp");
    session.send(now(), &packet(1, 10)).unwrap();
    until(&mut session, |_, arrived| arrived.len() == 1).unwrap();
}

#[test]
fn a_server_of_another_protocol_is_told_from_ours() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"220 mail.example ESMTP\r\n").unwrap();
    });
    let error = echo_at(&address.to_string()).to_string();
    assert!(error.starts_with(&format!("{address} does not speak the session protocol: ")), "{error}");
    other.join().unwrap();
}

/// Clients of before there were frames send a line of JSON, and understand one.
#[test]
fn an_old_client_is_told_that_it_is_too_old() {
    let server = Running::new();
    let mut raw = server.speak();
    raw.say(b"{\"say\":\"hello\",\"version\":1,\"request\":{\"role\":\"echo\",\"transport\":\"udp\"}}\n");
    let said = raw.hear_line().unwrap();
    assert_eq!(said["say"], "refuse");
    assert!(said["why"].as_str().unwrap().starts_with("this client is too old: "), "{said}");
    assert_eq!(raw.hear_line(), None);
}

/// Servers of before there were frames answer the first line break with a line of JSON.
#[test]
fn an_old_server_is_told_to_be_updated() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let old = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = Vec::new();
        std::io::BufRead::read_until(&mut std::io::BufReader::new(&stream), b'\n', &mut line).unwrap();
        assert_eq!(line.last(), Some(&b'\n'));
        let refusal = b"{\"say\":\"refuse\",\"version\":1,\"why\":\"no version of the control protocol\"}\n";
        std::io::Write::write_all(&mut stream, refusal).unwrap();
    });
    let error = echo_at(&address.to_string()).to_string();
    assert!(error.starts_with(&format!("the server at {address} is too old")), "{error}");
    assert!(error.ends_with("update the server"), "{error}");
    old.join().unwrap();
}

#[test]
fn a_server_that_says_nothing_is_told_from_one_that_hangs_up() {
    in_real_time(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let client = Client { patience: trunkline_core::Duration::from_millis(20), ..Client::default() };
        let connect =
            || client.connect(&address, Request::new(Role::Echo, TransportChoice::udp())).err().unwrap();
        let error = connect();
        assert!(matches!(error, SessionError::Silent { .. }), "{error}");
        assert!(
            error.to_string().contains("accepts connections, but has not responded for 20 ms"),
            "{error}"
        );
        drop(listener.accept().unwrap());
        let hangs_up = std::thread::spawn(move || drop(listener.accept().unwrap()));
        let error = connect();
        assert!(matches!(error, SessionError::Ended { .. }), "{error}");
        hangs_up.join().unwrap();
    });
}

#[test]
fn a_server_that_is_not_there_is_told_with_what_to_do() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = echo_at(&nobody.to_string());
    assert!(matches!(error, SessionError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("start one there with `trunkline reflect`"), "{error}");
}

#[test]
fn a_name_that_means_no_host_is_told_with_what_is_expected() {
    for name in ["no such host", "", "127.0.0.1:notaport", "[::1"] {
        let error = echo_at(name);
        assert!(matches!(error, SessionError::Name { .. }), "{error}");
        assert!(error.to_string().contains("expected `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`"), "{error}");
    }
}

#[test]
fn a_port_in_use_is_told_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = ServerOptions { address: taken.local_addr().unwrap(), ..ServerOptions::default() };
    let error = Server::bind(options, ()).err().unwrap().to_string();
    assert!(
        error.ends_with("the port is in use; choose another, or stop the server that uses it"),
        "{error}"
    );
}

#[test]
fn a_host_may_have_both_kinds_of_addresses() {
    let options = ServerOptions { address: "[::1]:0".parse().unwrap(), ..ServerOptions::default() };
    let server = Server::bind(options, ()).unwrap();
    let stop = trunkline_calls::Stop::new().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(&stop).unwrap());
        for transport in ["udp", "tcp", "sctp"] {
            let request = Request::new(Role::Echo, transport.parse().unwrap());
            let address = server.local_address().unwrap().to_string();
            let mut session = Client::default().connect(&address, request).unwrap();
            session.send(now(), &packet(1, 10)).unwrap();
            until(&mut session, |_, arrived| arrived.len() == 1).unwrap();
        }
        stop.stop();
    });
}

fn echo_at(server: &str) -> SessionError {
    Client::default().connect(server, Request::new(Role::Echo, TransportChoice::udp())).err().unwrap()
}
