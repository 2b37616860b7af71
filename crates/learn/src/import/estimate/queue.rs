//! Losses: those of a queue and others, and the queue's limit.

use super::base::Base;
use super::passage::{Passage, Passages};
use super::policer::Policer;
use super::service::{RateEstimate, Service};
use crate::estimate::loss::{Z95, wilson};
use crate::estimate::statistics::Interval;

/// A wait of this share of the longest is one in a full queue, if the backlog does not show it.
const FULL: f64 = 0.85;
/// Backlogs are known within this many packets, or this share.
const MARGIN_PACKETS: f64 = 2.0;
const MARGIN: f64 = 0.05;

/// The queue, as far as losses show it.
#[derive(Debug)]
pub(super) enum Discipline {
    /// Packets were lost when the queue was full.
    TailDrop(Limit),
    /// Packets were lost at backlogs at which others were not, and hardly any without a wait. Gaps may show that this was before the
    /// line.
    Early { losses: usize, from: f64, to: f64, is_before_shown: bool },
    /// No losses that the queue explains.
    Unfilled,
}

/// The quantity that a full queue's limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Packets,
    Bytes,
    /// The losses do not show it.
    Either,
}

#[derive(Debug)]
pub(super) struct Limit {
    pub(super) bytes: f64,
    pub(super) packets: f64,
    pub(super) losses: usize,
    pub(super) unit: Unit,
    pub(super) has_sizes: bool,
    /// Found by the backlog, not by the longest wait.
    is_by_backlog: bool,
    /// The waits at 5 and 95 % of the losses.
    pub(super) waits: (f64, f64),
}

/// Losses that the queue does not explain.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) lost: usize,
    pub(super) tried: usize,
    /// Runs of lost packets.
    pub(super) runs: usize,
    /// They are not the same for all packets.
    pub(super) uneven: Option<Uneven>,
}

/// Shares of lost packets that differ by more than chance.
#[derive(Debug)]
pub(super) struct Uneven {
    /// The property by which packets were divided.
    pub(super) by: &'static str,
    pub(super) least: f64,
    pub(super) most: f64,
}

/// The losses of a direction, divided.
#[derive(Debug)]
pub(super) struct Sorted {
    pub(super) discipline: Discipline,
    pub(super) losses: Losses,
    pub(super) service: Service,
    /// It explains losses that the queue does not.
    pub(super) policer: Option<Policer>,
}

/// A packet when it was sent.
#[derive(Clone, Copy)]
struct Arrival {
    is_lost: bool,
    /// The packet before it was lost too.
    continues: bool,
    /// In the queue, without the packet in transmission: packets and bytes, both with this packet.
    packets: f64,
    bytes: f64,
    /// Wait of the neighbour before, and the longer one of both neighbours': a tail drop is next to a packet that just fitted.
    wait_before: f64,
    wait: f64,
    is_full: bool,
    /// Bytes of this packet.
    size: f64,
}

/// A limit that separates lost packets from others.
struct Separation {
    /// The largest value that was let in.
    limit: f64,
    /// Packets at values from here on found a queue that was full, or nearly.
    nearly: f64,
    /// Packets on the wrong side.
    errors: usize,
}

