//! The advice, for programs.

use serde_json::{Value, json};
use trunkline_audio::pipeline::Protection;
use trunkline_core::Duration;

use crate::advice::{Advice, Recommendation, Row};
use crate::configuration::Blocks;
use crate::judge::Judgement;

/// The version of what [`json`] returns: it grows when a key changes its meaning or goes away, not when one is added.
const FORMAT: u32 = 1;

/// The advice as JSON, in base units: seconds, bits per second, shares from 0 to 1.
///
/// - `format`: 1.
/// - `host`, `budget`, `took`, `partial`: whether it was stopped before the budget was spent.
/// - `concealed`: the share of a rehearsal's audio that may have to be concealed.
/// - `recommendations`: for each use its name (`for`), the `best` way to send and the `runner_up` (or null), `suffices`:
///   whether the best does what the use asks for, `why`, `runner_up_costs`, the command lines `send` and `answer`, `loaded`:
///   the best under bulk load (or null), and `by_depth`: the best with other playout depths. A way to send has
///   `transport`, `blocks`, `protection` (`kind` and its numbers), `depth`, `stages`, `mouth_to_ear`, `measured` (blocks),
///   `lost`, `late`, `concealed`, `longest_gap`, `burst_r`, `r`, `mos` and `rate`.
/// - `warnings`: sentences.
/// - `measured`: for each configuration `transport`, `blocks`, `load` (`idle`, `bulk`), `marking` (`expedited`,
///   `best-effort`), how many blocks were sent and `lost`, and of their round trips `fastest`, `median`, `p99`, `slowest`
///   and `deviation` (mean absolute deviation).
/// - `failed`: `transport` and `why`.
/// - `capacity`: what bulk transfers reached in the direction in which they reached less, or null.
pub fn json(advice: &Advice) -> Value {
    json!({
        "format": FORMAT,
        "host": advice.host,
        "budget": seconds(advice.question.budget),
        "took": seconds(advice.took),
        "partial": advice.is_partial,
        "concealed": advice.question.concealed,
        "recommendations": advice.recommendations.iter().map(recommendation).collect::<Vec<_>>(),
        "warnings": advice.warnings,
        "measured": advice.measured.iter().map(row).collect::<Vec<_>>(),
        "failed": advice.failed.iter().map(|(transport, why)| json!({ "transport": transport, "why": why })).collect::<Vec<_>>(),
        "capacity": advice.capacity.map(|capacity| capacity.bits_per_second()),
    })
}

fn recommendation(recommendation: &Recommendation) -> Value {
    let choice = &recommendation.choice;
    json!({
        "for": choice.purpose,
        "best": judgement(&choice.best),
        "suffices": choice.suffices,
        "runner_up": choice.runner_up.as_ref().map(judgement),
        "why": recommendation.why,
        "runner_up_costs": recommendation.runner_up_costs,
        "send": recommendation.send,
        "answer": recommendation.answer,
        "loaded": recommendation.loaded.as_ref().map(judgement),
        "by_depth": recommendation.by_depth.iter().map(judgement).collect::<Vec<_>>(),
    })
}

fn judgement(judgement: &Judgement) -> Value {
    let stages = judgement.stages;
    json!({
        "transport": judgement.transport,
        "blocks": blocks(judgement.blocks),
        "protection": protection(judgement.protection),
        "depth": seconds(judgement.depth),
        "stages": {
            "capture": seconds(stages.capture),
            "block": seconds(stages.block),
            "network": seconds(stages.network),
            "playout": seconds(stages.playout),
            "playback": seconds(stages.playback),
        },
        "mouth_to_ear": seconds(judgement.mouth_to_ear),
        "measured": judgement.measured,
        "lost": judgement.lost,
        "late": judgement.late,
        "concealed": judgement.concealed,
        "longest_gap": seconds(judgement.longest_gap),
        "burst_r": judgement.burst_r,
        "r": judgement.r,
        "mos": judgement.mos,
        "rate": judgement.rate.bits_per_second(),
    })
}

fn row(row: &Row) -> Value {
    let (one, found) = (row.configuration, row.round_trips);
    json!({
        "transport": one.transport,
        "blocks": blocks(one.blocks),
        "load": one.load,
        "marking": one.marking,
        "sent": found.blocks,
        "lost": found.lost,
        "fastest": seconds(found.fastest),
        "median": seconds(found.median),
        "p99": seconds(found.p99),
        "slowest": seconds(found.slowest),
        "deviation": seconds(found.deviation),
    })
}

fn blocks(blocks: Blocks) -> Value {
    json!({
        "sample_rate": blocks.sample_rate,
        "frames": blocks.frames,
        "channels": blocks.channels,
        "sample_bytes": blocks.sample_bytes,
    })
}

fn protection(protection: Protection) -> Value {
    match protection {
        Protection::None => json!({ "kind": "none" }),
        Protection::Repeat(repeats) => json!({ "kind": "repeat", "repeats": repeats }),
        Protection::Xor { data } => json!({ "kind": "xor", "data": data }),
        Protection::ReedSolomon { data, parity } => {
            json!({ "kind": "reed-solomon", "data": data, "parity": parity })
        }
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
