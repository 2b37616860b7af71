//! The conformance suite over UDP.

use trunkline_testkit::conformance::{self, Make};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_testkit::two_process::assert_same_in_another_process;
use trunkline_transport::{Endpoint, UdpConfig, UdpEndpoint};

fn udp(_: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let end = |local, peer| Box::new(UdpEndpoint::new(local, peer, UdpConfig::default()));
    (end(NEAR, FAR), end(FAR, NEAR))
}

const MAKE: Make = udp;

trunkline_testkit::conformance_tests!(MAKE);

#[test]
fn another_process_sends_the_same_packets() {
    assert_same_in_another_process("another_process_sends_the_same_packets", || {
        format!("{:016x}", conformance::trace(MAKE, 7))
    });
}
