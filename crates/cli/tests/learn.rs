//! `trunkline learn` as a user runs it: over described links, and with mistakes.

mod support;

use support::Bench;

const DSL: &str = "delay = \"9 ms\"\n[forward]\nrate = \"1 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"20 KB\" }\n\
                   [backward]\nrate = \"2 Mbit/s\"\nqueue = \"fq-codel\"\n";

#[test]
fn a_described_link_is_learned_verified_and_written_as_a_profile() {
    let bench = Bench::new();
    bench.write("dsl.toml", DSL);
    let ran = bench.run(&["learn", "--over", "dsl.toml", "--to", "found.toml"]).ok();
    assert!(
        ran.out.contains("FIFO with a limit in bytes; backward") && ran.out.contains("FQ-CoDel"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("a call beside four transfers, delay p95: predicted"), "{}", ran.out);
    assert!(ran.err.contains("short overloads, backward"), "{}", ran.err);
    let members = std::fs::read_dir(bench.path("found.draws")).expect("the ensemble is there").count();
    assert_eq!(members, 20);

    // What was learned is read like any other profile, and carries a flow.
    let experiment = "name = \"x\"\nduration = \"2 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
                      profile = \"found.toml\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"voice\"\n";
    bench.write("x.toml", experiment);
    bench.run(&["check", "x.toml"]).ok();
    bench.write("y.toml", experiment.replace("found.toml", "found.draws/07.toml"));
    bench.run(&["run", "y.toml", "--no-report"]).ok();

    // Limits are answered over the links that explain the measurement as well.
    let drawn = |draws: u32| {
        let drawn = experiment
            .replace("profile = \"found.toml\"", &format!("profile = \"found.toml\"\ndraws = {draws}"));
        format!("{drawn}[limits]\n\"flow.f.latency.p99\" = \"< 50 ms\"\n")
    };
    bench.write("z.toml", drawn(20));
    let ran = bench.run(&["run", "z.toml", "--no-report"]).ok();
    assert!(ran.out.contains("The limit holds in all 20 draws."), "{}", ran.out);
    let json = bench.run(&["run", "z.toml", "--no-report", "--json"]).ok().json();
    assert_eq!(json["limits"][0]["runs"][0]["draws"], serde_json::json!({ "holds": 20, "of": 20 }));
    let plan = [
        "plan",
        "z.toml",
        "--maximise",
        "flow.f.count",
        "--from",
        "1",
        "--to",
        "40",
        "--repetitions",
        "2",
        "--no-report",
    ];
    let planned = bench.run(&plan).ok();
    assert!(planned.out.contains(" keeps the limits in 20 of 20 draws"), "{}", planned.out);
    // The library keeps the draws too, and shares them.
    bench.run(&["paths", "import", "found.toml"]).ok();
    bench.run(&["paths", "export", "found", "--to", "found.tar"]).ok();
    bench.run(&["paths", "remove", "found"]).ok();
    assert!(!bench.store().join("paths/found.draws").exists());
    bench.run(&["paths", "import", "found.tar"]).ok();
    std::fs::create_dir(bench.path("elsewhere")).expect("a new folder");
    bench.write("elsewhere/z.toml", drawn(20).replace("found.toml", "found"));
    bench.run(&["check", "elsewhere/z.toml"]).ok();

    bench.write("z.toml", drawn(21));
    let refused = bench.run(&["check", "z.toml"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("`found.toml` has 20 draws; use at most that many"), "{}", refused.err);
}

#[test]
fn mistakes_are_bad_input() {
    let bench = Bench::new();
    bench.write("dsl.toml", DSL);
    bench.write("bad.toml", "rate = \"fast\"\n");
    for (arguments, error) in [
        (&["learn"][..], "required arguments were not provided"),
        (
            &["learn", "--over", "dsl.toml", "--budget", "5 s"],
            "`--budget 5 s` is not between 20 s and 10 min",
        ),
        (&["learn", "--over", "bad.toml"], "`fast` does not start with a number"),
        (&["learn", "--over", "absent.toml"], "does not exist"),
    ] {
        let ran = bench.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(error), "{arguments:?}: {}", ran.err);
    }
    // No agent is enrolled here.
    let mut unknown = bench.command(&["learn", "studio.example.org"]);
    let ran = support::Ran::from(
        unknown.env("XDG_CONFIG_HOME", bench.path("config")).output().expect("the program starts"),
    );
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("enrol"), "{}", ran.err);
}

#[test]
fn a_path_that_carries_nothing_is_an_error_of_the_environment() {
    let bench = Bench::new();
    bench.write("dead.toml", "rate = \"1 Mbit/s\"\nloss = \"100 %\"\n");
    let ran = bench.run(&["learn", "--over", "dead.toml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("no packet arrived in either direction"), "{}", ran.err);
    assert!(!bench.path("dead-learned.toml").exists());

    // In one direction only: that one is written.
    bench.write("half.toml", "rate = \"1 Mbit/s\"\n[backward]\nloss = \"100 %\"\n");
    let ran = bench.run(&["learn", "--over", "half.toml", "--gentle"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("backward was not learned: no packet arrived backward"), "{}", ran.err);
    let written = std::fs::read_to_string(bench.path("half-learned.toml")).expect("it is written");
    assert!(written.contains("not learned: no packet arrived backward"), "{written}");
}

#[test]
fn a_watch_reports_changes_with_their_time() {
    let bench = Bench::new();
    let rate = "rate = { kind = \"steps\", steps = [[\"0 s\", \"8 Mbit/s\"], [\"10 min\", \"4 Mbit/s\"]] }\n";
    bench.write("path.toml", rate);
    let watched = bench.run(&["learn", "--over", "path.toml", "--watch", "20 min"]).ok();
    assert!(
        watched.out.contains("at 10 min forward: the rate was 8 Mbit/s and is 4 Mbit/s"),
        "{}",
        watched.out
    );
    assert!(watched.out.contains("20 looks, 2 changes"), "{}", watched.out);
    let json = bench.run(&["learn", "--over", "path.toml", "--watch", "20 min", "--json"]).ok().json();
    assert_eq!(json["changes"][0]["figure"], "rate", "{json}");
    for (arguments, error) in [
        (&["--every", "1 s", "--watch", "1 min"][..], "`--every 1 s` is less than 10 s"),
        (&["--watch", "1 min", "--on", "wire"], "needs `--on sim`"),
        (&["--watch", "1 min", "--to", "x.toml"], "cannot be used with"),
    ] {
        let ran = bench.run(&[&["learn", "--over", "path.toml"], arguments].concat());
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(error), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn the_plan_is_an_experiment() {
    let bench = Bench::new();
    let plan = bench.run(&["learn", "studio.example.org", "--plan"]).ok().out;
    bench.write("plan.toml", plan);
    bench.run(&["check", "plan.toml"]).ok();
}
