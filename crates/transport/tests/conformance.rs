//! The conformance suite over UDP and UDP-Lite.

use trunkline_testkit::conformance::{self, Make};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_testkit::two_process::assert_same_in_another_process;
use trunkline_transport::udp::Variant;
use trunkline_transport::{Endpoint, UdpConfig, UdpEndpoint};

fn udp(_: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let end = |local, peer| Box::new(UdpEndpoint::new(local, peer, UdpConfig::default()));
    (end(NEAR, FAR), end(FAR, NEAR))
}

const MAKE: Make = udp;

trunkline_testkit::conformance_tests!(MAKE);

mod lite {
    use super::*;

    trunkline_testkit::conformance_tests!(|_| {
        let config = UdpConfig { variant: Variant::Lite { coverage: None }, ..UdpConfig::default() };
        let end = |local, peer| Box::new(UdpEndpoint::new(local, peer, config));
        (end(NEAR, FAR), end(FAR, NEAR))
    });
}

#[test]
fn another_process_sends_the_same_packets() {
    assert_same_in_another_process("another_process_sends_the_same_packets", || {
        format!("{:016x}", conformance::trace(MAKE, 7))
    });
}
