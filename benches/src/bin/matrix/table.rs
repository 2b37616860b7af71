//! The matrix as a table, with how far the simulator is from the kernel.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use anstream::println;
use clap::Parser;

use crate::cell::{Cell, Measured};
use crate::{guest, kernel, sim};

/// The simulator's TCP beside the kernel's, cell by cell.
#[derive(Parser)]
struct Options {
    /// User-Mode Linux with time travel
    #[arg(long, value_name = "LINUX")]
    kernel: Option<PathBuf>,
    /// Only cells whose names contain this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    cells: String,
    /// Print one JSON object per cell instead of the table
    #[arg(long)]
    json: bool,
}

/// A figure of the table: how far the simulator may be from the kernel, as a share.
struct Figure {
    name: &'static str,
    of: fn(&Measured) -> f64,
    goal: f64,
}

/// The largest difference of one cell.
const WORST: f64 = 0.12;

const FIGURES: &[Figure] = &[
    Figure { name: "goodput", of: |m| m.goodput, goal: 0.05 },
    Figure { name: "completion", of: |m| m.completion, goal: 0.05 },
    Figure { name: "mean delay", of: |m| m.mean, goal: 0.10 },
    Figure { name: "p95 delay", of: |m| m.p95, goal: 0.10 },
    Figure { name: "p99 delay", of: |m| m.p99, goal: 0.10 },
];

pub(crate) fn main() -> Result<ExitCode, Box<dyn Error>> {
    // The kernel gives its first process arguments of its own.
    if let Ok(cell) = std::env::var(kernel::CELL) {
        guest::run(&cell.parse()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options::parse();
    if !options.json {
        println!(
            "simulator | kernel in virtual time; Mbit/s, ms, per cent of the call's packets, segments\n"
        );
        println!(
            "{:<34}{:>15}{:>17}{:>17}{:>17}{:>17}{:>13}{:>13}{:>13}",
            "cell", "goodput", "completion", "mean", "p95", "p99", "loss", "fairness", "repeated"
        );
    }
    let mut pairs = Vec::new();
    for cell in Cell::all().into_iter().filter(|cell| cell.to_string().contains(&options.cells)) {
        let simulated = sim::measure(&cell)?;
        let real = options.kernel.as_ref().map(|kernel| kernel::measure(kernel, &cell)).transpose()?;
        if options.json {
            let row = serde_json::json!({ "cell": cell.to_string(), "sim": simulated, "kernel": real });
            println!("{row}");
        } else {
            row(&cell, &simulated, real.as_ref());
        }
        pairs.extend(real.map(|real| (cell, simulated, real)));
    }
    Ok(if pairs.is_empty() || options.json || judge(&pairs) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(cell: &Cell, sim: &Measured, kernel: Option<&Measured>) {
    let pair = |of: fn(&Measured) -> f64, digits: usize| match kernel {
        Some(kernel) => format!("{:.digits$} | {:.digits$}", of(sim), of(kernel)),
        None => format!("{:.digits$}", of(sim)),
    };
    println!(
        "{:<34}{:>15}{:>17}{:>17}{:>17}{:>17}{:>13}{:>13}{:>13}",
        cell.to_string(),
        pair(|m| m.goodput, 2),
        if cell.volume == 0 { "-".to_owned() } else { pair(|m| m.completion, 0) },
        pair(|m| m.mean, 1),
        pair(|m| m.p95, 1),
        pair(|m| m.p99, 1),
        pair(|m| m.loss, 1),
        pair(|m| m.fairness, 2),
        pair(|m| m.retransmitted as f64, 0),
    );
}

/// Prints the median and the worst difference of each figure, and whether all are within their goals.
fn judge(pairs: &[(Cell, Measured, Measured)]) -> bool {
    println!("\ndifference of the simulator from the kernel, {} cells:", pairs.len());
    let mut holds = true;
    for figure in FIGURES {
        let off = |(cell, sim, kernel): &(Cell, Measured, Measured)| {
            ((figure.of)(sim) / (figure.of)(kernel) - 1.0, cell.to_string())
        };
        let mut all: Vec<(f64, String)> = pairs.iter().map(off).filter(|(off, _)| off.is_finite()).collect();
        all.sort_by(|(a, _), (b, _)| a.abs().total_cmp(&b.abs()));
        let Some((median, _)) = all.get(all.len() / 2) else { continue };
        let beyond: Vec<String> = all
            .iter()
            .rev()
            .filter(|(off, _)| off.abs() > WORST)
            .map(|(off, cell)| format!("{cell} {:+.0} %", off * 100.0))
            .collect();
        holds &= median.abs() <= figure.goal && beyond.is_empty();
        println!(
            "  {:<11} median {:.1} % (goal {:.0} %), cells beyond {:.0} %: {}",
            figure.name,
            median.abs() * 100.0,
            figure.goal * 100.0,
            WORST * 100.0,
            if beyond.is_empty() { "none".to_owned() } else { beyond.join("; ") },
        );
    }
    holds
}
