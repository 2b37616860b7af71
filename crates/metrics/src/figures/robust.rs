//! Hawley's robust estimates of latency.

use super::Quantity::{Count, Number, Time};
use super::{Definition, FigureKind, define, figure};
use crate::summary::{FlowSummary, RobustDelay};

pub(super) const ROBUST_MINIMUM: Definition = define(
    "robust-minimum",
    "robust minimum",
    "The first and last ten messages are dropped. Then latencies above the mean plus one standard deviation are \
     removed, twice. The estimate is the mean of the rest. Beside it are the number of points kept and removed, the \
     second threshold, the standard deviation of the points kept, and the ratio of the mean to it.",
)
.source("Hawley 1989, section 4.2.1");

pub(super) const ROBUST_LOADED: Definition = define(
    "robust-loaded",
    "robust loaded mean",
    "The first and last ten messages are dropped. Then latencies above the mean plus eight standard deviations are \
     removed, once. The estimate is the mean of the rest, with the same figures beside it.",
)
.source("Hawley 1989, section 4.3.1");

pub(super) const DEFINITIONS: &[&Definition] = &[&ROBUST_MINIMUM, &ROBUST_LOADED];

pub(super) const FIGURES: &[FigureKind] = &[
    figure("robust_minimum", "robust minimum (Hawley)", Time, &ROBUST_MINIMUM)
        .of_flow(|f| robust(f, |r| r.minimum.as_secs_f64())),
    figure("robust_minimum_kept", "robust minimum, points kept", Count, &ROBUST_MINIMUM)
        .of_flow(|f| robust(f, |r| r.minimum_kept as f64)),
    figure("robust_minimum_removed", "robust minimum, points removed", Count, &ROBUST_MINIMUM)
        .of_flow(|f| robust(f, |r| r.minimum_removed as f64)),
    figure("robust_minimum_threshold", "robust minimum, threshold", Time, &ROBUST_MINIMUM)
        .of_flow(|f| robust(f, |r| r.minimum_threshold.as_secs_f64())),
    figure("robust_minimum_standard_deviation", "robust minimum, standard deviation", Time, &ROBUST_MINIMUM)
        .of_flow(|f| of_several(f, |r| (r.minimum_kept, r.minimum_standard_deviation.as_secs_f64()))),
    figure("robust_minimum_ratio", "robust minimum, mean over deviation", Number, &ROBUST_MINIMUM)
        .of_flow(|f| of_several(f, |r| (r.minimum_kept, r.minimum_ratio)).filter(is_defined)),
    figure("robust_loaded", "robust loaded mean (Hawley)", Time, &ROBUST_LOADED)
        .of_flow(|f| robust(f, |r| r.loaded.as_secs_f64())),
    figure("robust_loaded_kept", "robust loaded mean, points kept", Count, &ROBUST_LOADED)
        .of_flow(|f| robust(f, |r| r.loaded_kept as f64)),
    figure("robust_loaded_removed", "robust loaded mean, points removed", Count, &ROBUST_LOADED)
        .of_flow(|f| robust(f, |r| r.loaded_removed as f64)),
    figure("robust_loaded_threshold", "robust loaded mean, threshold", Time, &ROBUST_LOADED)
        .of_flow(|f| robust(f, |r| r.loaded_threshold.as_secs_f64())),
    figure(
        "robust_loaded_standard_deviation",
        "robust loaded mean, standard deviation",
        Time,
        &ROBUST_LOADED,
    )
    .of_flow(|f| of_several(f, |r| (r.loaded_kept, r.loaded_standard_deviation.as_secs_f64()))),
    figure("robust_loaded_ratio", "robust loaded mean, mean over deviation", Number, &ROBUST_LOADED)
        .of_flow(|f| of_several(f, |r| (r.loaded_kept, r.loaded_ratio)).filter(is_defined)),
];

/// A figure from the sample standard deviation of the points kept, which one point alone does not have.
fn of_several(flow: &FlowSummary, of: fn(&RobustDelay) -> (u64, f64)) -> Option<f64> {
    let (kept, value) = of(flow.robust.as_ref()?);
    (kept > 1).then_some(value)
}

/// A summary has 0 for a mean over a deviation of zero.
fn is_defined(ratio: &f64) -> bool {
    *ratio > 0.0
}

fn robust(flow: &FlowSummary, of: fn(&RobustDelay) -> f64) -> Option<f64> {
    flow.robust.as_ref().map(of)
}
