//! What codes the speech of a flow, as its listeners would judge it.

use trunkline_core::Duration;
use trunkline_core::schema::{Default as Preset, Kind, Parameter, Values};
use trunkline_metrics::quality::{CODECS, Codec};

use super::Alternative;

/// The kinds of `codec`: those with published factors, and any other.
pub(crate) fn kinds() -> Vec<Alternative> {
    let published = CODECS.iter().map(|codec| Alternative {
        name: codec.name,
        aliases: &[],
        doc: codec.doc,
        parameters: &[],
    });
    let other = Alternative { name: OTHER, aliases: &[], doc: OTHER_DOC, parameters: FACTORS };
    published.chain([other]).collect()
}

/// The codec of one of the kinds.
pub(crate) fn read(kind: usize, values: &Values) -> Codec {
    CODECS.get(kind).copied().unwrap_or_else(|| Codec {
        name: OTHER,
        ie: values.number("ie"),
        bpl: values.number("bpl"),
        look_ahead: values.duration("look-ahead"),
        doc: OTHER_DOC,
    })
}

/// The name of the codec of which the file says everything.
pub(crate) const OTHER: &str = "other";

const OTHER_DOC: &str = "Any other codec, given by its factors on the narrowband scale of ITU-T G.107.";

const FACTORS: &[Parameter] = &[
    Parameter {
        name: "ie",
        kind: Kind::Number { min: 0.0, max: 40.0 },
        default: Preset::Required,
        doc: "Equipment impairment factor Ie.",
    },
    Parameter {
        name: "bpl",
        kind: Kind::Number { min: 1.0, max: 40.0 },
        default: Preset::Required,
        doc: "Packet-loss robustness factor Bpl.",
    },
    Parameter {
        name: "look-ahead",
        kind: Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(1) },
        default: Preset::Text("0 ms"),
        doc: "Speech that the coder needs beyond the contents of a packet.",
    },
];
