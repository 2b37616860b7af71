//! A session's figures for programs.

use serde_json::{Value, json};
use trunkline_core::Duration;
use trunkline_metrics::DelaySummary;

use super::figures::{Counts, Figures, RoundTrip};

/// What is known of a session: seconds, counts, shares from 0 to 1; `null` where nothing is known.
///
/// - `elapsed`: how long it was.
/// - `stages`: the latency of each stage, and `total`, from mouth to ear. `network` is there and back if `network_returns`;
///   otherwise `network_bound` says how far it may be from the truth.
/// - `round_trip`: of what a reflector sent back, from handing over to arrival: `mean`, `jitter` (mean absolute deviation),
///   `standard_deviation`, `min`, `p50`, `p90`, `p99`, `p999`, `max`, `count`.
/// - `added`: what the program itself adds, from the callback that captures to the socket (`capture`) and from the socket to the
///   callback that plays (`playback`), in the same figures.
/// - `loss`: the share of what was expected that did not come.
/// - `counts`: see [`Counts`].
/// - `drift_ppm`: how much faster the sender's clock is than the player's; null until it has been followed for a minute.
pub fn json(figures: &Figures) -> Value {
    let Figures { elapsed, stages, returns, network_bound, round_trip, added, counts, drift_ppm } = figures;
    let Counts {
        sent,
        received,
        expected,
        lost,
        late,
        concealed,
        recovered,
        reordered,
        duplicate,
        timed_out,
        refused,
        strange,
        overflowed,
        xruns,
    } = *counts;
    json!({
        "elapsed": seconds(*elapsed),
        "stages": {
            "capture": seconds(stages.capture),
            "block": seconds(stages.block),
            "packet": seconds(stages.packet),
            "network": stages.network.map(seconds),
            "network_returns": returns,
            "network_bound": network_bound.map(seconds),
            "playout": seconds(stages.playout),
            "resampling": seconds(stages.resampling),
            "playback": seconds(stages.playback),
            "total": seconds(stages.total()),
        },
        "round_trip": round_trip.as_ref().map(of_round_trip),
        "added": {
            "capture": added[0].as_ref().map(of_delays),
            "playback": added[1].as_ref().map(of_delays),
        },
        "loss": counts.loss(),
        "counts": {
            "sent": sent,
            "received": received,
            "expected": expected,
            "lost": lost,
            "late": late,
            "concealed": concealed,
            "recovered": recovered,
            "reordered": reordered,
            "duplicate": duplicate,
            "timed_out": timed_out,
            "refused": refused,
            "strange": strange,
            "overflowed": overflowed,
            "xruns": xruns,
        },
        "drift_ppm": drift_ppm,
    })
}

fn of_round_trip(RoundTrip { delays, jitter }: &RoundTrip) -> Value {
    let mut value = of_delays(delays);
    value["jitter"] = json!(seconds(*jitter));
    value
}

fn of_delays(delays: &DelaySummary) -> Value {
    json!({
        "count": delays.count,
        "mean": seconds(delays.mean),
        "standard_deviation": seconds(delays.standard_deviation),
        "min": seconds(delays.min),
        "p50": seconds(delays.p50),
        "p90": seconds(delays.p90),
        "p99": seconds(delays.p99),
        "p999": seconds(delays.p999),
        "max": seconds(delays.max),
    })
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
