//! What the user is told while an agent is gone: which, for how long, how long it is still waited for, and what to do.

use std::collections::BTreeMap;

use trunkline_core::Duration;

use crate::controller::agent::Agent;

/// A connection that is cut and comes back at once is not worth a word.
const SHORT: Duration = Duration::from_secs(1);
/// Between one word and the next.
const EVERY: Duration = Duration::from_secs(10);

/// Agents that are gone, by their indices.
#[derive(Debug, Default)]
pub(crate) struct Absences(BTreeMap<usize, Absence>);

/// Times by our raw monotonic clock.
#[derive(Debug)]
struct Absence {
    since: u64,
    told: Option<u64>,
}

impl Absences {
    /// Looks at an agent that is waited for until then, and says what the user is to be told of it.
    pub(crate) fn look(&mut self, index: usize, agent: &Agent, now: u64, until: u64) -> Option<String> {
        let name = &agent.name;
        if agent.link.is_some() {
            let absence = self.0.remove(&index)?;
            absence.told?;
            return Some(format!("the agent `{name}` is back after {}", seconds(now, absence.since)));
        }
        let absence = self.0.entry(index).or_insert(Absence { since: now, told: None });
        let due = absence.told.map_or(absence.since + SHORT.as_nanos(), |told| told + EVERY.as_nanos());
        if now < due || now >= until {
            return None;
        }
        let is_first = absence.told.replace(now).is_none();
        let (gone, left) = (seconds(now, absence.since), seconds(until, now));
        Some(match (is_first, &agent.gone) {
            (true, reason) => format!(
                "lost contact with the agent `{name}` at {} for {gone}{}; the run waits another {left} for \
                it. If only the connection is interrupted, the agent keeps measuring and nothing is lost; if \
                the agent has died, start it again on its host (`systemctl start trunkline-agent`, or \
                `trunkline agent`). If you stop the run, the results so far are kept",
                agent.address,
                reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default(),
            ),
            (false, _) => {
                format!("no contact with the agent `{name}` for {gone}; the run waits another {left} for it")
            }
        })
    }
}

/// In whole seconds, rounded.
fn seconds(later: u64, earlier: u64) -> Duration {
    Duration::from_secs((later.saturating_sub(earlier) + 500_000_000) / 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use trunkline_control::Peer;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn who_is_gone_for_how_long_and_what_to_do() {
        let peer = Peer {
            name: "ottawa".to_owned(),
            fingerprint: format!("{}0", "1".repeat(51)).parse().unwrap(),
            address: None,
            enrolled: jiff::Timestamp::UNIX_EPOCH,
        };
        let mut agent = Agent::new("ottawa", "192.0.2.7:4781", &peer);
        agent.gone = Some("connection refused".to_owned());
        let mut absences = Absences::default();
        let mut look = |agent: &Agent, at: u64| absences.look(2, agent, at * SECOND, 45 * SECOND);
        assert_eq!(look(&agent, 5), None, "it may be back at once");
        let first = look(&agent, 6).unwrap();
        for said in [
            "lost contact with the agent `ottawa` at 192.0.2.7:4781 for 1 s (connection refused)",
            "the run waits another 39 s for it",
            "start it again",
        ] {
            assert!(first.contains(said), "{first}");
        }
        assert_eq!(look(&agent, 15), None);
        assert_eq!(
            look(&agent, 16).unwrap(),
            "no contact with the agent `ottawa` for 11 s; the run waits another 29 s for it"
        );
        assert_eq!(look(&agent, 46), None, "that is the end, which is told otherwise");
    }
}
