//! Every transport carries packets there and back.

use trunkline_session::{Line as _, Role, now};

use crate::support::{Running, packet, until};

#[test]
fn udp_carries_packets_there_and_back() {
    echoes("udp");
}

fn echoes(transport: &str) {
    let server = Running::new();
    let mut session = server.connect(Role::Echo, transport);
    let sizes = [8, 9, 500, 1400];
    let sent: Vec<Vec<u8>> =
        sizes.iter().enumerate().map(|(number, &size)| packet(&session, number as u32, size)).collect();
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
