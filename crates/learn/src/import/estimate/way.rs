//! The estimates of one direction.

use super::passage::{Passage, Passages};
use crate::{Observations, Way};

/// Packets of a busy period that make a rate, and distinct moments at which they arrived: offloading delivers groups.
const WINDOW_PACKETS: usize = 40;
const WINDOW_MOMENTS: usize = 10;
/// The shortest such period.
const WINDOW: f64 = 100e6;
/// Windows within this share of each other have one rate.
const CONSTANT: f64 = 0.1;
/// The window of the densest rate of a link that is not saturated.
const DENSEST: f64 = 100e6;
/// A wait of this share of the longest is one in a full queue.
const FULL: f64 = 0.85;
/// Below this share of the longest wait a queue of unknown kind is taken to be short.
const SHORT: f64 = 0.2;

/// Everything known of one direction. Times in nanoseconds, rates in bit/s.
#[derive(Debug)]
pub(super) struct WayEstimate {
    pub(super) packets: usize,
    pub(super) lost: usize,
    pub(super) sizes: (u32, u32),
    pub(super) length: u64,
    /// The smallest delay without the transmission.
    pub(super) base: f64,
    /// Packets that were within a tenth of a millisecond, or 1 %, of it.
    pub(super) near_base: usize,
    pub(super) rate: Option<RateEstimate>,
    pub(super) densest: f64,
    pub(super) longest_wait: f64,
    pub(super) queue: Discipline,
    pub(super) losses: Losses,
    pub(super) jitter: Option<Jitter>,
    pub(super) reordering: Option<Reordering>,
}

#[derive(Debug)]
pub(super) struct RateEstimate {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) windows: usize,
    pub(super) busy: f64,
    /// Windows agree: the mean counts, and otherwise the 90th percentile.
    pub(super) is_constant: bool,
}

/// The queue, as far as losses show it.
#[derive(Debug)]
pub(super) enum Discipline {
    /// Packets were lost when the wait was longest.
    TailDrop(Limit),
    /// Packets were lost after waits shorter than that, and hardly any without a wait.
    Early { losses: usize, from: f64, to: f64 },
    /// No losses that the queue explains.
    Unfilled,
}

#[derive(Debug)]
pub(super) struct Limit {
    pub(super) bytes: f64,
    pub(super) packets: f64,
    pub(super) losses: usize,
    pub(super) in_packets: bool,
    pub(super) cannot_tell: bool,
}

/// Losses that a full queue does not explain.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) lost: usize,
    pub(super) tried: usize,
    /// Runs of lost packets.
    pub(super) runs: usize,
}

#[derive(Debug)]
pub(super) struct Jitter {
    pub(super) packets: usize,
    pub(super) mean: f64,
    pub(super) median: f64,
    pub(super) p95: f64,
}

#[derive(Debug)]
pub(super) struct Reordering {
    pub(super) packets: usize,
    pub(super) lateness: f64,
}

impl WayEstimate {
    /// `None` if no packet of the direction arrived.
    pub(super) fn of(observations: &Observations, way: Way) -> Option<WayEstimate> {
        let passages = Passages::of(observations, way);
        let first = passages.arrived.first()?;
        let smallest = passages.arrived.iter().map(Passage::delay).fold(f64::INFINITY, f64::min);
        let mut rate = rate(&passages, smallest);
        let per_byte = rate.as_ref().map_or(0.0, |rate| 8e9 / rate.value);
        let base =
            passages.arrived.iter().map(|p| p.delay() - p.bytes * per_byte).fold(f64::INFINITY, f64::min);
        let wait = |p: &Passage| p.delay() - p.bytes * per_byte - base;
        let longest_wait = passages.arrived.iter().map(wait).fold(0.0, f64::max);
        let near = base.abs().mul_add(0.01, 100_000.0);
        let near_base = passages.arrived.iter().filter(|p| wait(p) <= near).count();
        let events = losses(&passages, per_byte, base);
        let (mut queue, losses) = sort_losses(&passages, &events, rate.as_ref(), longest_wait, base);
        if let Some(rate) = rate.as_mut().filter(|rate| rate.is_constant) {
            // Packets that are lost at random are lost behind the line, as in our links: they have used it.
            let used = 1.0 / (1.0 - losses.lost as f64 / losses.tried.max(1) as f64).max(0.5);
            [&mut rate.value, &mut rate.low, &mut rate.high].into_iter().for_each(|rate| *rate *= used);
            if let Discipline::TailDrop(limit) = &mut queue {
                limit.bytes *= used;
                limit.packets *= used;
            }
        }
        let end = passages.arrived.iter().map(|p| p.received).fold(first.received, f64::max);
        Some(WayEstimate {
            packets: passages.all.len(),
            lost: events.len(),
            sizes: passages.sizes,
            length: (end - first.received) as u64,
            base,
            near_base,
            densest: densest(&passages.arrived),
            longest_wait,
            queue,
            losses,
            jitter: jitter(&passages, smallest, per_byte, base),
            reordering: reordering(&passages),
            rate,
        })
    }

