//! Command-line arguments. Help, man pages, shell completions and the reference page are generated from these types.

pub mod agent;
pub mod foreign;
pub mod kernel;
pub mod learn;
pub mod listen;
pub mod manual;
mod parsers;
pub mod paths;
pub mod peer;
pub mod probe;
pub mod runs;
pub mod serve;
pub mod session;
pub mod settings;
pub mod wire;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use parsers::number;
use settings::Settings;

/// Carries voice and music over networks, and predicts, emulates and measures what the network does to them.
///
/// One experiment file describes hosts, links, transports, flows of voice and bulk data, what to sweep and how often to
/// repeat. It runs in virtual time over the described links, in real time over the same links, or on real sockets over
/// the network as it is, with the same statistics and report.
#[derive(Debug, Parser)]
#[command(name = "trunkline", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,

    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// The store of runs: a folder [default: $XDG_DATA_HOME/trunkline, else ~/.local/share/trunkline], or a team's
    /// PostgreSQL server, postgresql://USER:PASSWORD@HOST/DATABASE
    #[arg(long, global = true, value_name = "PLACE", env = "TRUNKLINE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,

    /// Print results and errors as JSON on standard output; everything else goes to standard error
    #[arg(long, global = true)]
    pub json: bool,

    /// Print only warnings and errors on standard error
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// When to use colour; NO_COLOR is honoured
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Color::Auto)]
    pub color: Color,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// If the output is a terminal and NO_COLOR is not set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an experiment: measure every point and repetition, store the results and write the report
    ///
    /// Ctrl-C keeps the results so far and marks the run as partial; `trunkline run --resume RUN` finishes it.
    Run(Run),

    /// Find the largest or smallest value of a key that keeps the file's limits
    ///
    /// Bisects with repetitions. Each verdict holds with the stated confidence: the last value shown to keep the limits, the
    /// first shown to break one, and the undecided values between them. There is one answer for every combination of the
    /// file's sweep. All measurements are stored as one run. Ctrl-C prints the result so far; --resume continues.
    Plan(Plan),

    /// Validate an experiment file and summarise it, without running or writing anything
    Check(Check),

    /// List, tag, compare, export, import and remove stored runs
    Runs(runs::Runs),

    /// Rebuild a stored run's report
    ///
    /// The report is one self-contained HTML file in the run's folder. If the same file was also run on another
    /// backend, the report shows both side by side.
    Report(Report),

    /// List the published studies that can be repeated
    Papers,

    /// Repeat a published study in the simulator and compare it with the published results
    ///
    /// Prints every value of every table (published, simulated, relative error), the errors of each column, and the goals
    /// that are met. With --json, prints one line of JSON per value.
    Paper(Paper),

    /// Send audio from a device or a file to another host, over any transport
    ///
    /// If the other host runs `trunkline reflect`, the audio comes back: its round trips are measured, and --to plays or
    /// records it. If the other host runs `trunkline receive`, it is played there. While the session runs, the latency of
    /// every stage is shown; at the end, all figures are printed. Ctrl-C ends the session cleanly.
    Send(Box<session::Send>),

    /// Play or record audio that other hosts send with `trunkline send`
    Receive(session::Receive),

    /// Reflect all received packets, so that other hosts can measure round trips
    Reflect(session::Reflect),

    /// Measure what the network does to audio on the way to a reflector, and recommend how to send it
    ///
    /// Within a time budget, measures every transport, several block sizes and numbers of channels, with and without bulk
    /// transfers. Recommends transport, block size, playout depth and redundancy for rehearsal, recording and telephony, with
    /// reasons, the next best option and the commands. Ctrl-C prints the advice from the measurements so far.
    Probe(probe::Probe),

    /// Measure a path, write its description as a link profile, and verify the description
    ///
    /// Probes both directions between this host's agent and that of HOST within a time budget, and finds rate, delay, queue,
    /// token buckets, loss, jitter and reordering by simulating candidate links with the same packets. Then predicts calls
    /// and transfers, measures them on the path, and prints both. An experiment reads the profile with `profile = "FILE"`.
    /// Ctrl-C keeps what was measured.
    Learn(learn::Learn),

    /// List, show, compare, import, export and remove learned paths
    ///
    /// A path is a link profile, as `trunkline learn` writes it, in the folder `paths` of the store. `profile = "NAME"` in an
    /// experiment file uses it, unless the file's own folder has NAME.toml.
    Paths(paths::Paths),

    /// Compare a received recording with the one that was sent
    ///
    /// Finds the sent audio in the received recording (delay, clock drift, gain, channels) and measures how it differs:
    /// signal-to-noise ratio, log-spectral distance, the noise-to-mask ratio of ITU-R BS.1387, gaps and clicks. The
    /// recordings are WAV or FLAC files with the same number of channels; their sample rates may differ.
    Listen(listen::Listen),

    /// Run programs behind the links of an experiment file, in real time
    ///
    /// Each host of the file becomes a network namespace on this machine, and each link a relay that drops, delays and
    /// reorders packets exactly as the simulator's links do. COMMAND runs on one of the hosts; `trunkline wire` exits with
    /// its code and removes everything. The hosts can resolve each other's names.
    ///
    /// Needs root, or a system that allows unprivileged user namespaces. Linux only.
    Wire(wire::Wire),

    /// Build Linux kernels on which the hosts of a simulation run programs, and list them
    ///
    /// An experiment file names such a kernel: `[hosts.a] kernel = "linux-6.1"`. Linux only.
    Kernel(kernel::Kernel),

    /// Serve the web page: draw, run, watch and compare experiments in a browser
    ///
    /// Serves the page and its API, to this machine only unless --listen says otherwise. Ctrl-C stops the server; running
    /// experiments keep their results and can be resumed.
    Serve(serve::Serve),

    /// Run this host's agent, which takes part in live experiments; or manage agents
    ///
    /// An agent sends, receives and reflects for the controllers that its owner has enrolled, within the limits of its
    /// configuration, and keeps its records until they have been collected. On the agent's host, `trunkline agent pair`
    /// prints the command that enrols a controller.
    Agent(agent::Agent),

    /// Pair hosts for `send`, `probe`, `reflect` and `receive`, and list or revoke them
    ///
    /// Hosts that have paired know each other's keys. A reflector or receiver serves them at every address, and their control
    /// connections are encrypted. `trunkline receive --pair` or `trunkline peer pair` prints a code; `trunkline send HOST
    /// --pair CODE` uses it, once.
    Peer(peer::Peer),

    /// Print a shell's completion script
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },

    /// Print the man page, or write one per command into a folder
    Man {
        /// Folder for trunkline.1, trunkline-run.1 ...
        #[arg(value_name = "DIR")]
        directory: Option<PathBuf>,
    },

    /// The far end of a live run, in its own process, controlled through standard input and output
    #[command(hide = true)]
    FarEnd,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The experiment file; `-` for standard input
    #[arg(required_unless_present = "resume", value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// The backend on which it runs
    #[arg(long, value_enum, default_value_t = On::Sim, value_name = "BACKEND", conflicts_with = "resume")]
    pub on: On,

    /// Finish this partial run: its number, its folder's name, or `latest`
    #[arg(long, value_name = "RUN", conflicts_with = "file")]
    pub resume: Option<String>,

    /// Measure only part I of N, for Slurm arrays, Kubernetes jobs and GNU parallel; `runs merge` joins the parts
    ///
    /// All repetitions of all points are counted, the first repetitions of all points before the second ones; every Nth
    /// belongs to a part. Each part is a run of its own. Measuring a part again does no harm: `runs merge` takes
    /// each repetition once.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["resume", "strict", "hear"])]
    pub shard: Option<trunkline_runner::Shard>,

    /// Number of repetitions to simulate in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = number::<u16>(1..=1024))]
    pub jobs: Option<u16>,

    /// Write the audio that the listener of a flow's member hears to a WAV file: `flow.voice.1`, or `flow.voice.1.2` for
    /// its second channel only
    ///
    /// Members and channels count from 1. Without FILE, the audio goes to the run's folder. With several points or
    /// repetitions, each has its own file, named FILE-p003-r01.wav.
    #[arg(long, value_name = "FLOW[=FILE]")]
    pub hear: Vec<String>,

    /// Concealment of missing messages [default: that of the flow's codec]
    #[arg(long, value_enum, value_name = "METHOD", requires = "hear")]
    pub conceal: Option<Conceal>,

    /// Keys that are overridden.
    #[command(flatten)]
    pub settings: Settings,

    /// Number of times that every point is measured, instead of the file's `repetitions`
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub repetitions: Option<String>,

    /// Options of live runs.
    #[command(flatten)]
    pub live: Live,

    /// Exit with code 3 if a limit of the file is broken, or could not be evaluated at some point
    #[arg(long)]
    pub strict: bool,

    /// Do not write the report
    #[arg(long)]
    pub no_report: bool,
}

