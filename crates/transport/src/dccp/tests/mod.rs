mod codec;
mod data;
mod endings;
mod handshake;
mod negotiation;
mod rate;

use core::net::{IpAddr, Ipv4Addr};

use trunkline_core::{Address, Duration, Ecn, Time};

use super::*;
use crate::endpoint::drain;

const NEAR: Address = Address { host: 0, port: 4000 };
const FAR: Address = Address { host: 1, port: 5000 };

/// Two ends and the packets between them, each kept until it is carried.
struct Wire {
    near: DccpEndpoint,
    far: DccpEndpoint,
    now: Time,
}

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Near,
    Far,
}

impl Wire {
    fn new(config: &DccpConfig) -> Wire {
        Wire::with(config, config)
    }

    fn with(near: &DccpConfig, far: &DccpConfig) -> Wire {
        Wire {
            near: DccpEndpoint::connect(NEAR, FAR, near, 1).unwrap(),
            far: DccpEndpoint::listen(FAR, far, 2).unwrap(),
            now: Time::ZERO,
        }
    }

    /// Both in OPEN.
    fn open(config: &DccpConfig) -> Wire {
        let mut wire = Wire::new(config);
        wire.settle();
        assert_eq!((wire.near.state, wire.far.state), (State::Open, State::Open));
        wire
    }

    fn end(&mut self, from: From) -> &mut DccpEndpoint {
        match from {
            From::Near => &mut self.near,
            From::Far => &mut self.far,
        }
    }

    /// Everything that one end wants to send now.
    fn packets(&mut self, from: From) -> Vec<Vec<u8>> {
        let now = self.now;
        let mut packets = Vec::new();
        drain(self.end(from), now, &mut Vec::new(), |_, bytes| packets.push(bytes.clone()));
        packets
    }

    /// Gives a packet of one end to the other.
    fn carry(&mut self, from: From, packet: &[u8]) {
        let now = self.now;
        match from {
            From::Near => self.far.handle_packet(now, NEAR, Ecn::NotCapable, packet),
            From::Far => self.near.handle_packet(now, FAR, Ecn::NotCapable, packet),
        }
    }

    /// Carries everything in both directions, 10 ms each way, until nobody wants to send.
    fn settle(&mut self) {
        loop {
            let out = self.packets(From::Near);
            let back = self.packets(From::Far);
            if out.is_empty() && back.is_empty() {
                return;
            }
            self.now += Duration::from_millis(10);
            for packet in out {
                self.carry(From::Near, &packet);
            }
            for packet in back {
                self.carry(From::Far, &packet);
            }
        }
    }

    /// Passes time, with the timers of both ends.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        self.settle();
        loop {
            let next = [&self.near, &self.far].into_iter().filter_map(Endpoint::next_timeout).min();
            let Some(at) = next.filter(|&at| at <= until) else { break };
            self.now = self.now.max(at);
            let now = self.now;
            self.near.handle_timeout(now);
            self.far.handle_timeout(now);
            self.settle();
        }
        self.now = self.now.max(until);
    }

    fn send(&mut self, from: From, message: &[u8]) -> Result<(), SendError> {
        let now = self.now;
        self.end(from).send(now, Message::new(message))
    }

    fn received(&mut self, at: From) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut message = Vec::new();
        while self.end(at).receive(&mut message).is_some() {
            all.push(core::mem::take(&mut message));
        }
        all
    }

    fn events(&mut self, at: From) -> Vec<Event> {
        core::iter::from_fn(|| self.end(at).poll_event()).collect()
    }
}

/// Of both directions.
const PSEUDO_HEADER: PseudoHeader =
    Some([IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1))]);

/// A packet, taken apart.
fn read(bytes: &[u8]) -> Packet<'_> {
    decode(bytes, PSEUDO_HEADER).unwrap()
}

fn body(bytes: &[u8]) -> Body {
    read(bytes).header.body
}

fn bodies(packets: &[Vec<u8>]) -> Vec<u8> {
    packets.iter().map(|packet| body(packet).kind()).collect()
}

fn counter(endpoint: &DccpEndpoint, name: &str) -> u64 {
    let mut value = None;
    endpoint.counters(&mut |counter, count| {
        if counter == name {
            value = Some(count);
        }
    });
    value.unwrap_or_else(|| panic!("no counter `{name}`"))
}
