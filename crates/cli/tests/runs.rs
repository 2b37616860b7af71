//! The program as a user runs it: experiments in, runs and reports out.

mod json_outputs;
mod support;

use support::terminal::Terminal;
use support::{Bench, files_below};

/// Two voice channels beside a bulk transfer, short, with a sweep.
const SHORT: &str = r#"
name = "short"
duration = "1 s"
drain = "200 ms"
repetitions = 2
seed = 7

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "5 ms"
loss = "2 %"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }
channels = 2
reflect = true
playout = "40 ms"

[flow.bulk]
from = "a"
to = "b"
transport = { kind = "tcp", window = "16 KiB" }
source = { kind = "bulk", message = "4 KiB" }

[sweep]
"flow.voice.channels" = [1, 2]

[limits]
"flow.voice.loss" = "< 50 %"
"#;

/// The name of an experiment is a stranger's text where the run was imported.
#[test]
fn a_terminal_obeys_nothing_of_what_others_have_named() {
    let bench = Bench::new();
    // A title, a screen that is cleared (C1), and letters that run backwards.
    let name = r#"name = "\u001b]0;mine\u0007\u009b2J\u202e""#;
    bench.write("short.toml", SHORT.replace(r#"name = "short""#, name));
    for (arguments, last) in [(&["run", "short.toml"][..], "report: "), (&["runs"], r"\u{202e}")] {
        let mut terminal = Terminal::start(&bench.command(arguments));
        let shown = terminal.wait_for(last);
        assert!(shown.contains("]0;mine"), "{arguments:?}: {shown:?}");
        for obeyed in ["\x1b]", "\u{7}", "\u{9b}", "\u{202e}"] {
            assert!(!shown.contains(obeyed), "{arguments:?}: {shown:?}");
        }
        assert_eq!(terminal.end(), Some(0));
    }
    let json = bench.run(&["runs", "--json"]).ok();
    assert!(!json.out.contains('\u{9b}'), "{}", json.out);
    assert_eq!(json.json()["runs"][0]["name"], "\u{1b}]0;mine\u{7}\u{9b}2J\u{202e}");
}

#[test]
fn an_error_is_broken_at_the_width_of_the_terminal() {
    let bench = Bench::new();
    bench.write("short.toml", SHORT);
    let mut terminal =
        Terminal::start(&bench.command(&["check", "short.toml", "--set", "link.trunk.queue=strange"]));
    let shown = terminal.wait_for("`dualpi2`");
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines.len() > 1 && lines.iter().all(|line| line.len() < 140), "with its colours: {shown:?}");
    assert!(lines[1].starts_with('`') || lines[1].starts_with("and "), "a word was cut: {shown:?}");
    assert_eq!(terminal.end(), Some(2));
}

#[test]
fn a_simulated_run_is_stored_listed_and_reported() {
    let bench = Bench::new();
    bench.write("short.toml", SHORT);
    let ran = bench.run(&["run", "short.toml"]).ok();
    assert!(ran.out.contains("report: "), "{ran:#?}");

    let listed = bench.run(&["runs", "--json"]).ok().json();
    assert_eq!(listed["runs"][0]["status"], "complete");
    assert_eq!(listed["runs"][0]["repetitions_done"], 4);

    let files = files_below(&bench.run_folder(1));
    let named = |end: &str| files.iter().filter(|file| file.to_string_lossy().ends_with(end)).count();
    assert_eq!(named(".parquet"), 2 * 2 * 2, "a trace per flow, point and repetition: {files:#?}");
    assert_eq!(named("report.html"), 1);
    assert_eq!(named(".part"), 0, "nothing unfinished stays: {files:#?}");

    bench.run(&["report", "latest", "--csv", "tables"]).ok();
    let tables = files_below(&bench.path("tables"));
    assert!(!tables.is_empty() && tables.iter().all(|file| file.extension().is_some_and(|e| e == "csv")));
    let drawn = bench.run(&["report", "latest", "--png", "figures"]);
    if !cfg!(feature = "png") {
        assert_eq!(drawn.code, Some(1));
        assert!(drawn.err.contains("this build of Trunkline has no PNG"), "{}", drawn.err);
        return;
    }
    drawn.ok();
    let figures = files_below(&bench.path("figures"));
    assert!(!figures.is_empty());
    for figure in figures {
        let bytes = std::fs::read(&figure).expect("the figure is there");
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{} is no PNG", figure.display());
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_two_processes_whatever_the_number_of_jobs() {
    let traces = |jobs: &str| {
        let bench = Bench::new();
        bench.write("short.toml", SHORT);
        bench.run(&["run", "short.toml", "--jobs", jobs, "--no-report"]).ok();
        let folder = bench.run_folder(1);
        let traces = files_below(&folder.join("traces"));
        let named = traces.iter().map(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            (name, std::fs::read(path).expect("the trace is there"))
        });
        let named: Vec<_> = named.collect();
        let mut report = bench.run(&["report", "1", "--json"]).ok().json();
        // When and where it ran differ; what was measured may not.
        if let Some(run) = report.pointer_mut("/runs/0").and_then(|run| run.as_object_mut()) {
            for key in ["started", "finished", "directory", "file", "command", "key"] {
                run.remove(key);
            }
        }
        report.as_object_mut().expect("it is an object").remove("html");
        (named, report)
    };
    let (one, two) = (traces("1"), traces("4"));
    assert_eq!(one.0.len(), 8);
    assert!(one.0 == two.0, "the traces differ");
    assert_eq!(one.1, two.1);
}

#[test]
fn both_backends_stand_side_by_side() {
    let bench = Bench::new();
    bench.write("short.toml", SHORT.replace("repetitions = 2", "repetitions = 1"));
    bench.run(&["run", "short.toml", "--on", "sim"]).ok();
    let live = bench.run(&["run", "short.toml", "--on", "live", "--json"]).ok();
    let json = live.json();
    assert_eq!(json["runs"][0]["backend"], "live");
    assert_eq!(json["runs"][1]["backend"], "sim", "{json:#}");
    let html = std::fs::read_to_string(bench.run_folder(2).join("report.html")).expect("the report is there");
    assert!(html.contains("as it is"), "the report says that the links do not apply");
    for reference in ["http://", "src=\"", "<link"] {
        let count = html.matches(reference).count();
        let namespaces = html.matches("http://www.w3.org/").count();
        assert!(
            count == 0 || (reference == "http://" && count == namespaces),
            "not self-contained: {reference}"
        );
    }
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_is_resumed() {
    let bench = Bench::new();
    // Long enough that the signal comes in its middle: a live run takes as long as it says.
    let speaking = SHORT.replace("samples = 80", "samples = 80, file = \"speech.wav\"");
    bench.write("long.toml", speaking.replace("duration = \"1 s\"", "duration = \"2 s\""));
    bench.write("speech.wav", include_bytes!("../../../examples/speech.wav"));
    let mut child = bench.start(&["run", "long.toml", "--on", "live"]);
    // The first repetition is over when its traces are: then the signal comes in a later one.
    let finished = || {
        let Ok(runs) = std::fs::read_dir(bench.store().join("runs")) else { return 0 };
        let files = runs.flatten().flat_map(|run| files_below(&run.path().join("traces")));
        files.filter(|file| file.extension().is_some_and(|e| e == "parquet")).count()
    };
    while finished() < 2 && child.try_wait().expect("the program can be asked").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let signalled = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signalled.expect("kill runs").success(), "the run had ended before the signal");
    let ran = support::Ran::from(child.wait_with_output().expect("the program ends"));
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(ran.err.contains("--resume 1"), "{ran:#?}");

    let listed = bench.run(&["runs", "--json"]).ok().json();
    assert_eq!(listed["runs"][0]["status"], "partial");
    let done = listed["runs"][0]["repetitions_done"].as_u64().expect("a count");
    assert!((1..4).contains(&done), "{listed:#}");

    // What it plays is kept with it.
    std::fs::remove_file(bench.path("speech.wav")).expect("the speech was there");
    bench.run(&["run", "--resume", "latest"]).ok();
    let listed = bench.run(&["runs", "--json"]).ok().json();
    assert_eq!(listed["runs"][0]["status"], "complete");
    assert_eq!(listed["runs"][0]["repetitions_done"], 4);
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(1), "resuming makes no second run");
    let again = bench.run(&["run", "--resume", "1"]);
    assert_eq!(again.code, Some(2), "{again:#?}");
}

#[test]
fn help_completions_and_man_pages_are_there() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.run(&["completions", shell]).ok().out;
        assert!(script.contains("resume"), "{shell}");
    }
    assert!(bench.run(&["man"]).ok().out.contains(".TH trunkline 1"));
    bench.run(&["man", "pages"]).ok();
    assert!(bench.path("pages/trunkline-run.1").is_file());
    assert!(!bench.store().exists(), "none of these touches the store");
}

