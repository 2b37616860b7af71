//! In the steady state an XTP stream allocates nothing per packet, lossy or not, and datagrams none either.

use trunkline_core::{Duration, Ecn, Time};
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::xtp::{XtpConfig, XtpDatagrams, XtpEndpoint};
use trunkline_transport::{Endpoint, Message, SendError};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Sends three messages a millisecond from one end to the other, and loses every 50th packet.
struct Exchange<E> {
    near: E,
    far: E,
    now: Time,
    packet: Vec<u8>,
    answer: Vec<u8>,
    received: Vec<u8>,
    packets: u64,
    bytes: usize,
}

impl<E: Endpoint> Exchange<E> {
    fn new(near: E, far: E) -> Exchange<E> {
        let (packet, answer, received) = (Vec::new(), Vec::new(), Vec::new());
        Exchange { near, far, now: Time::ZERO, packet, answer, received, packets: 0, bytes: 0 }
    }

    fn run(&mut self, rounds: u32) {
        for _ in 0..rounds {
            self.now += Duration::from_millis(1);
            self.near.handle_timeout(self.now);
            self.far.handle_timeout(self.now);
            self.carry();
            for length in [80, 80, 900] {
                let sent = self.near.send(self.now, Message::new(&[5; 900][..length]));
                assert!(matches!(sent, Ok(()) | Err(SendError::Full | SendError::Closed(_))));
                self.carry();
            }
        }
    }

    fn carry(&mut self) {
        let Exchange { near, far, now, packet, answer, received, packets, bytes } = self;
        loop {
            let mut any = false;
            while near.poll_transmit(*now, packet).is_some() {
                any = true;
                *packets += 1;
                if !packets.is_multiple_of(50) {
                    far.handle_packet(*now, NEAR, Ecn::NotCapable, packet);
                }
                received.clear();
                while far.receive(received).is_some() {}
                *bytes += received.len();
                while far.poll_transmit(*now, answer).is_some() {
                    near.handle_packet(*now, FAR, Ecn::NotCapable, answer);
                }
            }
            while far.poll_transmit(*now, answer).is_some() {
                any = true;
                near.handle_packet(*now, FAR, Ecn::NotCapable, answer);
            }
            while near.poll_event().is_some() || far.poll_event().is_some() {}
            if !any {
                break;
            }
        }
    }
}

fn steady(mut exchange: Exchange<impl Endpoint>) {
    exchange.run(5000);
    let (allocations, ()) = allocations_during(|| exchange.run(3000));
    assert_eq!(allocations, 0);
    assert!(exchange.bytes > 5_000_000, "{} bytes: hardly anything was exchanged", exchange.bytes);
}

#[test]
fn a_stream_allocates_nothing_per_packet() {
    let config = XtpConfig::default();
    let near = XtpEndpoint::connect(NEAR, FAR, &config, 1).unwrap();
    let far = XtpEndpoint::listen(FAR, &config, 2).unwrap();
    steady(Exchange::new(near, far));
}

#[test]
fn datagrams_allocate_nothing_per_packet() {
    for acknowledged in [false, true] {
        let config = XtpConfig::default();
        let near = XtpDatagrams::new(NEAR, FAR, &config, acknowledged, 1).unwrap();
        let far = XtpDatagrams::new(FAR, NEAR, &config, acknowledged, 2).unwrap();
        steady(Exchange::new(near, far));
    }
}
