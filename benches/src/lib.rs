//! What the benches share: repeated measurements in turn, and their ratios with spread.

pub mod memory;
pub mod queues;

use trunkline_experiment::{Experiment, Files, FilesError, Progress, Supervisor};

/// Experiments of benches name no files.
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        Err(FilesError::new(format!("`{path}` is not there: benches read no files")))
    }
}

/// Never stops.
pub struct GoOn;

impl Supervisor for GoOn {
    fn progress(&mut self, _: trunkline_core::Duration) -> Progress {
        Progress::Continue
    }
}

/// Parses an experiment that a bench wrote itself.
///
/// # Panics
/// If it is wrong: then the bench is.
pub fn experiment(text: &str) -> Experiment {
    Experiment::parse(text, "bench.toml", &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A figure over rounds: median with smallest and largest.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of at least one value.
    ///
    /// # Panics
    /// Without a value.
    pub fn of(values: &[f64]) -> Spread {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Spread { median: sorted[sorted.len() / 2], min: sorted[0], max: sorted[sorted.len() - 1] }
    }

    /// Of the quotients, round by round.
    pub fn of_ratios(over: &[f64], under: &[f64]) -> Spread {
        let ratios: Vec<f64> = over.iter().zip(under).map(|(a, b)| a / b).collect();
        Spread::of(&ratios)
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ({:.digits$} to {:.digits$})", self.median, self.min, self.max)
    }
}
