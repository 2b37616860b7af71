//! Does the simulator's TCP do beside a call what Linux's does? A matrix of cells (rate, round trip, queue, flows, congestion
//! control, loss, volume), each simulated and each run by a kernel in virtual time.
//!
//! `cargo run --release -p trunkline-benches --bin matrix -- --kernel LINUX`, on Linux. The kernel is User-Mode Linux with time
//! travel: time in it stands still while it computes, and jumps when it idles, so that no stall of this machine disturbs it.
//! `docs/benchmarks.md` says how to build one. Without `--kernel` only the simulator runs.

#[cfg(target_os = "linux")]
mod cell;
#[cfg(target_os = "linux")]
mod guest;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod ns3;
#[cfg(target_os = "linux")]
mod sim;
#[cfg(target_os = "linux")]
mod table;

#[cfg(target_os = "linux")]
fn main() -> Result<std::process::ExitCode, Box<dyn std::error::Error>> {
    table::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    anstream::eprintln!("the matrix needs Linux");
}
