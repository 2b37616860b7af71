//! What a server does with clients that are none.

use std::net::TcpListener;

use trunkline_session::{Client, Request, Role, Server, ServerOptions, SessionError, TransportChoice};

use crate::support::{Running, packet, until};
use trunkline_session::{Line as _, now};
use trunkline_testkit::real_time::in_real_time;

#[test]
fn nonsense_is_refused_in_a_sentence_and_the_server_goes_on() {
    let server = Running::new();
    let hello = |request: &str| format!("{{\"say\":\"hello\",\"version\":1,\"request\":{request}}}\n");
    let long = [b'x'; 20_000];
    let cases: [(&[u8], &str); 8] = [
        (b"GET / HTTP/1.1\r\n\r\n", "no version of the control protocol"),
        (
            b"{\"say\":\"hello\",\"version\":9}\n",
            "version 9 of the control protocol; this server speaks version 1",
        ),
        (b"{\"say\":\"ask\",\"version\":1,\"sent\":1}\n", "a session must start with `hello`"),
        (&long, "sent a line of more than 16384 bytes"),
        (hello("{\"role\":\"echo\",\"transport\":\"udb\"}").leak().as_bytes(), "did you mean `udp`?"),
        (hello("{\"role\":\"dance\",\"transport\":\"udp\"}").leak().as_bytes(), "unknown variant `dance`"),
        (hello("{\"role\":\"play\",\"transport\":\"udp\"}").leak().as_bytes(), "this server does not play"),
        (&[0xFF, 0xFE, b'\n'], "no version of the control protocol"),
    ];
    for (bytes, expected) in cases {
        let mut raw = server.speak();
        raw.say(bytes);
        let refusal = raw.hear().unwrap_or_else(|| panic!("no answer to what should be told `{expected}`"));
        assert_eq!(refusal["say"], "refuse");
        assert!(refusal["why"].as_str().unwrap().contains(expected), "{refusal} for `{expected}`");
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
    assert!(
        error.starts_with(&format!("{address} does not speak version 1 of the control protocol: ")),
        "{error}"
    );
    other.join().unwrap();
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
    let stop = trunkline_session::Stop::new().unwrap();
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
