//! Recordings become link profiles, and the library of paths keeps them: as a user does it.

mod support;

use support::Bench;

fn experiment(profile: &str) -> String {
    format!(
        "name = \"cell\"\nduration = \"3 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
         profile = \"{profile}\"\ndelay = \"20 ms\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"voice\"\n\
         [limits]\n\"flow.f.loss\" = \"< 1 %\"\n"
    )
}

#[test]
fn a_trace_is_learned_kept_shared_and_run() {
    let bench = Bench::new();
    bench.write("cell.up", "1\n3\n3\n9\n");
    bench.write("cell.down", "2\n5\n");
    let learned = bench.run(&["learn", "--from", "cell.up", "--from", "cell.down", "--to", "cell.toml"]).ok();
    assert!(learned.out.contains("# delay: not in a trace"), "{}", learned.out);
    // Beside the experiment, and from the library when that is gone.
    bench.write("beside.toml", experiment("cell.toml"));
    let beside = bench.run(&["run", "beside.toml", "--json", "--no-report"]).ok().json();
    bench.run(&["paths", "import", "cell.toml"]).ok();
    for file in ["cell.toml", "cell-forward.trace", "cell-backward.trace"] {
        std::fs::remove_file(bench.path(file)).expect("it was written");
    }
    bench.write("named.toml", experiment("cell"));
    let named = bench.run(&["run", "named.toml", "--json", "--no-report"]).ok().json();
    let flows = |report: &serde_json::Value| report["points"][0]["runs"][0]["flows"].clone();
    assert!(flows(&beside).is_array());
    assert!(flows(&beside) == flows(&named), "the same link gives the same figures");
    let listed = bench.run(&["paths"]).ok().out;
    assert!(listed.contains("cell-forward.trace") && listed.contains("backward"), "{listed}");

    bench.run(&["paths", "export", "cell", "--to", "shared.tar"]).ok();
    bench.run(&["paths", "remove", "cell"]).ok();
    let refused = bench.run(&["check", "named.toml"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("`cell` is not a known value"), "{}", refused.err);
    bench.run(&["paths", "import", "shared.tar"]).ok();
    bench.run(&["check", "named.toml"]).ok();
    // The same once more, and another of the same name.
    bench.run(&["paths", "import", "shared.tar"]).ok();
    bench.write("cell.toml", "rate = \"1 Mbit/s\"\n");
    let refused = bench.run(&["paths", "import", "cell.toml"]);
    assert!(refused.err.contains("already exists"), "{}", refused.err);
    bench.write("dsl.toml", "rate = \"1 Mbit/s\"\n");
    bench.run(&["paths", "import", "dsl.toml"]).ok();
    let compared = bench.run(&["paths", "compare", "cell", "dsl"]).ok().out;
    assert!(compared.contains("1 Mbit/s") && compared.contains("cell-backward.trace"), "{compared}");
}

#[test]
fn placeholders_are_not_listed_as_learned() {
    let bench = Bench::new();
    bench.write("half.toml", "rate = \"1 Mbit/s\"\n[backward]\nloss = \"100 %\"\n");
    let ran = bench.run(&["learn", "--over", "half.toml", "--gentle", "--to", "learned.toml"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    bench.run(&["paths", "import", "learned.toml"]).ok();
    let listed = bench.run(&["paths", "--json"]).ok().json();
    let directions = &listed["paths"][0]["directions"];
    assert!(directions[0]["rate"].as_str().unwrap().ends_with("bit/s"), "{listed}");
    assert_eq!(directions[0]["queue"], "-", "it was not loaded");
    assert_eq!(
        [&directions[1]["rate"], &directions[1]["delay"], &directions[1]["queue"]],
        ["-", "-", "-"],
        "{listed}"
    );
    bench.write("other.toml", "rate = \"2 Mbit/s\"\n");
    bench.run(&["paths", "import", "other.toml"]).ok();
    let compared = bench.run(&["paths", "compare", "learned", "other"]).ok().out;
    assert!(compared.contains("1 Gbit/s (a placeholder)"), "{compared}");
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_written() {
    let bench = Bench::new();
    bench.write("empty.pcap", "");
    bench.write("text.txt", "hello\n");
    bench.write("cut.pcap", b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00");
    bench.write("bad.toml", "rate = \"1 parsec\"\n");
    bench.write("no.toml", "medium = \"trace\"\nfile = \"missing.trace\"\n");
    for (arguments, expected) in [
        (&["learn", "--from", "empty.pcap"][..], "`empty.pcap` is empty"),
        (&["learn", "--from", "text.txt"], "`text.txt` is in no format"),
        (
            &["learn", "--from", "cut.pcap"],
            "`cut.pcap` is a capture without a whole packet: the file ends within",
        ),
        (&["learn", "--from", "none.pcap"], "`none.pcap` does not exist"),
        (&["learn", "--from", "text.txt", "--to", "x.txt"], "must end in `.toml`"),
        (&["paths", "show", "x"], "there is no path `x`"),
        (&["paths", "remove", "../x"], "there is no path `../x`"),
        (&["paths", "import", "bad.toml"], "bad.toml:1:"),
        (&["paths", "import", "no.toml"], "names `missing.trace`, which does not exist"),
        (&["paths", "import", "cut.pcap"], "is neither TOML nor a file of `trunkline paths export`"),
    ] {
        let ran = bench.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
    }
    assert!(!bench.path("empty.toml").exists() && !bench.store().join("paths").exists());
}
