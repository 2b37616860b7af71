//! Whatever two applications do, in any order and at any time: what arrives is what was sent, nothing stalls, and no window is
//! violated.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use trunkline_core::{Duration, Seed, Time};
use trunkline_testkit::cases::cases;
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::tcp::{BufferConfig, Nagle, Profile, TcpConfig, TcpEndpoint};
use trunkline_transport::{Close, CloseReason, Event, SendError, Transmit};

use crate::observed::{Observed, Observer};
use crate::properties::{config, path};
use crate::windows::watched;

const MS: Duration = Duration::from_millis(1);

/// Two ends with 360 kB for each other, whatever their segments and losses, are done after fewer packets and timers.
const MOST_STEPS: u32 = 300_000;

/// Something that an application does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Write(usize),
    Read,
    Close,
    Abort,
}

/// A time to wait, an end, and what its application does.
type Step = (u64, Side, Act);

fn steps(may_abort: bool) -> impl Strategy<Value = Vec<Step>> {
    let act = prop_oneof![
        6 => (0..9000usize).prop_map(Act::Write),
        3 => Just(Act::Read),
        1 => Just(if may_abort { Act::Abort } else { Act::Close }),
        1 => Just(Act::Close),
    ];
    let side = any::<bool>().prop_map(|near| if near { Side::Near } else { Side::Far });
    let wait = prop_oneof![Just(0), 0..20u64, 0..2000u64];
    prop::collection::vec((wait, side, act), 1..40)
}

/// Bytes that both applications have sent and received so far.
#[derive(Default)]
struct Applications {
    sent: [Vec<u8>; 2],
    received: [Vec<u8>; 2],
    closed: [bool; 2],
}

