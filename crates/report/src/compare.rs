//! Two runs beside each other: every figure of every flow that both have, at every point that both have, and whether the
//! difference is more than chance.

use trunkline_metrics::figures::{FigureKind, flow, of_flows};
use trunkline_metrics::{Estimate, student_t};
use trunkline_store::{RunInfo, StoredPoint, StoredRun};

use crate::view::{View, point_name, value_on};

/// The figures that a person is shown unless all are asked for.
const TELLING: &[&FigureKind] = &[
    flow("throughput_user"),
    flow("loss_and_late"),
    flow("unfinished_share"),
    flow("refused_share"),
    flow("affected"),
    flow("latency_mean"),
    flow("latency_p999"),
    flow("jitter_mean_absolute_deviation"),
    flow("mos"),
];

/// What two runs have in common.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What is compared.
    pub run: RunInfo,
    /// With what.
    pub with: RunInfo,
    /// True if both ran the same experiment file with the same settings and seed.
    pub same_experiment: bool,
    /// A row for each point, flow and figure that both have.
    pub rows: Vec<Difference>,
    /// Points of either that the other has not, by name.
    pub unmatched: Vec<String>,
}

/// One figure in both runs, in base units: seconds, bits per second, shares, counts.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The point: `bulk.count = 2`; empty where nothing is swept.
    pub point: String,
    /// Its index in the run, and in the one that it is compared with.
    pub points: (u32, u32),
    /// The flow.
    pub flow: String,
    /// The figure.
    pub figure: &'static FigureKind,
    /// In the run.
    pub run: Estimate,
    /// In the one that it is compared with.
    pub with: Estimate,
    /// Extrapolation of the two values beyond the range of the E-model.
    pub outside_model: (bool, bool),
    /// The mean of the second minus that of the first.
    pub difference: f64,
    /// The same as a share of the first; `None` if that is zero.
    pub relative: Option<f64>,
    /// Half the width of the difference's 95 % confidence interval (Welch's t-interval: the runs need not scatter alike);
    /// `None` unless both were repeated.
    pub confidence95: Option<f64>,
}

impl Difference {
    /// Whether it is more than chance, with 95 % confidence; `None` if a run without repetitions cannot tell.
    pub fn is_significant(&self) -> Option<bool> {
        self.confidence95.map(|half| self.difference.abs() > half)
    }

    /// Whether it is one of the few figures that tell most.
    pub fn is_telling(&self) -> bool {
        TELLING.contains(&self.figure)
    }
}

/// Compares a run with another. Points are the same if all swept keys have the same values there.
pub fn compare(run: &StoredRun, with: &StoredRun) -> Comparison {
    let (first, second) = (View::new(run, None), View::new(with, None));
    let mut rows = Vec::new();
    let mut unmatched = Vec::new();
    for point in &run.points {
        let Some(other) = with.points.iter().find(|other| values(with, other) == values(run, point)) else {
            unmatched.push(format!("run {}: {}", run.info.id, point_name(point, &run.axes)));
            continue;
        };
        for flow in first.flows.iter().filter(|flow| second.flows.contains(flow)) {
            let pair = |metric: &FigureKind| {
                let one = first.sides[0].estimate(point.index, flow, metric)?;
                Some((one, second.sides[0].estimate(other.index, flow, metric)?))
            };
            rows.extend(of_flows().filter_map(|metric| {
                let (one, two) = pair(metric)?;
                let outside_model = (
                    first.sides[0].is_outside_model(point.index, flow, metric),
                    second.sides[0].is_outside_model(other.index, flow, metric),
                );
                let named = (point_name(point, &run.axes), (point.index, other.index));
                Some(Difference { outside_model, ..difference(named, flow, metric, one, two) })
            }));
        }
    }
    let is_new = |point: &&StoredPoint| !run.points.iter().any(|p| values(run, p) == values(with, point));
    let named = |point: &StoredPoint| format!("run {}: {}", with.info.id, point_name(point, &with.axes));
    unmatched.extend(with.points.iter().filter(is_new).map(named));
    Comparison {
        run: run.info.clone(),
        with: with.info.clone(),
        same_experiment: run.info.experiment_hash == with.info.experiment_hash,
        rows,
        unmatched,
    }
}

/// The value of each swept key, by key: the order of the sweep does not matter.
fn values<'r>(run: &'r StoredRun, point: &StoredPoint) -> Vec<(&'r str, &'r str)> {
    let axes = run.axes.iter().enumerate();
    let mut values: Vec<_> =
        axes.map(|(place, axis)| (axis.key.as_str(), value_on(point, &run.axes, place))).collect();
    values.sort_unstable();
    values
}

fn difference(
    (point, points): (String, (u32, u32)),
    flow: &str,
    metric: &'static FigureKind,
    run: Estimate,
    with: Estimate,
) -> Difference {
    let difference = with.mean - run.mean;
    Difference {
        point,
        points,
        flow: flow.to_owned(),
        figure: metric,
        outside_model: (false, false),
        difference,
        relative: (run.mean != 0.0).then(|| difference / run.mean.abs()),
        confidence95: welch(&run, &with),
        run,
        with,
    }
}

/// Half the width of the 95 % confidence interval of the difference of two means whose deviations need not be equal
/// (B. L. Welch, "The generalization of 'Student's' problem ...", Biometrika 34, 1947).
fn welch(one: &Estimate, two: &Estimate) -> Option<f64> {
    let part = |estimate: &Estimate| {
        let (deviation, count) = (estimate.standard_deviation?, f64::from(estimate.repetitions));
        Some((deviation * deviation / count, count - 1.0))
    };
    let ((a, a_degrees), (b, b_degrees)) = (part(one)?, part(two)?);
    let variance = a + b;
    if variance == 0.0 {
        return Some(0.0);
    }
    let degrees = variance * variance / (a * a / a_degrees + b * b / b_degrees);
    Some(student_t(0.975, degrees)? * variance.sqrt())
}

#[cfg(test)]
mod tests;
