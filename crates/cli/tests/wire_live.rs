//! A running wire, watched, changed and captured as a user does.
#![cfg(target_os = "linux")]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::terminal::Terminal;
use support::{Bench, Ran};
use trunkline_testkit::programs::is_installed;
use trunkline_testkit::skips::{Missing, skip_without};

const FILE: &str = r#"
name = "pair"
duration = "1 s"

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "10 Mbit/s"

[link.trunk.backward]
loss = "100 %"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice" }
"#;

/// Sends a packet from the host where it runs.
const SEND: [&str; 3] = ["bash", "-c", "echo hello > /dev/udp/198.18.0.2/9"];
const SEND_BACK: [&str; 3] = ["bash", "-c", "echo hello > /dev/udp/198.18.0.1/9"];

/// A folder with the file in it; `None`, as a skip, where no wire can be, or none of TUN interfaces.
fn bench() -> Option<Bench> {
    if !Path::new("/dev/net/tun").exists() {
        skip_without(Missing::Tun, "there is no /dev/net/tun");
        return None;
    }
    Bench::with_wire("pair.toml", FILE)
}

fn command(bench: &Bench, arguments: &[&str]) -> Command {
    bench.command(&[&["wire"], arguments].concat())
}

fn wire(bench: &Bench, arguments: &[&str]) -> Ran {
    Ran::from(command(bench, arguments).output().expect("the program starts"))
}

/// The wire of the file, in front of this test.
struct Up<'b> {
    bench: &'b Bench,
    child: Child,
}

