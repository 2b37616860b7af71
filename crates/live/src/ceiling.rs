//! What the owner of a host lets conversations send together, kept to by waiting: nothing is dropped and nothing ends, a
//! greedy conversation just goes slower.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline_core::{Bytes, Duration, Rate};
use trunkline_experiment::Flow;
use trunkline_io::clock;

/// A rate that several conversations share, of this or of several sessions. Each waits for its turn; turns are given in
/// the order in which they are asked for.
#[derive(Debug)]
pub struct Ceiling {
    state: Mutex<State>,
    /// What was not used may be made up for, up to so much of the rate.
    credit: Duration,
    /// And so much more.
    slack: Bytes,
}

#[derive(Debug)]
struct State {
    rate: Rate,
    /// Until when all that was given out is paid for by the passing of time, by the raw monotonic clock.
    paid: u64,
}

/// Sleeps that last too long cost nothing of the rate: they are shorter than this.
const CREDIT: Duration = Duration::from_millis(20);
/// What keeps to a schedule sends ahead of it and behind it, and connections begin with a burst.
const LENIENT: Duration = Duration::from_secs(2);
const SLACK: Bytes = Bytes(256 << 10);
/// With less than this nothing would ever come to an end.
const LEAST: Rate = Rate::from_bits_per_second(10_000);

impl Ceiling {
    /// Of flows that send whatever they may.
    pub fn new(rate: Rate) -> Ceiling {
        Ceiling::with(rate, CREDIT, Bytes::ZERO)
    }

    /// Of flows with a pace of their own, which is not to be touched as long as they keep to this rate over seconds.
    pub fn lenient(rate: Rate) -> Ceiling {
        Ceiling::with(rate, LENIENT, SLACK)
    }

    fn with(rate: Rate, credit: Duration, slack: Bytes) -> Ceiling {
        Ceiling { state: Mutex::new(State { rate: rate.max(LEAST), paid: 0 }), credit, slack }
    }

    /// The rate from now on; at least 10 kbit/s.
    pub fn set(&self, rate: Rate) {
        self.lock().rate = rate.max(LEAST);
    }

    /// Gives out so much, and says when it may be sent.
    fn reserve(&self, now: u64, bytes: Bytes) -> u64 {
        let mut state = self.lock();
        let credit = self.credit + state.rate.time_for(self.slack);
        let turn = state.paid.max(now.saturating_sub(credit.as_nanos()));
        state.paid = turn.saturating_add(state.rate.time_for(bytes).as_nanos());
        turn
    }