impl Sorted {
    pub(super) fn of(
        passages: &Passages,
        smallest: f64,
        base: &Base,
        rate: Option<&RateEstimate>,
        longest: f64,
    ) -> Sorted {
        let mut arrivals = arrivals(passages, base);
        let largest = rate.map_or(f64::INFINITY, |rate| f64::from(passages.sizes.1) * 8e9 / rate.value);
        // A queue of a few packets cannot be told from noise.
        let limit = rate
            .filter(|_| longest >= 3.0 * largest)
            .map(|rate| limit(passages, &mut arrivals, rate, longest));
        let is_full: Vec<bool> = arrivals.iter().map(|arrival| arrival.is_full).collect();
        let service = Service::of(passages, smallest, &is_full);
        let unfilled = || {
            let service = Service::of(passages, smallest, &[]);
            let losses = Losses::of(arrivals.iter());
            Sorted { discipline: Discipline::Unfilled, losses, service, policer: None }
                .policed(passages, base, &arrivals)
        };
        let Some(limit) = limit else { return unfilled() };
        let (full, below): (Vec<&Arrival>, Vec<&Arrival>) = arrivals.iter().partition(|one| one.is_full);
        let (idle, busy): (Vec<&Arrival>, Vec<&Arrival>) =
            below.iter().partition(|one| one.wait_before < largest);
        let of = |some: &[&Arrival]| Losses::of(some.iter().copied());
        let (full, below, idle, busy) = (of(&full), of(&below), of(&idle), of(&busy));
        // A FIFO loses packets only when it is full, and losses at random come at any wait and use the line.
        let is_before = service.is_before();
        let is_early =
            busy.lost >= 5 && is_before.unwrap_or_else(|| busy.share() > 5.0 * idle.share() + 0.002);
        if is_early && busy.lost >= full.lost {
            let (from, to) = waits(arrivals.iter().filter(|one| one.is_full || one.wait_before >= largest));
            let is_before_shown = is_before.is_some();
            let discipline = Discipline::Early { losses: busy.lost + full.lost, from, to, is_before_shown };
            let sorted = Sorted { discipline, losses: idle, service, policer: None };
            return sorted.policed(passages, base, &arrivals);
        }
        if !full.is_more_frequent_than(&below) {
            return unfilled();
        }
        let behind = if is_early { &idle } else { &below }.behind(is_before);
        let service = service.losing_behind(behind);
        // Packets that were lost behind the line were in the queue too.
        let used = if limit.is_by_backlog { service.used() } else { 1.0 };
        let limit = Limit { bytes: limit.bytes * used, packets: limit.packets * used, ..limit };
        let losses = if is_early { idle } else { below };
        Sorted { discipline: Discipline::TailDrop(limit), losses, service, policer: None }
    }

    /// With a policer instead, if one explains the losses.
    fn policed(self, passages: &Passages, base: &Base, arrivals: &[Arrival]) -> Sorted {
        let Some(policer) = Policer::of(passages, base) else { return self };
        let within = arrivals.iter().zip(&policer.is_beyond).filter(|(_, is_beyond)| !**is_beyond);
        let losses = Losses::of(within.map(|(arrival, _)| arrival));
        Sorted { discipline: Discipline::Unfilled, losses, policer: Some(policer), ..self }
    }
}

/// All packets with the queue that they found. Losses behind the line are missing from it.
fn arrivals(passages: &Passages, base: &Base) -> Vec<Arrival> {
    let wait = |passage: Option<&Passage>| passage.map_or(0.0, |passage| base.wait(passage).max(0.0));
    let (mut entered, mut left) = ((0_usize, 0.0), (0_usize, 0.0));
    let mut continues = false;
    let arrival = |sent: &super::passage::Sent| {
        // Propagation is behind the line.
        while let Some(passage) = passages.arrived.get(left.0).filter(|p| p.received - base.value <= sent.at)
        {
            left = (left.0 + 1, left.1 + passage.bytes);
        }
        let before = entered.0.checked_sub(1).and_then(|before| passages.by_sending.get(before));
        let next = passages.by_sending.get(entered.0);
        let in_service = passages.arrived.get(left.0).filter(|_| entered.0 > left.0);
        let in_service = in_service.map_or((0, 0.0), |passage| (1, passage.bytes));
        let arrival = Arrival {
            is_lost: sent.is_lost,
            continues,
            packets: (entered.0.saturating_sub(left.0 + in_service.0) + 1) as f64,
            bytes: f64::max(entered.1 - left.1 - in_service.1, 0.0) + sent.bytes,
            wait_before: wait(before),
            wait: wait(before).max(wait(next.filter(|_| sent.is_lost))),
            is_full: false,
            size: sent.bytes,
        };
        if !sent.is_lost {
            entered = (entered.0 + 1, entered.1 + sent.bytes);
        }
        continues = sent.is_lost;
        arrival
    };
    passages.all.iter().map(arrival).collect()
}

