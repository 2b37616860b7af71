//! Quality of a conversation, by the E-model.

use super::Quantity::{Number, Share, Time};
use super::{Definition, FigureKind, Grain, define, figure};
use crate::quality::QualitySummary;
use crate::summary::FlowSummary;

/// The figures that the E-model gives.
const OF_E_MODEL: [&FigureKind; 2] = [super::flow("r"), super::flow("mos")];

impl FlowSummary {
    /// True if this figure is extrapolated beyond the range in which the E-model holds.
    pub fn is_outside_model(&self, figure: &FigureKind) -> bool {
        let is_outside = |quality: &QualitySummary| !quality.outside_model().is_empty();
        OF_E_MODEL.contains(&figure) && self.quality.as_ref().is_some_and(is_outside)
    }
}

pub(super) const MOS: Definition = define(
    "mos",
    "MOS (estimated)",
    "Mean opinion score of a conversation, from 1 to 4.5, computed from the R-factor (MOS-CQE). It is an estimate \
     for planning, not the result of a listening test. Marked ? outside the E-model's range, like R.",
)
.source("ITU-T G.107 (06/2015), Annex B");

pub(super) const R: Definition = define(
    "r",
    "R-factor",
    "Transmission rating of a conversation, from 0 to 100. It depends on the codec, the mouth-to-ear delay (with \
     talker echo 65 dB down), the share not heard in time and its burst ratio; all other parameters have their \
     default values. G.711 without delay and loss has 93.2; users are satisfied from 80 up. Marked ? outside the \
     model's range: mouth-to-ear delay above 500 ms, Ppl above 20 %, a burst ratio above 8, or above 2 with Ppl of 2 \
     % and more.",
)
.source("ITU-T G.107 (06/2015), equation 7-1; codecs: ITU-T G.113, Appendix I");

pub(super) const MOUTH_TO_EAR: Definition = define(
    "mouth-to-ear",
    "mouth-to-ear delay",
    "The time to fill a packet, plus the codec's look-ahead, plus the time from when a message is due until it is \
     played; the mean over the messages heard. Sound cards and processing add no delay.",
)
.source("ITU-T G.107 (06/2015), Ta");

pub(super) const PPL: Definition = define(
    "ppl",
    "not heard in time (Ppl)",
    "Share of the messages due that were lost, unfinished, refused or late; with FIFOs, also those that missed their \
     deadline or found a FIFO full.",
)
.source("ITU-T G.107 (06/2015), clause 7.5");

pub(super) const BURST_R: Definition = define(
    "burst-r",
    "burst ratio",
    "Mean length of the runs of messages not heard, divided by the mean length under random loss of the same \
     probability, 1 / (1 - Ppl).",
)
.source("ITU-T G.107 (06/2015), clause 7.5");

pub(super) const DEFINITIONS: &[&Definition] = &[&MOS, &R, &MOUTH_TO_EAR, &PPL, &BURST_R];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("mos", "MOS (estimated)", Number, &MOS)
        .of_flow(|f| quality(f, |q| Some(q.mos)))
        .limit("mos", "Mean opinion score estimated from the R-factor, from 1 to 4.5.")
        .within(1.0, 4.5)
        .grain(Grain::Step(|f, messages| Some(f.quality.as_ref()?.step(messages).mos)))
        .rank(11),
    figure("r", "R-factor", Number, &R)
        .of_flow(|f| quality(f, |q| Some(q.r)))
        .limit("r", "R-factor of a conversation, from 0 to 100 (ITU-T G.107).")
        .within(0.0, 100.0)
        .grain(Grain::Step(|f, messages| Some(f.quality.as_ref()?.step(messages).r))),
    figure("mouth_to_ear", "mouth-to-ear delay, mean", Time, &MOUTH_TO_EAR)
        .of_flow(|f| quality(f, |q| Some(q.mouth_to_ear?.as_secs_f64())))
        .limit("mouth-to-ear", "Mean delay from mouth to ear.")
        .rank(12),
    figure("ppl", "not heard in time (Ppl)", Share, &PPL)
        .of_flow(|f| quality(f, |q| Some(q.ppl.value())))
        .limit("ppl", "Messages that were not heard in time, of those due.")
        .grain(Grain::Share),
    figure("burst_r", "burst ratio", Number, &BURST_R).of_flow(|f| quality(f, |q| Some(q.burst_r))),
];

fn quality(flow: &FlowSummary, of: fn(&QualitySummary) -> Option<f64>) -> Option<f64> {
    of(flow.quality.as_ref()?)
}
