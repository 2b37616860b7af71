//! A transport is one entry of the registry, which also gives it its place in the advice.

use trunkline_advisor::Transport;
use trunkline_experiment::TRANSPORTS;
use trunkline_testkit::pigeon::PIGEON;

#[test]
fn every_transport_that_has_a_place_in_the_advice_is_measured() {
    let names: Vec<&str> = Transport::all().into_iter().map(Transport::name).collect();
    assert_eq!(names, ["udp", "udp-lite", "dccp", "tcp", "sctp", "xtp", "quic", "urp", "mptcp"]);
    let left_out = TRANSPORTS.iter().filter(|kind| Transport::of(kind).is_none());
    assert_eq!(left_out.map(|kind| kind.name).collect::<Vec<_>>(), ["rtp"]);
    for name in names {
        assert_eq!(name.parse::<Transport>().unwrap().to_string(), name);
    }
    let error = "pigeon".parse::<Transport>().unwrap_err().to_string();
    assert!(
        error.starts_with("cannot measure transport `pigeon`; expected one of `udp`, `udp-lite`"),
        "{error}"
    );
}

#[test]
fn a_registered_transport_is_measured() {
    let pigeon = Transport::of(&PIGEON).unwrap();
    assert_eq!((pigeon.name(), pigeon.headers(), pigeon.is_reliable()), ("pigeon", 28, false));
    assert!(pigeon.is_kin_of(Transport::UDP) && !pigeon.is_kin_of(Transport::TCP));
    assert!(pigeon > Transport::UDP, "UDP asks less of the hosts");
}