/// The limit that explains the losses best. Marks the packets that found a full queue.
fn limit(passages: &Passages, arrivals: &mut [Arrival], rate: &RateEstimate, longest: f64) -> Limit {
    let has_sizes = passages.has_sizes();
    let largest = f64::from(passages.sizes.1);
    let by_packets = separation(arrivals, |one| one.packets, 1.0);
    let by_bytes = separation(arrivals, |one| one.bytes, largest);
    let unit = match (&by_packets, &by_bytes) {
        (None, None) => None,
        _ if !has_sizes => Some(Unit::Either),
        (Some(_), None) => Some(Unit::Packets),
        (None, Some(_)) => Some(Unit::Bytes),
        (Some(packets), Some(bytes)) if 2 * packets.errors + 2 < bytes.errors => Some(Unit::Packets),
        (Some(packets), Some(bytes)) if 2 * bytes.errors + 2 < packets.errors => Some(Unit::Bytes),
        _ => Some(Unit::Either),
    };
    match (unit, &by_packets, &by_bytes) {
        (Some(Unit::Packets), Some(packets), _) => {
            arrivals.iter_mut().for_each(|one| one.is_full = one.packets >= packets.nearly);
        }
        (Some(_), _, Some(bytes)) => {
            arrivals.iter_mut().for_each(|one| one.is_full = one.bytes >= bytes.nearly);
        }
        _ => {
            let nearly = FULL * longest - 3.0 * rate.noise;
            arrivals.iter_mut().for_each(|one| one.is_full = one.wait >= nearly);
        }
    }
    let full = || arrivals.iter().filter(|one| one.is_full && one.is_lost);
    let losses = full().count();
    // Of the waits beside losses, noise makes the longest too long.
    let waits = waits(full());
    let mean = |of: fn(&Arrival) -> f64| full().map(of).sum::<f64>() / losses.max(1) as f64;
    // The lost packet is not in the queue.
    let queued = ((mean(|one| one.packets) - 1.0).max(1.0), mean(|one| one.bytes) - largest);
    let size = if has_sizes { (queued.1 / queued.0).clamp(1.0, largest) } else { largest };
    let (bytes, packets) = match (unit, &by_packets, &by_bytes) {
        (Some(Unit::Packets), Some(packets), _) => (packets.limit * size, packets.limit),
        (Some(_), _, Some(bytes)) => (bytes.limit, bytes.limit / size),
        // A wait is bytes only if the rate is known.
        _ if rate.is_constant => (waits.1 * rate.value / 8e9, waits.1 * rate.value / 8e9 / size),
        _ => (queued.0 * size, queued.0),
    };
    let is_by_backlog = unit.is_some() || !rate.is_constant;
    Limit { bytes, packets, losses, unit: unit.unwrap_or(Unit::Either), has_sizes, is_by_backlog, waits }
}

/// The value that separates packets that were let in from those that were lost. `None` if more than a tenth is on the wrong side.
/// `packet` is the value of a large packet.
fn separation(arrivals: &[Arrival], of: fn(&Arrival) -> f64, packet: f64) -> Option<Separation> {
    let mut values: Vec<(f64, bool)> = arrivals.iter().map(|one| (of(one), one.is_lost)).collect();
    values.sort_by(|a, b| b.0.total_cmp(&a.0));
    // From the largest value down: packets that a limit there explains, and those that it does not.
    let (mut lost, mut let_in) = (0_usize, 0_usize);
    let mut best: Option<(f64, usize, usize)> = None;
    for group in values.chunk_by(|a, b| a.0 == b.0) {
        let lost_here = group.iter().filter(|(_, is_lost)| *is_lost).count();
        (lost, let_in) = (lost + lost_here, let_in + group.len() - lost_here);
        let gain = |lost: usize, let_in: usize| lost as i64 - let_in as i64;
        if best.is_none_or(|(_, lost_before, before)| gain(lost, let_in) > gain(lost_before, before)) {
            best = Some((group[0].0, lost, let_in));
        }
    }
    let (from, lost, let_in) = best.filter(|(_, lost, let_in)| *lost >= 3 && 10 * let_in <= *lost)?;
    let limit = values.iter().find(|(value, is_lost)| *value < from && !is_lost)?.0;
    // Packets that are lost behind the line are in the queue unseen: as many as chance makes of the losses at short queues.
    let short = || values.iter().filter(|(value, _)| *value < from / 2.0);
    let lost_behind = short().filter(|(_, is_lost)| *is_lost).count() as f64 / short().count().max(1) as f64;
    let unseen = lost_behind * from;
    let margin = (MARGIN_PACKETS * packet).max(MARGIN * from) + unseen + 3.0 * (unseen * packet).sqrt();
    let nearly = from - margin;
    let below = values.iter().filter(|(value, is_lost)| *is_lost && *value < from);
    let near = below.clone().filter(|(value, _)| *value >= nearly).count();
    // A few losses at the largest backlogs are not a limit.
    (2 * (lost + near) >= lost + below.count()).then_some(Separation { limit, nearly, errors: let_in + near })
}

