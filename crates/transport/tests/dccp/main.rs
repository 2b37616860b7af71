//! DCCP end to end: the conformance suite with every congestion control, and what RFC 4340 and its companions promise.

mod allocation;
mod conformance;
mod congestion;
mod judge;
mod properties;

use trunkline_core::Duration;
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::Endpoint;
use trunkline_transport::dccp::{DccpConfig, DccpEndpoint};

/// Two ends with the same configuration.
fn ends(config: &DccpConfig, seed: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let near = DccpEndpoint::connect(NEAR, FAR, config, seed).expect("the configuration is possible");
    let far = DccpEndpoint::listen(FAR, config, seed ^ 0xFA12).expect("the configuration is possible");
    (Box::new(near), Box::new(far))
}

/// What the suite asks for: large messages, and the patience of an hour.
fn patient() -> DccpConfig {
    DccpConfig { timeout: Some(Duration::from_secs(3600)), max_packet: 65_535, ..DccpConfig::default() }
}
