//! From one JACK server to another: a tone of JACK's own is captured, sent, received, played and recorded by JACK's own
//! recorder. The servers are synchronous: they wait for clients that the machine is late to run, so that what is heard
//! depends on us, and on the xruns that a server counts when it is late itself.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use support::{Bench, Ran};
use trunkline_testkit::jack::Server;
use trunkline_testkit::real_time::in_real_time;
use trunkline_testkit::tone::{Heard, listen};

/// What `jack_simple_client` plays: 200 samples are a period.
const TONE: f64 = 48_000.0 / 200.0;

/// A process that ends with the test.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Running {
        let quiet = || Stdio::null();
        let mut command = Command::new(program);
        command.args(arguments).env("JACK_NO_START_SERVER", "1");
        Running(command.stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // In order: a JACK server that is killed keeps its place among the eight that a machine has.
        let _ = Command::new("kill").arg(self.0.id().to_string()).stderr(Stdio::null()).status();
        let _ = self.0.wait();
    }
}

fn heard(path: &Path) -> Heard {
    let mut reader = hound::WavReader::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rate = reader.spec().sample_rate;
    let samples: Vec<f32> = reader.samples::<i16>().map(|s| f32::from(s.unwrap()) / 32_768.0).collect();
    listen(&samples, rate, 0.05)
}

fn from_server_to_server(period: u32) {
    in_real_time(|| {
        // Two servers are enough for a machine with two cores.
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let bench = Bench::new();
        let Some((near, far)) = Server::start(48_000, period).zip(Server::start(48_000, period)) else {
            return;
        };
        let _tone = Running::start("jack_simple_client", &["tone", near.name()]);
        near.until_there_is("tone:output1");

        let listening = ["receive", "--listen", "127.0.0.1:0", "--once", "--json"];
        let playing = ["--to", "jack", "--jack-server", far.name(), "--playout", "400ms"];
        let mut receiver = bench.start(&[&listening[..], &playing[..]].concat());
        let mut told = BufReader::new(receiver.stderr.take().unwrap()).lines();
        let first = told.next().unwrap().unwrap();
        let address = first.strip_prefix("waiting for senders at ").unwrap_or_else(|| panic!("{first}"));
        let sending = ["send", address, "--from", "jack:tone:*", "--jack-server", near.name()];
        let sender = bench.start(&[&sending[..], &["--duration", "5s", "--json"]].concat());

        far.until_there_is("trunkline:output_1");
        // The tone is on its way, and in the playout buffer.
        std::thread::sleep(Duration::from_millis(1200));
        let recorded = bench.path("recorded.wav");
        // Its buffer holds all that it records: it skips where a slow disk keeps it from writing in time.
        let recorder = Command::new("jack_rec")
            .args([
                "-f",
                &recorded.to_string_lossy(),
                "-d",
                "2",
                "-b",
                "16",
                "-B",
                "131072",
                "trunkline:output_1",
            ])
            .env("JACK_DEFAULT_SERVER", far.name())
            .env("JACK_NO_START_SERVER", "1")
            .output()
            .unwrap();
        assert!(recorder.status.success(), "{recorder:?}");
        let sent = Ran::from(sender.wait_with_output().unwrap()).ok();
        told.for_each(drop);
        let received = Ran::from(Output { stderr: Vec::new(), ..receiver.wait_with_output().unwrap() }).ok();

        let (sent, received) = (sent.json(), received.json());
        assert_eq!(received["counts"]["lost"], 0, "{received:#}");
        assert_eq!(received["counts"]["late"], 0, "{received:#}");
        for side in [&sent, &received] {
            assert!(side["counts"]["xruns"].is_u64(), "{side:#}");
            assert!(side["stages"]["network"].as_f64().is_some_and(|network| network < 0.4), "{side:#}");
        }
        // After an xrun of a server playout goes back to its time: that is heard, as a leap out of the tone and into it.
        let xruns: u64 = [&sent, &received].iter().filter_map(|side| side["counts"]["xruns"].as_u64()).sum();
        let heard = heard(&recorded);
        let off = if xruns == 0 { 0.2 } else { 1.0 };
        assert!((heard.frequency - TONE).abs() < off, "{heard:?} although {received:#}");
        assert!(heard.lasting > 1.5, "{heard:?}");
        assert!(heard.breaks.len() as u64 <= 2 * xruns, "{heard:?} although {received:#}");
    });
}

#[test]
fn a_tone_goes_from_server_to_server_in_blocks_of_64_frames() {
    from_server_to_server(64);
}

#[test]
fn a_tone_goes_from_server_to_server_in_blocks_of_1024_frames() {
    from_server_to_server(1024);
}
