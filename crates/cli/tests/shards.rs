//! A run in parts, on several machines: `run --shard` and `runs merge`.

#![allow(clippy::unwrap_used, reason = "helpers of tests too")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use support::{Bench, files_below};

/// Voice beside bulk transfers, with losses, and audio that is kept.
const SWEEP: &str = r#"
name = "sharded"
duration = "500 ms"
drain = "200 ms"
repetitions = 3
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
audio = true

[flow.bulk]
from = "a"
to = "b"
transport = { kind = "tcp", window = "16 KiB" }
source = { kind = "bulk", message = "4 KiB" }

[sweep]
"flow.bulk.count" = [0, 1, 2]
"#;

/// Every file of a run that holds results, and the summaries.
fn results(store: &Path) -> (BTreeMap<String, Vec<u8>>, Vec<String>) {
    let folders = std::fs::read_dir(store.join("runs")).unwrap();
    let folder = folders.flatten().map(|entry| entry.path()).max().unwrap();
    let files = files_below(&folder).into_iter().map(|path| {
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        (name, std::fs::read(&path).unwrap())
    });
    let is_result = |name: &String| !name.ends_with("running.lock") && !name.ends_with("report.html");
    let files: BTreeMap<_, _> = files.filter(|(name, _)| is_result(name)).collect();
    let database = rusqlite::Connection::open(store.join("trunkline.db")).unwrap();
    let query = "SELECT point || '/' || repetition || ' ' || partial || ' ' || summary FROM repetition \
                 WHERE run = (SELECT max(id) FROM run) ORDER BY point, repetition";
    let mut query = database.prepare(query).unwrap();
    let rows = query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    (files, rows)
}

#[test]
fn merged_parts_are_the_whole_run_byte_for_byte() {
    let bench = Bench::new();
    bench.write("sweep.toml", SWEEP);
    let store = |name: &str| bench.path(name).display().to_string();
    bench.run(&["run", "sweep.toml", "--store", &store("whole")]).ok();
    for part in 1..=4 {
        let place = store(&format!("part-{part}"));
        let shard = format!("{part}/4");
        let ran = bench.run(&["run", "sweep.toml", "--shard", &shard, "--store", &place]).ok();
        assert!(ran.out.contains(&format!("Part {part} of 4: ")), "{}", ran.out);
        assert!(ran.out.contains("`trunkline runs merge`") && !ran.out.contains("--resume"), "{}", ran.out);
    }
    // One that was measured twice brings nothing twice.
    bench.run(&["run", "sweep.toml", "--shard", "2/4", "--store", &store("part-2")]).ok();
    let parts: Vec<String> = (1..=4).map(|part| store(&format!("part-{part}"))).collect();
    let merged = store("merged");
    let mut arguments = vec!["runs", "--store", &merged, "--json", "merge"];
    arguments.extend(parts.iter().map(String::as_str));
    let json = bench.run(&arguments).ok().json();
    assert_eq!((&json["run"], &json["complete"], &json["missing"]), (&1.into(), &true.into(), &0.into()));
    let taken: Vec<u64> =
        json["parts"].as_array().unwrap().iter().map(|p| p["taken"].as_u64().unwrap()).collect();
    assert_eq!(taken, [3, 2, 0, 2, 2]);
    let ((whole, whole_rows), (merged, merged_rows)) =
        (results(&bench.path("whole")), results(&bench.path("merged")));
    assert_eq!(whole.keys().collect::<Vec<_>>(), merged.keys().collect::<Vec<_>>());
    assert!(whole.len() > 3 * 3 * 2, "traces, audio and the file: {:?}", whole.keys());
    for (name, bytes) in &whole {
        assert!(merged[name] == *bytes, "{name} differs");
    }
    assert_eq!(whole_rows.len(), 9);
    assert_eq!(whole_rows, merged_rows);
}

/// Points that belong to other parts are not missing.
#[test]
fn a_part_is_judged_by_its_own_points() {
    let bench = Bench::new();
    bench.write("sweep.toml", format!("{SWEEP}\n[limits]\n\"flow.voice.loss\" = \"< 50 %\"\n"));
    let store = bench.path("part").display().to_string();
    let json = bench.run(&["run", "sweep.toml", "--shard", "2/3", "--store", &store, "--json"]).ok().json();
    let run = &json["runs"][0];
    assert_eq!(run["headline"], "Part 2 of 3: The limit holds.", "{run}");
    assert_eq!((&run["outcome"], &run["status"]), (&"holds".into(), &"complete".into()));
    assert_eq!(run["shard"], serde_json::json!({ "index": 2, "of": 3, "repetitions": 3 }));
    let points = json["points"].as_array().unwrap();
    assert_eq!(points.iter().map(|point| &point["index"]).collect::<Vec<_>>(), [1]);
    let shown = bench.run(&["report", "1", "--store", &store]).ok().out;
    assert!(shown.contains("3 of 3 repetitions") && !shown.contains("--resume"), "{shown}");
    // It is complete: the other points are not its own.
    let resumed = bench.run(&["run", "--store", &store, "--resume", "1"]);
    assert!(resumed.err.contains("run 1 is complete"), "{}", resumed.err);
    let listed = bench.run(&["runs", "--store", &store]).ok().out;
    assert!(listed.contains("complete, part 2/3"), "{listed}");
}