    /// A sentence on the smallest delay.
    pub(super) fn confidence_in_base(&self) -> String {
        match self.near_base {
            0..5 => format!(
                "only {} packets had it: the queue may never have been empty, and the true delay smaller",
                self.near_base
            ),
            near => format!("{near} of {} packets were within 0.1 ms or 1 % of it", self.packets - self.lost),
        }
    }
}

/// The rate at which a queue that was never empty was served.
fn rate(passages: &Passages, smallest: f64) -> Option<RateEstimate> {
    // In order of arrival, since only a FIFO's busy periods count, in which both orders agree.
    let mut windows: Vec<(f64, f64)> = Vec::new();
    let mut from: Option<(f64, f64, usize, usize)> = None;
    let mut before: Option<&Passage> = None;
    for passage in &passages.arrived {
        let waited = before
            .is_some_and(|before| passage.sent >= before.sent && passage.sent + smallest < before.received);
        from = match (from, before) {
            (Some((start, bytes, packets, moments)), Some(before)) if waited => {
                let moments = moments + usize::from(passage.received > before.received);
                let (bytes, packets) = (bytes + passage.bytes, packets + 1);
                let length = passage.received - start;
                // A group that arrives at once is not divided.
                let is_whole = packets >= WINDOW_PACKETS && moments >= WINDOW_MOMENTS && length >= WINDOW;
                if is_whole && passage.received > before.received {
                    windows.push((length, bytes));
                    Some((passage.received, 0.0, 0, 0))
                } else {
                    Some((start, bytes, packets, moments))
                }
            }
            _ => Some((passage.received, 0.0, 0, 0)),
        };
        before = Some(passage);
    }
    if windows.is_empty() {
        return None;
    }
    let busy: f64 = windows.iter().map(|(length, _)| length).sum();
    let all: f64 = windows.iter().map(|(_, bytes)| bytes).sum();
    let mut rates: Vec<f64> = windows.iter().map(|(length, bytes)| bytes * 8e9 / length).collect();
    rates.sort_by(f64::total_cmp);
    let quantile = |share: f64| rates[((rates.len() - 1) as f64 * share).round() as usize];
    let (low, high) = (quantile(0.1), quantile(0.9));
    let is_constant = high - low < CONSTANT * high;
    let value = if is_constant { all * 8e9 / busy } else { high };
    Some(RateEstimate { value, low, high, windows: rates.len(), busy, is_constant })
}

/// The largest receive rate of a tenth of a second.
fn densest(arrived: &[Passage]) -> f64 {
    let (mut first, mut bytes, mut most) = (0, 0.0, 0.0);
    for passage in arrived {
        bytes += passage.bytes;
        while passage.received - arrived[first].received > DENSEST {
            bytes -= arrived[first].bytes;
            first += 1;
        }
        most = f64::max(most, bytes);
    }
    most * 8e9 / DENSEST
}

/// A lost packet.
struct Event {
    sent: f64,
    /// Wait of its neighbours.
    wait: f64,
    /// The one before it was lost too.
    continues: bool,
}

