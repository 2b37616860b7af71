//! Where text goes: results to standard output, everything else to standard error; and how errors end the program.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};

use crate::args::{Color, Global};

/// Done.
pub const DONE: u8 = 0;
/// The environment failed: a socket, a disk, a far end.
pub const ENVIRONMENT: u8 = 1;
/// A goal of a study was missed, and that was asked for.
pub const GOAL_MISSED: u8 = 1;
/// Bad input; nothing was written.
pub const BAD_INPUT: u8 = 2;
/// Interrupted by Ctrl-C; what was measured is kept.
pub const INTERRUPTED: u8 = 130;

/// Why a command failed: what to print and how to exit.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// One clear sentence, or several problems with their positions, a line each.
    pub message: String,
}

impl Failure {
    /// Bad input: exit code 2.
    pub fn input(message: impl Display) -> Failure {
        Failure { code: BAD_INPUT, message: message.to_string() }
    }

    /// The environment: exit code 1.
    pub fn environment(message: impl Display) -> Failure {
        Failure { code: ENVIRONMENT, message: message.to_string() }
    }
}

/// Sets colour by the options, NO_COLOR and the terminal.
pub fn set_color(global: &Global) {
    match global.color {
        Color::Auto => {} // anstream's own choice: terminal, NO_COLOR, CLICOLOR, TERM
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Whether standard output shows colours.
pub fn style() -> trunkline_report::Style {
    match anstream::AutoStream::choice(&std::io::stdout()) {
        anstream::ColorChoice::Never => trunkline_report::Style::Plain,
        _ => trunkline_report::Style::Colour,
    }
}

/// A result could not be printed.
static UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// How the program ends with this code: results that were asked for and could not be printed are a failure.
pub fn exit(code: u8) -> ExitCode {
    let is_unwritten = UNWRITTEN.load(Ordering::Relaxed);
    ExitCode::from(if code == DONE && is_unwritten { ENVIRONMENT } else { code })
}

/// Prints a result. A closed pipe (`trunkline runs | head -1`) is not an error.
pub fn print(text: impl Display) {
    let mut out = anstream::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        UNWRITTEN.store(true, Ordering::Relaxed);
        warn(format_args!("standard output cannot be written: {error}"));
    }
}

/// Prints a result as JSON.
pub fn print_json(value: &serde_json::Value) {
    print(format_args!("{value:#}"));
}

/// Prints something that is not a result.
pub fn note(text: impl Display) {
    // If standard error is gone too there is nobody left to tell.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints why a command failed and gives its exit code.
pub fn fail(failure: &Failure) -> ExitCode {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    note(format_args!("{red}error:{red:#} {}", failure.message));
    ExitCode::from(failure.code)
}

/// Prints a warning.
pub fn warn(text: impl Display) {
    let yellow = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    note(format_args!("{yellow}warning:{yellow:#} {text}"));
}

/// Columns of text, each as wide as its widest cell; the last is not padded.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for (line, row) in rows.iter().enumerate() {
        if line > 0 {
            text.push('\n');
        }
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == row.len();
            let width = if last { 0 } else { widths[column] };
            // Writing to a String cannot fail.
            let _ = write!(text, "{cell:width$}{}", if last { "" } else { "  " });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let rows = [vec!["run".to_owned(), "name".to_owned()], vec!["7".to_owned(), "voice".to_owned()]];
        assert_eq!(table(&rows), "run  name\n7    voice");
    }
}
