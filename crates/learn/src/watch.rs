//! Watching a path for hours: short looks at a low rate, and the changes between them.

use trunkline_core::Duration;
use trunkline_experiment::Experiment;

use crate::collector::Collector;
use crate::direction::Basics;
use crate::estimate::loss::wilson;
use crate::estimate::statistics::median;
use crate::link::{percent, rate, time};
use crate::observations::{Observations, Way};
use crate::plan;
use crate::probing::Prober;

/// Looks that must agree before a change is reported: one alone may be chance.
const AGREEING: usize = 3;
/// Looks that are remembered.
const REMEMBERED: usize = 60;
/// Spreads of earlier looks that a change exceeds, and the quantile of the intervals of loss that do not overlap.
const CLEAR: f64 = 4.0;
const CLEAR_LOSS: f64 = 2.58;
/// The smallest relative change of a rate, the smallest change of a delay in seconds and relative to it, and that of a loss.
const LEAST_RATE: f64 = 0.1;
const LEAST_DELAY: (f64, f64) = (0.5e-3, 0.01);
const LEAST_LOSS: f64 = 0.005;

/// A figure that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The rate of the line in bits per second.
    Rate,
    /// The smallest delay in seconds.
    Delay,
    /// The share of packets lost.
    Loss,
    /// The share of packets that arrived at all: none, or some again.
    Silence,
}

/// A change of a direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The direction.
    pub way: Way,
    /// The figure.
    pub figure: Watched,
    /// The first look that differed, by the time since the first one.
    pub since: Duration,
    /// The figure before.
    pub before: f64,
    /// The figure after.
    pub after: f64,
}

impl Watched {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Watched::Rate => "rate",
            Watched::Delay => "delay",
            Watched::Loss => "loss",
            Watched::Silence => "silence",
        }
    }
}

impl Change {
    /// The change in a sentence, without its time.
    pub fn sentence(&self) -> String {
        let way = self.way.name();
        match self.figure {
            Watched::Rate => format!("{way}: the rate was {} and is {}", rate(self.before), rate(self.after)),
            Watched::Delay => format!(
                "{way}: the smallest delay was {} and is {}: another route, or a queue that does not become empty",
                time(self.before),
                time(self.after)
            ),
            Watched::Loss => {
                format!("{way}: the loss was {} and is {}", percent(self.before), percent(self.after))
            }
            Watched::Silence if self.after > 0.0 => format!("{way}: packets arrive again"),
            Watched::Silence => format!("{way}: no packet arrives any more"),
        }
    }
}

/// A look at a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Look {
    rate: Option<f64>,
    delay: Option<f64>,
    sent: usize,
    lost: usize,
    /// Runs of lost packets.
    runs: usize,
}

impl Look {
    fn of(observations: &Observations, way: Way) -> Look {
        let packets = observations.packets(way);
        let is_lost = |packet: &crate::Packet| packet.delay.is_none();
        let runs = packets.chunk_by(|one, next| is_lost(one) == is_lost(next)).filter(|run| is_lost(&run[0]));
        let basics = Basics::of(observations, way).ok();
        Look {
            rate: basics.as_ref().map(|basics| basics.line.rate.value),
            delay: basics.as_ref().map(|basics| basics.delay.value),
            sent: packets.len(),
            lost: packets.iter().filter(|packet| is_lost(packet)).count(),
            runs: runs.count(),
        }
    }

    fn share(&self) -> f64 {
        self.lost as f64 / self.sent.max(1) as f64
    }

    fn is_silent(&self) -> bool {
        self.lost == self.sent
    }
}

/// A direction since its last change.
#[derive(Clone, Debug, Default)]
struct Monitor {
    rates: Vec<(Duration, f64)>,
    delays: Vec<(Duration, f64)>,
    losses: Vec<(Duration, Look)>,
    is_silent: bool,
}

