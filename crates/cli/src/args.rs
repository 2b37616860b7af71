//! What can be typed. Help, man page, shell completions and the reference page all come from these types.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Carries voice and music over networks and tells you what the network will do to them.
///
/// One experiment file says hosts, links, transports, flows of voice and bulk, what to sweep and how often to repeat.
/// It runs in virtual time over the links it describes, or on real sockets, with the same statistics and report.
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
    /// Folder of stored runs [default: $XDG_DATA_HOME/trunkline, else ~/.local/share/trunkline]
    #[arg(long, global = true, value_name = "DIR", env = "TRUNKLINE_STORE", hide_env_values = true)]
    pub store: Option<PathBuf>,

    /// Print results as JSON on standard output; everything else goes to standard error
    #[arg(long, global = true)]
    pub json: bool,

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

    /// Validate an experiment file and say what it would do; nothing is run or written
    Check(Check),

    /// List stored runs
    Runs,

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
    /// The experiment file
    #[arg(required_unless_present = "resume", value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Where it runs
    #[arg(long, value_enum, default_value_t = On::Sim, value_name = "BACKEND", conflicts_with = "resume")]
    pub on: On,

    /// Finish a partial run: its number, its folder's name, or `latest`
    #[arg(long, value_name = "RUN", conflicts_with = "file")]
    pub resume: Option<String>,

    /// How many points are simulated at once [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Live: address of the far end's sockets
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub address: std::net::IpAddr,

    /// Live: UDP and TCP port of the far end; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Live: whether to spin for the last 300 us before each departure
    #[arg(long, value_enum, default_value_t = Spin::Auto, value_name = "WHEN")]
    pub spin: Spin,

    /// Do not write the report
    #[arg(long)]
    pub no_report: bool,
}

/// Where an experiment runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum On {
    /// In virtual time, over the links that the file describes; the same result for the same seed on every machine
    Sim,
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
    /// The experiment file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
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

    /// How many points are simulated at once [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,

    /// Exit with code 1 if a goal is missed
    #[arg(long)]
    pub strict: bool,
}
