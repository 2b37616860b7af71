//! What plays received voice.

use trunkline_core::schema::{Default as Preset, Kind, Parameter};

use super::Alternative;

/// The kinds of `playback`.
pub(crate) fn kinds() -> Vec<Alternative> {
    vec![Alternative { name: "fifo", aliases: &[], doc: FIFO_DOC, parameters: FIFO }]
}

const FIFO_DOC: &str = "The D/A side of every channel: a FIFO that is drained one sample every 125 us once playback \
                        has begun, in the order of arrival (Weaver and McNabb 1992). When the FIFO is empty, there \
                        is silence until the next packet.";

const FIFO: &[Parameter] = &[
    Parameter {
        name: "depth",
        kind: Kind::Integer { min: 8, max: 64_000 },
        default: Preset::Text("4096"),
        doc: "Size of the FIFO in samples, at least those of a packet. Samples that find it full are lost.",
    },
    Parameter {
        name: "fill",
        kind: Kind::Integer { min: 1, max: 64_000 },
        default: Preset::Absent,
        doc: "Number of samples that must have arrived before playback begins, and before it begins again after a \
              silence of the speaker. Without this key, it begins with the first packet.",
    },
];
