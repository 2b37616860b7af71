//! Options that change a file for one run, and what scripts rely on: standard input, quiet, strict, exit codes.

mod support;

use std::io::Write as _;
use std::process::Stdio;

use support::{Bench, Ran};

const FILE: &str = r#"name = "set"
duration = "500 ms"
drain = "100 ms"
seed = 1

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "2 Mbit/s"
loss = "5 %"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = "voice"
count = 4

[limits]
"flow.voice.loss" = "< 50 %"
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("set.toml", FILE);
    bench
}

#[test]
fn keys_are_set_for_one_run_which_remembers_them() {
    let bench = bench();
    let ran = bench.run(&[
        "run",
        "set.toml",
        "--set",
        "link.trunk.rate=5 Mbit/s",
        "--set",
        "flow.voice.count=2",
        "--seed",
        "7",
        "--repetitions",
        "3",
        "--duration",
        "250 ms",
        "--json",
    ]);
    let json = ran.ok().json();
    let run = &json["runs"][0];
    assert_eq!((run["seed"].as_str(), run["repetitions"].as_u64()), (Some("7"), Some(3)), "{run:#}");
    let set =
        ["link.trunk.rate=5 Mbit/s", "flow.voice.count=2", "seed=7", "duration=250 ms", "repetitions=3"];
    assert_eq!(run["settings"], serde_json::json!(set));
    assert!(json["text"].as_str().is_some_and(|text| text.contains("rate = \"5 Mbit/s\"")), "{json:#}");
    assert_eq!(std::fs::read_to_string(bench.path("set.toml")).unwrap(), FILE, "the file stays as it is");
    let page = std::fs::read_to_string(bench.run_folder(1).join("report.html")).unwrap();
    assert!(
        page.contains("--set 'link.trunk.rate=5 Mbit/s' --set flow.voice.count=2 --set seed=7"),
        "{page}"
    );
    let text =
        bench.run(&["report", "1"]).ok().out + &bench.run(&["run", "set.toml", "--seed", "9"]).ok().out;
    assert!(text.contains("Overridden keys: seed=9."), "{text}");
}

#[test]
fn what_is_wrong_with_a_setting_is_told_as_of_the_file() {
    let bench = bench();
    let plan = ["plan", "set.toml", "--maximise", "flow.voice.count"];
    for arguments in
        [&["check", "set.toml"][..], &["run", "set.toml"], &["run", "set.toml", "--on", "live"], &plan]
    {
        let ran = bench.run(&[arguments, &["--set", "link.trunk.rate=5 parsecs"]].concat());
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        let told =
            "error: --set link.trunk.rate=5 parsecs: `rate`: `5 parsecs` has the unknown unit `parsecs`";
        assert!(ran.err.contains(told), "{}", ran.err);
        assert!(!bench.store().exists(), "nothing is written");
    }
    let ran = bench.run(&["run", "set.toml", "--repetitions", "0"]);
    assert!(
        ran.code == Some(2) && ran.err.contains("--repetitions 0: `repetitions` must be a whole number"),
        "{ran:#?}"
    );
    let ran = bench.run(&["run", "set.toml", "--set", "rate"]);
    assert!(ran.code == Some(2) && ran.err.contains("expected KEY=VALUE"), "{ran:#?}");
}

