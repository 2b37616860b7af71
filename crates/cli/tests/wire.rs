//! Programs behind links, as a user runs them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::terminal::Terminal;
use support::{Bench, Ran};
use trunkline_core::Seed;
use trunkline_experiment::Experiment;
use trunkline_testkit::programs::is_installed;
use trunkline_testkit::skips::{Missing, skip, skip_without};
use trunkline_wire::ground::{Access, DeviceKind, GroundOptions, InitProgram};
use trunkline_wire::{Wire, WireOptions};

/// Three hosts in a row.
const CHAIN: &str = r#"
name = "chain"
duration = "1 s"

[hosts]
a = {}
b = {}
c = {}

[link.near]
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "5 ms"

[link.far]
between = ["b", "c"]
rate = "10 Mbit/s"
delay = "5 ms"
"#;

fn bench() -> Option<Bench> {
    Bench::with_wire("chain.toml", CHAIN)
}

fn command(bench: &Bench, arguments: &[&str]) -> Command {
    bench.command(&[&["wire"], arguments].concat())
}

fn wire(bench: &Bench, arguments: &[&str]) -> Ran {
    Ran::from(command(bench, arguments).output().expect("the program starts"))
}

/// A wire in front of this test.
struct Up(Child);

impl Up {
    fn start(bench: &Bench) -> Up {
        let mut up = command(bench, &["up", "chain.toml", "--foreground"]);
        let mut child = up.stdout(Stdio::piped()).spawn().expect("the program starts");
        let stdout = child.stdout.take().expect("standard output is a pipe");
        let said = BufReader::new(stdout).lines().next().expect("it says something").unwrap();
        assert_eq!(said, "wire `chain` is up");
        Up(child)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a process has ended, which it must within a minute.
fn end(mut child: Child) -> Option<i32> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn wires(bench: &Bench) -> usize {
    std::fs::read_dir(bench.path("trunkline/wires")).unwrap().count()
}

#[test]
fn a_program_runs_on_a_host_and_its_exit_code_is_ours() {
    let Some(bench) = bench() else { return };
    let ran = wire(&bench, &["chain.toml", "--at", "b", "--", "sh", "-c", "cat /proc/net/dev; pwd; exit 7"]);
    assert_eq!(ran.code, Some(7), "{}", ran.err);
    assert!(ran.out.contains("near:") && ran.out.contains("far:"), "{}", ran.out);
    assert!(ran.out.contains(bench.path("").to_str().unwrap().trim_end_matches('/')), "{}", ran.out);
    assert_eq!(wires(&bench), 0);
}

#[test]
fn names_of_hosts_resolve() {
    let Some(bench) = bench() else { return };
    let ran = wire(&bench, &["chain.toml", "--at", "c", "--", "cat", "/etc/hosts"]);
    assert!(ran.out.contains("198.18.0.1 a\n") && ran.out.contains("198.18.1.1 b\n"), "{}", ran.out);
}

#[test]
fn a_program_beside_runs_as_long_as_the_one_in_front() {
    let Some(bench) = bench() else { return };
    let line = "c=trap 'echo asked to end; exit' TERM; echo here; while :; do sleep 0.01; done";
    let ran = wire(&bench, &["chain.toml", "--with", line, "--with", "b=exit 3", "--", "sleep", "0.1"]);
    assert_eq!((ran.code, &*ran.out), (Some(0), ""), "{}", ran.err);
    for part in ["[c] here\n", "`exit 3` on `b` has ended (exit status: 3)", "[c] asked to end\n"] {
        assert!(ran.err.contains(part), "{part} in {}", ran.err);
    }
}

#[test]
fn every_line_of_a_program_beside_has_its_host_before_it() {
    let Some(bench) = bench() else { return };
    let with = [
        "--with",
        "b=echo out; echo err >&2; printf 'no end'",
        "--with",
        "c=echo one",
        "--with",
        "c=/bin/echo two",
    ];
    let mut program = command(&bench, &[&["chain.toml"], &with[..], &["--", "sleep", "0.1"]].concat());
    let ran = Ran::from(program.output().expect("the program starts")).ok();
    assert_eq!(ran.out, "");
    for line in ["[b] out", "[b] err", "[b] no end", "[c echo] one", "[c echo] two"] {
        assert!(ran.err.lines().any(|other| other == line), "{line} in {}", ran.err);
    }
    // At a terminal they print their lines at once.
    let line = "b=test -t 1 && test -t 2 && echo at a terminal";
    let mut terminal = Terminal::start(&command(&bench, &["chain.toml", "--with", line, "--", "cat"]));
    terminal.wait_for("[b] at a terminal\r\n");
    terminal.press("\x04");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_program_beside_that_does_not_want_to_end_is_ended() {
    let Some(bench) = bench() else { return };
    let line = "b=trap '' TERM; while :; do sleep 1; done";
    let program = command(&bench, &["chain.toml", "--with", line, "--", "true"]).spawn();
    assert_eq!(end(program.expect("the program starts")), Some(0));
    assert_eq!(wires(&bench), 0);
}

#[test]
fn a_wire_is_found_by_others_and_taken_down() {
    let Some(bench) = bench() else { return };
    let up = Up::start(&bench);
    let status = wire(&bench, &["status"]);
    assert!(status.out.contains("b  near  198.18.0.2 2001:2::2"), "{}", status.out);
    let again = wire(&bench, &["up", "chain.toml"]);
    assert_eq!(again.code, Some(2));
    assert!(again.err.contains("wire `chain` is up already"), "{}", again.err);
    let ran = wire(&bench, &["exec", "c", "--", "sh", "-c", "cat /proc/net/dev; exit 3"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    assert!(ran.out.contains("far:") && !ran.out.contains("near:"), "{}", ran.out);
    let nowhere = wire(&bench, &["exec", "d", "--", "true"]);
    assert_eq!(nowhere.code, Some(2));
    assert!(nowhere.err.contains("there is no host `d`; this wire has `a`, `b`, `c`"), "{}", nowhere.err);
    let down = wire(&bench, &["down"]);
    assert_eq!(down.code, Some(0), "{}", down.err);
    assert_eq!(wires(&bench), 0);
    drop(up);
    assert!(wire(&bench, &["exec", "c", "--", "true"]).err.contains("no wire is running"));
}

#[test]
fn a_program_on_a_host_sees_its_own_wire_and_does_it_no_harm() {
    let Some(bench) = bench() else { return };
    // Its wire's process has no number there.
    let line = "\"$0\" wire set near.rate=5mbit && \"$0\" wire down --stale && \"$0\" wire chain.toml -- true; echo $?; \
                \"$0\" wire down; echo $?; \"$0\" wire exec a -- true; echo $?; \"$0\" wire status --json";
    let program = env!("CARGO_BIN_EXE_trunkline");
    let ran = wire(&bench, &["chain.toml", "--", "sh", "-c", line, program]);
    assert!(
        ran.out.starts_with("2\n2\n2\n") && ran.out.contains("\"running\": true"),
        "{} {}",
        ran.out,
        ran.err
    );
    assert!(ran.err.contains("wire `chain` is up already"), "{}", ran.err);
    assert!(ran.err.contains("can be entered and ended only where it was started"), "{}", ran.err);
    assert_eq!(wires(&bench), 0);
}

#[test]
fn a_wire_that_is_killed_takes_its_programs_with_it() {
    let Some(bench) = bench() else { return };
    let mut up = Up::start(&bench);
    let line = "setsid sleep 1000 & echo on; sleep 1000";
    let mut program = command(&bench, &["exec", "c", "--", "sh", "-c", line]);
    let mut program = program.stdout(Stdio::piped()).spawn().expect("the program starts");
    let stdout = program.stdout.take().expect("standard output is a pipe");
    assert_eq!(BufReader::new(stdout).lines().next().expect("it says something").unwrap(), "on");
    up.0.kill().unwrap();
    up.0.wait().unwrap();
    // Killed by the kernel, as a shell has it.
    assert_eq!(end(program), Some(137));
    assert_eq!(wires(&bench), 1);
    assert!(wire(&bench, &["status"]).out.contains("has died"));
    assert_eq!(wire(&bench, &["down", "--stale"]).out, "removed the remains of `chain`\n");
    assert_eq!(wires(&bench), 0);
}

#[test]
fn a_user_without_privileges_has_one_too() {
    const NOBODY: u32 = 65_534;
    let Some(bench) = bench() else { return };
    let folder = bench.path("");
    if std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).is_err() {
        return skip("this is not root, so all other tests are without privileges too");
    }
    // The folder was root's a moment ago.
    std::fs::remove_dir_all(bench.path("trunkline")).unwrap();
    let nobody = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]);
        command.args(arguments).current_dir(&folder).env("XDG_RUNTIME_DIR", &folder);
        Ran::from(command.output().expect("setpriv is there"))
    };
    let program = env!("CARGO_BIN_EXE_trunkline");
    let reachable = nobody(&[program, "--version"]);
    if reachable.code != Some(0) {
        return skip(&format!("the user `nobody` may not run this program: {}", reachable.err));
    }
    let ran = nobody(&[program, "wire", "chain.toml", "--", "sh", "-c", "id -u; cat /proc/net/dev"]);
    if ran.err.contains("does not allow you to create network namespaces") {
        return skip_without(Missing::Namespaces, &ran.err);
    }
    let ran = ran.ok();
    assert!(ran.out.starts_with("0\n") && ran.out.contains("near:"), "{}", ran.out);
    assert_eq!(wires(&bench), 0);
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let Some(bench) = bench() else { return };
    let said = [
        (&["chain.toml", "--at", "d", "--", "true"][..], "there is no host `d`"),
        (
            &["chain.toml", "--with", "iperf3 -s", "--", "true"],
            "`--with` takes a host and a shell command line",
        ),
        (&["chain.toml", "--cores", "0,9999", "--", "true"], "cannot use core 9999"),
        (&["chain.toml", "--name", "a/b", "--", "true"], "invalid wire name `a/b`"),
        (&["nothing.toml", "--", "true"], "nothing.toml: does not exist"),
        (&["down"], "no wire is running"),
    ];
    for (arguments, expected) in said {
        let ran = wire(&bench, arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
    }
    assert_eq!(wires(&bench), 0);
}

#[test]
fn a_host_cuts_packets_for_the_smaller_direction_of_a_link() {
    let Some(bench) = bench() else { return };
    if !is_installed("ping", "the Debian package `iputils-ping`") {
        return;
    }
    let uneven = CHAIN.replacen("delay", "mtu = \"1000 B\"\nbackward = { mtu = \"1500 B\" }\ndelay", 1);
    bench.write("uneven.toml", &uneven);
    // Packets that may be cut, as large as the other direction takes, over the near link and on to the far one.
    for (at, to) in [("a", "near.b"), ("a", "c"), ("b", "near.a"), ("c", "a")] {
        let ping = ["ping", "-4", "-M", "dont", "-s", "1400", "-c", "1", "-W", "5", to];
        wire(&bench, &[&["uneven.toml", "--at", at, "--"][..], &ping].concat()).ok();
    }
}

#[test]
fn packets_cross_two_links_and_the_host_between() {
    if bench().is_none() {
        return;
    }
    // A program with several threads cannot enter a user namespace: this test needs root.
    let access = match Access::enter() {
        Ok(access) => access,
        Err(why) => return skip(&why.to_string()),
    };
    let has_tun = std::path::Path::new("/dev/net/tun").exists();
    if !has_tun {
        skip_without(Missing::Tun, "there is no /dev/net/tun");
    }
    for devices in [DeviceKind::Ring, DeviceKind::Tun].into_iter().take(1 + usize::from(has_tun)) {
        let wire = up(&access, devices);
        let socket = |host: &str, address: &str| {
            let bound = wire.host(host).unwrap().run(|| UdpSocket::bind(address)).unwrap().unwrap();
            bound.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            bound
        };
        for [from, to] in
            [["198.18.0.1:5000", "198.18.1.2:5000"], ["[2001:2::1]:5000", "[2001:2:0:1::2]:5000"]]
        {
            let (a, c) = (socket("a", from), socket("c", to));
            a.send_to(b"across", to).unwrap();
            let mut into = [0; 16];
            let (length, sender) = c.recv_from(&mut into).unwrap();
            assert_eq!((&into[..length], sender.to_string().as_str()), (&b"across"[..], from));
        }
        assert!(wire.down().links.iter().all(Result::is_ok));
    }
}

/// A wire of this process.
fn up(access: &Access, devices: DeviceKind) -> Wire {
    let experiment = Experiment::parse(CHAIN, "chain.toml", &()).unwrap();
    let init = InitProgram {
        program: env!("CARGO_BIN_EXE_trunkline").into(),
        arguments: vec!["wire".into(), "init".into()],
    };
    let ground = GroundOptions {
        name: format!("test-{}", std::process::id()),
        file: "chain.toml".into(),
        devices,
        outside: false,
        init,
    };
    let options = WireOptions {
        ground,
        seed: Seed::new(1, 0),
        spin: trunkline_core::Duration::ZERO,
        cores: Vec::new(),
    };
    Wire::up(&experiment.points.first().scenario, access, &options).unwrap()
}
