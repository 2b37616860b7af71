//! Hosts that stand for several, and what follows them.

use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Experiment, Scenario, Setting, Single, Subject};

const FILE: &str = r#"name = "phones"
duration = "1 s"

[hosts]
ap = {}
core = {}
phone = { count = 3, send-message = "10 us" }

[link.cell]
medium = "wifi"
mode = "access-point"
between = ["ap", "phone"]

[link.cell.station.phone]
rate = "24 Mbit/s"

[link.cell.station.phone-2]
loss = "1 %"

[link.trunk]
between = ["ap", "core"]
rate = "10 Mbit/s"

[flow.up]
from = "phone"
to = "core"
transport = "udp"
source = { kind = "voice", phase = "spread" }
count = 2
stagger = "1 ms"

[flow.down]
from = "core"
to = "phone"
transport = "udp"
source = "voice"

[bundle.calls]
flows = ["up", "down"]

[limits]
"flow.up.loss" = "< 1 %"
"flow.up.each.loss" = "< 2 %"
"flow.down-3.loss" = "< 3 %"
"#;

/// The same, every host and flow written.
const WRITTEN: &str = r#"name = "phones"
duration = "1 s"

[hosts]
ap = {}
core = {}
phone-1 = { send-message = "10 us" }
phone-2 = { send-message = "10 us" }
phone-3 = { send-message = "10 us" }

[link.cell]
medium = "wifi"
mode = "access-point"
between = ["ap", "phone-1", "phone-2", "phone-3"]
[link.cell.station.phone-1]
rate = "24 Mbit/s"
[link.cell.station.phone-2]
rate = "24 Mbit/s"
loss = "1 %"
[link.cell.station.phone-3]
rate = "24 Mbit/s"

[link.trunk]
between = ["ap", "core"]
rate = "10 Mbit/s"

[flow]
up-1 = { from = "phone-1", to = "core", transport = "udp", source = { kind = "voice", phase = "spread" }, count = 2, stagger = "1 ms" }
up-2 = { from = "phone-2", to = "core", transport = "udp", source = { kind = "voice", phase = "spread" }, count = 2, stagger = "1 ms" }
up-3 = { from = "phone-3", to = "core", transport = "udp", source = { kind = "voice", phase = "spread" }, count = 2, stagger = "1 ms" }
down-1 = { from = "core", to = "phone-1", transport = "udp", source = "voice" }
down-2 = { from = "core", to = "phone-2", transport = "udp", source = "voice" }
down-3 = { from = "core", to = "phone-3", transport = "udp", source = "voice" }
"#;

fn parse(text: &str) -> Experiment {
    Experiment::parse(text, "x.toml", &()).unwrap_or_else(|e| panic!("{e}"))
}

fn told(text: &str) -> Vec<String> {
    match Experiment::parse(text, "x.toml", &()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|problem| problem.headline()).collect(),
    }
}

/// What is wrong with the file after a change.
fn changed(from: &str, to: &str) -> Vec<String> {
    assert!(FILE.contains(from), "{from}");
    told(&FILE.replacen(from, to, 1))
}

