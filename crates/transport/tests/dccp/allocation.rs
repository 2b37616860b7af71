//! In the steady state DCCP allocates nothing per packet.

use trunkline_core::{Duration, Ecn, Time};
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::dccp::{Ccid, DccpConfig, DccpEndpoint};
use trunkline_transport::{Conversation as _, Endpoint as _, Message, SendError};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn dccp_allocates_nothing_per_packet() {
    for ccid in Ccid::ALL {
        let config = DccpConfig { ccid, ..DccpConfig::default() };
        let mut near = DccpEndpoint::connect(NEAR, FAR, &config, 1).unwrap();
        let mut far = DccpEndpoint::listen(FAR, &config, 2).unwrap();
        let (mut packet, mut received) = (Vec::new(), Vec::new());
        let mut now = Time::ZERO;
        let mut count = 0;
        let message = [5; 500];
        let mut exchange = |rounds: u32| {
            for round in 0..rounds {
                now += Duration::from_millis(5);
                near.handle_timeout(now);
                far.handle_timeout(now);
                let sent = near.send(now, Message::new(&message));
                assert!(matches!(sent, Ok(()) | Err(SendError::Full | SendError::Closed(_))));
                // A loss now and then, so that what follows is looked at too.
                let mut lose = round % 50 == 49;
                while near.poll_transmit(now, &mut packet).is_some() {
                    if !core::mem::take(&mut lose) {
                        far.handle_packet(now, NEAR, Ecn::Ect0, &packet);
                    }
                }
                received.clear();
                while far.receive(&mut received).is_some() {
                    count += 1;
                }
                while far.poll_transmit(now, &mut packet).is_some() {
                    near.handle_packet(now, FAR, Ecn::Ect0, &packet);
                }
            }
        };
        exchange(5000);
        let (allocations, ()) = allocations_during(|| exchange(5000));
        assert_eq!(allocations, 0, "{ccid:?}");
        assert!(count > 4000, "{ccid:?}: {count} messages: hardly anything was exchanged");
    }
}
