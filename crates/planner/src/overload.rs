//! Overload that a run is too short to show: latency that still rises when the sources stop.
//!
//! Where more is offered than a queue can send on, every message waits longer than the one before: in a FIFO the latency
//! grows by the surplus, 6 ms in each second if 0.6 % too much is offered. A queue with room hides that until it is full. A
//! short run then keeps limits that a longer run of the same load would break.
//!
//! Two signs are looked for. The first is the load of each link: the time that it needs for all that is offered to its queue,
//! whether or not that is dropped. A surplus in it is an overload, whatever the queue does. Chance in it is small where sources
//! send at known intervals, since the load is then that of the mean interval instead of the drawn ones; what is left is bounded
//! by the repetitions' spread. A link that drops nearly all of its surplus shows the overload, and is not reported. Links whose
//! flows adapt to what they carry have no such load.
//!
//! The second is the latency of each flow, which needs nothing but the messages: each repetition gives the mean latency of a flow's messages in each quarter of the time in which they were sent. A rise
//! is reported if it goes on through the whole run (each of the last three quarters adds at least half of what the last two add on
//! average) and the one-sided confidence bound of that average is above [`LEAST`].

use trunkline_experiment::{Flow, Scenario};
use trunkline_metrics::{FlowSummary, RepetitionSummary, estimate, student_t};

/// The smallest rise that is reported, in seconds of latency per second of the run: an overload of 0.03 %. It is above what
/// clocks of different hosts are apart, at most 0.01 to 0.02 %.
const LEAST: f64 = 0.000_3;

/// Quarters with fewer messages than this have no mean.
const FEWEST: usize = 3;

/// Causes for which a queue drops what its line cannot carry.
const QUEUE_DROPS: [&str; 6] =
    ["queue-full", "displaced", "sojourn", "probability", "overload", "longest-queue"];

/// A link that drops at least this share of its surplus shows the overload.
const SHOWN: f64 = 0.9;

/// The number of standard errors by which messages may differ from a mean interval that counts as theirs.
const ALIKE: f64 = 3.0;

/// Bytes that stand for the headers of a message where flows are weighed.
const HEADERS: f64 = 40.0;

/// A link that is offered more than it carries.
#[derive(Clone, Debug, PartialEq)]
pub struct Overloaded {
    /// Its name, with the direction.
    pub link: String,
    /// The time that it needs for what is offered in a second, in seconds.
    pub load: f64,
}

/// A flow whose latency still rises at the end of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Rising {
    /// Its name.
    pub flow: String,
    /// Growth of its mean latency in the last half of the run, in seconds per second.
    pub per_second: f64,
}

/// A flow of which most messages were refused or had not arrived when the run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfinished {
    /// Its name.
    pub flow: String,
    /// Their share of the messages due, from 0 to 1: the mean over the repetitions.
    pub share: f64,
}

/// Loads of all links in one repetition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Load {
    /// The time in which sources sent, in seconds.
    lasted: f64,
    /// By link, its load over that time and the share of its packets that its queue dropped; `None` where that is unknown.
    links: Vec<Option<(f64, f64)>>,
    /// By flow, the messages that were due.
    due: Vec<f64>,
    /// By flow, the bytes of these, roughly.
    bytes: Vec<f64>,
}

impl Load {
    pub(crate) fn of(summary: &RepetitionSummary) -> Load {
        let due = |flow: &FlowSummary| flow.counts.due() as f64;
        let payload = |flow: &FlowSummary| {
            let throughput = &flow.throughput;
            throughput.offered.bits_per_second() as f64 / 8.0 * throughput.active.as_secs_f64()
        };
        let link = |link: &trunkline_metrics::LinkSummary| {
            let dropped: u64 = QUEUE_DROPS.iter().filter_map(|cause| link.dropped.get(*cause)).sum();
            Some((link.load?, dropped as f64 / link.offered.max(1) as f64))
        };
        Load {
            lasted: summary.duration.as_secs_f64(),
            links: summary.links.iter().map(link).collect(),
            due: summary.flows.iter().map(due).collect(),
            bytes: summary.flows.iter().map(|flow| payload(flow) + HEADERS * due(flow)).collect(),
        }
    }
}

