//! Every transport carries packets there and back.

use std::os::fd::BorrowedFd;

use socket2::SockRef;
use trunkline_calls::{Line, Packets, Request, Role, SessionError, Settings, now, udp_line};
use trunkline_testkit::skips::{Missing, skip_without};

use crate::support::{Running, packet, until};

/// Defines a test for each: its name, and the transport as it is written.
macro_rules! echoes {
    ($($name:ident: $transport:expr;)*) => {
        $(#[test] fn $name() { echoes($transport); })*
    };
}

echoes! {
    udp: "udp";
    udp_lite: "udp-lite";
    udp_lite_partly_checked: "{ kind = \"udp-lite\", checksum-coverage = \"20 B\" }";
    tcp: "tcp";
    mptcp: "mptcp";
    dccp_with_a_window: "dccp";
    dccp_with_a_rate: "{ kind = \"dccp\", congestion-control = \"ccid-3\" }";
    sctp_one_to_one: "sctp";
    sctp_one_to_many: "{ kind = \"sctp\", style = \"one-to-many\" }";
    sctp_unordered: "{ kind = \"sctp\", ordered = false, streams = 4, retransmissions = 0 }";
    sctp_of_the_kernel: "{ kind = \"sctp\", engine = \"kernel\" }";
    xtp: "xtp";
    xtp_without_error_control: "{ kind = \"xtp\", error-control = \"none\" }";
    xtp_datagrams: "{ kind = \"xtp\", service = \"datagram\" }";
    quic: "quic";
    quic_streams: "{ kind = \"quic\", mode = \"streams\" }";
    quic_datagrams: "{ kind = \"quic\", mode = \"datagrams\" }";
    urp: "urp";
}

/// Small and large packets, one by one and together, come back as they were.
fn echoes(transport: &str) {
    let server = Running::new();
    let mut session = match server.ask(Request::new(Role::Echo, transport.parse().unwrap())) {
        Ok(session) => session,
        Err(SessionError::Refused { why, .. }) if why.contains("the kernel ") => {
            let missing = match transport {
                lite if lite.contains("udp-lite") => Missing::KernelUdpLite,
                "mptcp" => Missing::KernelMptcp,
                _ => Missing::KernelSctp,
            };
            return skip_without(missing, &why);
        }
        Err(error) => panic!("{error}"),
    };
    let sizes = [1, 8, 500, 1000, 64, 64, 1000, 7];
    let sent: Vec<Vec<u8>> = sizes.iter().zip(0..).map(|(&size, number)| packet(number, size)).collect();
    let mut together = Packets::default();
    for packet in &sent[..4] {
        session.send(now(), packet).unwrap();
    }
    sent[4..].iter().for_each(|packet| together.push(packet));
    session.send_all(now(), &together).unwrap();
    let mut arrived = until(&mut session, |_, arrived| arrived.len() == sent.len()).unwrap();
    if !session.features().ordered {
        arrived.sort();
    }
    assert_eq!(arrived, sent);
    let counters = session.counters();
    assert_eq!((counters.sent, counters.received), (8, 8), "{counters:?}");
    assert_eq!((counters.timed_out, counters.refused, counters.strays), (0, 0, 0), "{counters:?}");
}

/// Everything that [`available`](trunkline_calls::available) offers can be requested, with packets of the usual size.
#[test]
fn every_transport_on_offer_carries_packets_of_an_ethernet_frame() {
    let server = Running::new();
    let offered = server.connect(Role::Echo, "udp").facts().transports.clone();
    assert!(offered.len() >= 9, "{offered:?}");
    for transport in offered {
        let mut session = server.connect(Role::Echo, &transport.to_string());
        let sent = packet(1, 1100);
        session.send(now(), &sent).unwrap_or_else(|refused| panic!("{transport}: {refused}"));
        assert_eq!(until(&mut session, |_, arrived| arrived.len() == 1).unwrap(), [sent], "{transport}");
    }
}

#[test]
fn what_a_transport_cannot_carry_is_refused_with_what_it_can() {
    let server = Running::new();
    let mut session = server.connect(Role::Echo, "udp");
    let refused = session.send(now(), &packet(1, 65_507)).unwrap_err();
    assert_eq!(refused.to_string(), "the packet is larger than the 65499 bytes that the transport carries");
    session.send(now(), &packet(1, session.largest())).unwrap();
    until(&mut session, |_, arrived| arrived.len() == 1).unwrap();
    assert_eq!(session.counters().refused, 1);
}

#[test]
fn transports_of_the_simulator_are_refused_in_a_sentence() {
    let server = Running::new();
    for (transport, expected) in [
        ("{ kind = \"udp\", ecn = \"ect0\" }", "`ecn` of transport `udp` works in `sim` only"),
        ("{ kind = \"xtp\", service = \"multicast\" }", "the service `multicast` does not connect two ends"),
        ("rtp", "RTP is a packet format"),
    ] {
        let error =
            server.ask(Request::new(Role::Echo, transport.parse().unwrap())).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// Without a session, whoever sends first is the peer, and packets travel as they are.
#[test]
fn a_line_without_a_session_answers_who_sends_first() {
    let (any, settings) = ("127.0.0.1:0".parse().unwrap(), Settings::default());
    let mut here = udp_line(any, None, &settings).unwrap();
    let at = SockRef::from(&descriptor(&*here)).local_addr().unwrap().as_socket().unwrap();
    let (mut first, mut second) =
        (udp_line(any, Some(at), &settings).unwrap(), udp_line(any, Some(at), &settings).unwrap());
    first.send(now(), b"first").unwrap();
    second.send(now(), b"second").unwrap();
    let mut heard = Vec::new();
    here.turn(now(), &mut |_, packet| heard.push(packet.to_vec())).unwrap();
    assert_eq!((heard, here.counters().strays), (vec![b"first".to_vec()], 1));
    here.send(now(), b"answer").unwrap();
    let mut answers = [0, 0];
    first.turn(now(), &mut |_, _| answers[0] += 1).unwrap();
    second.turn(now(), &mut |_, _| answers[1] += 1).unwrap();
    assert_eq!(answers, [1, 0]);
}

fn descriptor(line: &dyn Line) -> BorrowedFd<'_> {
    let mut found = None;
    line.descriptors(&mut |descriptor, _| found = Some(descriptor));
    found.unwrap()
}
