//! Links described on the command line, measured by programs behind them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests too")]
#![allow(clippy::print_stderr, reason = "a test says why it is skipped")]

mod support;

use std::process::{Child, Stdio};

use support::{Bench, Ran};
use trunkline_testkit::programs::is_installed;
use trunkline_testkit::real_time::in_real_time;

const FILE: &str = r#"
name = "pair"
duration = "1 s"

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "10 Mbit/s"
"#;

fn bench() -> Option<Bench> {
    Bench::with_wire("pair.toml", FILE)
}

fn wire(bench: &Bench, arguments: &[&str]) -> Ran {
    bench.run(&[&["wire"], arguments].concat())
}

/// A wire in the background of these words; taken down when dropped.
struct Up<'b>(&'b Bench);

impl Up<'_> {
    fn start<'b>(bench: &'b Bench, words: &[&str]) -> Up<'b> {
        let said = wire(bench, &[&["up", "--name", "words"], words].concat()).ok();
        assert_eq!(said.out, "wire `words` is up\n");
        Up(bench)
    }

    /// Megabits of IP packets in a second that come to a host while more than the link carries are sent there, as its kernel
    /// counts them.
    fn rate_to(&self, to: &str) -> f64 {
        let (from, address) =
            if to == "server" { ("client", "198.18.0.2") } else { ("server", "198.18.0.1") };
        // Something has to listen, or the sender is refused.
        let program = env!("CARGO_BIN_EXE_trunkline");
        let sink = self.start_on(to, &format!("exec {program} reflect --listen 0.0.0.0:5000"));
        let line = format!(
            "exec 3> /dev/udp/{address}/5000; while :; do dd if=/dev/zero bs=1400 count=20 >&3 2>/dev/null; sleep 0.005; done"
        );
        let source = self.start_on(from, &line);
        let look = "date +%s%N; grep link: /proc/net/dev";
        let line = format!("sleep 1; {look}; sleep 2; {look}");
        let said = wire(self.0, &["exec", to, "--", "sh", "-c", &line]).ok().out;
        for mut program in [source, sink] {
            let _ = program.kill();
            let _ = program.wait();
        }
        let numbers: Vec<f64> = said
            .lines()
            .flat_map(|line| {
                let line = line.trim_start().trim_start_matches("link:");
                line.split_whitespace().take(2).map(|number| number.parse().unwrap()).collect::<Vec<f64>>()
            })
            .collect();
        let &[began, bytes, packets, ended, more_bytes, more_packets] = &numbers[..] else {
            panic!("{said}")
        };
        // The kernel counts the Ethernet header of 14 B too.
        let bits = 8.0 * (more_bytes - bytes - 14.0 * (more_packets - packets));
        bits / (ended - began) * 1e3
    }

    fn start_on(&self, host: &str, line: &str) -> Child {
        let mut command = self.0.command(&["wire", "exec", host, "--", "bash", "-c", line]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        wire(self.0, &["down", "--wire", "words"]);
    }
}

