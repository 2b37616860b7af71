use super::*;

fn problems(text: &str) -> Vec<String> {
    let problems = Config::parse("agent.toml", text, "host").unwrap_err();
    problems.iter().map(|problem| problem.headline()).collect()
}

#[test]
fn what_is_not_written_has_its_default() {
    let config = Config::parse("agent.toml", "", "host").unwrap();
    assert_eq!(config, Config::with_name("host"));
    assert_eq!(config.listen.port(), DEFAULT_PORT);
    assert_eq!(config.permission("anybody").to, Network::PRIVATE);
}

#[test]
fn everything_that_can_be_written_is_read() {
    let text = r#"
        name = "ottawa"
        listen = "192.0.2.1:5000"
        metrics = "127.0.0.1:9478"
        traces = "http://collector:4318/"
        [limits]
        rate = "100 Mbit/s"
        flows = 1000
        memory = "1 GiB"
        disk = "10 GiB"
        duration = "1 h"
        keep = "48 h"
        [controller.studio]
        rate = "20 Mbit/s"
        flows = 100
        to = ["10.0.0.0/8", "192.0.2.7"]
        [controller-default]
        rate = "0 bit/s"
        to = []
    "#;
    let config = Config::parse("agent.toml", text, "host").unwrap();
    assert_eq!(config.name, "ottawa");
    assert_eq!(config.listen, "192.0.2.1:5000".parse().unwrap());
    assert_eq!(config.metrics, Some("127.0.0.1:9478".parse().unwrap()));
    assert_eq!(config.traces.as_deref(), Some("http://collector:4318"));
    assert_eq!(
        config.limits,
        Limits {
            rate: Some(Rate::from_bits_per_second(100_000_000)),
            flows: 1000,
            memory: Some(Bytes(1 << 30)),
            disk: Bytes(10 << 30),
            duration: Duration::from_secs(3600),
            keep: Duration::from_secs(48 * 3600),
        }
    );
    let studio = config.permission("studio");
    assert_eq!(studio.rate, Some(Rate::from_bits_per_second(20_000_000)));
    assert_eq!(studio.flows, Some(100));
    assert_eq!(studio.to.iter().map(Network::to_string).collect::<Vec<_>>(), ["10.0.0.0/8", "192.0.2.7"]);
    let other = config.permission("another");
    assert_eq!((other.rate, other.flows, other.to.len()), (Some(Rate::ZERO), None, 0));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    assert_eq!(
        problems("name = "),
        ["agent.toml:1:8: not TOML: string values must be quoted, expected literal string"]
    );
    assert_eq!(problems("nmae = \"ottawa\""), ["agent.toml:1:1: unknown key `nmae`; did you mean `name`?"]);
    assert_eq!(
        problems("[limits]\nrate = \"100 mb\"\nflows = -1\nmemory = 7\n"),
        [
            "agent.toml:2:8: `rate`: `100 mb` has the unknown unit `mb`; expected a rate such as `10 Mbit/s` (units: \
             bit/s, kbit/s, Mbit/s, Gbit/s)",
            "agent.toml:3:9: `flows` must be a whole number from 0 to 4294967295, not the number -1",
            "agent.toml:4:10: `memory` must be a size such as \"10 GiB\", not the number 7",
        ]
    );
    assert_eq!(
        problems("[limits]\nmemory = \"1 MiB\""),
        ["agent.toml:2:10: `memory` must be at least 64 MiB, not `1 MiB`"]
    );
    assert_eq!(
        problems("[controller.studio]\nto = [\"10.0.0.1/8\", \"berlin\", 3]\nrtae = \"1 Mbit/s\""),
        [
            "agent.toml:2:7: `10.0.0.1/8` has bits behind its prefix; did you mean `10.0.0.0/8`?",
            "agent.toml:2:21: `berlin` is not an address; expected an address such as `192.0.2.7` or a range of them such as \
             `10.0.0.0/8`",
            "agent.toml:2:31: `to` must be a list of addresses and ranges such as [\"10.0.0.0/8\", \"192.0.2.7\"], not the \
             number 3",
            "agent.toml:3:1: unknown key `rtae` in [controller.studio]; did you mean `rate`?",
        ]
    );
    assert_eq!(
        problems(
            "controller = { studio = 3 }\nlisten = \"everywhere\"\ntraces = \"collector\"\nname = \"a/b\""
        ),
        [
            "agent.toml:1:25: `studio` must be a table such as [controller.studio], not the number 3",
            "agent.toml:2:10: `listen` must be an address with a port such as `0.0.0.0:4781` or `[::]:4781`, not `everywhere`",
            "agent.toml:3:10: `traces` must be the address of a collector such as `http://127.0.0.1:4318`, not `collector`",
            "agent.toml:4:8: `name`: invalid character `/` in a name: allowed are letters, digits, `-`, `_` and `.`",
        ]
    );
}

#[test]
fn networks_hold_their_addresses() {
    let holds =
        |network: &str, address: &str| network.parse::<Network>().unwrap().contains(address.parse().unwrap());
    assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.0"));
    assert!(holds("192.0.2.7", "192.0.2.7") && !holds("192.0.2.7", "192.0.2.6"));
    assert!(holds("0.0.0.0/0", "8.8.8.8") && !holds("0.0.0.0/0", "::1"));
    assert!(holds("2001:db8::/32", "2001:db8:1::1") && !holds("2001:db8::/32", "2001:db9::1"));
    assert!(holds("10.0.0.0/8", "::ffff:10.0.0.1"), "an IPv4 address within an IPv6 one");
    for wrong in ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129", "", "10.0.0/8"] {
        assert!(wrong.parse::<Network>().is_err(), "{wrong}");
    }
}

#[test]
fn the_packaged_configuration_is_read_as_it_is_and_with_every_key_in_it() {
    let text = include_str!("../../../../packaging/agent.toml");
    assert_eq!(Config::parse("agent.toml", text, "host").unwrap(), Config::with_name("host"));
    // Keys follow their mark at once, explanations follow a space.
    let written = |line: &str| {
        line.strip_prefix('#').filter(|rest| !rest.is_empty() && !rest.starts_with(' ')).map(str::to_owned)
    };
    let all: Vec<String> =
        text.lines().map(|line| written(line).unwrap_or_else(|| line.to_owned())).collect();
    let config = Config::parse("agent.toml", &all.join("\n"), "host").unwrap();
    let defaults = Limits { rate: config.limits.rate, memory: config.limits.memory, ..Limits::default() };
    assert_eq!(config.limits, defaults, "what is written there as a default is one");
    assert!(config.controllers.contains_key("studio") && config.others.rate.is_some());
}
