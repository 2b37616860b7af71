//! `trunkline wire`

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _};
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use trunkline_core::{Duration, Seed, count};
use trunkline_runner::DirectoryFiles;
use trunkline_wire::ground::{
    self, Access, DeviceKind, FoundWire, GroundOptions, HostState, InitProgram, Namespace,
};
use trunkline_wire::programs::{self, Companion, Front, Signals};
use trunkline_wire::{Wire, WireError, WireOptions, prompt};

use super::{own_program, wire_link, wire_live};
use crate::args::Global;
use crate::args::wire::{self as args, Devices, Which, WireAction, WireLinks};
use crate::json::{WireHost, WireInterface, WireOutput, WireUpOutput, WiresOutput, WiresRemovedOutput};
use crate::output::{self, Failure};

pub(super) fn wire(global: &Global, arguments: &args::Wire) -> Result<u8, Failure> {
    match &arguments.action {
        None => run(arguments),
        Some(WireAction::Up { links, foreground: false }) => up(global, links),
        Some(WireAction::Up { links, foreground: true }) => stay_up(global, links),
        Some(WireAction::Exec { host, which, command }) => exec(host, which, command),
        Some(WireAction::Status) => status(global),
        Some(WireAction::Top { which }) => wire_live::top(global, which),
        Some(WireAction::Set { assignments, which }) => wire_live::set(which, assignments),
        Some(WireAction::Down { which, stale: false }) => {
            find(which)?.take_down().map_err(failure)?;
            Ok(output::DONE)
        }
        Some(WireAction::Down { stale: true, .. }) => remove_stale(global),
        Some(WireAction::Init) => {
            ground::serve_init().map_err(Failure::environment)?;
            Ok(output::DONE)
        }
    }
}

/// Runs a command behind the links.
fn run(arguments: &args::Wire) -> Result<u8, Failure> {
    let beside = arguments.with.iter().map(|with| host_and_line(with)).collect::<Result<Vec<_>, _>>()?;
    let (wire, signals) = start(&arguments.links)?;
    let first = wire.plan().hosts.first().map_or("", |host| host.name.as_str());
    let at = wire.host(arguments.at.as_deref().unwrap_or(first)).map_err(failure)?;
    let start = |with: &(&str, &str)| {
        wire.host(with.0).and_then(|host| Companion::start(host, with.1, &label(with, &beside)))
    };
    let mut beside = beside.iter().map(start).collect::<Result<Vec<_>, _>>().map_err(failure)?;
    // Ctrl-C while there was nothing in front yet.
    if signals.want_end().map_err(Failure::environment)? {
        return Ok(output::INTERRUPTED);
    }
    let front = Front::start(at, command(&arguments.command, at)?).map_err(failure)?;
    let status = programs::wait(&signals, front, &mut beside, &mut |text| output::warn(text));
    beside.into_iter().for_each(Companion::end);
    end(wire);
    status.map(programs::exit_code).map_err(Failure::environment)
}

/// Leaves a process in the background that drives the links: the same command, in front of nobody.
fn up(global: &Global, links: &WireLinks) -> Result<u8, Failure> {
    // Bad input is told here, with colours.
    load(links)?;
    let unable =
        |e: io::Error| Failure::environment(format_args!("cannot run the wire in the background: {e}"));
    let mut process = Command::new(own_program()?)
        // It says in one line that it is up, or why not.
        .args(std::env::args_os().skip(1).filter(|argument| argument != "--json"))
        .arg("--foreground")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C is not for it.
        .process_group(0)
        .spawn()
        .map_err(unable)?;
    let (Some(stdout), Some(stderr)) = (process.stdout.take(), process.stderr.take()) else {
        return Err(unable(io::ErrorKind::BrokenPipe.into()));
    };
    // What it has to say until it is up; after that nobody listens.
    let told = std::thread::spawn(move || {
        let lines = BufReader::new(stderr).lines().map_while(Result::ok);
        lines.inspect(|line| output::pass_on(line)).collect::<Vec<String>>()
    });
    if let Some(line) = BufReader::new(stdout).lines().next() {
        let line = line.map_err(unable)?;
        match global.json {
            true => output::print_json(&WireUpOutput {
                wire: line.split('`').nth(1).unwrap_or_default().to_owned(),
            }),
            false => output::print(line),
        }
        output::note("run programs on its hosts with `trunkline wire exec HOST -- COMMAND`");
        return Ok(output::DONE);
    }
    // It has ended, and so what it tells.
    let told = told.join().unwrap_or_default().join("\n");
    let code = process.wait().map(programs::exit_code).map_err(unable)?;
    if global.json {
        let message = told.rsplit("error: ").next().unwrap_or_default();
        output::print_failure(&Failure { code, ..Failure::environment(message) });
    }
    Ok(code)
}

