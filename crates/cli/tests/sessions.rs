//! `send`, `receive` and `reflect` as a user runs them, over loopback.

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command};

use support::{Bench, Ran};
use trunkline_testkit::real_time::in_real_time;

/// A program that serves, its address, whom it serves, and what else it says.
struct Serving {
    child: Child,
    address: String,
    whom: String,
    said: BufReader<ChildStderr>,
}

impl Serving {
    fn start(bench: &Bench, arguments: &[&str]) -> Serving {
        let mut child = bench.start(&[arguments, &["--listen", "127.0.0.1:0"]].concat());
        let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut first = String::new();
        said.read_line(&mut first).expect("it says where it is");
        let address = first.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        let mut whom = String::new();
        said.read_line(&mut whom).expect("it says whom it serves");
        Serving { child, address, whom, said }
    }

    /// Interrupts it as Ctrl-C does.
    #[track_caller]
    fn interrupt(self) -> Ran {
        interrupt(&self.child);
        self.end()
    }

    /// Waits until it ends.
    #[track_caller]
    fn end(mut self) -> Ran {
        let mut ran = Ran::default();
        self.said.read_to_string(&mut ran.err).expect("it ends");
        let mut printed = self.child.stdout.take().expect("it is piped");
        printed.read_to_string(&mut ran.out).expect("it ends");
        ran.code = self.child.wait().expect("it ends").code();
        ran
    }
}

/// A failing test leaves no program running.
impl Drop for Serving {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
}

#[test]
fn a_reflector_is_measured() {
    in_real_time(|| {
        let bench = Bench::new();
        let reflector = Serving::start(&bench, &["reflect"]);
        let send = |more: &[&str]| {
            let fixed = ["send", &reflector.address, "--from", "tone", "--channels", "1", "--blocks", "30"];
            bench.run(&[&fixed, more].concat()).ok()
        };
        let json = send(&["--json", "--per-channel", "--fragment", "1024"]).json();
        assert_eq!(json["round_trip"]["count"], 30, "{json:#}");
        assert_eq!(json["counts"]["lost"], 0, "{json:#}");
        assert!(
            json["round_trip"]["jitter"].is_f64() && json["added"]["capture"]["p99"].is_f64(),
            "{json:#}"
        );
        let table = send(&["--to", "none", "--playout", "100ms"]).out;
        for row in [
            "capture block",
            "network, there and back",
            "mouth to ear",
            "jitter (mean absolute deviation)",
            "xruns",
        ] {
            assert!(table.contains(row), "no {row}:\n{table}");
        }
        let ended = reflector.interrupt().ok();
        assert!(ended.err.contains("session 1 with 127.0.0.1:"), "{ended:#?}");
        assert!(ended.err.contains("session 2 has ended"), "{ended:#?}");
    });
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    in_real_time(|| {
        let bench = Bench::new();
        let mut receiver = Serving::start(&bench, &["receive", "--to", "none", "--once", "--json"]);
        let sender = bench.start(&["send", &receiver.address, "--from", "noise", "--json"]);
        std::thread::sleep(std::time::Duration::from_millis(700));
        let mut began = String::new();
        receiver.said.read_line(&mut began).expect("a session starts");
        assert!(began.contains("2 channels at 44100 Hz as `i16` in blocks of 470 frames"), "{began}");
        interrupt(&sender);
        let sent = Ran::from(sender.wait_with_output().expect("it ends"));
        assert_eq!(sent.code, Some(130), "{sent:#?}");
        assert!(sent.json()["counts"]["sent"].as_u64().is_some_and(|count| count > 10), "{sent:#?}");
        let received = receiver.end().ok();
        assert!(received.json()["ended"].is_null(), "a goodbye is an end in order");
    });
}

#[test]
fn what_cannot_be_is_said_in_a_sentence() {
    let bench = Bench::new();
    let refused = |arguments: &[&str], code, expected: &str| {
        let ran = bench.run(arguments);
        assert_eq!(ran.code, Some(code), "{ran:#?}");
        assert!(ran.err.contains(expected), "{ran:#?}");
    };
    refused(&["send", "127.0.0.1:9", "--from", "tone"], 1, "no server responds at 127.0.0.1:9");
    refused(&["send", "nowhere.invalid", "--from", "tone"], 2, "cannot resolve `nowhere.invalid`");
    refused(&["probe", "nowhere.invalid"], 2, "cannot resolve `nowhere.invalid`");
    refused(&["send", "127.0.0.1", "--from", "tape"], 2, "`tape` is not a source or output of audio");
    refused(
        &["send", "127.0.0.1", "--from", "tone", "--fec", "xor"],
        2,
        "expected `xor:N` (such as `xor:4`) or `rs:N+M`",
    );
    refused(&["send", "127.0.0.1", "--from", "tone", "--playout", "deep"], 2, "expected a duration");
    refused(&["send", "127.0.0.1", "--from", "missing.wav"], 2, "`missing.wav` cannot be read");
    refused(
        &["send", "127.0.0.1", "--from", "tone", "--to", "tone"],
        2,
        "nothing can be played to `tone`; expected `jack`",
    );
    refused(
        &["send", "127.0.0.1", "--from", "tone", "--rate", "96000", "--block", "8192"],
        2,
        "choose a smaller block (`--block`",
    );
    bench.write("cut.wav", &include_bytes!("../../../examples/speech.wav")[..60_000]);
    refused(
        &["send", "127.0.0.1:9", "--from", "cut.wav"],
        1,
        "warning: `cut.wav` is cut short: it announces",
    );
    refused(
        &["receive", "--listen", "192.0.2.1:4780", "--to", "none"],
        1,
        "it is not an address of this host",
    );

    refused(&["receive", "--to", "none", "--max-length", "0s"], 2, "expected a time longer than zero");
    refused(&["receive", "--to", "noise"], 2, "nothing can be played to `noise`; expected `jack`");
    refused(&["receive", "--to", "x.mp3"], 2, "a path that ends in `.wav` or `.flac`, or `none`");
    refused(&["receive", "--to", "none", "--playout", "20s"], 2, "a playout buffer is at most 9 s deep");
    refused(
        &["receive", "--to", "no/take.wav"],
        1,
        "`no/take.wav` cannot be written: its folder does not exist",
    );

    let receiver = Serving::start(&bench, &["receive", "--to", "none", "--channels", "2"]);
    let more = ["send", &receiver.address, "--from", "tone", "--channels", "3"];
    refused(&more, 1, "it plays 2 channels, but the stream has 3");
    receiver.interrupt().ok();
}

