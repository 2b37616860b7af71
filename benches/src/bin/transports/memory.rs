//! XTP without sockets.

use anstream::println;
use trunkline_benches::Spread;
use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_io::MonotonicClock;
use trunkline_transport::xtp::{Acknowledge, XtpConfig, XtpEndpoint};
use trunkline_transport::{Conversation as _, Endpoint as _, Event, Message, drain};

const NEAR: Address = Address { host: 0, port: 40_001 };
const FAR: Address = Address { host: 1, port: 7_001 };
/// Bytes of a packet's data: ten milliseconds of voice.
const DATA: usize = 80;

/// Packets per second of a reliable stream whose every packet is acknowledged.
pub(crate) fn xtp(rounds: usize, packets: usize) {
    let mut stream = Stream::open();
    stream.carry(packets / 10);
    let clock = MonotonicClock::starting_now();
    let thousands: Vec<f64> = (0..rounds)
        .map(|_| {
            let began = clock.now();
            stream.carry(packets);
            packets as f64 / clock.now().since(began).as_nanos() as f64 * 1e6
        })
        .collect();
    let counter = |name| {
        let mut value = 0;
        stream.far.counters(&mut |counter, count| value += if counter == name { count } else { 0 });
        value
    };
    println!(
        "Reliable XTP in memory, {DATA} bytes of data in a packet, every packet acknowledged, on one core"
    );
    println!("  {:.0} thousand packets per second   goal: at least 400", Spread::of(&thousands));
    println!("  packets that the receiver sent: {}\n", counter("packets-sent"));
}

struct Stream {
    near: XtpEndpoint,
    far: XtpEndpoint,
    now: Time,
    packet: Vec<u8>,
    received: Vec<u8>,
}

impl Stream {
    fn open() -> Stream {
        let config = XtpConfig { acknowledge: Acknowledge::Every(1), ..XtpConfig::default() };
        let possible = "the defaults are possible";
        let mut stream = Stream {
            near: XtpEndpoint::connect(NEAR, FAR, &config, 1).expect(possible),
            far: XtpEndpoint::listen(FAR, &config, 2).expect(possible),
            now: Time::ZERO,
            packet: Vec::new(),
            received: Vec::new(),
        };
        stream.exchange();
        assert_eq!(stream.near.poll_event(), Some(Event::Connected));
        stream
    }

    fn carry(&mut self, packets: usize) {
        for _ in 0..packets {
            // As a fast Ethernet would.
            self.now += Duration::from_micros(1);
            if self.near.next_timeout().is_some_and(|at| at <= self.now) {
                self.near.handle_timeout(self.now);
            }
            if self.far.next_timeout().is_some_and(|at| at <= self.now) {
                self.far.handle_timeout(self.now);
            }
            self.near.send(self.now, Message::new(&[0x55; DATA])).expect("all before is acknowledged");
            self.exchange();
            assert_eq!(self.received.len(), DATA);
            self.received.clear();
        }
    }

    /// Carries packets to and fro until there are none.
    fn exchange(&mut self) {
        let Stream { near, far, now, packet, received } = self;
        loop {
            let mut any = false;
            drain(near, *now, packet, |_, packet| {
                any = true;
                far.handle_packet(*now, NEAR, Ecn::NotCapable, packet);
            });
            while far.receive(received).is_some() {}
            drain(far, *now, packet, |_, packet| {
                any = true;
                near.handle_packet(*now, FAR, Ecn::NotCapable, packet);
            });
            while far.poll_event().is_some() {}
            if !any {
                return;
            }
        }
    }
}