impl Run {
    /// Keys that are overridden.
    pub fn settings(&self) -> Vec<trunkline_experiment::Setting> {
        let key = "repetitions";
        let own = self.repetitions.iter();
        let own = own.map(|n| trunkline_experiment::Setting::of_option("--repetitions", key, n));
        self.settings.all().into_iter().chain(own).collect()
    }
}

/// How missing messages are concealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Conceal {
    /// Silence, as with `codec = "g711"`
    Silence,
    /// The last message, repeated and fading
    Repetition,
    /// The last pitch period, repeated and fading, as with `codec = "g711-plc"`
    Waveform,
}

/// Options of a live run.
#[derive(Debug, Args)]
pub struct Live {
    /// Live: the address of the far end's sockets
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub address: std::net::IpAddr,

    /// Live: UDP and TCP port of the far end; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Live and wire: whether to spin for the last 300 us before each departure
    #[arg(long, value_enum, default_value_t = Spin::Auto, value_name = "WHEN")]
    pub spin: Spin,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// The experiment file; `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The key and the direction of the search.
    #[command(flatten)]
    pub goal: Goal,

    /// Answer for each of these values of a second key: `link.trunk.mbs=32,64,128`
    #[arg(long, value_name = "KEY=VALUES")]
    pub against: Option<String>,

