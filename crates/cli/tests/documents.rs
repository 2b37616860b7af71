//! The documents against the program: command lines parse, options, files and links exist, and experiment files are right.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use support::Bench;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// A document: its path in the workspace, and its text.
struct Document {
    path: String,
    text: String,
}

impl Document {
    fn place(&self, line: usize) -> String {
        format!("{}:{}", self.path, line + 1)
    }

    /// The lines with their numbers from 0, and the language of the block that a line is in.
    fn lines(&self) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
        let mut block = None;
        self.text.lines().enumerate().filter_map(move |(number, line)| {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                block = if block.is_some() { None } else { Some(language) };
                return None;
            }
            Some((number, line, block))
        })
    }

    /// Texts in back quotes outside of blocks, with the line that they are in.
    fn quoted(&self) -> Vec<(usize, &str)> {
        let mut quoted = Vec::new();
        for (number, line, block) in self.lines() {
            // A quote that goes on in the next line shifts all of this one.
            if block.is_none() && line.matches('`').count() % 2 == 0 {
                quoted.extend(line.split('`').skip(1).step_by(2).map(|quote| (number, quote)));
            }
        }
        quoted
    }
}

/// Everything that is written by hand: the README, the changelog, the book, the studies and the Python package.
fn documents() -> Vec<Document> {
    let root = root();
    let mut paths: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "SECURITY.md", "python/README.md"].map(|name| root.join(name)).into();
    for folder in ["docs", "docs/reference", "docs/studies"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
        paths.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    for study in std::fs::read_dir(root.join("papers")).expect("the studies") {
        paths.push(study.expect("an entry").path().join("README.md"));
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md") && path.is_file());
    paths.sort();
    let read = |path: PathBuf| Document {
        text: std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())),
        path: path.strip_prefix(&root).expect("below the root").display().to_string(),
    };
    paths.into_iter().map(read).collect()
}

/// The words of a line of a shell, up to a comment, a pipe or a redirection. `None` with a quotation that does not end.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, '#' | '|' | '>' | '&' | ';') if word.is_none() => break,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// The arguments of a call of the program that a line of a block makes, behind what may stand in front.
fn called(line: &str) -> Option<&str> {
    let mut line = line.trim_start();
    for front in ["$ ", "- run: ", "sudo ", "parallel ", "cargo run --release --bin "] {
        line = line.strip_prefix(front).unwrap_or(line);
    }
    let line = line.strip_prefix("trunkline ")?;
    let line = line.strip_prefix("-- ").unwrap_or(line);
    // Words of a sentence in a block begin otherwise.
    line.starts_with(|first: char| first.is_ascii_lowercase() || first == '-').then_some(line)
}

/// Placeholders as something that can be parsed.
fn filled(words: Vec<String>) -> Vec<String> {
    let fill = |word: String| match word.as_str() {
        "SHELL" => "bash".to_owned(),
        "KEY" => "flow.voice.count".to_owned(),
        "RUN" => "1".to_owned(),
        "TIME" => "1 min".to_owned(),
        "KEY=VALUE" | "LINK.KEY=VALUE" => "link.trunk.delay=1 ms".to_owned(),
        "I/N" | "{}/8" => "1/8".to_owned(),
        "FLOW" => "flow.voice.1".to_owned(),
        "flow.voice.1" => "flow.voice.1=voice.wav".to_owned(),
        "ADDRESS" => "0.0.0.0:4782".to_owned(),
        "..." | "…" => "x".to_owned(),
        _ => word.trim_matches(['[', ']']).to_owned(),
    };
    words.into_iter().map(fill).collect()
}

/// Parses as the program does; the command is built once for all lines.
fn parse(command: &mut clap::Command, words: Vec<String>) -> Result<(), clap::Error> {
    let words = std::iter::once("trunkline".to_owned()).chain(filled(words)).map(Into::into).collect();
    let arguments = trunkline::args::manual::globals_first(words);
    command.try_get_matches_from_mut(arguments).map(drop)
}

/// Texts that the session protocol signs, which begin like commands.
const NO_COMMANDS: [&str; 2] = ["session client", "session server"];

/// Fails with all problems, a line each.
fn assert_none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