    /// It was so much in truth.
    fn correct(&self, reserved: Bytes, bytes: Bytes) {
        let mut state = self.lock();
        let (more, less) = (bytes.0.saturating_sub(reserved.0), reserved.0.saturating_sub(bytes.0));
        let [more, less] = [more, less].map(|bytes| state.rate.time_for(Bytes(bytes)).as_nanos());
        state.paid = state.paid.saturating_add(more).saturating_sub(less);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which flows have no pace of their own, and under which ceilings they send.
#[derive(Clone, Debug, Default)]
pub struct Limited {
    /// Indices in the scenario.
    flows: Vec<usize>,
    ceilings: Arc<[Arc<Ceiling>]>,
    /// For each of the flows, how long its conversations have waited, in nanoseconds.
    held: Arc<[AtomicU64]>,
}

impl Limited {
    /// These flows, by their indices in the scenario, send under all of these ceilings; without any they are not held
    /// back here.
    pub fn new(flows: Vec<usize>, ceilings: Vec<Arc<Ceiling>>) -> Limited {
        let held = flows.iter().map(|_| AtomicU64::new(0)).collect();
        Limited { flows, ceilings: ceilings.into(), held }
    }

    /// Whether the flow has no pace of its own.
    pub(crate) fn is_greedy(&self, flow: usize) -> bool {
        self.flows.contains(&flow)
    }

    /// The place of a conversation of this flow; `None` if nothing holds it back.
    pub(crate) fn turn(&self, flow: usize) -> Option<Turn> {
        let place = self.flows.iter().position(|limited| *limited == flow)?;
        (!self.ceilings.is_empty()).then(|| Turn { limited: self.clone(), place, usual: FIRST, at: None })
    }

    /// How long the conversations of this flow have waited, together.
    pub(crate) fn held(&self, flow: usize) -> Duration {
        let place = self.flows.iter().position(|limited| *limited == flow);
        place.map_or(Duration::ZERO, |place| Duration::from_nanos(self.held[place].load(Ordering::Relaxed)))
    }
}

/// What is asked for before it is known how much will be sent.
const FIRST: Bytes = Bytes(1500);

/// A conversation under ceilings.
#[derive(Debug)]
pub(crate) struct Turn {
    limited: Limited,
    place: usize,
    /// What it sent last time, and has reserved for the next.
    usual: Bytes,
    /// When that may leave, once it was asked for.
    at: Option<u64>,
}

impl Turn {
    /// When it may send next, by the raw monotonic clock. What it has asked for is its own until it has
    /// [sent](Turn::sent).
    pub(crate) fn at(&mut self, now: u64) -> u64 {
        let Turn { limited, place, usual, at } = self;
        *at.get_or_insert_with(|| {
            let turns = limited.ceilings.iter().map(|ceiling| ceiling.reserve(now, *usual));
            let at = turns.max().unwrap_or(now);
            limited.held[*place].fetch_add(at.saturating_sub(now), Ordering::Relaxed);
            at
        })
    }

    /// It has sent so many bytes of messages, headers of its own included.
    pub(crate) fn sent(&mut self, bytes: usize) {
        let bytes = in_packets(Bytes(bytes as u64));
        self.at(clock::raw_now());
        let reserved = core::mem::replace(&mut self.usual, bytes);
        self.limited.ceilings.iter().for_each(|ceiling| ceiling.correct(reserved, bytes));
        self.at = None;
    }

    /// Sends so much now, or not at all; says whether it may.
    pub(crate) fn passes(&mut self, bytes: usize) -> bool {
        let now = clock::raw_now();
        let passes = self.at(now) <= now;
        if passes {
            self.sent(bytes);
        }
        passes
    }
}

/// The bytes that a message of a flow takes on the network: the message, its measurement header where that stands in
/// front of it, and the headers of network and transport for every packet of 1460 bytes that is begun.
pub fn on_network(flow: &Flow, message: Bytes) -> Bytes {
    in_packets(Bytes(message.count() + flow.added_on_sockets(message.count())))
}

/// The bytes that messages with their headers take on the network: 40 more for every packet of 1460 that is begun.
pub fn in_packets(messages: Bytes) -> Bytes {
    Bytes(messages.0 + messages.0.div_ceil(1460) * 40)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MBIT: Rate = Rate::from_bits_per_second(1_000_000);

    proptest! {
        /// Whoever waits for each turn never gets beyond the rate, but for the credit and one message each.
        #[test]
        fn turns_keep_to_the_rate(
            asks in proptest::collection::vec((1..20_000u64, 0..30_000_000u64), 1..200),
        ) {
            let ceiling = Ceiling::new(MBIT);
            let start = 1_000_000_000_000u64;
            let (mut now, mut sum) = (start, 0);
            for (bytes, pause) in asks {
                let at = ceiling.reserve(now, Bytes(1500)).max(now);
                let most = (at - start) as f64 / 8e3 + 2500.0 + 20_000.0;
                prop_assert!(sum as f64 <= most, "{sum} in {}", at - start);
                ceiling.correct(Bytes(1500), Bytes(bytes));
                sum += bytes;
                now = at + pause;
            }
        }
    }

    #[test]
    fn what_was_not_used_is_made_up_for_within_the_credit_only() {
        let ceiling = Ceiling::new(MBIT);
        let now = 10_000_000_000;
        assert_eq!(ceiling.reserve(now, Bytes(1250)), now - 20_000_000);
        // 1250 bytes are 10 ms.
        assert_eq!(ceiling.reserve(now, Bytes(1250)), now - 10_000_000);
        assert_eq!(ceiling.reserve(now, Bytes(1250)), now);
        assert_eq!(ceiling.reserve(now, Bytes(1250)), now + 10_000_000);
        ceiling.set(Rate::from_bits_per_second(2_000_000));
        assert_eq!(ceiling.reserve(now, Bytes(1250)), now + 20_000_000);
        assert_eq!(ceiling.reserve(now, Bytes(0)), now + 25_000_000, "at the new rate");
    }

    #[test]
    fn a_schedule_is_let_alone_until_it_is_exceeded_for_seconds() {
        let lenient = |bytes: u64| {
            let limited = Limited::new(vec![0], vec![Arc::new(Ceiling::lenient(MBIT))]);
            limited.turn(0).unwrap().passes(bytes as usize)
        };
        assert!(lenient(300_000));
        let limited = Limited::new(vec![0], vec![Arc::new(Ceiling::lenient(MBIT))]);
        let mut turn = limited.turn(0).unwrap();
        let passed = (0..100).filter(|_| turn.passes(50_000)).count();
        // Two seconds of the rate, 256 KiB, and the first that is too much.
        assert!((9..=12).contains(&passed), "{passed}");
        assert!(limited.turn(1).is_none() && Limited::default().turn(0).is_none());
    }

    #[test]
    fn who_waits_is_counted() {
        let ceilings = vec![Arc::new(Ceiling::new(MBIT)), Arc::new(Ceiling::new(MBIT))];
        let limited = Limited::new(vec![3], ceilings);
        let mut turn = limited.turn(3).unwrap();
        let now = clock::raw_now();
        assert!(turn.at(now) <= now);
        turn.sent(125_000);
        let (now, again) = (clock::raw_now(), clock::raw_now());
        let at = turn.at(now);
        assert!(at > now + 900_000_000 && turn.at(again) == at, "asked once");
        assert_eq!(limited.held(3), Duration::from_nanos(at - now));
    }
}
