//! The conformance suite.

use trunkline_testkit::conformance::{self, Make};
use trunkline_testkit::two_process::assert_same_in_another_process;
use trunkline_transport::dccp::{Ccid, DccpConfig, Encapsulation};

use super::{ends, patient};

mod ccid_2 {
    use super::*;
    const MAKE: Make = |seed| ends(&patient(), seed);
    trunkline_testkit::conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_the_same_packets() {
        let path = "conformance::ccid_2::another_process_sends_the_same_packets";
        assert_same_in_another_process(path, || format!("{:016x}", conformance::trace(MAKE, 7)));
    }
}

mod ccid_3_within_udp {
    use super::*;
    const MAKE: Make = |seed| {
        let config = DccpConfig { ccid: Ccid::Tfrc, encapsulation: Encapsulation::Udp, ..patient() };
        ends(&config, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_the_same_packets() {
        let path = "conformance::ccid_3_within_udp::another_process_sends_the_same_packets";
        assert_same_in_another_process(path, || format!("{:016x}", conformance::trace(MAKE, 7)));
    }
}

mod ccid_4_with_every_option {
    use super::*;
    const MAKE: Make = |seed| {
        let config = DccpConfig {
            ccid: Ccid::TfrcSmallPackets,
            data_checksum: true,
            short_sequence_numbers: true,
            ecn: false,
            ..patient()
        };
        ends(&config, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}
