//! What a file says of hosts: keys, profiles, and both swept.

use trunkline_core::schema::{Default as Preset, Kind, Value};
use trunkline_core::{Bytes, Distribution, Duration};
use trunkline_experiment::{Answer, Experiment, Files, FilesError, Framing, Scenario};
use trunkline_network::host::PARAMETERS;

/// Two profiles.
struct Profiles;

impl Files for Profiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        let text = match path {
            "hosts/slow.toml" => "doc = \"slow\"\nsend-message = \"3 ms\"\nstream-block = \"64 B\"\n",
            "hosts/fast.toml" => "send-message = \"1 ms\"\n",
            _ => return Err(FilesError::new("does not exist")),
        };
        Ok(text.into())
    }
}

/// A file with these hosts and whatever follows.
fn parse(hosts: &str, rest: &str) -> Experiment {
    let text = format!(
        "name = \"hosts\"\nduration = \"1 s\"\n[hosts]\n{hosts}\n\
         [link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\nsource = \"bulk\"\n{rest}"
    );
    Experiment::parse(&text, "x.toml", &Profiles).unwrap_or_else(|problems| panic!("{problems}"))
}

fn cost(scenario: &Scenario, host: usize) -> (Duration, Option<Bytes>) {
    let values = &scenario.hosts[host].values;
    (values.duration("send-message"), values.bytes_if_given("stream-block"))
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_host_without_keys_has_a_value_for_every_parameter() {
    let experiment = parse("a = {}\nb = {}", "");
    let host = &experiment.points.first().scenario.hosts[0];
    assert_eq!((host.name.as_str(), &host.profile), ("a", &None));
    let names: Vec<&str> = host.values.iter().map(|(name, _)| name).collect();
    assert_eq!(names, PARAMETERS.iter().map(|parameter| parameter.name).collect::<Vec<_>>());
    for (parameter, (_, value)) in PARAMETERS.iter().zip(host.values.iter()) {
        // A profile need not say everything, and neither need a host.
        assert_ne!(parameter.default, Preset::Required, "{}", parameter.name);
        assert_eq!(parameter.default == Preset::Absent, *value == Value::Absent, "{}", parameter.name);
    }
}

#[test]
fn keys_beside_a_profile_override_it() {
    let experiment = parse(
        "a = { profile = \"hosts/slow.toml\", send-message = \"7 ms\" }\nb = { profile = \"hosts/slow.toml\" }",
        "",
    );
    let scenario = &experiment.points.first().scenario;
    assert_eq!(cost(scenario, 0), (MS * 7, Some(Bytes(64))));
    assert_eq!(cost(scenario, 1), (MS * 3, Some(Bytes(64))));
    assert_eq!(scenario.hosts[0].profile.as_deref(), Some("hosts/slow.toml"));
}

#[test]
fn profiles_and_keys_of_hosts_can_be_swept() {
    let experiment = parse(
        "a = { profile = \"hosts/slow.toml\" }\nb = {}",
        "[sweep]\n\"hosts.a.profile\" = [\"hosts/slow.toml\", \"hosts/fast.toml\"]\n\
         \"hosts.b.send-message\" = [\"1 ms\", \"2 ms\"]\n",
    );
    let costs: Vec<_> =
        experiment.points.iter().map(|p| (cost(&p.scenario, 0).0, cost(&p.scenario, 1).0)).collect();
    assert_eq!(costs, [(MS * 3, MS), (MS * 3, MS * 2), (MS, MS), (MS, MS * 2)]);
    assert_eq!((experiment.axes[0].numbers.as_ref(), experiment.axes[1].unit.as_str()), (None, "ms"));
}

#[test]
fn a_part_of_a_hosts_distribution_can_be_swept() {
    let drawn = PARAMETERS.iter().find(|parameter| matches!(parameter.kind, Kind::Durations { .. }));
    let name = drawn.expect("hosts have costs that are drawn").name;
    let experiment = parse(
        &format!("a = {{ {name} = {{ kind = \"exponential\", mean = \"1 ms\" }} }}\nb = {{}}"),
        &format!("[sweep]\n\"hosts.a.{name}.mean\" = [\"1 ms\", \"3 ms\"]\n"),
    );
    let means = experiment.points.iter().map(|point| point.scenario.hosts[0].values.distribution(name));
    let expected = [1, 3].map(|n| Distribution::Exponential { mean: (MS * n).as_nanos() });
    assert_eq!(means.collect::<Vec<_>>(), expected);
}

#[test]
fn a_wrong_profile_among_swept_ones_is_told_at_its_own_place() {
    let text = "name = \"x\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
                rate = \"1 Mbit/s\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\nsource = \"bulk\"\n\
                [sweep]\n\"hosts.a.profile\" = [\"hosts/slow.toml\", \"hosts/none.toml\"]\n\
                \"hosts.b.send-mesage\" = [\"1 s\"]\n";
    let problems = Experiment::parse(text, "x.toml", &Profiles).unwrap_err();
    let lines: Vec<String> = problems.iter().map(|problem| problem.headline()).collect();
    assert_eq!(
        lines,
        [
            "x.toml:15:41: `hosts/none.toml` does not exist",
            "x.toml:16:1: unknown key `hosts.b.send-mesage`; did you mean `hosts.b.send-message`?",
        ]
    );
}

#[test]
fn a_run_can_end_with_a_flow_and_messages_can_go_without_a_header() {
    let rest = "framing = \"none\"\n\
                [flow.probe]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\nframing = \"none\"\nreflect = true\n\
                source = { kind = \"ipuke\", message = \"1 B\", answer = \"4 B\", messages = 300 }\n\
                [flow.volume]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\n\
                source = { kind = \"mpuke\", message = \"1 KiB\", bytes = \"1 MB\", transfers = 10 }\n\
                [sweep]\nuntil = [\"probe\", \"volume\"]\n";
    let experiment = parse("a = {}\nb = {}", rest);
    let [first, second] = [0, 1].map(|point| experiment.points.at(point));
    assert_eq!((first.scenario.until, second.scenario.until), (Some(1), Some(2)));
    let flows = &first.scenario.flows;
    assert_eq!(
        [flows[0].framing, flows[1].framing, flows[2].framing],
        [Framing::None, Framing::None, Framing::Within]
    );
    assert_eq!(
        [flows[0].answer(), flows[1].answer(), flows[2].answer()],
        [Answer::None, Answer::Bytes(4), Answer::Bytes(4)]
    );
    assert_eq!(parse("a = {}\nb = {}", "").points.first().scenario.until, None);
}

#[test]
fn a_host_shares_the_processor_of_another_that_has_one() {
    let experiment = parse("a = {}\nb = { processor = \"a\" }", "");
    let hosts = &experiment.points.first().scenario.hosts;
    assert_eq!([hosts[0].processor, hosts[1].processor], [0, 0]);
    let text = "name = \"p\"\nduration = \"1 s\"\n[hosts]\na = { processor = \"b\" }\nb = { processor = \"c\" }\nc = { processor = \"d\" }";
    let problems = Experiment::parse(text, "x.toml", &()).unwrap_err().to_string();
    assert!(
        problems.contains("x.toml:4:5: `b` does not have its own processor: it shares that of `c`"),
        "{problems}"
    );
    assert!(problems.contains("x.toml:6:19: `processor` names the unknown host `d`"), "{problems}");
}

#[test]
fn a_flow_says_that_only_its_small_messages_are_larger() {
    let said = |message: &str| {
        let rest = format!(
            "[flow.sized]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\n\
             source = {{ kind = \"load\", message = {message}, interval = \"1 ms\" }}\n"
        );
        let experiment = parse("a = {}\nb = {}", &rest);
        experiment.points.first().scenario.flows.last().and_then(|flow| flow.larger(false))
    };
    let bivalue = |first: &str| {
        format!("{{ kind = \"bivalue\", first = \"{first}\", second = \"200 B\", probability = 0.5 }}")
    };
    let expected = "flow `sized`: those of its messages that have no room for the measurement header are 16 bytes larger";
    assert_eq!(said(&bivalue("5 B")).as_deref(), Some(expected));
    assert_eq!(said("{ kind = \"exponential\", mean = \"200 B\" }").as_deref(), Some(expected));
    assert_eq!(said(&bivalue("20 B")), None);
}

#[test]
fn a_flow_says_by_how_much_its_answers_are_larger() {
    let said = |transport: &str, keys: &str, answer: u64, on_sockets| {
        let rest = format!(
            "[flow.asks]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\n{keys}\n\
             source = {{ kind = \"interactive\", message = \"40 B\", answer = \"{answer} B\", think = \"1 ms\" }}\n"
        );
        parse("a = {}\nb = {}", &rest)
            .points
            .first()
            .scenario
            .flows
            .last()
            .unwrap()
            .larger_answers(on_sockets)
    };
    let expected = |place: &str, added: u64| {
        Some(format!(
            "flow `asks`: {place}the answers to its messages are {added} bytes larger, because they have no room for the \
             measurement header"
        ))
    };
    let udp = "\"udp\"";
    assert_eq!(said(udp, "", 4, false), expected("", 16));
    assert_eq!(said(udp, "", 15, true), expected("on real sockets ", 16));
    assert_eq!((said(udp, "", 16, false), said(udp, "", 40, true)), (None, None));
    assert_eq!(said("\"tcp\"", "framing = \"none\"", 4, false), None);
    assert_eq!(said("\"tcp\"", "framing = \"none\"", 4, true), expected("on real sockets ", 16));
    // Such a stream delivers damage, of which a short answer would show nothing.
    let unchecked = "{ kind = \"xtp\", checksum = false }";
    assert_eq!(said(unchecked, "", 20, false), expected("", 40));
    assert_eq!(said(unchecked, "", 40, false), None);
}

#[test]
fn a_flow_says_where_its_messages_are_larger_than_asked_for() {
    let of = |transport: &str, keys: &str, message: u64| {
        let rest = format!(
            "[flow.sized]\nfrom = \"a\"\nto = \"b\"\ntransport = \"{transport}\"\n{keys}\n\
             source = {{ kind = \"load\", message = \"{message} B\", interval = \"1 ms\" }}\n"
        );
        parse("a = {}\nb = {}", &rest).points.first().scenario.flows.last().unwrap().clone()
    };
    let added = |transport, keys, message, keeps| {
        let mut flow = of(transport, keys, message);
        flow.meta.keeps_payload = keeps;
        let said = |on_sockets: bool| {
            let said = flow.larger(on_sockets)?;
            assert!(said.starts_with("flow `sized`: ") && said.contains(" bytes larger, "), "{said}");
            assert_eq!(said.contains("on real sockets"), on_sockets);
            Some(said.split("messages are ").nth(1)?.split(' ').next()?.parse::<u64>().unwrap())
        };
        [said(false), said(true)]
    };
    // A header that is no part of a message has 16 bytes.
    assert_eq!(added("tcp", "", 40, false), [None, None]);
    assert_eq!(added("tcp", "", 16, false), [None, None]);
    assert_eq!(added("tcp", "", 15, false), [Some(16), Some(16)]);
    assert_eq!(added("tcp", "", 1000, true), [None, Some(16)]);
    assert_eq!(added("tcp", "", 16_383, true), [None, Some(16)]);
    assert_eq!(added("tcp", "", 16_384, true), [None, Some(40)]);
    assert_eq!(added("tcp", "reflect = true", 1000, true), [None, Some(16)]);
    assert_eq!(added("sctp", "reflect = true", 20, true), [None, Some(16)]);
    assert_eq!(added("tcp", "framing = \"none\"", 15, false), [None, Some(16)]);
    assert_eq!(added("tcp", "framing = \"none\"", 40, false), [None, None]);
    assert_eq!(added("udp", "", 16, false), [None, None]);
    assert_eq!(added("rtp", "", 15, false), [Some(16), Some(16)]);
    assert_eq!(added("udp", "reflect = true", 16, false), [None, None]);
    assert_eq!(added("udp", "reflect = true", 15, false), [Some(16), Some(16)]);
    assert_eq!(added("udp", "reflect = true", 1000, true), [None, Some(16)]);
    assert_eq!(added("udp", "", 160, true), [None, Some(16)]);
    assert_eq!(added("udp", "framing = \"header\"", 39, false), [None, None], "it was asked for");
}
