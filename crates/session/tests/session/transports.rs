//! Every transport carries packets there and back.

use trunkline_session::{Line as _, Role, now};

use crate::support::{Running, packet, until};

/// Defines a test for each: its name, and the transport as it is written.
macro_rules! echoes {
    ($($name:ident: $transport:expr;)*) => {
        $(#[test] fn $name() { echoes($transport); })*
    };
}

echoes! {
    udp: "udp";
    tcp: "tcp";
    dccp_with_a_window: "dccp";
    dccp_with_a_rate: "{ kind = \"dccp\", congestion-control = \"ccid-3\" }";
    sctp_one_to_one: "sctp";
    sctp_one_to_many: "{ kind = \"sctp\", style = \"one-to-many\" }";
    sctp_unordered: "{ kind = \"sctp\", ordered = false, streams = 4, retransmissions = 0 }";
    xtp: "xtp";
    xtp_without_error_control: "{ kind = \"xtp\", error-control = \"none\" }";
    xtp_datagrams: "{ kind = \"xtp\", service = \"datagram\" }";
    quic: "quic";
    quic_streams: "{ kind = \"quic\", mode = \"streams\" }";
    quic_datagrams: "{ kind = \"quic\", mode = \"datagrams\" }";
    urp: "urp";
}

fn echoes(transport: &str) {
    let server = Running::new();
    let mut session = server.connect(Role::Echo, transport);
    let sizes = [4, 5, 500, 1000];
    let sent: Vec<Vec<u8>> =
        sizes.iter().enumerate().map(|(number, &size)| packet(number as u32, size)).collect();
    for packet in &sent {
        session.send(now(), packet).unwrap();
    }
    let mut arrived = until(&mut session, |arrived| arrived.len() == sent.len()).unwrap();
    if !session.features().ordered {
        arrived.sort();
    }
    assert_eq!(arrived, sent);
    let counters = session.counters();
    assert_eq!((counters.sent, counters.received), (sent.len() as u64, sent.len() as u64), "{counters:?}");
}
