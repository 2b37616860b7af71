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

/// A host's clock by true time, in nanoseconds.
struct Host {
    /// Moments, what the clock shows then, and how fast it runs from then on beyond true time, in nanoseconds per second.
    course: Vec<(u64, i128, i64)>,
}

/// Slews: so long after the one before, for so long, by so much.
type Slews = Vec<(u64, u64, i64)>;

impl Host {
    /// A crystal whose error changes every half second, set right by slews, and set forward or back at some moments.
    fn new(crystal: &[i64], slews: &Slews, steps: &[(u64, i64)], first: i128) -> Host {
        let mut changes: Vec<(u64, i64, i64, i64)> = Vec::new();
        let mut last = 0;
        for (place, &error) in crystal.iter().enumerate() {
            changes.push((place as u64 * SECOND / 2, error - last, 0, 0));
            last = error;
        }
        let mut at = 0;
        for &(after, length, by) in slews {
            changes.push((at + after, 0, by, 0));
            changes.push((at + after + length, 0, -by, 0));
            at += after + length;
        }
        changes.extend(steps.iter().map(|&(at, by)| (at, 0, 0, by)));
        changes.sort_unstable_by_key(|change| change.0);
        let (mut course, mut error, mut slew) = (vec![(0, first, 0)], 0, 0);
        for (at, more_error, more_slew, step) in changes {
            (error, slew) = (error + more_error, slew + more_slew);
            let shown = advanced(course[course.len() - 1], at);
            // What is turned is what the crystal shows.
            let rate =
                i128::from(error) + i128::from(slew) * (1_000_000_000 + i128::from(error)) / 1_000_000_000;
            course.push((at, shown + i128::from(step), rate as i64));
        }
        Host { course }
    }

    fn shows(&self, at: u64) -> Time {
        let place = self.course.partition_point(|(from, ..)| *from <= at) - 1;
        Time::from_nanos(u64::try_from(advanced(self.course[place], at)).unwrap())
    }
}

fn advanced((from, shown, rate): (u64, i128, i64), at: u64) -> i128 {
    shown + i128::from(at - from) * (1_000_000_000 + i128::from(rate)) / 1_000_000_000
}

fn slews() -> impl Strategy<Value = Slews> {
    let by =
        prop_oneof![-100_000_000..=100_000_000i64, Just(100_000_000), Just(-100_000_000), Just(-500_000)];
    prop::collection::vec((0..3 * SECOND, 10_000_000..10 * SECOND, by), 0..8)
}

/// When a question left, how long it took there and back, and when the answer came.
type Asked = (u64, u64, u64);

/// One after the other.
fn exchanges() -> impl Strategy<Value = Vec<Asked>> {
    // Mostly idle, sometimes behind a queue.
    let way = || prop_oneof![3 => 10_000..300_000u64, 1 => 0..100_000_000u64];
    let gaps = prop::collection::vec((1_000_000..400_000_000u64, way(), way()), 10..60);
    gaps.prop_map(|gaps| {
        let mut returned = SECOND;
        let exchange = |(after, there, back): (u64, u64, u64)| {
            let sent = returned + after;
            returned = sent + there + TAKES + back;
            (sent, there, returned)
        };
        gaps.into_iter().map(exchange).collect()
    })
}

/// An answer takes so long.
const TAKES: u64 = 2_000;

/// Relates two hosts by exchanges, and holds what is known of them then against the truth.
fn relates(
    [near, far]: [&Host; 2],
    rates: Rates,
    exchanges: &[Asked],
) -> Result<Vec<Observed>, TestCaseError> {
    let mut offsets = Offsets::new(rates);
    let check = |offsets: &Offsets, at: u64| {
        let truth = difference(far.shows(at), near.shows(at));
        let offset = offsets.at(near.shows(at)).unwrap();
        let error = (truth - i128::from(offset.estimate)).abs();
        let bound = i128::from(offset.bound.as_nanos()) + ROUNDING;
        prop_assert!(error <= bound, "at {at} ns: off by {error} ns, bound {bound} ns");
        Ok(())
    };
    let (mut seen, mut latest) = (Vec::new(), SECOND);
    for &(sent, there, returned) in exchanges {
        let (received, replied) = (far.shows(sent + there), far.shows(sent + there + TAKES));
        let (sent, returns) = (near.shows(sent), near.shows(returned));
        seen.push(offsets.observe(Exchange { sent, received, replied, returned: returns }));
        check(&offsets, returned)?;
        latest = returned;
    }
    for at in (exchanges[0].0..latest).step_by(13_000_000) {
        check(&offsets, at)?;
    }
    Ok(seen)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// As chrony slews at most, for 10 ms to 10 s and at either end or both, while crystals drift.
    #[test]
    fn the_bound_holds_while_clocks_are_turned(
        crystals in prop::array::uniform2(prop::collection::vec(-600_000..=600_000i64, 60)),
        turned in prop::array::uniform2(slews()),
        which in 0..3usize,
        exchanges in exchanges(),
    ) {
        let turning = [which != 1, which != 0];
        let hosts: Vec<Host> = (0..2)
            .map(|end| {
                let slews = if turning[end] { turned[end].clone() } else { Slews::new() };
                Host::new(&crystals[end], &slews, &[], (end as i128 * 7 + 3) * i128::from(SECOND))
            })
            .collect();
        let [ours, theirs] = turning.map(|is_turned| Turning::of(!is_turned));
        let seen = relates([&hosts[0], &hosts[1]], Rates::between(ours, theirs), &exchanges)?;
        prop_assert!(seen.iter().all(|seen| *seen == Observed::Bound), "nobody has set a clock");
    }

    /// And the peer's is set besides, between two exchanges.
    #[test]
    fn the_bound_holds_while_clocks_are_turned_and_set(
        crystals in prop::array::uniform2(prop::collection::vec(-600_000..=600_000i64, 60)),
        turned in prop::array::uniform2(slews()),
        step in (0..10usize, -900_000_000..900_000_000i64),
        exchanges in exchanges(),
    ) {
        let steps = [(exchanges[step.0].2 + 1_000, step.1)];
        let near = Host::new(&crystals[0], &turned[0], &[], 3 * i128::from(SECOND));
        let far = Host::new(&crystals[1], &turned[1], &steps, 10 * i128::from(SECOND));
        let rates = Rates { steps: Steps::Possible, ..Rates::between(Turning::Possible, Turning::Possible) };
        relates([&near, &far], rates, &exchanges)?;
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
