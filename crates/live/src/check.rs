//! What would stop a run at once, found before anything is started or written.

use std::net::{TcpListener, UdpSocket};

use trunkline_core::{Ecn, Seed};
use trunkline_endpoints::Blueprint;
use trunkline_experiment::{Framing, Scenario, Transport};
use trunkline_io::tcp::{TcpError, offered_congestion_controls};

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
    let mut engines = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        if port == 0 || blueprint(scenario, index).is_none() {
            continue;
        }
        for _ in 0..flow.meta.members {
            let Some(next) = u16::try_from(engines.len() + 1).ok().and_then(|place| port.checked_add(place))
            else {
                let reason = format!(
                    "every conversation needs a port behind {port}, and there are too few; choose a lower one with \
                     `--port`, or 0 to let the system choose"
                );
                return Err(LiveError::Flow { flow: flow.meta.name.clone(), reason });
            };
            engines.push(UdpSocket::bind((address, next)).map_err(LiveError::binding(address, next))?);
        }
    }
    drop((udp, tcp, engines));
    let offered = offered_congestion_controls();
    for flow in &scenario.flows {
        if let Transport::Tcp(tcp) = &flow.transport
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

/// How a flow's endpoints are made, if it runs over protocol engines of ours and not over the kernel's UDP or TCP.
pub(crate) fn blueprint(scenario: &Scenario, flow: usize) -> Option<Result<Blueprint, String>> {
    match scenario.flows[flow].transport {
        Transport::Udp(_) | Transport::Tcp(_) => None,
        _ => Some(Blueprint::of(scenario, flow).over_udp()),
    }
}

/// Refuses what only the simulator has: packets without a socket that carries them, datagrams with an ECN field of their
/// own (members share their sockets), and messages without a header (between two processes it is by their headers that
/// messages are known).
///
/// # Errors
/// [`LiveError::Flow`], with the first such flow.
pub fn refuse_simulated(scenario: &Scenario) -> Result<(), LiveError> {
    for (index, flow) in scenario.flows.iter().enumerate() {
        // What the options are refused for, a dry run tells.
        let made = blueprint(scenario, index)
            .map(|blueprint| blueprint.and_then(|blueprint| blueprint.pair(0, Seed::new(0, 0)).map(|_| ())));
        let reason = if let Some(Err(reason)) = made {
            reason
        } else if matches!(&flow.transport, Transport::Udp(udp) if udp.ecn != Ecn::NotCapable) {
            "`ecn` of transport `udp` is for `sim` only; live datagrams are not ECN-capable, leave the key out".to_owned()
        } else if flow.framing == Framing::None {
            "`framing = \"none\"` is for `sim` only; live messages are measured by their headers".to_owned()
        } else {
            continue;
        };
        return Err(LiveError::Flow { flow: flow.meta.name.clone(), reason });
    }
    Ok(())
}
