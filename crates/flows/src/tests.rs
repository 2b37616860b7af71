use trunkline_core::{Seed, Time};
use trunkline_experiment::{Experiment, Scenario, TRANSPORTS};

use super::*;

/// A scenario with one flow over this transport.
fn scenario(transport: &str) -> std::sync::Arc<Scenario> {
    let text = format!(
        "name = \"test\"\nduration = \"1 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.wire]\n\
         between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ncount = 3\n\
         transport = {transport}\nsource = {{ kind = \"voice\", samples = 80 }}\n"
    );
    let experiment =
        Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    experiment.points.first().scenario.clone()
}

fn spec(transport: &str) -> FlowSpec {
    FlowSpec::of(&scenario(transport), 0)
}

#[test]
fn every_transport_has_endpoints_that_are_of_it() {
    for kind in TRANSPORTS {
        let pair = spec(&format!("\"{}\"", kind.name)).pair(2, Seed::new(1, 0));
        if kind.name == "mptcp" {
            let refused = pair.err().unwrap();
            assert!(
                refused.starts_with("`mptcp` is the kernel's, which the simulator does not have"),
                "{refused}"
            );
            continue;
        }
        let pair = pair.unwrap();
        for made in [&pair.near, &pair.far] {
            assert_eq!(made.endpoint.features().name, kind.name);
        }
        assert_ne!(pair.near.address.host, pair.far.address.host, "{}", kind.name);
    }
}

#[test]
fn a_tcp_is_of_the_profile_that_the_file_names() {
    let syn = |transport: &str| {
        let mut near = spec(transport).pair(0, Seed::new(1, 0)).unwrap().near.endpoint;
        let mut packet = Vec::new();
        near.poll_transmit(Time::ZERO, &mut packet).unwrap();
        packet.len()
    };
    let (linux, solaris) = (syn("\"tcp\""), syn("{ kind = \"tcp\", profile = \"solaris-2.5\" }"));
    // The largest segment and nothing else; Linux also offers selective acknowledgements, time stamps and scaling.
    assert!(solaris == 24 && linux > 36, "{solaris} {linux}");
}

#[test]
fn every_service_of_xtp_has_endpoints_that_are_of_it() {
    for service in ["stream", "datagram", "acknowledged-datagram", "transaction"] {
        let reflect = if service == "transaction" { "\nreflect = true" } else { "" };
        let transport = format!("{{ kind = \"xtp\", service = \"{service}\" }}{reflect}");
        let scenario = scenario(&transport);
        let options = &scenario.flows[0].transport;
        let pair = FlowSpec::of(&scenario, 0).pair(0, Seed::new(1, 0)).unwrap();
        for made in [&pair.near, &pair.far] {
            assert_eq!(made.endpoint.features(), options.features(), "{service}");
        }
        assert!(FlowSpec::of(&scenario, 0).group(0, Seed::new(1, 0)).is_err());
    }
    for service in ["multicast", "reliable-multicast"] {
        for reflect in [false, true] {
            let transport = format!("{{ kind = \"xtp\", service = \"{service}\" }}\nreflect = {reflect}");
            let scenario = scenario(&transport);
            let options = &scenario.flows[0].transport;
            let group = FlowSpec::of(&scenario, 0).group(0, Seed::new(1, 0)).unwrap();
            for made in group.far.iter().chain([&group.near]) {
                assert_eq!(made.endpoint.features(), options.features(), "{service}");
                assert_ne!(made.address, group.address);
            }
            assert!(FlowSpec::of(&scenario, 0).pair(0, Seed::new(1, 0)).is_err());
        }
    }
}

#[test]
fn a_flow_spec_can_be_sent() {
    for kind in TRANSPORTS {
        let spec = spec(&format!("\"{}\"", kind.name));
        let sent = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<FlowSpec>(&sent).unwrap(), spec);
    }
}

#[test]
fn endpoints_draw_from_the_seed_and_their_place_alone() {
    let first_packet = |member, seed| {
        let mut near = spec("\"dccp\"").pair(member, Seed::new(seed, 0)).unwrap().near.endpoint;
        let mut packet = Vec::new();
        near.poll_transmit(Time::ZERO, &mut packet).unwrap();
        packet
    };
    assert_eq!(first_packet(1, 7), first_packet(1, 7));
    assert_ne!(first_packet(1, 7), first_packet(1, 8));
    assert_ne!(first_packet(1, 7), first_packet(2, 7));
}

#[test]
fn packets_are_carried_as_the_file_says() {
    let network = [core::net::IpAddr::from([127, 0, 0, 1]); 2];
    let carrier = |transport: &str| spec(transport).over_sockets(network).unwrap().carrier();
    for (transport, protocol) in [("dccp", 33), ("xtp", 36), ("sctp", 132)] {
        let over_ip = carrier(&format!("\"{transport}\""));
        assert_eq!(over_ip, Carrier::Ip { protocol, has_ports: transport != "xtp" });
        let over_udp = carrier(&format!("{{ kind = \"{transport}\", encapsulation = \"udp\" }}"));
        assert_eq!(over_udp, Carrier::Udp);
    }
    let lite = "{ kind = \"udp-lite\", checksum-coverage = \"48 B\" }";
    assert_eq!(carrier(lite), Carrier::UdpLite { coverage: Some(48) });
    // The kernel has its own.
    for transport in ["\"udp\"", "\"tcp\"", "\"mptcp\""] {
        assert!(spec(transport).over_sockets(network).is_err());
    }
}

#[test]
fn on_a_real_network_checksums_cover_real_addresses() {
    let first_packet = |network: [&str; 2]| {
        let network = network.map(|address| address.parse().unwrap());
        let mut near = spec("\"dccp\"").over_sockets(network).unwrap().pair(0, Seed::new(1, 0)).unwrap().near;
        let mut packet = Vec::new();
        near.endpoint.poll_transmit(Time::ZERO, &mut packet).unwrap();
        packet
    };
    let [one, other] = [["127.0.0.1", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"]].map(first_packet);
    assert_ne!(one[6..8], other[6..8]);
    assert_eq!([&one[..6], &one[8..]], [&other[..6], &other[8..]]);
    first_packet(["::1", "::1"]);
}
