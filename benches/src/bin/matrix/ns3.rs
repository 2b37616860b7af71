//! A cell in ns-3.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cell::{Cell, Measured, Queue};

/// Compiles the scenario into a folder.
pub(crate) fn build(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    trunkline_benches::ns3::build("ns3-matrix", folder)
        .ok_or_else(|| "ns-3 does not compile here; install Debian's libns3-dev and g++".into())
}

/// Simulates a cell, with the random numbers of one run.
pub(crate) fn measure(program: &Path, cell: &Cell, run: u32) -> Result<Measured, Box<dyn Error>> {
    let Cell { rate, round_trip, queue, flows, control, loss, volume } = cell;
    let (kind, parameter, ecn) = match *queue {
        Queue::Fifo(products) => ("fifo", products * cell.product(), false),
        Queue::Codel => ("codel", 0.0, false),
        Queue::CodelEcn => ("codel", 0.0, true),
        Queue::FqCodel => ("fq-codel", 0.0, false),
        Queue::FqCodelEcn => ("fq-codel", 0.0, true),
        Queue::Marking(milliseconds) => ("marking", milliseconds as f64, true),
        Queue::Pie => ("pie", 0.0, false),
    };
    let output = Command::new(program)
        .args([&rate.to_string(), &round_trip.to_string(), kind, &parameter.to_string()])
        .args([&flows.to_string(), control, &loss.to_string(), &volume.to_string()])
        .args([if ecn { "1" } else { "0" }, &(run + 1).to_string()])
        .output()?;
    if !output.status.success() {
        return Err(format!("{cell}: ns-3: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
