//! RTP end to end: the conformance suite, what a bad path may do to voice, allocation, and tshark's opinion.

mod allocation;
mod conformance;
mod encapsulation;
mod judge;
mod properties;

use trunkline_core::Seed;
use trunkline_testkit::pair::{FAR, NEAR};
use trunkline_transport::Endpoint;
use trunkline_transport::rtp::{PayloadFormat, RtpConfig, RtpEndpoint};

/// A configuration whose random numbers belong to this seed and side.
fn config(seed: u64, side: &str) -> RtpConfig {
    RtpConfig::new(PayloadFormat::PCMU, Seed::new(seed, 0).stream(side))
}

/// Two ends.
fn ends(seed: u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>) {
    let near = RtpEndpoint::new(NEAR, FAR, config(seed, "near")).expect("the configuration is possible");
    let far = RtpEndpoint::new(FAR, NEAR, config(seed, "far")).expect("the configuration is possible");
    (Box::new(near), Box::new(far))
}
