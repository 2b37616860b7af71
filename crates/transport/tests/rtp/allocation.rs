//! In the steady state RTP allocates nothing per packet, reports included.

use trunkline_core::{Duration, Ecn, Time};
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::rtp::RtpEndpoint;
use trunkline_transport::{Conversation as _, Endpoint as _, Message};

use super::config;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn rtp_allocates_nothing_per_packet() {
    let mut near = RtpEndpoint::new(NEAR, FAR, config(1, "near")).unwrap();
    let mut far = RtpEndpoint::new(FAR, NEAR, config(1, "far")).unwrap();
    let (mut packet, mut received) = (Vec::new(), Vec::new());
    let mut now = Time::ZERO;
    let mut count = 0;
    let mut exchange = |rounds: u32| {
        for round in 0..rounds {
            now += Duration::from_millis(20);
            near.handle_timeout(now);
            far.handle_timeout(now);
            near.send(now, Message::new(&[5; 160])).unwrap();
            let is_lost = round % 50 == 49;
            while near.poll_transmit(now, &mut packet).is_some() {
                if !is_lost {
                    far.handle_packet(now, NEAR, Ecn::NotCapable, &packet);
                }
            }
            received.clear();
            while far.receive(&mut received).is_some() {
                count += 1;
            }
            while far.poll_transmit(now, &mut packet).is_some() {
                near.handle_packet(now, FAR, Ecn::NotCapable, &packet);
            }
        }
    };
    exchange(3000);
    let (allocations, ()) = allocations_during(|| exchange(3000));
    assert_eq!(allocations, 0);
    assert_eq!(count, 6000 - 120);
    assert!(near.session().peer_report().is_some_and(|report| report.block.lost > 100), "reports were sent");
}