#[test]
fn a_resumed_run_keeps_what_was_set() {
    let bench = bench();
    let mut child = bench
        .command(&["run", "set.toml", "--set", "flow.voice.count=20", "--repetitions", "100", "--jobs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // As soon as something is stored.
    let measured = || {
        support::files_below(&bench.store())
            .iter()
            .any(|file| file.extension().is_some_and(|e| e == "parquet"))
    };
    while !measured() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let _ = child.kill();
    child.wait().unwrap();
    let ran = bench.run(&["run", "--resume", "1", "--seed", "3"]);
    assert!(ran.code == Some(2) && ran.err.contains("omit `--set`"), "{ran:#?}");
    let ran = bench.run(&["run", "--resume", "1", "--json"]);
    if ran.err.contains("is complete") {
        return; // It was faster than we could stop it.
    }
    let json = ran.json();
    assert!(
        ran.err.contains("run 1 was started with --set flow.voice.count=20 --set repetitions=100"),
        "{ran:#?}"
    );
    assert_eq!(json["runs"][0]["repetitions_done"], 100);
    assert_eq!(json["points"][0]["runs"][0]["flows"][0]["members"], 20, "{json:#}");
}

fn with_input(bench: &Bench, arguments: &[&str], text: &str) -> Ran {
    let mut command = bench.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("standard input is a pipe");
    input.write_all(text.as_bytes()).expect("the program reads");
    drop(input);
    Ran::from(child.wait_with_output().expect("the program ends"))
}

#[test]
fn a_dash_is_standard_input() {
    let bench = bench();
    with_input(&bench, &["check", "-"], FILE).ok();
    let json = with_input(&bench, &["run", "-", "--set", "seed=3", "--json"], FILE).ok().json();
    assert_eq!(json["runs"][0]["seed"], "3");
    let page = std::fs::read_to_string(bench.run_folder(1).join("report.html")).unwrap();
    assert!(page.contains("trunkline run - --set seed=3 --on sim"), "{page}");
    let plan = ["plan", "-", "--maximise", "flow.voice.count", "--to", "8", "--no-report"];
    with_input(&bench, &plan, FILE).ok();
    let ran = with_input(&bench, &["run", "-"], &FILE.replace("rate", "rat"));
    assert!(ran.code == Some(2) && ran.err.contains("<stdin>:12:1: unknown key `rat`"), "{ran:#?}");
}

#[test]
fn quiet_leaves_results_warnings_and_errors() {
    let bench = bench();
    let ran = bench.run(&["run", "set.toml", "-q"]).ok();
    assert!(ran.err.is_empty() && ran.out.contains("The limit holds"), "{ran:#?}");
    let plan = ["plan", "set.toml", "--maximise", "flow.voice.count", "--to", "8", "--quiet"];
    assert!(bench.run(&plan).ok().err.is_empty());
    let ran = bench.run(&["run", "nowhere.toml", "--quiet"]);
    assert!(ran.code == Some(2) && ran.err.contains("does not exist"), "{ran:#?}");
}

#[test]
fn strict_exits_with_three_where_a_limit_does_not_hold() {
    let bench = bench();
    bench.run(&["run", "set.toml", "--strict"]).ok();
    let broken = ["run", "set.toml", "--set", "limits.flow.voice.loss=< 0.1 %"];
    bench.run(&broken).ok();
    let ran = bench.run(&[&broken[..], &["--strict", "-q"]].concat());
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert!(ran.out.contains("The limit is broken") && ran.err.contains("exit code 3"), "{ran:#?}");
    // What was not measured is not shown to hold.
    let lost =
        ["run", "set.toml", "--set", "link.trunk.loss=100 %", "--set", "limits.flow.voice.latency.p99=< 1 s"];
    let ran = bench.run(&[&lost[..], &["--set", "limits.flow.voice.loss=> 50 %", "--strict"]].concat());
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    let no_limits = FILE.split("[limits]").next().unwrap();
    bench.write("none.toml", no_limits);
    let ran = bench.run(&["run", "none.toml", "--strict"]);
    assert!(ran.code == Some(2) && ran.err.contains("add `[limits]`"), "{ran:#?}");
}

#[test]
fn check_refuses_what_run_refuses() {
    let bench = bench();
    let bulk = FILE.to_owned()
        + "\n[flow.bulk]\nfrom = \"a\"\nto = \"b\"\nsource = \"bulk\"\ntransport = { kind = \"tcp\", congestion-control = \"CC\" }\n";
    for name in ["cubik", "westwood"] {
        bench.write("bulk.toml", bulk.replace("CC", name));
        let check = bench.run(&["check", "bulk.toml"]);
        let run = bench.run(&["run", "bulk.toml"]);
        assert_eq!((check.code, run.code), (Some(2), Some(2)), "{check:#?} {run:#?}");
        let told = run.err.trim();
        assert!(told.starts_with("error: bulk.toml:") && told.contains("`reno`, `cubic`, `bbr`"), "{run:#?}");
        assert!(told.contains(name) && check.err.starts_with(told), "{check:#?} {run:#?}");
    }
    // What only the simulator has.
    let marked = FILE.replace("transport = \"udp\"", "transport = { kind = \"udp\", ecn = \"ect1\" }");
    bench.write("marked.toml", marked);
    bench.run(&["check", "marked.toml"]).ok();
    let json = bench.run(&["check", "marked.toml", "--json"]).ok().json();
    assert_eq!(json["backends"], serde_json::json!(["sim"]));
    let ran = bench.run(&["check", "marked.toml", "--on", "live"]);
    assert!(ran.code == Some(2) && ran.err.contains("in `sim` only"), "{ran:#?}");
    // And what only the kernel has.
    bench.write("mptcp.toml", bulk.replace("{ kind = \"tcp\", congestion-control = \"CC\" }", "\"mptcp\""));
    let ran = bench.run(&["check", "mptcp.toml"]);
    assert!(
        ran.code == Some(2)
            && ran.err.starts_with("error: mptcp.toml:")
            && ran.err.contains("; not refused with `--on wire` or `--on live`"),
        "{ran:#?}"
    );
}

/// Runs a command with `--json` that fails: its error, which is as the schema says.
#[track_caller]
fn error(bench: &Bench, arguments: &[&str]) -> serde_json::Value {
    let ran = bench.run(&[arguments, &["--json"]].concat());
    let error = ran.json();
    assert_eq!((error["kind"].as_str(), error["code"].as_i64()), (Some("error"), ran.code.map(i64::from)));
    assert!(ran.err.contains(error["message"].as_str().expect("a sentence")), "{ran:#?}");
    // Without `--json` nothing is on standard output.
    let plain = bench.run(arguments);
    assert!((plain.code, plain.out.as_str()) == (ran.code, ""), "{plain:#?}");
    error
}

/// The places of an error's problems: file, setting, line, column.
fn places(error: &serde_json::Value) -> Vec<serde_json::Value> {
    let problems = error["problems"].as_array().expect("a list").iter();
    problems.map(|one| serde_json::json!([one["file"], one["setting"], one["line"], one["column"]])).collect()
}

#[test]
fn every_documented_exit_code_has_its_class_of_failure() {
    let bench = bench();
    let page = include_str!("../../../docs/scripting.md");
    let documented = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next()?.parse().ok());
    assert_eq!(documented.collect::<Vec<u8>>(), [0, 1, 2, 3, 130], "130 has tests of its own");
    // Done.
    let done = bench.run(&["check", "set.toml", "--json"]);
    assert!(done.code == Some(0) && done.json()["kind"] == "check", "{done:#?}");
    // The environment.
    let environment = error(&bench, &["agent", "status", "--state", "nowhere"]);
    assert!(environment["code"] == 1 && places(&environment).is_empty(), "{environment}");
    bench.write("file", "");
    assert_eq!(error(&bench, &["runs", "--store", "file"])["code"], 1);
    assert_eq!(error(&bench, &["send", "127.0.0.1:1", "--from", "tone", "--transport", "tcp"])["code"], 1);
    // Bad input.
    assert_eq!(error(&bench, &["report", "17"])["code"], 2);
    // A limit is broken, a goal is missed: results, and no errors.
    let broken = ["run", "set.toml", "--set", "limits.flow.voice.loss=< 0.1 %", "--strict", "--json"];
    let ran = bench.run(&broken);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert_eq!(ran.json()["runs"][0]["outcome"], "broken");
}

#[test]
fn errors_are_json_with_their_places() {
    let bench = bench();
    bench.write("bad.toml", FILE.replace("2 Mbit/s", "2 parsecs").replace("count = 4", "cuont = 4"));
    let place = |file: &str, line: u32, column: u32| serde_json::json!([file, null, line, column]);
    let bad = [place("bad.toml", 12, 8), place("bad.toml", 20, 1)];
    for command in [
        &["check", "bad.toml"][..],
        &["run", "bad.toml"],
        &["plan", "bad.toml", "--maximise", "flow.voice.count"],
        &["wire", "up", "bad.toml"],
    ] {
        assert_eq!(places(&error(&bench, command)), bad, "{command:?}");
    }
    let unit = &error(&bench, &["check", "bad.toml"])["problems"][0]["message"];
    assert!(unit.as_str().is_some_and(|text| text.contains("`parsecs`") && !text.contains('\n')), "{unit}");
    // A setting.
    let setting = "--set link.trunk.rate=5 parsecs";
    let set = error(&bench, &["check", "set.toml", "--set", "link.trunk.rate=5 parsecs"]);
    assert_eq!(places(&set), [serde_json::json!([null, setting, null, 23])], "{set}");
    // A file that is named in the file, one that is not there, and an agent's configuration.
    bench.write("host.toml", "doc = \"slow\"\nsend-mesage = \"3 ms\"\n");
    bench.write("named.toml", FILE.replace("a = {}", "a = { profile = \"host.toml\" }"));
    assert_eq!(places(&error(&bench, &["check", "named.toml"])), [place("host.toml", 2, 1)]);
    for command in [
        &["check", "nowhere"][..],
        &["listen", "nowhere", "set.toml"],
        &["runs", "import", "nowhere"],
        &["agent", "--config", "nowhere"],
    ] {
        let missing = error(&bench, command);
        assert_eq!(places(&missing), [serde_json::json!(["nowhere", null, null, null])], "{missing}");
    }
    bench.write("agent.toml", "nmae = \"berlin\"\n");
    assert_eq!(places(&error(&bench, &["agent", "--config", "agent.toml"])), [place("agent.toml", 1, 1)]);
}

#[test]
fn mistakes_on_the_command_line_are_json_too() {
    let bench = bench();
    for (arguments, says) in [
        (&["run", "set.toml", "--xyzzy"][..], "unexpected argument '--xyzzy'"),
        (&["run"], "required arguments were not provided"),
        (&["run", "set.toml", "--on", "mars"], "invalid value 'mars'"),
        (&["rnu"], "unrecognized subcommand 'rnu'"),
        (&["plan", "set.toml"], "required arguments were not provided"),
    ] {
        let error = error(&bench, arguments);
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(says) || message.contains(says), "{arguments:?}: {error}");
        assert!(!["Usage:", "error:", "For more"].iter().any(|words| message.contains(words)), "{message}");
        assert!(error["code"] == 2 && places(&error).is_empty(), "{error}");
    }
    // Help is none, and what stands behind `--` is another program's.
    assert!(bench.run(&["run", "--help", "--json"]).ok().out.contains("Usage:"));
    let ran = bench.run(&["wire", "set.toml", "--xyzzy", "--", "true", "--json"]);
    assert!(ran.code == Some(2) && ran.out.is_empty(), "{ran:#?}");
}

