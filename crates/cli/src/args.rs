//! What can be typed. Help, man page, shell completions and the reference page all come from these types.

pub mod agent;
pub mod foreign;
pub mod listen;
pub mod manual;
pub mod probe;
pub mod runs;
pub mod serve;
pub mod session;
pub mod settings;
pub mod wire;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use settings::Settings;

/// Carries voice and music over networks and tells you what the network will do to them.
///
/// One experiment file says hosts, links, transports, flows of voice and bulk, what to sweep and how often to repeat.
/// It runs in virtual time over the links it describes, in real time over the same links, or on real sockets over the
/// network as it is, with the same statistics and report.
#[derive(Debug, Parser)]
#[command(name = "trunkline", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Where runs are stored: a folder [default: $XDG_DATA_HOME/trunkline, else ~/.local/share/trunkline], or a team's
    /// PostgreSQL server, postgresql://USER:PASSWORD@HOST/DATABASE
    #[arg(long, global = true, value_name = "PLACE", env = "TRUNKLINE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,

    /// Print results and errors as JSON on standard output; everything else goes to standard error
    #[arg(long, global = true)]
    pub json: bool,

    /// Say nothing on standard error but warnings and errors
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
    /// Run an experiment file: measure every point as often as it says, store it, and write the report
    ///
    /// Ctrl-C keeps what was measured and marks the run partial; `trunkline run --resume RUN` finishes it.
    Run(Run),

    /// Find the largest or smallest value of a key that keeps the file's limits
    ///
    /// Bisects with repetitions: what is said is right with the stated confidence, and between the last value shown to keep
    /// the limits and the first shown to break one it says what is not decided. For every combination of what the file
    /// sweeps there is an answer. Everything measured is stored as one run. Ctrl-C tells what is known so far;
    /// --resume goes on.
    Plan(Plan),

    /// Validate an experiment file and say what it would do; nothing is run or written
    Check(Check),

    /// List stored runs; mark, compare, export, import and remove them
    Runs(runs::Runs),

    /// Rebuild a stored run's report
    ///
    /// The report is one self-contained HTML file in the run's folder. If the same file was also run on another
    /// backend, both stand side by side.
    Report(Report),

    /// List the published studies that can be repeated
    Papers,

    /// Repeat a published study in the simulator and hold it against what was published
    ///
    /// Prints every table cell by cell (published, simulated, relative error), the errors of each column, and which
    /// goals are met. With --json a line of JSON for every cell.
    Paper(Paper),

    /// Send audio of a device or a file to another host, over any transport
    ///
    /// Against `trunkline reflect` it comes back, is played or recorded with --to, and its round trips are measured; against
    /// `trunkline receive` it is played there. The latency of every stage is shown meanwhile, and all that was measured at
    /// the end. Ctrl-C ends it in order.
    Send(Box<session::Send>),

    /// Play or record what `trunkline send` sends from other hosts
    Receive(session::Receive),

    /// Send back everything that comes, so that others can measure round trips
    Reflect(session::Reflect),

    /// Measure what the network does to audio on the way to a reflector, and say how to send it
    ///
    /// Within the budget it tries every transport, several block sizes, numbers of channels, and what bulk transfers do to them.
    /// It recommends transport, block size, playout depth and redundancy for rehearsal, recording and telephony, says why
    /// and what is next best, and prints the commands. Ctrl-C gives the advice from what was measured until then.
    Probe(probe::Probe),

    /// Say how much a received recording differs from the one that was sent
    ///
    /// Finds the sent audio in the received (delay, clock drift, gain, channels), and measures what has become of it:
    /// signal-to-noise ratio, log-spectral distance, the noise-to-mask ratio of ITU-R BS.1387, gaps and clicks. The
    /// recordings are WAV or FLAC files of as many channels; their sample rates may differ.
    Listen(listen::Listen),

    /// Run programs behind the links of an experiment file, in real time
    ///
    /// Every host of the file becomes a network namespace of this machine, and every link of it a relay between them that
    /// drops, delays and reorders packets exactly as the simulator's links do. COMMAND runs on one of the hosts, `trunkline
    /// wire` waits for it and exits with its code; then everything is gone. Host names of the file resolve on the hosts.
    ///
    /// Works as root, and without privileges where the system lets users make namespaces. Linux only.
    Wire(wire::Wire),

    /// Serve the page: draw, run, watch and compare experiments in a browser
    ///
    /// The page and its API, on this machine only unless --listen says otherwise. Ctrl-C ends it: what is measured then is
    /// kept, and can be resumed.
    Serve(serve::Serve),

    /// Be the agent of this host, which executes its parts of live experiments; or enrol at agents and look at them
    ///
    /// An agent sends, receives and reflects for the controllers that its owner has let enrol, within the limits of its
    /// configuration, and keeps what it records until they have it. On the agent's host `trunkline agent pair` prints the
    /// command that enrols a controller.
    Agent(agent::Agent),

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

    /// The other end of a live run, in its own process; talks to its controller on standard input and output
    #[command(hide = true)]
    FarEnd,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The experiment file; `-` for standard input
    #[arg(required_unless_present = "resume", value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Where it runs
    #[arg(long, value_enum, default_value_t = On::Sim, value_name = "BACKEND", conflicts_with = "resume")]
    pub on: On,

    /// Finish a partial run: its number, its folder's name, or `latest`
    #[arg(long, value_name = "RUN", conflicts_with = "file")]
    pub resume: Option<String>,

    /// How many repetitions are simulated at once [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Write what the listener of a member of a flow hears into a WAV file: `flow.voice.1`, or `flow.voice.1.2` for its
    /// second channel only
    ///
    /// Members and channels count from 1. Without FILE it goes into the run's folder. Where there are several points or
    /// repetitions each has a file of its own, named FILE-p003-r01.wav.
    #[arg(long, value_name = "FLOW[=FILE]")]
    pub hear: Vec<String>,

    /// What is heard in the place of missing messages [default: as the flow's codec does]
    #[arg(long, value_enum, value_name = "METHOD", requires = "hear")]
    pub conceal: Option<Conceal>,

    /// Keys that get other values.
    #[command(flatten)]
    pub settings: Settings,

    /// How often every point is measured, in place of the file's `repetitions`
    #[arg(long, value_name = "N")]
    pub repetitions: Option<String>,

    /// How it is measured live.
    #[command(flatten)]
    pub live: Live,

    /// Exit with code 3 if a limit of the file is broken, or could not be judged at some point
    #[arg(long)]
    pub strict: bool,

    /// Do not write the report
    #[arg(long)]
    pub no_report: bool,
}

