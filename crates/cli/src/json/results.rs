//! The layouts of what no library prints too.

use serde::Serialize;
use trunkline_calls::program::SessionFigures;
use trunkline_control::Peer;
use trunkline_control::facts::{Facts, PartInfo, Status};
use trunkline_experiment::Problem;
use trunkline_learn::library::LearnedPath;
use trunkline_report::output::{Axis, Backend, ComparedRuns, RunSummary};
use trunkline_server::Token;
use utoipa::ToSchema;

/// The failure of a command.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorOutput {
    /// The exit code: 1 for the environment, 2 for bad input; for `trunkline wire`, 126 or 127 if the program cannot
    /// be started.
    pub code: u8,
    /// The message on standard error; for several problems, one or more lines for each.
    pub message: String,
    /// Problems with their places, in the order of the file; empty if there are none.
    pub problems: Vec<ErrorProblem>,
}

/// Warnings that came after the last result.
#[derive(Debug, Serialize, ToSchema)]
pub struct WarningsOutput {
    /// The warnings, in their order.
    pub warnings: Vec<ErrorProblem>,
}

/// A problem of a file or a setting, or a warning.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct ErrorProblem {
    /// The problem, the expected value and the remedy.
    pub message: String,
    /// The file, as it was named; null for a setting, and for a warning that does not concern a file.
    #[schema(required = true)]
    pub file: Option<String>,
    /// The setting on the command line, `--set link.trunk.rate=5 parsecs`; null for a file.
    #[schema(required = true)]
    pub setting: Option<String>,
    /// The line, from 1; null for a setting, and for a file as a whole.
    #[schema(required = true)]
    pub line: Option<usize>,
    /// The column in characters, from 1, of the line or the setting; null for a file as a whole.
    #[schema(required = true)]
    pub column: Option<usize>,
}

impl ErrorProblem {
    /// One without a place.
    pub fn new(message: impl std::fmt::Display) -> ErrorProblem {
        ErrorProblem { message: message.to_string(), ..ErrorProblem::default() }
    }
}

impl From<&Problem> for ErrorProblem {
    fn from(problem: &Problem) -> ErrorProblem {
        let (name, is_setting) = (problem.file.to_string(), problem.is_setting());
        ErrorProblem {
            message: problem.message.clone(),
            file: (!is_setting).then(|| name.clone()),
            setting: is_setting.then_some(name),
            line: (!is_setting).then_some(problem.line),
            column: Some(problem.column),
        }
    }
}

/// An experiment file that is valid.
#[derive(Debug, Serialize, ToSchema)]
pub struct CheckOutput {
    /// The experiment's name.
    pub name: String,
    /// Number of points.
    pub points: usize,
    /// Repetitions of each point.
    pub repetitions: u32,
    /// Length of all repetitions of all points, one after the other, in seconds; the maximum, if they end with a
    /// flow.
    pub length_s: f64,
    /// The backends that can run it.
    pub backends: Vec<Backend>,
    /// The other backends.
    pub refused: Vec<RefusedBackend>,
    /// The swept keys.
    pub sweep: Vec<Axis>,
    /// The limits.
    pub limits: Vec<CheckedLimit>,
}

/// A backend that cannot run a file.
#[derive(Debug, Serialize, ToSchema)]
pub struct RefusedBackend {
    /// The backend.
    pub backend: Backend,
    /// Why it cannot.
    pub reason: String,
}

/// A limit of an experiment file.
#[derive(Debug, Serialize, ToSchema)]
pub struct CheckedLimit {
    /// As written: `flow.voice.latency.p999`.
    pub key: String,
    /// As written: `< 150 ms`.
    pub condition: String,
    /// The bound, in the base unit of the figure.
    pub bound: f64,
}

/// Stored runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunsOutput {
    /// The runs, in the order of their numbers.
    pub runs: Vec<RunSummary>,
}

/// The tags of a run.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunTagsOutput {
    /// The run's number.
    pub run: u64,
    /// Its tags now.
    pub tags: Vec<String>,
}

/// Two runs, compared.
#[derive(Debug, Serialize, ToSchema)]
pub struct ComparisonOutput {
    /// The comparison.
    pub comparison: ComparedRuns,
}

/// A run that was written as an archive.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportOutput {
    /// The run's number.
    pub run: u64,
    /// The archive's path.
    pub archive: String,
}