#[test]
#[cfg(unix)]
fn strangers_are_told_who_is_served_and_a_key_lets_its_holders_in() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    let key = bench.path("studio.key");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef\n").expect("it is written");
    let key_file = key.to_str().expect("it is text");
    let mode =
        |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    let send = |to: &Serving, more: &[&str]| {
        let fixed = ["send", &to.address, "--from", "tone", "--channels", "1", "--blocks", "3"];
        bench.run(&[&fixed, more].concat())
    };

    mode(0o644);
    let readable = bench.run(&["reflect", "--listen", "127.0.0.1:0", "--key-file", key_file]);
    assert_eq!(readable.code, Some(2), "{readable:?}");
    assert!(readable.err.contains("other users can read the key file"), "{}", readable.err);
    mode(0o600);

    let closed = Serving::start(&bench, &["reflect", "--allow", "192.0.2.0/24"]);
    assert!(
        closed.whom.contains("serves anyone in 192.0.2.0/24, without a key; they may"),
        "{}",
        closed.whom
    );
    let refused = send(&closed, &[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("it serves 192.0.2.0/24, not 127.0.0.1"), "{}", refused.err);
    closed.interrupt().ok();

    let open = Serving::start(&bench, &["receive", "--to", "none"]);
    let private = "serves anyone on this host, its IPv6 networks, and private, link-local and CGNAT networks, \
                   without a key; they may play audio at `none`; peers on the Internet need `--pair`, `--allow \
                   NETWORK` or `--key-file FILE`";
    assert!(open.whom.contains(private), "{}", open.whom);
    open.interrupt().ok();

    let keyed = Serving::start(&bench, &["reflect", "--key-file", key_file]);
    assert!(keyed.whom.contains("serves peers that have the key, from any address"), "{}", keyed.whom);
    let without = send(&keyed, &[]);
    assert_eq!(without.code, Some(1), "{without:?}");
    assert!(without.err.contains("`--key-file`"), "{}", without.err);
    send(&keyed, &["--key-file", key_file]).ok();
    keyed.interrupt().ok();
}

#[test]
fn hosts_that_have_paired_are_served_at_every_address_until_they_are_revoked() {
    let bench = Bench::new();
    let mut reflector = Serving::start(&bench, &["reflect", "--allow", "192.0.2.0/24", "--pair"]);
    let code = loop {
        let mut line = String::new();
        assert!(reflector.said.read_line(&mut line).expect("it goes on") > 0, "it shows no code");
        if let Some((before, code)) = line.trim().split_once(" --pair ") {
            assert!(before.starts_with("trunkline send "), "{line}");
            break code.to_owned();
        }
    };
    let send = |more: &[&str]| {
        let fixed = ["send", &reflector.address, "--from", "tone", "--channels", "1", "--blocks", "3"];
        bench.run(&[&fixed, more].concat())
    };
    let refused = send(&[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("pair with it (`--pair`)"), "{}", refused.err);
    let paired = send(&["--pair", &code]).ok();
    assert!(paired.err.contains("paired with "), "{}", paired.err);
    send(&[]).ok();
    let probe = [
        "probe",
        &reflector.address,
        "--budget",
        "1s",
        "--transports",
        "udp",
        "--for",
        "rehearsal",
        "--no-load",
    ];
    bench.run(&probe).ok();

    let used = send(&["--pair", &code]);
    assert!(
        used.err.contains("the code has already been used; make a new one with `--pair`"),
        "{}",
        used.err
    );
    let typo = send(&["--pair", "7VQ2-M0KX"]);
    assert_eq!(typo.code, Some(2), "{typo:?}");

    let known = bench.run(&["peer", "list", "--json"]).ok().json();
    let name = known["clients"][0]["name"].as_str().expect("it is known").to_owned();
    assert_eq!(known["servers"][0]["address"], reflector.address.as_str(), "{known}");
    bench.run(&["peer", "revoke", &name]).ok();
    let revoked = send(&[]);
    assert_eq!(revoked.code, Some(1), "{revoked:?}");
    assert!(revoked.err.contains("it does not know the key of this host"), "{}", revoked.err);
    bench.run(&["peer", "forget", &name]).ok();
    let ended = reflector.interrupt().ok();
    assert!(ended.err.contains("has paired with this host"), "{}", ended.err);
    assert!(ended.err.contains("could not pair: the code has already been used"), "{}", ended.err);
}
