//! Endpoints joined without a network between them.

use trunkline_core::{Address, Duration, Ecn, Time};
use trunkline_transport::framing::HEADER_LENGTH;
use trunkline_transport::tcp::{TcpConfig, TcpEndpoint};
use trunkline_transport::{Conversation, Endpoint, Message, UdpConfig, UdpEndpoint, drain};

use crate::Part;
use crate::codecs::datagram;

const NEAR: Address = Address { host: 0, port: 40_001 };
const FAR: Address = Address { host: 1, port: 7_001 };

/// Two UDP endpoints. Unit: a message from `send` to `receive`.
pub struct UdpExchange {
    near: UdpEndpoint,
    far: UdpEndpoint,
    message: Vec<u8>,
    packet: Vec<u8>,
    received: Vec<u8>,
}

impl UdpExchange {
    /// With messages of this payload.
    pub fn new(payload: usize) -> UdpExchange {
        let mut exchange = UdpExchange {
            near: UdpEndpoint::new(NEAR, FAR, UdpConfig::default()),
            far: UdpEndpoint::new(FAR, NEAR, UdpConfig::default()),
            message: datagram(0, payload),
            packet: Vec::new(),
            received: Vec::new(),
        };
        for _ in 0..100 {
            exchange.step();
        }
        exchange
    }
}

impl Part for UdpExchange {
    fn step(&mut self) -> u64 {
        let UdpExchange { near, far, message, packet, received } = self;
        near.send(Time::ZERO, Message::new(message)).expect("the send buffer is empty");
        transfer(near, NEAR, far, Time::ZERO, packet);
        received.clear();
        let arrived = far.receive(received).expect("nothing is lost on the way");
        assert_eq!(arrived.length, message.len());
        1
    }
}

/// A TCP connection that carries large messages one way. Unit: a message, sent and received.
pub struct TcpBulk {
    near: TcpEndpoint,
    far: TcpEndpoint,
    now: Time,
    message: Vec<u8>,
    packet: Vec<u8>,
    received: Vec<u8>,
}

impl TcpBulk {
    /// Bytes of a message's payload.
    pub const PAYLOAD: usize = 8 << 10;

    /// A connection that is open and has found its speed.
    ///
    /// # Panics
    /// If the defaults are not valid.
    #[expect(clippy::new_without_default, reason = "nothing is the default connection")]
    pub fn new() -> TcpBulk {
        let config = TcpConfig::default();
        let mut bulk = TcpBulk {
            near: TcpEndpoint::connect(NEAR, FAR, config.clone(), 1).expect("the defaults are valid"),
            far: TcpEndpoint::listen(FAR, config, 2).expect("the defaults are valid"),
            now: Time::ZERO,
            message: datagram(0, TcpBulk::PAYLOAD),
            packet: Vec::new(),
            received: Vec::new(),
        };
        for _ in 0..100 {
            bulk.step();
        }
        bulk
    }

    /// Lets both ends do what is due, then goes on to the next time at which one of them has something to do.
    fn exchange(&mut self) {
        let TcpBulk { near, far, now, packet, .. } = self;
        near.handle_timeout(*now);
        far.handle_timeout(*now);
        transfer(near, NEAR, far, *now, packet);
        while far.receive(&mut self.received).is_some() {}
        transfer(far, FAR, near, *now, packet);
        let next = [near.next_timeout(), far.next_timeout()].into_iter().flatten().min();
        *now = next.unwrap_or(*now + Duration::from_micros(1));
    }
}

impl Part for TcpBulk {
    fn step(&mut self) -> u64 {
        while self.near.send(self.now, Message::new(&self.message)).is_err() {
            self.exchange();
        }
        while self.received.len() < HEADER_LENGTH + TcpBulk::PAYLOAD {
            self.exchange();
        }
        self.received.clear();
        1
    }
}

/// Carries everything that one end wants to send to the other.
fn transfer<E: Endpoint>(from: &mut E, address: Address, to: &mut E, now: Time, packet: &mut Vec<u8>) {
    drain(from, now, packet, |_, packet| to.handle_packet(now, address, Ecn::NotCapable, packet));
    while from.poll_event().is_some() {}
    while to.poll_event().is_some() {}
}
