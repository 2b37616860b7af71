//! Exit codes and examples: on man pages, in `--help` and in the reference.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};
use clap_mangen::roff::{Roff, roman};

use crate::args::Cli;
use crate::output;

/// Exit codes of every command.
const EXIT: &[(u8, &str)] = &[
    (output::DONE, "Success."),
    (output::ENVIRONMENT, "The environment failed: a socket, a disk, a far end."),
    (output::BAD_INPUT, "Invalid input; nothing was written."),
    (output::INTERRUPTED, "Interrupted by Ctrl-C; the results so far are kept."),
];

/// Exit codes of single commands; they replace those of every command.
const OWN_EXIT: &[(&[&str], u8, &str)] = &[
    (
        &["run"],
        output::BROKEN,
        "With --strict: a limit of the file is broken, or could not be evaluated at some point.",
    ),
    (
        &["runs"],
        output::ENVIRONMENT,
        "The environment failed, or `merge` has made a partial run: repetitions are missing.",
    ),
    (
        &["paper"],
        output::BROKEN,
        "With --strict: a goal was missed, or with --calibrate a constant was not found again.",
    ),
    (
        &["receive", "reflect", "serve", "agent"],
        output::INTERRUPTED,
        "Ended by force while it was ending after Ctrl-C, which alone ends it with 0.",
    ),
];

/// An example: what it does, and the command.
type Example = (&'static str, &'static str);

/// Examples by the command's name.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "trunkline",
        &[
            ("Predict an experiment over the links that its file describes", "trunkline run experiment.toml"),
            ("Validate a file and summarise it", "trunkline check experiment.toml"),
            (
                "Find out how many calls a link carries",
                "trunkline plan experiment.toml --maximise flow.voice.count",
            ),
            ("Draw, run and compare experiments in the browser", "trunkline serve"),
        ],
    ),
    (
        "run",
        &[
            ("Predict an experiment in virtual time", "trunkline run experiment.toml"),
            (
                "The same on a faster link, with other random numbers",
                "trunkline run experiment.toml --set 'link.trunk.rate=5 Mbit/s' --seed 7",
            ),
            (
                "In continuous integration: print only results, and exit with 3 if a limit is broken",
                "trunkline run experiment.toml --strict --quiet --json > result.json",
            ),
            ("Run the output of another program", "generate-experiment | trunkline run -"),
            ("Finish the latest run, which was interrupted", "trunkline run --resume latest"),
        ],
    ),
    (
        "plan",
        &[
            (
                "Find the largest number of calls that keeps the file's limits",
                "trunkline plan experiment.toml --maximise flow.voice.count",
            ),
            (
                "Find the smallest rate within 5 %, for three delays",
                "trunkline plan experiment.toml --minimise link.trunk.rate --precision '5 %' --against 'link.trunk.delay=1 ms,20 ms,100 ms'",
            ),
        ],
    ),
    (
        "check",
        &[
            ("Check that `trunkline run` accepts the file", "trunkline check experiment.toml"),
            ("Check that it can run on real sockets", "trunkline check experiment.toml --on live"),
            (
                "Check it with another queue",
                "trunkline check experiment.toml --set link.trunk.queue=fq-codel",
            ),
        ],
    ),
    (
        "wire",
        &[(
            "Open a shell on the host `berlin`, behind the file's links",
            "trunkline wire experiment.toml --at berlin -- bash",
        )],
    ),
    (
        "report",
        &[
            ("Rebuild the report of the latest run", "trunkline report"),
            (
                "Write its tables as CSV and its figures as PNG",
                "trunkline report latest --csv tables --png figures",
            ),
        ],
    ),
    (
        "runs",
        &[
            ("List the runs of the last day", "trunkline runs --since '1 day'"),
            ("Compare two runs", "trunkline runs compare 7 8"),
        ],
    ),
    ("send", &[("Send two channels from JACK to another host", "trunkline send studio.example --from jack")]),
    (
        "probe",
        &[(
            "Find out how to send audio to a host that runs `trunkline reflect`",
            "trunkline probe studio.example",
        )],
    ),
    (
        "listen",
        &[("Compare a received recording with the original", "trunkline listen sent.wav received.wav")],
    ),
];

/// The command line with its examples.
pub fn command() -> Command {
    let command = with_examples(Cli::command());
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_examples))
}

/// Puts the global options that stand between a command and its subcommand before both, as in `trunkline --json runs tag`: clap
/// refuses arguments of a command that also works without a subcommand, even if they are global.
pub fn globals_first(arguments: Vec<OsString>) -> Vec<OsString> {
    let command = 1 + leading_globals(arguments.get(1..).unwrap_or_default());
    let Some(behind) = arguments.get(command + 1..) else { return arguments };
    let globals = leading_globals(behind);
    let mut sorted = arguments.clone();
    sorted[command..=command + globals].rotate_left(1);
    sorted
}