/// Runs that were taken from archives.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportOutput {
    /// One for each archive.
    pub imported: Vec<ImportedRun>,
}

/// A run that was taken from an archive.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportedRun {
    /// The archive's path.
    pub archive: String,
    /// The run's number in this store.
    pub run: u64,
    /// Whether it is new in this store.
    pub new: bool,
}

/// A run that was made of parts.
#[derive(Debug, Serialize, ToSchema)]
pub struct MergeOutput {
    /// The run's number in this store.
    pub run: u64,
    /// True if nothing is missing.
    pub complete: bool,
    /// Repetitions of points that no part has.
    pub missing: u64,
    /// The parts, in order.
    pub parts: Vec<MergedPart>,
}

/// A part of a merged run.
#[derive(Debug, Serialize, ToSchema)]
pub struct MergedPart {
    /// The store or run, as it was named.
    pub part: String,
    /// The part's number in its store.
    pub run: u64,
    /// Repetitions that were taken from it.
    pub taken: u64,
    /// Repetitions that an earlier part has too.
    pub known: u64,
}

/// Runs that were removed.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemovedOutput {
    /// Their numbers.
    pub removed: Vec<u64>,
    /// Whether this was a dry run: the listed runs would be removed.
    pub dry_run: bool,
}

/// A session that has ended.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionOutput {
    /// Its number, from 1 for the first of this program.
    pub session: u64,
    /// The reason why it ended early; null if it ended in order.
    #[schema(required = true)]
    pub ended: Option<String>,
    /// Its figures.
    #[serde(flatten)]
    pub figures: SessionFigures,
}

/// A received recording compared with the one that was sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListenOutput {
    /// The path of the sent recording.
    pub sent: String,
    /// The path of the received recording.
    pub received: String,
    /// Every channel of the sent recording.
    pub channels: Vec<ListenChannel>,
}

/// A place at which the delay jumps, because audio was inserted or left out.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListenJump {
    /// Place in the sent recording, in seconds: inserted audio comes before this place, omitted audio begins there.
    pub at_s: f64,
    /// Length of the inserted audio, in seconds; negative for omitted audio.
    pub by_s: f64,
}

/// A channel of two recordings.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListenChannel {
    /// The channel of the sent recording, from 1.
    pub channel: usize,
    /// The channel of the received recording that it is, from 1.
    pub received: usize,
    /// Whether all samples of the compared part are those that were sent, and there is no other sound.
    pub identical: bool,
    /// The length that was compared, in seconds.
    pub compared_s: f64,
    /// Length of the silence at the end of the received audio, in seconds, while the sent audio continues: the sender
    /// had ended, or the end was lost. It is not compared.
    pub silent_end_s: f64,
    /// Delay of the received audio, in seconds; negative if it is earlier.
    pub delay_s: f64,
    /// Bound of the error of the delay, in seconds: twice its standard error, or more if the differences could be changes of phase.
    pub delay_error_s: f64,
    /// Frequency offset of the receiver's clock, in parts per million; positive if the received recording is longer.
    pub drift_ppm: f64,
    /// Bound of the error of `drift_ppm`, in parts per million, as `delay_error_s`; null if the recording is too short to estimate it.
    #[schema(required = true)]
    pub drift_error_ppm: Option<f64>,
    /// Largest deviation of any part of the recording from `delay_s` and `drift_ppm`, in seconds.
    pub wander_s: f64,
    /// Number of jumps of the delay.
    pub jumps: u32,
    /// Length of these jumps together, in seconds.
    pub jump_time_s: f64,
    /// Each of these jumps, in order.
    pub each_jump: Vec<ListenJump>,
    /// The reason why delay and drift are not certain; null if they are.
    #[schema(required = true)]
    pub doubt: Option<ListenDoubt>,
    /// Gain, in dB.
    pub gain_db: f64,
    /// Whether its polarity is inverted.
    pub inverted: bool,
    /// The signal-to-noise ratio, in dB.
    pub snr_db: f64,
    /// The mean of the signal-to-noise ratios of short segments, in dB.
    pub segmental_snr_db: f64,
    /// The log-spectral distance, in dB.
    pub log_spectral_distance_db: f64,
    /// The noise-to-mask ratio of ITU-R BS.1387, in dB.
    pub noise_to_mask_db: f64,
    /// Share of frames of 43 ms with an audible difference (`RelDistFrames` of ITU-R BS.1387), from 0 to 1.
    pub disturbed: f64,
    /// Share of segments of 5 ms whose signal-to-noise ratio is below 10 dB and 10 dB below the median, from 0 to 1.
    pub altered: f64,
    /// Gaps.
    pub gaps: u32,
    /// Their length together, in seconds.
    pub gap_time_s: f64,
    /// Clicks.
    pub clicks: u32,
    /// Their length together, in seconds.
    pub click_time_s: f64,
}