/// A part that was cut short is finished without the repetitions of the others.
#[test]
fn a_part_that_was_cut_short_is_resumed_as_a_part() {
    let bench = Bench::new();
    bench.write("sweep.toml", SWEEP);
    let store = bench.path("part").display().to_string();
    bench.run(&["run", "sweep.toml", "--shard", "2/3", "--store", &store]).ok();
    let database = rusqlite::Connection::open(bench.path("part/trunkline.db")).unwrap();
    database.execute("DELETE FROM repetition WHERE repetition > 0", []).unwrap();
    database.execute("UPDATE run SET status = 'partial'", []).unwrap();
    drop(database);
    let shown = bench.run(&["report", "1", "--store", &store]).ok().out;
    for said in ["Part 2 of 3: 1 of 3 repetitions", "`trunkline run --resume 1`", "`trunkline runs merge`"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let resumed = bench.run(&["run", "--store", &store, "--resume", "1"]).ok().out;
    assert!(resumed.contains("3 of 3 repetitions") && !resumed.contains("--resume"), "{resumed}");
}

#[test]
fn a_part_that_was_killed_is_repeated_without_harm() {
    let bench = Bench::new();
    bench.write("sweep.toml", SWEEP.replace("500 ms", "20 s").replace("repetitions = 3", "repetitions = 6"));
    let (first, second) =
        (bench.path("first").display().to_string(), bench.path("second").display().to_string());
    let mut child =
        bench.command(&["run", "sweep.toml", "--shard", "1/2", "--store", &first]).spawn().unwrap();
    let database = bench.path("first/trunkline.db");
    let done = || {
        let opened = rusqlite::Connection::open(&database).ok()?;
        opened
            .query_row("SELECT count(*) FROM repetition WHERE partial = 0", [], |row| row.get::<_, i64>(0))
            .ok()
    };
    while done().unwrap_or(0) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    bench.run(&["run", "sweep.toml", "--shard", "1/2", "--store", &first]).ok();
    // Without the second part the run is partial, and says what is missing.
    let merged = bench.path("merged").display().to_string();
    let half = bench.run(&["runs", "--store", &merged, "merge", &first]);
    assert_eq!(half.code, Some(1), "{}", half.err);
    assert!(half.err.contains("9 repetitions are missing"), "{}", half.err);
    bench.run(&["run", "sweep.toml", "--shard", "2/2", "--store", &second]).ok();
    let all = bench.run(&["runs", "--store", &merged, "merge", &first, &second]).ok();
    assert!(all.out.contains("merged: run 2, 18 repetitions"), "{}", all.out);
    // What is missing can also be measured here.
    bench.run(&["run", "--store", &merged, "--resume", "1", "--no-report"]).ok();
    let rows = |id: i64| {
        let database = rusqlite::Connection::open(bench.path("merged/trunkline.db")).unwrap();
        let mut query = database
            .prepare("SELECT summary FROM repetition WHERE run = ?1 ORDER BY point, repetition")
            .unwrap();
        query.query_map([id], |row| row.get::<_, String>(0)).unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    assert_eq!(rows(1), rows(2));
}

#[test]
fn parts_of_other_experiments_are_refused() {
    let bench = Bench::new();
    bench.write("sweep.toml", SWEEP);
    let (first, second) =
        (bench.path("first").display().to_string(), bench.path("second").display().to_string());
    bench.run(&["run", "sweep.toml", "--shard", "1/2", "--store", &first]).ok();
    bench.run(&["run", "sweep.toml", "--shard", "2/2", "--store", &second, "--seed", "8"]).ok();
    let merged = bench.path("merged").display().to_string();
    let refused = bench.run(&["runs", "--store", &merged, "merge", &first, &second]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.err.contains("is not a part of the same run: the hash of the experiment file"),
        "{}",
        refused.err
    );
    assert!(bench.run(&["runs", "--store", &merged]).ok().err.contains("no runs are stored"));
    let wrong = bench.run(&["run", "sweep.toml", "--shard", "3/2"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("there is no part 3 of 2"), "{}", wrong.err);
}
