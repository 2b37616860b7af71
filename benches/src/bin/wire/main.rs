//! What the wire costs: its relay beside a bare loop over the same kind of device, in turn, in one run. As root.
//!
//! `cargo run --release -p trunkline-benches --bin wire`
//!
//! Beside mahimahi: its shells around this program, as `--help` says.

#[cfg(target_os = "linux")]
mod ground;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
mod probes;

#[cfg(not(target_os = "linux"))]
fn main() {
    anstream::eprintln!("the wire is for Linux");
}

#[cfg(target_os = "linux")]
fn main() {
    measure::main();
}