impl Monitor {
    /// Changes that this look shows; delays are known within `error` seconds.
    fn take(&mut self, way: Way, at: Duration, look: Look, error: f64) -> Vec<Change> {
        let change = |figure, (since, before, after)| Change { way, figure, since, before, after };
        let was_silent = std::mem::replace(&mut self.is_silent, look.is_silent());
        if look.is_silent() {
            let is_new = !was_silent;
            return is_new.then(|| change(Watched::Silence, (at, 1.0, 0.0))).into_iter().collect();
        }
        let mut changes: Vec<Change> =
            was_silent.then(|| change(Watched::Silence, (at, 0.0, 1.0))).into_iter().collect();
        if let Some(rate) = look.rate {
            let stepped = step(&mut self.rates, (at, rate), |before| LEAST_RATE * before);
            changes.extend(stepped.map(|step| change(Watched::Rate, step)));
        }
        if let Some(delay) = look.delay {
            let least = |before: f64| LEAST_DELAY.0 + LEAST_DELAY.1 * before.abs() + 2.0 * error;
            let stepped = step(&mut self.delays, (at, delay), least);
            changes.extend(stepped.map(|step| change(Watched::Delay, step)));
        }
        changes.extend(self.lose(at, look).map(|step| change(Watched::Loss, step)));
        changes
    }

    fn lose(&mut self, at: Duration, look: Look) -> Option<(Duration, f64, f64)> {
        remember(&mut self.losses, (at, look));
        let (before, after) = self.losses.split_at_checked(self.losses.len().checked_sub(AGREEING)?)?;
        let share = |looks: &[(Duration, Look)]| {
            let sum = |of: fn(&Look) -> usize| looks.iter().map(|(_, look)| of(look)).sum();
            wilson(sum(|look| look.lost), sum(|look| look.sent), sum(|look| look.runs), CLEAR_LOSS)
        };
        let (was, is) = (share(before), share(after));
        // Each of the last looks is nearer to what they show together.
        let middle = f64::midpoint(was.value, is.value);
        let is_beyond = |look: &Look| (look.share() > middle) == (is.value > middle);
        let is_clear = before.len() >= AGREEING
            && (was.high < is.low || is.high < was.low)
            && after.iter().all(|(_, look)| is_beyond(look));
        let step = (after[0].0, was.value, is.value);
        (is_clear && (was.value - is.value).abs() >= LEAST_LOSS).then(|| {
            self.losses.drain(..self.losses.len() - AGREEING);
            step
        })
    }
}

/// Adds a value to those since the last change. Returns a change if the last values agree that there is one: its time, and the medians
/// before and after it.
fn step(
    values: &mut Vec<(Duration, f64)>,
    value: (Duration, f64),
    least: impl Fn(f64) -> f64,
) -> Option<(Duration, f64, f64)> {
    remember(values, value);
    let (before, after) = values.split_at_checked(values.len().checked_sub(AGREEING)?)?;
    let only = |values: &[(Duration, f64)]| values.iter().map(|(_, value)| *value).collect::<Vec<_>>();
    let was = median(&only(before));
    let spread = 1.48 * median(&only(before).iter().map(|value| (value - was).abs()).collect::<Vec<_>>());
    let allowed = least(was).max(CLEAR * spread);
    let is_higher = after.iter().all(|(_, value)| *value > was + allowed);
    let is_lower = after.iter().all(|(_, value)| *value < was - allowed);
    let step = (after[0].0, was, median(&only(after)));
    (before.len() >= AGREEING && (is_higher || is_lower)).then(|| {
        values.drain(..values.len() - AGREEING);
        step
    })
}

fn remember<T>(values: &mut Vec<T>, value: T) {
    values.push(value);
    if values.len() > REMEMBERED {
        values.remove(0);
    }
}

/// Follows a watch, and says when it ends.
pub trait Watcher {
    /// Waits for the next look, at this time since the first one. Returns false to end the watch.
    fn wait(&self, at: Duration) -> bool;

    /// A direction has changed.
    fn changed(&self, change: &Change);

    /// A look failed; the watch goes on.
    fn failed(&self, _why: &str) {}
}

/// The result of a watch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    /// Looks that were taken, those that failed among them.
    pub looks: usize,
    /// Looks that failed.
    pub failed: usize,
    /// Changes in their order.
    pub changes: Vec<Change>,
}