#[test]
fn what_stands_for_several_is_what_is_written_for_each() {
    let (short, long) = (parse(FILE), parse(WRITTEN));
    let (scenario, written) = (&short.points.first().scenario, &long.points.first().scenario);
    let mut singles: Scenario = scenario.singles().into_owned();
    for flow in &mut singles.flows {
        // By which members of different flows start one behind the other.
        flow.alike = (0, 1);
    }
    singles.bundles.clear();
    for (single, written) in format!("{singles:#?}").lines().zip(format!("{written:#?}").lines()) {
        assert_eq!(single, written);
    }
    assert_eq!(singles.flows.len(), written.flows.len());
    assert!(matches!(written.singles(), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn a_recorder_sees_one_flow_with_all_members_under_the_same_ids() {
    let experiment = parse(FILE);
    let scenario = &experiment.points.first().scenario;
    let flows: Vec<_> =
        scenario.flows.iter().map(|f| (f.meta.name.as_str(), f.meta.members, f.each.len())).collect();
    assert_eq!(flows, [("up", 6, 3), ("down", 3, 3)]);
    let ids = |flow: &trunkline_experiment::Flow| -> Vec<u32> {
        (0..flow.meta.members).map(|member| flow.member(member).0).collect()
    };
    let together: Vec<u32> = scenario.flows.iter().flat_map(ids).collect();
    let singles: Vec<u32> = scenario.singles().flows.iter().flat_map(ids).collect();
    assert_eq!(together, singles);
    assert_eq!(scenario.flows[1].meta.sinks, ["phone"]);
    assert_eq!(scenario.bundles[0].flows, [0, 1], "a bundle over several paths");
    let metas: Vec<String> = scenario.single_metas().into_iter().map(|meta| meta.name).collect();
    assert_eq!(metas, ["up-1", "up-2", "up-3", "down-1", "down-2", "down-3"]);
}

/// Of six members on three hosts, as of six of one flow: spread over the interval, and one millisecond behind the other.
#[test]
fn members_of_all_hosts_start_one_behind_the_other() {
    let experiment = parse(FILE);
    let scenario = experiment.points.first().scenario.singles();
    let first_due = |flow: usize, member: u32| {
        let source = scenario.build_source(flow, member, Seed::new(1, 0)).unwrap();
        source.next_due().expect("it sends")
    };
    let due: Vec<u64> = (0..6).map(|n| first_due(n / 2, (n % 2) as u32).as_nanos()).collect();
    // An interval of 10 ms for six, and the stagger.
    let spread = Duration::from_millis(10).as_nanos() / 6;
    for (place, due) in due.iter().enumerate() {
        let expected = place as u64 * (spread + 1_000_000);
        assert!(due.abs_diff(expected) <= 6, "{place}: {due}, not {expected}");
    }
}

#[test]
fn a_link_of_two_ends_is_made_for_each_and_paths_follow() {
    let text = FILE
        .replace("medium = \"wifi\"\nmode = \"access-point\"\n", "rate = \"1 Mbit/s\"\n")
        .replace("[link.cell.station.phone]\nrate = \"24 Mbit/s\"\n", "")
        .replace("[link.cell.station.phone-2]\nloss = \"1 %\"\n", "")
        .replace("[flow.up]", "[flow.up]\npath = [\"cell\", \"trunk\"]");
    let experiment = parse(&text);
    let scenario = &experiment.points.first().scenario;
    let links: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["cell-1", "cell-2", "cell-3", "trunk"]);
    for (number, ends) in scenario.flows[0].each.iter().enumerate() {
        let path: Vec<usize> = ends.to[0].forward.iter().map(|step| step.link).collect();
        assert_eq!(
            (path, scenario.hosts[ends.from].name.clone()),
            (vec![number, 3], format!("phone-{}", number + 1))
        );
    }
    // A single flow crosses one of them, by its name.
    let single = text.clone() + "";
    let single = single.replace("[bundle.calls]", "[flow.one]\nfrom = \"phone-2\"\nto = \"ap\"\npath = [\"cell\"]\ntransport = \"udp\"\nsource = \"voice\"\n[bundle.calls]");
    let said = told(&single);
    assert!(said[0].contains("`cell` is 3 links; name one of them, such as `cell-1`"), "{said:?}");
    assert_eq!(told(&single.replace("path = [\"cell\"]", "path = [\"cell-2\"]")), Vec::<String>::new());
}

#[test]
fn flows_between_two_groups_join_those_of_the_same_number() {
    let text = FILE
        .replace("core = {}", "core = {}\ndesk = { count = 3, processor = \"phone\" }")
        .replace("\"ap\", \"phone\"]", "\"ap\", \"phone\", \"desk\"]")
        .replace("to = \"core\"", "to = \"desk\"");
    let experiment = parse(&text);
    let scenario = &experiment.points.first().scenario;
    let name = |host: usize| scenario.hosts[host].name.as_str();
    let ends: Vec<(&str, &str)> =
        scenario.flows[0].each.iter().map(|ends| (name(ends.from), name(ends.to[0].host))).collect();
    assert_eq!(ends, [("phone-1", "desk-1"), ("phone-2", "desk-2"), ("phone-3", "desk-3")]);
    let processors: Vec<&str> = scenario.hosts.iter().map(|host| name(host.processor)).collect();
    assert_eq!(processors[2..5], ["phone-1", "phone-2", "phone-3"]);
    let said = told(&text.replace("desk = { count = 3, processor = \"phone\" }", "desk = { count = 4 }"));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].contains(
            "`phone` stands for 3 hosts and `desk` for 4; a flow between them joins those of the same number"
        ),
        "{said:?}"
    );
}

