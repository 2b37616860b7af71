//! Tests that a machine cannot run. One rule for all: such a test says what is missing and passes; where `CI` is set it
//! fails, except for [`Missing`], which a machine for CI may lack for a reason.
//!
//! Every skip goes into the [`journal`], of which `cargo xtask test` prints a table.

#![allow(clippy::print_stderr, reason = "a skipped test says so")]

use crate::journal;

/// Facilities that a machine may lack even where `CI` is set. Everything else can be installed, and `.ci/run` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// SCTP sockets of the kernel.
    KernelSctp,
    /// MPTCP sockets of the kernel.
    KernelMptcp,
    /// UDP-Lite sockets of the kernel.
    KernelUdpLite,
    /// nftables in the kernel.
    Nftables,
    /// The device `/dev/net/tun`.
    Tun,
    /// Network, mount and time namespaces of the test's own.
    Namespaces,
    /// A User-Mode Linux that `trunkline kernel build` has built.
    UserModeLinux,
    /// IPv6, on the loopback interface or on another one.
    Ipv6,
}

impl Missing {
    /// The reason for which a test may be skipped without it in CI. The kernel is not ours to change in a container.
    pub fn reason(self) -> &'static str {
        match self {
            Missing::KernelSctp => {
                "a kernel may be built without SCTP; our own engine and usrsctp are tested everywhere"
            }
            Missing::KernelMptcp => "a kernel may be built without MPTCP",
            Missing::KernelUdpLite => "a kernel may be built without UDP-Lite",
            Missing::Nftables => "a kernel may be built without nftables",
            Missing::Tun => "a container has /dev/net/tun only if it was started with it",
            Missing::Namespaces => "a container's sandbox may refuse new namespaces",
            Missing::UserModeLinux => "a kernel takes ten minutes to build",
            Missing::Ipv6 => "a container's network may have no IPv6",
        }
    }
}

/// Skips a test for want of something that can be installed.
///
/// # Panics
/// If `CI` is set.
pub fn skip(why: &str) {
    record(None, why);
}

/// Skips a test for want of something that a machine for CI may lack.
pub fn skip_without(missing: Missing, why: &str) {
    record(Some(missing), why);
}

fn record(missing: Option<Missing>, why: &str) {
    let why = why.trim();
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    assert!(is_allowed(missing, is_ci), "{why} (where `CI` is set, this is not skipped)");
    eprintln!("skipped: {why}");
    journal::append("skip", &[why, missing.map_or("can be installed", Missing::reason)]);
}

fn is_allowed(missing: Option<Missing>, is_ci: bool) -> bool {
    missing.is_some() || !is_ci
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_ci_only_what_has_a_reason_is_skipped() {
        let allowed =
            [None, Some(Missing::KernelSctp)].map(|missing| [false, true].map(|ci| is_allowed(missing, ci)));
        assert_eq!(allowed, [[true, false], [true, true]]);
    }
}
