//! What would stop a run at once, found before anything is started or written.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use trunkline_core::Seed;
use trunkline_experiment::{Framing, Scenario, Transport};
use trunkline_flows::{Carrier, FlowSpec};
use trunkline_io::tcp::{Keepalive, StreamProtocol, TcpError, TcpSetup, offered_congestion_controls};
use trunkline_transport::kind::Sockets;
use trunkline_transport::tcp::{Nagle, TcpOptions};

use crate::engine;
use crate::error::LiveError;
use crate::options::LiveOptions;

/// Finds what [`run`](crate::run) would refuse because the user asked for it: an address that is not here, a port in use,
/// a congestion control that the kernel does not offer.
///
/// # Errors
/// As `run`'s, of those that [`LiveError::is_bad_input`] tells.
pub fn check(scenario: &Scenario, options: &LiveOptions) -> Result<(), LiveError> {
    refuse_simulated(scenario)?;
    let LiveOptions { address, port, .. } = *options;
    // Both are open at once, as they will be; port 0 then means any two.
    let udp = UdpSocket::bind((address, port)).map_err(LiveError::binding(address, port))?;
    let tcp = TcpListener::bind((address, port)).map_err(LiveError::binding(address, port))?;
    let mut ports = (port..=u16::MAX).skip(1);
    let mut engines = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        let Some(Ok(spec)) = spec(scenario, index, [address; 2]) else { continue };
        let carrier = spec.carrier();
        // Where the port does not matter, one socket shows whether the system has its kind.
        let is_any = port == 0 || matches!(carrier, Carrier::Ip { .. });
        let conversations = if is_any || spec.is_shared() { 1 } else { flow.meta.members };
        for _ in 0..conversations.min(flow.meta.members) {
            let next = if is_any { Some(0) } else { ports.next() };
            let Some(port) = next else {
                let reason = format!(
                    "every conversation needs a port above {port}, but there are too few; choose a lower port \
                    with `--port`, or 0 to let the system choose"
                );
                return Err(LiveError::Flow { flow: flow.meta.name.clone(), reason });
            };
            let local = SocketAddr::new(address, port);
            let socket = engine::open(carrier, local, None, BUFFER);
            engines.push(socket.map_err(engine::not_opened(&flow.meta.name, carrier, local))?);
        }
    }
    drop((udp, tcp, engines));
    for flow in &scenario.flows {
        if let Some((protocol, _)) = kernel_stream(&flow.transport).filter(|(p, _)| *p != StreamProtocol::Tcp)
        {
            let setup = TcpSetup { protocol, ..TcpSetup::default() };
            let listener = trunkline_io::tcp::listen(SocketAddr::new(address, 0), &setup);
            let refused =
                |error: TcpError| LiveError::Flow { flow: flow.meta.name.clone(), reason: error.to_string() };
            drop(listener.map_err(refused)?);
        }
    }
    let offered = offered_congestion_controls();
    for flow in &scenario.flows {
        if let Some((_, tcp)) = kernel_stream(&flow.transport)
            && let Some(wanted) = &tcp.congestion_control
            && !offered.is_empty()
            && !offered.contains(wanted)
        {
            let reason = TcpError::CongestionControl { wanted: wanted.clone(), offered: offered.clone() };
            return Err(LiveError::Flow { flow: flow.meta.name.clone(), reason: reason.to_string() });
        }
    }
    Ok(())
}

/// Of sockets that are only tried.
const BUFFER: u64 = 1 << 16;

/// What a flow asks of the kernel's streams, if it runs over one.
pub fn kernel_stream(transport: &Transport) -> Option<(StreamProtocol, TcpOptions)> {
    match transport.sockets() {
        Sockets::Stream(protocol, options) => Some((protocol, options)),
        Sockets::Datagrams | Sockets::Carried(_) => None,
    }
}

/// The setup of the kernel's sockets of such a stream. Keys without an option of the socket are left out.
pub fn stream_setup(protocol: StreamProtocol, options: &TcpOptions) -> TcpSetup {
    let given = |key: &str| options.given.iter().any(|other| other == key);
    let config = &*options.config;
    TcpSetup {
        protocol,
        window: options.window.map(|bytes| usize::try_from(bytes.count()).unwrap_or(usize::MAX)),
        send_buffer: given("send-buffer").then_some(config.send_buffer.max),
        mss: options.mss.map(|bytes| u32::try_from(bytes.count()).unwrap_or(u32::MAX)),
        nodelay: options.nodelay,
        congestion_control: options.congestion_control.clone(),
        cork: given("cork") && config.nagle == Nagle::Cork,
        max_pacing_rate: config.max_pacing_rate.map(|rate| (rate.bits_per_second() / 8).max(1)),
        keepalive: config.keepalive.map(|keepalive| Keepalive {
            time: keepalive.time,
            interval: keepalive.interval,
            probes: keepalive.probes,
        }),
        user_timeout: config.user_timeout,
    }
}

/// How a flow's endpoints are made between these addresses of its ends, if it runs over protocol engines of ours and not over the kernel's UDP
/// or one of its streams.
pub(crate) fn spec(
    scenario: &Scenario,
    flow: usize,
    network: [IpAddr; 2],
) -> Option<Result<FlowSpec, String>> {
    match scenario.flows[flow].transport.sockets() {
        Sockets::Carried(_) => Some(FlowSpec::of(scenario, flow).over_sockets(network)),
        Sockets::Datagrams | Sockets::Stream(..) => None,
    }
}

/// Refuses what only the simulator has: multicast, packets without a socket that carries them, datagrams with an ECN field of their
/// own (members share their sockets), and messages without a header (between two processes it is by their headers that
/// messages are known).
///
/// # Errors
/// [`LiveError::Simulated`], with the first such flow.
pub fn refuse_simulated(scenario: &Scenario) -> Result<(), LiveError> {
    for (index, flow) in scenario.flows.iter().enumerate() {
        // What the options are refused for, a dry run tells.
        let made = spec(scenario, index, [Ipv4Addr::LOCALHOST.into(); 2])
            .map(|spec| spec.and_then(|spec| spec.pair(0, Seed::new(0, 0)).map(|_| ())));
        let (key, reason) = if flow.is_multicast() || flow.to.len() != 1 {
            let reason = "several sinks, or none, work in `sim` only: name one host in `to`, and for XTP a service \
                          other than multicast";
            ("to", reason.to_owned())
        } else if let Some(reason) = made.and_then(Result::err).or_else(|| flow.transport.only_simulated()) {
            ("transport", reason)
        } else if flow.to.iter().any(|sink| !sink.join.is_zero() || sink.leave.or(sink.fail).is_some()) {
            let reason =
                "`join`, `leave` and `fail` work in `sim` only; write the sink as the name of its host";
            ("to", reason.to_owned())
        } else if flow.framing == Framing::None {
            let reason = "`framing = \"none\"` works in `sim` only, because live messages are measured by their headers";
            ("framing", reason.to_owned())
        } else {
            continue;
        };
        return Err(LiveError::Simulated { flow: flow.meta.name.clone(), key, reason });
    }
    Ok(())
}
