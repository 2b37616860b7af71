//! What a run found, as a person reads it: one self-contained HTML file ([`html()`]), a summary for the terminal
//! ([`terminal()`]), figures as PNG ([`png()`]), tables as CSV ([`csv()`]) and everything as JSON ([`json()`]).
//!
//! All of them show the same figures under the same names, from one list of definitions, over repetitions with 95 %
//! confidence intervals. A run may be shown beside its counterpart on the other backend: prediction and measurement in
//! one table and one figure.

mod again;
mod answer;
mod bundles;
pub mod chart;
mod compare;
mod csv;
mod definition;
mod figures;
#[cfg(test)]
mod fixtures;
mod hints;
mod html;
mod json;
mod limited;
mod media;
mod notes;
pub mod output;
#[cfg_attr(not(feature = "png"), path = "no_png.rs")]
mod png;
mod single;
mod terminal;
#[cfg(test)]
mod tests;
pub mod text;
mod units;
mod verdict;
mod view;

use std::path::{Path, PathBuf};

use trunkline_experiment::Limit;
use trunkline_metrics::Estimate;
use trunkline_store::StoredRun;

use crate::units::Readable as _;

pub use crate::again::set_again;
pub use crate::compare::{Comparison, Difference, compare};
pub use crate::csv::csv;
pub use crate::definition::{Meaning, meanings};
pub use crate::html::{
    EmbeddedPage, EmbeddedSound, EmbeddedSounds, REPORT_SCRIPT, figure_section, html, page, whole_html,
};
pub use crate::json::{FORMAT, KIND, bundle_figures, figures, json, report, run_answer};
pub use crate::png::png;
pub use crate::single::{figure_names, figure_svg, flow_figures};
pub use crate::terminal::{cautions, one_line, terminal, terminal_comparison};
pub use crate::text::{Screen, Style};

/// The values of a point, one for each swept key, as reports show them: `fifo 600 KB` for `{ kind = "fifo", limit = "600 KB" }`.
pub fn shown_values(
    point: &trunkline_store::StoredPoint,
    axes: &[trunkline_experiment::Axis],
) -> Vec<String> {
    (0..axes.len().min(point.choice.len())).map(|axis| view::shown_on(point, axes, axis)).collect()
}

/// The figure of a limit over repetitions as a person reads it: `51.5 ± 0.3 ms`, `0.4 %`.
pub fn limit_figure(limit: &Limit, figure: &Estimate) -> String {
    limited::figure(limit).quantity.show_estimate(figure)
}

/// The unit in which figures of a limit are drawn whose largest is `largest`, and the factor from their base unit to it.
pub fn limit_unit(limit: &Limit, largest: f64) -> (&'static str, f64) {
    let unit = limited::figure(limit).quantity.unit(largest);
    (unit.name, unit.factor)
}

/// Whether every limit of the file was shown to hold at every point where it applies; `None` without limits.
pub fn limits_hold(run: &StoredRun) -> Option<bool> {
    let view = view::View::new(run, None);
    let outcome = verdict::headline(&view, &view.sides[0]).outcome;
    let hold = [verdict::Outcome::Holds, verdict::Outcome::NotApplicable].map(Some);
    (!run.limits.is_empty()).then(|| hold.contains(&outcome))
}

/// Whether this build draws figures as PNG files: the feature `png`.
pub const DRAWS_PNG: bool = cfg!(feature = "png");

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or a directory.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// This build draws no PNG files.
    #[error("cannot draw figures as PNG: {0}")]
    NotBuilt(String),
    /// A figure that cannot be drawn is a defect of ours.
    #[error("cannot draw the figure `{figure}`: {reason}; please report this")]
    Draw {
        /// The figure's id.
        figure: String,
        /// What the renderer says.
        reason: String,
    },
}

impl Error {
    fn write(path: &Path, source: std::io::Error) -> Error {
        Error::Write { path: path.to_owned(), source }
    }
}
