//! Trunkline beside its peers: whole commands that anybody can repeat, in turn, in one run; writes a page and JSON.
//!
//! `cargo xtask peers` installs the peers, builds what this needs, and runs it.

#[cfg(target_os = "linux")]
mod lanes;
#[cfg(target_os = "linux")]
mod page;
#[cfg(target_os = "linux")]
mod run;

#[cfg(not(target_os = "linux"))]
fn main() {
    anstream::eprintln!("peers are compared on Linux");
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    run::main()
}
