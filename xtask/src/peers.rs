//! Trunkline beside its peers: installs them, builds ours for release, and runs `peers` of the benches.

use std::path::Path;
use std::process::Command;

use crate::log::Log;
use crate::test::cargo;

/// Peers in Debian, what compiles ns-3's scenarios, and what the lanes need themselves.
const PACKAGES: [&str; 14] = [
    "d-itg",
    "g++",
    "iperf",
    "iperf3",
    "iproute2",
    "irtt",
    "jackd2",
    "jacktrip",
    "libns3-dev",
    "nuttcp",
    "pkg-config",
    "procps",
    "sockperf",
    "util-linux",
];

/// Lanes of the comparison.
#[derive(clap::Args)]
pub(crate) struct Peers {
    /// Rounds of each lane
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Install nothing: what is missing is listed as missing
    #[arg(long)]
    no_install: bool,
    /// The lanes to run; without any, all run, and docs/peers.md is written
    lanes: Vec<String>,
}

pub(crate) fn run(peers: &Peers) -> Result<(), String> {
    if !peers.no_install {
        install()?;
    }
    let build = ["build", "--release", "--locked", "--package", "trunkline"];
    Log::TERMINAL.step("build", cargo().args(build))?;
    let run = ["run", "--release", "--locked", "--package", "trunkline-benches", "--bin", "peers", "--"];
    let mut command = cargo();
    command.args(run).args(["--rounds", &peers.rounds.to_string()]).args(&peers.lanes);
    if peers.lanes.is_empty() {
        command.arg("--out").arg(Path::new("docs").join("peers.md"));
    }
    Log::TERMINAL.step("peers", &mut command)
}

/// Installs what is missing. Only root can, on Debian and its like.
fn install() -> Result<(), String> {
    let known = Command::new("dpkg").arg("--status").args(PACKAGES).output();
    if known.is_ok_and(|known| known.status.success()) {
        return Ok(());
    }
    let mut apt = Command::new("apt-get");
    apt.args(["install", "--yes", "--no-install-recommends"])
        .args(PACKAGES)
        .env("DEBIAN_FRONTEND", "noninteractive");
    Log::TERMINAL.step("peers are installed", &mut apt).map_err(|problem| {
        format!("{problem}; as root on Debian, or with --no-install to compare with what is there")
    })
}
