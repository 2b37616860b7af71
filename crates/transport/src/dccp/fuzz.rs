//! What must hold of DCCP for any bytes: run by the fuzzer, by its corpus in the tests, and by proptest.

use trunkline_core::{Address, Duration, Ecn, Time};

use super::{Ccid, DccpConfig, DccpEndpoint, Encapsulation, Header, Options, WhenFull, decode, encode};
use crate::conversation::{Close, Conversation as _, Message};
use crate::endpoint::Endpoint as _;

const NEAR: Address = Address { host: 0, port: 4000 };
const FAR: Address = Address { host: 1, port: 5000 };
/// As long as an experiment may reasonably send into a conversation with an attacker.
const MOST_PACKETS: usize = 4096;

/// Checks the codec and the state machine on arbitrary bytes and panics where they break their word:
/// 1. what is decoded is encoded again to the same bytes, except for reserved fields and the checksum;
/// 2. whatever packets reach two ends, in any state, between sends and closes at any time, neither panics, none delivers
///    a message that was not sent, or one twice unless packets were forged, and their timers never stand still.
#[doc(hidden)]
pub fn fuzz_dccp(data: &[u8]) {
    fuzz_codec(data);
    fuzz_endpoints(data);
}

fn fuzz_codec(bytes: &[u8]) {
    let Ok(packet) = decode(bytes, None) else { return };
    for option in Options::new(packet.options) {
        let mut written = Vec::new();
        option.write(&mut written);
        assert_eq!(Options::new(&written).next(), Some(option), "an option changes when it is written");
    }
    let mut again = Vec::new();
    encode(&packet.header, packet.options, packet.data, None, &mut again);
    assert_eq!(decode(&again, None), Ok(packet), "a packet changes when it is written");
    assert_eq!(again.len(), bytes.len());
}

/// Two ends, driven by the bytes: each chooses what happens next.
struct Ends {
    ends: [DccpEndpoint; 2],
    /// Packets under way, to the end of that index.
    flying: Vec<(usize, Vec<u8>)>,
    now: Time,
    sent: [u32; 2],
    received: [Vec<u32>; 2],
    /// Forged packets without a checksum may move the windows to where old packets are new.
    forged: bool,
}

fn fuzz_endpoints(data: &[u8]) {
    let Some((&choice, mut rest)) = data.split_first() else { return };
    let config = DccpConfig {
        ccid: Ccid::ALL[usize::from(choice % 3)],
        short_sequence_numbers: choice & 4 != 0,
        data_checksum: choice & 8 != 0,
        when_full: WhenFull::ALL[usize::from(choice >> 4) % 3],
        lifetime: (choice & 0x40 != 0).then(|| Duration::from_millis(30)),
        // Injected packets need no right checksum then.
        encapsulation: Encapsulation::UdpPayload,
        ..DccpConfig::default()
    };
    let ends = [DccpEndpoint::connect(NEAR, FAR, &config, 1), DccpEndpoint::listen(FAR, &config, 2)];
    let [Ok(near), Ok(far)] = ends else { return };
    let mut ends = Ends {
        ends: [near, far],
        flying: Vec::new(),
        now: Time::ZERO,
        sent: [0; 2],
        received: [Vec::new(), Vec::new()],
        forged: false,
    };
    ends.drain();
    while let Some((&operation, after)) = rest.split_first() {
        rest = ends.step(operation, after);
        if ends.flying.len() > MOST_PACKETS {
            ends.flying.clear();
        }
    }
    ends.check();
}

