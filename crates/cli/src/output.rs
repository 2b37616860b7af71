//! Where text goes: results to standard output, everything else to standard error; and how errors end the program.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anstyle::AnsiColor;
use indicatif::ProgressBar;
use trunkline_experiment::Problems;
use trunkline_report::text::{Column, Table, Text, broken};
use trunkline_report::{Screen, Style};
use trunkline_runner::LoadError;

use crate::args::{Color, Global};
use crate::escape::{escaped, escaped_json, escaped_line};
use crate::json::{self, ErrorOutput, ErrorProblem, Output, WarningsOutput};

/// Done.
pub const DONE: u8 = 0;
/// The environment failed: a socket, a disk, a far end.
pub const ENVIRONMENT: u8 = 1;
/// Bad input; nothing was written.
pub const BAD_INPUT: u8 = 2;
/// A limit of the file does not hold, or a goal of a study was missed, and `--strict` asks for it.
pub const BROKEN: u8 = 3;
/// Interrupted by Ctrl-C; what was measured is kept.
pub const INTERRUPTED: u8 = 130;

/// Why a command failed: what to print and how to exit.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// One clear sentence, or several problems with their positions, a line each.
    pub message: String,
    /// The same problems one by one.
    pub problems: Vec<ErrorProblem>,
}

impl Failure {
    /// Bad input: exit code 2.
    pub fn input(message: impl Display) -> Failure {
        Failure { code: BAD_INPUT, message: message.to_string(), problems: Vec::new() }
    }

    /// A file that cannot be written: exit code 1.
    pub fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
        let path = path.display();
        Failure::environment(match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                format!("cannot write `{path}`: its disk is full; free some space, or choose another place")
            }
            ErrorKind::AlreadyExists => {
                format!("cannot write `{path}`: it already exists; choose another name, or remove it first")
            }
            _ => format!("cannot write `{path}`: {error}"),
        })
    }

    /// The environment: exit code 1.
    pub fn environment(message: impl Display) -> Failure {
        Failure { code: ENVIRONMENT, message: message.to_string(), problems: Vec::new() }
    }

    /// An experiment file that cannot be loaded: exit code 2.
    pub fn load(error: &LoadError) -> Failure {
        match error {
            LoadError::Invalid(problems) => Failure::invalid(problems),
            LoadError::Unreadable { path, .. } => Failure::about(path, error),
        }
    }

    /// A file that cannot be read, or is not what was expected: exit code 2. The message names it.
    pub fn about(path: &Path, message: impl Display) -> Failure {
        let file = Some(path.display().to_string());
        let problem = ErrorProblem { file, ..ErrorProblem::new(&message) };
        Failure { problems: vec![problem], ..Failure::input(message) }
    }

    /// A file with mistakes: exit code 2.
    pub fn invalid(problems: &Problems) -> Failure {
        let each = problems.iter().map(ErrorProblem::from).collect();
        Failure { problems: each, ..Failure::input(problems) }
    }

    /// A mistake on the command line: exit code 2.
    pub fn usage(error: &clap::Error) -> Failure {
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ").split("\n\nUsage:").next().unwrap_or_default();
        let text = text.split("\n\nFor more information").next().unwrap_or_default();
        Failure::input(text.trim_end())
    }
}

/// Whether only results, warnings and errors are printed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether nothing but results, warnings and errors is printed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Whether results are printed as JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// Sets how much is printed and how, and colour by the options, NO_COLOR and the terminal.
pub fn set_up(global: &Global) {
    JSON.store(global.json, Ordering::Relaxed);
    QUIET.store(global.quiet, Ordering::Relaxed);
    match global.color {
        Color::Auto => {} // anstream's own choice: terminal, NO_COLOR, CLICOLOR, TERM
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
}

/// Where results are shown: whether standard output has colours, and how wide it is if it is a terminal.
#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
pub fn screen() -> Screen {
    let stdout = std::io::stdout();
    let style = match anstream::AutoStream::choice(&stdout) {
        anstream::ColorChoice::Never => Style::Plain,
        _ => Style::Colour,
    };
    Screen { style, width: width_of(&stdout) }
}

/// Columns of a terminal that does not say how many it has.
const USUAL_WIDTH: usize = 80;

/// Columns of a stream; `None` if it is not a terminal.
fn width_of(stream: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let told = || terminal_size::terminal_size_of(stream).map(|(width, _)| usize::from(width.0));
    stream.is_terminal().then(|| told().filter(|width| *width > 0).unwrap_or(USUAL_WIDTH))
}

/// A result could not be printed.
static UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// How the program ends with this code: results that were asked for and could not be printed are a failure. Under `--json`,
/// warnings that came after the last result are printed as an object of their own.
pub fn exit(code: u8) -> ExitCode {
    let is_unwritten = UNWRITTEN.load(Ordering::Relaxed);
    let late = take_warnings();
    if !is_unwritten && !late.is_empty() {
        print_json(&WarningsOutput { warnings: late });
    }
    ExitCode::from(if code == DONE && is_unwritten { ENVIRONMENT } else { code })
}

/// Prints a result; on a terminal without what the terminal would obey. A closed pipe (`trunkline runs | head -1`) is not an
/// error.
#[expect(clippy::disallowed_methods, reason = "the one place where results are printed")]
pub fn print(text: impl Display) {
    let text = text.to_string();
    let text = if is_terminal() { escaped(&text) } else { Cow::Borrowed(text.as_str()) };
    let mut out = anstream::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        UNWRITTEN.store(true, Ordering::Relaxed);
        warn(format_args!("cannot write to standard output: {error}"));
    }
}