    /// The smallest value to try [default: found by halving, down to the key's minimum]
    #[arg(long, value_name = "VALUE")]
    pub from: Option<String>,

    /// The largest value to try [default: found by doubling, up to the key's maximum]
    #[arg(long, value_name = "VALUE")]
    pub to: Option<String>,

    /// Precision of the answer, as an amount [default: 1 for counts]
    #[arg(long, value_name = "VALUE", conflicts_with = "precision")]
    pub step: Option<String>,

    /// Precision of the answer, relative to the value [default: 1 %, except for counts]
    #[arg(long, value_name = "SHARE")]
    pub precision: Option<trunkline_core::Ratio>,

    /// Number of times that a value is measured before it is judged [default: the file's `repetitions`, or 5 if that
    /// is 1]
    #[arg(long, value_name = "N", value_parser = number::<u32>(1..=10_000))]
    pub repetitions: Option<u32>,

    /// The maximum number of repetitions of a value near the edge [default: 8 times `--repetitions`]
    #[arg(long, value_name = "N", value_parser = number::<u32>(1..=100_000))]
    pub most_repetitions: Option<u32>,

    /// Keys that are overridden.
    #[command(flatten)]
    pub settings: Settings,

    /// The confidence of each verdict
    #[arg(long, value_name = "SHARE", default_value = "95 %")]
    pub confidence: trunkline_core::Ratio,

