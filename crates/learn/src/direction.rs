//! Everything that is learned of one direction, from its packets.

use std::ops::Range;

use crate::estimate::idle::{idle, is_thin};
use crate::estimate::overload::{Response, response};
use crate::estimate::statistics::{Interval, median, quantile, sorted};
use crate::estimate::{base, jitter, loss, rate, reordering};
use crate::fit::{Comparison, Family, Fitted, Parameter, choose};
use crate::link::{Link, Loss, Queue};
use crate::observations::{Observations, ObservedFlow, Packet, Way};
use crate::placeholder::PLACEHOLDER;
use crate::replay::Replay;

/// A direction as it was learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// The direction.
    pub way: Way,
    /// The link that explains best what was measured.
    pub link: Link,
    /// Links with other mechanisms that explain it as well.
    pub alternatives: Vec<Link>,
    /// True if a queue was seen under load, so that its discipline and limit are measured.
    pub is_loaded: bool,
    /// Intervals of values, by their keys.
    pub intervals: Vec<(&'static str, Interval)>,
    /// The reason for each key, in a sentence.
    pub evidence: Vec<(&'static str, String)>,
    /// Other things to know, in sentences.
    pub notes: Vec<String>,
    /// Links that explain the measurement within its noise.
    pub ensemble: Vec<Link>,
    /// Packets that were sent and lost.
    pub packets: (usize, usize),
}

impl Learned {
    /// The interval of a key.
    pub fn interval(&self, key: &str) -> Option<Interval> {
        self.intervals.iter().find(|(known, _)| *known == key).map(|(_, interval)| *interval)
    }
}

/// Quiet time in seconds after a train, and after a pulse, from which on the path counts as idle.
const QUIET: (f64, f64) = (0.15, 1.0);
/// The change of the delay by skew, in spreads of the smallest delays around it, from which on it is one of the clocks.
const CLEAR: f64 = 8.0;
/// Relative error within which no rate of a line is claimed: ten times that of the hosts' clocks.
const FINEST: f64 = 1e-3;
/// Bytes of a probe of full size.
const FULL_PACKET: f64 = 1_228.0;
/// Links of an ensemble.
const DRAWS: usize = 20;

/// Base delay, rate and framing: enough to say how long a packet waits.
#[derive(Clone, Debug)]
pub(crate) struct Basics {
    pub(crate) line: rate::Line,
    pub(crate) delay: Interval,
    /// Smallest delays by size.
    by_size: Vec<(u32, f64)>,
}

impl Basics {
    /// From the trains and the thin flow of a direction.
    pub(crate) fn of(observations: &Observations, way: Way) -> Result<Basics, String> {
        let all = observations.packets(way);
        let trains: Vec<rate::Train> = observations
            .of(way)
            .filter(|flow| flow.name.contains("train") || flow.name.starts_with("glance"))
            .flat_map(|flow| rate::trains(&flow.packets, &all))
            .collect();
        let line =
            rate::line(&trains).ok_or("too few packets of the trains arrived, so the rate is not known")?;
        let mut sizes: Vec<u32> = observations
            .of(way)
            .filter(|flow| is_thin(&flow.name))
            .flat_map(|flow| &flow.packets)
            .map(|p| p.bytes)
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        let mut by_size = Vec::new();
        let mut spread: f64 = 0.0;
        for size in sizes {
            let of_size: Vec<Packet> = all.iter().filter(|packet| packet.bytes == size).copied().collect();
            if let Some((smallest, other)) = base::smallest(&of_size) {
                by_size.push((size, smallest));
                if by_size.len() == 1 {
                    spread = other - smallest;
                }
            }
        }
        let (size, smallest) = *by_size.first().ok_or("no packet of the thin flow arrived")?;
        let on_line = 8.0 * (f64::from(size) + line.overhead.value) / line.rate.value;
        let delay = smallest - on_line;
        // Both halves of the packets have a minimum; the truth is below both, about as far.
        let clocks = observations.clock_error.map_or(0.0, |error| error.as_secs_f64());
        let error = spread.max(2e-6) + on_line * 0.02 + clocks;
        let delay = Interval { value: delay, low: delay - error, high: delay + error * 0.5 + clocks };
        Ok(Basics { line, delay, by_size })
    }

    /// The delay of an empty path for a packet of this size.
    pub(crate) fn base(&self, bytes: u32) -> f64 {
        match self.by_size[..] {
            [first, .., last] if last.0 > first.0 => {
                let slope = (last.1 - first.1) / f64::from(last.0 - first.0);
                first.1 + slope.max(0.0) * (f64::from(bytes) - f64::from(first.0))
            }
            _ => {
                let line = &self.line;
                self.delay.value + 8.0 * (f64::from(bytes) + line.overhead.value) / line.rate.value
            }
        }
    }
}

/// The responses of a direction to its pulses, in their order.
pub(crate) fn responses(observations: &Observations, way: Way, basics: &Basics) -> Vec<Response> {
    let thin: Vec<Packet> = observations
        .of(way)
        .filter(|flow| is_thin(&flow.name))
        .flat_map(|flow| flow.packets.clone())
        .collect();
    let pulses = observations.of(way).filter(|flow| is_pulse(flow));
    let mut found: Vec<Response> =
        pulses.filter_map(|flow| response(flow, &thin, |bytes| basics.base(bytes))).collect();
    found.sort_by(|a, b| a.begins.total_cmp(&b.begins));
    found
}

fn is_pulse(flow: &ObservedFlow) -> bool {
    flow.name.contains("pulse")
}

/// Learns a direction.
///
/// # Errors
/// In a sentence, if not even its rate or delay could be measured.
pub fn learn(observations: &Observations, way: Way) -> Result<Learned, String> {
    let mut observations = observations.clone();
    let skew = without_skew(&mut observations, way);
    let observations = &observations;
    let basics = Basics::of(observations, way)?;
    let all = observations.packets(way);
    let lost = all.iter().filter(|packet| packet.delay.is_none()).count();
    let overhead = basics.line.overhead;
    let mut link = Link::line(basics.line.rate.value, basics.delay.value.max(0.0), Queue::FifoPackets(100.0));
    link.overhead = if overhead.low > 1.0 { overhead.value.round() } else { 0.0 };
    let mut learned = Learned {
        way,
        link,
        alternatives: Vec::new(),
        is_loaded: false,
        intervals: vec![("rate", basics.line.rate.at_least(FINEST)), ("delay", basics.delay)],
        evidence: vec![("delay", "smallest delay of the thin flow".to_owned())],
        notes: Vec::new(),
        ensemble: Vec::new(),
        packets: (all.len(), lost),
    };
    if learned.link.overhead > 0.0 {
        learned.intervals.push(("overhead", overhead));
        learned.evidence.push(("overhead", "gaps in trains of packets of two sizes".to_owned()));
    }
    if let Some(skew) = skew {
        learned.notes.push(format!("the clocks differ by {:.1} ppm, which is taken out", skew * 1e6));
    }
    idle_properties(observations, way, &mut learned);
    without_jittered_gaps(&basics, &mut learned);
    let responses = responses(observations, way, &basics);
    load(observations, way, &basics, &responses, &mut learned);
    ensemble(&mut learned);
    Ok(learned)
}

/// Gaps of trains say little of a line where the jitter is as long as they are: packets arrive in groups, and later.
fn without_jittered_gaps(basics: &Basics, learned: &mut Learned) {
    let gap = 8.0 * FULL_PACKET / basics.line.rate.value;
    let jitter = learned.interval("jitter").map_or(0.0, |mean| mean.value);
    if jitter > 0.2 * gap || basics.line.overhead.value >= rate::MOST_OVERHEAD {
        learned.link.overhead = 0.0;
        learned.intervals.retain(|(key, _)| *key != "overhead");
        learned.evidence.retain(|(key, _)| *key != "overhead");
    }
    if jitter > gap {
        let rate = basics.line.rate;
        learned.intervals.retain(|(key, _)| *key != "rate");
        learned.intervals.push(("rate", Interval { high: f64::INFINITY, ..rate }));
        learned.notes.push(
            "the jitter is longer than the gaps of trains: the rate may be higher than its value".to_owned(),
        );
    }
}

/// Takes the skew of the clocks out of the delays of a direction.
fn without_skew(observations: &mut Observations, way: Way) -> Option<f64> {
    let thin = observations.of(way).find(|flow| is_thin(&flow.name))?;
    let smallest = thin.packets.iter().map(|packet| packet.bytes).min()?;
    let of_size: Vec<Packet> = thin.packets.iter().filter(|p| p.bytes == smallest).copied().collect();
    let skew = base::skew(&of_size).filter(|skew| skew.abs() > 2e-6)?;
    // Jitter with a memory, or a queue that grows, bends the line too.
    if base::drift_in_spreads(&of_size, skew) < CLEAR {
        return None;
    }
    for flow in observations.flows.iter_mut().filter(|flow| flow.way == way) {
        for packet in &mut flow.packets {
            let by = (skew * packet.sent.as_nanos() as f64) as i64;
            packet.delay = packet.delay.map(|delay| delay - by);
        }
    }
    Some(skew)
}

/// Loss, jitter and reordering without load.
fn idle_properties(observations: &Observations, way: Way, learned: &mut Learned) {
    // On a slow line, a train takes longer to leave.
    let train = 10.0 * 8.0 * FULL_PACKET / learned.link.rate;
    let quiet = idle(observations, way, (QUIET.0 + train, QUIET.1 + train));
    let fates: Vec<(f64, bool)> =
        quiet.iter().map(|packet| (packet.sent.as_secs_f64(), packet.delay.is_none())).collect();
    let found = loss::model(&fates);
    learned.intervals.push(("loss", found.share));
    let counted = format!("{} of {} packets were lost on the idle path", found.lost, found.packets);
    match found.model {
        Loss::None => learned.notes.push(format!(
            "no loss without load: less than {} (95 %)",
            crate::link::percent(3.0 / found.packets.max(1) as f64)
        )),
        Loss::Random(_) if found.lost < 10 => {
            learned.evidence.push(("loss", format!("{counted}: too few to tell random loss from bursts")));
        }
        Loss::Random(_) => learned.evidence.push(("loss", format!("{counted}, independently"))),
        Loss::Bursts { .. } => {
            learned.intervals.extend(found.burst.map(|burst| ("loss.bad", burst)));
            learned.evidence.push(("loss", format!("{counted}, in bursts")));
        }
    }
    learned.link.loss = found.model;

    let runs: Vec<Packet> = observations
        .of(way)
        .filter(|flow| flow.name.starts_with("runs"))
        .flat_map(|f| f.packets.clone())
        .collect();
    if let Some((share, by)) = reordering::model(&runs) {
        learned.link.reorder = Some((share, by));
        let lost = (share * runs.len() as f64).round() as usize;
        learned.intervals.push(("reorder", loss::wilson(lost, runs.len(), lost, loss::Z90)));
        learned.evidence.push(("reorder", "packets of short runs that later ones overtook".to_owned()));
    }

    // Delay beyond that of the same packets over the line alone: what our own packets make each other wait is no jitter.
    let end = observations.end().as_secs_f64() + 1.0;
    let plain = Link { loss: Loss::None, jitter: None, reorder: None, ..learned.link.clone() };
    let Ok(replay) = Replay::new(observations, way, core::slice::from_ref(&(0.0..end))) else { return };
    let plain = Link { queue: Queue::FifoBytes(1e9), ..plain };
    let Ok(simulated) = replay.over(&plain, 1) else { return };
    let mut beyond: Vec<(f64, f64)> = Vec::new();
    let is_quiet = |packet: &Packet| quiet.binary_search_by_key(&packet.sent, |other| other.sent).is_ok();
    for (observed, simulated) in
        replay.observed().iter().zip(&simulated).filter(|(flow, _)| is_thin(&flow.name))
    {
        for (seen, expected) in observed.packets.iter().zip(&simulated.packets).filter(|(p, _)| is_quiet(p)) {
            if let (Some(seen_delay), Some(expected)) = (seen.delay, expected.delay) {
                beyond.push((seen.sent.as_secs_f64(), (seen_delay - expected) as f64 / 1e9));
            }
        }
    }
    beyond.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, by)) = learned.link.reorder {
        let middle = quantile(&sorted(&beyond.iter().map(|(_, d)| *d).collect::<Vec<_>>()), 0.75);
        if by > 3.0 * middle {
            beyond.retain(|(_, delay)| *delay < 0.6 * by);
        }
    }
    for (_, delay) in &mut beyond {
        *delay = delay.max(0.0);
    }
    if let Some(found) = jitter::model(&beyond, 0.0) {
        learned.link.jitter = Some(found.jitter);
        learned.intervals.push(("jitter", found.mean));
        let memory = match found.jitter.memory {
            Some(_) => "correlated over time",
            None => "independent from packet to packet",
        };
        learned.evidence.push(("jitter", format!("delays of the thin flow on the idle path, {memory}")));
    }
}

