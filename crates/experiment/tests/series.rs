//! Rates and delays over time.

use trunkline_core::{Duration, OverTime, Time};
use trunkline_experiment::{Experiment, Files, FilesError, Problem, Problems};

/// Files of values over time.
struct Measured;

impl Files for Measured {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        match path {
            "rates.csv" => Ok(b"# Sunday\n0, 20 Mbit/s\n1.5, 5e6\n\n3 s, 8 Mbit/s # and on\n".to_vec()),
            "delays.csv" => Ok(b"0,20000\n0.5,35 ms\n".to_vec()),
            "late.csv" => Ok(b"2, 1 Mbit/s\n".to_vec()),
            "torn.csv" => Ok(b"0, 1 Mbit/s\n2 1 Mbit/s\n".to_vec()),
            "odd.csv" => Ok(b"0, 1 Mbit/s\n1, 1 parsec/s\n".to_vec()),
            _ => Err(FilesError::new("does not exist")),
        }
    }
}

fn parse(link: &str, rest: &str) -> Result<Experiment, Problems> {
    let text = format!(
        "name = \"series\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n{link}\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"voice\"\n{rest}"
    );
    Experiment::parse(&text, "x.toml", &Measured)
}

fn values(link: &str, key: &str, at: &[u64]) -> Vec<u64> {
    let experiment = parse(link, "").unwrap_or_else(|problems| panic!("{problems}"));
    let over_time = experiment.points.first().scenario.links[0].directions[0].values.over_time(key);
    let mut cursor = over_time.cursor();
    at.iter().map(|ms| cursor.at(Time::ZERO + Duration::from_millis(*ms))).collect()
}

#[test]
fn steps_and_files_are_values_over_time() {
    let steps =
        r#"rate = { kind = "steps", steps = [["0 s", "20 Mbit/s"], ["15 ms", "5mbit"]], every = "30 ms" }"#;
    assert_eq!(values(steps, "rate", &[0, 14, 15, 29, 30, 46]), [20, 20, 5, 5, 20, 5].map(|m| m * 1_000_000));
    let file = r#"rate = { kind = "series", file = "rates.csv" }"#;
    assert_eq!(
        values(file, "rate", &[0, 1_499, 1_500, 3_000, 90_000]),
        [20, 20, 5, 8, 8].map(|m| m * 1_000_000)
    );
    let delay = "rate = \"1 Mbit/s\"\ndelay = { kind = \"series\", file = \"delays.csv\", every = \"1 s\" }";
    assert_eq!(values(delay, "delay", &[0, 500, 1_000]), [20, 35, 20].map(|ms| ms * 1_000_000));
    let scenario = parse(delay, "").unwrap().points.first().scenario.clone();
    let link = &scenario.links[0].directions[0];
    assert_eq!(
        (link.delay, link.rate.bits_per_second()),
        (Duration::from_millis(20), 1_000_000),
        "the shortest delay"
    );
    assert_eq!(link.values.over_time("rate"), OverTime::Always(1_000_000));
}

#[test]
fn a_series_and_its_period_are_swept() {
    let link = r#"rate = { kind = "steps", steps = [["0 s", "20 Mbit/s"], ["15 ms", "5 Mbit/s"]], every = "30 ms" }"#;
    let rates = |sweep: &str| {
        let experiment = parse(link, sweep).unwrap_or_else(|problems| panic!("{problems}"));
        let at_40_ms = |point: trunkline_experiment::Point| {
            let rate = point.scenario.links[0].directions[0].values.over_time("rate");
            rate.cursor().at(Time::ZERO + Duration::from_millis(40)) / 1_000_000
        };
        experiment.points.iter().map(at_40_ms).collect::<Vec<_>>()
    };
    assert_eq!(rates("[sweep]\n\"link.l.rate.every\" = [\"30 ms\", \"20 ms\"]"), [20, 20]);
    assert_eq!(rates("[sweep]\n\"link.l.rate.every\" = [\"30 ms\", \"22 ms\"]"), [20, 5]);
    let series = "[sweep]\n\"link.l.rate\" = [\"3 Mbit/s\", { kind = \"series\", file = \"rates.csv\" }]";
    assert_eq!(rates(series), [3, 20]);
}

#[test]
fn what_is_wrong_is_told_at_its_place() {
    let headline = |link: &str| {
        let problems = parse(link, "").expect_err("it is wrong");
        let headline = |p: &Problem| format!("{}:{}:{}: {}", p.file, p.line, p.column, p.message);
        problems.iter().map(headline).collect::<Vec<_>>().join("|")
    };
    for (link, told) in [
        (
            r#"rate = { steps = [] }"#,
            "x.toml:8:8: the series of `rate` lacks the key `kind`; known: `steps` and `series`",
        ),
        (r#"rate = { kind = "stairs" }"#, "x.toml:8:17: the kind of a series cannot be the text `stairs`"),
        (r#"rate = { kind = "steps" }"#, "x.toml:8:8: the series of `rate` lacks the key `steps`"),
        (
            r#"rate = { kind = "steps", steps = "0 s" }"#,
            "x.toml:8:34: `steps` must be a list of pairs of a time and a value such as `[[\"0 s\", \"20 Mbit/s\"], [\"15 s\", \
             \"5 Mbit/s\"]]`, not the text `0 s`",
        ),
        (
            r#"rate = { kind = "steps", steps = [["0 s", "5 Mbit/s", "x"]] }"#,
            "x.toml:8:35: a step must be a time and a value, not a list of 3",
        ),
        (
            r#"rate = { kind = "steps", steps = [["0 s", "5 Mbit/s"], ["1 s", "0 bit/s"]] }"#,
            "x.toml:8:64: the value of a step must be a rate from 1 bit/s to 1000 Gbit/s, not `0 bit/s`",
        ),
        (
            r#"rate = { kind = "steps", steps = [["0", "5 Mbit/s"]] }"#,
            "x.toml:8:36: the time of a step: `0` has no unit; expected a duration such as `20 ms`",
        ),
        (
            r#"rate = { kind = "steps", steps = [["1 s", "5 Mbit/s"]] }"#,
            "x.toml:8:34: `steps` begins at 1 s; the first step must be at 0 s",
        ),
        (
            r#"rate = { kind = "steps", steps = [["0 s", "5 Mbit/s"]], evry = "1 s" }"#,
            "x.toml:8:57: unknown key `evry` of a series of kind `steps`; did you mean `every`?",
        ),
        (
            r#"rate = { kind = "series", file = "late.csv" }"#,
            "x.toml:8:34: `late.csv` begins at 2 s; the first step must be at 0 s",
        ),
        (
            r#"rate = { kind = "series", file = "torn.csv" }"#,
            "x.toml:8:34: `torn.csv` has an error in line 2: expected a time and a value with a comma between them, such as \
             `15 s, 5 Mbit/s`, not `2 1 Mbit/s`",
        ),
        (
            r#"rate = { kind = "series", file = "odd.csv" }"#,
            "x.toml:8:34: `odd.csv` has an error in line 2: the value: `1 parsec/s` has the unknown unit",
        ),
        (r#"rate = { kind = "series", file = "no.csv" }"#, "x.toml:8:34: `no.csv` does not exist"),
        (
            r#"rate = 5"#,
            "x.toml:8:8: `rate` must be a rate from 1 bit/s to 1000 Gbit/s or a series of them over time, not the number 5",
        ),
    ] {
        let found = headline(link);
        assert!(found.starts_with(told), "{link}\n{found}\n{told}");
    }
}
