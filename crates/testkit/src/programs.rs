//! Other programs as judges of ours. A test is skipped where its judge is not installed, and fails there where `CI` is set
//! (see [`skips`](crate::skips)).
//!
//! `.ci/run` installs them all.

use std::io::{ErrorKind, Write as _};
use std::process::{Command, Stdio};

use trunkline_core::{Address, Time};
use trunkline_transport::ipv4_of;

use crate::pair::{FAR, NEAR};
use crate::skips::skip;

/// Checks that a program is installed; a skip that names its Debian packages if not.
///
/// # Panics
/// If it is there and cannot be run, or is missing although `CI` is set.
pub fn is_installed(program: &str, packages: &str) -> bool {
    match Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip(&format!("`{program}` is not installed; install {packages}"));
            false
        }
        Err(error) => panic!("`{program}` cannot be run: {error}"),
    }
}

/// The output of tshark with these arguments for packets between [`NEAR`] and [`FAR`], each with its moment and sender, that
/// IPv4 carries as this protocol; `None` where tshark is not installed.
///
/// # Panics
/// If it does not succeed, or is missing although `CI` is set.
pub fn tshark<'a>(
    protocol: u8,
    packets: impl IntoIterator<Item = (Time, Address, &'a [u8])>,
    arguments: &[&str],
) -> Option<String> {
    if !is_installed("tshark", "the Debian package `tshark`") {
        return None;
    }
    let capture = pcap(protocol, packets);
    let mut command = Command::new("tshark");
    command.args(["-r", "-"]).args(arguments);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it has just been asked for its version");
    let mut input = child.stdin.take().expect("it is piped");
    // It begins to print before it has read everything.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(&capture).expect("it reads all of its input"));
        child.wait_with_output().expect("it was started")
    });
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A capture file (link type 101, IP).
fn pcap<'a>(protocol: u8, packets: impl IntoIterator<Item = (Time, Address, &'a [u8])>) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4u32, 0x0002_0004, 0, 0, 65_535, 101] {
        file.extend_from_slice(&word.to_be_bytes());
    }
    for (at, from, bytes) in packets {
        let to = if from == NEAR { FAR } else { NEAR };
        let length = (20 + bytes.len()) as u16;
        let mut header = [0; 20];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&length.to_be_bytes());
        (header[8], header[9]) = (64, protocol);
        header[12..16].copy_from_slice(&ipv4_of(from.host));
        header[16..20].copy_from_slice(&ipv4_of(to.host));
        let micros = at.as_nanos() / 1000;
        for word in [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, length.into(), length.into()] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        file.extend_from_slice(&header);
        file.extend_from_slice(bytes);
    }
    file
}
