//! Clocks that drift and step behind queues that are as unequal as they like: the bound holds.

use proptest::prelude::*;
use trunkline_core::{Duration, Seed, Time};

use super::*;

/// A peer's clock against ours, in nanoseconds: its rate changes at random within the bound, and it steps where told.
struct Peer {
    /// Our time, the offset then and the rate from then on in ns/s.
    course: Vec<(u64, i128, i64)>,
}

impl Peer {
    fn new(draws: &[i64], every: u64, steps: &[(usize, i64)], first: i128) -> Peer {
        let mut course = Vec::new();
        let mut offset = first;
        for (place, &rate) in draws.iter().enumerate() {
            offset +=
                steps.iter().filter(|(at, _)| *at == place).map(|(_, by)| i128::from(*by)).sum::<i128>();
            course.push((place as u64 * every, offset, rate));
            offset += i128::from(rate) * i128::from(every) / 1_000_000_000;
        }
        Peer { course }
    }

    fn offset(&self, ours: u64) -> i128 {
        let place = self.course.partition_point(|(from, ..)| *from <= ours).max(1) - 1;
        let (from, offset, rate) = self.course[place];
        offset + i128::from(rate) * i128::from(ours - from) / 1_000_000_000
    }

    /// What it shows when ours shows this.
    fn shows(&self, ours: u64) -> Time {
        Time::from_nanos(u64::try_from(i128::from(ours) + self.offset(ours)).unwrap())
    }

    fn exchange(&self, sent: u64, there: u64, takes: u64, back: u64) -> Exchange {
        Exchange {
            sent: Time::from_nanos(sent),
            received: self.shows(sent + there),
            replied: self.shows(sent + there + takes),
            returned: Time::from_nanos(sent + there + takes + back),
        }
    }
}

const RATES: Rates = Rates { most_difference: 200_000, steps: Steps::Never };
const SECOND: u64 = 1_000_000_000;
/// Rounding of the peer's model, twice.
const ROUNDING: i128 = 3;

fn holds(offsets: &Offsets, peer: &Peer, ours: u64) -> Result<(), TestCaseError> {
    let offset = offsets.at(Time::from_nanos(ours)).unwrap();
    let error = (peer.offset(ours) - i128::from(offset.estimate)).abs();
    let bound = i128::from(offset.bound.as_nanos()) + ROUNDING;
    prop_assert!(error <= bound, "at {ours} ns: off by {error} ns, bound {bound} ns");
    Ok(())
}

proptest! {
    /// Drifting within the bound, with queues in either direction of up to 100 ms.
    #[test]
    fn the_bound_holds_behind_unequal_queues(
        draws in prop::collection::vec(-200_000..=200_000i64, 40),
        delays in prop::collection::vec((0..100_000_000u64, 0..100_000_000u64, 0..1_000_000u64), 30),
        first in 0..1_000_000_000_000i64,
    ) {
        let peer = Peer::new(&draws, SECOND, &[], i128::from(first - 1_000_000_000));
        let mut offsets = Offsets::new(RATES);
        for (place, (there, back, takes)) in delays.iter().enumerate() {
            let sent = 2 * SECOND + place as u64 * SECOND;
            let observed = offsets.observe(peer.exchange(sent, *there, *takes, *back));
            prop_assert_eq!(observed, Observed::Bound);
            holds(&offsets, &peer, sent + SECOND)?;
        }
        for ours in (2 * SECOND..35 * SECOND).step_by(SECOND as usize / 7) {
            holds(&offsets, &peer, ours)?;
        }
    }

    /// Steps of any size, also those too small to be seen, at most one between two exchanges.
    #[test]
    fn the_bound_holds_across_steps(
        draws in prop::collection::vec(-200_000..=200_000i64, 80),
        delays in prop::collection::vec((0..5_000_000u64, 0..5_000_000u64), 30),
        steps in prop::collection::vec((4..60usize, -20_000_000..20_000_000i64), 0..6),
    ) {
        // Halfway between exchanges, one at a time.
        let mut steps: Vec<(usize, i64)> = steps.into_iter().map(|(at, by)| (at | 1, by)).collect();
        steps.sort_unstable();
        steps.dedup_by_key(|step| step.0);
        let peer = Peer::new(&draws, SECOND / 2, &steps, i128::from(SECOND));
        let mut offsets = Offsets::new(Rates { steps: Steps::Possible, ..RATES });
        for (place, (there, back)) in delays.iter().enumerate() {
            offsets.observe(peer.exchange(SECOND + place as u64 * SECOND, *there, 1000, *back));
        }
        for ours in (SECOND..30 * SECOND).step_by(SECOND as usize / 7) {
            holds(&offsets, &peer, ours)?;
        }
    }

    /// Any four numbers: no panic, and what is impossible teaches nothing.
    #[test]
    fn anything_may_come(times in prop::collection::vec(any::<[u64; 4]>(), 0..20), asked in any::<u64>()) {
        let mut offsets = Offsets::new(Rates::default());
        for [sent, received, replied, returned] in times.into_iter().map(|times| times.map(Time::from_nanos)) {
            offsets.observe(Exchange { sent, received, replied, returned });
        }
        let _ = (offsets.at(Time::from_nanos(asked)), offsets.skew(Time::ZERO, Time::from_nanos(asked)));
    }
}

