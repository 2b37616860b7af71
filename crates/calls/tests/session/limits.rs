//! Whom a server answers, and how many.

use std::net::UdpSocket;

use trunkline_calls::{
    Bounds, Client, Line as _, Peers, Request, Role, ServerOptions, Session, SessionError, SharedKey,
    TransportChoice, now,
};
use trunkline_core::Duration;
use trunkline_peer::message::VERSION;

use crate::support::{PATIENCE, Raw, Running, echo_please, packet, until};

/// A packet with the wrong key, one from another host with the right key, and one from the client: only the last comes back,
/// and to nobody else.
#[test]
fn only_the_host_of_the_control_connection_is_answered_and_only_with_the_key() {
    let server = Running::new();
    let mut control = server.speak();
    let (key, port) = control.open_echo();
    let to = (server.address.ip(), port);
    let [client, another] = ["127.0.0.1:0", "127.0.0.2:0"].map(|address| UdpSocket::bind(address).unwrap());
    let wrong = [&[!key[0]], &key[1..], b"guessed"].concat();
    let right = [&key[..], b"music"].concat();
    client.send_to(&wrong, to).unwrap();
    client.send_to(&[], to).unwrap();
    another.send_to(&right, to).unwrap();
    client.send_to(&right, to).unwrap();
    assert_eq!(control.hear().unwrap(), "heard");
    another.send_to(&right, to).unwrap();
    client.send_to(&wrong, to).unwrap();
    client.send_to(&right, to).unwrap();
    // What came before has been answered before, if it was.
    client.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
    for _ in 0..2 {
        let mut bytes = [0; 100];
        let length = client.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], right);
    }
    for socket in [&client, &another] {
        socket.set_nonblocking(true).unwrap();
        assert!(socket.recv(&mut [0; 100]).is_err(), "more was sent than was received");
    }
}

#[test]
fn a_second_socket_of_the_client_is_not_answered() {
    let server = Running::new();
    let mut control = server.speak();
    let (key, port) = control.open_echo();
    let [first, second] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let packet = [&key[..], b"music"].concat();
    for socket in [&first, &second, &first] {
        socket.send_to(&packet, (server.address.ip(), port)).unwrap();
    }
    first.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
    for _ in 0..2 {
        first.recv(&mut [0; 100]).unwrap();
    }
    second.set_nonblocking(true).unwrap();
    assert!(second.recv(&mut [0; 100]).is_err());
}

#[test]
fn many_clients_are_served_at_once_and_no_more_than_there_may_be() {
    let usual = ServerOptions::default();
    let options = ServerOptions { all: Bounds { sessions: 4, ..usual.all }, ..usual };
    let server = Running::with(options, ());
    let mut sessions: Vec<_> = ["udp", "tcp", "dccp", "quic"]
        .iter()
        .map(|transport| server.connect(Role::Echo, transport))
        .collect();
    for session in &mut sessions {
        session.send(now(), &packet(7, 100)).unwrap();
    }
    for session in &mut sessions {
        assert_eq!(until(session, |_, arrived| arrived.len() == 1).unwrap(), [packet(7, 100)]);
    }
    let error = server.ask(Request::new(Role::Echo, TransportChoice::udp())).err().unwrap();
    assert!(
        matches!(&error, SessionError::Refused { why, .. } if why.contains("its maximum number of clients")),
        "{error}"
    );
    // One that vanishes makes room for another.
    sessions.pop();
    let deadline = now() + PATIENCE;
    while (server.clients)() == 4 {
        assert!(now() < deadline, "a client that has gone still counts");
        std::thread::yield_now();
    }
    server.connect(Role::Echo, "udp");
}

