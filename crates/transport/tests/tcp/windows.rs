//! No end sends beyond the window that its peer has announced.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use trunkline_core::{Address, Ecn, Seed, Time};
use trunkline_testkit::cases::cases;
use trunkline_testkit::conformance::transfer;
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::tcp::{TcpConfig, TcpEndpoint};
use trunkline_transport::{
    Close, Conversation, Endpoint, Event, Features, Message, Received, SendError, Transmit,
};

use crate::properties::{config, messages, path};

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;

/// The fields of a segment that windows depend on, read by the test itself.
#[derive(Clone, Copy, Debug)]
struct Segment {
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    window: u32,
    /// The shift of the window scale option.
    scale: Option<u8>,
    length: u32,
}

impl Segment {
    fn read(packet: &[u8]) -> Segment {
        let u32_at = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().expect("they are four"));
        let data = usize::from(packet[12] >> 4) * 4;
        let flags = packet[13];
        let numbered = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        Segment {
            sequence: u32_at(4),
            acknowledgement: u32_at(8),
            flags,
            window: u16::from_be_bytes([packet[14], packet[15]]).into(),
            scale: scale(&packet[20..data]),
            length: (packet.len() - data) as u32 + numbered,
        }
    }
}

fn scale(mut options: &[u8]) -> Option<u8> {
    loop {
        match options {
            [3, 3, shift, ..] => return Some(*shift),
            [] | [0, ..] => return None,
            [1, rest @ ..] => options = rest,
            [_, length, ..] => options = options.get(usize::from(*length)..)?,
            _ => return None,
        }
    }
}

/// What one end knows of the other's window. Packets that were damaged on the way are known by not having been sent.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    sent: BTreeMap<Vec<u8>, Segment>,
    own_scale: Option<u8>,
    peer_scale: Option<u8>,
    /// The sequence number behind the largest window so far.
    edge: Option<u32>,
    pub(crate) violations: Vec<String>,
}

/// An end of a connection that notes what its peer announces, and holds it to that.
struct Watched {
    endpoint: TcpEndpoint,
    own: Arc<Mutex<Windows>>,
    peer: Arc<Mutex<Windows>>,
}

impl Watched {
    /// Notes a segment that is about to be sent.
    fn sends(&self, packet: &[u8]) {
        let segment = Segment::read(packet);
        let mut own = self.own.lock().expect("nobody panicked");
        if segment.flags & SYN != 0 {
            own.own_scale = segment.scale;
        }
        // Linux lets the FIN of a burst that fills the window stand behind it.
        let end = segment.sequence.wrapping_add(segment.length - u32::from(segment.flags & FIN != 0));
        if own.edge.is_some_and(|edge| segment.length > 0 && (edge.wrapping_sub(end) as i32) < 0) {
            let text = format!("{segment:?} ends behind {:?}", own.edge);
            own.violations.push(text);
        }
        own.sent.insert(packet.to_vec(), segment);
    }

    /// Notes the window of a segment that has arrived as it was sent.
    fn takes(&self, packet: &[u8]) {
        let Some(segment) = self.peer.lock().expect("nobody panicked").sent.get(packet).copied() else {
            return;
        };
        let mut own = self.own.lock().expect("nobody panicked");
        let is_syn = segment.flags & SYN != 0;
        if is_syn {
            own.peer_scale = segment.scale;
        }
        if segment.flags & ACK == 0 {
            return;
        }
        let is_scaled = !is_syn && own.own_scale.is_some();
        let shift = if is_scaled { own.peer_scale.unwrap_or(0) } else { 0 };
        let edge = segment.acknowledgement.wrapping_add(segment.window << shift);
        own.edge = Some(match own.edge {
            Some(known) if (edge.wrapping_sub(known) as i32) < 0 => known,
            _ => edge,
        });
    }
}

impl Conversation for Watched {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        self.endpoint.send(now, message)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        self.endpoint.receive(into)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }

    fn close(&mut self, now: Time, how: Close) {
        self.endpoint.close(now, how);
    }

    fn features(&self) -> &'static Features {
        self.endpoint.features()
    }
}

impl Endpoint for Watched {
    fn handle_packet(&mut self, now: Time, from: Address, ecn: Ecn, packet: &[u8]) {
        self.takes(packet);
        self.endpoint.handle_packet(now, from, ecn, packet);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.endpoint.poll_transmit(now, into)?;
        self.sends(into);
        Some(transmit)
    }

    fn next_timeout(&self) -> Option<Time> {
        self.endpoint.next_timeout()
    }

    fn counters(&self, count: &mut dyn FnMut(&'static str, u64)) {
        self.endpoint.counters(count);
    }
}

/// Two ends that connect, and what each knows of the other's window.
pub(crate) fn watched(
    [near, far]: [TcpConfig; 2],
    paths: [Path; 2],
    seed: u64,
) -> (Pair, [Arc<Mutex<Windows>>; 2]) {
    let near = TcpEndpoint::connect(NEAR, FAR, near, seed).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, far, !seed).expect("the configuration is possible");
    let [first, second] = [(); 2].map(|()| Arc::<Mutex<Windows>>::default());
    let near = Watched { endpoint: near, own: first.clone(), peer: second.clone() };
    let far = Watched { endpoint: far, own: second.clone(), peer: first.clone() };
    (Pair::new(Box::new(near), Box::new(far), paths, Seed::new(seed, 0)), [first, second])
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn no_end_sends_beyond_the_largest_window_that_its_peer_has_announced(
        near in config(), far in config(), out in path(), back in path(), seed: u64,
        sizes in prop::collection::vec(0..20_000usize, 1..10),
    ) {
        let (mut pair, windows) = watched([near, far], [out, back], seed);
        pair.drive();
        let sent = messages(&sizes);
        for from in Side::BOTH {
            let received = transfer(&mut pair, from, &sent);
            prop_assert!(received.concat() == sent.concat(), "{:?}: {} bytes", from, received.concat().len());
        }
        for windows in windows {
            let windows = windows.lock().expect("nobody panicked");
            prop_assert!(windows.edge.is_some() && windows.violations.is_empty(), "{:?}", windows.violations);
        }
    }
}
