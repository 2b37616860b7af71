//! The headers that bit rates count are those that packets have.

mod support;

use support::{LAN, idle, simulated, stereo};
use trunkline_advisor::{Blocks, Stage, Step, Transport, rate};
use trunkline_audio::pipeline::Protection;
use trunkline_core::{Duration, Time};

#[test]
fn headers_are_those_of_the_packets_on_the_link() {
    for transport in Transport::all().into_iter().filter(|transport| transport.name() != "mptcp") {
        let blocks = stereo(128);
        let step = Step {
            configuration: idle(transport, blocks),
            stage: Stage::Transports,
            settling: Duration::ZERO,
            lasting: Duration::from_secs(4),
            until: Time::MAX,
        };
        let (measured, outcome) = simulated(LAN, &step, 1).expect("it can be simulated");
        let sent = measured.trace.round_trips.len() as u64;
        let (packets, audio) = blocks.packets();
        let on_link =
            outcome.flows[0].network.expect("the link counts").all.count() as f64 / (sent * packets) as f64;
        let counted = (audio + u64::from(transport.headers())) as f64;
        // Acknowledgements of what comes back are on the link too.
        assert!((0.9..=1.1).contains(&(on_link / counted)), "{transport}: {on_link:.1} instead of {counted}");
    }
}

/// A captured packet of 10 ms of G.711 has 117 bytes behind the headers of IPv4 and UDP: 80 of speech, 29 of the header of the
/// audio, and 8 of the key of the session.
#[test]
fn a_rate_counts_all_bytes_of_captured_packets() {
    let blocks = Blocks { sample_rate: 8_000, frames: 80, channels: 1, sample_bytes: 1 };
    assert_eq!(rate(Transport::UDP, blocks, Protection::None).bits_per_second(), 145 * 8 * 100);
}
