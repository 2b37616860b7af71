//! `trunkline probe`: what it recommends can be typed, and it runs against a reflector.

mod support;

use std::sync::Arc;

use clap::Parser as _;
use support::Bench;
use trunkline::args::{Cli, Command};
use trunkline_advisor::{Blocks, Judgement, PROTECTIONS, Stages, Transport, Use, commands};
use trunkline_audio::pipeline::Protection;
use trunkline_calls::{Server, ServerOptions, Stop};
use trunkline_core::{Duration, Rate, Ratio};

fn parsed(line: &str) -> Command {
    Cli::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("`{line}`: {error}")).command
}

fn judgement(transport: Transport, blocks: Blocks, protection: Protection) -> Judgement {
    Judgement {
        transport,
        blocks,
        protection,
        depth: Duration::from_micros(12_300),
        stages: Stages::default(),
        mouth_to_ear: Duration::ZERO,
        measured: 1,
        lost: Ratio::ZERO,
        late: Ratio::ZERO,
        concealed: Ratio::ZERO,
        longest_gap: Duration::ZERO,
        burst_r: 1.0,
        r: 90.0,
        mos: 4.4,
        rate: Rate::ZERO,
    }
}

#[test]
fn every_command_that_can_be_recommended_is_one_that_there_is() {
    let music = |sample_bytes| Blocks { sample_rate: 96_000, frames: 64, channels: 8, sample_bytes };
    let formats = [music(2), music(3), music(4), Blocks::telephone(160)];
    for purpose in Use::ALL {
        for transport in Transport::all() {
            for (blocks, protection) in
                formats.iter().flat_map(|blocks| PROTECTIONS.map(|protection| (*blocks, protection)))
            {
                let (answer, send) =
                    commands("host.example:4781", purpose, &judgement(transport, blocks, protection));
                let Command::Send(send) = parsed(&send) else { panic!("`{send}` does not send") };
                assert_eq!(send.host, "host.example:4781");
                assert_eq!(send.transport.to_string(), transport.name());
                assert_eq!((send.channels, send.stream.rate), (blocks.channels, Some(blocks.sample_rate)));
                // Of the telephone as many frames of a device of 48 kHz as last as long.
                let frames = if blocks.is_telephone() { 960 } else { blocks.frames };
                assert_eq!(send.stream.block, frames);
                assert_eq!(send.stream.redundancy.is_some(), matches!(protection, Protection::Repeat(_)));
                let is_code = matches!(protection, Protection::Xor { .. } | Protection::ReedSolomon { .. });
                assert_eq!(send.stream.fec.is_some(), is_code);
                let waits = send.sockets.send_timeout > Duration::from_secs(1);
                assert_eq!(waits, transport.is_reliable());
                let Command::Receive(receive) = parsed(&answer) else {
                    panic!("`{answer}` does not receive")
                };
                // A recording that must be whole is exact, and has no turns for which its blocks wait.
                assert_eq!(receive.exact, purpose == Use::Recording, "{answer}");
                if !receive.exact {
                    // The forecast takes cards to play in no longer blocks.
                    assert_eq!(receive.block, Some(frames.min(512)));
                    assert_eq!(receive.playing.playout, "12.3ms".parse().unwrap());
                }
            }
        }
    }
}

#[test]
fn a_reflector_is_probed_and_the_advice_is_written() {
    let options = ServerOptions { address: "127.0.0.1:0".parse().unwrap(), ..ServerOptions::default() };
    let server = Server::bind(options, ()).unwrap();
    let (address, stop) = (server.local_address().unwrap().to_string(), Arc::new(Stop::new().unwrap()));
    let serving = Arc::clone(&stop);
    let thread = std::thread::spawn(move || server.serve(&serving).unwrap());
    let bench = Bench::new();
    let arguments = ["probe", &address, "--budget", "2s", "--transports", "udp", "--for", "rehearsal"];
    let ran = bench.run(&[&arguments[..], &["--no-load", "--json", "--out", "advice"]].concat()).ok();
    stop.stop();
    thread.join().unwrap();
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["recommendations"][0]["best"]["transport"], "udp");
    let line = json["recommendations"][0]["send"].as_str().unwrap();
    assert!(matches!(parsed(line), Command::Send(send) if send.host == address));
    assert!(std::fs::read_to_string(bench.path("advice/advice.html")).unwrap().contains("rehearsal"));
    assert!(bench.path("advice/advice.json").exists());
}

#[test]
fn what_cannot_be_asked_is_refused_in_a_sentence() {
    let bench = Bench::new();
    for (arguments, sentence) in [
        (&["probe", "127.0.0.1", "--budget", "10 ms"][..], "`--budget 10 ms` is not between 1 s and 1 h"),
        (&["probe", "127.0.0.1", "--for", "karaoke"], "expected `rehearsal`, `recording` or `telephony`"),
        (&["probe", "127.0.0.1", "--transports", "udp,ipx"], "cannot measure transport `ipx`"),
        (&["probe", "127.0.0.1:1", "--budget", "1s"], "127.0.0.1:1"),
    ] {
        let ran = bench.run(arguments);
        assert!(ran.err.contains(sentence), "{}", ran.err);
        assert_ne!(ran.code, Some(0));
    }
}