fn losses(passages: &Passages, per_byte: f64, base: f64) -> Vec<Event> {
    let wait = |p: &Passage| (p.delay() - p.bytes * per_byte - base).max(0.0);
    let mut events = Vec::new();
    let mut arrived: usize = 0;
    let mut before_was_lost = false;
    for &(sent, is_lost) in &passages.all {
        if is_lost {
            let before = arrived.checked_sub(1).and_then(|before| passages.by_sending.get(before));
            let neighbours = [before, passages.by_sending.get(arrived)];
            // A tail drop is next to a packet that just fitted.
            let wait = neighbours.into_iter().flatten().map(wait).fold(0.0, f64::max);
            events.push(Event { sent, wait, continues: before_was_lost });
        } else {
            arrived += 1;
        }
        before_was_lost = is_lost;
    }
    events
}

/// Divides losses into those of the queue and others.
fn sort_losses(
    passages: &Passages,
    events: &[Event],
    rate: Option<&RateEstimate>,
    longest: f64,
    base: f64,
) -> (Discipline, Losses) {
    let all = |discipline| (discipline, Losses::of(events.iter(), passages.all.len()));
    let Some(rate) = rate else { return all(Discipline::Unfilled) };
    let largest = f64::from(passages.sizes.1) * 8e9 / rate.value;
    // A queue of a few packets cannot be told from noise.
    if longest < 3.0 * largest {
        return all(Discipline::Unfilled);
    }
    let per_byte = 8e9 / rate.value;
    let found = |share: f64| {
        let wait = |p: &Passage| p.delay() - p.bytes * per_byte - base;
        passages.by_sending.iter().filter(|p| wait(p) < share * longest).count()
    };
    let full: Vec<&Event> = events.iter().filter(|event| event.wait >= FULL * longest).collect();
    let below: Vec<&Event> = events.iter().filter(|event| event.wait < FULL * longest).collect();
    // A FIFO loses packets only when it is full, and losses at random come at any wait.
    let idle: Vec<&Event> = below.iter().copied().filter(|event| event.wait < SHORT * longest).collect();
    let (at_idle, idle_tried) = (idle.len(), found(SHORT) + idle.len());
    let early = below.len() - at_idle;
    let early_tried = found(FULL).saturating_sub(found(SHORT)) + early;
    let share = |lost: usize, tried: usize| lost as f64 / tried.max(1) as f64;
    let is_early = early >= 5
        && early >= full.len()
        && share(early, early_tried) > 5.0 * share(at_idle, idle_tried) + 0.002;
    if is_early {
        let waits = || below.iter().filter(|event| event.wait >= SHORT * longest).map(|event| event.wait);
        let (from, to) = (waits().fold(f64::INFINITY, f64::min), waits().fold(0.0, f64::max));
        let discipline = Discipline::Early { losses: early + full.len(), from, to };
        return (discipline, Losses::of(idle.into_iter(), idle_tried));
    }
    let losses = Losses::of(below.iter().copied(), found(FULL) + below.len());
    // At random, losses at a full queue are as frequent as elsewhere.
    let full_tried = passages.all.len() - losses.tried;
    if full.len() < 3 || share(full.len(), full_tried) < 3.0 * share(losses.lost, losses.tried) {
        return all(Discipline::Unfilled);
    }
    (Discipline::TailDrop(limit(passages, &full, rate, longest, base)), losses)
}

