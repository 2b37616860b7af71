//! The quality of a measured flow.

use serde::{Deserialize, Serialize};
use trunkline_core::{Duration, Ratio};

use super::codec::Codec;
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
