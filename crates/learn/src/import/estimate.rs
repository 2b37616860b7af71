//! Closed-form estimates from packets that were not sent for the purpose: what they have visited, and what they have not.
//!
//! A queue that is never empty serves packets at the rate of the link. So the gaps between arrivals count only where each
//! packet was sent before the one in front of it had left. All waiting is measured against the smallest delay.

mod base;
mod passage;
mod policer;
mod queue;
mod service;
mod way;

use trunkline_core::{Bytes, Duration, Rate};

use super::description::{Learned, Side, exact};
use crate::{Interval, JitterShape, Observations, Way};
use policer::Policer;
use queue::{Discipline, Limit, Losses, Uneven, Unit};
use way::WayEstimate;

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
    let estimates = Way::ALL.map(|way| (way, WayEstimate::of(observations, way, clocks)));
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
                write(learned.side(*way), estimate, clocks);
                if let Some(uneven) = &estimate.losses.uneven {
                    learned.warnings.push(format!(
                        "{}: {}. The written loss is the mean of all packets, and does not hold for other traffic.",
                        way.name(),
                        unevenness(uneven)
                    ));
                }
            }
            None => {
                let side = learned.side(*way);
                side.text(
                    "rate",
                    UNLIMITED,
                    "not known, a placeholder: no packets of this direction were useful",
                );
                side.unknown("delay, queue, loss, jitter", "no packets of this direction were useful");
                learned.warnings.push(format!(
                    "The direction `{}` is unknown: no packets were seen, or only acknowledgements.",
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
                let base = duration(estimate.base.value);
                let evidence = format!(
                    "smallest one-way delay minus the transmission, from {} to {}; {}",
                    duration(estimate.base.low),
                    duration(estimate.base.high),
                    estimate.confidence_in_base()
                );
                learned.side(way).text("delay", base, evidence);
            }
        }
        (Clocks::Apart, [Some(forward), Some(backward)]) => {
            let sum = forward.base.value + backward.base.value;
            let evidence = format!(
                "half of {}, the sum of both directions, which captures without a common clock cannot divide: 0 s to {} each; {}",
                duration(sum),
                duration(sum),
                if forward.near_base <= backward.near_base { forward } else { backward }.confidence_in_base()
            );
            learned.both.text("delay", duration(sum / 2.0), evidence);
        }
        (Clocks::RoundTrip, estimates) => {
            if let Some(estimate) =
                estimates.into_iter().flatten().min_by(|a, b| a.base.value.total_cmp(&b.base.value))
            {
                let sum = duration(estimate.base.value);
                let evidence = format!(
                    "half of the smallest round trip, {sum}, which one end cannot divide: 0 s to {sum} each; the other host's \
                     own delay is part of it; {}",
                    estimate.confidence_in_base()
                );
                learned.both.text("delay", duration(estimate.base.value / 2.0), evidence);
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

/// A rate to a hundred bits per second.
fn written(rate: f64) -> String {
    exact(Rate::from_bits_per_second((rate / 100.0).round() as u64 * 100))
}

/// The bounds of a rate, rounded away from it to five digits.
fn bounds(low: f64, high: f64) -> [String; 2] {
    let grid = 10_f64.powi(high.max(1.0).log10().floor() as i32 - 4).max(100.0);
    let rounded = |rate: f64| exact(Rate::from_bits_per_second((rate.max(0.0) * grid) as u64));
    [rounded((low / grid).floor()), rounded((high / grid).ceil())]
}

fn write(side: &mut Side, estimate: &WayEstimate, clocks: Clocks) {
    let bits = |rate: f64| Rate::from_bits_per_second(rate.round() as u64);
    match (&estimate.rate, estimate.base.by_size) {
        (Some(rate), _) => {
            let spread = if !rate.is_constant {
                "; it varied: the line's rate changed, or others sent too, which looks the same"
            } else {
                ""
            };
            let interval = match (rate.is_constant, rate.has_interval) {
                (false, _) => "10th and 90th percentile",
                (true, true) => "95 %",
                (true, false) => {
                    "smallest and largest: fewer than six periods do not give an interval of 95 %"
                }
            };
            let [low, high] = bounds(rate.low, rate.high);
            side.text(
                "rate",
                written(rate.value),
                format!(
                    "{}, from {low} to {high} ({interval}) in {} busy periods of the queue ({:.1} s in all); bytes at the network layer, so that \
                     framing is not counted{spread}",
                    written(rate.value),
                    rate.windows,
                    rate.busy / 1e9
                ),
            );
        }
        // Of round trips, the answers' transmission would be a part.
        (None, Some([value, low, high])) if clocks != Clocks::RoundTrip => {
            let [low, high] = bounds(low, high);
            side.text(
                "rate",
                written(value),
                format!(
                    "{}, from {low} to {high}: the smallest delay grows with a packet's size as on one line of this rate; \
                     several faster lines in a row look the same, since the queue was never full long enough to show the slowest{}",
                    written(value),
                    if estimate.base.is_taken_as_free {
                        "; if packets of some sizes always waited for others, which these times do not exclude, the rate is lower, and so is \
                         the delay"
                    } else {
                        ""
                    }
                ),
            );
        }
        _ => {
            let at_least = bits(estimate.at_least);
            side.text(
                "rate",
                UNLIMITED.max(at_least),
                format!(
                    "a placeholder: no period of 100 ms and 40 packets shows a queue that was never empty. The rate is at least {at_least}, \
                     by the packets that arrived, and not known otherwise"
                ),
            );
        }
    }
    queue(side, estimate);
    loss(side, &estimate.losses, estimate);
    impairments(side, estimate);
    side.unknown("overhead", "part of the rate: bytes at the network layer were counted");
    match &estimate.policer {
        Some(policer) => {
            policed(side, policer);
            side.unknown("shape-rate", NO_BUCKET);
        }
        None => side.unknown("shape-rate, committed-rate", NO_BUCKET),
    }
}

const NO_BUCKET: &str =
    "a shaper or policer with a bucket larger than the bursts that were sent is not visible";

fn policed(side: &mut Side, policer: &Policer) {
    let [low, high] = bounds(policer.low, policer.high);
    let (from, to) = (Bytes(policer.burst.0 as u64), Bytes(policer.burst.1 as u64));
    side.text(
        "committed-rate",
        written(policer.rate),
        format!(
            "{}, from {low} to {high}: a token bucket of this rate has no tokens for {} packets that were lost without a wait, and for \
             hardly any other",
            written(policer.rate),
            policer.lost
        ),
    );
    side.text(
        "committed-burst",
        format!("{} B", from.0),
        format!("{from} passed at once, and {to} did not, if the bucket was full at first"),
    );
}

/// A sentence on losses that are not the same for all packets.
fn unevenness(uneven: &Uneven) -> String {
    let percent = |share: f64| trunkline_core::quantity::significant(share * 100.0, 3);
    format!(
        "losses differ between packets of different {} by more than chance, from {} to {} %: a policer or a queue that these packets do not \
         show explains this, and independent losses do not",
        uneven.by,
        percent(uneven.least),
        percent(uneven.most)
    )
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
    // A wait is bytes only if the rate is known.
    let visited = match rate.is_constant {
        true => estimate.longest_wait.max(0.0) * rate.value / 8e9,
        false => estimate.visited,
    };
    let visited = Bytes(visited.round() as u64);
    match &estimate.queue {
        Discipline::TailDrop(limit) => tail_drop(side, limit),
        Discipline::Early { losses, from, to, is_before_shown } => {
            let place = if *is_before_shown { " before the line" } else { "" };
            let (from, to) = (Duration::from_nanos(*from as u64), Duration::from_nanos(*to as u64));
            let why = format!(
                "{losses} packets were lost{place}, most of them after waits of {from} to {to}, where others were not: \
                 an active queue (CoDel, PIE), a policer, or a FIFO shared with others; a FIFO with the visited size stands here"
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

fn tail_drop(side: &mut Side, limit: &Limit) {
    let packets = limit.packets.round().max(1.0);
    let bytes = Bytes(limit.bytes.round() as u64);
    let (written, at) = match limit.unit {
        Unit::Packets => (format!("{packets} packets"), format!("{packets} packets, of {bytes} on average")),
        Unit::Bytes => (format!("{} B", bytes.0), format!("{bytes}, of {packets} packets on average")),
        Unit::Either if limit.has_sizes => (
            format!("{} B", bytes.0),
            format!("{bytes} or {packets} packets; the losses do not show which of the two is limited"),
        ),
        Unit::Either => (
            format!("{} B", bytes.0),
            format!(
                "{bytes} or {packets} packets; packets had one size, so that a limit in packets looks the same"
            ),
        ),
    };
    let (from, to) = (Duration::from_nanos(limit.waits.0 as u64), Duration::from_nanos(limit.waits.1 as u64));
    side.toml(
        "queue",
        format!("{{ kind = \"fifo\", limit = \"{written}\" }}"),
        format!(
            "{} packets were lost when the queue was full, next to packets that waited {from} to {to}: tail drop, at \
             about {at}",
            limit.losses
        ),
    );
}

fn loss(side: &mut Side, losses: &Losses, estimate: &WayEstimate) {
    let percent = |share: f64| trunkline_core::quantity::significant(share * 100.0, 3);
    let of = format!("{} of {} packets", losses.lost, losses.tried);
    let elsewhere = match (estimate.lost.saturating_sub(losses.lost), &estimate.policer) {
        (0, _) => String::new(),
        (n, Some(_)) => format!("; {n} others are the policer's"),
        (n, None) => format!("; {n} others are the queue's"),
    };
    if losses.tried == 0 {
        side.unknown("loss", "all packets found packets in the queue, which loses packets itself");
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
    let Interval { low, high, .. } = losses.interval();
    let share = losses.share();
    let evidence = match &losses.uneven {
        Some(uneven) => format!("{of} were lost without a full queue; {}", unevenness(uneven)),
        None => {
            format!("{of} were lost without a full queue: {} to {} % (95 %)", percent(low), percent(high))
        }
    };
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
        Some(jitter) if jitter.is_constant && jitter.mean > 300_000.0 => side.unknown(
            "jitter",
            format!(
                "most of {} packets that did not wait for each other took nearly the same time, {} more than the fastest ({} at p95): not a \
                 random delay of each packet",
                jitter.packets,
                nanos(jitter.median),
                nanos(jitter.p95)
            ),
        ),
        Some(jitter) if jitter.mean > 300_000.0 => {
            let (value, name) = match jitter.shape {
                JitterShape::Exponential(mean) => {
                    (format!("{{ kind = \"exponential\", mean = \"{}\" }}", nanos(mean)), "exponential")
                }
                JitterShape::Uniform(max) => {
                    (format!("{{ kind = \"uniform\", min = \"0 s\", max = \"{}\" }}", nanos(max)), "uniform")
                }
                JitterShape::Normal(mean, deviation) => (
                    format!(
                        "{{ kind = \"normal\", mean = \"{}\", deviation = \"{}\" }}",
                        nanos(mean),
                        nanos(deviation)
                    ),
                    "normal",
                ),
            };
            side.toml(
                "jitter",
                value,
                format!(
                    "delay above the smallest of {} packets that did not wait for each other: {} at the median, {} at p95; \
                     nearest to {name} of exponential, uniform and normal; packets of others in the queue look the same",
                    jitter.packets,
                    nanos(jitter.median),
                    nanos(jitter.p95)
                ),
            );
        }
        Some(jitter) => side.unknown(
            "jitter",
            format!(
                "at most {} at p95 ({} packets that did not wait for each other)",
                nanos(jitter.p95),
                jitter.packets
            ),
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
