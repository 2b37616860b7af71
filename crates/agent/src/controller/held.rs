//! What the user is told of flows that an owner's limit has held back: their throughput is no network's.

use trunkline_control::facts::Facts;
use trunkline_core::{Duration, Rate};
use trunkline_experiment::Scenario;
use trunkline_live::{HELD_HERE, HELD_THERE};
use trunkline_metrics::DriverOutcome;

use crate::controller::agent::Agent;
use crate::controller::hosts::Pair;

/// Less than this share of the time is of no account: connections begin with a burst.
const SHARE: u64 = 100;

/// A sentence for each flow that was held back, with the flow's index; `agent_of` gives the agent of a host of the
/// scenario.
pub(crate) fn told<'a>(
    scenario: &Scenario,
    pairs: &[Pair],
    outcome: &DriverOutcome,
    agent_of: impl Fn(usize) -> &'a Agent,
) -> Vec<(usize, String)> {
    let mut told = Vec::new();
    for pair in pairs {
        for &index in &pair.flows {
            let Some(of_flow) = outcome.flows.get(index) else { continue };
            let meta = &scenario.flows[index].meta;
            for (counter, host) in [(HELD_HERE, pair.near), (HELD_THERE, pair.far)] {
                let sum = of_flow.transport_counters.get(counter).copied().unwrap_or_default();
                let held = Duration::from_millis(sum / u64::from(meta.members.max(1))).min(outcome.duration);
                if held.is_zero() || held < outcome.duration / SHARE {
                    continue;
                }
                let agent = agent_of(host);
                let rate = agent.facts.as_ref().and_then(allowed);
                let rate = rate.map_or_else(|| "no more".to_owned(), |rate| rate.to_string());
                let what = if counter == HELD_HERE { "it" } else { "the replies to it" };
                let sentence = format!(
                    "flow `{}`: the owner of `{}` limits that host to {rate}, which held {what} back for \
                    {held} of {}; its throughput is that of the limit, not of the network (counter \
                    `{counter}`)",
                    meta.name, agent.name, outcome.duration
                );
                told.push((index, sentence));
            }
        }
    }
    told
}

/// What this controller may have the host send.
fn allowed(facts: &Facts) -> Option<Rate> {
    facts.limits.rate.into_iter().chain(facts.permissions.rate).min()
}
