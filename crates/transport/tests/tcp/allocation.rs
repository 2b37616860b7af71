//! In the steady state TCP does not allocate, whatever is lost.

use trunkline_core::{Duration, Ecn, Time};
use trunkline_testkit::alloc::allocations_during;
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::tcp::{TcpConfig, TcpEndpoint};
use trunkline_transport::{Conversation as _, Endpoint as _, Message};

#[test]
fn tcp_allocates_nothing_per_message() {
    let config = TcpConfig { retries: 1000, ..TcpConfig::default() };
    let near = TcpEndpoint::connect(NEAR, FAR, config.clone(), 1).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, config, 2).expect("the configuration is possible");
    let mut ends = [near, far];
    let (mut packet, mut received, mut now) = (Vec::new(), Vec::new(), Time::ZERO);
    let (mut packets, mut bytes) = (0u64, 0);
    let mut exchange = |rounds: u32| {
        for _ in 0..rounds {
            now += Duration::from_millis(500);
            for end in &mut ends {
                end.handle_timeout(now);
                // Refused until they have connected, or where too much waits.
                let _ = end.send(now, Message::new(&[1; 5000]));
            }
            let mut is_idle = false;
            while !core::mem::replace(&mut is_idle, true) {
                for (side, from) in [(0, NEAR), (1, FAR)] {
                    while ends[side].poll_transmit(now, &mut packet).is_some() {
                        is_idle = false;
                        packets += 1;
                        if !packets.is_multiple_of(37) {
                            ends[1 - side].handle_packet(now, from, Ecn::NotCapable, &packet);
                        }
                        while ends[1 - side].receive(&mut received).is_some() {}
                        bytes += received.len();
                        received.clear();
                    }
                    while ends[side].poll_event().is_some() {}
                }
            }
        }
    };
    exchange(1000);
    assert_eq!(allocations_during(|| exchange(2000)).0, 0);
    let mut repeated = 0;
    ends[0].counters(&mut |name, count| repeated += if name == "retransmissions" { count } else { 0 });
    assert!(bytes > 10_000_000 && repeated > 100, "{bytes} bytes, {repeated} segments sent again");
}
