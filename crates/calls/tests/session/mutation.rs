//! A path that changes bytes: it ends sessions, and neither end.

use trunkline_calls::{Client, Line as _, Request, Role, now};
use trunkline_core::Duration;
use trunkline_testkit::mutation::{Mutator, Proxy, panics_of, seed};

use crate::support::{Running, packet, until};

/// The threads of a server.
const SERVER: [&str; 1] = ["session"];

#[test]
fn a_path_that_changes_the_control_connection_ends_sessions_only() {
    let (panics, server) = (panics_of(&SERVER), Running::new());
    let proxy = Proxy::start(server.address, seed()).unwrap();
    let client = Client { patience: Duration::from_millis(50), ..Client::default() };
    let roles = [
        Role::Echo,
        Role::Sink,
        Role::Source { rate: 100_000, packet: 100, lasting: Duration::from_millis(50) },
    ];
    let mut opened = 0;
    for round in 0..300 {
        let transport = ["udp", "tcp", "xtp"][round % 3].parse().unwrap();
        let request = Request::new(roles[round / 3 % 3], transport);
        // That a client reports an error is what should happen.
        let Ok(mut session) = client.connect(&proxy.address().to_string(), request) else { continue };
        opened += 1;
        for number in 0..4 {
            if session.send(now(), &packet(number, 100)).is_err()
                || session.turn(now(), &mut |_, _| {}).is_err()
            {
                break;
            }
        }
    }
    assert!(opened > 10, "{opened} sessions began");
    drop(proxy);
    is_there_for_others(&server);
    assert_eq!(panics(), 0, "with {} the same happens", seed());
}

#[test]
fn datagrams_that_were_changed_disturb_nobody() {
    let (panics, server) = (panics_of(&SERVER), Running::new());
    let mut mutator = Mutator::new(seed());
    let mut raw = server.speak();
    let (key, port) = raw.open_echo();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..3000 {
        let mut datagram = key.to_vec();
        datagram.extend(packet(number, 200));
        for _ in 0..mutator.below(4) {
            mutator.damage(&mut datagram);
        }
        // The server's queue may be full.
        let _ = socket.send_to(&datagram, ("127.0.0.1", port));
    }
    is_there_for_others(&server);
    assert_eq!(panics(), 0, "with {} the same happens", seed());
}

/// Another client is served.
fn is_there_for_others(server: &Running) {
    let began = now();
    let mut session = loop {
        match server.ask(Request::new(Role::Echo, "udp".parse().unwrap())) {
            Ok(session) => break session,
            // Sessions that were damaged have their places for ten seconds more.
            Err(error) => assert!(now().since(began) < Duration::from_secs(60), "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    session.send(now(), &packet(1, 10)).unwrap();
    until(&mut session, |_, arrived| arrived.len() == 1).unwrap();
}