#[test]
fn a_list_of_sinks_has_all_of_them() {
    let text = FILE
        .replace("to = \"phone\"", "to = [\"phone\"]")
        .replace("\"flow.down-3.loss\"", "\"flow.down.sink.phone-3.loss\"");
    let text = text.replace("flows = [\"up\", \"down\"]", "flows = [\"up\"]");
    let experiment = parse(&text);
    let down = &experiment.points.first().scenario.flows[1];
    assert_eq!(
        (down.meta.sinks.clone(), down.each.len()),
        (["phone-1", "phone-2", "phone-3"].map(String::from).to_vec(), 0)
    );
    let said = told(&FILE.replace("to = \"core\"", "to = [\"core\", \"ap\"]"));
    assert!(
        said[0].contains("a flow to several sinks comes from one host, and `phone` stands for 3"),
        "{said:?}"
    );
}

#[test]
fn the_number_of_hosts_can_be_swept_and_searched() {
    // `phone-2` is there at every point.
    let experiment = parse(&(FILE.to_owned() + "[sweep]\n\"hosts.phone.count\" = [3, 4]\n"));
    let hosts: Vec<usize> = experiment.points.iter().map(|point| point.scenario.hosts.len()).collect();
    assert_eq!(hosts, [5, 6]);
    let members = experiment.points.iter().map(|point| point.scenario.flows[0].meta.members);
    assert_eq!(members.collect::<Vec<_>>(), [6, 8]);
    assert_eq!(parse(FILE).searchable("hosts.phone.count").unwrap().now(), Some(3));
}

#[test]
fn limits_are_of_all_of_each_and_of_one() {
    let experiment = parse(FILE);
    let subjects: Vec<&Subject> = experiment.limits.iter().map(|limit| &limit.subject).collect();
    assert!(matches!(subjects[0], Subject::Flow { flow: 0, sink: None, .. }));
    assert!(matches!(subjects[1], Subject::Single { flow: 0, single: Single::Each, .. }));
    assert!(matches!(subjects[2], Subject::Single { flow: 1, single: Single::Number(3), .. }));
    // As stored, and read again.
    let json = serde_json::to_string(&experiment.limits).unwrap();
    let limits: Vec<trunkline_experiment::Limit> = serde_json::from_str(&json).unwrap();
    assert_eq!(limits, experiment.limits);
    for (key, says) in [
        (
            "flow.down-4.loss",
            "`flow.down-4.loss`: there is no `down-4`; the flow stands for `down-1` to `down-3`",
        ),
        ("flow.down-0.loss", "there is no flow `down-0`"),
        ("flow.down-3.lat", "a flow has no figure `lat`; did you mean `late`?"),
    ] {
        let said = changed("flow.down-3.loss", key);
        assert!(said.len() == 1 && said[0].contains(says), "{said:?}");
    }
    let said = told(&WRITTEN.replace("[flow]", "[limits]\n\"flow.up-1.each.loss\" = \"< 1 %\"\n[flow]"));
    assert!(said[0].contains("the flow `up-1` does not expand to several flows; omit `each.`"), "{said:?}");
}

