//! The commands: each reads its arguments, calls the libraries and prints.

mod agent;
mod browser;
mod check;
#[cfg(target_os = "linux")]
mod kernel;
mod learn;
mod learn_from;
mod listen;
mod paper;
mod paths;
mod peer;
mod plan;
mod probe;
mod receive;
mod reflect;
mod report;
mod run;
mod runs;
mod send;
mod serve;
#[cfg(target_os = "linux")]
mod wire;
#[cfg(target_os = "linux")]
mod wire_link;
#[cfg(target_os = "linux")]
mod wire_live;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use trunkline_experiment::{Experiment, Setting};
use trunkline_runner::{DirectoryFiles, KernelMeans};
use trunkline_store::{Store, StoreError, StoredRun};

use crate::args::{Cli, Command, Global, manual};
use crate::output::{self, Failure};

/// Does what the command line says.
pub fn main(cli: Cli) -> ExitCode {
    output::set_up(&cli.global);
    if let Ok(folder) = paths::folder(&cli.global) {
        trunkline_runner::set_library(folder);
    }
    let done = match &cli.command {
        Command::Run(arguments) => run::run(&cli.global, arguments),
        Command::Plan(arguments) => plan::plan(&cli.global, arguments),
        Command::Check(arguments) => check::check(&cli.global, arguments),
        Command::Runs(arguments) => runs::runs(&cli.global, arguments),
        Command::Report(arguments) => report::report(&cli.global, arguments),
        Command::Papers => Ok(paper::list(&cli.global)),
        Command::Paper(arguments) => paper::paper(&cli.global, arguments),
        Command::Send(arguments) => send::send(&cli.global, arguments),
        Command::Receive(arguments) => receive::receive(&cli.global, arguments),
        Command::Reflect(arguments) => reflect::reflect(&cli.global, arguments),
        Command::Learn(arguments) => learn::learn(&cli.global, arguments),
        Command::Paths(arguments) => paths::paths(&cli.global, arguments),
        Command::Listen(arguments) => listen::listen(&cli.global, arguments),
        Command::Probe(arguments) => probe::run(&cli.global, arguments),
        #[cfg(target_os = "linux")]
        Command::Wire(arguments) => wire::wire(&cli.global, arguments),
        #[cfg(not(target_os = "linux"))]
        Command::Wire(_) => Err(Failure::environment("the wire needs Linux network namespaces")),
        #[cfg(target_os = "linux")]
        Command::Kernel(arguments) => kernel::kernel(&cli.global, arguments),
        #[cfg(not(target_os = "linux"))]
        Command::Kernel(_) => Err(Failure::environment("kernels as hosts need Linux")),
        Command::Serve(arguments) => serve::serve(&cli.global, arguments),
        Command::Agent(arguments) => agent::agent(&cli.global, arguments),
        Command::Peer(arguments) => peer::peer(&cli.global, arguments),
        Command::Completions { shell } => {
            completions(*shell);
            Ok(output::DONE)
        }
        Command::Man { directory } => man(directory.clone()),
        Command::FarEnd => far_end(),
    };
    match done {
        Ok(code) => output::exit(code),
        Err(failure) => output::fail(&failure),
    }
}

fn completions(shell: clap_complete::Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut manual::command(), "trunkline", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end());
}

fn man(directory: Option<PathBuf>) -> Result<u8, Failure> {
    match directory {
        Some(directory) => {
            let write = |(name, command): &(String, clap::Command)| {
                manual::man_page(command, &mut std::fs::File::create(directory.join(name))?)
            };
            std::fs::create_dir_all(&directory)
                .and_then(|()| manual::man_pages().iter().try_for_each(write))
                .map_err(|e| Failure::environment(format_args!("{}: {e}", directory.display())))?;
        }
        None => {
            let mut page = Vec::new();
            manual::man_page(&manual::command(), &mut page)
                .map_err(|e| Failure::environment(format_args!("cannot create the man page: {e}")))?;
            output::print(String::from_utf8_lossy(&page).trim_end());
        }
    }
    Ok(output::DONE)
}

fn far_end() -> Result<u8, Failure> {
    trunkline_live::far_end::serve_standard_streams().map_err(Failure::environment)?;
    Ok(output::DONE)
}

/// Where this program is, to be started once more.
fn own_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::environment(format_args!("this program's own path is not known: {e}")))
}

/// The user's folder of what this program keeps.
fn data_directory() -> Result<PathBuf, Failure> {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = from("XDG_DATA_HOME").or_else(|| from("HOME").map(|home| home.join(".local/share")));
    data.map(|data| data.join("trunkline")).ok_or_else(|| {
        Failure::input("neither XDG_DATA_HOME nor HOME is set: choose a store with `--store DIR`")
    })
}

/// The folder of kernels that experiment files can name.
#[cfg(target_os = "linux")]
fn kernels_folder() -> Result<PathBuf, Failure> {
    Ok(data_directory()?.join("kernels"))
}

/// The means to start hosts that are kernels.
#[cfg(target_os = "linux")]
fn kernel_means() -> Option<KernelMeans> {
    Some(KernelMeans { init: own_program().ok()?, folder: kernels_folder().ok() })
}

/// The means to start hosts that are kernels: there are none.
#[cfg(not(target_os = "linux"))]
fn kernel_means() -> Option<KernelMeans> {
    None
}

/// The name of an experiment file that is read from standard input.
const STANDARD_INPUT: &str = "<stdin>";

/// The name of an experiment file in messages.
fn named(file: &Path) -> std::path::Display<'_> {
    if file == Path::new("-") { Path::new(STANDARD_INPUT).display() } else { file.display() }
}

/// Reads the experiment file that was named, `-` for standard input.
fn load(file: &Path, settings: &[Setting]) -> Result<Experiment, Failure> {
    let read = match file == Path::new("-") {
        true => trunkline_runner::load_from(
            std::io::stdin().lock(),
            Path::new(STANDARD_INPUT),
            &DirectoryFiles::beside(Path::new("")),
            settings,
        ),
        false => trunkline_runner::load(file, settings),
    };
    read.map_err(|error| Failure::load(&error))
}

fn open_store(global: &Global) -> Result<Store, Failure> {
    let opened = match &global.store {
        Some(place) => match place.to_str().and_then(trunkline_store::server_name) {
            Some((url, name)) => Store::connect(url, &data_directory()?.join("servers").join(name)),
            None => Store::open(place),
        },
        None => Store::open(&data_directory()?),
    };
    opened.map_err(store_failure)
}

/// What the user asked for that is not there is bad input; everything else is the environment's.
fn store_failure(error: StoreError) -> Failure {
    if error.is_bad_input() { Failure::input(error) } else { Failure::environment(error) }
}

/// Writes the HTML report of a run into its folder; returns where it is.
fn write_report(run: &StoredRun, counterpart: Option<&StoredRun>) -> Result<PathBuf, Failure> {
    let path = run.info.directory.join("report.html");
    let html = trunkline_report::html(run, counterpart);
    // The folder may be on another host.
    let written = std::fs::create_dir_all(&run.info.directory).and_then(|()| std::fs::write(&path, html));
    written.map_err(|error| Failure::unwritable(&path, &error))?;
    Ok(path)
}
