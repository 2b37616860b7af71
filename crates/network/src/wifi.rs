//! A Wi-Fi cell: stations that share one channel by the distributed coordination function of IEEE 802.11.

mod cell;
mod phy;
mod station;
mod strangers;

#[cfg(test)]
mod tests;

use trunkline_core::schema::{Choice, Default as Preset, Kind, Parameter};
use trunkline_core::{Bytes, Duration, Rate};

use crate::medium::MediumKind;

pub use cell::WifiCell;

/// The entry in the registry.
pub(crate) const KIND: MediumKind = MediumKind {
    name: "wifi",
    doc: "A Wi-Fi cell: stations that hear each other share a half-duplex channel by the distributed coordination \
          function (DCF, IEEE 802.11-2016 section 10.3). A station waits until the channel has been idle for DIFS \
          (`sifs` and two slots) and for a random number of slots, and transmits; two whose slots end together collide. \
          What is not acknowledged is sent again after a wait from a window twice as wide; what is for everybody is sent \
          once, at `basic-rate`, and not acknowledged. After a collision or a spoilt frame the channel stays unused for \
          as long as the acknowledgement would have taken (EIFS). A frame between two stations goes at the lower of \
          their rates, and the errors of both spoil it; acknowledgements are never lost. The defaults are 802.11g \
          without 802.11b stations; with these, `slot = \"20 us\"`. For 802.11a, `sifs = \"16 us\"` and \
          `signal-extension = \"0 us\"`; for one spatial stream of 802.11n or ac of 20 MHz beside that \
          `rate = \"65 Mbit/s\"` and `preamble = \"36 us\"`, and rates up to 600 Mbit/s for more and wider ones: \
          without aggregation of frames, as small packets in a hurry are sent. A station's `queue` does not hold the \
          frame with which it contends for the channel.",
    parameters: &[
        Parameter {
            name: "rate",
            kind: Kind::Rate { min: mbits(1), max: mbits(10_000) },
            default: Preset::Text("54 Mbit/s"),
            doc: "The highest rate at which the station sends and receives data. Preambles, backoff and acknowledgements \
                  take the same time at any rate.",
        },
        Parameter {
            name: "mtu",
            kind: Kind::Bytes { min: Bytes(68), max: Bytes(2304) },
            default: Preset::Text("1500 B"),
            doc: "The largest packet, network header included; a larger one is dropped.",
        },
        Parameter {
            name: "overhead",
            kind: Kind::Bytes { min: Bytes::ZERO, max: Bytes(1024) },
            default: Preset::Text("42 B"),
            doc: "What a frame has beside the packet: 34 of MAC header and check sequence and 8 of LLC and SNAP.",
        },
        Parameter {
            name: "frame-errors",
            kind: Kind::Ratio,
            default: Preset::Text("0 %"),
            doc: "The share of frames from or to the station that noise spoils, whatever their size, at its highest rate.",
        },
        Parameter {
            name: "bit-errors",
            kind: Kind::Number { min: 0.0, max: 0.5 },
            default: Preset::Text("0"),
            doc: "The probability that noise spoils a bit of a frame from or to the station, at its highest rate.",
        },
    ],
    shared: &[
        Parameter {
            name: "mode",
            kind: Kind::Choice(&[
                Choice { name: "ad-hoc", doc: "Every station sends to every other directly." },
                Choice {
                    name: ACCESS_POINT,
                    doc: "The first host of `between` is the access point. What other stations send to each other \
                          crosses the channel twice and waits in the access point's queue between.",
                },
            ]),
            default: Preset::Text("ad-hoc"),
            doc: "Who sends to whom.",
        },
        Parameter {
            name: "slot",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_millis(1) },
            default: Preset::Text("9 us"),
            doc: "A slot of the backoff. 802.11g: 9 us, and 20 us where there are 802.11b stations.",
        },
        Parameter {
            name: "sifs",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_millis(1) },
            default: Preset::Text("10 us"),
            doc: "The space between a frame and its acknowledgement.",
        },
        Parameter {
            name: "preamble",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_millis(1) },
            default: Preset::Text("20 us"),
            doc: "What precedes every frame on the air.",
        },
        Parameter {
            name: "signal-extension",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_millis(1) },
            default: Preset::Text("6 us"),
            doc: "Silence that belongs to the end of every frame (802.11g).",
        },
        Parameter {
            name: "symbol",
            kind: Kind::Duration { min: Duration::from_nanos(100), max: Duration::from_millis(1) },
            default: Preset::Text("4 us"),
            doc: "Frames last a whole number of symbols.",
        },
        Parameter {
            name: "ack-rate",
            kind: Kind::Rate { min: mbits(1), max: mbits(10_000) },
            default: Preset::Text("24 Mbit/s"),
            doc: "The rate of acknowledgements, which are never faster than what they acknowledge.",
        },
        Parameter {
            name: "basic-rate",
            kind: Kind::Rate { min: mbits(1), max: mbits(10_000) },
            default: Preset::Text("6 Mbit/s"),
            doc: "The rate of frames for everybody.",
        },
        Parameter {
            name: "cw-min",
            kind: Kind::Integer { min: 0, max: 65_535 },
            default: Preset::Text("15"),
            doc: "The first backoff is a number of slots from 0 to this.",
        },
        Parameter {
            name: "cw-max",
            kind: Kind::Integer { min: 0, max: 65_535 },
            default: Preset::Text("1023"),
            doc: "Up to where that window doubles.",
        },
        Parameter {
            name: "retry-limit",
            kind: Kind::Integer { min: 1, max: 255 },
            default: Preset::Text("7"),
            doc: "How often a frame is transmitted at most; then it is dropped.",
        },
        Parameter {
            name: "fallback-after",
            kind: Kind::Integer { min: 0, max: 1000 },
            default: Preset::Text("0"),
            doc: "After so many failures in a row a station sends at the next lower rate: 54, 48, 36, 24, 18, 12, 9 or \
                  6 Mbit/s, and above these the half. It cannot tell a collision from noise. 0: never.",
        },
        Parameter {
            name: "recover-after",
            kind: Kind::Integer { min: 1, max: 1_000_000 },
            default: Preset::Text("10"),
            doc: "After so many successes in a row it sends at the next higher rate.",
        },
        Parameter {
            name: "step-gain",
            kind: Kind::Number { min: 1.0, max: 1e9 },
            default: Preset::Text("10"),
            doc: "By how much each step to a lower rate divides `frame-errors` and `bit-errors`.",
        },
        Parameter {
            name: "occupied",
            kind: Kind::Ratio,
            default: Preset::Text("0 %"),
            doc: "The share of the time that stations outside the experiment keep the channel busy, at most 99 %. They \
                  never collide with those inside.",
        },
        Parameter {
            name: "occupied-for",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(10) },
            default: Preset::Text("1 ms"),
            doc: "The mean length of their busy periods. The gaps between them are exponentially distributed.",
        },
        Parameter {
            name: "occupied-lengths",
            kind: Kind::Choice(&[
                Choice { name: "exponential", doc: "Exponentially distributed: other stations' traffic." },
                Choice {
                    name: EQUAL,
                    doc: "All alike: outages, such as a station that looks for other cells.",
                },
            ]),
            default: Preset::Text("exponential"),
            doc: "How the lengths of their busy periods are distributed.",
        },
    ],
    stations: 2..=256,
    build: |shared, ports, seed| Box::new(WifiCell::new(shared, ports, seed)),
};

/// The word of `occupied-lengths` for periods that are all alike.
const EQUAL: &str = "equal";

/// The word of `mode` for a cell with an access point.
const ACCESS_POINT: &str = "access-point";

const fn mbits(n: u64) -> Rate {
    Rate::from_bits_per_second(n * 1_000_000)
}