/// The round-trip times in milliseconds of those packets that came back.
fn ping(bench: &Bench, words: &[&str], count: usize) -> Vec<f64> {
    let count = count.to_string();
    let ping = ["--", "ping", "-i", "0.01", "-c", &count, "server"];
    let out = wire(bench, &[words, &ping].concat()).out;
    // 64 bytes from server (198.18.0.2): icmp_seq=1 ttl=64 time=60.4 ms
    let times = out.lines().filter_map(|line| line.split_once("time=")?.1.strip_suffix(" ms"));
    times.map(|time| time.parse().unwrap_or_else(|_| panic!("{out}"))).collect()
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

#[track_caller]
fn assert_near(measured: f64, asked: f64, share: f64, what: &str) {
    eprintln!("{what}: asked {asked}, measured {measured:.3}");
    assert!((measured / asked - 1.0).abs() < share, "{what}: asked {asked}, measured {measured}");
}

#[test]
fn rate_and_delay_of_a_link_change_over_time() {
    let Some(bench) = bench() else { return };
    if !is_installed("ping", "the Debian package `iputils-ping`") {
        return;
    }
    in_real_time(|| {
        let delay =
            r#"delay={ kind = "steps", steps = [["0 s", "10 ms"], ["1 s", "30 ms"]], every = "2 s" }"#;
        let times = ping(&bench, &["--link", &format!("20 Mbit/s, {delay}")], 400);
        // A few went there with the one delay and came back with the other.
        let (short, long): (Vec<f64>, Vec<f64>) = times.iter().partition(|&&time| time < 30.0);
        let long: Vec<f64> = long.into_iter().filter(|&time| time > 55.0).collect();
        assert_near(least(&short), 20.07, 0.02, "round trip over 10 ms each way, least (ms)");
        assert_near(least(&long), 60.07, 0.02, "round trip over 30 ms each way, least (ms)");
        // Ping takes a little more than four seconds: two periods and a part of a third.
        for (times, delay) in [(short, 10), (long, 30)] {
            let share = times.len() as f64 / 400.0;
            assert!((0.35..0.65).contains(&share), "{share} of the packets had {delay} ms each way");
        }
    });
    in_real_time(|| {
        // Two seconds are whole periods, wherever they begin.
        let rate = r#"rate={ kind = "steps", steps = [["0 s", "2 Mbit/s"], ["500 ms", "6 Mbit/s"]], every = "1 s" }"#;
        let up = Up::start(&bench, &["--link", rate]);
        assert_near(up.rate_to("server"), 4.0, 0.03, "2 and 6 Mbit/s in turn (Mbit/s)");
    });
}

#[test]
fn a_link_in_words_has_its_delay_and_its_loss() {
    let Some(bench) = bench() else { return };
    if !is_installed("ping", "the Debian package `iputils-ping`") {
        return;
    }
    in_real_time(|| {
        // 84 B there and back take 0.07 ms of transmission.
        let times = ping(&bench, &["--link", "20 Mbit/s, 30 ms, fq-codel"], 20);
        assert_near(least(&times), 60.07, 0.01, "round trip over 30 ms each way, least (ms)");
        // One packet that the machine holds up moves the mean of twenty.
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert_near(mean, 60.07, 0.1, "round trip over 30 ms each way, mean (ms)");
        let times = ping(&bench, &["--link", "10 ms", "--down", "25 ms"], 20);
        assert_near(least(&times), 35.0, 0.02, "round trip over 10 ms up and 25 ms down (ms)");
    });
    // One draw in each direction: 0.49 come back, with a standard deviation of 0.035.
    let came = ping(&bench, &["--link", "1 ms, loss 30 %"], 200).len() as f64 / 200.0;
    assert!((0.35..0.63).contains(&came), "{came} came back over two draws of 30 % loss");
}

#[test]
fn each_direction_of_a_link_in_words_has_its_rate() {
    let Some(bench) = bench() else { return };
    in_real_time(|| {
        let up = Up::start(&bench, &["--link", "5 ms, fq-codel", "--up", "2 Mbit/s", "--down", "6 Mbit/s"]);
        assert_near(up.rate_to("server"), 2.0, 0.02, "up (Mbit/s)");
        assert_near(up.rate_to("client"), 6.0, 0.02, "down (Mbit/s)");
    });
}

#[test]
fn traces_give_the_rate_of_their_directions() {
    let Some(bench) = bench() else { return };
    // An opportunity of 1504 B every 4 ms and every 2 ms, of which 4 B a packet are framing.
    bench.write("up.trace", "4\n");
    bench.write("down.trace", "2\n");
    let of_opportunities = |every_ms: f64| 1504.0 * 8.0 / every_ms / 1e3 * 1428.0 / 1432.0;
    in_real_time(|| {
        let up = Up::start(&bench, &["--up", "trace=up.trace", "--down", "trace=down.trace"]);
        assert_near(up.rate_to("server"), of_opportunities(4.0), 0.02, "up by a trace (Mbit/s)");
        assert_near(up.rate_to("client"), of_opportunities(2.0), 0.02, "down by a trace (Mbit/s)");
    });
}

#[test]
fn a_wire_of_words_is_listed_by_them_and_changed_like_any_other() {
    let Some(bench) = bench() else { return };
    let _up = Up::start(&bench, &["--link", "20 Mbit/s, 30 ms", "--up", "1 Mbit/s"]);
    let status = wire(&bench, &["status"]).ok().out;
    assert!(status.starts_with("words: --link \"20 Mbit/s, 30 ms\" --up \"1 Mbit/s\" (process "), "{status}");
    wire(&bench, &["set", "link.forward.rate=2mbit"]).ok();
    let refused = wire(&bench, &["--link", "30 msx", "--", "true"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("--link: `30 msx` is not a rate"), "{}", refused.err);
    assert_eq!(wire(&bench, &["pair.toml", "--link", "30 ms", "--", "true"]).code, Some(2));
}

/// Global addresses are a LAN's if the host is in their network, and the Internet's if it only has a route to them.
#[test]
fn hosts_of_an_ipv6_lan_serve_each_other_and_no_others() {
    let Some(bench) = bench() else { return };
    if !is_installed("ip", "the Debian package `iproute2`") {
        return;
    }
    let program = env!("CARGO_BIN_EXE_trunkline");
    let add = "ip -6 address add dev trunk nodad";
    let server = format!(
        "{add} 2001:db8:7::2/64 && {add} 2001:db8:8::2/128 && ip -6 route add 2001:db8:8::/64 dev trunk && exec {program} reflect"
    );
    let probe = |network| {
        format!("{program} probe 2001:db8:{network}::2 --budget 2s --transports udp --no-load; echo rc $?")
    };
    let client =
        format!("{add} 2001:db8:7::1/64 && {add} 2001:db8:8::1/64 && sleep 1 && {}; {}", probe(7), probe(8));
    let ran =
        wire(&bench, &["pair.toml", "--with", &format!("b={server}"), "--", "bash", "-c", &client]).ok();
    let codes: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("rc ")).collect();
    assert_eq!(codes, ["rc 0", "rc 1"], "{} {}", ran.out, ran.err);
    assert!(ran.err.contains("not 2001:db8:8::1; to let this host in"), "{}", ran.err);
}
