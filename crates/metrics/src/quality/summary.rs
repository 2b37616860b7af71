//! The quality of a measured flow.

use serde::{Deserialize, Serialize};
use trunkline_core::{Duration, Ratio};

use super::codec::{CODECS, Codec};
use super::emodel::EModel;
use super::losses::Losses;
use super::opinion::mos;

/// What a recorder needs to know of a flow to judge what its listeners hear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Listening {
    /// What codes the speech.
    pub codec: Codec,
    /// How long the speech in a packet lasts.
    pub packet: Duration,
}

/// How good a conversation over a flow is, by the E-model of ITU-T G.107 (06/2015): over all channels of all members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QualitySummary {
    /// The transmission rating factor R, from 0 to 100.
    pub r: f64,
    /// The mean opinion score that is estimated for it, MOS-CQE, from 1 to 4.5.
    pub mos: f64,
    /// From mouth to ear, mean: packetisation, look-ahead of the codec, latency from due and playout; `None` if nothing
    /// was heard.
    pub mouth_to_ear: Option<Duration>,
    /// Ppl: what was not heard in time, as a share of the messages due.
    pub ppl: Ratio,
    /// BurstR: the mean length of the bursts in it over that of random loss.
    pub burst_r: f64,
    /// The codec's name.
    pub codec: String,
}

/// By how much a figure of quality changes with one message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QualityStep {
    /// Of R.
    pub r: f64,
    /// Of MOS.
    pub mos: f64,
}

/// The range of the E-model's parameters (ITU-T G.107, table of default values and permitted ranges in clause 7.7):
/// mouth-to-ear delay Ta, Ppl and BurstR. The edition of 2009 has 0 to 500 ms, 0 to 20 % and 1 to 8
/// (editions before: 1 to 2), according to a program that transcribes it. The rule that BurstR above 2 holds only below a Ppl of
/// [`FEW`] is from memory of a note to that table; no public document confirmed it.
const LONGEST: Duration = Duration::from_millis(500);
const MOST_LOST: f64 = 0.2;
const BURSTIEST: f64 = 8.0;
const FEW: f64 = 0.02;
const BURSTIEST_OF_MANY: f64 = 2.0;

impl QualitySummary {
    /// Inputs outside the range in which the E-model holds, each in a few words: then R and MOS are extrapolated. Empty if
    /// nothing does.
    pub fn outside_model(&self) -> Vec<String> {
        let mut outside = Vec::new();
        if let Some(delay) = self.mouth_to_ear.filter(|delay| *delay > LONGEST) {
            let delay = above(delay.as_millis_f64(), LONGEST.as_millis_f64(), 0);
            outside.push(format!("a mouth-to-ear delay of {delay} ms (at most 500 ms)"));
        }
        let (ppl, burst_r) = (self.ppl.value(), self.burst_r);
        if ppl > MOST_LOST {
            outside.push(format!("Ppl of {} % (at most 20 %)", above(ppl * 100.0, MOST_LOST * 100.0, 1)));
        }
        if burst_r > BURSTIEST {
            outside.push(format!("a burst ratio of {} (at most 8)", above(burst_r, BURSTIEST, 1)));
        } else if burst_r > BURSTIEST_OF_MANY && ppl >= FEW {
            outside.push(format!(
                "a burst ratio of {} with Ppl of {:.1} % (at most 2 from 2 % on)",
                above(burst_r, BURSTIEST_OF_MANY, 1),
                ppl * 100.0
            ));
        }
        outside
    }

    /// By how much R and MOS fall if one more of so many messages is not heard. Nothing of what was never heard, or of a codec
    /// that is unknown.
    pub fn step(&self, messages: u64) -> QualityStep {
        let codec = CODECS.iter().find(|codec| codec.name == self.codec);
        let (Some(codec), Some(delay)) = (codec, self.mouth_to_ear) else { return QualityStep::default() };
        let at = |ppl: f64| {
            let ppl = Ratio::new(ppl.min(1.0)).unwrap_or_default();
            EModel::call(codec, delay, ppl, self.burst_r).r().clamp(0.0, 100.0)
        };
        let one = 1.0 / messages.max(1) as f64;
        let (before, after) = (at(self.ppl.value()), at(self.ppl.value() + one));
        QualityStep { r: before - after, mos: mos(before) - mos(after) }
    }
}

/// A value above a bound, with as many decimals as show that it is.
fn above(value: f64, bound: f64, decimals: usize) -> String {
    let shows =
        |decimals: &usize| format!("{value:.decimals$}").parse::<f64>().is_ok_and(|shown| shown > bound);
    let decimals = (decimals..9).find(shows).unwrap_or(9);
    format!("{value:.decimals$}")
}

impl Listening {
    /// The summary of a flow whose messages were played so long after they were due, on average, and of which these were
    /// lost; `None` if there were no messages.
    pub fn judge(&self, from_due: Option<Duration>, losses: &Losses) -> Option<QualitySummary> {
        if losses.messages == 0 {
            return None;
        }
        let mouth_to_ear = from_due.map(|delay| self.packet + self.codec.look_ahead + delay);
        let (ppl, burst_r) = (losses.ppl(), losses.burst_r());
        let r = mouth_to_ear
            .map_or(0.0, |delay| EModel::call(&self.codec, delay, ppl, burst_r).r().clamp(0.0, 100.0));
        Some(QualitySummary { r, mos: mos(r), mouth_to_ear, ppl, burst_r, codec: self.codec.name.to_owned() })
    }
}
