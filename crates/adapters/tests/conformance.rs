//! The conformance suite over TCP, with and without Nagle, and with every congestion control.

use trunkline_adapters::{CongestionControl, TcpConfig, TcpEndpoint};
use trunkline_core::Duration;
use trunkline_testkit::conformance::{self, Make};
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_testkit::two_process::assert_same_in_another_process;
use trunkline_transport::Endpoint;

fn tcp(config: &TcpConfig, seed: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let near = TcpEndpoint::connect(NEAR, FAR, config, seed).expect("the configuration is possible");
    let far = TcpEndpoint::listen(FAR, config, seed ^ 0xFA12).expect("the configuration is possible");
    (Box::new(near), Box::new(far))
}

fn patient() -> TcpConfig {
    TcpConfig { timeout: Some(Duration::from_secs(3600)), ..TcpConfig::default() }
}

mod cubic {
    use super::*;
    const MAKE: Make = |seed| tcp(&patient(), seed);
    trunkline_testkit::conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_the_same_packets() {
        assert_same_in_another_process("cubic::another_process_sends_the_same_packets", || {
            format!("{:016x}", conformance::trace(MAKE, 7))
        });
    }
}

mod reno_with_small_segments_at_once {
    use super::*;
    const MAKE: Make = |seed| {
        let congestion_control = CongestionControl::Reno;
        tcp(&TcpConfig { window: 8 << 10, mss: 536, nodelay: true, congestion_control, ..patient() }, seed)
    };
    trunkline_testkit::conformance_tests!(MAKE);

    #[test]
    fn another_process_sends_the_same_packets() {
        let path = "reno_with_small_segments_at_once::another_process_sends_the_same_packets";
        assert_same_in_another_process(path, || format!("{:016x}", conformance::trace(MAKE, 7)));
    }
}

mod window_smaller_than_a_segment {
    use super::*;
    const MAKE: Make = |seed| {
        let congestion_control = CongestionControl::None;
        tcp(
            &TcpConfig { window: 1000, send_buffer: 700, nodelay: true, congestion_control, ..patient() },
            seed,
        )
    };
    trunkline_testkit::conformance_tests!(MAKE);
}
