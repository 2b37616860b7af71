//! Plans as a user makes them: answers that can be worked out by hand, bad questions, and interrupted searches.

mod support;

use support::{Bench, Ran};
use trunkline_testkit::real_time::in_real_time;

/// How many voice channels fit on 1 Mbit/s? A packet of 80 samples has 80 B of speech, 40 B of measurement header, 8 B of
/// UDP and 20 B of IPv4: 148 B every 10 ms are 118.4 kbit/s, of which 8 are 947.2 kbit/s and 9 are 1065.6 kbit/s. The
/// queue of 20 packets hides at most 20 of the 1800 packets that 9 channels send in 2 s, and of every 9 packets 0.55 find no
/// room: 6.2 % less 1.1 %.
const CHANNELS: &str = r#"
name = "channels"
duration = "2 s"
drain = "500 ms"
repetitions = 3

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "1 Mbit/s"
queue = { kind = "fifo", limit = "20 packets" }

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }

[limits]
"flow.voice.loss" = "< 1 %"
"#;

fn planned(text: &str, arguments: &[&str]) -> (Bench, Ran) {
    let bench = Bench::new();
    bench.write("plan.toml", text);
    let ran = bench.run(&[&["plan", "plan.toml"], arguments].concat());
    (bench, ran)
}

#[test]
fn what_is_refused_is_placed_in_the_file_as_it_was_named() {
    let transport = "{ kind = \"tcp\", congestion-control = \"cubicc\" }";
    let text = CHANNELS.replace("\"udp\"", transport);
    let line = text.lines().position(|line| line.contains("cubicc")).unwrap() + 1;
    let (bench, ran) = planned(&text, &["--maximise", "flow.voice.count"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    let folder = bench.path("plan.toml").parent().unwrap().display().to_string();
    assert!(ran.err.contains(&format!("plan.toml:{line}:")) && !ran.err.contains(&folder), "{}", ran.err);
}

#[test]
fn the_number_of_channels_is_the_one_worked_out_by_hand() {
    let (bench, ran) = planned(CHANNELS, &["--maximise", "flow.voice.count", "--json"]);
    let json = ran.ok().json();
    let answer = &json["answers"][0];
    assert_eq!(answer["kept"]["number"], 11.0, "{json:#}");
    assert_eq!(answer["broken"]["number"], 12.0, "{json:#}");
    assert_eq!((&answer["undecided"], &answer["finished"]), (&serde_json::Value::Null, &true.into()));
    let at_twelve =
        answer["trials"].as_array().unwrap().iter().find(|trial| trial["number"] == 12.0).unwrap();
    let loss = at_twelve["limits"][0]["mean"].as_f64().unwrap();
    // 1.0368 Mbit/s, of which 1 Mbit/s gets through, and 21 of 2,400 packets after the end.
    assert!((loss - 0.0267).abs() < 0.003, "{loss}");

    // Everything measured is a run like any other.
    let report = bench.run(&["report", "latest", "--json"]).ok().json();
    assert_eq!(report["runs"][0]["status"], "complete");
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), answer["trials"].as_array().unwrap().len());
    let counts: Vec<u64> =
        points.iter().map(|p| p["values"]["flow.voice.count"].as_str().unwrap().parse().unwrap()).collect();
    assert!(counts.is_sorted(), "{counts:?}");
    let page = std::fs::read_to_string(bench.run_folder(1).join("plan.html")).unwrap();
    assert!(page.contains("11 is the largest value shown to keep the limits"), "{page}");
    let figure = std::fs::read_to_string(bench.run_folder(1).join("plan-voice-loss-0.svg")).unwrap();
    assert!(figure.starts_with("<svg"));
}