/// The links of a scenario that are certainly offered more than they carry, and drop too little of it to show that.
pub(crate) fn overloaded(scenario: &Scenario, repetitions: &[&Load], confidence: f64) -> Vec<Overloaded> {
    let names: Vec<(usize, u16, String)> = (0..scenario.links.len())
        .flat_map(|place| {
            let link = &scenario.links[place];
            let directions = scenario.directions(link).into_iter();
            (0..).zip(directions).map(move |(port, to)| (place, port, format!("{} {to}", link.name)))
        })
        .collect();
    // The error is shared by the links.
    let confidence = 1.0 - (1.0 - confidence) / names.len().max(1) as f64;
    let factors: Vec<Vec<f64>> =
        (0..scenario.flows.len()).map(|flow| steady(&scenario.flows[flow], flow, repetitions)).collect();
    let of_link = |(place, (link, port, name)): (usize, (usize, u16, String))| {
        let is_on = |flow: &&usize| crosses(&scenario.flows[**flow], link, None);
        let on_link: Vec<usize> = (0..scenario.flows.len()).filter(|flow| is_on(&flow)).collect();
        if on_link.iter().any(|flow| scenario.flows[*flow].transport.holds_back()) {
            return None;
        }
        let offering: Vec<usize> =
            on_link.into_iter().filter(|flow| crosses(&scenario.flows[*flow], link, Some(port))).collect();
        let load = |(number, repetition): (usize, &&Load)| {
            let (load, dropped) = (*repetition.links.get(place)?)?;
            let bytes = |flow: &usize| repetition.bytes.get(*flow).copied().unwrap_or(0.0);
            let all: f64 = offering.iter().map(bytes).sum();
            let steady: f64 = offering.iter().map(|flow| bytes(flow) * factors[*flow][number]).sum();
            Some((load * if all > 0.0 { steady / all } else { 1.0 }, dropped))
        };
        let loads: Vec<(f64, f64)> = repetitions.iter().enumerate().map(load).collect::<Option<_>>()?;
        let load = surplus(&loads, confidence)?;
        Some(Overloaded { link: name, load })
    };
    names.into_iter().enumerate().filter_map(of_link).collect()
}

/// The mean load of a link over its repetitions, each with the share that was dropped, if it is above 1 with this confidence and
/// the drops do not show it.
fn surplus(repetitions: &[(f64, f64)], confidence: f64) -> Option<f64> {
    let loads: Vec<f64> = repetitions.iter().map(|(load, _)| *load).collect();
    let load = (loads.len() >= 2).then(|| estimate(&loads))?;
    let n = loads.len() as f64;
    let bound = load.mean - student_t(confidence, n - 1.0)? * load.standard_deviation? / n.sqrt();
    let dropped = repetitions.iter().map(|(_, dropped)| dropped).sum::<f64>() / n;
    let is_hidden = dropped < SHOWN * (1.0 - 1.0 / load.mean);
    (bound > 1.0 + LEAST && is_hidden).then_some(load.mean)
}

/// True if packets of a flow cross a link, either way or as they enter it at this port.
fn crosses(flow: &Flow, link: usize, port: Option<u16>) -> bool {
    let returns = flow.reflect || flow.meta.is_answered;
    let paths = |sinks: &[trunkline_experiment::Sink], nowhere: Option<(usize, u16)>| {
        let mut forward = sinks.iter().flat_map(|sink| &sink.forward);
        let mut backward = sinks.iter().flat_map(|sink| &sink.backward).filter(|_| returns || port.is_none());
        let is_it = |at: usize, from: u16| at == link && port.is_none_or(|port| port == from);
        forward.any(|step| is_it(step.link, step.from_port))
            || backward.any(|step| is_it(step.link, step.from_port))
            || nowhere.is_some_and(|(at, from)| is_it(at, from))
    };
    match flow.each.is_empty() {
        true => paths(&flow.to, flow.nowhere),
        false => flow.each.iter().any(|ends| paths(&ends.to, ends.nowhere)),
    }
}