#[test]
fn bulk_beyond_the_bounds_is_refused() {
    let server = Running::new();
    let source = |rate, packet, lasting| Role::Source { rate, packet, lasting: Duration::from_secs(lasting) };
    for (role, expected) in [
        (source(1_000_000_000_000, 1000, 1), "it sends from 1 to 80000000 bit/s, not 1000000000000"),
        (source(0, 1000, 1), "it sends from 1 to 80000000 bit/s, not 0"),
        (source(1_000_000, 1, 1), "it sends packets of 64 to 60000 bytes, not of 1"),
        (source(1_000_000, 1000, 61), "it sends for at most 60 s, not 61 s"),
    ] {
        let error = server.ask(Request::new(role, TransportChoice::udp())).err().unwrap().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}

/// The buffers of an engine are the server's memory: 1 GiB for each session, filled by a client that acknowledges nothing.
#[test]
fn buffers_of_more_than_16_mib_are_refused() {
    let server = Running::new();
    for transport in [
        "{ kind = \"xtp\", window = \"1 GiB\", patience = \"24 h\" }",
        "{ kind = \"quic\", window = \"1 GiB\", send-buffer = \"1 GiB\" }",
        "{ kind = \"quic\", send-buffer = \"17 MiB\" }",
        "{ kind = \"sctp\", window = \"9 MiB\" }",
    ] {
        let role = Role::Source { rate: 1_000_000, packet: 1000, lasting: Duration::from_secs(1) };
        let refused = server.ask(Request::new(role, transport.parse().unwrap())).map(drop);
        let Err(SessionError::Refused { why, .. }) = refused else { panic!("{transport}: {refused:?}") };
        assert!(why.contains("a client may request at most 16 MiB"), "{why}");
    }
    // Without options every transport is within the limit.
    for transport in ["dccp", "sctp", "xtp", "quic", "{ kind = \"quic\", mode = \"datagrams\" }", "urp"] {
        server.connect(Role::Echo, transport);
    }
}

#[test]
fn all_sources_share_one_rate() {
    let usual = ServerOptions::default();
    let options = ServerOptions { all: Bounds { rate: 1_000_000, ..usual.all }, ..usual };
    let server = Running::with(options, ());
    let for_a_while = |rate, lasting| {
        let role = Role::Source { rate, packet: 1000, lasting };
        server.ask(Request::new(role, TransportChoice::udp()))
    };
    let source = |rate| for_a_while(rate, Duration::from_secs(60));
    // One that has sent everything keeps nothing from others.
    let mut over = for_a_while(1_000_000, Duration::from_millis(100)).unwrap();
    let all = |session: &Session| {
        session.far_counters().is_some_and(|far| far.sent + far.refused + far.timed_out >= 12)
    };
    until(&mut over, |session, _| all(session)).unwrap();
    let first = loop {
        // Its last packet is counted before its rate is free.
        if let Ok(first) = source(600_000) {
            break first;
        }
    };
    let refused = source(600_000).map(drop);
    let Err(SessionError::Refused { why, .. }) = refused else { panic!("{refused:?}") };
    assert!(why.contains("request at most 400000 bit/s"), "{why}");
    let second = source(400_000).unwrap();
    drop((over, first, second));
    // What the server gives back when it has seen that they have left.
    while (server.clients)() > 0 {
        std::thread::yield_now();
    }
    source(1_000_000).unwrap();
}

/// A request of an echo over UDP from one of this host's addresses: what the server says.
fn answer_to(server: &Running, from: &str) -> String {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let from: std::net::SocketAddr = format!("{from}:0").parse().unwrap();
    socket.bind(&from.into()).unwrap();
    socket.connect(&server.address.into()).unwrap();
    let mut raw = Raw::new(socket.into());
    raw.say(&echo_please());
    [raw.hear(), raw.hear()].into_iter().flatten().map(|said| said.to_string()).collect()
}

#[test]
fn only_allowed_networks_are_served() {
    let usual = ServerOptions::default();
    let peers = Peers::In(vec!["127.0.0.2".parse().unwrap(), "127.0.1.0/24".parse().unwrap()]);
    let server = Running::with(ServerOptions { peers, ..usual }, ());
    for allowed in ["127.0.0.2", "127.0.1.9"] {
        let said = answer_to(&server, allowed);
        assert!(said.contains("\"opened\""), "{said}");
    }
    let refused = answer_to(&server, "127.0.0.1");
    assert!(refused.contains("it serves 127.0.0.2, 127.0.1.0/24, not 127.0.0.1"), "{refused}");
    assert!(refused.contains("`--allow 127.0.0.1`"), "{refused}");
}

#[test]
fn one_address_does_not_take_all_sessions() {
    let usual = ServerOptions::default();
    let each = Bounds { sessions: 2, ..usual.each };
    let server = Running::with(ServerOptions { each, ..usual }, ());
    let _held = [(); 2].map(|()| server.connect(Role::Echo, "udp"));
    let refused = server.ask(Request::new(Role::Echo, TransportChoice::udp())).map(drop);
    let Err(SessionError::Refused { why, .. }) = refused else { panic!("{refused:?}") };
    assert!(why.contains("one address may have 2 sessions"), "{why}");
    let said = answer_to(&server, "127.0.0.2");
    assert!(said.contains("\"opened\""), "{said}");
}

/// Connections that say nothing last ten seconds, and others take their places before.
#[test]
fn silent_connections_keep_nobody_out() {
    let server = Running::new();
    let silent: Vec<_> = (0..200).map(|_| server.speak()).collect();
    server.connect(Role::Echo, "udp");
    drop(silent);
}

#[test]
fn only_whoever_has_the_key_gets_a_session() {
    let key = |text: &str| Some(SharedKey::new(text.as_bytes()).unwrap());
    let right = key("correct horse battery staple");
    let server = Running::with(ServerOptions { key: right, ..ServerOptions::default() }, ());
    let ask = |server: &Running, key| {
        let client = Client { key, ..Client::default() };
        client.connect(&server.address.to_string(), Request::new(Role::Echo, TransportChoice::udp()))
    };
    let mut session = ask(&server, right).unwrap();
    session.send(now(), &packet(7, 100)).unwrap();
    until(&mut session, |_, arrived| arrived.len() == 1).unwrap();

    let why = |answer: Result<Session, SessionError>| match answer.map(drop) {
        Err(SessionError::Refused { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    assert!(why(ask(&server, None)).contains("name a copy of its key's file"));
    assert!(
        why(ask(&server, key("wrong horse battery staple"))).contains("the key is not that of this server")
    );
    // A client that goes on without a proof gets no session.
    let mut raw = server.speak();
    raw.say(&echo_please());
    assert_eq!(raw.hear().unwrap()["version"], VERSION);
    assert!(raw.hear().unwrap()["challenge"]["nonce"].is_array());
    raw.say(&echo_please());
    assert!(raw.hear_refusal().contains("answered with a `proof`"));
    assert_eq!((server.clients)(), 1, "nobody else has a session");

    // A server that does not have the key gets no audio either.
    let open = Running::new();
    assert!(why(ask(&open, right)).contains("does not prove that it has the key"));
}
