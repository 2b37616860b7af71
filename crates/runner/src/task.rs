//! One repetition of one point, and the values of that point.

use trunkline_experiment::{Experiment, Point};

/// One repetition of one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The point's index in the experiment.
    pub point: usize,
    /// Its index in the stored run.
    pub stored: u32,
    /// From 0.
    pub repetition: u32,
}

/// The values of a point on the axes, as in the file.
pub(crate) fn values(experiment: &Experiment, point: &Point) -> Vec<String> {
    experiment.axes.iter().zip(&point.choice).map(|(axis, chosen)| axis.values[*chosen].clone()).collect()
}