/// How many arguments the global options take with which these begin.
fn leading_globals(arguments: &[OsString]) -> usize {
    let mut rest = arguments;
    while let Some(first) = rest.first().and_then(|first| first.to_str()) {
        let taken = match first {
            "--json" | "-q" | "--quiet" => 1,
            "--store" | "--color" => 2,
            other if other.starts_with("--store=") || other.starts_with("--color=") => 1,
            _ => break,
        };
        match rest.get(taken..) {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    arguments.len() - rest.len()
}

fn examples(name: &str) -> &'static [Example] {
    EXAMPLES.iter().find(|(of, _)| *of == name).map_or(&[], |(_, examples)| examples)
}

fn with_examples(command: Command) -> Command {
    let mut text = String::new();
    for (what, line) in examples(command.get_name()) {
        let start = if text.is_empty() { "Examples:\n" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{start}  {what}:\n      {line}");
    }
    if text.is_empty() { command } else { command.after_long_help(text.trim_end().to_owned()) }
}

/// The exit codes of a command, the smallest first.
pub fn exit_codes(name: &str) -> Vec<(u8, &'static str)> {
    let own = OWN_EXIT.iter().filter(|(of, _, _)| of.contains(&name)).map(|(_, code, text)| (*code, *text));
    let mut codes: Vec<_> = own.collect();
    codes.extend(
        EXIT.iter()
            .filter(|(code, _)| !codes.iter().any(|(own, _)| own == code))
            .copied()
            .collect::<Vec<_>>(),
    );
    codes.sort_by_key(|(code, _)| *code);
    codes
}

/// Every exit code in one paragraph, for the reference.
pub fn exit_codes_in_words() -> String {
    let code = |(code, text): (u8, &str)| format!("{code}: {}", text.trim_end_matches('.'));
    let all: Vec<String> = exit_codes("").into_iter().map(code).collect();
    let names = |of: &[&str]| of.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let own = OWN_EXIT.iter().map(|(of, number, text)| format!("{}: {}", names(of), code((*number, text))));
    let own: Vec<String> = own.collect();
    format!("Exit codes: {}. {}.", all.join(" · "), own.join(". "))
}

/// The man page of a command.
///
/// # Errors
/// If `to` cannot be written.
pub fn man_page(command: &Command, to: &mut dyn std::io::Write) -> std::io::Result<()> {
    let name = command.get_name().to_owned();
    let man = clap_mangen::Man::new(command.clone());
    man.render_title(to)?;
    man.render_name_section(to)?;
    man.render_synopsis_section(to)?;
    man.render_description_section(to)?;
    man.render_options_section(to)?;
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(to)?;
    }
    let mut page = Roff::default();
    page.control("SH", ["EXIT STATUS"]);
    for (code, text) in exit_codes(&name) {
        page.control("TP", []).text([roman(code.to_string())]).text([roman(text)]);
    }
    let examples = examples(&name);
    if !examples.is_empty() {
        page.control("SH", ["EXAMPLES"]);
    }
    for (what, line) in examples {
        page.control("PP", []).text([roman(format!("{what}:"))]);
        page.control("RS", ["4"]).control("nf", []).text([roman(*line)]).control("fi", []).control("RE", []);
    }
    page.to_writer(to)?;
    man.render_version_section(to)
}

/// Every command that has a man page, with the file's name.
pub fn man_pages() -> Vec<(String, Command)> {
    fn gather(command: &Command, pages: &mut Vec<(String, Command)>) {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        pages.push((format!("{name}.1"), command.clone()));
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            gather(sub, pages);
        }
    }
    let mut command = command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    gather(&command, &mut pages);
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globals_between_a_command_and_its_subcommand_come_first() {
        for (typed, read) in [
            ("trunkline runs --json --store x tag 1 y", "trunkline --json --store x runs tag 1 y"),
            ("trunkline -q runs --color=never tag 1 y", "trunkline -q --color=never runs tag 1 y"),
            ("trunkline wire --json -- prog --json", "trunkline --json wire -- prog --json"),
            ("trunkline runs tag --json 1 y", "trunkline runs tag --json 1 y"),
            ("trunkline runs --name --json", "trunkline runs --name --json"),
            ("trunkline runs --store", "trunkline runs --store"),
            ("trunkline --json", "trunkline --json"),
            ("trunkline --store", "trunkline --store"),
            ("trunkline", "trunkline"),
        ] {
            let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
            assert_eq!(globals_first(words(typed)), words(read), "{typed}");
        }
        let globals = command().get_opts().filter(|option| option.is_global_set()).count();
        assert_eq!(globals, 4, "`leading_globals` knows --json, --quiet, --store and --color");
        let typed = ["trunkline", "runs", "--json", "tag", "1", "y"].map(OsString::from).to_vec();
        assert!(command().try_get_matches_from(globals_first(typed)).is_ok());
    }

    /// For these, Ctrl-C is how they end.
    #[test]
    fn servers_end_well_after_ctrl_c() {
        let of = |name| exit_codes(name).into_iter().filter(|(code, _)| *code == output::INTERRUPTED);
        for (name, ends_well) in
            [("receive", true), ("reflect", true), ("serve", true), ("agent", true), ("run", false)]
        {
            let told: Vec<_> =
                of(name).map(|(_, text)| text.contains("Ctrl-C, which alone ends it with 0")).collect();
            assert_eq!(told, [ends_well], "{name}");
        }
    }

    /// Every example is one that the program takes.
    #[test]
    fn examples_can_be_typed() {
        for (_, line) in EXAMPLES.iter().flat_map(|(_, examples)| *examples) {
            let line = line.rsplit('|').next().unwrap_or_default().split('>').next().unwrap_or_default();
            let quoted: Vec<String> = line
                .trim()
                .split('\'')
                .enumerate()
                .flat_map(|(place, part)| match place % 2 {
                    0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
                    _ => vec![part.to_owned()],
                })
                .collect();
            let read = command().try_get_matches_from(&quoted);
            assert!(read.is_ok(), "{line}: {}", read.err().map(|e| e.to_string()).unwrap_or_default());
        }
        let known = |name: &str| name == "trunkline" || command().find_subcommand(name).is_some();
        assert!(
            EXAMPLES.iter().all(|(name, _)| known(name))
                && OWN_EXIT.iter().flat_map(|(names, _, _)| *names).all(|name| known(name))
        );
    }
}
