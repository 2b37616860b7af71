//! The two endpoints of a member, as the simulator has them.

use trunkline_core::{Address, FlowId, Seed};
use trunkline_experiment::{Flow, Transport};
use trunkline_transport::Endpoint;
use trunkline_transport::framing::{Deframer, Key};
use trunkline_transport::udp::{UdpConfig, UdpEndpoint};

use crate::member::Side;

/// An endpoint, with the reader of its byte stream if it is one.
pub(crate) type Made = (Box<dyn Endpoint>, Option<Deframer>);

/// First of the ports that conversations use on both hosts: the dynamic range of RFC 6335.
const FIRST_PORT: u32 = 49_152;

/// The address of one end of a member's conversation. Ports repeat after 16,384 members, which harms nobody: packets
/// find their way by flow.
pub(crate) fn address(flow: &Flow, id: FlowId, side: Side) -> Address {
    let host = match side {
        Side::Near => flow.from,
        Side::Far => flow.to,
    };
    let port = FIRST_PORT + id.0 % (65_536 - FIRST_PORT);
    Address { host: host as u16, port: port as u16 }
}

/// Makes the near and the far endpoint of a member.
pub(crate) fn endpoints(flow: &Flow, member: u32, key: Key, seed: Seed) -> Result<(Made, Made), String> {
    let id = flow.member(member);
    let (near, far) = (address(flow, id, Side::Near), address(flow, id, Side::Far));
    match &flow.transport {
        Transport::Udp(options) => {
            let mut config = UdpConfig::default();
            if let Some(buffer) = options.buffer {
                config.send_buffer = buffer.count() as usize;
                config.receive_buffer = buffer.count() as usize;
            }
            let endpoint = |local, peer| -> Made { (Box::new(UdpEndpoint::new(local, peer, config)), None) };
            Ok((endpoint(near, far), endpoint(far, near)))
        }
        Transport::Tcp(options) => tcp::endpoints(flow, member, options, (near, far), key, seed),
    }
}