impl Ends {
    /// Does one thing; returns the bytes that are left.
    fn step<'d>(&mut self, operation: u8, rest: &'d [u8]) -> &'d [u8] {
        let side = usize::from(operation & 1);
        let argument = rest.first().copied().unwrap_or(0);
        let now = self.now;
        match operation >> 1 & 7 {
            0 | 1 => {
                // The next packet under way arrives, with damage now and then.
                if !self.flying.is_empty() {
                    let index = usize::from(argument) % self.flying.len();
                    let (to, packet) = self.flying.remove(index);
                    let ecn = if operation & 0x10 == 0 { Ecn::Ect0 } else { Ecn::CongestionExperienced };
                    if operation & 0x20 != 0 {
                        self.flying.push((to, packet.clone()));
                    }
                    self.arrive(to, ecn, &packet);
                }
            }
            2 => {
                self.sent[side] += 1;
                let mut message = vec![side as u8; usize::from(argument)];
                message.splice(0..0, self.sent[side].to_be_bytes());
                let _ = self.ends[side].send(now, Message::new(&message));
            }
            3 => self.now += Duration::from_micros(1 << (argument % 28)),
            4 => {
                let due = self.ends[side].next_timeout();
                if let Some(at) = due {
                    assert!(at > now, "a timeout at {at}, which is not after {now}");
                    self.now = at;
                    self.ends[side].handle_timeout(at);
                }
            }
            5 => {
                // A packet without data under way is forged: one of its bytes is another. Data stays as it is: no
                // checksum of ours guards it here.
                if let Some((_, packet)) = self.flying.last_mut() {
                    let at = usize::from(argument) % packet.len();
                    let mut forged = packet.clone();
                    forged[at] ^= operation | 1;
                    let may_be_read =
                        |bytes: &[u8]| decode(bytes, None).is_ok_and(|packet| carries_data(&packet.header));
                    if !may_be_read(packet) && !may_be_read(&forged) {
                        *packet = forged;
                        self.forged = true;
                    }
                }
            }
            6 => {
                // A packet that nobody sent: a Reset, a Sync or any other without data.
                let length = usize::from(argument).min(rest.len().saturating_sub(1));
                let forged = &rest[rest.len().min(1)..][..length];
                if decode(forged, None).is_ok_and(|packet| !carries_data(&packet.header)) {
                    self.forged = true;
                    self.arrive(side, Ecn::NotCapable, forged);
                }
                self.drain();
                return &rest[rest.len().min(1) + length..];
            }
            _ => {
                let how = if argument & 1 == 0 { Close::Graceful } else { Close::Abort };
                if argument > 250 {
                    self.ends[side].close(now, how);
                }
            }
        }
        self.drain();
        rest.get(1..).unwrap_or(&[])
    }

    fn arrive(&mut self, to: usize, ecn: Ecn, packet: &[u8]) {
        let from = if to == 0 { FAR } else { NEAR };
        self.ends[to].handle_packet(self.now, from, ecn, packet);
    }

    fn drain(&mut self) {
        let mut buffer = Vec::new();
        for (side, end) in self.ends.iter_mut().enumerate() {
            let mut count = 0;
            while end.poll_transmit(self.now, &mut buffer).is_some() {
                self.flying.push((1 - side, buffer.clone()));
                count += 1;
                assert!(count < 10_000, "sends without end");
            }
            while end.poll_event().is_some() {}
            let mut message = Vec::new();
            while end.receive(&mut message).is_some() {
                if let Some((number, rest)) = message.split_first_chunk() {
                    assert!(rest.iter().all(|&byte| usize::from(byte) == 1 - side), "not what was sent");
                    self.received[side].push(u32::from_be_bytes(*number));
                }
                message.clear();
            }
        }
    }

    /// Nothing was received that was not sent, and nothing twice.
    fn check(&mut self) {
        for (side, received) in self.received.iter_mut().enumerate() {
            received.sort_unstable();
            let is_once = received.windows(2).all(|pair| pair[0] != pair[1]);
            assert!(is_once || self.forged, "something was received twice");
            assert!(received.iter().all(|&number| number >= 1 && number <= self.sent[1 - side]));
        }
    }
}

fn carries_data(header: &Header) -> bool {
    header.body.is_data()
}