/// The same with room for 1000 packets: the queue holds what 2 s bring too much. What it still holds after the drain time is
/// unfinished and not lost, and the latency has risen all the time by what is too much.
#[test]
fn an_answer_that_rests_on_the_short_run_says_so() {
    let ask = |queue: &str| {
        let text = CHANNELS.replace("20 packets", queue);
        planned(&text, &["--maximise", "flow.voice.count", "--json", "--no-report"]).1.ok().json()
    };
    let json = ask("1000 packets");
    let answer = &json["answers"][0];
    let kept = answer["kept"]["number"].as_f64().unwrap();
    assert!(kept > 11.0, "{json:#}");
    let rising = answer["rising"].as_array().unwrap();
    assert_eq!((rising.len(), &rising[0]["flow"]), (1, &"voice".into()), "{json:#}");
    let warning = json["warnings"][0]["message"].as_str().unwrap();
    assert!(warning.contains("the latency still rises"), "{warning}");
    let overload = kept * 86_400.0 / 1e6 - 1.0;
    let per_second = rising[0]["per_second"].as_f64().unwrap();
    assert!((per_second / overload - 1.0).abs() < 0.02, "{per_second}, expected {overload}");
    let sentence = answer["sentence"].as_str().unwrap();
    let says = "the latency still rises at the end of the run, that of `voice` by";
    let says = format!("{says} {:.1} ms", per_second * 1000.0);
    assert!(sentence.contains(&says) && sentence.contains("a run of 2 s is too short"), "{sentence}");
    // 11 channels are 5 % less than the line carries.
    let json = ask("20 packets");
    assert_eq!(json["answers"][0]["rising"], serde_json::json!([]), "{json:#}");
    assert!(!json["answers"][0]["sentence"].as_str().unwrap().contains("rises"));
}

/// 12 channels are 1.0368 Mbit/s, 0.08 % more than the line carries: the queue grows for the whole run, by 0.8 ms in each second.
#[test]
fn an_answer_that_rests_on_a_slight_overload_says_so() {
    let text = CHANNELS.replace("20 packets", "1000 packets").replace("1 Mbit/s", "1036 kbit/s");
    let json = planned(&text, &["--maximise", "flow.voice.count", "--to", "12", "--json", "--no-report"])
        .1
        .ok()
        .json();
    let answer = &json["answers"][0];
    assert_eq!(answer["kept"]["number"], 12.0, "{json:#}");
    let per_second = answer["rising"][0]["per_second"].as_f64().unwrap_or_default();
    assert!((per_second / (0.8 / 1036.0) - 1.0).abs() < 0.1, "{json:#}");
}

/// 12 channels are 3.7 % more than the line carries: after 2.3 s the queue of 100 packets is full, and at the end of the run no
/// latency rises. Of the surplus little more than half was dropped.
#[test]
fn an_answer_that_rests_on_a_queue_that_filled_up_says_so() {
    let filled = |duration: &str| {
        let text =
            CHANNELS.replace("20 packets", "100 packets").replace("2 s", duration).replace("< 1 %", "< 5 %");
        let arguments =
            ["--maximise", "flow.voice.count", "--from", "11", "--to", "12", "--json", "--no-report"];
        planned(&text, &arguments).1.ok().json()["answers"][0].clone()
    };
    let answer = filled("5 s");
    assert_eq!((&answer["kept"]["number"], &answer["rising"]), (&12.0.into(), &serde_json::json!([])));
    let overloaded = &answer["overloaded"][0];
    assert_eq!(overloaded["link"], "trunk a>b", "{answer:#}");
    assert!((overloaded["load"].as_f64().unwrap() - 1.0368).abs() < 1e-4, "{answer:#}");
    let sentence = answer["sentence"].as_str().unwrap();
    let says = "the flows send 103.68 % of what `trunk a>b` carries, and a run of 5 s is too short";
    assert!(sentence.contains(says), "{sentence}");
    // After 30 s the losses are those of the overload.
    assert_eq!(filled("30 s")["overloaded"], serde_json::json!([]));
}

