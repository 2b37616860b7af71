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
    doc: "A Wi-Fi cell: stations within range of each other share a half-duplex channel by the distributed \
          coordination function (DCF, IEEE 802.11-2016 section 10.3). A station waits until the channel \
          has been idle for DIFS (`sifs` and two slots) and a random number of slots, and then transmits. \
          Stations whose slots end together collide. A frame without acknowledgement is retransmitted \
          after a backoff from a window of twice the size. Broadcasts are sent once, at `basic-rate`, \
          without acknowledgement. After a collision or a corrupted frame, the channel stays unused for \
          the duration of an acknowledgement (EIFS). A frame between two stations uses the lower of their \
          rates, and the frame errors of both apply; acknowledgements are never lost. The defaults are \
          802.11g without 802.11b stations; with them, use `slot = \"20 us\"`. For 802.11a, use `sifs = \
          \"16 us\"` and `signal-extension = \"0 us\"`. For one spatial stream of 802.11n or ac at 20 \
          MHz, also use `rate = \"65 Mbit/s\"` and `preamble = \"36 us\"`, and up to 600 Mbit/s for more \
          streams and wider channels. Frames are not aggregated, as is usual for small, urgent packets. A \
          station's `queue` does not hold the frame that is contending for the channel.",
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
            doc: "Framing of each packet: 34 B of MAC header and check sequence, and 8 B of LLC and SNAP.",
        },
        Parameter {
            name: "frame-errors",
            kind: Kind::Ratio,
            default: Preset::Text("0 %"),
            doc: "Share of frames from or to the station that are corrupted by noise, whatever their size, \
                  at its highest rate.",
        },
        Parameter {
            name: "bit-errors",
            kind: Kind::Number { min: 0.0, max: 0.5 },
            default: Preset::Text("0"),
            doc: "Probability that noise corrupts a bit of a frame from or to the station, at its highest \
                  rate.",
        },
    ],
    needs: &[],
    shared: &[
        Parameter {
            name: "mode",
            kind: Kind::Choice(&[
                Choice { name: "ad-hoc", doc: "Stations send directly to each other." },
                Choice {
                    name: ACCESS_POINT,
                    doc: "The first host of `between` is the access point. Packets between other stations \
                          cross the channel twice and wait in the access point's queue.",
                },
            ]),
            default: Preset::Text("ad-hoc"),
            doc: "Topology of the cell.",
        },
        Parameter {
            name: "slot",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_millis(1) },
            default: Preset::Text("9 us"),
            doc: "Length of a backoff slot. 802.11g: 9 us, or 20 us with 802.11b stations.",
        },
        Parameter {
            name: "sifs",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_millis(1) },
            default: Preset::Text("10 us"),
            doc: "Time between a frame and its acknowledgement.",
        },
        Parameter {
            name: "preamble",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_millis(1) },
            default: Preset::Text("20 us"),
            doc: "Duration of the preamble of each frame.",
        },
        Parameter {
            name: "signal-extension",
            kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_millis(1) },
            default: Preset::Text("6 us"),
            doc: "Silence at the end of each frame (802.11g).",
        },
        Parameter {
            name: "symbol",
            kind: Kind::Duration { min: Duration::from_nanos(100), max: Duration::from_millis(1) },
            default: Preset::Text("4 us"),
            doc: "Duration of a symbol. Frames last a whole number of symbols.",
        },
        Parameter {
            name: "ack-rate",
            kind: Kind::Rate { min: mbits(1), max: mbits(10_000) },
            default: Preset::Text("24 Mbit/s"),
            doc: "Rate of acknowledgements, which never exceeds that of the acknowledged frame.",
        },
        Parameter {
            name: "basic-rate",
            kind: Kind::Rate { min: mbits(1), max: mbits(10_000) },
            default: Preset::Text("6 Mbit/s"),
            doc: "Rate of broadcasts.",
        },
        Parameter {
            name: "cw-min",
            kind: Kind::Integer { min: 0, max: 65_535 },
            default: Preset::Text("15"),
            doc: "Initial backoff window: the first backoff is a random number of slots from 0 to this.",
        },
        Parameter {
            name: "cw-max",
            kind: Kind::Integer { min: 0, max: 65_535 },
            default: Preset::Text("1023"),
            doc: "Maximum backoff window.",
        },
        Parameter {
            name: "retry-limit",
            kind: Kind::Integer { min: 1, max: 255 },
            default: Preset::Text("7"),
            doc: "Maximum number of transmissions of a frame; then it is dropped.",
        },
        Parameter {
            name: "fallback-after",
            kind: Kind::Integer { min: 0, max: 1000 },
            default: Preset::Text("0"),
            doc: "Number of consecutive failures after which a station uses the next lower rate: 54, 48, 36, \
                  24, 18, 12, 9 or 6 Mbit/s, and half the rate above these. The station cannot \
                  distinguish collisions from noise. 0: never.",
        },
        Parameter {
            name: "recover-after",
            kind: Kind::Integer { min: 1, max: 1_000_000 },
            default: Preset::Text("10"),
            doc: "Number of consecutive successes after which a station uses the next higher rate.",
        },
        Parameter {
            name: "step-gain",
            kind: Kind::Number { min: 1.0, max: 1e9 },
            default: Preset::Text("10"),
            doc: "Factor by which each step to a lower rate divides `frame-errors` and `bit-errors`.",
        },
        Parameter {
            name: "occupied",
            kind: Kind::Ratio,
            default: Preset::Text("0 %"),
            doc: "Share of the time that stations outside the experiment keep the channel busy, at most 99 \
                  %. They never collide with those inside.",
        },
        Parameter {
            name: "occupied-for",
            kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(10) },
            default: Preset::Text("1 ms"),
            doc: "Mean length of these busy periods. The gaps between them are exponentially distributed.",
        },
        Parameter {
            name: "occupied-lengths",
            kind: Kind::Choice(&[
                Choice { name: "exponential", doc: "Exponentially distributed: traffic of other stations." },
                Choice {
                    name: EQUAL,
                    doc: "Constant: outages, such as a station that scans for other cells.",
                },
            ]),
            default: Preset::Text("exponential"),
            doc: "Distribution of the lengths of the busy periods.",
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
