//! In the steady state TCP allocates nothing per segment, beyond what the engine itself does: nothing.

use trunkline_adapters::{TcpConfig, TcpEndpoint};
use trunkline_core::{Duration, Ecn, Time};
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::{Conversation as _, Endpoint as _, Message, SendError};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn tcp_allocates_nothing_per_segment() {
    let mut near = TcpEndpoint::connect(NEAR, FAR, &TcpConfig::default(), 1).unwrap();
    let mut far = TcpEndpoint::listen(FAR, &TcpConfig::default(), 2).unwrap();
    let (mut packet, mut answer, mut received) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = Time::ZERO;
    let message = [5; 8192];
    let mut bytes = 0;
    let mut exchange = |rounds: u32| {
        for round in 0..rounds {
            now += Duration::from_millis(1);
            near.handle_timeout(now);
            far.handle_timeout(now);
            while far.poll_transmit(now, &mut answer).is_some() {
                near.handle_packet(now, FAR, Ecn::NotCapable, &answer);
            }
            let sent = near.send(now, Message::new(&message));
            assert!(matches!(sent, Ok(()) | Err(SendError::Full | SendError::Closed(_))));
            // A loss now and then, so that the engine's repairs are looked at too.
            let mut lose = round % 500 == 499;
            while near.poll_transmit(now, &mut packet).is_some() {
                if core::mem::take(&mut lose) {
                    continue;
                }
                far.handle_packet(now, NEAR, Ecn::NotCapable, &packet);
                received.clear();
                bytes += far.receive(&mut received).map_or(0, |received| received.length);
                while far.poll_transmit(now, &mut answer).is_some() {
                    near.handle_packet(now, FAR, Ecn::NotCapable, &answer);
                }
            }
        }
    };
    exchange(3000);
    let (allocations, ()) = allocations_during(|| exchange(3000));
    assert_eq!(allocations, 0);
    assert!(bytes > 1_000_000, "{bytes} bytes: hardly anything was exchanged");
}
