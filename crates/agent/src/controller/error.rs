//! Why something could not be measured through agents.

use trunkline_control::{PeerError, RefusalKind};
use trunkline_core::Duration;
use trunkline_live::LiveError;
use trunkline_metrics::DriverOutcome;

/// Why something could not be measured through agents.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Some hosts with flows have an agent and some do not: the user's to change.
    #[error(
        "{} no `agent`, but other hosts have one: between real hosts, every host with flows needs an agent, \
        `agent = \"host:port\"` in `[hosts.NAME]`",
        have(.hosts)
    )]
    Missing {
        /// The hosts without one.
        hosts: Vec<String>,
    },
    /// The agent is not among those that this controller knows: the user's to change.
    #[error(
        "the agent at {address} (host `{host}`) is not enrolled here: run `trunkline agent pair` on that host, and `trunkline \
         agent enrol {address} CODE` on this one"
    )]
    NotEnrolled {
        /// The host in the experiment.
        host: String,
        /// Where its agent is to be.
        address: String,
    },
    /// A connection to an agent.
    #[error("host `{host}`: {error}")]
    Control {
        /// The host in the experiment.
        host: String,
        /// The error.
        error: PeerError,
    },
    /// An agent does not do what it is asked for; the reason is a sentence.
    #[error("the agent `{agent}` refused: {why}")]
    Refused {
        /// The agent's name.
        agent: String,
        /// Why.
        why: String,
        /// The same for programs.
        kind: RefusalKind,
    },
    /// An agent's host cannot do what a flow needs: the user's to change.
    #[error("flow `{flow}`: {reason}")]
    Flow {
        /// The flow.
        flow: String,
        /// What is wrong.
        reason: String,
    },
    /// An agent did not answer.
    #[error("the agent `{agent}` timed out after {patience} while {step}")]
    NoAnswer {
        /// The agent's name.
        agent: String,
        /// How long we waited.
        patience: Duration,
        /// What was going on.
        step: &'static str,
    },
    /// The connection with an agent is gone.
    #[error("lost the agent `{agent}`: {reason}")]
    Lost {
        /// The agent's name.
        agent: String,
        /// What happened.
        reason: String,
    },
    /// An agent is gone and did not come back.
    #[error("lost the agent `{agent}`, which did not return within {patience}: {reason}")]
    Away {
        /// The agent's name.
        agent: String,
        /// How long we waited.
        patience: Duration,
        /// What happened.
        reason: String,
    },
    /// A part failed, or its agent was lost. What was measured is kept.
    #[error("{why}; the results so far are kept")]
    Part {
        /// What happened, as a sentence without its end.
        why: String,
        /// What a whole repetition would have returned, marked partial.
        outcome: Box<DriverOutcome>,
        /// Whether the next repetition can be tried: no agent has turned this controller away.
        goes_on: bool,
    },
    /// An agent sent what cannot be read.
    #[error("the agent `{agent}` sent {what}")]
    Damaged {
        /// The agent's name.
        agent: String,
        /// What it sends.
        what: String,
    },
    /// What live measurements refuse: the user's to change.
    #[error(transparent)]
    Live(#[from] LiveError),
}

impl FleetError {
    /// Whether the user can mend it by another file or other options, rather than the environment.
    pub fn is_bad_input(&self) -> bool {
        match self {
            FleetError::Missing { .. } | FleetError::NotEnrolled { .. } | FleetError::Flow { .. } => true,
            FleetError::Control { error, .. } => error.is_bad_input(),
            FleetError::Refused { kind, .. } => kind.is_bad_input(),
            FleetError::Live(error) => error.is_bad_input(),
            FleetError::NoAnswer { .. }
            | FleetError::Lost { .. }
            | FleetError::Away { .. }
            | FleetError::Part { .. }
            | FleetError::Damaged { .. } => false,
        }
    }

    /// The flow and its key that the experiment must change.
    pub fn place(&self) -> Option<(&str, &'static str)> {
        match self {
            FleetError::Flow { flow, .. } => Some((flow, "transport")),
            FleetError::Live(error) => error.place(),
            _ => None,
        }
    }

    /// What was measured before the failure, if the repetition had begun.
    pub fn outcome(&self) -> Option<&DriverOutcome> {
        match self {
            FleetError::Part { outcome, .. } => Some(outcome),
            _ => None,
        }
    }
}

/// The beginning of a sentence about hosts: "host `a` has", "hosts `a` and `b` have".
fn have(hosts: &[String]) -> String {
    let quoted: Vec<String> = hosts.iter().map(|host| format!("`{host}`")).collect();
    match quoted.split_last() {
        None => "no host has".to_owned(),
        Some((one, [])) => format!("host {one} has"),
        Some((last, others)) => format!("hosts {} and {last} have", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_an_agent_are_all_named() {
        let missing = |hosts: &[&str]| {
            let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            FleetError::Missing { hosts }.to_string()
        };
        assert!(missing(&["a"]).starts_with("host `a` has no `agent`,"));
        assert!(missing(&["a", "b", "c"]).starts_with("hosts `a`, `b` and `c` have no `agent`,"));
    }
}
