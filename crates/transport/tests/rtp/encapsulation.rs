//! The same packets for a socket, which makes UDP's headers itself.

use trunkline_core::{Address, Duration, Ecn, Seed, Time};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::rtp::{Encapsulation, RtpConfig, RtpEndpoint};
use trunkline_transport::{Close, Conversation as _, Endpoint as _, Message, UdpConfig};

use super::config;

/// One of two ends.
fn end(near: bool, encapsulation: Encapsulation) -> RtpEndpoint {
    let (local, peer, side) = if near { (NEAR, FAR, "near") } else { (FAR, NEAR, "far") };
    let udp = UdpConfig { encapsulation, ..UdpConfig::default() };
    RtpEndpoint::new(local, peer, RtpConfig { udp, ..config(1, side) })
        .expect("the configuration is possible")
}

#[test]
fn a_socket_is_given_what_udp_would_carry() {
    let mut ends = [end(true, Encapsulation::Udp), end(true, Encapsulation::UdpPayload)];
    let mut now = Time::ZERO;
    let mut packets = [Vec::new(), Vec::new()];
    for round in 0..300 {
        now += Duration::from_millis(20);
        for end in &mut ends {
            end.handle_timeout(now);
            end.send(now, Message::new(&[round as u8; 160])).unwrap();
        }
        loop {
            let sent = [0, 1].map(|n: usize| ends[n].poll_transmit(now, &mut packets[n]));
            assert_eq!(sent[0], sent[1], "where to, and how large on the network");
            if sent[0].is_none() {
                break;
            }
            assert_eq!(packets[0][8..], packets[1]);
        }
    }
}

#[test]
fn ends_over_sockets_understand_each_other_and_nobody_else() {
    let [near, far] = [true, false].map(|near| Box::new(end(near, Encapsulation::UdpPayload)) as _);
    let path = || Path::with_latency(Duration::from_millis(10));
    let mut pair = Pair::new(near, far, [path(), path()], Seed::new(1, 0));
    for round in 0..500u32 {
        pair.send(Side::Near, &round.to_be_bytes()).unwrap();
        pair.drive_for(Duration::from_millis(20));
    }
    pair.close(Side::Near, Close::Graceful);
    pair.drive();
    let expected: Vec<_> = (0..500u32).map(|round| round.to_be_bytes().to_vec()).collect();
    assert_eq!(pair.receive_all(Side::Far), expected);
    assert!(pair.counter(Side::Near, "control-received") > 0);
    assert_eq!(pair.counter(Side::Far, "byes-received"), 1);
    let [sent, received] = [(Side::Near, "packets-sent"), (Side::Far, "packets-received")]
        .map(|(side, name)| pair.counter(side, name));
    assert!(received >= 500 && received == sent, "{received} of {sent}");

    let mut far = end(false, Encapsulation::UdpPayload);
    let mut packet = Vec::new();
    let mut near = end(true, Encapsulation::UdpPayload);
    near.send(Time::ZERO, Message::new(b"audio")).unwrap();
    near.poll_transmit(Time::ZERO, &mut packet).unwrap();
    let other = Address { port: NEAR.port + 1, ..NEAR };
    far.handle_packet(Time::ZERO, other, Ecn::NotCapable, &packet);
    assert_eq!(far.receive(&mut Vec::new()), None, "from another port");
    far.handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
    assert!(far.receive(&mut Vec::new()).is_some());
}