/// For each repetition, the messages that a flow sends in its time if all members do from the beginning to the end, and at
/// their mean interval if that is known, over those that were due.
fn steady(flow: &Flow, place: usize, repetitions: &[&Load]) -> Vec<f64> {
    let due: Vec<f64> = repetitions.iter().map(|one| one.due.get(place).copied().unwrap_or(0.0)).collect();
    let lasted = repetitions.first().map_or(0.0, |one| one.lasted);
    let members = flow.meta.members * u32::max(1, flow.each.len() as u32);
    let start = |member: u32| (flow.start + flow.stagger * u64::from(member)).as_secs_f64();
    let active: f64 = (0..flow.meta.members).map(|member| (lasted - start(member)).max(0.0)).sum();
    let share = active / (lasted * f64::from(flow.meta.members)).max(f64::MIN_POSITIVE);
    let sent = flow.source.interval().filter(|_| !due.is_empty()).and_then(|interval| {
        let channels = f64::from(members) * f64::from(flow.meta.channels);
        let (whole, found) = (channels * lasted / interval.as_secs_f64(), estimate(&due));
        let error = ALIKE * found.standard_deviation.unwrap_or(0.0) / (due.len() as f64).sqrt() + channels;
        ((found.mean - whole * share).abs() <= error).then_some(whole)
    });
    let factor = |due: &f64| match sent {
        Some(sent) if *due > 0.0 => sent / due,
        _ if share > 0.0 => 1.0 / share,
        _ => 1.0,
    };
    due.iter().map(factor).collect()
}

/// Mean latencies of one flow in one repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quarters {
    /// By quarter of the time in which it sent, in seconds.
    means: [f64; 4],
    /// The length of a quarter in seconds.
    length: f64,
}

impl Quarters {
    /// Those of a flow; `None` if it sent too little.
    pub(crate) fn of(flow: &FlowSummary) -> Option<Quarters> {
        let sent = |sample: Option<&(trunkline_core::Time, _)>| sample.map(|(sent, _)| sent.as_secs_f64());
        let (first, last) = (sent(flow.latency_over_time.first())?, sent(flow.latency_over_time.last())?);
        let length = (last - first) / 4.0;
        let (mut sums, mut counts) = ([0.0; 4], [0usize; 4]);
        for (sent, latency) in &flow.latency_over_time {
            let quarter = ((sent.as_secs_f64() - first) / length) as usize;
            sums[quarter.min(3)] += latency.as_secs_f64();
            counts[quarter.min(3)] += 1;
        }
        let enough = length > 0.0 && counts.iter().all(|count| *count >= FEWEST);
        enough.then(|| Quarters { means: core::array::from_fn(|n| sums[n] / counts[n] as f64), length })
    }

    /// By how much each quarter lies above the one before, in seconds per second.
    fn rises(&self) -> [f64; 3] {
        core::array::from_fn(|n| (self.means[n + 1] - self.means[n]) / self.length)
    }
}

