//! In the steady state SCTP allocates nothing per packet.

use trunkline_core::{Duration, Ecn, Time};
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::sctp::{SctpConfig, SctpEndpoint};
use trunkline_transport::{Conversation as _, Endpoint as _, Message, SendError};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn sctp_allocates_nothing_per_packet() {
    // Messages within a packet and in several.
    for length in [500, 5000] {
        let config = SctpConfig { streams: 3, heartbeat: None, ..SctpConfig::default() };
        let mut near = SctpEndpoint::connect(NEAR, FAR, &config, 1).unwrap();
        let mut far = SctpEndpoint::listen(FAR, &config, 2).unwrap();
        let (mut packet, mut received) = (Vec::new(), Vec::new());
        let mut now = Time::ZERO;
        let mut count = 0;
        let message = vec![5; length];
        let mut exchange = |rounds: u32| {
            for round in 0..rounds {
                now += Duration::from_millis(50);
                near.handle_timeout(now);
                far.handle_timeout(now);
                let sent = near.send(now, Message::new(&message));
                assert!(matches!(sent, Ok(()) | Err(SendError::Full | SendError::Closed(_))));
                // A loss now and then, so that what follows waits for it.
                let mut lose = round % 50 == 49;
                while near.poll_transmit(now, &mut packet).is_some() {
                    if !core::mem::take(&mut lose) {
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
        exchange(2000);
        let (allocations, ()) = allocations_during(|| exchange(2000));
        assert_eq!(allocations, 0, "messages of {length} bytes");
        assert!(count > 3900, "{count} messages of {length} bytes");
    }
}
