//! A wire whose last host is the machine itself, and the network beyond it. The machine is a network namespace that each test
//! makes, so that nothing of the real one is touched.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

mod support;

use std::process::{Command, Stdio};

use support::{Bench, Ran};
use trunkline_testkit::programs::is_installed;
use trunkline_testkit::skips::{Missing, skip, skip_without};

const PAIR: &str = r#"
name = "pair"
duration = "1 s"

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "10 Mbit/s"
"#;

/// Makes a machine that does not forward, and a host beyond it that knows no way to the wire's addresses; `$T` is the program.
const MACHINE: &str = r#"
set -e
ip link set lo up
unshare -n sleep 600 & world=$!
trap 'kill $world' EXIT
until [ "$(readlink /proc/$world/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add up0 type veth peer name down0 netns $world
ip link add other type veth peer name other-end
ip address add 192.0.2.1/24 dev up0
ip link set up0 up
nsenter -t $world -n ip address add 192.0.2.9/24 dev down0
nsenter -t $world -n ip link set down0 up
forwards() { cat /proc/sys/net/ipv4/conf/up0/forwarding /proc/sys/net/ipv4/conf/other/forwarding | tr -d '\n'; echo " $1"; }
undone() { n=0; until [ "$(cat /proc/sys/net/ipv4/conf/up0/forwarding)" = 0 ] && ! grep -q tl- /proc/net/dev; do n=$((n+1)); [ $n -lt 3000 ]; sleep 0.02; done; }
"#;

/// Runs lines of shell on such a machine; `None`, as a skip, where that is not possible.
fn on_a_machine(lines: &str) -> Option<Ran> {
    let bench = Bench::with_wire("pair.toml", PAIR)?;
    let allowed = Command::new("unshare").args(["-n", "true"]).stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        skip("`unshare -n true` fails: this is not root");
        return None;
    }
    if !is_installed("ping", "the Debian package `iputils-ping`")
        || !is_installed("ip", "the Debian package `iproute2`")
    {
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-n", "bash", "-c", &format!("{MACHINE}\n{lines}")]).current_dir(bench.path(""));
    command
        .env("T", env!("CARGO_BIN_EXE_trunkline"))
        .env("XDG_RUNTIME_DIR", bench.path(""))
        .stdin(Stdio::null());
    let ran = Ran::from(command.output().expect("unshare is there"));
    if ran.err.contains("cannot set up forwarding and address translation") {
        skip_without(Missing::Nftables, &ran.err);
        return None;
    }
    Some(ran)
}

#[test]
fn hosts_reach_what_is_beyond_the_machine_and_nothing_of_that_remains() {
    let lines = r#"
forwards before
$T wire pair.toml --outside -- sh -c 'ping -q -c 1 -W 20 192.0.2.9 >&2; echo reached'
forwards after
"#;
    let Some(ran) = on_a_machine(lines) else { return };
    assert_eq!(ran.ok().out, "00 before\nreached\n00 after\n");
}

#[test]
fn the_machine_forwards_for_the_wire_only() {
    // What comes from beyond and is for elsewhere does not get through the machine.
    let lines = r#"
ip link set other up; ip link set other-end up
ip address add 203.0.113.1/24 dev other
nsenter -t $world -n ip route add default via 192.0.2.1
sent() { grep " other:\|^other:" /proc/net/dev; }
mkfifo hold
$T wire pair.toml --outside -- sh -c 'echo up; cat hold' > said &
wire=$!
until grep -q up said; do sleep 0.01; done
forwards meanwhile
ip neighbour add 203.0.113.7 lladdr 02:00:00:00:00:07 dev other
before=$(sent)
nsenter -t $world -n ping -q -c 2 -i 0.2 -W 1 203.0.113.7 >&2 || true
[ "$(sent)" = "$before" ] && echo nothing came through
echo > hold
wait $wire
forwards after
"#;
    let Some(ran) = on_a_machine(lines) else { return };
    assert_eq!(ran.ok().out, "11 meanwhile\nnothing came through\n00 after\n");
}

#[test]
fn a_second_wire_on_the_machine_is_refused() {
    let lines = r#"
mkfifo hold
$T wire pair.toml --name one --outside -- sh -c 'echo up; cat hold' > said &
wire=$!
until grep -q up said; do sleep 0.01; done
$T wire pair.toml --name two --outside -- echo reached || echo "refused with $?"
echo > hold
wait $wire
$T wire pair.toml --name two --outside -- echo reached
"#;
    let Some(ran) = on_a_machine(lines) else { return };
    let ran = ran.ok();
    assert_eq!(ran.out, "refused with 1\nreached\n");
    assert!(ran.err.contains("the wire `one` already has this machine as its last host"), "{}", ran.err);
}

#[test]
fn a_killed_wire_leaves_the_machine_as_it_was() {
    let lines = r#"
$T wire up pair.toml --outside --foreground > said &
wire=$!
until grep -q up said; do sleep 0.01; done
forwards meanwhile
kill -KILL $wire
undone
forwards after
$T wire down --stale
$T wire pair.toml --outside -- ping -q -c 1 -W 20 192.0.2.9 >&2
forwards again
"#;
    let Some(ran) = on_a_machine(lines) else { return };
    assert_eq!(ran.ok().out, "11 meanwhile\n00 after\nremoved the remains of `pair`\n00 again\n");
}