impl Applications {
    fn act(&mut self, pair: &mut Pair, side: Side, act: Act) {
        let end = side as usize;
        match act {
            Act::Write(length) => {
                let from = self.sent[end].len();
                let byte = |place: usize| ((place as u32).wrapping_mul(0x9E37_79B9) >> 24) as u8;
                let bytes: Vec<u8> = (from..from + length).map(byte).collect();
                match pair.send(side, &bytes) {
                    Ok(()) => self.sent[end].extend(bytes),
                    Err(SendError::Full | SendError::Closed(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            Act::Read => {
                let other = side.other() as usize;
                self.received[other].extend(pair.receive_all(side).concat());
                assert!(
                    self.sent[other].starts_with(&self.received[other]),
                    "end {side:?} has read something else than was sent, or more of it"
                );
            }
            Act::Close | Act::Abort => {
                self.closed[end] = true;
                pair.close(side, if matches!(act, Act::Abort) { Close::Abort } else { Close::Graceful });
            }
        }
    }

    /// Reads at both ends until everything has come and neither end has anything to do.
    ///
    /// # Panics
    /// If the ends still send to each other after very many packets.
    fn finish(&mut self, pair: &mut Pair) {
        for _ in 0..MOST_STEPS {
            for side in Side::BOTH {
                self.act(pair, side, Act::Read);
            }
            if !pair.step_until(Time::MAX) {
                return;
            }
        }
        panic!("the ends never come to rest, at {}", pair.now());
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn whatever_applications_do_nothing_is_lost_doubled_changed_or_stalled(
        near in config(), far in config(), out in path(), back in path(), seed: u64, steps in steps(false),
    ) {
        let (mut pair, windows) = watched([near, far], [out, back], seed);
        pair.drive();
        let mut both = Applications::default();
        for (wait, side, act) in steps {
            pair.drive_for(MS * wait);
            both.act(&mut pair, side, act);
        }
        // Where nothing flies and no timer runs, whatever is not there now will never come.
        both.finish(&mut pair);
        for side in Side::BOTH {
            let end = side as usize;
            prop_assert!(both.received[end] == both.sent[end], "{} of {} bytes", both.received[end].len(), both.sent[end].len());
            if !both.closed[end] {
                both.act(&mut pair, side, Act::Close);
                both.finish(&mut pair);
            }
        }
        for side in Side::BOTH {
            let events = pair.events(side);
            prop_assert!(events.iter().any(|event| matches!(event, Event::Closed(_))), "{:?}: {:?}", side, events);
        }
        for windows in windows {
            let windows = windows.lock().expect("nobody panicked");
            prop_assert!(windows.violations.is_empty(), "{:?}", windows.violations);
        }
    }

    #[test]
    fn after_an_abort_both_ends_come_to_rest_and_what_was_read_was_sent(
        near in config(), far in config(), out in path(), back in path(), seed: u64, steps in steps(true),
    ) {
        let (mut pair, _) = watched([near, far], [out, back], seed);
        let mut both = Applications::default();
        for (wait, side, act) in steps {
            pair.drive_for(MS * wait);
            both.act(&mut pair, side, act);
        }
        for side in Side::BOTH {
            both.act(&mut pair, side, Act::Close);
        }
        both.finish(&mut pair);
    }
}

fn pair_of([near, far]: [TcpConfig; 2], paths: [Path; 2], seed: u64) -> Pair {
    let near = TcpEndpoint::connect(NEAR, FAR, near, seed).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, far, !seed).expect("the configuration is possible");
    Pair::new(Box::new(near), Box::new(far), paths, Seed::new(seed, 0))
}

/// A FIN behind a gap is held without bytes: the end that held it when it was reset woke up every second, for ever.
#[test]
fn an_end_that_was_reset_with_a_fin_behind_a_gap_comes_to_rest() {
    let lossy = Path { drop: vec![2], ..Path::with_latency(MS * 10) };
    let paths = [lossy, Path::with_latency(MS * 10)];
    let mut pair = pair_of([TcpConfig::default(), TcpConfig::default()], paths, 1);
    pair.drive_for(MS * 100);
    pair.send(Side::Near, &[1; 100]).expect("the send buffer has room");
    pair.close(Side::Near, Close::Graceful);
    pair.drive_for(MS * 15);
    pair.close(Side::Near, Close::Abort);
    pair.drive_for(MS * 15);
    assert!(pair.take_event(Side::Far, Event::Closed(CloseReason::Reset)));
    let steps = (0..100).take_while(|_| pair.step_until(Time::MAX)).count();
    assert!(steps < 100, "the end still wakes up at {}", pair.now());
}

/// The payloads that an end has sent, in bytes.
#[derive(Clone, Default)]
struct Payloads(Arc<Mutex<Vec<usize>>>);

impl Observer for Payloads {
    fn sends(&mut self, _now: Time, _transmit: &Transmit, segment: &[u8]) {
        let payload = segment.len() - usize::from(segment[12] >> 4) * 4;
        if payload > 0 {
            self.0.lock().expect("nobody panicked").push(payload);
        }
    }
}

/// Sizes of the segments in which messages leave, one every so often.
fn segments_of(config: TcpConfig, message: &[u8], count: usize, every: Duration) -> Vec<usize> {
    let sent = Payloads::default();
    let near = TcpEndpoint::connect(NEAR, FAR, config.clone(), 1).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, config, 2).expect("the configuration is possible");
    let near = Observed { endpoint: near, observer: sent.clone() };
    let paths = [Path::with_latency(MS * 10), Path::with_latency(MS * 10)];
    let mut pair = Pair::new(Box::new(near), Box::new(far), paths, Seed::new(1, 0));
    pair.drive_for(MS * 100);
    for _ in 0..count {
        pair.send(Side::Near, message).expect("there is room");
        pair.drive_for(every);
        pair.receive_all(Side::Far);
    }
    pair.drive_for(MS * 100);
    let sizes = sent.0.lock().expect("nobody panicked");
    sizes.clone()
}

/// Only a kernel with segmentation offload collects data in buffers of 64 KiB, at whose ends a burst ends.
#[test]
fn without_segmentation_offload_no_message_is_cut_where_64_kib_end() {
    let buffer = BufferConfig::fixed(8 << 10);
    let solaris =
        TcpConfig { mss: 9140, receive_buffer: buffer, send_buffer: buffer, ..Profile::Solaris25.config() };
    assert_eq!(segments_of(solaris, &[7; 8 << 10], 20, MS * 200), [8 << 10; 20]);
}

/// Linux adds a message to its last buffer only as long as the buffer waits, so that none is cut that leaves at once.
#[test]
fn messages_that_leave_at_once_are_not_cut_where_64_kib_of_the_stream_end() {
    let linux = TcpConfig { nagle: Nagle::Off, ..Profile::Linux.config() };
    assert_eq!(segments_of(linux, &[7; 1000], 200, MS * 5), [1000; 200]);
}