#[test]
fn an_empty_store_variable_is_none() {
    let bench = bench();
    let run = |name: &str, arguments: &[&str]| {
        let mut command = bench.command(arguments);
        command.env("TRUNKLINE_STORE", "").env("XDG_DATA_HOME", bench.path(name));
        Ran::from(command.output().unwrap())
    };
    run("data", &["run", "set.toml", "-q"]).ok();
    assert!(bench.path("data/trunkline/trunkline.db").exists());
    let ran = run("data", &["runs", "--store", ""]);
    assert!(ran.code == Some(2) && ran.err.contains("--store"), "{ran:#?}");
}

#[test]
fn a_misspelt_option_gets_no_tip_that_misleads() {
    let ran = bench().run(&["run", "set.toml", "--repetitons", "3"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("--repetitons") && ran.err.contains("'--repetitions'"), "{ran:#?}");
    assert!(!ran.err.contains("as a value"), "{ran:#?}");
    let ran = bench().run(&["run", "set.toml", "--xyzzy"]);
    assert!(ran.code == Some(2) && !ran.err.contains("as a value"), "{ran:#?}");
}

#[test]
fn man_pages_say_how_a_command_ends_and_give_examples() {
    let bench = bench();
    bench.run(&["man", "pages"]).ok();
    let pages = support::files_below(&bench.path("pages"));
    assert!(pages.len() > 30, "{pages:?}");
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        assert!(text.contains(".SH \"EXIT STATUS\""), "{}", page.display());
    }
    let of = |name: &str| std::fs::read_to_string(bench.path(&format!("pages/{name}.1"))).unwrap();
    for name in ["trunkline", "trunkline-run", "trunkline-plan", "trunkline-check", "trunkline-wire"] {
        assert!(of(name).contains(".SH EXAMPLES"), "{name}");
    }
    assert!(of("trunkline-run").contains("a limit of the file is broken"), "{}", of("trunkline-run"));
    assert!(bench.run(&["man"]).ok().out.contains("EXIT STATUS"));
    let help = bench.run(&["run", "--help"]).ok().out;
    assert!(help.contains("Examples:") && help.contains("| trunkline run -"), "{help}");
}
