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
    experiment.points[0].scenario.clone()
}

fn blueprint(transport: &str) -> Blueprint {
    Blueprint::of(&scenario(transport), 0)
}

#[test]
fn every_transport_has_endpoints_that_are_of_it() {
    for features in TRANSPORTS {
        let pair = blueprint(&format!("\"{}\"", features.name)).pair(2, Seed::new(1, 0)).unwrap();
        for made in [&pair.near, &pair.far] {
            assert_eq!(made.endpoint.features().name, features.name);
        }
        assert_ne!(pair.near.address.host, pair.far.address.host, "{}", features.name);
    }
}

#[test]
fn a_blueprint_can_be_sent() {
    for features in TRANSPORTS {
        let blueprint = blueprint(&format!("\"{}\"", features.name));
        let sent = serde_json::to_string(&blueprint).unwrap();
        assert_eq!(serde_json::from_str::<Blueprint>(&sent).unwrap(), blueprint);
    }
}

#[test]
fn endpoints_draw_from_the_seed_and_their_place_alone() {
    let first_packet = |member, seed| {
        let mut near = blueprint("\"dccp\"").pair(member, Seed::new(seed, 0)).unwrap().near.endpoint;
        let mut packet = Vec::new();
        near.poll_transmit(Time::ZERO, &mut packet).unwrap();
        packet
    };
    assert_eq!(first_packet(1, 7), first_packet(1, 7));
    assert_ne!(first_packet(1, 7), first_packet(1, 8));
    assert_ne!(first_packet(1, 7), first_packet(2, 7));
}

#[test]
fn what_goes_directly_over_ip_is_not_for_udp_sockets() {
    for transport in ["dccp", "xtp", "sctp"] {
        let refused = blueprint(&format!("\"{transport}\"")).over_udp().unwrap_err();
        assert!(
            refused.starts_with(&format!("`{transport}` directly over IP is for `sim` only")),
            "{refused}"
        );
        let kind = format!("{{ kind = \"{transport}\", encapsulation = \"udp\" }}");
        assert!(blueprint(&kind).over_udp().is_ok());
    }
    // The kernel has its own.
    for transport in ["\"udp\"", "\"tcp\""] {
        assert!(blueprint(transport).over_udp().is_err());
    }
}