/// The rise of a flow over its repetitions, with this confidence; `None` if none is certain.
pub(crate) fn rise(repetitions: &[Quarters], confidence: f64) -> Option<f64> {
    let rises: Vec<[f64; 3]> = repetitions.iter().map(Quarters::rises).collect();
    let growths: Vec<f64> = rises.iter().map(|[_, third, last]| (third + last) / 2.0).collect();
    let growth = (growths.len() >= 2).then(|| estimate(&growths))?;
    let n = growths.len() as f64;
    let bound = growth.mean - student_t(confidence, n - 1.0)? * growth.standard_deviation? / n.sqrt();
    let mean = |place: usize| rises.iter().map(|of| of[place]).sum::<f64>() / n;
    let goes_on = (0..3).all(|place| mean(place) >= growth.mean / 2.0);
    (goes_on && bound > LEAST).then_some(growth.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::{Duration, Time};

    /// A flow that sends each millisecond for a second, with latencies in milliseconds by the time in seconds.
    fn flow(latency: impl Fn(f64) -> f64) -> Quarters {
        let sample = |n: u64| {
            let sent = Time::from_nanos(n * 1_000_000);
            (sent, Duration::from_secs_f64(latency(sent.as_secs_f64()) / 1000.0))
        };
        let latency_over_time = (0..1000).map(sample).collect();
        Quarters::of(&FlowSummary { latency_over_time, ..FlowSummary::default() }).expect("it sends enough")
    }

    #[test]
    fn a_surplus_is_reported_unless_the_drops_show_it() {
        // The same in all repetitions, as of sources with constant intervals.
        assert_eq!(surplus(&[(1.001, 0.0); 3], 0.95), Some(1.001));
        assert_eq!(surplus(&[(0.999, 0.0); 3], 0.95), None);
        // A queue that was full in the last half of the run, and one that was so nearly all the time.
        assert_eq!(surplus(&[(1.02, 0.01); 3], 0.95), Some(1.02));
        assert_eq!(surplus(&[(1.02, 0.019); 3], 0.95), None);
        // What chance explains.
        assert_eq!(surplus(&[(1.02, 0.0), (0.99, 0.0), (1.01, 0.0)], 0.95), None);
        assert_eq!(surplus(&[(1.02, 0.0)], 0.95), None, "one repetition shows nothing");
        assert_eq!(surplus(&[], 0.95), None);
    }

    #[test]
    fn a_steady_rise_is_the_overload() {
        // 2 % more than the line takes: 20 ms in a second.
        let found = rise(&[flow(|t| 5.0 + 20.0 * t), flow(|t| 6.0 + 20.0 * t)], 0.95).unwrap();
        assert!((found - 0.02).abs() < 1e-4, "{found}");
    }

    #[test]
    fn what_ends_before_the_run_does_is_no_hidden_overload() {
        for (what, latency) in [
            ("steady", (|_| 5.0) as fn(f64) -> f64),
            ("a queue that is full after a half", |t| 5.0 + 20.0 * t.min(0.5)),
            ("a step when another flow begins", |t| if t > 0.7 { 40.0 } else { 5.0 }),
            ("a sawtooth", |t| 5.0 + 40.0 * ((t * 1.7) % 1.0)),
            ("a queue that drains", |t| 50.0 - 20.0 * t),
            ("clocks that are 100 ppm apart", |t| 5.0 + 0.1 * t),
        ] {
            assert_eq!(rise(&[flow(latency), flow(latency)], 0.95), None, "{what}");
        }
    }

    #[test]
    fn a_rise_that_chance_explains_is_not_reported() {
        // +20, -10 and +5 ms in a second.
        let repetitions = [flow(|t| 50.0 + 20.0 * t), flow(|t| 50.0 - 10.0 * t), flow(|t| 50.0 + 5.0 * t)];
        assert_eq!(rise(&repetitions, 0.95), None);
        assert_eq!(rise(&repetitions[..1], 0.95), None, "one repetition shows nothing");
        assert_eq!(rise(&[], 0.95), None);
    }

    /// A queue that grows by 30 ms in a second, and by chance more or less in one quarter of a repetition.
    #[test]
    fn an_overload_is_seen_through_the_chance_of_a_single_quarter() {
        let noisy = |by: f64| flow(move |t| 5.0 + 30.0 * t + if (0.5..0.75).contains(&t) { by } else { 0.0 });
        let repetitions = [noisy(4.0), noisy(-4.0), noisy(8.0)];
        let found = rise(&repetitions, 0.95).unwrap_or_default();
        assert!((found - 0.03).abs() < 0.005, "{found}");
    }

    #[test]
    fn a_slight_overload_is_reported() {
        // 0.08 % more than the line takes.
        let found = rise(&[flow(|t| 5.0 + 0.8 * t), flow(|t| 6.0 + 0.8 * t)], 0.95).unwrap_or_default();
        assert!((found - 0.000_8).abs() < 1e-5, "{found}");
    }

    #[test]
    fn a_flow_that_sent_little_has_no_quarters() {
        let latency_over_time = (0..8).map(|n| (Time::from_nanos(n), Duration::from_millis(n))).collect();
        let few = FlowSummary { latency_over_time, ..FlowSummary::default() };
        assert_eq!(Quarters::of(&few), None);
        assert_eq!(Quarters::of(&FlowSummary::default()), None);
        let at_once = (0..100).map(|n| (Time::ZERO, Duration::from_millis(n))).collect();
        assert_eq!(Quarters::of(&FlowSummary { latency_over_time: at_once, ..FlowSummary::default() }), None);
    }
}