#[test]
fn every_command_line_in_a_block_is_one_that_the_program_takes() {
    let (mut command, mut problems) = (trunkline::args::manual::command(), Vec::new());
    let mut count = 0;
    for document in documents() {
        let mut pending = String::new();
        for (number, line, block) in document.lines() {
            let is_shell = block.is_some_and(|language| ["sh", "text", "yaml"].contains(&language));
            if !is_shell || document.path.starts_with("docs/reference/") {
                continue;
            }
            pending.push_str(line.trim_end_matches('\\'));
            if line.ends_with('\\') {
                continue;
            }
            let line = std::mem::take(&mut pending);
            let Some(arguments) = called(&line) else { continue };
            let place = document.place(number);
            let words = words(arguments).unwrap_or_else(|| panic!("{place}: an open quotation: {line}"));
            count += 1;
            match parse(&mut command, words).map_err(|error| (error.kind(), error)) {
                Ok(()) | Err((ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _)) => {}
                Err((_, error)) => problems.push(format!("{place}: `{line}`: {error}")),
            }
        }
    }
    assert_none(&problems);
    assert!(count > 120, "{count} command lines");
}

#[test]
fn every_command_in_a_sentence_is_one_of_the_program() {
    let (mut command, mut problems) = (trunkline::args::manual::command(), Vec::new());
    let mut count = 0;
    for document in documents() {
        for (number, quote) in document.quoted() {
            let Some(arguments) = quote.strip_prefix("trunkline ") else { continue };
            if NO_COMMANDS.contains(&arguments) {
                continue;
            }
            let place = document.place(number);
            let words = words(arguments).unwrap_or_else(|| panic!("{place}: an open quotation: {quote}"));
            count += 1;
            match parse(&mut command, words).map_err(|error| (error.kind(), error)) {
                // A sentence names a command without all that it needs.
                Ok(())
                | Err((
                    ErrorKind::MissingRequiredArgument
                    | ErrorKind::MissingSubcommand
                    | ErrorKind::DisplayHelp
                    | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                    | ErrorKind::DisplayVersion,
                    _,
                )) => {}
                // An option is named without its value (`--from`).
                Err((ErrorKind::InvalidValue, error)) if error.to_string().contains("value is required") => {}
                Err((_, error)) => problems.push(format!("{place}: `{quote}`: {error}")),
            }
        }
    }
    assert_none(&problems);
    assert!(count > 150, "{count} commands");
}

/// Every long option of every command.
fn options() -> BTreeSet<String> {
    fn add(command: &clap::Command, to: &mut BTreeSet<String>) {
        to.extend(command.get_arguments().filter_map(|argument| Some(argument.get_long()?.to_owned())));
        for argument in command.get_arguments() {
            to.extend(argument.get_all_aliases().into_iter().flatten().map(str::to_owned));
        }
        command.get_subcommands().for_each(|sub| add(sub, to));
    }
    let mut options = BTreeSet::from(["help".to_owned(), "version".to_owned()]);
    add(&trunkline::args::manual::command(), &mut options);
    options
}

/// Options of other programs that the documents name: Cargo and xtask, mahimahi, and one that the changelog says is gone.
const OPTIONS_OF_OTHERS: [&str; 10] = [
    "accept",
    "authenticate",
    "features",
    "meter-uplink",
    "profile",
    "test-threads",
    "uplink-log",
    "uplink-queue",
    "workspace",
    "locked",
];

#[test]
fn every_option_in_a_sentence_is_one_of_the_program() {
    let (options, mut problems) = (options(), Vec::new());
    let mut count = 0;
    for document in documents() {
        // Their options are those of the checks and benchmarks, which are other programs.
        if ["docs/benchmarks.md", "docs/checks.md", "docs/peers.md"].contains(&document.path.as_str()) {
            continue;
        }
        for (number, quote) in document.quoted() {
            let Some(option) = quote.strip_prefix("--") else { continue };
            let is_end = |letter: char| !letter.is_ascii_alphanumeric() && letter != '-';
            let name = option.split(is_end).next().unwrap_or_default();
            if name.is_empty() || OPTIONS_OF_OTHERS.contains(&name) {
                continue;
            }
            count += 1;
            if !options.contains(name) {
                problems.push(format!("{}: no command has `--{name}`", document.place(number)));
            }
        }
    }
    assert_none(&problems);
    assert!(count > 200, "{count} options");
}