#[test]
fn runs_are_marked_chosen_compared_taken_elsewhere_and_removed() {
    let (bench, other) = (Bench::new(), Bench::new());
    bench.write("short.toml", SHORT);
    bench.write("slower.toml", SHORT.replace("2 Mbit/s", "1500 kbit/s"));
    bench.run(&["run", "short.toml"]).ok();
    bench.run(&["run", "slower.toml"]).ok();

    bench.run(&["runs", "tag", "1", "reference", "spring"]).ok();
    let listed =
        bench.run(&["runs", "--tag", "spring", "--since", "1 hour", "--on", "sim", "--json"]).ok().json();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1);
    assert_eq!(listed["runs"][0]["tags"], serde_json::json!(["reference", "spring"]));
    assert!(bench.run(&["runs", "--name", "nothing"]).ok().out.is_empty());

    let compared = bench.run(&["runs", "compare", "1", "2"]).ok();
    assert!(
        compared.out.contains("They ran different files, or the same file with another seed")
            && compared.out.contains("latency mean")
    );
    let compared = bench.run(&["runs", "compare", "1", "2", "--json"]).ok().json();
    let rows = compared["comparison"]["rows"].as_array().unwrap();
    let bulk = |row: &&serde_json::Value| row["flow"] == "bulk" && row["figure"] == "throughput_user";
    assert!(
        rows.iter().filter(bulk).count() == 2
            && rows.iter().filter(bulk).all(|row| row["relative"].as_f64() < Some(-0.1))
    );
    let refused = bench.run(&["runs", "compare", "1", "latest", "--json"]);
    assert_eq!(refused.ok().json()["comparison"]["with"]["id"], 2);
    let refused = bench.run(&["runs", "compare", "1", "1"]);
    assert!(refused.code == Some(2) && refused.err.contains("both are run 1"), "{refused:#?}");

    bench.run(&["runs", "export", "1", "--to", "first.tar"]).ok();
    let again = bench.run(&["runs", "export", "1", "--to", "first.tar"]);
    assert!(
        again.code == Some(1) && again.err.contains("`first.tar`: it already exists; choose another name"),
        "{again:#?}"
    );
    let archive = bench.path("first.tar");
    let archive = archive.to_str().unwrap();
    assert!(other.run(&["runs", "import", archive]).ok().out.contains("run 1"));
    assert!(other.run(&["runs", "import", archive]).ok().out.contains("it was here before"));
    assert!(other.run(&["report", "1"]).ok().out.contains("bulk"));
    let damaged = other.run(&["runs", "import", bench.path("short.toml").to_str().unwrap()]);
    assert!(damaged.code == Some(2) && damaged.err.contains("not an archive of a run"), "{damaged:#?}");
    bench.write("noise", [0x7f, b'E', b'L', b'F', 2, 1, 1, 0xff].repeat(100));
    let noise = other.run(&["runs", "import", bench.path("noise").to_str().unwrap()]);
    assert!(noise.code == Some(2) && noise.err.contains("a run: it is not a tar file;"), "{noise:#?}");

    assert!(
        bench
            .run(&["runs", "prune", "--within", "0 s", "--latest", "0", "--dry-run"])
            .ok()
            .out
            .contains("run 2")
    );
    bench.run(&["runs", "prune", "--within", "0 s", "--latest", "0"]).ok();
    // Named twice, also as `latest`, it is removed once.
    let removed = bench.run(&["runs", "remove", "1", "latest", "1"]).ok();
    assert_eq!(removed.out.trim(), "removed: run 1");
    assert!(files_below(&bench.store().join("runs")).is_empty());
    let gone = bench.run(&["runs", "remove", "1"]);
    assert!(gone.code == Some(2) && gone.err.contains("there is no run `1`"), "{gone:#?}");
    assert!(gone.err.contains("`trunkline run FILE.toml` makes one"), "{gone:#?}");
    let merged = bench.run(&["runs", "merge", "nothere"]);
    let neither = "`nothere` is neither the folder of a store";
    assert!(merged.code == Some(2) && merged.err.contains(neither), "{merged:#?}");
}