/// Poisson arrivals of 10,000 packets in a repetition vary by 1 %, and their queue by more than it grows.
#[test]
fn a_slight_overload_by_random_arrivals_is_told_from_chance() {
    let poisson =
        "{ kind = \"load\", message = \"472 B\", interval = { kind = \"exponential\", mean = \"10 ms\" } }";
    let planned_at = |load: f64| {
        let rate = format!("{:.0} bit/s", 4e6 / load);
        let text = CHANNELS
            .replace("{ kind = \"voice\", samples = 80 }", poisson)
            .replace("1 Mbit/s", &rate)
            .replace("20 packets", "1000 packets");
        let arguments =
            ["--maximise", "flow.voice.count", "--from", "9", "--to", "10", "--json", "--no-report"];
        let answer = planned(&text, &arguments).1.ok().json()["answers"][0].clone();
        assert_eq!(answer["kept"]["number"], 10.0, "{answer:#}");
        answer["overloaded"][0]["load"].as_f64()
    };
    let load = planned_at(1.002).expect("a warning");
    assert!((load - 1.002).abs() < 1e-4, "{load}");
    assert_eq!(planned_at(0.998), None);
}

/// Nothing of what is sent arrives within the drain time, and nothing is lost.
#[test]
fn an_answer_says_that_most_had_not_arrived() {
    let text = CHANNELS.replace("rate =", "delay = \"3 s\"\nrate =");
    let (bench, ran) =
        planned(&text, &["--minimise", "link.trunk.rate", "--from", "500 kbit/s", "--json", "--no-report"]);
    let json = ran.ok().json();
    let answer = &json["answers"][0];
    assert_eq!(answer["unfinished"], serde_json::json!([{ "flow": "voice", "share": 1.0 }]), "{json:#}");
    let sentence = answer["sentence"].as_str().unwrap();
    assert!(sentence.contains("100 % of the messages of `voice` had not arrived"), "{sentence}");
    let run = bench.run(&["run", "plan.toml", "--no-report"]);
    assert!(run.out.contains("Nothing of `voice` had arrived when the run ended"), "{}", run.out);
}

#[test]
fn a_plan_says_that_its_messages_are_larger_than_the_applications() {
    // 8 samples have no room for the header that measures them.
    let text = CHANNELS.replace("samples = 80", "samples = 8");
    let (_, ran) = planned(&text, &["--maximise", "flow.voice.count", "--json", "--no-report", "--to", "2"]);
    let says = "flow `voice`: its messages are 16 bytes larger";
    assert_eq!(ran.err.matches(says).count(), 1, "{}", ran.err);
    let json = ran.ok().json();
    assert!(
        json["warnings"][0]["message"].as_str().is_some_and(|warning| warning.starts_with(says)),
        "{json:#}"
    );
}

#[test]
fn a_plan_says_before_it_begins_how_long_it_takes() {
    let (_, ran) = planned(CHANNELS, &["--maximise", "flow.voice.count", "--no-report"]);
    let err = ran.ok().err;
    let line = err.lines().position(|line| line.contains("estimated from the probe: ")).expect("an estimate");
    let judged: Vec<usize> = err
        .lines()
        .enumerate()
        .filter_map(|(place, line)| line.contains("flow.voice.count = ").then_some(place))
        .collect();
    assert!(judged.len() >= 3 && judged.iter().all(|place| *place > line), "{err}");
    // What was probed is the first repetition of its value. Four values are judged, each 3 times, of which the probe had some.
    let estimate = err.lines().nth(line).unwrap();
    assert!(estimate.contains(" for about ") && estimate.contains(" repetitions of 4 values"), "{estimate}");
    let (_, ran) = planned(CHANNELS, &["--maximise", "flow.voice.count", "--json"]);
    let json = ran.ok().json();
    assert_eq!(json["estimate"]["values"], 4, "{json:#}");
    assert!(
        json["estimate"]["repetitions"].as_u64() > Some(3) && json["estimate"]["time_s"].is_number(),
        "{json:#}"
    );
    assert!(json["html"].as_str().is_some_and(|page| page.ends_with("plan.html")), "{json:#}");
}

#[test]
fn the_smallest_rate_is_found_to_one_per_cent() {
    // One channel of 86.4 kbit/s, of which 1 % may be lost and 20 packets wait at the end.
    let (_, ran) = planned(CHANNELS, &["--minimise", "link.trunk.rate", "--json", "--no-report"]);
    let json = ran.ok().json();
    let edge = |name: &str| json["answers"][0][name]["number"].as_f64().unwrap() * 1000.0;
    let (kept, broken) = (edge("kept"), edge("broken"));
    // What comes in 2.5 s, less what the queue and the line hold at the end of sending: (200 x 0.99 - 21) packets in 2 s.
    let expected = (200.0 * 0.99 - 21.0) * 108.0 * 8.0 / 2000.0;
    assert!(broken < kept && kept - broken <= broken * 0.0101, "{kept} {broken}");
    assert!((kept / expected - 1.0).abs() < 0.02, "{kept}, expected {expected}");
}