#[test]
fn mistakes_are_told_once_and_by_the_names_of_the_file() {
    for (from, to, says) in [
        ("count = 3", "count = 0", "x.toml:7:19: `count` must be a whole number from 1 to 10000, not `0`"),
        (
            "count = 3",
            "count = \"3\"",
            "x.toml:7:19: `count` must be a whole number from 1 to 10000, not the text `3`",
        ),
        (
            "send-message = \"10 us\"",
            "send-mesage = \"10 us\"",
            "x.toml:7:22: unknown key `send-mesage` in [hosts.phone]; did you mean `send-message`?",
        ),
        (
            "ap = {}",
            "ap = {}\nphone-2 = {}",
            "x.toml:6:1: `phone-2` is one of the 3 names that `phone` expands to; choose another name",
        ),
        (
            "source = \"voice\"",
            "source = \"voise\"",
            "x.toml:36:10: there is no source `voise`; did you mean `voice`?",
        ),
        ("stagger =", "stager =", "x.toml:30:1: unknown key `stager` in [flow.up]; did you mean `stagger`?"),
        (
            "send-message = \"10 us\"",
            "agent = \"studio\"",
            "x.toml:7:30: an agent is one host, but `phone` is 3 hosts; omit `agent` or `count`",
        ),
        (
            "duration",
            "until = \"up\"\nduration",
            "x.toml:2:9: `until` waits for one flow, but `up` is 3 flows",
        ),
    ] {
        let said = changed(from, to);
        assert!(said.iter().any(|line| line == says), "{from} -> {to}: {said:#?}");
        let same = said.iter().filter(|line| line.contains("phone") && *line != says).count();
        assert!(same <= 2, "{said:#?}");
    }
}

fn set(setting: &str) -> Result<Experiment, String> {
    let settings: [Setting; 1] = [setting.parse().unwrap_or_else(|e| panic!("{e}"))];
    Experiment::parse_with(FILE, "x.toml", &(), &settings)
        .map_err(|problems| problems.iter().map(|problem| problem.headline()).collect())
}

#[test]
fn a_key_of_one_station_among_hosts_that_are_alike_can_be_set_and_swept() {
    let directions = |experiment: &Experiment, point: usize| {
        let scenario = experiment.points.at(point).scenario;
        let link = scenario.links.iter().find(|link| link.name == "cell").unwrap();
        link.directions.iter().map(|direction| format!("{direction:?}")).collect::<Vec<_>>()
    };
    // A station with a table of its own, and one without; what the table of all says still holds.
    for (key, value, table, written) in [
        ("phone-2.loss", "5 %", "phone-2", "loss = \"5 %\"\n"),
        ("phone-3.loss", "5 %", "phone-3", "loss = \"5 %\"\n"),
        ("phone-3.rate", "6 Mbit/s", "phone-3", "rate = \"6 Mbit/s\"\n"),
    ] {
        let own = format!("[link.cell.station.{table}]\n");
        let file = match FILE.contains(&own) {
            true => FILE.replace("loss = \"1 %\"\n", written),
            false => FILE.replace("[link.trunk]", &format!("{own}{written}\n[link.trunk]")),
        };
        let wanted = directions(&parse(&file), 0);
        let set = set(&format!("link.cell.station.{key}={value}")).unwrap_or_else(|e| panic!("{key}: {e}"));
        assert_eq!(directions(&set, 0), wanted, "{key}");
        let sweep = format!("\n[sweep]\n\"link.cell.station.{key}\" = [\"{value}\"]\n");
        assert_eq!(directions(&parse(&format!("{FILE}{sweep}")), 0), wanted, "{key}");
    }
    let said = set("link.cell.station.phone-4.loss=1 %").expect_err("there are three");
    assert!(said.contains("unknown key `link.cell.station.phone-4.loss`"), "{said}");
}

#[test]
fn a_key_of_one_of_several_flows_or_hosts_is_refused_with_the_key_of_all() {
    for (key, all) in
        [("flow.up-2.count", "flow.up.count"), ("hosts.phone-2.send-message", "hosts.phone.send-message")]
    {
        let name = key.split('.').nth(1).unwrap();
        let written = all.split('.').nth(1).unwrap();
        let says = format!(
            "unknown key `{key}`: `{name}` is one of 3 that have the keys of `{written}`; write `{all}` for all of them"
        );
        let said = set(&format!("{key}=2")).expect_err(key);
        assert!(said.contains(&says), "{said}");
        let said = told(&format!("{FILE}\n[sweep]\n\"{key}\" = [2]\n"));
        assert!(said.len() == 1 && said[0].contains(&says), "{said:?}");
    }
}
