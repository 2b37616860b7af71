use trunkline_experiment::Experiment;

use super::*;

fn plan(text: &str) -> Result<Plan, PlanError> {
    let text = format!("name = \"a wire\"\nduration = \"1 s\"\n{text}");
    let experiment = Experiment::parse(&text, "wire.toml", &()).unwrap_or_else(|e| panic!("{e}"));
    Plan::new(&experiment.points.first().scenario)
}

/// Three hosts in a row, and a flow from end to end.
const CHAIN: &str = r#"
[hosts]
a = {}
b = {}
c = {}
[link.near]
between = ["a", "b"]
rate = "5 Mbit/s"
[link.far]
between = ["b", "c"]
rate = "5 Mbit/s"
mtu = "576 B"
[flow.voice]
from = "a"
to = "c"
transport = "udp"
source = { kind = "voice" }
"#;

/// Two ways from `a` to `d`, of which the flow takes the longer.
const DETOUR: &str = r#"
[hosts]
a = {}
b = {}
c = {}
d = {}
[link.ab]
between = ["a", "b"]
rate = "5 Mbit/s"
[link.bc]
between = ["b", "c"]
rate = "5 Mbit/s"
[link.ac]
between = ["a", "c"]
rate = "5 Mbit/s"
[link.cd]
between = ["c", "d"]
rate = "5 Mbit/s"
[flow.voice]
from = "a"
to = "d"
transport = "udp"
source = { kind = "voice" }
path = ["ab", "bc", "cd"]
"#;

#[test]
fn every_link_has_addresses_of_its_own() {
    let plan = plan(CHAIN).unwrap();
    let of = |at| (plan.station(at).ipv4.to_string(), plan.station(at).ipv6.map(|ipv6| ipv6.to_string()));
    assert_eq!(of((0, 0)), ("198.18.0.1".into(), Some("2001:2::1".into())));
    assert_eq!(of((0, 1)), ("198.18.0.2".into(), Some("2001:2::2".into())));
    // Packets of 576 bytes are too small for IPv6.
    assert_eq!(of((1, 1)), ("198.18.1.2".into(), None));
    assert_eq!(plan.station((1, 1)).mtu, 576);
    assert_eq!(plan.station((1, 0)).interface, "far");
    assert_eq!(plan.hosts[1].attachments, [(0, 1), (1, 0)]);
}

#[test]
fn hosts_route_to_links_that_they_do_not_stand_on() {
    let plan = plan(CHAIN).unwrap();
    assert_eq!(plan.hosts[0].routes, [Route { to: Target::Link(1), out: (0, 0), next: 1 }]);
    assert_eq!(plan.hosts[1].routes, []);
    assert_eq!(plan.hosts[2].routes, [Route { to: Target::Link(0), out: (1, 1), next: 0 }]);
}

#[test]
fn a_flow_takes_the_path_of_the_file_and_everything_else_the_shortest() {
    let plan = plan(DETOUR).unwrap();
    let detour = Route { to: Target::Station(3, 1), out: (0, 0), next: 1 };
    let direct = Route { to: Target::Link(3), out: (2, 0), next: 1 };
    assert!(plan.hosts[0].routes.contains(&detour));
    assert!(plan.hosts[0].routes.contains(&direct));
    // Back to the address on `ab` by the way the flow came, which is the first of the shortest anyway.
    let back = Route { to: Target::Link(0), out: (1, 1), next: 0 };
    assert!(plan.hosts[2].routes.contains(&back));
}

#[test]
fn the_way_out_leads_to_one_host() {
    let plan = plan(CHAIN).unwrap().with_way_out(2);
    assert!(plan.hosts[0].routes.contains(&Route { to: Target::Elsewhere, out: (0, 0), next: 1 }));
    assert!(plan.hosts[1].routes.contains(&Route { to: Target::Elsewhere, out: (1, 0), next: 1 }));
    assert!(plan.hosts[2].routes.iter().all(|route| route.to != Target::Elsewhere));
}

#[test]
fn two_ways_to_one_address_are_refused() {
    let other = "[flow.other]\nfrom = \"a\"\nto = \"d\"\ntransport = \"udp\"\nsource = { kind = \"voice\" }\n\
                 path = [\"ac\", \"cd\"]\n";
    let error = plan(&format!("{DETOUR}{other}")).unwrap_err();
    let expected =
        PlanError::Crossing { flow: "other".into(), at: "a".into(), to: "d".into(), towards: "c".into() };
    assert_eq!(error, expected);
}

#[test]
fn names_are_seen_from_each_host() {
    let plan = plan(CHAIN).unwrap();
    let near = plan.names(0);
    assert!(near.contains("198.18.0.2 b\n2001:2::2 b\n"), "{near}");
    assert!(near.contains("198.18.1.2 c\n"), "{near}");
    assert!(near.contains("198.18.1.1 far.b\n"), "{near}");
    assert!(plan.names(2).contains("198.18.1.1 b\n"));
}

#[test]
fn subnets_are_those_of_a_link_or_of_a_station() {
    let plan = plan(CHAIN).unwrap();
    let of = |to| -> Vec<String> {
        plan.subnets(to).iter().map(|subnet| format!("{}/{}", subnet.first, subnet.prefix)).collect()
    };
    assert_eq!(of(Target::Link(0)), ["198.18.0.0/24", "2001:2::/64"]);
    assert_eq!(of(Target::Station(0, 1)), ["198.18.0.2/32", "2001:2::2/128"]);
    assert_eq!(of(Target::Link(1)), ["198.18.1.0/24"]);
}

#[test]
fn names_that_no_interface_can_have_are_replaced() {
    assert_eq!(interface_name("trunk", 3), "trunk");
    for name in ["lo", "exactly-sixteen-", "tl-7"] {
        assert_eq!(interface_name(name, 3), "tl-3");
    }
}

#[test]
fn what_has_no_addresses_is_refused() {
    let hosts: Vec<String> = (0..254).map(|n| format!("h{n}")).collect();
    let listed: String = hosts.iter().map(|host| format!("{host} = {{}}\n")).collect();
    let text = format!(
        "[hosts]\n{listed}[link.lan]\nmedium = \"ethernet\"\nbetween = {hosts:?}\n\
                        [flow.f]\nfrom = \"h0\"\nto = \"h1\"\ntransport = \"udp\"\nsource = {{ kind = \"voice\" }}\n"
    );
    assert_eq!(plan(&text), Err(PlanError::Stations { link: "lan".into(), stations: 254 }));
}
