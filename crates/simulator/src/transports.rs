//! The two endpoints of a member, as the simulator has them.

use trunkline_adapters::tcp::{CongestionControl, TcpConfig, TcpEndpoint};
use trunkline_core::{Address, Bytes, FlowId, Seed};
use trunkline_experiment::{Flow, Scenario, TcpOptions, Transport};
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

/// Finds what [`endpoints`] would refuse.
pub(crate) fn check(scenario: &Scenario, flow: &Flow) -> Result<(), String> {
    endpoints(scenario, flow, 0, Key(0), Seed::new(0, 0)).map(|_| ())
}

/// Makes the near and the far endpoint of a member.
pub(crate) fn endpoints(
    scenario: &Scenario,
    flow: &Flow,
    member: u32,
    key: Key,
    seed: Seed,
) -> Result<(Made, Made), String> {
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
        Transport::Tcp(options) => {
            let config = tcp_config(scenario, flow, options)?;
            let members = flow.meta.first.0..flow.meta.first.0 + flow.meta.members;
            let stream = || Some(Deframer::new(key, members.clone()));
            // Initial sequence numbers and ports of the engine, per end.
            let bits = |side: &str| seed.stream(&format!("flow.{}/{member}/tcp/{side}", flow.meta.name)).bits();
            let connecting = TcpEndpoint::connect(near, far, &config, bits("near")).map_err(|e| e.to_string())?;
            let listening = TcpEndpoint::listen(far, &config, bits("far")).map_err(|e| e.to_string())?;
            Ok(((Box::new(connecting), stream()), (Box::new(listening), stream())))
        }
    }
}

/// IPv4 and TCP headers, without options.
const TCP_HEADERS: u64 = 40;

/// What the file says of TCP, as the engine wants it. Without a word on it, segments are as large as the path carries, as
/// path MTU discovery (RFC 1191) would find.
fn tcp_config(scenario: &Scenario, flow: &Flow, options: &TcpOptions) -> Result<TcpConfig, String> {
    let steps = flow.forward.iter().chain(&flow.backward);
    let mtu = steps.map(|step| scenario.links[step.link].directions[usize::from(step.from_port)].mtu).min();
    let mut config = TcpConfig { nodelay: options.nodelay, ..TcpConfig::default() };
    if let Some(window) = options.window {
        config.window = window.count() as usize;
    }
    // The sender must be able to fill the peer's window while it waits for acknowledgements.
    config.send_buffer = config.send_buffer.max(2 * config.window);
    if let Some(mss) = options.mss.or(mtu.map(|mtu| Bytes(mtu.count().saturating_sub(TCP_HEADERS).min(65_495)))) {
        config.mss = mss.count() as usize;
    }
    if let Some(name) = &options.congestion_control {
        config.congestion_control = name.parse::<CongestionControl>().map_err(|e| e.to_string())?;
    }
    Ok(config)
}