#[test]
fn every_combination_has_its_answer_whatever_the_number_of_jobs() {
    let text = format!("{CHANNELS}\n[sweep]\n\"flow.voice.source.samples\" = [80, 160]\n");
    let ask = |jobs: &str| {
        let arguments =
            ["--maximise", "flow.voice.count", "--against", "link.trunk.rate=500 kbit/s,1 Mbit/s"];
        let (bench, ran) = planned(&text, &[&arguments[..], &["--jobs", jobs, "--json"]].concat());
        let mut json = ran.ok().json();
        for key in ["started", "finished", "directory", "file", "key"] {
            json["run"].as_object_mut().unwrap().remove(key);
        }
        // Where the page is, and how long it took.
        json.as_object_mut().unwrap().retain(|key, _| !["html", "estimate"].contains(&key.as_str()));
        (bench, json)
    };
    let (bench, one) = ask("1");
    assert_eq!(one, ask("3").1);
    let kept: Vec<f64> =
        one["answers"].as_array().unwrap().iter().map(|a| a["kept"]["number"].as_f64().unwrap()).collect();
    // 86.4 kbit/s, and (160 + 28) B every 20 ms, 75.2 kbit/s.
    assert_eq!(kept, [5.0, 6.0, 11.0, 13.0], "{one:#}");
    assert_eq!(one["answers"][1]["values"]["link.trunk.rate"], "500 kbit/s");
    assert!(bench.run_folder(1).join("plan-region.svg").is_file());
}

/// One call in an ATM virtual channel: 80 B, 28 B of UDP and IPv4, 8 B of LLC/SNAP and 8 B of trailer
/// are three cells every 10 ms, 127.2 kbit/s, 266 us apart as the adapter shapes them.
const CALL: &str = r#"
name = "reservation"
duration = "2 s"
drain = "500 ms"
repetitions = 2

[hosts]
a = {}
b = {}

[link.trunk]
medium = "atm"
between = ["a", "b"]
shape-pcr = "1594 kbit/s"
pcr = "1594 kbit/s"
scr = "150 kbit/s"
mbs = 3
rate = "1594 kbit/s"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "load", message = "80 B", interval = "10 ms" }

[bundle.trunk]
flows = ["voice"]

[limits]
"bundle.trunk.udp.loss.max" = "< 1 %"
"bundle.trunk.udp.latency.p999.max" = "< 100 ms"
"#;

#[test]
fn the_smallest_reservation_is_the_one_worked_out_by_hand() {
    let smallest = |key: &str| {
        let (_, ran) = planned(CALL, &["--minimise", key, "--json", "--no-report"]);
        ran.ok().json()["answers"][0]["kept"]["number"].as_f64().unwrap()
    };
    // A packet of three cells at the peak rate is a burst of three.
    assert_eq!(smallest("link.trunk.mbs"), 3.0);
    let near = |key: &str, expected: f64| {
        let found = smallest(key);
        assert!((found / expected - 1.0).abs() < 0.02, "{key}: {found}, expected {expected}");
    };
    near("link.trunk.scr", 127.2);
    // The third cell comes twice as much too early as the second: 2 (T - 266 us) is at most 250 us, `cdvt`.
    near("link.trunk.pcr", 424.0 / 0.391);
    // The line falls behind by what it lacks in 2 s, and what waits then, with a packet's own 10 ms, is 100 ms of it.
    near("link.trunk.rate", 127.2 / (1.0 + 0.09 / 2.0));
}