/// The waits at 5 and 95 % of the losses among these packets.
fn waits<'a>(arrivals: impl Iterator<Item = &'a Arrival>) -> (f64, f64) {
    let mut waits: Vec<f64> = arrivals.filter(|one| one.is_lost).map(|one| one.wait).collect();
    waits.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        waits.get((waits.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or_default()
    };
    (quantile(0.05), quantile(0.95))
}

impl Losses {
    fn of<'a>(arrivals: impl Iterator<Item = &'a Arrival>) -> Losses {
        let mut losses = Losses::default();
        let arrivals: Vec<&Arrival> = arrivals.collect();
        for arrival in &arrivals {
            losses.tried += 1;
            losses.lost += usize::from(arrival.is_lost);
            losses.runs += usize::from(arrival.is_lost && !arrival.continues);
        }
        losses.runs = losses.runs.max(usize::from(losses.lost > 0));
        losses.uneven = losses.uneven(arrivals);
        losses
    }

    /// Divides packets by time, size and wait, and compares their losses (Pearson's chi-squared test).
    fn uneven(&self, mut packets: Vec<&Arrival>) -> Option<Uneven> {
        let groups = (self.lost / 10).min(20);
        if groups < 2 {
            return None;
        }
        let share = self.share();
        // Bursts make the numbers of groups differ by more.
        let bursts = (2.0 * self.lost as f64 / self.runs as f64 * (1.0 - share) - 1.0).max(1.0);
        let freedom = (groups - 1) as f64;
        let by_chance = bursts * (1.0 + 8.0 * (2.0 / freedom).sqrt());
        let mut compare = |by, of: Option<fn(&Arrival) -> f64>| {
            if let Some(of) = of {
                packets.sort_by(|a, b| of(a).total_cmp(&of(b)));
            }
            let shares = packets.chunks(packets.len().div_ceil(groups)).map(|group| {
                let lost = group.iter().filter(|one| one.is_lost).count() as f64;
                (lost / group.len() as f64, group.len() as f64)
            });
            let deviations =
                shares.clone().map(|(one, n)| n * (one - share).powi(2) / (share * (1.0 - share)));
            let is_uneven = deviations.sum::<f64>() / freedom > by_chance;
            let least = shares.clone().fold(1.0, |least, (one, _)| f64::min(least, one));
            let most = shares.fold(0.0, |most, (one, _)| f64::max(most, one));
            is_uneven.then_some(Uneven { by, least, most })
        };
        compare("times", None)
            .or_else(|| compare("sizes", Some(|one| one.size)))
            .or_else(|| compare("waits", Some(|one| one.wait_before)))
    }

    /// At random, losses at a full queue are as frequent as elsewhere.
    fn is_more_frequent_than(&self, other: &Losses) -> bool {
        let (one, two) = (self.share(), other.share());
        let mean = (self.lost + other.lost) as f64 / (self.tried + other.tried).max(1) as f64;
        let deviation =
            (mean * (1.0 - mean) * (1.0 / self.tried.max(1) as f64 + 1.0 / other.tried.max(1) as f64)).sqrt();
        self.lost >= 3 && (one >= 3.0 * two || (one > 1.5 * two && one - two > 5.0 * deviation))
    }

    pub(super) fn share(&self) -> f64 {
        self.lost as f64 / self.tried.max(1) as f64
    }

    /// The share of packets that are lost behind the line: the least, the likely and the largest. `is_before` is true if these were lost
    /// before it.
    fn behind(&self, is_before: Option<bool>) -> [f64; 3] {
        let Interval { low, high, .. } = self.interval();
        match is_before {
            _ if self.lost == 0 || is_before == Some(true) => [0.0; 3],
            Some(_) => [low, self.share(), high],
            None => [0.0, self.share(), high],
        }
    }

    /// The share's 95 % interval.
    pub(super) fn interval(&self) -> Interval {
        wilson(self.lost, self.tried, self.runs, Z95)
    }

    /// A chain of two states, if there are enough bursts and they are longer than chance makes them.
    pub(super) fn bursts(&self) -> Option<(f64, f64)> {
        let mean = self.lost as f64 / self.runs.max(1) as f64;
        let by_chance = 1.0 / (1.0 - self.share()).max(0.01);
        let is_bursty = self.runs >= 10 && mean > 1.3 * by_chance;
        is_bursty.then(|| (self.runs as f64 / (self.tried - self.lost).max(1) as f64, 1.0 / mean))
    }
}
