//! Why a run or a listener fails.

use std::io;
use std::path::PathBuf;

use trunkline_agent::controller::FleetError;
use trunkline_experiment::Problems;
use trunkline_store::StoreError;

/// Why a run failed. What was measured until then is kept, and the run is marked partial.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file of hosts and links, with nothing to be measured: bad input.
    #[error(
        "the experiment has no flows, so there is nothing to measure: add a table `[flow.NAME]`, or run programs behind its \
         links with `trunkline wire FILE -- COMMAND`"
    )]
    NoFlows,
    /// The backend does not have what a key asks for: bad input, with its place.
    #[error(transparent)]
    Key(Problems),
    /// The experiment asks for what a simulation does not have: bad input.
    #[error(transparent)]
    Simulation(#[from] trunkline_simulator::SimulationError),
    /// A host cannot be a kernel here: bad input.
    #[error("{0}")]
    Kernel(String),
    /// A host that is a kernel has failed.
    #[error(transparent)]
    Guest(#[from] trunkline_simulator::GuestFailure),
    /// Sockets, the far end, the network.
    #[error(transparent)]
    Live(#[from] trunkline_live::LiveError),
    /// Agents.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The experiment names agents where nobody talks with them: bad input.
    #[error(
        "the experiment's hosts have agents, which are used by `trunkline run` only; leave `agent` out of `[hosts]` to measure \
         within this machine"
    )]
    AgentsUnused,
    /// What is to be heard is not kept by the agents: bad input.
    #[error(
        "`--hear` of flow `{flow}` is not possible: between real hosts, its payload is sent here only with \
        `audio = true` in the flow"
    )]
    HearThroughAgents {
        /// The flow.
        flow: String,
    },
    /// Namespaces, interfaces, relays.
    #[error(transparent)]
    Wire(#[from] trunkline_wire::WireError),
    /// The received audio could not be written.
    #[error("the received audio cannot be written: {0}; free some space or set `audio = false` in the flow")]
    Audio(std::io::Error),
    /// The output of programs on hosts that are kernels could not be written.
    #[error("the output of host programs cannot be written: {0}; free some space")]
    Consoles(std::io::Error),
    /// What was heard could not be written, or there is nothing to hear.
    #[error(transparent)]
    Hear(#[from] HearError),
}

impl RunnerError {
    /// Whether the user can mend it by another file or other options (exit code 2), rather than the environment.
    pub fn is_bad_input(&self) -> bool {
        match self {
            RunnerError::NoFlows
            | RunnerError::Key(_)
            | RunnerError::Simulation(_)
            | RunnerError::Kernel(_)
            | RunnerError::AgentsUnused
            | RunnerError::HearThroughAgents { .. } => true,
            RunnerError::Fleet(error) => error.is_bad_input(),
            RunnerError::Hear(error) => error.is_bad_input(),
            RunnerError::Live(error) => error.is_bad_input(),
            RunnerError::Wire(error) => error.is_bad_input(),
            RunnerError::Store(error) => error.is_bad_input(),
            RunnerError::Guest(_) | RunnerError::Audio(_) | RunnerError::Consoles(_) => false,
        }
    }
}

/// Why something cannot be heard.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HearError {
    /// It is not written as it should be.
    #[error(
        "invalid `--hear {0}`; expected `flow.NAME.MEMBER`, or `flow.NAME.MEMBER.CHANNEL`, both counted from \
        1"
    )]
    Form(String),
    /// The experiment has no such flow.
    #[error("`{key}`: there is no flow `{flow}`; {known}")]
    NoFlow {
        /// What was asked for.
        key: String,
        /// The flow's name.
        flow: String,
        /// A clause that names the flows with audio.
        known: String,
    },
    /// No point has this member or channel of the flow.
    #[error("`{key}`: the flow `{flow}` has {known}")]
    NoMember {
        /// What was asked for.
        key: String,
        /// The flow's name.
        flow: String,
        /// What it has: `members 1 to 4 of 2 channels each`.
        known: String,
    },
    /// The flow carries no audio.
    #[error("`{key}`: the source `{source_kind}` of the flow `{flow}` carries no audio; {known}")]
    NoAudio {
        /// What was asked for.
        key: String,
        /// The flow's name.
        flow: String,
        /// Its source's kind.
        source_kind: &'static str,
        /// A clause that names the flows with audio.
        known: String,
    },
    /// The flow carries nothing but silence.
    #[error("`{key}`: the flow `{flow}` sends silence; set `signal = \"tones\"` in its source")]
    Silence {
        /// What was asked for.
        key: String,
        /// The flow's name.
        flow: String,
    },
    /// The flow's messages go nowhere.
    #[error("`{key}`: the flow `{flow}` has no sink and therefore no listener; give it a `to`")]
    Nobody {
        /// What was asked for.
        key: String,
        /// The flow's name.
        flow: String,
    },
    /// Two sounds would be written to one file.
    #[error("`{0}` would be written twice: give each `--hear` its own file")]
    SameFile(PathBuf),
    /// A sound would be written over the experiment file, or over a file that it names.
    #[error("`{0}` is a file that the run reads: give `--hear` another file")]
    IsRead(PathBuf),
    /// The folder for a file does not exist.
    #[error("cannot write `{0}`: its folder does not exist; create it first")]
    NoFolder(PathBuf),
    /// A file could not be written. Everything else was measured and stored.
    #[error("cannot write the audio to `{path}`: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl HearError {
    /// Whether the user can mend it by another key or another file (exit code 2), rather than the environment.
    pub(crate) fn is_bad_input(&self) -> bool {
        !matches!(self, HearError::Write { .. })
    }
}