#[test]
fn the_region_is_shaded_and_the_file_stands_in_it() {
    let arguments = ["--minimise", "link.trunk.scr", "--against", "link.trunk.mbs=3,6,12"];
    let (bench, ran) = planned(CALL, &arguments);
    ran.ok();
    let folder = bench.run_folder(1);
    let region = std::fs::read_to_string(folder.join("plan-region.svg")).unwrap();
    assert_eq!(region.matches("fill-opacity").count(), 1);
    for text in ["trunk.scr, kbit/s", "trunk.mbs, cells", "as in the file: 150 kbit/s, 3 cells"] {
        assert!(region.contains(text), "{text}");
    }
    let png = std::fs::read(folder.join("plan-region.png")).ok();
    assert_eq!(png.is_some_and(|png| png.starts_with(b"\x89PNG")), cfg!(feature = "png"));
    assert!(std::fs::read_to_string(folder.join("plan.html")).unwrap().contains("as in the file"));
}

#[test]
fn what_is_near_the_edge_is_repeated_more_often_and_may_stay_undecided() {
    // 200 packets, each lost with 1 %: the limit is the mean itself.
    let text = CHANNELS.replace("rate = ", "loss = \"1 %\"\nrate = ");
    let arguments =
        ["--maximise", "flow.voice.count", "--from", "1", "--to", "2", "--most-repetitions", "12", "--json"];
    let (_, ran) = planned(&text, &arguments);
    let json = ran.ok().json();
    let trials = json["answers"][0]["trials"].as_array().unwrap();
    assert!(
        trials.iter().any(|trial| trial["repetitions"] == 12 && trial["verdict"] == "undecided"),
        "{json:#}"
    );
    assert!(trials.iter().all(|trial| trial["repetitions"].as_u64().unwrap() <= 12));
    assert_eq!(json["answers"][0]["kept"], serde_json::Value::Null, "nothing is claimed that was not shown");
}

#[test]
fn a_value_that_the_file_refuses_counts_as_broken_and_says_why() {
    // An MTU of 1500 B holds 1472 samples behind 8 B of UDP and 20 B of IPv4.
    // In 2 s there are 11 such messages, too few to show that less than 1 % is lost.
    let text = CHANNELS.replace("\"2 s\"", "\"60 s\"");
    let (_, ran) = planned(&text, &["--maximise", "flow.voice.source.samples", "--json", "--no-report"]);
    let json = ran.ok().json();
    let answer = &json["answers"][0];
    assert_eq!((&answer["kept"]["number"], &answer["broken"]["number"]), (&1472.0.into(), &1473.0.into()));
    assert!(
        answer["sentence"].as_str().unwrap().contains("1473 is refused: `samples`: a message of 1473 B"),
        "{json:#}"
    );
}

