//! Directions of links.

use super::Quantity::{Bytes, Count, Share, Time};
use super::{Definition, FigureKind, KnownIn, define, figure};
use crate::summary::LinkSummary;

pub(super) const UTILISATION: Definition = define(
    "utilisation",
    "utilisation",
    "Share of the measured time, without the drain time, in which the line was busy.",
)
.known_in(KnownIn::SimAndWire);

pub(super) const PACKETS: Definition = define(
    "link-packets",
    "packets offered, delivered",
    "Packets offered to a direction of a link, and packets that it delivered: those that it has transmitted, or begun \
     to, and does not lose. They may arrive after the end of the run. If a packet goes to several stations, each copy \
     counts.",
)
.known_in(KnownIn::SimAndWire);

pub(super) const SOJOURN: Definition = define(
    "sojourn",
    "sojourn time",
    "Time from a packet's arrival at a queue to its departure; percentiles by nearest rank over all packets of the \
     direction that left the queue, within 0.8 %.",
)
.known_in(KnownIn::SimAndWire);

pub(super) const BACKLOG: Definition = define(
    "backlog",
    "backlog",
    "The largest backlog of the queue. A packet that is transmitted at once does not wait in it.",
)
.known_in(KnownIn::SimAndWire);

pub(super) const DEFINITIONS: &[&Definition] = &[&UTILISATION, &PACKETS, &SOJOURN, &BACKLOG];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("utilisation", "utilisation", Share, &UTILISATION).of_link(|l| Some(l.utilisation.value())),
    figure("offered", "packets offered", Count, &PACKETS).of_link(|l| Some(l.offered as f64)),
    figure("delivered", "packets delivered", Count, &PACKETS).of_link(|l| Some(l.delivered as f64)),
    figure("sojourn_mean", "sojourn time, mean", Time, &SOJOURN)
        .of_link(|l| queued(l).then(|| l.sojourn_mean.as_secs_f64())),
    figure("sojourn_p50", "sojourn time, p50", Time, &SOJOURN)
        .of_link(|l| Some(l.sojourn_p50?.as_secs_f64())),
    figure("sojourn_p99", "sojourn time, p99", Time, &SOJOURN)
        .of_link(|l| Some(l.sojourn_p99?.as_secs_f64())),
    figure("sojourn_p999", "sojourn time, p99.9", Time, &SOJOURN)
        .of_link(|l| Some(l.sojourn_p999?.as_secs_f64())),
    figure("sojourn_max", "sojourn time, longest", Time, &SOJOURN)
        .of_link(|l| queued(l).then(|| l.sojourn_max.as_secs_f64())),
    figure("backlog_max", "backlog, largest", Bytes, &BACKLOG)
        .of_link(|l| Some(l.backlog_max.count() as f64)),
    figure("backlog_packets_max", "backlog, most packets", Count, &BACKLOG)
        .of_link(|l| Some(l.backlog_packets_max as f64)),
];

/// True if a packet left the queue. Runs of early versions have no percentiles.
fn queued(link: &LinkSummary) -> bool {
    link.sojourn_p50.is_some() || !link.sojourn_max.is_zero()
}

#[cfg(test)]
mod tests {
    use trunkline_core::Duration;

    use super::*;

    #[test]
    fn a_direction_that_carried_nothing_has_no_sojourn_times() {
        let sojourn = |link: &LinkSummary| {
            let figures = FIGURES.iter().filter(|figure| figure.id.starts_with("sojourn"));
            figures.map(|figure| figure.value_of_link(link)).collect::<Vec<_>>()
        };
        let idle = LinkSummary::default();
        assert_eq!(sojourn(&idle), [None; 5]);
        let at_once = Some(Duration::ZERO);
        let used = LinkSummary { sojourn_p50: at_once, sojourn_p99: at_once, sojourn_p999: at_once, ..idle };
        assert_eq!(sojourn(&used), [Some(0.0); 5]);
    }
}
