//! The first process of a kernel: sets up its interfaces, waits for the start of the simulation, and runs the host's program.

use std::error::Error;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use serde::{Deserialize, Serialize};

/// The variable by which the first process knows what it is: the kernel makes one of each parameter that it does not know.
pub(crate) const VARIABLE: &str = "TRUNKLINE_GUEST";

/// The set-up's file, in the folder in which the kernel runs on its own host. What a guest reads here, before it mounts its
/// own `/proc`, is that host's.
const SETUP: &str = "/proc/self/cwd/setup";

/// The line of the console by which a host says that it is ready.
pub const READY: &str = "trunkline: ready";

/// The path to programs: a kernel gives its first process no path that has the programs of the administrator.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The task of the first process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The host's name.
    pub name: String,
    /// Its interfaces, in the order of the devices.
    pub interfaces: Vec<Interface>,
    /// The text of `/etc/hosts`.
    pub names: String,
    /// The program, a line for the shell.
    pub run: Option<String>,
    /// When the simulation begins, from the start of the kernel.
    pub start: Duration,
    /// The folder in which the program starts.
    pub folder: String,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub mac: [u8; 6],
    /// Its address; all of the link have the first 24 bits in common.
    pub address: Ipv4Addr,
    /// The largest packet, in bytes.
    pub mtu: u16,
    /// The other stations of its link, with their hardware addresses.
    pub neighbours: Vec<(Ipv4Addr, [u8; 6])>,
    /// Routes: a network, the length of its prefix, and the address of the next station.
    pub routes: Vec<(Ipv4Addr, u8, Ipv4Addr)>,
}

/// True if this process is the first of a kernel.
pub fn is_wanted() -> bool {
    std::process::id() == 1 && std::env::var_os(VARIABLE).is_some()
}

/// Runs as the first process of a kernel; ends the machine if the host cannot be set up.
///
/// # Errors
/// If the machine cannot be switched off.
pub fn run() -> Result<(), Box<dyn Error>> {
    if let Err(error) = set_up() {
        say(&format!("trunkline: {error}"))?;
    }
    reboot(RebootMode::RB_POWER_OFF)?;
    Ok(())
}

fn set_up() -> Result<(), Box<dyn Error>> {
    let setup: Setup = serde_json::from_slice(&fs::read(SETUP)?)?;
    std::env::set_current_dir(&setup.folder).map_err(|error| format!("{}: {error}", setup.folder))?;
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")] {
        mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>)
            .map_err(|error| format!("{place} cannot be mounted: {error}"))?;
    }
    if ["/run", "/tmp"].iter().any(|own| Path::new(&setup.folder).starts_with(own)) {
        // The current folder is still that of the machine, which the guest's own has covered.
        fs::create_dir_all(&setup.folder)?;
        mount(Some("."), &*setup.folder, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .map_err(|error| format!("{} cannot be mounted: {error}", setup.folder))?;
        std::env::set_current_dir(&setup.folder)?;
    }
    fs::write("/run/hosts", &setup.names)?;
    // A system without the file does without names.
    let _ = mount(Some("/run/hosts"), "/etc/hosts", None::<&str>, MsFlags::MS_BIND, None::<&str>);
    fs::write("/proc/sys/kernel/hostname", &setup.name)?;
    fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
    configure(&setup.interfaces)?;
    say(READY)?;
    thread::sleep(setup.start.saturating_sub(uptime()?));
    if let Some(line) = &setup.run {
        run_program(line)?;
    }
    loop {
        thread::park();
    }
}

/// Time since the start of the kernel.
fn uptime() -> Result<Duration, Box<dyn Error>> {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
    Ok(now.into())
}

/// Gives the interfaces their names, addresses and routes, by one call of `ip`.
fn configure(interfaces: &[Interface]) -> Result<(), Box<dyn Error>> {
    let mut lines = String::from("link set lo up\n");
    for (index, interface) in interfaces.iter().enumerate() {
        let Interface { name, address, mtu, neighbours, .. } = interface;
        lines += &format!("link set eth{index} name {name} mtu {mtu} up\n");
        lines += &format!("address add {address}/24 dev {name}\n");
        for (address, mac) in neighbours {
            let mac: Vec<String> = mac.iter().map(|byte| format!("{byte:02x}")).collect();
            lines += &format!("neighbour add {address} lladdr {} dev {name} nud permanent\n", mac.join(":"));
        }
    }
    for interface in interfaces {
        for (network, prefix, next) in &interface.routes {
            lines += &format!("route add {network}/{prefix} via {next} dev {}\n", interface.name);
        }
    }
    fs::write("/run/interfaces", lines)?;
    let output = Command::new("ip").args(["-batch", "/run/interfaces"]).env("PATH", PATH).output();
    let output = output.map_err(|error| format!("`ip` of iproute2 does not start: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("interfaces: {}", String::from_utf8_lossy(&output.stderr).trim()).into()),
    }
}

/// Runs a line of the shell and copies what it says to the console.
fn run_program(line: &str) -> Result<(), Box<dyn Error>> {
    let (output, input) = io::pipe()?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).env("PATH", PATH).env("HOME", "/tmp");
    command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
    let mut program = command.spawn().map_err(|error| format!("`{line}` does not start: {error}"))?;
    // It would hold the pipe open.
    drop(command);
    let begun = Instant::now();
    for line in BufReader::new(output).split(b'\n') {
        say(&String::from_utf8_lossy(&line?))?;
    }
    let status = program.wait()?;
    say(&format!("{ENDED}{status}, after {:.3} s", begun.elapsed().as_secs_f64()))
}

/// Before what the console says of the end of the program.
pub const ENDED: &str = "trunkline: the program has ended: ";

fn say(line: &str) -> Result<(), Box<dyn Error>> {
    let mut console = io::stdout().lock();
    writeln!(console, "{line}")?;
    console.flush()?;
    Ok(())
}
