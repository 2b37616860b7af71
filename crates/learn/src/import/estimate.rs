//! Closed-form estimates from packets that were not sent for the purpose: what they have visited, and what they have not.
//!
//! A queue that is never empty serves packets at the rate of the link. So the gaps between arrivals count only where each
//! packet was sent before the one in front of it had left. All waiting is measured against the smallest delay.

mod passage;
mod way;

use trunkline_core::{Bytes, Duration, Rate};

use super::description::{Learned, Side, exact};
use crate::{Observations, Way};
use way::{Discipline, Losses, WayEstimate};

/// The relation of the clocks of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// Both times of a packet are on one clock: delays are one-way delays.
    Same,
    /// The difference of the clocks is constant and not known: only the sum of both directions' delays is.
    Apart,
    /// Delays are round trips of packets of one direction, seen at the sender.
    RoundTrip,
    /// The times of sending are on a clock of another kind, such as the timestamps of RTP: only differences count.
    Relative,
}

/// The rate of a link in front of which nothing waited.
const UNLIMITED: Rate = Rate::from_bits_per_second(1_000_000_000);

/// The limit of our queue's default, below which no bound has to be written.
const DEFAULT_LIMIT: Bytes = Bytes(150_000);

/// Describes the link over which these packets went. `from` says where they come from.
pub fn describe(from: String, observations: &Observations, clocks: Clocks) -> Learned {
    let mut learned = Learned { from, ..Learned::default() };
    learned.both.text("medium", "serial", "the simplest model: one queue and one line each way");
    let estimates = Way::ALL.map(|way| (way, WayEstimate::of(observations, way)));
    for (way, estimate) in &estimates {
        match estimate {
            Some(estimate) => {
                learned.remarks.push(format!(
                    "{}: {} packets of {} to {} B in {}, {} of them lost.",
                    way.name(),
                    estimate.packets,
                    estimate.sizes.0,
                    estimate.sizes.1,
                    Duration::from_nanos(estimate.length),
                    estimate.lost
                ));
                write(learned.side(*way), estimate);
            }
            None => {
                let side = learned.side(*way);
                side.text(
                    "rate",
                    UNLIMITED,
                    "not known, a placeholder: no packets of this direction were seen",
                );
                side.unknown("delay, queue, loss, jitter", "no packets of this direction were seen");
                learned.warnings.push(format!(
                    "There are no packets of the direction `{}`: nothing is known of it.",
                    way.name()
                ));
            }
        }
    }
    let [(_, forward), (_, backward)] = &estimates;
    delays(&mut learned, [forward.as_ref(), backward.as_ref()], clocks);
    learned
}

/// The base delay of both directions.
fn delays(learned: &mut Learned, estimates: [Option<&WayEstimate>; 2], clocks: Clocks) {
    let duration = |nanos: f64| Duration::from_nanos(nanos.max(0.0).round() as u64);
    match (clocks, estimates) {
        (Clocks::Same, _) => {
            for (way, estimate) in Way::ALL.into_iter().zip(estimates) {
                let Some(estimate) = estimate else { continue };
                let base = duration(estimate.base);
                let evidence = format!(
                    "smallest one-way delay minus the transmission at the rate; {}",
                    estimate.confidence_in_base()
                );
                learned.side(way).text("delay", base, evidence);
            }
        }
        (Clocks::Apart, [Some(forward), Some(backward)]) => {
            let sum = forward.base + backward.base;
            let evidence = format!(
                "half of {}, the sum of both directions, which captures without a common clock cannot divide: 0 s to {} each; {}",
                duration(sum),
                duration(sum),
                forward.confidence_in_base()
            );
            learned.both.text("delay", duration(sum / 2.0), evidence);
        }
        (Clocks::RoundTrip, estimates) => {
            if let Some(estimate) = estimates.into_iter().flatten().min_by(|a, b| a.base.total_cmp(&b.base)) {
                let sum = duration(estimate.base);
                let evidence = format!(
                    "half of the smallest round trip, {sum}, which one end cannot divide: 0 s to {sum} each; the other host's \
                     own delay is part of it; {}",
                    estimate.confidence_in_base()
                );
                learned.both.text("delay", duration(estimate.base / 2.0), evidence);
            }
        }
        (Clocks::Apart | Clocks::Relative, estimates) => {
            let why = "the clocks of the two ends differ by an unknown offset, and packets of one direction only cannot bound it";
            if estimates.iter().any(Option::is_some) {
                learned.both.unknown("delay", why);
            }
        }
    }
}

fn write(side: &mut Side, estimate: &WayEstimate) {
    let bits = |rate: f64| Rate::from_bits_per_second(rate.round() as u64);
    match &estimate.rate {
        Some(rate) => {
            let spread = if !rate.is_constant {
                "; it varied: the line's rate changed, or others sent too, which looks the same"
            } else {
                ""
            };
            side.text(
                "rate",
                exact(Rate::from_bits_per_second((rate.value / 100.0).round() as u64 * 100)),
                format!(
                    "{}, from {} to {} in {} busy periods of the queue ({:.1} s in all); bytes at the network layer, so that \
                     framing is not counted{spread}",
                    bits(rate.value),
                    bits(rate.low),
                    bits(rate.high),
                    rate.windows,
                    rate.busy / 1e9
                ),
            );
        }
        None => {
            let densest = bits(estimate.densest);
            side.text(
                "rate",
                UNLIMITED.max(densest),
                format!("a placeholder: packets did not wait for each other, so the rate is at least {densest} (the densest 100 ms) and not known otherwise"),
            );
        }
    }
    queue(side, estimate);
    loss(side, &estimate.losses, estimate);
    impairments(side, estimate);
    side.unknown("overhead", "part of the rate: bytes at the network layer were counted");
    side.unknown(
        "shape-rate, committed-rate",
        "a shaper or policer with a bucket larger than the bursts that were sent is not visible",
    );
}