/// Simulations are deterministic: a reader who repeats the tutorial sees these figures.
#[test]
fn the_tutorial_shows_what_the_simulator_prints() {
    let tutorial = include_str!("../../../docs/tutorial.md");
    let bench = Bench::new();
    let folder = bench.path("examples");
    std::fs::create_dir(&folder).unwrap();
    let example = include_str!("../../../examples/office.toml");
    std::fs::write(folder.join("office.toml"), example).unwrap();
    let shown = |block: &str, printed: &str| {
        for line in block.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            assert!(printed.lines().any(|text| text.trim_end() == line), "`{line}` is not in\n{printed}");
        }
    };
    let mut commands = 0;
    for rest in tutorial.split("\n$ trunkline ").skip(1) {
        let (line, rest) = rest.split_once('\n').expect("a command has a line");
        let (block, _) = rest.split_once("```").expect("the block ends");
        let arguments: Vec<&str> = line.split(' ').collect();
        // What the wire measures is another number each time.
        if !arguments.contains(&"wire") {
            shown(block, &bench.run(&arguments).ok().out);
            commands += 1;
        }
    }
    assert_eq!(commands, 3, "check, run and plan");
    // A key with a wrong letter.
    let (_, rest) = tutorial.split_once("```text\nerror: ").expect("an error");
    let (block, _) = rest.split_once("```").expect("the block ends");
    std::fs::write(folder.join("office.toml"), example.replace("queue = \"fifo\"", "quee = \"fifo\""))
        .unwrap();
    let refused = bench.run(&["check", "examples/office.toml"]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    shown(&format!("error: {block}"), &refused.err);
}