/// Drives the links until somebody wants them to end.
fn stay_up(global: &Global, links: &WireLinks) -> Result<u8, Failure> {
    let (wire, signals) = start(links)?;
    let wire_name = name(links)?;
    match global.json {
        true => output::print_json(&WireUpOutput { wire: wire_name }),
        false => output::print(format_args!("wire `{wire_name}` is up")),
    }
    signals.wait_for_end().map_err(Failure::environment)?;
    end(wire);
    Ok(output::DONE)
}

fn exec(host: &str, which: &Which, arguments: &[OsString]) -> Result<u8, Failure> {
    let found = find(which)?;
    let signals = Signals::keep().map_err(Failure::environment)?;
    let host = ground::join(&found, host).map_err(failure)?;
    let front = Front::start(&host, command(arguments, &host)?).map_err(failure)?;
    programs::wait(&signals, front, &mut [], &mut |_| {})
        .map(programs::exit_code)
        .map_err(Failure::environment)
}

/// The wire that is meant.
pub(super) fn find(which: &Which) -> Result<FoundWire, Failure> {
    FoundWire::find(&Access::root().map_err(failure)?, which.wire.as_deref()).map_err(failure)
}

fn status(global: &Global) -> Result<u8, Failure> {
    let wires = FoundWire::all(&Access::root().map_err(failure)?).map_err(failure)?;
    if global.json {
        let wires = wires.iter().map(|wire| WireOutput {
            name: wire.state.name.clone(),
            file: wire.state.file.display().to_string(),
            process: wire.state.owner.pid,
            running: wire.is_running(),
            socket: wire.socket().display().to_string(),
            counters: wire_live::counters(wire),
            hosts: wire.state.hosts.iter().map(WireHost::from).collect(),
        });
        output::print_json(&WiresOutput { wires: wires.collect() });
        return Ok(output::DONE);
    }
    if wires.is_empty() {
        output::note("no wire is running");
    }
    for wire in &wires {
        let state = &wire.state;
        if !wire.is_running() {
            output::print(format_args!(
                "{}: its process {} has died; `trunkline wire down --stale` removes its remains",
                state.name, state.owner.pid
            ));
            continue;
        }
        output::print(format_args!("{}: {} (process {})", state.name, state.file.display(), state.owner.pid));
        let rows: Vec<Vec<String>> = state.hosts.iter().flat_map(host_rows).collect();
        if !rows.is_empty() {
            output::print(output::list(&rows, output::screen()));
        }
        for host in state.hosts.iter().filter(|host| !host.is_alive()) {
            output::warn(format_args!(
                "the init process of host `{}` of wire `{}` was killed: no program can run there",
                host.name, state.name
            ));
        }
    }
    Ok(output::DONE)
}

/// A row for each interface.
fn host_rows(host: &HostState) -> Vec<Vec<String>> {
    let row = |(index, interface): (usize, &ground::InterfaceState)| {
        let host = if index == 0 { format!("  {}", host.name) } else { String::new() };
        let addresses: Vec<String> = interface.addresses.iter().map(IpAddr::to_string).collect();
        vec![host, interface.name.clone(), addresses.join(" ")]
    };
    match host.interfaces.is_empty() {
        true => vec![vec![format!("  {}", host.name)]],
        false => host.interfaces.iter().enumerate().map(row).collect(),
    }
}

impl From<&HostState> for WireHost {
    fn from(host: &HostState) -> WireHost {
        let interfaces = host.interfaces.iter().map(|interface| WireInterface {
            name: interface.name.clone(),
            link: interface.link.clone(),
            addresses: interface.addresses.iter().map(IpAddr::to_string).collect(),
        });
        WireHost {
            name: host.name.clone(),
            interfaces: interfaces.collect(),
            process: host.first.map(|first| first.pid),
            alive: host.is_alive(),
        }
    }
}

/// Removes what wires of dead processes have left.
fn remove_stale(global: &Global) -> Result<u8, Failure> {
    let mut removed = Vec::new();
    for wire in FoundWire::all(&Access::root().map_err(failure)?)
        .map_err(failure)?
        .iter()
        .filter(|wire| !wire.is_running())
    {
        wire.take_down().map_err(failure)?;
        if !global.json {
            output::print(format_args!("removed the remains of `{}`", wire.state.name));
        }
        removed.push(wire.state.name.clone());
    }
    if global.json {
        output::print_json(&WiresRemovedOutput { removed });
    }
    Ok(output::DONE)
}