#[test]
fn bad_questions_are_answered_with_a_sentence_and_nothing_is_written() {
    let without_limits = &CHANNELS[..CHANNELS.find("[limits]").unwrap()];
    let count = ["--maximise", "flow.voice.count"];
    for (text, arguments, says) in [
        (without_limits, count.to_vec(), "no `[limits]`"),
        (CHANNELS, vec!["--maximise", "flow.voice.cuont"], "did you mean `flow.voice.count`?"),
        (CHANNELS, vec!["--maximise", "flow.voice.transport"], "no largest or smallest"),
        (CHANNELS, [&count[..], &["--from", "9", "--to", "2"]].concat(), "`--from 9` is above `--to 2`"),
        (CHANNELS, [&count[..], &["--from", "2 ms"]].concat(), "must be a whole number"),
        (CHANNELS, [&count[..], &["--repetitions", "1"]].concat(), "at least 2"),
        (CHANNELS, [&count[..], &["--confidence", "40 %"]].concat(), "between 50 % and 100 %"),
        (CHANNELS, [&count[..], &["--against", "link.trunk.rate"]].concat(), "KEY=VALUE"),
        (CHANNELS, [&count[..], &["--against", "link.trunk.rate=1 ms"]].concat(), "rate"),
        (CHANNELS, [&count[..], &["--step", "0"]].concat(), "is not a valid amount of"),
        (CHANNELS, vec![], "--maximise"),
    ] {
        let (bench, ran) = planned(text, &arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:#?}");
        assert!(ran.err.contains(says), "wants `{says}`: {ran:#?}");
        assert!(ran.out.is_empty() && !bench.store().exists(), "nothing is written");
    }
}

#[test]
fn an_interrupted_plan_tells_what_it_knows_and_goes_on_where_it_was() {
    in_real_time(|| {
        let bench = Bench::new();
        // A live repetition takes as long as it says, so that the signal comes in the middle of the search.
        let text =
            CHANNELS.replace("duration = \"2 s\"", "duration = \"300 ms\"").replace("500 ms", "100 ms");
        bench.write("plan.toml", text);
        let plan = [
            "plan",
            "plan.toml",
            "--maximise",
            "flow.voice.count",
            "--to",
            "4",
            "--repetitions",
            "2",
            "--on",
            "live",
        ];
        let mut child = bench.start(&[&plan[..], &["--json"]].concat());
        let done = |bench: &Bench| {
            let listed = bench.run(&["runs", "--json"]).ok().json();
            listed["runs"][0]["repetitions_done"].as_u64().unwrap_or(0)
        };
        while done(&bench) < 2 && child.try_wait().expect("the program can be asked").is_none() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let signalled = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(signalled.expect("kill runs").success(), "the plan had ended before the signal");
        let ran = Ran::from(child.wait_with_output().expect("the program ends"));
        assert_eq!(ran.code, Some(130), "{ran:#?}");
        assert!(ran.err.contains("--resume 1"), "{ran:#?}");
        let json = ran.json();
        assert_eq!((&json["stopped"], &json["answers"][0]["finished"]), (&true.into(), &false.into()));
        let before = done(&bench);

        let other = bench.run(&[
            "plan",
            "plan.toml",
            "--maximise",
            "link.trunk.rate",
            "--on",
            "live",
            "--resume",
            "1",
        ]);
        assert_eq!(other.code, Some(2), "{other:#?}");
        assert!(other.err.contains("of another plan or file"), "{other:#?}");
        let resumed = bench.run(&[&plan[..], &["--resume", "latest", "--json"]].concat()).ok().json();
        assert_eq!((&resumed["run"]["id"], &resumed["run"]["status"]), (&1.into(), &"complete".into()));
        assert!(resumed["run"]["repetitions_done"].as_u64().unwrap() > before);
        assert_eq!(resumed["answers"][0]["finished"], true);
        let again = bench.run(&[&plan[..], &["--resume", "1"]].concat());
        assert_eq!(again.code, Some(2), "{again:#?}");
    });
}

/// Fewer calls keep the limits than the bound that breaks them: the answer names them.
#[test]
fn a_question_the_wrong_way_round_is_answered_so() {
    let text = CHANNELS.replace("1 Mbit/s", "300 kbit/s");
    let asked = ["--minimise", "flow.voice.count", "--from", "1", "--to", "40", "--no-report", "--json"];
    let json = planned(&text, &asked).1.ok().json();
    let sentence = json["answers"][0]["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("40 breaks") && !sentence.contains("no value from"), "{sentence}");
    assert!(
        sentence.contains("yet 1 kept the limits when it was tried once: `--maximise` finds"),
        "{sentence}"
    );
}

/// Where even one call breaks a limit, no calls at all keep it, which is no answer.
#[test]
fn a_value_without_members_is_no_answer() {
    let text = CHANNELS.replace("1 Mbit/s", "10 kbit/s");
    let asked = ["--maximise", "flow.voice.count", "--from", "0", "--to", "4", "--no-report"];
    let json = planned(&text, &[&asked[..], &["--json"]].concat()).1.ok().json();
    let answer = &json["answers"][0];
    assert_eq!((&answer["kept"], &answer["broken"]["number"]), (&serde_json::Value::Null, &1.0.into()));
    let sentence = answer["sentence"].as_str().unwrap();
    assert!(sentence.contains("no value from 0 to 4 keeps the limits: even 1"), "{sentence}");
    let of_none = answer["trials"].as_array().unwrap().iter().find(|trial| trial["number"] == 0.0).unwrap();
    assert_eq!(
        (&of_none["verdict"], &of_none["limits"][0]["verdict"]),
        (&"not-applicable".into(), &"not-applicable".into())
    );
    assert!(planned(&text, &asked).1.ok().out.contains("no members"));
}
