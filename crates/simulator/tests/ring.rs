//! The ring of Weaver and McNabb 1992 from an experiment file to the figures of its monitor.

mod support;

use support::{parse, simulate};
use trunkline_core::Amount;
use trunkline_metrics::RepetitionSummary;

/// Voice both ways between two stations beside a generator whose frames are for nobody, 4,167 bytes each as the study
/// counts: 28 of IP and UDP are in the message's frame.
fn ring(load: &str) -> RepetitionSummary {
    let station = "class = \"synchronous\"\nttrt = \"10.1 ms\"\nkilometres = 0.1\n";
    let voice = |name: &str, from: &str, to: &str| {
        format!(
            "[flow.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\ntransport = \"udp\"\n\
             source = {{ kind = \"voice\", samples = 1024 }}\n"
        )
    };
    let text = format!(
        "name = \"ring\"\nduration = \"10 s\"\n[hosts]\na = {{}}\nb = {{}}\ngenerator = {{}}\n\
         [link.ring]\nmedium = \"fddi\"\nbetween = [\"a\", \"b\", \"generator\"]\n{station}{}{}\
         [flow.load]\nfrom = \"generator\"\nto = []\ntransport = \"udp\"\n\
         source = {{ kind = \"load\", message = \"4114 B\", {load} }}\n",
        voice("there", "a", "b"),
        voice("back", "b", "a"),
    );
    simulate(&parse(&text))
}

fn amount(summary: &RepetitionSummary, station: Option<&str>, name: &str) -> f64 {
    let mut media = summary.media.iter().filter(|medium| medium.station.as_deref() == station);
    let figure = media.find_map(|medium| medium.figures.iter().find(|(figure, _)| figure == name));
    let (_, amount) = figure.unwrap_or_else(|| panic!("no figure `{name}` of {station:?}"));
    match amount.expect("something to measure") {
        Amount::Count(count) => count as f64,
        Amount::Time(time) => time.as_secs_f64(),
        Amount::Share(share) => share.value(),
        Amount::Bytes(bytes) => bytes.count() as f64,
    }
}

#[test]
fn a_voice_packet_waits_for_at_most_one_burst_and_one_packet_of_the_other_station() {
    // Tables 4 and 7: 25 Mbit/s, single packets and bursts of 15.
    let single = ring("interval = \"1333333 ns\"");
    let bursts = ring("interval = \"20 ms\", burst = 15");
    for (summary, frames_at_once) in [(&single, 1.0), (&bursts, 15.0)] {
        let sent = amount(summary, Some("generator"), "frames");
        assert!((sent - 7_500.0).abs() <= 15.0, "{sent} frames");
        let [frame, voice] = [4_178.0, 1_088.0].map(|bytes| bytes * 8e-8);
        let utilisation = amount(summary, None, "ring-utilisation");
        assert!((utilisation - (0.25068 + 2.0 * voice / 0.128)).abs() < 0.001, "{utilisation}");
        let most = frames_at_once * frame + voice + 20e-6;
        let longest = amount(summary, None, "token-rotation-max");
        assert!(longest > frames_at_once * frame && longest < most, "{longest} s");
        for flow in &summary.flows[..2] {
            let latency = flow.latency.unwrap();
            assert_eq!(flow.counts.lost, 0);
            assert!(latency.max.as_secs_f64() < most + voice, "{} s", latency.max);
            assert!(latency.min.as_secs_f64() > voice);
        }
        assert_eq!(amount(summary, None, "late-counter-max"), 0.0);
    }
    let mean = |summary: &RepetitionSummary| summary.flows[0].latency.unwrap().mean;
    assert!(mean(&bursts) > mean(&single) * 2);
}
