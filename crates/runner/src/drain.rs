//! Flows whose path takes longer than the drain time.

use std::collections::BTreeMap;

use trunkline_core::Duration;
use trunkline_experiment::Scenario;

/// By flow, the longest path among those that take longer than the drain time.
#[derive(Default)]
pub(crate) struct ShortDrains(BTreeMap<String, Path>);

struct Path {
    /// The time that nothing on it can save.
    takes: Duration,
    drain: Duration,
    duration: Duration,
}

impl ShortDrains {
    /// Takes the flows of a point.
    pub(crate) fn look_at(&mut self, scenario: &Scenario) {
        let (drain, duration) = (scenario.drain, scenario.duration);
        for meta in scenario.flows.iter().map(|flow| &flow.meta) {
            let takes = meta.propagation.iter().copied().max().unwrap_or_default();
            let known = self.0.get(&meta.name).map_or(Duration::ZERO, |known| known.takes);
            if takes > drain.max(known) {
                self.0.insert(meta.name.clone(), Path { takes, drain, duration });
            }
        }
    }

    /// A sentence for each flow.
    pub(crate) fn sentences(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(flow, Path { takes, drain, duration })| {
            let last = takes.saturating_sub(drain).min(duration);
            format!(
                "flow `{flow}`: its path takes at least {takes}, longer than the `drain` of {drain}, so what is sent in the last \
                 {last} of the run cannot arrive and counts as unfinished; set `drain` to more than {takes}"
            )
        })
    }
}
