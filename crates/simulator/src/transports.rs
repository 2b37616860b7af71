//! The two endpoints of a conversation, as the simulator has them.

use trunkline_adapters::tcp::{CongestionControl, TcpConfig, TcpEndpoint};
use trunkline_core::{Address, Bytes, FlowId, Seed};
use trunkline_experiment::{DccpOptions, Flow, Scenario, TcpOptions, Transport, XtpOptions};
use trunkline_transport::dccp::{DccpConfig, DccpConfigError, DccpEndpoint};
use trunkline_transport::framing::Key;
use trunkline_transport::udp::{UdpConfig, UdpEndpoint};
use trunkline_transport::urp::{UrpConfig, UrpConfigError, UrpEndpoint};
use trunkline_transport::xtp::{self, RateLimit, XtpConfig, XtpConfigError, XtpEndpoint};

use crate::conversation::{Conversation, End, Side};
use crate::stream::Stream;

/// First of the ports that conversations use on both hosts: the dynamic range of RFC 6335.
const FIRST_PORT: u32 = 49_152;
/// IPv4 and TCP headers, without options.
const TCP_HEADERS: u64 = 40;

/// Finds what [`conversations`] would refuse.
pub(crate) fn check(scenario: &Scenario, flow: usize) -> Result<(), String> {
    conversations(scenario, flow, 1, Key(0), Seed::new(0, 0)).map(|_| ())
}

/// Makes the conversations of a flow with so many members: one for each, or one for all.
pub(crate) fn conversations(
    scenario: &Scenario,
    flow_index: usize,
    members: u32,
    key: Key,
    seed: Seed,
) -> Result<Vec<Conversation>, String> {
    let flow = &scenario.flows[flow_index];
    let pair = |near, far, member| Conversation::new(near, far, flow_index as u32, member);
    match &flow.transport {
        Transport::Udp(options) => {
            let mut config = UdpConfig { ecn: options.ecn, ..UdpConfig::default() };
            if let Some(buffer) = options.buffer {
                config.send_buffer = buffer.count() as usize;
                config.receive_buffer = buffer.count() as usize;
            }
            let (near, far) = addresses(flow, flow.meta.first);
            let end = |local, peer| End::new(local, Box::new(UdpEndpoint::new(local, peer, config)), None);
            Ok(vec![pair(end(near, far), end(far, near), None)])
        }
        Transport::Tcp(options) => {
            let config = tcp_config(scenario, flow, options)?;
            let ids = flow.meta.first.0..flow.meta.first.0 + flow.meta.members;
            let stream = || Some(Stream::new(flow.framing, key, ids.clone()));
            let connection = |member| {
                let (near, far) = addresses(flow, flow.member(member));
                // What the engine draws, its initial sequence numbers, belongs to this end of this member.
                let place = format!("flow.{}/{member}/tcp", flow.meta.name);
                let bits = |side: &str| seed.stream(&format!("{place}/{side}")).bits();
                let connecting = TcpEndpoint::connect(near, far, &config, bits("near"))?;
                let listening = TcpEndpoint::listen(far, &config, bits("far"))?;
                let near = End::new(near, Box::new(connecting), stream());
                let far = End::new(far, Box::new(listening), stream());
                Ok(pair(near, far, Some(flow.member(member))))
            };
            let made: Result<Vec<_>, trunkline_adapters::tcp::TcpConfigError> =
                (0..members).map(connection).collect();
            made.map_err(|error| error.to_string())
        }
        Transport::Urp(options) => {
            let config = UrpConfig {
                block: options.block.count() as usize,
                window: options.window,
                packet: options.packet.count() as usize,
                low_water: options.low_water,
                // What is under way, and as much to follow it: more would only add delay before the network.
                send_buffer: 2 * options.block.count() as usize * usize::from(options.window),
                timeout: options.timeout,
                ..UrpConfig::default()
            };
            let ids = flow.meta.first.0..flow.meta.first.0 + flow.meta.members;
            let stream = || Some(Stream::new(flow.framing, key, ids.clone()));
            let circuit = |member| {
                let (near, far) = addresses(flow, flow.member(member));
                let connecting = UrpEndpoint::connect(near, far, config)?;
                let listening = UrpEndpoint::listen(far, near, config)?;
                let near = End::new(near, Box::new(connecting), stream());
                let far = End::new(far, Box::new(listening), stream());
                Ok(pair(near, far, Some(flow.member(member))))
            };
            let made: Result<Vec<_>, UrpConfigError> = (0..members).map(circuit).collect();
            made.map_err(|error| error.to_string())
        }
        Transport::Dccp(options) => {
            let config = dccp_config(scenario, flow, options);
            let connection = |member| {
                let (near, far) = addresses(flow, flow.member(member));
                let place = format!("flow.{}/{member}/dccp", flow.meta.name);
                let bits = |side: &str| seed.stream(&format!("{place}/{side}")).bits();
                let connecting = DccpEndpoint::connect(near, far, &config, bits("near"))?;
                let listening = DccpEndpoint::listen(far, &config, bits("far"))?;
                let near = End::new(near, Box::new(connecting), None);
                let far = End::new(far, Box::new(listening), None);
                Ok(pair(near, far, Some(flow.member(member))))
            };
            let made: Result<Vec<_>, DccpConfigError> = (0..members).map(connection).collect();
            made.map_err(|error| error.to_string())
        }
        Transport::Xtp(options) => {
            let config = xtp_config(scenario, flow, options);
            let ids = flow.meta.first.0..flow.meta.first.0 + flow.meta.members;
            let stream = || Some(Stream::new(flow.framing, key, ids.clone()));
            let connection = |member| {
                let (near, far) = addresses(flow, flow.member(member));
                let place = format!("flow.{}/{member}/xtp", flow.meta.name);
                let bits = |side: &str| seed.stream(&format!("{place}/{side}")).bits();
                let connecting = XtpEndpoint::connect(near, far, &config, bits("near"))?;
                let listening = XtpEndpoint::listen(far, &config, bits("far"))?;
                let near = End::new(near, Box::new(connecting), stream());
                let far = End::new(far, Box::new(listening), stream());
                Ok(pair(near, far, Some(flow.member(member))))
            };
            let made: Result<Vec<_>, XtpConfigError> = (0..members).map(connection).collect();
            made.map_err(|error| error.to_string())
        }
    }
}