/// The reason why a delay is not certain.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListenDoubt {
    /// `periodic`: another delay fits nearly as well; `faint`: less than half of the received audio resembles the
    /// sent audio; `unrelated`: nothing in the channel does.
    pub kind: &'static str,
    /// Difference of the other delay, in seconds, if another fits; the delay is known only up to multiples of it.
    #[schema(required = true)]
    pub other_later_s: Option<f64>,
    /// Whether the other delay goes with the opposite polarity, if another fits.
    #[schema(required = true)]
    pub other_inverts: Option<bool>,
}

/// Wires of this user.
#[cfg(target_os = "linux")]
#[derive(Debug, Serialize, ToSchema)]
pub struct WiresOutput {
    /// The wires, in the order of their names.
    pub wires: Vec<WireOutput>,
}

/// A wire.
#[cfg(target_os = "linux")]
#[derive(Debug, Serialize, ToSchema)]
pub struct WireOutput {
    /// Its name.
    pub name: String,
    /// The experiment file.
    pub file: String,
    /// The number of the process that runs it.
    pub process: u32,
    /// Whether that process is alive.
    pub running: bool,
    /// The path of its control socket.
    pub socket: String,
    /// Counters of its links; null if it does not respond.
    #[schema(required = true)]
    pub counters: Option<trunkline_wire::control::WireSnapshot>,
    /// Its hosts.
    pub hosts: Vec<WireHost>,
}

/// Counters of a wire's links.
#[cfg(target_os = "linux")]
#[derive(Debug, Serialize, ToSchema)]
pub struct WireCountersOutput {
    /// The counters.
    #[serde(flatten)]
    pub counters: trunkline_wire::control::WireSnapshot,
}

/// A host of a wire.
#[derive(Debug, Serialize, ToSchema)]
pub struct WireHost {
    /// Its name.
    pub name: String,
    /// Its interfaces.
    pub interfaces: Vec<WireInterface>,
    /// The number of its first process; null if it has none of its own.
    #[schema(required = true)]
    pub process: Option<u32>,
    /// Whether programs can run there.
    pub alive: bool,
}

/// An interface of a host.
#[derive(Debug, Serialize, ToSchema)]
pub struct WireInterface {
    /// Its name.
    pub name: String,
    /// The link behind it.
    pub link: String,
    /// Its addresses.
    pub addresses: Vec<String>,
}

/// A wire that is up.
#[derive(Debug, Serialize, ToSchema)]
pub struct WireUpOutput {
    /// Its name.
    pub wire: String,
}

/// Wires of dead processes whose remains were removed.
#[derive(Debug, Serialize, ToSchema)]
pub struct WiresRemovedOutput {
    /// Their names.
    pub removed: Vec<String>,
}

/// The server that this command started.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerOutput {
    /// Its address for browsers.
    pub url: String,
    /// On a loopback address: a login link for a browser, valid once, for ten minutes. Null on other addresses and
    /// with `--no-login`.
    #[schema(required = true)]
    pub link: Option<String>,
}

/// A login link for a browser, valid once.
#[derive(Debug, Serialize, ToSchema)]
pub struct LoginLinkOutput {
    /// The link.
    pub link: String,
}

/// A new token for a program; it cannot be shown again.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenOutput {
    /// Its name.
    pub name: String,
    /// The token, for `Authorization: Bearer TOKEN`.
    pub token: String,
}

/// The tokens of the server.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokensOutput {
    /// All valid tokens.
    pub tokens: Vec<Token>,
}

/// A code with which a controller enrols at this host's agent.
#[derive(Debug, Serialize, ToSchema)]
pub struct PairingOutput {
    /// The address of the agent or server.
    pub address: String,
    /// The code.
    pub code: String,
    /// Its key.
    pub key: String,
}