#[test]
fn a_few_fast_exchanges_among_many_slow_ones_decide() {
    let peer = Peer::new(&[50_000; 120], SECOND, &[], i128::from(SECOND));
    let mut stream = Seed::new(7, 0).stream("queues");
    let mut offsets = Offsets::new(RATES);
    for place in 0..1000 {
        let queue = |fast: bool, bits: u64| if fast { 100_000 } else { 100_000 + bits % 50_000_000 };
        let sent = SECOND + place * SECOND / 10;
        let (there, back) = (queue(place % 20 == 0, stream.bits()), queue(place % 20 == 0, stream.bits()));
        offsets.observe(peer.exchange(sent, there, 1000, back));
    }
    // Half the fastest round trip, and the drift of a second: the fast ones are 2 s apart.
    let width = |ours: u64| offsets.at(Time::from_nanos(ours)).unwrap().bound.as_nanos();
    let widest = (2 * SECOND..98 * SECOND).step_by(SECOND as usize / 9).map(width).max().unwrap();
    assert!((100_000..=310_000).contains(&widest), "{widest} ns");

    let skew = offsets.skew(Time::from_nanos(SECOND), Time::from_nanos(100 * SECOND)).unwrap();
    assert!((skew.estimate - 50e-6).abs() <= skew.bound && skew.bound < 5e-6, "{skew:?}");
}

#[test]
fn a_peer_that_started_again_is_noticed() {
    let before = Peer::new(&[0; 40], SECOND, &[], 5_000_000_000);
    let after = Peer::new(&[0; 40], SECOND, &[], 70_000_000);
    let mut offsets = Offsets::new(RATES);
    assert_eq!(offsets.observe(before.exchange(SECOND, 1000, 10, 1000)), Observed::Bound);
    assert_eq!(offsets.observe(after.exchange(9 * SECOND, 1000, 10, 1000)), Observed::Step);
    assert_eq!(offsets.observe(after.exchange(10 * SECOND, 1000, 10, 1000)), Observed::Bound);
    let at = |second: u64| offsets.at(Time::from_nanos(second * SECOND)).unwrap();
    assert_eq!(at(1).estimate, 5_000_000_000);
    assert_eq!(at(10).estimate, 70_000_000);
    // Between the two nobody can say which holds.
    assert!(at(5).bound > Duration::from_secs(2));
    assert_eq!(offsets.skew(Time::ZERO, Time::ZERO), None);
}

#[test]
fn what_no_clocks_can_give_teaches_nothing() {
    let exchange = |[sent, received, replied, returned]: [u64; 4]| {
        let [sent, received, replied, returned] = [sent, received, replied, returned].map(Time::from_nanos);
        Exchange { sent, received, replied, returned }
    };
    for times in [[5, 9, 9, 4], [5, 9, 8, 7], [5, 100, 900, 7], [u64::MAX - 1, 0, 0, u64::MAX]] {
        let mut offsets = Offsets::new(RATES);
        assert_eq!(offsets.observe(exchange(times)), Observed::Impossible, "{times:?}");
        assert_eq!(offsets.at(Time::ZERO), None);
    }
    let mut offsets = Offsets::new(RATES);
    offsets.observe(exchange([10, 10, 10, 20]));
    assert_eq!(offsets.observe(exchange([10, 10, 10, 19])), Observed::Impossible);
}