/// The addresses of both ends. Ports repeat after 16,384 members, which harms nobody: packets find their way by flow.
fn addresses(flow: &Flow, id: FlowId) -> (Address, Address) {
    let port = (FIRST_PORT + id.0 % (65_536 - FIRST_PORT)) as u16;
    let at = |side| {
        let host = match side {
            Side::Near => flow.from,
            Side::Far => flow.to,
        };
        Address { host: host as u16, port }
    };
    (at(Side::Near), at(Side::Far))
}

/// What the file says of TCP, as the engine wants it. Without a word on it, segments are as large as the path carries, as
/// path MTU discovery (RFC 1191) would find.
fn tcp_config(scenario: &Scenario, flow: &Flow, options: &TcpOptions) -> Result<TcpConfig, String> {
    let mtu = path_mtu(scenario, flow);
    let mut config = TcpConfig { nodelay: options.nodelay, ..TcpConfig::default() };
    if let Some(window) = options.window {
        config.window = window.count() as usize;
    }
    // A sender that can just fill its peer's window, as one whose SO_SNDBUF is set to it: a larger buffer would add no
    // throughput, only delay before the network.
    config.send_buffer = config.window;
    if let Some(mss) =
        options.mss.or(mtu.map(|mtu| Bytes(mtu.count().saturating_sub(TCP_HEADERS).min(65_495))))
    {
        config.mss = mss.count() as usize;
    }
    if let Some(name) = &options.congestion_control {
        config.congestion_control = name.parse::<CongestionControl>().map_err(|error| error.to_string())?;
    }
    Ok(config)
}

/// What the file says of DCCP, as the endpoints want it: packets as large as the path carries.
fn dccp_config(scenario: &Scenario, flow: &Flow, options: &DccpOptions) -> DccpConfig {
    // A coverage of n stands for 4 (n - 1) bytes.
    let coverage = options.checksum_coverage.map_or(0, |bytes| 1 + bytes.count().div_ceil(4).min(14) as u8);
    let largest = path_mtu(scenario, flow).map_or(1500, |mtu| mtu.count().clamp(576, 65_535) as usize);
    DccpConfig {
        ccid: options.ccid,
        send_queue: options.send_queue,
        when_full: options.when_full,
        lifetime: options.lifetime,
        max_packet: largest,
        encapsulation: options.encapsulation,
        checksum_coverage: coverage,
        min_checksum_coverage: coverage,
        data_checksum: options.data_checksum,
        short_sequence_numbers: options.short_sequence_numbers,
        ecn: options.ecn,
        ..DccpConfig::default()
    }
}

/// What the file says of XTP, as the endpoints want it: packets as large as the path carries, if nothing is said of them.
fn xtp_config(scenario: &Scenario, flow: &Flow, options: &XtpOptions) -> XtpConfig {
    let defaults = XtpConfig::default();
    let by_mtu = path_mtu(scenario, flow).map_or(defaults.max_packet, |mtu| {
        (mtu.count() as usize).saturating_sub(options.carriage.headers()).clamp(128, 65_507)
    });
    let by_file = options.max_data.map(|data| data.count() as usize + xtp::wire::HEADER_LENGTH);
    let max_packet = by_file.unwrap_or(by_mtu);
    let bytes = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let send_rate = options.rate.map(|rate| RateLimit {
        rate: bytes(rate.bits_per_second() / 8).max(1),
        burst: options
            .burst
            .map_or((10 * (max_packet - xtp::wire::HEADER_LENGTH)) as u32, |burst| bytes(burst.count())),
    });
    XtpConfig {
        carriage: options.carriage,
        max_packet,
        open: options.open,
        error_control: options.error_control,
        fast_nak: options.fast_nak,
        flow_control: options.flow_control,
        send_rate,
        checksum: options.checksum,
        acknowledge: options.acknowledge,
        meaning: options.meaning,
        sort: options.sort.then_some(flow.priority),
        // A sender that can just fill its peer's window: more would only add delay before the network.
        send_buffer: options.window.count() as usize,
        receive_buffer: options.window.count() as usize,
        initial_wait: options.wait,
        ..defaults
    }
}

/// The smallest MTU of a flow's path, there and back.
fn path_mtu(scenario: &Scenario, flow: &Flow) -> Option<Bytes> {
    let steps = flow.forward.iter().chain(&flow.backward);
    steps.map(|step| scenario.links[step.link].directions[usize::from(step.from_port)].mtu).min()
}