fn queue(side: &mut Side, estimate: &WayEstimate) {
    let longest = Duration::from_nanos(estimate.longest_wait.max(0.0) as u64);
    let Some(rate) = &estimate.rate else {
        side.unknown(
            "queue",
            format!("a capture that never filled the queue: packets waited {longest} at most"),
        );
        return;
    };
    let visited = Bytes((estimate.longest_wait.max(0.0) * rate.value / 8e9).round() as u64);
    match &estimate.queue {
        Discipline::TailDrop(limit) => {
            let (written, rest) = match (limit.in_packets, limit.cannot_tell) {
                (true, _) => (format!("{} packets", limit.packets.round().max(1.0)), ""),
                (false, true) => (format!("{} B", limit.bytes.round()), "; packets had one size, so that a limit in packets looks the same"),
                (false, false) => (format!("{} B", limit.bytes.round()), ""),
            };
            side.toml(
                "queue",
                format!("{{ kind = \"fifo\", limit = \"{written}\" }}"),
                format!(
                    "{} packets were lost when the wait was at its maximum, {longest}: tail drop at {} or {:.0} packets, within \
                     a packet{rest}",
                    limit.losses,
                    Bytes(limit.bytes.round() as u64),
                    limit.packets
                ),
            );
        }
        Discipline::Early { losses, from, to } => {
            let (from, to) = (Duration::from_nanos(*from as u64), Duration::from_nanos(*to as u64));
            let why = format!(
                "{losses} packets were lost, most of them after waits of {from} to {to}: an active queue (CoDel, PIE), \
                 or a FIFO shared with others; a FIFO with the visited size stands here"
            );
            side.toml("queue", format!("{{ kind = \"fifo\", limit = \"{} B\" }}", visited.0.max(3_000)), why);
        }
        Discipline::Unfilled if visited > DEFAULT_LIMIT => {
            let why = format!("a capture that never filled the queue: limit at least {visited} (a wait of {longest})");
            side.toml("queue", format!("{{ kind = \"fifo\", limit = \"{} B\" }}", visited.0), why);
        }
        Discipline::Unfilled => side.unknown(
            "queue",
            format!("a capture that never filled the queue: limit at least {visited} (a wait of {longest}); the default stands"),
        ),
    }
}

fn loss(side: &mut Side, losses: &Losses, estimate: &WayEstimate) {
    let percent = |share: f64| trunkline_core::quantity::significant(share * 100.0, 3);
    let of = format!("{} of {} packets", losses.lost, losses.tried);
    let elsewhere = match estimate.lost.saturating_sub(losses.lost) {
        0 => String::new(),
        n => format!("; {n} others are the queue's"),
    };
    if losses.tried == 0 {
        side.unknown("loss", "all packets found a queue that was nearly full");
        return;
    }
    if losses.lost == 0 {
        side.unknown(
            "loss",
            format!(
                "{of} were lost without a full queue: below {} % (95 %){elsewhere}",
                percent((3.0 / losses.tried as f64).min(1.0))
            ),
        );
        return;
    }
    let (low, high) = losses.interval();
    let share = losses.lost as f64 / losses.tried as f64;
    let evidence =
        format!("{of} were lost without a full queue: {} to {} % (95 %)", percent(low), percent(high));
    match losses.bursts() {
        Some((to_bad, to_good)) => side.toml(
            "loss",
            format!(
                "{{ kind = \"gilbert-elliott\", to-bad = \"{} %\", to-good = \"{} %\" }}",
                percent(to_bad),
                percent(to_good)
            ),
            format!(
                "{evidence}, in {} bursts of {:.1} packets on average; a chain steps per packet, so that bursts depend on the \
                 spacing of packets{elsewhere}",
                losses.runs,
                losses.lost as f64 / losses.runs.max(1) as f64
            ),
        ),
        None => side.text("loss", format!("{} %", percent(share)), format!("{evidence}{elsewhere}")),
    }
}

fn impairments(side: &mut Side, estimate: &WayEstimate) {
    let nanos = |nanos: f64| Duration::from_nanos(nanos.max(0.0) as u64);
    match &estimate.jitter {
        Some(jitter) if jitter.mean > 300_000.0 => side.toml(
            "jitter",
            format!("{{ kind = \"exponential\", mean = \"{}\" }}", nanos(jitter.mean)),
            format!(
                "delay above the smallest of {} packets that did not wait for each other: {} at the median, {} at p95; packets \
                 of others in the queue look the same",
                jitter.packets,
                nanos(jitter.median),
                nanos(jitter.p95)
            ),
        ),
        Some(jitter) => side.unknown(
            "jitter",
            format!("below {} at p95 ({} packets that did not wait for each other)", nanos(jitter.p95), jitter.packets),
        ),
        None => side.unknown("jitter", "too few packets did not wait for each other"),
    }
    let percent = |share: f64| trunkline_core::quantity::significant(share * 100.0, 3);
    match &estimate.reordering {
        Some(reordering) => {
            let share = reordering.packets as f64 / estimate.packets.max(1) as f64;
            side.text(
                "reorder",
                format!("{} %", percent(share)),
                format!("{} packets arrived after packets that were sent later", reordering.packets),
            );
            side.text("reorder-by", nanos(reordering.lateness), "how late they were, at the median");
        }
        None => {
            side.unknown("reorder", format!("none of {} packets, or too few for a share", estimate.packets))
        }
    }
}
