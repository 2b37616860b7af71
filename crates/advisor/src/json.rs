//! The advice, for programs.

use serde_json::Value;
use trunkline_core::Duration;

use crate::advice::{Advice, Recommendation, Row};
use crate::configuration::Blocks;
use crate::judge::Judgement;
use crate::{Use, output};

/// The name of the layout of [`json`].
pub const KIND: &str = "advice";
/// The version of the layout of [`json`]: it grows when a key changes its meaning or goes away, not when one is added.
pub const FORMAT: u32 = 1;

/// The advice as JSON: [`output::Advice`] says what is in it.
pub fn json(advice: &Advice) -> Value {
    // Keys are strings, and numbers that are not finite become null.
    serde_json::to_value(output::Advice::from(advice)).unwrap_or_default()
}

impl From<&Advice> for output::Advice {
    fn from(advice: &Advice) -> output::Advice {
        let failed = advice.failed.iter();
        output::Advice {
            kind: KIND.to_owned(),
            format: FORMAT,
            host: advice.host.clone(),
            budget: seconds(advice.question.budget),
            took: seconds(advice.took),
            partial: advice.is_partial,
            concealed: advice.question.concealed.value(),
            recommendations: advice.recommendations.iter().map(Into::into).collect(),
            warnings: advice.warnings.clone(),
            measured: advice.measured.iter().map(Into::into).collect(),
            failed: failed
                .map(|(transport, why)| output::AdviceFailed { transport: word(transport), why: why.clone() })
                .collect(),
            capacity: advice.capacity.map(|capacity| capacity.bits_per_second()),
        }
    }
}

impl From<&Recommendation> for output::Recommendation {
    fn from(recommendation: &Recommendation) -> output::Recommendation {
        let choice = &recommendation.choice;
        output::Recommendation {
            purpose: choice.purpose.into(),
            best: (&choice.best).into(),
            suffices: choice.suffices,
            runner_up: choice.runner_up.as_ref().map(Into::into),
            why: recommendation.why.clone(),
            runner_up_costs: recommendation.runner_up_costs.clone(),
            send: recommendation.send.clone(),
            answer: recommendation.answer.clone(),
            loaded: recommendation.loaded.as_ref().map(Into::into),
            by_depth: recommendation.by_depth.iter().map(Into::into).collect(),
        }
    }
}

impl From<&Judgement> for output::Judgement {
    fn from(judgement: &Judgement) -> output::Judgement {
        let stages = judgement.stages;
        output::Judgement {
            transport: word(&judgement.transport),
            blocks: judgement.blocks.into(),
            protection: judgement.protection.into(),
            depth: seconds(judgement.depth),
            stages: output::AdviceStages {
                capture: seconds(stages.capture),
                block: seconds(stages.block),
                network: seconds(stages.network),
                playout: seconds(stages.playout),
                playback: seconds(stages.playback),
            },
            mouth_to_ear: seconds(judgement.mouth_to_ear),
            measured: judgement.measured,
            lost: judgement.lost.value(),
            late: judgement.late.value(),
            concealed: judgement.concealed.value(),
            longest_gap: seconds(judgement.longest_gap),
            burst_r: judgement.burst_r,
            r: Some(judgement.r).filter(|value| value.is_finite()),
            mos: Some(judgement.mos).filter(|value| value.is_finite()),
            rate: judgement.rate.bits_per_second(),
        }
    }
}

impl From<&Row> for output::AdviceRow {
    fn from(row: &Row) -> output::AdviceRow {
        let (one, found) = (row.configuration, row.round_trips);
        output::AdviceRow {
            transport: word(&one.transport),
            blocks: one.blocks.into(),
            load: word(&one.load),
            marking: word(&one.marking),
            sent: found.blocks,
            lost: found.lost,
            fastest: seconds(found.fastest),
            median: seconds(found.median),
            p99: seconds(found.p99),
            slowest: seconds(found.slowest),
            deviation: seconds(found.deviation),
        }
    }
}

impl From<Blocks> for output::AdviceBlocks {
    fn from(blocks: Blocks) -> output::AdviceBlocks {
        output::AdviceBlocks {
            sample_rate: blocks.sample_rate,
            frames: blocks.frames,
            channels: blocks.channels.into(),
            sample_bytes: blocks.sample_bytes.into(),
        }
    }
}

impl From<trunkline_audio::pipeline::Protection> for output::Protection {
    fn from(protection: trunkline_audio::pipeline::Protection) -> output::Protection {
        use trunkline_audio::pipeline::Protection;
        match protection {
            Protection::None => output::Protection::None,
            Protection::Repeat(repeats) => output::Protection::Repeat { repeats },
            Protection::Xor { data } => output::Protection::Xor { data },
            Protection::ReedSolomon { data, parity } => output::Protection::ReedSolomon { data, parity },
        }
    }
}

impl From<Use> for output::Use {
    fn from(purpose: Use) -> output::Use {
        match purpose {
            Use::Rehearsal => output::Use::Rehearsal,
            Use::Recording => output::Use::Recording,
            Use::Telephony => output::Use::Telephony,
        }
    }
}

/// The word by which a value is serialised.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
