//! What links have counted, by the names of the file: for the drivers that drive them.

use std::collections::BTreeMap;

use trunkline_core::{Duration, Port};
use trunkline_metrics::{LinkSummary, MediumSummary};
use trunkline_network::{DropCause, Figure, MarkCause, Medium};

use crate::model::{Link, Scenario};

impl Scenario {
    /// What the directions of a link are called: `berlin>ottawa` and `ottawa>berlin`; of a link with more than two stations
    /// that from each station, by the station's host.
    pub fn directions(&self, link: &Link) -> Vec<String> {
        let name = |port: usize| self.hosts[link.between[port]].name.as_str();
        let direction = |port: usize| match link.between.len() {
            2 => format!("{}>{}", name(port), name(1 - port)),
            _ => name(port).to_owned(),
        };
        (0..link.between.len()).map(direction).collect()
    }

    /// The counters of every direction, or station, of a link of this scenario, over a run of this length.
    pub fn link_summaries(&self, link: &Link, medium: &dyn Medium, duration: Duration) -> Vec<LinkSummary> {
        let summary = |(port, direction): (usize, String)| {
            let counters = medium.counters(Port(port as u16));
            LinkSummary {
                link: format!("{} {direction}", link.name),
                utilisation: counters.busy.share(duration),
                load: counters
                    .offered_time()
                    .filter(|_| duration > Duration::ZERO)
                    .map(|time| time.as_secs_f64() / duration.as_secs_f64()),
                offered: counters.offered,
                delivered: counters.delivered,
                dropped: named(DropCause::ALL.iter().map(|c| c.name()), &counters.dropped),
                marked: named(MarkCause::ALL.iter().map(|c| c.name()), &counters.marked),
                sojourn_mean: counters.sojourn_total / counters.dequeued.max(1),
                sojourn_p50: counters.sojourns.quantile(500),
                sojourn_p99: counters.sojourns.quantile(990),
                sojourn_p999: counters.sojourns.quantile(999),
                sojourn_max: counters.sojourns.longest(),
                backlog_max: counters.backlog_max,
                backlog_packets_max: counters.backlog_packets_max,
                backlog_over_time: Vec::new(),
            }
        };
        self.directions(link).into_iter().enumerate().map(summary).collect()
    }

    /// What this kind of medium alone has to tell of a run of this length: of the medium first, then station by station.
    pub fn medium_summaries(
        &self,
        link: &Link,
        medium: &dyn Medium,
        duration: Duration,
    ) -> Vec<MediumSummary> {
        let mut summaries: Vec<MediumSummary> = Vec::new();
        let mut last = None;
        for Figure { station, name, amount } in medium.figures(duration) {
            if last != Some(station) {
                let host = |Port(port)| self.hosts[link.between[usize::from(port)]].name.clone();
                let (medium, station) = (link.name.clone(), station.map(host));
                summaries.push(MediumSummary { medium, station, figures: Vec::new() });
            }
            last = Some(station);
            if let Some(summary) = summaries.last_mut() {
                summary.figures.push((name.to_owned(), amount));
            }
        }
        summaries
    }
}

/// Counters above zero with their names.
fn named<'n>(names: impl Iterator<Item = &'n str>, counts: &[u64]) -> BTreeMap<String, u64> {
    names
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| (name.to_owned(), *count))
        .collect()
}
