//! Instructions of the hot paths, counted by valgrind's callgrind: other load on the machine changes nothing. Each path has a budget.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::journal::Journal;
use crate::log::Log;
use crate::test::{cargo, skip};

/// A count may exceed its budget by this many per cent.
const ALLOWED: u64 = 3;

/// The C library chooses its copies and fills by the processor: without these, by none, so that every machine counts the same.
const PLAIN_PROCESSOR: &str =
    "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-ERMS,-FSRM,-BMI2,-SSE4_2,-SSSE3";

/// The heading of the file of budgets, before the compiler's name.
const COMPILER: &str = "# ";

/// Budgets of the hot paths.
#[derive(clap::Args, Default)]
pub(crate) struct Instructions {
    /// Make the counts of this run the budgets
    #[arg(long)]
    accept: bool,
}

pub(crate) fn run(options: &Instructions, log: &Log) -> Result<(), String> {
    let there = Command::new("valgrind").arg("--version").output();
    if !there.is_ok_and(|output| output.status.success()) {
        return skip(
            log,
            "the instructions of hot paths are not counted: install the Debian package `valgrind`",
        );
    }
    let build = ["build", "--profile", "instructions", "--locked", "--package", "trunkline-hot"];
    // The compiler itself: clippy, which compiles elsewhere, optimises less.
    log.step("hot paths: build", cargo().args(build).env_remove("RUSTC_WORKSPACE_WRAPPER"))?;
    let program = crate::root().join("target/instructions/trunkline-hot");
    let names = output(&mut Command::new(&program))?;
    let counts = names.lines().map(|name| Ok((name.to_owned(), count(&program, name)?)));
    let counts: BTreeMap<String, u64> = counts.collect::<Result<_, String>>()?;
    let compiler = output(Command::new("rustc").arg("--version"))?.trim().to_owned();
    if options.accept {
        return write(&compiler, &counts);
    }
    let text = std::fs::read_to_string(file()).map_err(|error| format!("{}: {error}", file().display()))?;
    let (known, budgets) = read(&text)?;
    let judged = judge(&counts, &budgets);
    log.say(format_args!("\n{}", judged.table));
    if known != compiler {
        let why = format!("the budgets of instructions are those of {known}, and this is {compiler}");
        return Journal::of_last_suite().skip_step(
            &why,
            "another compiler makes other instructions; `--accept` makes its counts the budgets",
        );
    }
    match judged.broken.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "more than {} % over the budget of instructions: {}; if it must be so: cargo xtask instructions --accept",
            ALLOWED,
            judged.broken.join(", ")
        )),
    }
}

/// Instructions of a path for each unit of its work, in thousandths.
fn count(program: &PathBuf, name: &str) -> Result<u64, String> {
    let mut command = Command::new("valgrind");
    command.args([
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--toggle-collect=trunkline_hot::counted*",
    ]);
    command.env("GLIBC_TUNABLES", PLAIN_PROCESSOR);
    let done = command.arg(program).arg(name).output().map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&done.stderr);
    let collected =
        said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse::<u64>().ok());
    let units = String::from_utf8_lossy(&done.stdout).trim().parse::<u64>().ok();
    match (collected, units) {
        (Some(collected @ 1..), Some(units @ 1..)) => Ok(collected * 1000 / units),
        _ => Err(format!("{name}: callgrind counted nothing: {}", said.lines().last().unwrap_or_default())),
    }
}

/// Counts beside budgets.
struct Judged {
    table: String,
    broken: Vec<String>,
}

fn judge(counts: &BTreeMap<String, u64>, budgets: &BTreeMap<String, u64>) -> Judged {
    let mut judged = Judged {
        table: String::from("instructions per unit, and against the budget:\n"),
        broken: Vec::new(),
    };
    for (name, &count) in counts {
        let each = count as f64 / 1000.0;
        let against = match budgets.get(name) {
            Some(&budget) => {
                let share = count as f64 / budget.max(1) as f64 - 1.0;
                if count * 100 > budget * (100 + ALLOWED) {
                    judged.broken.push(format!("{name} {:+.1} %", 100.0 * share));
                }
                format!("{:+.1} %", 100.0 * share)
            }
            None => {
                judged.broken.push(format!("{name} has no budget"));
                "no budget".to_owned()
            }
        };
        // Writing to a String cannot fail.
        let _ = writeln!(judged.table, "  {name:<40} {each:>12.1} {against:>10}");
    }
    let gone = budgets.keys().filter(|name| !counts.contains_key(*name));
    judged.broken.extend(gone.map(|name| format!("{name} is gone")));
    judged
}

fn file() -> PathBuf {
    crate::root().join("benches/hot/instructions.txt")
}

fn write(compiler: &str, counts: &BTreeMap<String, u64>) -> Result<(), String> {
    let mut text = format!("{COMPILER}{compiler}\n");
    for (name, count) in counts {
        let _ = writeln!(text, "{name} {}.{:03}", count / 1000, count % 1000);
    }
    std::fs::write(file(), text).map_err(|error| format!("{}: {error}", file().display()))
}

/// The compiler, and the budgets in thousandths.
fn read(text: &str) -> Result<(String, BTreeMap<String, u64>), String> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let compiler = first.strip_prefix(COMPILER).ok_or("the first line of the budgets names the compiler")?;
    let budget = |line: &str| {
        let (name, number) = line.rsplit_once(' ')?;
        Some((name.to_owned(), (number.parse::<f64>().ok()? * 1000.0).round() as u64))
    };
    let budgets = rest.lines().map(|line| budget(line).ok_or_else(|| format!("not a budget: {line}")));
    Ok((compiler.to_owned(), budgets.collect::<Result<_, String>>()?))
}

fn output(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(format!("{} ended with {}", command.get_program().display(), done.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn a_budget_is_broken_by_more_than_three_per_cent() {
        let budgets = of(&[("a", 100_000), ("b", 100_000), ("c", 100_000)]);
        let judged = judge(&of(&[("a", 103_000), ("b", 103_001), ("c", 50_000)]), &budgets);
        assert_eq!(judged.broken, ["b +3.0 %"]);
    }

    #[test]
    fn what_has_no_budget_and_what_is_gone_is_told() {
        let judged = judge(&of(&[("new", 1)]), &of(&[("old", 1)]));
        assert_eq!(judged.broken, ["new has no budget", "old is gone"]);
    }

    #[test]
    fn budgets_are_read_as_they_are_written() {
        let (compiler, budgets) =
            read("# rustc 1.95.0\nqueue/fifo 268.021\nlink/serial-idle 1.000\n").unwrap();
        assert_eq!(compiler, "rustc 1.95.0");
        assert_eq!(budgets, of(&[("queue/fifo", 268_021), ("link/serial-idle", 1000)]));
        assert!(read("queue/fifo 1\n").is_err() && read("# rustc\nqueue/fifo\n").is_err());
    }
}
