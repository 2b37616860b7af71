//! Links that are profiles: what they are filled in with, what overrides them, and what is said of wrong ones.

use trunkline_core::{Duration, Rate};
use trunkline_experiment::{Experiment, Files, FilesError, Problem, Problems, Scenario};
use trunkline_network::medium;

/// A file with this link and what follows.
fn parse(link: &str, rest: &str) -> Result<Experiment, Problems> {
    let text = format!(
        "name = \"profiles\"\nduration = \"1 s\"\n[hosts]\nrouter = {{}}\na = {{}}\nb = {{}}\n[link.l]\n{link}\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"voice\"\n{rest}"
    );
    Experiment::parse(&text, "x.toml", &())
}

fn scenario(link: &str) -> Scenario {
    let experiment = parse(link, "").unwrap_or_else(|problems| panic!("{problems}"));
    (*experiment.points.first().scenario).clone()
}

#[test]
fn every_profile_is_a_link_of_its_own() {
    for (name, kind, between) in [
        ("crossover-100", "serial", r#"["a", "b"]"#),
        ("switch-100", "ethernet", r#"["a", "b"]"#),
        ("wifi-g-adhoc", "wifi", r#"["a", "b"]"#),
        ("wifi-g-ap", "wifi", r#"["router", "a", "b"]"#),
    ] {
        let link = &scenario(&format!("profile = \"{name}\"\nbetween = {between}")).links[0];
        assert_eq!(medium::KINDS[link.medium].name, kind, "{name}");
    }
}

#[test]
fn keys_beside_a_profile_override_it_in_one_direction_too() {
    let link = &scenario(
        "profile = \"crossover-100\"\nbetween = [\"a\", \"b\"]\ndelay = \"5 ms\"\nbackward = { rate = \"1 Mbit/s\" }",
    )
    .links[0];
    let rates = [100, 1].map(|mbits| Rate::from_bits_per_second(mbits * 1_000_000));
    assert_eq!([link.directions[0].rate, link.directions[1].rate], rates);
    assert!(link.directions.iter().all(|direction| direction.delay == Duration::from_millis(5)));
    assert!(link.directions.iter().all(|direction| direction.overhead.count() == 38), "the profile's");
}

#[test]
fn keys_of_a_profile_are_swept_and_so_are_profiles() {
    let file = parse(
        "profile = \"wifi-g-adhoc\"\nbetween = [\"a\", \"b\"]",
        "[sweep]\n\"link.l.profile\" = [\"wifi-g-adhoc\", \"crossover-100\"]\n\"link.l.loss.probability\" = [\"1 %\", \"2 %\"]",
    );
    let experiment = file.unwrap_or_else(|problems| panic!("{problems}"));
    let media = experiment.points.iter().map(|point| medium::KINDS[point.scenario.links[0].medium].name);
    assert_eq!(media.collect::<Vec<_>>(), ["wifi", "wifi", "serial", "serial"]);
    let file = parse(
        "profile = \"wifi-g-adhoc\"\nbetween = [\"a\", \"b\"]",
        "[sweep]\n\"link.l.occupied\" = [\"1 %\", \"2 %\"]",
    );
    let experiment = file.unwrap_or_else(|problems| panic!("{problems}"));
    let shares =
        experiment.points.iter().map(|point| point.scenario.links[0].shared.ratio("occupied").value());
    assert_eq!(shares.collect::<Vec<_>>(), [0.01, 0.02]);
}

#[test]
fn an_unknown_profile_is_one_mistake() {
    let problems = parse("profile = \"wifi-g-app\"\nbetween = [\"a\", \"b\"]", "").unwrap_err().to_string();
    assert!(problems.contains("x.toml:8:11: `profile`"), "{problems}");
    assert!(problems.contains("wifi-g-ap"), "{problems}");
    assert_eq!(problems.matches("x.toml:").count(), 1, "{problems}");
}

/// A key that the profile gives and another that the file gives do not fit: the remark is at the file's.
#[test]
fn a_complaint_about_a_profile_s_key_is_at_the_line_that_names_it() {
    let problems = parse("profile = \"switch-100\"\nmedium = \"serial\"\nbetween = [\"a\", \"b\"]", "");
    let problems = problems.unwrap_err().to_string();
    assert!(problems.contains("x.toml:8:11: unknown key `switch-latency`"), "{problems}");
}

/// Profiles that are files.
struct Profiles;

impl Files for Profiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        if path == "huge.toml" {
            return Ok((0..2000).map(|n| format!("k{n} = 1\n")).collect::<String>().into());
        }
        let text = match path {
            "home.toml" => {
                "# Measured on Sunday.\ndoc = \"DSL\"\nrate = \"50 Mbit/s\"\ndelay = \"9 ms\"\nqueue = \"fq-codel\"\n\
                 [backward]\nrate = \"10 Mbit/s\"\njitter = { kind = \"exponential\", mean = \"1 ms\" }\n"
            }
            "radio.toml" => {
                "medium = \"wifi\"\nmode = \"ad-hoc\"\nloss = { kind = \"bernoulli\", probability = \"1 %\" }\n"
            }
            "wrong.toml" => {
                "rate = \"50 Mbit\"\nrat = 5\n[backward]\ndelay = \"9 parsecs\"\nqueue = \"fofo\"\n"
            }
            "torn.toml" => "rate = \"50 Mbit/s\n",
            "learned.toml" => "rate = \"5 Mbit/s\"\ndelay = \"1 ms\"\n",
            "learned.draws/01.toml" | "other.draws/01.toml" => {
                "[forward]\nrate = \"4 Mbit/s\"\n[backward]\nrate = \"8 Mbit/s\"\n"
            }
            "learned.draws/02.toml" => "rate = \"6 Mbit/s\"\n",
            "other.toml" => "rate = \"7 Mbit/s\"\n",
            "learned.draws/03.toml" => "rate = 3\n",
            "needy.toml" => "rate = \"1 Mbit/s\"\nshape-burst = \"3 KB\"\n",
            _ => return Err(FilesError::new("does not exist")),
        };
        Ok(text.into())
    }
}

fn with_files(link: &str, rest: &str) -> Result<Experiment, Problems> {
    let text = format!(
        "name = \"profiles\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n{link}\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"voice\"\n{rest}"
    );
    Experiment::parse(&text, "x.toml", &Profiles)
}

fn mbits(experiment: &Experiment, point: usize) -> [u64; 2] {
    let scenario = experiment.points.at(point).scenario;
    [0, 1].map(|place| scenario.links[0].directions[place].rate.bits_per_second() / 1_000_000)
}

#[test]
fn a_profile_is_a_file_with_the_keys_of_a_link() {
    let experiment =
        with_files("profile = \"home.toml\"", "").unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(mbits(&experiment, 0), [50, 10]);
    let [there, back] = &experiment.points.first().scenario.links[0].directions[..] else {
        panic!("two directions")
    };
    assert!([there, back].iter().all(|direction| direction.delay == Duration::from_millis(9)));
    assert_eq!((there.impairments.jitter.is_some(), back.impairments.jitter.is_some()), (false, true));
    assert!(experiment.files.by_path().contains_key("home.toml"), "kept with the run");

    // A key for both directions overrides the file's for one, and a direction's own only that key.
    for (own, expected) in [
        ("rate = \"20 Mbit/s\"", [20, 20]),
        ("backward = { rate = \"7 Mbit/s\" }", [50, 7]),
        ("backward = { delay = \"1 ms\" }", [50, 10]),
    ] {
        let link = format!("profile = \"home.toml\"\n{own}");
        let experiment = with_files(&link, "").unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(mbits(&experiment, 0), expected, "{own}");
        let jitter = &experiment.points.first().scenario.links[0].directions[1].impairments.jitter;
        assert!(jitter.is_some(), "{own}");
    }
}

#[test]
fn files_of_profiles_and_their_keys_are_swept() {
    let sweep = "[sweep]\n\"link.l.profile\" = [\"home.toml\", \"crossover-100\", \"radio.toml\"]\n";
    let experiment =
        with_files("profile = \"home.toml\"", sweep).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(
        [mbits(&experiment, 0), mbits(&experiment, 1)],
        [[50, 10], [100, 100]],
        "nothing of the first is left"
    );
    let medium = experiment.points.at(2).scenario.links[0].medium;
    assert_eq!(medium::KINDS[medium].name, "wifi");

    let sweep = "[sweep]\n\"link.l.loss.probability\" = [\"1 %\", \"2 %\"]\n\"link.l.mode\" = [\"ad-hoc\"]\n";
    let experiment =
        with_files("profile = \"radio.toml\"", sweep).unwrap_or_else(|problems| panic!("{problems}"));
    let loss =
        |point: usize| experiment.points.at(point).scenario.links[0].directions[0].impairments.loss.clone();
    assert_ne!(loss(0), loss(1));
}

/// Whatever the order of the axes, profiles come first; a swept key of the link overrides what its profile says of either
/// direction.
#[test]
fn what_is_swept_overrides_the_profiles_file() {
    let rate = "\"link.l.rate\" = [\"20 Mbit/s\", \"30 Mbit/s\"]\n";
    let profiles = "\"link.l.profile\" = [\"home.toml\"]\n";
    for sweep in [rate.to_owned(), format!("{rate}{profiles}"), format!("{profiles}{rate}")] {
        let experiment = with_files("profile = \"home.toml\"", &format!("[sweep]\n{sweep}"))
            .unwrap_or_else(|problems| panic!("{problems}"));
        let last = experiment.points.len() - 1;
        assert_eq!([mbits(&experiment, 0), mbits(&experiment, last)], [[20, 20], [30, 30]], "{sweep}");
    }
    let sweep =
        "[sweep]\n\"link.l.loss.probability\" = [\"1 %\", \"2 %\"]\n\"link.l.profile\" = [\"radio.toml\"]\n";
    let experiment =
        with_files("profile = \"radio.toml\"", sweep).unwrap_or_else(|problems| panic!("{problems}"));
    let loss =
        |point: usize| experiment.points.at(point).scenario.links[0].directions[0].impairments.loss.clone();
    assert_ne!(loss(0), loss(1));
}

#[test]
fn keys_of_the_medium_of_a_file_are_searched() {
    let experiment =
        with_files("profile = \"radio.toml\"", "").unwrap_or_else(|problems| panic!("{problems}"));
    assert!(experiment.searchable("link.l.occupied").is_ok());
    let experiment =
        with_files("profile = \"home.toml\"", "").unwrap_or_else(|problems| panic!("{problems}"));
    let rate = experiment.searchable("link.l.rate").unwrap();
    assert!(rate.now().is_some(), "the file's");
}

#[test]
fn a_profile_has_a_bounded_size() {
    let problems = with_files("profile = \"huge.toml\"", "").unwrap_err().to_string();
    assert!(problems.contains("a profile has at most 1000"), "{problems}");
}

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_own_lines() {
    let headlines = |link: &str| -> Vec<String> {
        let problems = with_files(link, "").expect_err("it is wrong");
        let headline = |p: &Problem| format!("{}:{}:{}: {}", p.file, p.line, p.column, p.message);
        problems.iter().map(headline).collect()
    };
    let of_wrong = headlines("profile = \"wrong.toml\"");
    let expected = [
        "wrong.toml:1:8: ",
        "wrong.toml:2:1: unknown key `rat` in a profile of a link; did you mean `rate`?",
        "wrong.toml:4:9: `delay`: `9 parsecs` has the unknown unit `parsecs`",
        "wrong.toml:5:9: there is no queue `fofo`; did you mean `fifo`?",
    ];
    assert!(
        expected[1..].iter().all(|start| of_wrong.iter().any(|told| told.starts_with(start))),
        "{of_wrong:#?}"
    );
    assert!(headlines("profile = \"torn.toml\"")[0].starts_with("torn.toml:1:"));
    assert_eq!(headlines("profile = \"none.toml\""), ["x.toml:8:11: `none.toml` does not exist"]);
    assert_eq!(
        headlines("profile = \"needy.toml\""),
        ["x.toml:8:11: `shape-burst` needs `shape-rate`; without it, it has no effect"]
    );
    assert!(headlines("profile = \"nowhere\"")[0].ends_with("; the path of a file ends in `.toml`"));
}

#[test]
fn draws_take_the_place_of_the_profile_as_the_last_axis() {
    let sweep = "[sweep]\n\"flow.f.count\" = [1, 2]\n";
    let experiment = with_files("profile = \"learned.toml\"\ndraws = 2", sweep)
        .unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(experiment.axes.len(), 2);
    let axis = &experiment.axes[1];
    assert_eq!(
        (axis.key.as_str(), axis.values.as_slice()),
        ("link.l.draws", &["1".to_owned(), "2".to_owned()][..])
    );
    assert!(axis.is_draws() && !experiment.axes[0].is_draws());
    let rates = (0..4).map(|point| mbits(&experiment, point));
    assert_eq!(rates.collect::<Vec<_>>(), [[4, 8], [6, 6], [4, 8], [6, 6]]);
    let delays = experiment.points.iter().map(|point| point.scenario.links[0].directions[0].delay);
    assert!(delays.into_iter().all(|delay| delay == Duration::ZERO), "nothing of the profile is left");
    assert!(experiment.files.by_path().contains_key("learned.draws/02.toml"), "kept with the run");

    // The link's own keys, and swept ones, override those of the draws.
    for (own, sweep) in [("rate = \"9 Mbit/s\"", ""), ("", "[sweep]\n\"link.l.rate\" = [\"9 Mbit/s\"]\n")] {
        let link = format!("profile = \"learned.toml\"\ndraws = 2\n{own}");
        let experiment = with_files(&link, sweep).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!([mbits(&experiment, 0), mbits(&experiment, 1)], [[9, 9], [9, 9]], "{sweep}");
    }
}

#[test]
fn links_of_one_profile_have_the_same_draw_and_others_are_combined() {
    let with = |profile: &str, draws: u32| {
        let second =
            format!("[link.m]\nbetween = [\"a\", \"b\"]\nprofile = \"{profile}\"\ndraws = {draws}\n");
        with_files("profile = \"learned.toml\"\ndraws = 2\n", &format!("path = [\"l\"]\n{second}"))
    };
    let same = with("learned.toml", 2).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(same.axes.len(), 1);
    assert_eq!(same.axes[0].key, "link.l.draws, link.m.draws");
    assert!(same.axes[0].is_draws());
    let rates = |point: usize| {
        let scenario = same.points.at(point).scenario;
        [0, 1].map(|link| scenario.links[link].directions[point].rate.bits_per_second() / 1_000_000)
    };
    assert_eq!([rates(0), rates(1)], [[4, 4], [6, 6]]);
    let other = with("other.toml", 1).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((other.axes.len(), other.points.len()), (2, 2));
    let problems = with("learned.toml", 1).unwrap_err().to_string();
    assert!(problems.contains("give both the same number of draws"), "{problems}");
}

#[test]
fn draws_that_cannot_be_had_are_reported_at_the_key() {
    for (link, rest, expected) in [
        (
            "profile = \"other.toml\"\ndraws = 2",
            "",
            "x.toml:9:9: `other.draws/02.toml` does not exist: `other.toml` has 1 draws",
        ),
        (
            "profile = \"home.toml\"\ndraws = 2",
            "",
            "x.toml:9:9: `home.draws/01.toml` does not exist: `home.toml` has no draws",
        ),
        ("profile = \"learned.toml\"\ndraws = 3", "", "learned.draws/03.toml:1:8: "),
        (
            "profile = \"wifi-g-adhoc\"\ndraws = 2",
            "",
            "x.toml:9:9: `draws` needs a `profile` that `trunkline learn` has written",
        ),
        ("draws = 2", "", "x.toml:8:9: `draws` needs a `profile`"),
        ("profile = \"learned.toml\"\ndraws = 0", "", "x.toml:9:9: "),
        ("profile = \"learned.toml\"\ndraws = \"two\"", "", "x.toml:9:9: "),
        (
            "profile = \"learned.toml\"\ndraws = 2",
            "[sweep]\n\"link.l.profile\" = [\"other.toml\"]\n",
            "x.toml:9:9: the sweep replaces the profile of the link `l`",
        ),
        (
            "profile = \"learned.toml\"",
            "[sweep]\n\"link.l.draws\" = [1, 2]\n",
            "`link.l.draws` makes an axis of its own and cannot be swept",
        ),
        (
            "profile = \"learned.toml\"\ndraws = 1000",
            "[sweep]\n\"flow.f.count\" = [1]",
            "has 3 draws; use at most",
        ),
    ] {
        let problems = with_files(link, rest).expect_err(link).to_string();
        assert!(problems.contains(expected), "{link}: {problems}");
    }
}