/// Measurements that this host's agent keeps for controllers, or kept until they were deleted.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentKeptOutput {
    /// The parts, none of which is running.
    pub parts: Vec<PartInfo>,
    /// Their bytes on disk.
    pub bytes: u64,
    /// True if they were deleted.
    pub deleted: bool,
}

/// An agent that was enrolled.
#[derive(Debug, Serialize, ToSchema)]
pub struct EnrolledOutput {
    /// The agent.
    #[serde(flatten)]
    pub agent: Peer,
}

/// Agents that this user commands, and controllers that this host's agent serves.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentsOutput {
    /// The agents.
    pub agents: Vec<Peer>,
    /// The controllers.
    pub controllers: Vec<Peer>,
}

/// Kernels that experiment files can name.
#[derive(Debug, Serialize, ToSchema)]
pub struct KernelsOutput {
    /// The kernels, by name; of `kernel build` the one that was built.
    pub kernels: Vec<BuiltKernel>,
}

/// A kernel that was built.
#[derive(Debug, Serialize, ToSchema)]
pub struct BuiltKernel {
    /// Its name in experiment files.
    pub name: String,
    /// Its file.
    pub path: String,
    /// The time of its build.
    #[schema(value_type = String, format = DateTime)]
    pub built: jiff::Timestamp,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Hosts that this one has paired with for sessions.
#[derive(Debug, Serialize, ToSchema)]
pub struct PeersOutput {
    /// Servers that this host has paired with.
    pub servers: Vec<Peer>,
    /// Hosts that may open sessions here.
    pub clients: Vec<Peer>,
}

/// An agent, with its host and its work.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentStatusOutput {
    /// Its address.
    pub address: String,
    /// The agent's host, and the limits that its owner has set.
    pub facts: Facts,
    /// Its current work.
    pub status: Status,
}

/// A link that was learned from a recording.
#[derive(Debug, Serialize, ToSchema)]
pub struct LearnedOutput {
    /// The recording, in words.
    pub from: String,
    /// Keys with values.
    pub known: Vec<ImportedKey>,
    /// Keys that stay at their defaults, because the recording cannot tell them.
    pub unknown: Vec<UnknownKey>,
    /// The files that were written; the first is the description.
    pub files: Vec<String>,
}

/// A key of a link that was learned.
#[derive(Debug, Serialize, ToSchema)]
pub struct ImportedKey {
    /// `forward` or `backward`; null if the key is that of both directions.
    pub direction: Option<String>,
    /// The key.
    pub key: String,
    /// Its value, as the file has it.
    pub value: String,
    /// The evidence for it, with bounds.
    pub evidence: String,
}

/// A key of a link that could not be learned.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnknownKey {
    /// `forward` or `backward`; null if the key is that of both directions.
    pub direction: Option<String>,
    /// The key, or several of them.
    pub key: String,
    /// Why it is not known, and the bounds that are.
    pub why: String,
}

/// Learned paths.
#[derive(Debug, Serialize, ToSchema)]
pub struct PathsOutput {
    /// The paths, by name; of `paths import` those that were added.
    pub paths: Vec<LearnedPath>,
}

/// A learned path with its description.
#[derive(Debug, Serialize, ToSchema)]
pub struct PathOutput {
    /// The path.
    #[serde(flatten)]
    pub path: LearnedPath,
    /// The description: TOML.
    pub description: String,
    /// The files that it names.
    pub files: Vec<String>,
}

/// Two learned paths, compared.
#[derive(Debug, Serialize, ToSchema)]
pub struct PathComparisonOutput {
    /// The first path.
    pub first: String,
    /// The second path.
    pub second: String,
    /// Keys with different values.
    pub differences: Vec<PathDifference>,
}

/// A key in which two paths differ.
#[derive(Debug, Serialize, ToSchema)]
pub struct PathDifference {
    /// `forward` or `backward`.
    pub direction: String,
    /// The key.
    pub key: String,
    /// Its value in the first path; null if it is not given.
    pub first: Option<String>,
    /// Its value in the second path; null if it is not given.
    pub second: Option<String>,
}

/// A learned path that was written into one file.
#[derive(Debug, Serialize, ToSchema)]
pub struct PathExportOutput {
    /// The path.
    pub path: String,
    /// The file.
    pub archive: String,
}

/// Learned paths that were removed.
#[derive(Debug, Serialize, ToSchema)]
pub struct PathsRemovedOutput {
    /// Their names.
    pub removed: Vec<String>,
}