/// The mechanism under load: the queue, or a bucket.
fn load(
    observations: &Observations,
    way: Way,
    basics: &Basics,
    responses: &[Response],
    learned: &mut Learned,
) {
    let unknown = |why: &str| ("queue", format!("{PLACEHOLDER}, not measured: {why}"));
    learned.evidence.push(("rate", "gaps in trains of packets".to_owned()));
    let Some(strongest) = responses.iter().max_by(|a, b| a.sent.total_cmp(&b.sent)) else {
        learned.evidence.push(unknown("the path was not loaded"));
        return;
    };
    let is_overloaded = |r: &&Response| r.is_lossy(0.02) || r.late[1] > 5e-3;
    let overloaded: Vec<&Response> = responses.iter().filter(is_overloaded).collect();
    if overloaded.is_empty() {
        learned.evidence.push(unknown(&format!("{} filled no queue", crate::link::rate(strongest.sent))));
        return;
    }
    let Some((fit, held_out)) = replays(observations, way, responses) else {
        learned.evidence.push(unknown("the overloads cannot be simulated"));
        return;
    };
    let largest = overloaded.iter().map(|r| r.largest).fold(0.0, f64::max);
    let base = learned.link.clone();
    let varies = learned.interval("jitter").map_or(0.0, |mean| mean.value);
    let scale = (0.01 * largest).max(2e-4) + 0.3 * varies;
    let comparison = Comparison { fitted: &fit, held_out: held_out.as_ref(), scale, seed: 1 };
    let candidates = candidates(&overloaded, basics);
    let fits: Vec<Fitted> = std::thread::scope(|scope| {
        let (comparison, base) = (&comparison, &base);
        let threads: Vec<_> = candidates
            .iter()
            .map(|(family, start)| scope.spawn(|| comparison.of_family(*family, base, start)))
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let Some((chosen, equals)) = choose(&fits) else {
        learned.evidence.push(unknown("no mechanism explains the overloads"));
        return;
    };
    let (best, halves) = &comparison.over_seeds(&base, &fits[chosen], &candidates[chosen].1);
    learned.link = best.link.clone();
    learned.is_loaded = true;
    learned.alternatives = equals.iter().map(|&index| fits[index].link.clone()).collect();
    for (parameter, interval) in comparison.intervals(&base, best, halves) {
        let key = parameter.key(&learned.link);
        learned.intervals.retain(|(known, _)| *known != key);
        learned.intervals.push((key, interval.at_least(0.005)));
        learned.evidence.push((key, reason(parameter, best, &overloaded)));
    }
    if best.family == Family::Policer {
        learned.evidence.push(unknown("the policer drops packets before they wait"));
    }
    if overloaded.iter().all(|r| r.loss == 0.0) {
        learned.notes.push("no overload reached the queue's limit: its discipline is not known".to_owned());
    }
}

/// Parts of a schedule: the pulses that are fitted, and every third one, which is held out.
fn replays(
    observations: &Observations,
    way: Way,
    responses: &[Response],
) -> Option<(Replay, Option<Replay>)> {
    let window = |r: &Response| r.begins - 0.05..r.begins + r.lasts + (1.2 * r.largest + 0.1).min(1.0);
    let (mut fitted, mut held_out): (Vec<Range<f64>>, Vec<Range<f64>>) = (Vec::new(), Vec::new());
    for (number, response) in responses.iter().enumerate() {
        if number % 3 == 2 { held_out.push(window(response)) } else { fitted.push(window(response)) }
    }
    let fit = Replay::new(observations, way, &fitted).ok()?;
    let held_out = (!held_out.is_empty()).then(|| Replay::new(observations, way, &held_out).ok()).flatten();
    Some((fit, held_out))
}

/// Families that the signs allow, never fewer than two, with the parameters from which their fit begins.
fn candidates(overloaded: &[&Response], basics: &Basics) -> Vec<(Family, Vec<f64>)> {
    let framing = |bytes: f64| (bytes + basics.line.overhead.value) / bytes;
    let arrived = median(&overloaded.iter().map(|r| r.arrived).collect::<Vec<_>>()).max(1e3);
    let rate = (arrived * framing(1_228.0)).min(1.05 * basics.line.rate.value);
    let largest = overloaded.iter().map(|r| r.largest).fold(0.0, f64::max);
    let lossy: Vec<&&Response> = overloaded.iter().filter(|r| r.loss > 0.0).collect();
    let waits = largest > 3e-3;
    let beside: Vec<f64> = overloaded.iter().filter_map(|r| r.beside.map(|(q, _)| q)).collect();
    let main = median(&overloaded.iter().map(|r| r.late[1]).collect::<Vec<_>>());
    let is_fair = waits && !beside.is_empty() && median(&beside) < 0.2 * main;
    let limit = (arrived / 8.0 * largest).max(3_000.0);
    let burst = |at: &dyn Fn(&Response) -> Option<f64>| {
        let bursts: Vec<f64> =
            overloaded.iter().filter_map(|r| Some(at(r)? * (r.sent - arrived).max(0.0) / 8.0)).collect();
        if bursts.is_empty() { limit } else { median(&bursts).max(3_000.0) }
    };
    let mut families = Vec::new();
    if !waits || !lossy.is_empty() && largest < 0.01 {
        families.push((Family::Policer, vec![arrived.ln(), burst(&|r| r.first_loss).ln()]));
        families.push((Family::FifoBytes, vec![rate.ln(), limit.ln()]));
        return families;
    }
    let target = |seconds: f64| vec![rate.ln(), seconds.ln()];
    if is_fair {
        families.push((Family::Drr, vec![rate.ln(), limit.ln()]));
        families.push((Family::FqCodel, target(0.005)));
    } else {
        families.push((Family::FifoBytes, vec![rate.ln(), limit.ln()]));
        families.push((Family::FifoPackets, vec![rate.ln(), (limit / 1_228.0).ln()]));
        families.push((Family::Codel, target(0.005)));
        families.push((Family::Pie, target(0.015)));
    }
    // Delay that begins late, on a line that is faster than what arrived: tokens had been saved.
    let late = overloaded.iter().filter_map(|r| r.onset).fold(0.0, f64::max);
    if !is_fair && rate < 0.85 * basics.line.rate.value && late > 0.02 {
        families.push((Family::Shaper, vec![arrived.ln(), burst(&|r| r.onset).ln(), limit.ln()]));
    }
    families.sort_by_key(|(family, _)| Family::ALL.iter().position(|other| other == family));
    families
}

/// The reason for the value of a fitted parameter.
fn reason(parameter: Parameter, best: &Fitted, overloaded: &[&Response]) -> String {
    let lossy = overloaded.iter().filter(|r| r.loss > 0.0).count();
    let largest = overloaded.iter().map(|r| r.largest).fold(0.0, f64::max) * 1e3;
    match (parameter, best.family) {
        (Parameter::Rate | Parameter::BucketRate, _) => {
            let plural = if overloaded.len() == 1 { "" } else { "s" };
            format!("arrivals during {} overload{plural}", overloaded.len())
        }
        (_, Family::FifoBytes | Family::FifoPackets) if lossy == 0 => {
            format!("the delay grew to {largest:.1} ms and no packet was lost: the limit is at least this")
        }
        (_, Family::FifoBytes | Family::FifoPackets) => {
            format!(
                "the delay grew to {largest:.1} ms and stayed, with loss in {lossy} of {} overloads",
                overloaded.len()
            )
        }
        (_, Family::Drr | Family::FqCodel) => {
            format!("a thin flow did not wait beside an overload that waited for up to {largest:.1} ms")
        }
        (_, Family::Codel) => format!("loss before the delay, up to {largest:.1} ms, stopped growing"),
        (_, Family::Pie) => format!("the delay grew to {largest:.1} ms, then fell back while loss went on"),
        (_, Family::Policer) => format!("loss in {lossy} overloads, without delay"),
        (_, Family::Shaper) => format!("delay and loss began late in {} overloads", overloaded.len()),
    }
}

/// Links within the intervals of the values: stratified draws, so that a few of them cover each interval.
fn ensemble(learned: &mut Learned) {
    let mut stream = trunkline_core::Seed::new(1, 0).stream("ensemble");
    let mut draws = vec![[0.0; 8]; DRAWS];
    for column in 0..8 {
        let mut order: Vec<usize> = (0..DRAWS).collect();
        for last in (1..DRAWS).rev() {
            order.swap(last, stream.below(last as u64 + 1) as usize);
        }
        for (row, place) in draws.iter_mut().zip(order) {
            row[column] = (place as f64 + 0.5) / DRAWS as f64;
        }
    }
    for (number, shares) in draws.iter().enumerate() {
        let others = learned.alternatives.len() + 1;
        let mut link = match number % others {
            0 => learned.link.clone(),
            other => learned.alternatives[other - 1].clone(),
        };
        let within = |key: &str, own: f64, column: usize| {
            let Some(interval) = learned.interval(key) else { return own };
            let (low, high) = (interval.low, interval.high.min(4.0 * interval.value.max(1e-12)));
            let drawn = low + shares[column] * (high - low);
            if interval.value > 0.0 { own * drawn / interval.value } else { own }
        };
        if link.bucket.is_none() {
            link.rate = within("rate", link.rate, 0);
        }
        link.delay = within("delay", link.delay, 1).max(0.0);
        if number % others == 0 {
            link.queue = match link.queue {
                Queue::FifoBytes(limit) => Queue::FifoBytes(within("queue", limit, 2)),
                Queue::FifoPackets(limit) => Queue::FifoPackets(within("queue", limit, 2)),
                Queue::Drr(limit) => Queue::Drr(within("queue", limit, 2)),
                Queue::Codel(target) => Queue::Codel(within("queue", target, 2)),
                Queue::FqCodel(target) => Queue::FqCodel(within("queue", target, 2)),
                Queue::Pie(target) => Queue::Pie(within("queue", target, 2)),
            };
        }
        if let Some(bucket) = &mut link.bucket {
            let keys = if bucket.shapes {
                ["shape-rate", "shape-burst"]
            } else {
                ["committed-rate", "committed-burst"]
            };
            bucket.rate = within(keys[0], bucket.rate, 3);
            bucket.burst = within(keys[1], bucket.burst, 4);
        }
        link.loss = match link.loss {
            Loss::None => Loss::None,
            Loss::Random(share) => Loss::Random(within("loss", share, 5)),
            Loss::Bursts { good, bad } => {
                let drawn = within("loss.bad", bad, 6);
                Loss::Bursts { good: good * drawn / bad, bad: drawn }
            }
        };
        learned.ensemble.push(link);
    }
}
