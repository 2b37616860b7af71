//! What codecs do to speech, on the scale of the narrow-band E-model.

use trunkline_core::Duration;

/// A codec with the decoder's way of concealing losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codec {
    /// As written in files.
    pub name: &'static str,
    /// Ie: equipment impairment factor.
    pub ie: f64,
    /// Bpl: packet-loss robustness factor.
    pub bpl: f64,
    /// Speech that the coder needs beyond the contents of a packet.
    pub look_ahead: Duration,
    /// What it is, and where its numbers are from.
    pub doc: &'static str,
}

impl Codec {
    /// G.711 without concealment: the first of [`CODECS`].
    pub const G711: Codec = CODECS[0];
}

/// The codecs for which both factors are published on the scale of ITU-T G.107. Ie and Bpl are those of ITU-T G.113
/// Appendix I unless `doc` says otherwise. It has none for iLBC, and what is published for Opus is on the scales of the
/// wide-band and full-band models.
pub const CODECS: &[Codec] = &[
    Codec {
        name: "g711",
        ie: 0.0,
        bpl: 4.3,
        look_ahead: Duration::ZERO,
        doc: "G.711, 64 kbit/s; a lost packet is silence. Ie 0, Bpl 4.3 (ITU-T G.113 Appendix I).",
    },
    Codec {
        name: "g711-plc",
        ie: 0.0,
        bpl: 25.1,
        look_ahead: Duration::ZERO,
        doc: "G.711 with the concealment of its Appendix I. Ie 0, Bpl 25.1 (ITU-T G.113 Appendix I).",
    },
    Codec {
        name: "g723.1",
        ie: 15.0,
        bpl: 16.1,
        look_ahead: Duration::from_micros(7_500),
        doc: "G.723.1 at 6.3 kbit/s with voice activity detection, packets of 30 ms. Ie 15, Bpl 16.1 (ITU-T G.113 Appendix I).",
    },
    Codec {
        name: "g729a",
        ie: 11.0,
        bpl: 19.0,
        look_ahead: Duration::from_millis(5),
        doc: "G.729A, 8 kbit/s, with voice activity detection, packets of 20 ms. Ie 11, Bpl 19 (ITU-T G.113 Appendix I).",
    },
    Codec {
        name: "gsm-efr",
        ie: 5.0,
        bpl: 10.0,
        look_ahead: Duration::ZERO,
        doc: "GSM EFR, 12.2 kbit/s, packets of 20 ms. Ie 5, Bpl 10 (ITU-T G.113 Appendix I).",
    },
    Codec {
        name: "amr-12.2",
        ie: 5.0,
        bpl: 10.0,
        look_ahead: Duration::from_millis(5),
        doc: "AMR at 12.2 kbit/s, packets of 20 ms. G.113 does not have it; this mode is GSM EFR's algorithm (3GPP TS 26.071), \
              and has its factors: Ie 5, Bpl 10.",
    },
];