impl Run {
    /// Keys that get other values.
    pub fn settings(&self) -> Vec<trunkline_experiment::Setting> {
        let key = "repetitions";
        let own = self.repetitions.iter();
        let own = own.map(|n| trunkline_experiment::Setting::of_option("--repetitions", key, n));
        self.settings.all().into_iter().chain(own).collect()
    }
}

/// What is heard in the place of missing messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Conceal {
    /// Silence, as `codec = "g711"` has it
    Silence,
    /// The last message again and again, fading
    Repetition,
    /// The last pitch period again and again, fading, as `codec = "g711-plc"` has it
    Waveform,
}

/// Options of a live run.
#[derive(Debug, Args)]
pub struct Live {
    /// Live: address of the far end's sockets
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

    /// What is searched.
    #[command(flatten)]
    pub goal: Goal,

    /// Answer for each of these values of a second key: `link.trunk.mbs=32,64,128`
    #[arg(long, value_name = "KEY=VALUES")]
    pub against: Option<String>,

    /// The smallest value to try [default: found by halving, down to what the key takes]
    #[arg(long, value_name = "VALUE")]
    pub from: Option<String>,

    /// The largest value to try [default: found by doubling, up to what the key takes]
    #[arg(long, value_name = "VALUE")]
    pub to: Option<String>,

