//! The conformance suite.

use trunkline_testkit::conformance::{self, Make};
use trunkline_testkit::two_process::assert_same_in_another_process;

use super::ends;

const MAKE: Make = ends;
trunkline_testkit::conformance_tests!(MAKE);

#[test]
fn another_process_sends_the_same_packets() {
    let path = "conformance::another_process_sends_the_same_packets";
    assert_same_in_another_process(path, || format!("{:016x}", conformance::trace(MAKE, 7)));
}