/// Brings the links up, and keeps signals from ending this process without order.
fn start(links: &WireLinks) -> Result<(Wire, Signals), Failure> {
    let (experiment, file) = load(links)?;
    let files = Box::new(DirectoryFiles::beside(if links.words.is_given() { Path::new("") } else { &file }));
    let point = experiment.points.first();
    let init = InitProgram { program: own_program()?, arguments: vec!["wire".into(), "init".into()] };
    let options = WireOptions {
        ground: GroundOptions {
            name: name(links)?,
            file,
            devices: match links.devices {
                Devices::Auto => DeviceKind::best(),
                Devices::Tun => DeviceKind::Tun,
                Devices::Ethernet => DeviceKind::Ring,
            },
            outside: links.outside,
            init,
        },
        seed: Seed::new(experiment.seed, 0),
        spin: if links.spin { Duration::MAX } else { Duration::ZERO },
        cores: links.cores.clone(),
    };
    // Both before the first thread.
    let access = Access::enter().map_err(failure)?;
    let signals = Signals::keep().map_err(Failure::environment)?;
    let mut wire = Wire::up(&point.scenario, &access, &options).map_err(failure)?;
    let names_rate = if links.words.is_given() { wire_link::names_rate(&links.words) } else { [true; 2] };
    let beyond = point.scenario.links.iter().flat_map(|link| wire_link::beyond(link, names_rate));
    beyond.for_each(output::warn);
    if let Some(why) = wire.way_out_failure() {
        output::warn(format_args!(
            "hosts can reach this machine, but not the networks beyond it: cannot set up forwarding and \
            address translation: {why}; they need nftables in the kernel (modules nf_tables, nft_chain_nat, \
            nft_masq)"
        ));
    }
    if let Some(folder) = &links.pcap {
        wire.capture(folder).map_err(failure)?;
    }
    wire.listen(experiment, files).map_err(failure)?;
    Ok((wire, signals))
}

/// Takes the links down and says what went wrong with them.
fn end(wire: Wire) {
    let names: Vec<String> = wire.plan().links.iter().map(|link| link.name.clone()).collect();
    let end = wire.down();
    for (name, result) in names.iter().zip(&end.links) {
        match result {
            Ok(counters) => {
                let lost: u64 = counters.ports.iter().map(|port| port.overflowed).sum();
                if lost > 0 {
                    output::warn(format_args!(
                        "lost {} before link `{name}`, because this machine was too slow",
                        count(lost, "packet")
                    ));
                }
            }
            Err(error) => output::warn(format_args!("link `{name}` has ended early: {error}")),
        }
    }
    if let Some(why) = end.capture_failure {
        output::warn(why);
    }
}

/// The experiment of the file or of the words, and what it is called: a path beside which relative paths begin, or the words.
fn load(links: &WireLinks) -> Result<(trunkline_experiment::Experiment, PathBuf), Failure> {
    let Some(file) = &links.file else {
        return Ok((wire_link::load(&links.words)?, wire_link::shown(&links.words)));
    };
    let experiment = trunkline_runner::load(file, &[]).map_err(|error| Failure::load(&error))?;
    Ok((experiment, std::path::absolute(file).unwrap_or_else(|_| file.clone())))
}

/// The wire's name.
fn name(links: &WireLinks) -> Result<String, Failure> {
    let default = || match &links.file {
        Some(file) => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        // Several may be up at once.
        None => format!("link-{}", std::process::id()),
    };
    let name = links.name.clone().unwrap_or_else(default);
    ground::valid_name(&name).map_err(failure)?;
    Ok(name)
}

/// The label of the output of a line beside COMMAND: its host, and its program where several run there.
fn label((host, line): &(&str, &str), all: &[(&str, &str)]) -> String {
    if all.iter().filter(|(other, _)| other == host).count() == 1 {
        return (*host).to_owned();
    }
    let program = line.split_whitespace().next().unwrap_or_default();
    format!("{host} {}", program.rsplit('/').next().unwrap_or(program))
}

fn host_and_line(with: &str) -> Result<(&str, &str), Failure> {
    with.split_once('=').ok_or_else(|| {
        Failure::input(format_args!(
            "`--with` takes a host and a shell command line such as `b=iperf3 -s`, not `{with}`"
        ))
    })
}

/// What the user runs on a host. At a terminal it may be a shell, or start one.
fn command(arguments: &[OsString], host: &Namespace) -> Result<Command, Failure> {
    let (program, rest) =
        arguments.split_first().ok_or_else(|| Failure::input("a command is needed after `--`"))?;
    let mut command = Command::new(program);
    command.args(rest);
    if io::stdin().is_terminal() {
        prompt::name_host(&mut command, host);
    }
    Ok(command)
}

pub(super) fn failure(error: WireError) -> Failure {
    match error.exit_code() {
        Some(code) => Failure { code, ..Failure::environment(error) },
        None if error.is_bad_input() => Failure::input(error),
        None => Failure::environment(error),
    }
}
