//! The conformance suite over streams, with every mechanism chosen in turn.

use trunkline_core::Duration;
use trunkline_testkit::conformance::{self, Make};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_testkit::two_process::assert_same_in_another_process;
use trunkline_transport::Endpoint;
use trunkline_transport::xtp::{Acknowledge, Encapsulation, Meaning, RateLimit, XtpConfig, XtpEndpoint};

fn xtp(config: &XtpConfig, seed: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let near = XtpEndpoint::connect(NEAR, FAR, config, seed).expect("the configuration is possible");
    let far = XtpEndpoint::listen(FAR, config, seed ^ 0xFA12).expect("the configuration is possible");
    (Box::new(near), Box::new(far))
}

fn patient() -> XtpConfig {
    XtpConfig { patience: Some(Duration::from_secs(3600)), ..XtpConfig::default() }
}

mod acknowledging_every_packet {
    use super::*;
    const MAKE: Make = |seed| xtp(&patient(), seed);
    trunkline_testkit::conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_the_same_packets() {
        assert_same_in_another_process(
            "conformance::acknowledging_every_packet::another_process_sends_the_same_packets",
            || format!("{:016x}", conformance::trace(MAKE, 7)),
        );
    }
}

mod acknowledging_now_and_then {
    use super::*;
    const MAKE: Make = |seed| {
        let config = XtpConfig {
            encapsulation: Encapsulation::Udp,
            acknowledge: Acknowledge::Every(7),
            fast_nak: false,
            sort: Some(3),
            ..patient()
        };
        xtp(&config, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

mod acknowledging_on_request {
    use super::*;
    const MAKE: Make = |seed| xtp(&XtpConfig { acknowledge: Acknowledge::OnRequest, ..patient() }, seed);
    trunkline_testkit::conformance_tests!(MAKE);
}

mod acknowledging_delivery {
    use super::*;
    const MAKE: Make = |seed| {
        let config = XtpConfig {
            acknowledge: Acknowledge::Every(2),
            meaning: Meaning::Delivered,
            send_rate: Some(RateLimit { rate: 1_000_000, burst: 2000 }),
            ..patient()
        };
        xtp(&config, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

mod window_smaller_than_a_packet {
    use super::*;
    const MAKE: Make = |seed| {
        xtp(&XtpConfig { receive_buffer: 1000, send_buffer: 700, max_packet: 1480, ..patient() }, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);
}

mod tiny_packets {
    use super::*;
    const MAKE: Make = |seed| xtp(&XtpConfig { max_packet: 128, receive_buffer: 20_000, ..patient() }, seed);
    trunkline_testkit::conformance_tests!(MAKE);
}
