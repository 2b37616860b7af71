//! `trunkline runs`

use serde_json::json;
use trunkline_store::{Backend, RunInfo, Status};

use super::open_store;
use crate::args::Global;
use crate::output::{self, Failure};

pub(super) fn runs(global: &Global) -> Result<u8, Failure> {
    let store = open_store(global)?;
    let runs = store.runs().map_err(Failure::environment)?;
    if global.json {
        output::print_json(&json!({ "format": 1, "runs": runs }));
        return Ok(output::DONE);
    }
    if runs.is_empty() {
        output::note(format_args!("no runs are stored in {}", store.directory().display()));
        return Ok(output::DONE);
    }
    let head = ["run", "started", "on", "status", "points", "measured", "name"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(runs.iter().map(row));
    output::print(output::table(&rows));
    Ok(output::DONE)
}

fn row(run: &RunInfo) -> Vec<String> {
    vec![
        run.id.to_string(),
        run.started.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        match run.backend {
            Backend::Sim => "sim",
            Backend::Wire => "wire",
            Backend::Live => "live",
        }
        .to_owned(),
        match run.status {
            Status::Running => "running",
            Status::Complete => "complete",
            Status::Partial => "partial",
        }
        .to_owned(),
        run.points.to_string(),
        match run.status {
            // A plan repeats some points more often than others.
            Status::Complete => run.repetitions_done.to_string(),
            _ => {
                format!("{} of {}", run.repetitions_done, u64::from(run.points) * u64::from(run.repetitions))
            }
        },
        run.name.clone(),
    ]
}
