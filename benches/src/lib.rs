//! What the benches share: repeated measurements in turn, and their ratios with spread.

pub mod memory;
pub mod ns3;

pub use trunkline_hot::queues;
pub use trunkline_hot::simulated::{GoOn, NoFiles, experiment, simulate};

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
