//! Results as files: one HTML page, every table as CSV, and every figure as SVG and PNG.

use std::path::{Path, PathBuf};

use trunkline_report::DRAWS_PNG;
use trunkline_report::chart::{png, render};

use crate::csv_table::csv;
use crate::figures::figures;
use crate::html::html;
use crate::results::Results;

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file or the folder.
    #[error("cannot write `{}`: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A figure that cannot be drawn is a defect of ours.
    #[error("cannot draw `{figure}`: {reason}; please report this")]
    Draw {
        /// The figure's id.
        figure: String,
        /// What the renderer says.
        reason: String,
    },
}

/// The names of the figures whose tables have values of ours.
pub fn drawn(results: &Results) -> Vec<String> {
    figures(results).into_iter().map(|figure| figure.id).collect()
}

/// The figure of this name as SVG, if its tables have values of ours.
pub fn picture(results: &Results, id: &str) -> Option<String> {
    let figure = figures(results).into_iter().find(|figure| figure.id == id)?;
    Some(render(&figure.chart, figure.file_frame(), &figure.id))
}

/// Writes `NAME.html` (the study's name), `TABLE.csv` of every table, and `figure-NN.svg` and `.png` of every figure into a
/// folder, which is made if it is missing, and says which files those are, the page first.
///
/// # Errors
/// If the folder or a file cannot be written.
pub fn write(results: &Results, directory: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| WriteError::File { path, source }
    };
    std::fs::create_dir_all(directory).map_err(failed(directory))?;
    let mut written = Vec::new();
    let mut put = |name: String, bytes: &[u8]| {
        let path = directory.join(name);
        std::fs::write(&path, bytes).map_err(failed(&path))?;
        written.push(path);
        Ok(())
    };
    put(format!("{}.html", results.study.name), html(results).as_bytes())?;
    for table in &results.tables {
        let name = format!("{}.csv", table.table.name);
        let path = directory.join(&name);
        put(name, &csv(table).map_err(|error| WriteError::File { path, source: error.into() })?)?;
    }
    for figure in figures(results) {
        let svg = render(&figure.chart, figure.file_frame(), &figure.id);
        put(format!("{}.svg", figure.id), svg.as_bytes())?;
        if DRAWS_PNG {
            let picture =
                png(&svg).map_err(|reason| WriteError::Draw { figure: figure.id.clone(), reason })?;
            put(format!("{}.png", figure.id), &picture)?;
        }
    }
    Ok(written)
}