/// The limit of a queue that was full when these packets came.
fn limit(passages: &Passages, full: &[&Event], rate: &RateEstimate, longest: f64, base: f64) -> Limit {
    let bytes = longest * rate.value / 8e9;
    // Packets and bytes between the queue's entrance and the line's end at a time.
    let entered = |at: f64| passages.by_sending.partition_point(|p| p.sent <= at);
    let left = |at: f64| passages.arrived.partition_point(|p| p.received - base <= at);
    let sums = |of: &[Passage]| {
        let mut sum = 0.0;
        core::iter::once(0.0)
            .chain(of.iter().map(move |p| {
                sum += p.bytes;
                sum
            }))
            .collect::<Vec<f64>>()
    };
    let (in_bytes, out_bytes) = (sums(&passages.by_sending), sums(&passages.arrived));
    let backlogs: Vec<(f64, f64)> = full
        .iter()
        .map(|event| {
            let (entered, left) = (entered(event.sent), left(event.sent));
            (entered as f64 - left as f64, in_bytes[entered] - out_bytes[left])
        })
        .collect();
    let spread = |of: fn(&(f64, f64)) -> f64| {
        let n = backlogs.len() as f64;
        let mean = backlogs.iter().map(of).sum::<f64>() / n;
        let variance = backlogs.iter().map(|b| (of(b) - mean).powi(2)).sum::<f64>() / n;
        (mean, variance.sqrt() / mean.abs().max(1.0))
    };
    let ((packets, spread_of_packets), (_, spread_of_bytes)) = (spread(|b| b.0), spread(|b| b.1));
    let has_sizes = f64::from(passages.sizes.0) < 0.5 * f64::from(passages.sizes.1);
    let in_packets = has_sizes && spread_of_packets < 0.5 * spread_of_bytes;
    let cannot_tell = !in_packets && (!has_sizes || spread_of_bytes > 0.5 * spread_of_packets);
    // The one in transmission is not in the queue.
    Limit { bytes, packets: (packets - 1.0).max(1.0), losses: full.len(), in_packets, cannot_tell }
}

impl Losses {
    fn of<'e>(events: impl Iterator<Item = &'e Event>, tried: usize) -> Losses {
        let (mut lost, mut runs) = (0, 0);
        for event in events {
            lost += 1;
            runs += usize::from(!event.continues);
        }
        Losses { lost, tried: tried.max(lost), runs: runs.max(usize::from(lost > 0)) }
    }

    /// The share's 95 % interval (Wilson 1927).
    pub(super) fn interval(&self) -> (f64, f64) {
        let (n, p, z) = (self.tried as f64, self.lost as f64 / self.tried as f64, 1.96);
        let centre = p + z * z / (2.0 * n);
        let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
        let scale = 1.0 + z * z / n;
        (((centre - half) / scale).max(0.0), ((centre + half) / scale).min(1.0))
    }

    /// A chain of two states, if there are enough bursts and they are longer than chance makes them.
    pub(super) fn bursts(&self) -> Option<(f64, f64)> {
        let mean = self.lost as f64 / self.runs.max(1) as f64;
        let share = self.lost as f64 / self.tried as f64;
        let by_chance = 1.0 / (1.0 - share).max(0.01);
        let is_bursty = self.runs >= 10 && mean > 1.3 * by_chance;
        is_bursty.then(|| (self.runs as f64 / (self.tried - self.lost).max(1) as f64, 1.0 / mean))
    }
}

/// Delays above the smallest, of packets before which nothing of this capture was in the queue.
fn jitter(passages: &Passages, smallest: f64, per_byte: f64, base: f64) -> Option<Jitter> {
    let mut last = f64::NEG_INFINITY;
    let mut delays = Vec::new();
    for passage in &passages.by_sending {
        if passage.sent + smallest >= last {
            delays.push(passage.delay() - passage.bytes * per_byte - base);
        }
        last = last.max(passage.received);
    }
    if delays.len() < 100 {
        return None;
    }
    delays.sort_by(f64::total_cmp);
    let quantile = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize];
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    Some(Jitter { packets: delays.len(), mean, median: quantile(0.5), p95: quantile(0.95) })
}

/// Packets that arrived after one that was sent later (RFC 4737).
fn reordering(passages: &Passages) -> Option<Reordering> {
    // In the order of arrival: the latest sending so far, and when each new one came.
    let mut latest: Vec<(f64, f64)> = Vec::new();
    let mut late = Vec::new();
    for passage in &passages.arrived {
        match latest.last() {
            Some((sent, _)) if passage.sent < *sent => {
                let first_later = latest.partition_point(|(sent, _)| *sent <= passage.sent);
                late.push(passage.received - latest[first_later].1);
            }
            Some((sent, _)) if passage.sent == *sent => {}
            _ => latest.push((passage.sent, passage.received)),
        }
    }
    if late.len() < 5 || late.len() * 5_000 < passages.all.len() {
        return None;
    }
    late.sort_by(f64::total_cmp);
    Some(Reordering { packets: late.len(), lateness: late[late.len() / 2] })
}