    /// How near the answer must come, as an amount [default: 1 for what is counted]
    #[arg(long, value_name = "VALUE", conflicts_with = "precision")]
    pub step: Option<String>,

    /// How near the answer must come, as a share of the value [default: 1 % for what is not counted]
    #[arg(long, value_name = "SHARE")]
    pub precision: Option<trunkline_core::Ratio>,

    /// How often a value is measured before it is judged [default: as the file says, or 5 if that is once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repetitions: Option<u32>,

    /// How often a value near the edge is measured at most [default: 8 times as often]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub most_repetitions: Option<u32>,

    /// Keys that get other values.
    #[command(flatten)]
    pub settings: Settings,

    /// How sure each verdict must be
    #[arg(long, value_name = "SHARE", default_value = "95 %")]
    pub confidence: trunkline_core::Ratio,

    /// Where it runs
    #[arg(long, value_enum, default_value_t = On::Sim, value_name = "BACKEND")]
    pub on: On,

    /// Go on with an interrupted plan of the same file, key and options: its run's number, its folder's name, or `latest`
    #[arg(long, value_name = "RUN")]
    pub resume: Option<String>,

    /// How many repetitions are simulated at once [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// How it is measured live.
    #[command(flatten)]
    pub live: Live,

    /// Do not write the pages and figures
    #[arg(long)]
    pub no_report: bool,
}

/// What a plan searches.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Goal {
    /// Find the largest value of this key, any that `[sweep]` takes: `flow.voice.count`
    #[arg(long, value_name = "KEY", visible_alias = "maximize")]
    pub maximise: Option<String>,

    /// Find the smallest value of this key: `link.trunk.rate`
    #[arg(long, value_name = "KEY", visible_alias = "minimize")]
    pub minimise: Option<String>,
}

/// Where an experiment runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// In virtual time, over the links that the file describes; the same result for the same seed on every machine
    Sim,
    /// In real time over the links that the file describes, between namespaces of this machine, with the kernel's TCP; Linux
    /// only
    Wire,
    /// On this machine's sockets, over the network as it is; the links of the file do not apply
    Live,
}

/// When the sender spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Spin {
    /// With fewer than 64 channels
    Auto,
    /// Always: the most exact departures, and a core of its own
    Always,
    /// Never: sleep only
    Never,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The experiment file; `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Where it is to run: what `trunkline run` refuses there is an error [default: sim]
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub on: Option<On>,

    /// Keys that get other values.
    #[command(flatten)]
    pub settings: Settings,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The run: its number, its folder's name, or `latest`
    #[arg(value_name = "RUN", default_value = "latest")]
    pub run: String,

    /// Write the HTML report to this file instead of the run's folder
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write tables and figures' data as CSV files into this folder
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,

    /// Write the figures as PNG files into this folder
    #[arg(long, value_name = "DIR")]
    pub png: Option<PathBuf>,

    /// Do not put the same experiment's run on another backend beside it
    #[arg(long)]
    pub alone: bool,
}

/// Arguments of `paper`.
#[derive(Debug, Args)]
pub struct Paper {
    /// The study: a name that `trunkline papers` lists
    #[arg(value_name = "STUDY")]
    pub study: String,

    /// Only these tables [default: all]
    #[arg(value_name = "TABLE")]
    pub tables: Vec<String>,

    /// Write the tables and the study's figures as one HTML page into this folder, and every figure as SVG and PNG
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// How often each point is simulated, with random numbers of its own each time; tables have the mean [default: as the
    /// study's files say, mostly once]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repetitions: Option<u32>,

    /// Where the tables that a study has for it are measured: `wire` instead of in `sim`, in real time
    #[arg(long, value_name = "BACKEND", default_value = "sim", value_parser = ["sim", "wire"])]
    pub on: String,

    /// How many blocks each channel of audio sends, in studies that count them [default: as many as in the study]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    pub blocks: Option<u64>,

    /// How many points are simulated at once [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Exit with code 3 if a goal is missed
    #[arg(long)]
    pub strict: bool,
}