/// The name of a heading in links to it, as mdbook and GitHub make it.
fn anchor(heading: &str) -> String {
    if let Some((_, id)) = heading.split_once("{#") {
        return id.trim_end_matches('}').to_owned();
    }
    // The text of a link in a heading stays, its address goes.
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let keep = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
    text.trim()
        .to_lowercase()
        .chars()
        .filter(keep)
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let document = Document { path: String::new(), text: text.to_owned() };
    let headings = document.lines().filter(|(_, line, block)| block.is_none() && line.starts_with('#'));
    let mut anchors: BTreeSet<String> =
        headings.map(|(_, line, _)| anchor(line.trim_start_matches('#'))).collect();
    anchors.extend(text.split(" id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    anchors
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let root = root();
    let mut count = 0;
    for document in documents() {
        let folder = root.join(&document.path).parent().expect("a folder").to_path_buf();
        for (number, line, block) in document.lines() {
            if block.is_some() {
                continue;
            }
            for rest in line.split("](").skip(1) {
                let Some((address, _)) = rest.split_once(')') else { continue };
                if address.contains("://") || address.starts_with("mailto:") {
                    continue;
                }
                let place = document.place(number);
                let (file, place_in_file) = address.split_once('#').unwrap_or((address, ""));
                let path = match file {
                    "" => root.join(&document.path),
                    file => folder.join(file),
                };
                assert!(path.exists(), "{place}: there is no {file}");
                count += 1;
                if !place_in_file.is_empty() && path.extension().is_some_and(|end| end == "md") {
                    let text = std::fs::read_to_string(&path).expect("a document");
                    assert!(
                        anchors(&text).contains(place_in_file),
                        "{place}: {} has no heading `{place_in_file}`",
                        path.display()
                    );
                }
            }
        }
    }
    assert!(count > 400, "{count} links");
}

#[test]
fn every_file_of_the_workspace_that_a_document_names_exists() {
    let root = root();
    let mut count = 0;
    for document in documents() {
        for (number, quote) in document.quoted() {
            let is_ours =
                ["benches/", "crates/", "examples/", "fuzz/", "interop/", "packaging/", "papers/", "python/"]
                    .iter()
                    .any(|folder| quote.starts_with(folder));
            // `papers/STUDY`, `examples/*.toml`; the one file is that of the example of a new transport.
            let is_pattern = quote.contains(['*', '{', '<', ' ', ':'])
                || quote.contains("STUDY")
                || quote.contains("pigeon");
            if is_ours && !is_pattern {
                count += 1;
                assert!(root.join(quote).exists(), "{}: there is no {quote}", document.place(number));
            }
        }
    }
    assert!(count > 50, "{count} files");
}

/// Blocks of TOML outside of experiment files: a study's mapping, a link profile, an example that the book includes.
const OTHER_TOML: [&str; 3] = ["[column.", "[forward]", "{{#include"];

#[test]
fn every_block_of_toml_has_keys_that_the_program_knows() {
    let (mut experiments, mut parts, mut agents) = (0, 0, 0);
    let mut wrong = Vec::new();
    // Profiles in the references are generated from those that are built in.
    for document in documents().into_iter().filter(|document| !document.path.starts_with("docs/reference/")) {
        for (before, block) in document.text.split("```toml\n").skip(1).enumerate() {
            let (block, _) =
                block.split_once("```").unwrap_or_else(|| panic!("{}: an open block", document.path));
            let place = format!("{}, block {} of TOML", document.path, before + 1);
            if OTHER_TOML.iter().any(|start| block.starts_with(start)) {
                continue;
            }
            if block.contains("[controller.") {
                agents += 1;
                if let Err(problems) = trunkline_agent::Config::parse(&document.path, block, "host") {
                    wrong.push(format!("{place}: {problems}"));
                }
                continue;
            }
            let Err(problems) = trunkline_experiment::Experiment::parse(block, &place, &()) else {
                experiments += 1;
                continue;
            };
            parts += 1;
            // A part of a file lacks what it refers to; but what it has is right.
            let problems = problems.to_string();
            let known_elsewhere = problems.replace("unknown host", "").replace("unknown flow", "");
            let is_wrong = |words: &&str| known_elsewhere.contains(words);
            if block.starts_with("name =") || ["unknown ", "not valid TOML"].iter().any(is_wrong) {
                wrong.push(problems);
            }
        }
    }
    assert_none(&wrong);
    assert!(experiments > 0 && parts > 5 && agents > 0, "{experiments}, {parts}, {agents}");
}

/// The README says that a build without features has no ALSA, PostgreSQL, S3, PNG and OpenTelemetry.
#[test]
fn a_default_build_has_none_of_the_features_of_the_packages() {
    let manifest: toml::Table =
        std::fs::read_to_string(root().join("crates/cli/Cargo.toml")).unwrap().parse().expect("a manifest");
    let features = manifest["features"].as_table().expect("features");
    assert!(!features.contains_key("default"), "a default build has features");
    let full: BTreeSet<&str> =
        features["full"].as_array().expect("a list").iter().filter_map(toml::Value::as_str).collect();
    assert_eq!(full, BTreeSet::from(["alsa", "png", "s3", "telemetry"]));
    let dependencies = manifest["dependencies"].as_table().expect("dependencies");
    let of_workspace = |name: &&String| name.starts_with("trunkline-");
    for (name, crate_of) in dependencies.iter().filter(|(name, _)| of_workspace(name)) {
        assert!(crate_of.get("features").is_none(), "{name} is built with features of its own");
        let folder = name.trim_start_matches("trunkline-");
        let manifest =
            std::fs::read_to_string(root().join("crates").join(folder).join("Cargo.toml")).unwrap();
        let table: toml::Table = manifest.parse().expect("a manifest");
        let defaults = table.get("features").and_then(|features| features.get("default"));
        let defaults = defaults.and_then(toml::Value::as_array).cloned().unwrap_or_default();
        assert!(defaults.is_empty(), "{name} has default features: {defaults:?}");
    }
}

/// Limits and defaults of the program as the documents say them, beside the code that has them: `claims.txt`.
#[test]
fn every_limit_of_the_documents_is_that_of_the_code() {
    let root = root();
    let text =
        |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let claims = text("crates/cli/tests/claims.txt");
    let claims = claims.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    for claim in claims {
        let parts: Vec<&str> = claim.split(" | ").collect();
        let [document, said, source, code] = parts[..] else { panic!("not four parts: {claim}") };
        assert!(joined(&text(document)).contains(said), "{document} no longer says \"{said}\"");
        assert!(
            joined(&text(source)).contains(code),
            "{document} says \"{said}\", but {source} has no `{code}`"
        );
        count += 1;
    }
    assert!(count > 100, "{count} claims");
}

/// The values of a run of a study's experiment of today, by the unit in which a story prints them.
fn values_of_today(study: &str) -> [(&'static str, Vec<f64>); 3] {
    let experiment = root().join("papers").join(study).join("today.toml");
    let arguments = ["run", experiment.to_str().expect("text"), "--json", "--quiet", "--no-report"];
    let ran = Bench::new().run(&arguments).ok().json();
    let [mut milliseconds, mut per_cent, mut megabits] = [const { Vec::new() }; 3];
    let list = |value: &serde_json::Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let runs = list(&ran, "points").into_iter().flat_map(|point| list(&point, "runs"));
    for flow in runs.flat_map(|run| list(&run, "flows")) {
        let mean = |figure: &str| flow["figures"][figure]["mean"].as_f64();
        milliseconds
            .extend(["latency_p50", "latency_p99"].map(mean).into_iter().flatten().map(|value| value * 1e3));
        per_cent.extend(mean("loss").map(|value| value * 100.0));
        megabits.extend(mean("throughput_user").map(|value| value / 1e6));
    }
    [("ms", milliseconds), ("%", per_cent), ("Mbit/s", megabits)]
}

/// Each story ends with the question of today, whose experiment is deterministic.
#[test]
fn the_stories_have_the_values_of_todays_experiments() {
    for study in ["hawley1989", "lamont1998", "schiavoni2013"] {
        let story =
            std::fs::read_to_string(root().join("docs/studies").join(study).with_extension("md")).unwrap();
        let (_, today) = story.split_once("## The same question today").expect("a part about today");
        let values = values_of_today(study);
        let mut count = 0;
        let rows = today.lines().filter(|line| line.starts_with('|')).skip(2);
        for cell in rows.flat_map(|row| row.trim_matches('|').split('|').skip(1)) {
            let words: Vec<&str> = cell.split([' ', ',']).filter(|word| !word.is_empty()).collect();
            for pair in words.windows(2) {
                let (Ok(value), Some((_, known))) =
                    (pair[0].parse::<f64>(), values.iter().find(|(unit, _)| *unit == pair[1]))
                else {
                    continue;
                };
                let decimals = pair[0].split_once('.').map_or(0, |(_, decimals)| decimals.len());
                let allowed = 0.500_1 * 10_f64.powi(-(decimals as i32));
                let is_known = known.iter().any(|known| (known - value).abs() <= allowed);
                assert!(is_known, "{study}: nothing is {} {} today", pair[0], pair[1]);
                count += 1;
            }
        }
        assert!(count > 10, "{study}: {count} values");
    }
}
