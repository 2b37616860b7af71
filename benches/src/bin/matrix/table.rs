//! The matrix as a table, with how far the simulator is from the kernel.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use anstream::println;
use clap::Parser;
use serde::Serialize;

use crate::cell::{Cell, Measured};
use crate::{guest, kernel, ns3, sim};

/// The simulator's TCP beside the kernel's and that of ns-3, cell by cell.
#[derive(Parser)]
struct Options {
    /// User-Mode Linux with time travel
    #[arg(long, value_name = "LINUX")]
    kernel: Option<PathBuf>,
    /// Also run ns-3 (Debian: libns3-dev and g++)
    #[arg(long)]
    ns3: bool,
    /// Runs of each cell, with other random numbers; the median counts
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only cells whose names contain this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    cells: String,
    /// Print one JSON object per cell instead of the table
    #[arg(long)]
    json: bool,
}

/// The runs of one cell.
#[derive(Serialize)]
struct Row {
    cell: String,
    sim: Vec<Measured>,
    kernel: Vec<Measured>,
    ns3: Vec<Measured>,
}

/// A figure of the table: how far the simulator may be from the kernel, as a share.
struct Figure {
    name: &'static str,
    of: Figures,
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
    let folder = tempfile::tempdir()?;
    let ns3 = if options.ns3 { Some(ns3::build(folder.path())?) } else { None };
    if !options.json {
        println!("Medians of {} runs: simulator / kernel (smallest to largest) / ns-3\n", options.runs);
        let names: Vec<&str> = COLUMNS.iter().map(|(name, ..)| *name).collect();
        println!("| cell | {} |", names.join(" | "));
        println!("| --- |{}", " --- |".repeat(names.len()));
    }
    let mut rows = Vec::new();
    for cell in Cell::all().into_iter().filter(|cell| cell.to_string().contains(&options.cells)) {
        let mut row = Row { cell: cell.to_string(), sim: Vec::new(), kernel: Vec::new(), ns3: Vec::new() };
        for run in 0..options.runs {
            row.sim.push(sim::measure(&cell, run)?);
            if let Some(kernel) = &options.kernel {
                row.kernel.push(kernel::measure(kernel, &cell)?);
            }
            if let Some(program) = &ns3 {
                row.ns3.push(ns3::measure(program, &cell, run)?);
            }
        }
        if options.json {
            println!("{}", serde_json::to_string(&row)?);
        } else {
            print(&cell, &row);
        }
        rows.push(row);
    }
    if options.json || options.kernel.is_none() {
        return Ok(ExitCode::SUCCESS);
    }
    let holds = judge("simulator", &rows, |row| &row.sim);
    if ns3.is_some() {
        judge("ns-3", &rows, |row| &row.ns3);
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

type Figures = fn(&Measured) -> f64;

/// The columns of the table: a name, its figure, and digits.
const COLUMNS: &[(&str, Figures, usize)] = &[
    ("goodput", |m| m.goodput, 2),
    ("completion", |m| m.completion, 0),
    ("mean", |m| m.mean, 1),
    ("p95", |m| m.p95, 1),
    ("p99", |m| m.p99, 1),
    ("loss of the call", |m| m.loss, 1),
    ("fairness", |m| m.fairness, 2),
    ("retransmitted", |m| m.retransmitted as f64, 0),
];

fn print(cell: &Cell, row: &Row) {
    let columns = COLUMNS.iter().map(|&(name, of, digits)| {
        if name == "completion" && cell.volume == 0 {
            return String::new();
        }
        let median = |runs: &[Measured]| format!("{:.digits$}", median(runs, of));
        let mut text = median(&row.sim);
        if !row.kernel.is_empty() {
            let (least, most) = ends(&row.kernel, of);
            let (least, most) = (format!("{least:.digits$}"), format!("{most:.digits$}"));
            text += &format!(" / {}", median(&row.kernel));
            if least != most {
                text += &format!(" ({least} to {most})");
            }
        }
        if !row.ns3.is_empty() {
            text += &format!(" / {}", median(&row.ns3));
        }
        text
    });
    println!("| `{cell}` | {} |", columns.collect::<Vec<_>>().join(" | "));
}

fn sorted(runs: &[Measured], of: Figures) -> Vec<f64> {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(runs: &[Measured], of: Figures) -> f64 {
    let values = sorted(runs, of);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

/// The smallest and the largest of a figure.
fn ends(runs: &[Measured], of: Figures) -> (f64, f64) {
    let values = sorted(runs, of);
    (values[0], values[values.len() - 1])
}

/// Prints the median difference of each figure, and the cells that are farther than allowed from all runs of the kernel.
/// Returns whether all are within their goals.
fn judge(who: &str, rows: &[Row], of_row: fn(&Row) -> &[Measured]) -> bool {
    let rows: Vec<&Row> = rows.iter().filter(|row| !of_row(row).is_empty()).collect();
    println!("\ndifference of {who} from the kernel, {} cells:\n", rows.len());
    println!("| figure | median difference | goal | cells beyond {:.0} % |", WORST * 100.0);
    println!("| --- | --- | --- | --- |");
    let mut holds = true;
    for &Figure { name, of, goal } in FIGURES {
        let mut differences = Vec::new();
        let mut beyond = Vec::new();
        for row in &rows {
            let ours = median(of_row(row), of);
            let difference = ours / median(&row.kernel, of) - 1.0;
            if !difference.is_finite() {
                continue;
            }
            differences.push(difference.abs());
            let (least, most) = ends(&row.kernel, of);
            if ours < least * (1.0 - WORST) || ours > most * (1.0 + WORST) {
                beyond.push((difference, &row.cell));
            }
        }
        differences.sort_by(f64::total_cmp);
        let Some(&middle) = differences.get(differences.len() / 2) else { continue };
        beyond.sort_by(|(a, _), (b, _)| b.abs().total_cmp(&a.abs()));
        holds &= middle <= goal && beyond.is_empty();
        let beyond: Vec<String> =
            beyond.iter().map(|(difference, cell)| format!("{cell} {:+.0} %", difference * 100.0)).collect();
        println!(
            "| {name} | {:.1} % | {:.0} % | {} |",
            middle * 100.0,
            goal * 100.0,
            if beyond.is_empty() { "none".to_owned() } else { beyond.join("; ") },
        );
    }
    holds
}