impl Up<'_> {
    fn start(bench: &Bench) -> Up<'_> {
        let mut up = command(bench, &["up", "pair.toml", "--foreground"]);
        let mut child = up.stdout(Stdio::piped()).spawn().expect("the program starts");
        let stdout = child.stdout.take().expect("standard output is a pipe");
        let said = BufReader::new(stdout)
            .lines()
            .next()
            .expect("it says something")
            .expect("its output can be read");
        assert_eq!(said, "wire `pair` is up");
        Up { bench, child }
    }

    /// Sends a packet.
    fn send(&self) {
        wire(self.bench, &[&["exec", "a", "--"], &SEND[..]].concat()).ok();
    }

    fn status(&self) -> Value {
        wire(self.bench, &["status", "--json"]).ok().json()["wires"][0].clone()
    }

    /// Waits until the direction from `a` has counted something.
    fn wait_for(&self, pointer: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let direction = self.status()["counters"]["links"][0]["directions"][0].clone();
            if direction.pointer(pointer).and_then(Value::as_u64).is_some_and(|count| count > 0) {
                return;
            }
            assert!(Instant::now() < until, "{pointer} does not come: {direction:#}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_link_is_changed_while_it_runs_and_its_counters_tell() {
    let Some(bench) = bench() else { return };
    let up = Up::start(&bench);
    up.send();
    up.wait_for("/delivered/packets");
    wire(&bench, &["set", "trunk.forward.loss=100 %", "trunk.rate=5mbit"]).ok();
    up.send();
    up.wait_for("/dropped/link-loss");
    wire(&bench, &["set", "trunk.up=false"]).ok();
    up.send();
    up.wait_for("/dropped/link-down");
    wire(&bench, &["set", "trunk.up=true", "trunk.forward.queue=fq-codel"]).ok();
    let refused = wire(&bench, &["set", "trunk.rats=5mbit"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("unknown key `trunk.rats`; did you mean `trunk.rate`?"), "{}", refused.err);
}

#[test]
fn it_is_watched_on_the_terminal_and_by_prometheus() {
    let Some(bench) = bench() else { return };
    let up = Up::start(&bench);
    let view = wire(&bench, &["top"]).ok().out;
    let row = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = view.lines().map(row).collect();
    assert_eq!(rows[0][..3], ["link", "from", "to"], "{view}");
    assert_eq!((&rows[1][..3], &rows[2][..3]), (&row("trunk a b")[..], &row("trunk b a")[..]), "{view}");

    let socket = up.status()["socket"].as_str().expect("the socket's path").to_owned();
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: wire\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\ntrunkline_link_up{wire=\"pair\",link=\"trunk\"} 1\n"), "{answer}");
}

#[test]
fn q_leaves_the_view_and_the_terminal_is_as_it_was() {
    let Some(bench) = bench() else { return };
    let up = Up::start(&bench);
    for (key, code) in [("q", 0), ("\x03", 130)] {
        let mut terminal = Terminal::start(&command(&bench, &["top"]));
        // The second drawing: keys are taken by then.
        terminal.wait_for("trunk");
        terminal.wait_for("\x1b[J");
        terminal.wait_for("trunk");
        assert!(!terminal.is_cooked());
        terminal.press(key);
        assert_eq!(terminal.end(), Some(code), "after {key:?}");
        assert!(terminal.is_cooked());
    }
    let mut terminal = Terminal::start(&command(&bench, &["top"]));
    terminal.wait_for("trunk");
    drop(up);
    terminal.wait_for("wire `pair` has been taken down");
    assert_eq!(terminal.end(), Some(0));
    assert!(terminal.is_cooked());
}

#[test]
fn a_capture_tells_what_was_dropped() {
    let Some(bench) = bench() else { return };
    if !is_installed("tshark", "the Debian package `tshark`") {
        return;
    }
    // Over Ethernet it would be the question for the other's hardware address that is lost.
    let arguments = ["pair.toml", "--devices", "tun", "--pcap", "captured", "--at", "b", "--"];
    wire(&bench, &[&arguments[..], &SEND_BACK].concat()).ok();
    let comments = |end: &str| {
        let file = bench.path(&format!("captured/trunk-{end}.pcapng"));
        let fields = ["-T", "fields", "-e", "frame.comment"];
        let output =
            Command::new("tshark").arg("-r").arg(file).args(["-Y", "udp.port == 9"]).args(fields).output();
        String::from_utf8(output.expect("it was there before").stdout).unwrap()
    };
    assert_eq!(comments("b"), "dropped by the link: link-loss\n");
    assert_eq!(comments("a"), "", "it never came there");
}

#[test]
fn a_capture_on_a_full_disk_ends_and_the_program_does_not() {
    let Some(bench) = bench() else { return };
    std::fs::create_dir(bench.path("captured")).unwrap();
    std::os::unix::fs::symlink("/dev/full", bench.path("captured/trunk-a.pcapng")).unwrap();
    let ran = wire(&bench, &[&["pair.toml", "--pcap", "captured", "--"], &SEND[..]].concat()).ok();
    assert!(
        ran.err.contains("the capture has ended early: captured/trunk-a.pcapng: the disk is full"),
        "{}",
        ran.err
    );
}

/// Sends three megabytes, and expects their hash back.
const CLIENT: &str = r#"
import hashlib, random, socket, time
data = random.Random(7).randbytes(3_000_000)
for attempt in range(200):
    try:
        connection = socket.create_connection(("server", 7000))
        break
    except OSError:
        time.sleep(0.05)
connection.sendall(data)
connection.shutdown(socket.SHUT_WR)
assert connection.makefile("rb").read() == hashlib.sha256(data).digest()
"#;
const SERVER: &str = r#"
import hashlib, socket
connection, _ = socket.create_server(("", 7000)).accept()
connection.sendall(hashlib.sha256(connection.makefile("rb").read()).digest())
connection.close()
"#;

/// The kernel hands many segments to the relay as one packet without checksums; the link must see ordinary packets.
#[test]
fn tcp_crosses_a_link_in_packets_of_its_mtu_with_right_checksums() {
    let Some(bench) = bench() else { return };
    let tshark = "the Debian package `tshark`";
    if !is_installed("tshark", tshark) || !is_installed("python3", "the Debian package `python3`") {
        return;
    }
    bench.write("client.py", CLIENT);
    bench.write("server.py", SERVER);
    for devices in ["tun", "ethernet"] {
        let with = ["--devices", devices, "--pcap", devices, "--with", "server=python3 server.py", "--"];
        let arguments =
            [&["--link", "200 Mbit/s, 1 ms, 1 MB"], &with[..], &["python3", "client.py"]].concat();
        wire(&bench, &arguments).ok();
        for end in ["client", "server"] {
            let file = bench.path(&format!("{devices}/link-{end}.pcapng"));
            let mut tshark = Command::new("tshark");
            tshark.arg("-r").arg(file).args([
                "-o",
                "tcp.check_checksum:TRUE",
                "-o",
                "ip.check_checksum:TRUE",
            ]);
            let fields = ["-Y", "tcp", "-T", "fields", "-e", "tcp.checksum.status", "-e", "tcp.len"];
            let output = tshark.args(fields).output().expect("it was there before");
            let text = String::from_utf8(output.stdout).unwrap();
            let packets: Vec<(&str, u32)> = text
                .lines()
                .filter_map(|line| line.split_once('\t'))
                .map(|(sum, len)| (sum, len.parse().unwrap()))
                .collect();
            let bytes: u32 = packets.iter().map(|(_, len)| len).sum();
            assert!(bytes >= 3_000_032, "{devices}, {end}: {bytes} bytes");
            let wrong = packets.iter().zip(1..).find(|((sum, len), _)| *sum != "1" || *len > 1460);
            assert_eq!(wrong, None, "{devices}, {end}, of {} packets", packets.len());
        }
    }
}