/// Looks at a path until the watcher ends it, `every` so often.
pub fn watch(prober: &mut dyn Prober, watcher: &dyn Watcher, every: Duration, seed: u64) -> Watch {
    let mut result = Watch::default();
    let mut monitors = [Monitor::default(), Monitor::default()];
    let mut at = Duration::ZERO;
    while watcher.wait(at) {
        result.looks += 1;
        let start = if prober.is_virtual() { at } else { Duration::ZERO };
        match look(prober, start, seed.wrapping_add(result.looks as u64)) {
            Ok(observations) => {
                let error = prober.clock_error().map_or(0.0, |error| error.as_secs_f64());
                for (way, monitor) in Way::ALL.into_iter().zip(&mut monitors) {
                    let changes = monitor.take(way, at, Look::of(&observations, way), error);
                    changes.iter().for_each(|change| watcher.changed(change));
                    result.changes.extend(changes);
                }
            }
            Err(why) => {
                result.failed += 1;
                watcher.failed(&why);
            }
        }
        at += every;
    }
    result
}

fn look(prober: &mut dyn Prober, start: Duration, seed: u64) -> Result<Observations, String> {
    let text = plan::look(start).text(&prober.place(), seed >> 1);
    let read = Experiment::parse(&text, "look", prober.files()).map_err(|problems| problems.to_string())?;
    let point = read.points.first();
    let mut collector = Collector::new(&point.scenario, "here");
    prober.run(&read, &mut collector)?;
    Ok(collector.finish())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::Simulated;

    struct For(Duration, Cell<usize>);

    impl Watcher for For {
        fn wait(&self, at: Duration) -> bool {
            at < self.0
        }

        fn changed(&self, _: &Change) {
            self.1.set(self.1.get() + 1);
        }
    }

    fn watched(keys: &str, minutes: u64) -> Vec<Change> {
        let watcher = For(Duration::from_secs(60 * minutes), Cell::new(0));
        let watch = watch(&mut Simulated::new(keys, 5), &watcher, Duration::from_secs(60), 1);
        assert_eq!((watch.looks as u64, watch.failed, watcher.1.get()), (minutes, 0, watch.changes.len()));
        watch.changes
    }

    #[test]
    fn steps_of_rate_and_delay_are_reported_once_with_their_time() {
        let steps = |before: &str, after: &str| {
            format!("{{ kind = \"steps\", steps = [[\"0 s\", \"{before}\"], [\"900 s\", \"{after}\"]] }}")
        };
        let keys = format!(
            "[forward]\nrate = {}\ndelay = \"10 ms\"\n[backward]\nrate = \"20 Mbit/s\"\ndelay = {}\n",
            steps("8 Mbit/s", "4 Mbit/s"),
            steps("10 ms", "13 ms")
        );
        let changes = watched(&keys, 30);
        assert_eq!(changes.len(), 2, "{changes:?}");
        for (change, figure, before, after) in
            [(&changes[0], Watched::Rate, 8e6, 4e6), (&changes[1], Watched::Delay, 10e-3, 13e-3)]
        {
            assert_eq!((change.figure, change.since), (figure, Duration::from_secs(900)));
            assert!((change.before / before - 1.0).abs() < 0.03, "{change:?}");
            assert!((change.after / after - 1.0).abs() < 0.03, "{change:?}");
        }
    }

    #[test]
    fn jitter_and_loss_that_stay_are_no_changes() {
        let keys = "rate = \"6 Mbit/s\"\ndelay = \"20 ms\"\nloss = \"1 %\"\n\
                    jitter = { kind = \"exponential\", mean = \"3 ms\" }\njitter-memory = \"100 ms\"\n";
        assert_eq!(watched(keys, 120), []);
    }

    #[test]
    fn loss_and_silence_are_told_from_chance() {
        let mut monitor = Monitor::default();
        let look = |lost| Look { rate: None, delay: None, sent: 150, lost, runs: lost };
        let mut changes = Vec::new();
        for (minute, lost) in (0..40).zip([0, 1].into_iter().cycle().take(20).chain([5, 4, 6, 150, 150, 5])) {
            let at = Duration::from_secs(60 * minute);
            changes.extend(monitor.take(Way::Forward, at, look(lost), 0.0));
        }
        let figures: Vec<_> = changes.iter().map(|change| (change.figure, change.since)).collect();
        let minutes = [(Watched::Loss, 20), (Watched::Silence, 23), (Watched::Silence, 25)];
        assert_eq!(figures, minutes.map(|(figure, minute)| (figure, Duration::from_secs(60 * minute))));
        assert!(changes[2].sentence().contains("arrive again"), "{}", changes[2].sentence());
    }
}
