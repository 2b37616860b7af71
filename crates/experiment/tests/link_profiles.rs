//! Links that are profiles: what they are filled in with, what overrides them, and what is said of wrong ones.

use trunkline_core::{Duration, Rate};
use trunkline_experiment::{Experiment, Problems, Scenario};
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
    (*experiment.points[0].scenario).clone()
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
