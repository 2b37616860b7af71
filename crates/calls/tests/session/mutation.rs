//! A path that changes bytes: it ends sessions, and neither end.

use std::collections::BTreeSet;

use trunkline_calls::{Client, Line as _, Request, Role, now};
use trunkline_core::Duration;
use trunkline_testkit::middle::Middle;
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

/// Transports, and whether they detect every change (`Some`), up to what a checksum of 16 bits lets through by chance, of the
/// packets of one test; `None` if they carry bytes as they come.
const TRANSPORTS: [(&str, Option<usize>); 15] = [
    ("udp", None),
    ("tcp", None),
    // In UDP, its checksum is UDP's (RFC 6773), which the path makes right.
    ("dccp", None),
    ("{ kind = \"dccp\", congestion-control = \"ccid-3\" }", None),
    ("{ kind = \"dccp\", data-checksum = true }", Some(0)),
    ("sctp", Some(0)),
    ("{ kind = \"sctp\", style = \"one-to-many\" }", Some(0)),
    ("{ kind = \"sctp\", ordered = false, streams = 4, retransmissions = 0 }", Some(0)),
    ("xtp", Some(2)),
    ("{ kind = \"xtp\", error-control = \"none\" }", Some(2)),
    ("{ kind = \"xtp\", service = \"datagram\" }", Some(2)),
    ("quic", Some(0)),
    ("{ kind = \"quic\", mode = \"streams\" }", Some(0)),
    ("{ kind = \"quic\", mode = \"datagrams\" }", Some(0)),
    ("urp", Some(0)),
];

#[test]
fn a_path_that_changes_packets_stops_neither_end_of_any_transport_and_no_change_is_delivered() {
    let panics = panics_of(&SERVER);
    std::thread::scope(|scope| {
        let all = TRANSPORTS.iter().enumerate().map(|(index, &(transport, allowed))| {
            let one = move || changed_on_the_way(transport, allowed, seed() * 100 + index as u64);
            (transport, scope.spawn(one))
        });
        for (transport, one) in all.collect::<Vec<_>>() {
            let summary = one.join();
            println!("{transport}: {}", summary.as_deref().unwrap_or("failed"));
            assert!(summary.is_ok(), "{transport}, with seed {}", seed());
        }
    });
    assert_eq!(panics(), 0, "with seed {} the same happens", seed());
}

/// Sessions over one transport for two seconds, through a path that changes one packet in ten; returns a summary.
fn changed_on_the_way(transport: &str, allowed: Option<usize>, seed: u64) -> String {
    let server = Running::new();
    let middle = Middle::start(server.address, [127, 0, 0, 9].into(), 10, seed).unwrap();
    let client = Client { patience: Duration::from_millis(500), ..Client::default() };
    let request = || Request::new(Role::Echo, transport.parse().unwrap());
    let (began, mut longest, mut number) = (now(), Duration::ZERO, 0);
    let (mut sent, mut arrived) = (BTreeSet::new(), Vec::new());
    let mut content = Mutator::new(seed);
    while now().since(began) < Duration::from_secs(2) {
        // That a client reports an error is what should happen.
        let Ok(mut session) = client.connect(&middle.address().to_string(), request()) else { continue };
        for _ in 0..100 {
            number += 1;
            let mut packet = packet(number, 4);
            packet.extend((0..content.below(600)).map(|_| content.below(256) as u8));
            let before = now();
            let is_over = session.send(now(), &packet).is_err()
                || session.turn(now(), &mut |_, packet| arrived.push(packet.to_vec())).is_err();
            longest = longest.max(now().since(before));
            sent.insert(packet);
            if is_over {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
    let foreign = arrived.iter().filter(|packet| !sent.contains(*packet)).count();
    let summary = format!(
        "{number} packets, {} changed on the way, {} arrived, {foreign} of them changed; longest call {longest}",
        middle.changed(),
        arrived.len()
    );
    assert!(middle.changed() > 10 && !arrived.is_empty(), "nothing was tested: {summary}");
    assert!(longest < Duration::from_secs(2), "a call took {longest}");
    if let Some(allowed) = allowed {
        assert!(foreign <= allowed, "{foreign} changed packets were delivered");
    }
    drop(middle);
    is_there_for_others(&server);
    summary
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
