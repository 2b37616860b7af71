//! How sessions end.

use std::net::{TcpListener, UdpSocket};

use trunkline_calls::{Client, Line as _, Refused, Request, Role, TransportChoice, now};
use trunkline_testkit::real_time::in_real_time;

use crate::support::{PATIENCE, Running, answer_client, frame, packet, until};

#[test]
fn a_server_that_is_stopped_says_so() {
    for transport in ["udp", "tcp", "sctp", "quic"] {
        let server = Running::new();
        let mut session = server.connect(Role::Echo, transport);
        drop(server);
        let ended = until(&mut session, |_, _| false).unwrap_err().to_string();
        assert!(ended == "the server is being stopped" || ended.contains("closed"), "{transport}: {ended}");
        let refused = session.send(now(), &packet(1, 10)).unwrap_err();
        assert!(matches!(refused, Refused::Ended(_)), "{refused}");
    }
}

/// A server that dies without a word.
#[test]
fn a_server_that_is_gone_ends_the_session_in_a_sentence() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let data = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (begin, begun) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        let (control, _) = listener.accept().unwrap();
        let mut control = answer_client(control, data.local_addr().unwrap().port());
        let mut greeting = [0; 100];
        assert_eq!(data.recv(&mut greeting).unwrap(), 8);
        control.say(&frame(b'M', r#""heard""#));
        begun.recv().unwrap();
    });
    let request = Request::new(Role::Echo, TransportChoice::udp());
    let mut session = Client::default().connect(&address.to_string(), request).unwrap();
    begin.send(()).unwrap();
    server.join().unwrap();
    let ended = until(&mut session, |_, _| false).unwrap_err().to_string();
    assert!(ended.starts_with("the connection to the server was lost: "), "{ended}");
}

#[test]
fn a_client_that_vanishes_frees_everything() {
    let server = Running::new();
    let mut control = server.speak();
    let (key, port) = control.open_echo();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&key, (server.address.ip(), port)).unwrap();
    assert_eq!(control.hear().unwrap(), "heard");
    drop(control);
    let deadline = now() + PATIENCE;
    while (server.clients)() > 0 {
        assert!(now() < deadline, "a client that has gone still counts");
        std::thread::yield_now();
    }
    // Its port is free.
    UdpSocket::bind((server.address.ip(), port)).unwrap();
}

#[test]
fn packets_that_do_not_arrive_are_told_with_a_guess_at_why() {
    in_real_time(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (control, _) = listener.accept().unwrap();
            let mut control = answer_client(control, 9);
            while control.hear().is_some() {}
        });
        let client = Client { patience: trunkline_core::Duration::from_millis(200), ..Client::default() };
        let request = Request::new(Role::Echo, TransportChoice::udp());
        let error = client.connect(&address.to_string(), request).err().unwrap().to_string();
        assert!(error.starts_with("packets over `udp` do not reach port 9 of 127.0.0.1"), "{error}");
        server.join().unwrap();
    });
}