/// Prints a result in words, whose lines are broken at spaces where a terminal is narrower.
pub fn print_words(text: impl Display) {
    print(broken(&text.to_string(), screen().width));
}

/// Prints a result as JSON, with the warnings since the last one.
pub fn print_json<T: Output>(result: &T) {
    let mut tagged = json::tagged(result);
    json::add_warnings(&mut tagged, take_warnings());
    print(escaped_json(&format!("{tagged:#}")));
}

/// Warnings that no printed object has yet. Empty without `--json`.
static WARNINGS: Mutex<Vec<ErrorProblem>> = Mutex::new(Vec::new());

fn take_warnings() -> Vec<ErrorProblem> {
    std::mem::take(&mut WARNINGS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Prints something that is not a result, unless nothing else was asked for.
pub fn note(text: impl Display) {
    if !is_quiet() {
        tell(text);
    }
}

/// Prints to standard error what a process of ours has printed there.
pub fn pass_on(line: impl Display) {
    tell(line);
}

/// Prints to standard error, without what a terminal would obey.
#[expect(clippy::disallowed_methods, reason = "the one place where everything else is printed")]
fn tell(text: impl Display) {
    // If standard error is gone too there is nobody left to tell.
    let _ = writeln!(anstream::stderr().lock(), "{}", escaped(&text.to_string()));
}

/// The same of a sentence, broken at spaces where a terminal is narrower.
#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
fn tell_words(text: impl Display) {
    tell(broken(&text.to_string(), width_of(&std::io::stderr())));
}

/// Sets the text before a bar, without what a terminal would obey.
#[expect(clippy::disallowed_methods, reason = "the one place where bars get their text")]
pub fn set_prefix(bar: &ProgressBar, prefix: impl Display) {
    bar.set_prefix(escaped_line(&prefix.to_string()).into_owned());
}

/// Sets the message of a bar, without what a terminal would obey.
#[expect(clippy::disallowed_methods, reason = "the one place where bars get their text")]
pub fn set_message(bar: &ProgressBar, message: impl Display) {
    bar.set_message(escaped_line(&message.to_string()).into_owned());
}

/// Whether standard output is a terminal.
#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
pub fn is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether standard error is a terminal.
#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
pub fn is_error_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Prints why a command failed and gives its exit code.
pub fn fail(failure: &Failure) -> ExitCode {
    let red = anstyle::Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    tell_words(format_args!("{red}error:{red:#} {}", failure.message));
    if JSON.load(Ordering::Relaxed) {
        print_failure(failure);
    }
    ExitCode::from(failure.code)
}

/// Prints why a command failed as JSON.
pub fn print_failure(failure: &Failure) {
    let Failure { code, message, problems } = failure;
    print_json(&ErrorOutput { code: *code, message: message.clone(), problems: problems.clone() });
}

/// Prints a warning. Under `--json` the next object has it too.
pub fn warn(text: impl Display) {
    warn_of(ErrorProblem::new(text));
}

/// Prints a warning about a file. The message names the file.
pub fn warn_about(path: &Path, message: impl Display) {
    warn_of(ErrorProblem { file: Some(path.display().to_string()), ..ErrorProblem::new(message) });
}

fn warn_of(warning: ErrorProblem) {
    let yellow = anstyle::Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    tell_words(format_args!("{yellow}warning:{yellow:#} {}", warning.message));
    keep_warning(warning);
}

/// Adds a sentence that a result in words contains to the warnings of the next JSON object.
pub fn add_to_json(sentence: impl Display) {
    keep_warning(ErrorProblem::new(sentence));
}

fn keep_warning(warning: ErrorProblem) {
    if JSON.load(Ordering::Relaxed) {
        WARNINGS.lock().unwrap_or_else(PoisonError::into_inner).push(warning);
    }
}

/// Rows of words for a screen, the first of which is the heading; without the last line's end.
pub fn table(rows: &[Vec<String>], screen: Screen) -> String {
    table_with_keys(1, rows, screen)
}

/// The same of rows that their first so many words tell apart: these stand before the columns that continue below, too.
pub fn table_with_keys(keys: usize, rows: &[Vec<String>], screen: Screen) -> String {
    let (heads, rows) = rows.split_first().map_or((&[][..], rows), |(heads, rows)| (heads.as_slice(), rows));
    laid_out(keys, heads, rows, screen)
}

/// The same of rows without a heading.
pub fn list(rows: &[Vec<String>], screen: Screen) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    laid_out(1, &vec![String::new(); columns], rows, screen)
}

fn laid_out(keys: usize, heads: &[String], rows: &[Vec<String>], screen: Screen) -> String {
    let columns = heads.iter().enumerate().map(|(place, head)| {
        let column = Column::words(head);
        if place < keys { column.key() } else { column }
    });
    let mut table = Table::new(columns);
    rows.iter().for_each(|row| table.row(row));
    let mut text = Text::new(screen);
    text.table(&table);
    String::from(text).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let rows = [vec!["run".to_owned(), "name".to_owned()], vec!["7".to_owned(), "voice".to_owned()]];
        assert_eq!(table(&rows, Screen::default()), "run  name\n7    voice");
    }
}
