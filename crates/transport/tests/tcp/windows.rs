//! No end sends beyond the window that its peer has announced.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use trunkline_core::{Seed, Time};
use trunkline_testkit::cases::cases;
use trunkline_testkit::conformance::transfer;
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::Transmit;
use trunkline_transport::tcp::{TcpConfig, TcpEndpoint};

use crate::observed::{Observed, Observer};
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

/// Notes what the peer of an end announces, and holds the end to that.
struct Watch {
    own: Arc<Mutex<Windows>>,
    peer: Arc<Mutex<Windows>>,
}

impl Observer for Watch {
    /// Notes a segment that is about to be sent.
    fn sends(&mut self, _: Time, _: &Transmit, packet: &[u8]) {
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
    fn takes(&mut self, packet: &[u8]) {
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

/// Two ends that connect, and what each knows of the other's window.
pub(crate) fn watched(
    [near, far]: [TcpConfig; 2],
    paths: [Path; 2],
    seed: u64,
) -> (Pair, [Arc<Mutex<Windows>>; 2]) {
    let near = TcpEndpoint::connect(NEAR, FAR, near, seed).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, far, !seed).expect("the configuration is possible");
    let [first, second] = [(); 2].map(|()| Arc::<Mutex<Windows>>::default());
    let near = Observed { endpoint: near, observer: Watch { own: first.clone(), peer: second.clone() } };
    let far = Observed { endpoint: far, observer: Watch { own: second.clone(), peer: first.clone() } };
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