    /// The backend on which it runs
    #[arg(long, value_enum, default_value_t = On::Sim, value_name = "BACKEND")]
    pub on: On,

    /// Continue an interrupted plan with the same file, key and options: its run's number, its folder's name, or `latest`
    #[arg(long, value_name = "RUN")]
    pub resume: Option<String>,

    /// Number of repetitions to simulate in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = number::<u16>(1..=1024))]
    pub jobs: Option<u16>,

    /// Options of live runs.
    #[command(flatten)]
    pub live: Live,

    /// Do not write the pages and figures
    #[arg(long)]
    pub no_report: bool,
}

/// The key and the direction of a plan's search.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Goal {
    /// Find the largest value of this key; any key that can be swept, such as `flow.voice.count`
    #[arg(long, value_name = "KEY", visible_alias = "maximize")]
    pub maximise: Option<String>,

    /// Find the smallest value of this key, such as `link.trunk.rate`
    #[arg(long, value_name = "KEY", visible_alias = "minimize")]
    pub minimise: Option<String>,
}

/// Backend of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// In virtual time, over the links in the file; the same seed gives the same result
    Sim,
    /// In real time over the links in the file, between namespaces of this machine, with the kernel's TCP; Linux only
    Wire,
    /// On real sockets, over the network as it is; the file's links do not apply
    Live,
}

/// When the sender spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Spin {
    /// With fewer than 64 channels
    Auto,
    /// Always: the most exact departures; occupies a core
    Always,
    /// Never: only sleep
    Never,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The experiment file; `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Check for this backend: everything that `trunkline run` would refuse on it is an error [default: sim]
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub on: Option<On>,

    /// Keys that are overridden.
    #[command(flatten)]
    pub settings: Settings,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The run: its number, its folder's name, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub run: String,

    /// Write the run to this HTML file, with interactive charts and its audio, below 5 MB unless the report of a long sweep
    /// alone is larger: it opens offline on any machine. Without it, the HTML report is written to the run's folder
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the tables and the data of the figures as CSV files to this folder
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,

    /// Write the figures as PNG files to this folder
    #[arg(long, value_name = "DIR")]
    pub png: Option<PathBuf>,

    /// Do not include the same experiment's run on another backend
    #[arg(long)]
    pub alone: bool,
}

/// Arguments of `paper`.
#[derive(Debug, Args)]
pub struct Paper {
    /// The study, as listed by `trunkline papers`
    #[arg(value_name = "STUDY")]
    pub study: String,

    /// Only these tables [default: all]
    #[arg(value_name = "TABLE")]
    pub tables: Vec<String>,

    /// Write an HTML page with the tables and figures to this folder, every table as CSV, and every figure as SVG and PNG
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Number of times that each point is simulated, with new random numbers each time; tables contain the mean
    /// [default: as in the study's files, mostly once]
    #[arg(long, value_name = "N", value_parser = number::<u32>(1..=10_000))]
    pub repetitions: Option<u32>,

    /// The backend of tables that can also be measured: `wire` measures them in real time
    #[arg(long, value_name = "BACKEND", default_value = "sim", value_parser = ["sim", "wire"])]
    pub on: String,

    /// Number of blocks that each channel of audio sends, in studies that count blocks [default: as in the study]
    #[arg(long, value_name = "N", value_parser = number::<u64>(10..=1_000_000))]
    pub blocks: Option<u64>,

    /// Number of points to simulate in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = number::<u16>(1..=1024))]
    pub jobs: Option<u16>,

    /// Find the constants of the model again from the published cells that they were taken from, instead of repeating the
    /// study, and compare them with its files. TABLE leaves only the constants that were taken from these tables
    #[arg(long, conflicts_with_all = ["out", "on", "repetitions", "blocks"])]
    pub calibrate: bool,

    /// Exit with code 3 if a goal is missed, or with `--calibrate` a constant is not found again
    #[arg(long)]
    pub strict: bool,
}
