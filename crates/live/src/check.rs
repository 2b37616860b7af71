//! What would stop a run at once, found before anything is started or written.

use std::net::{TcpListener, UdpSocket};

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
    refuse_bare(scenario)?;
    let LiveOptions { address, port, .. } = *options;
    // Both are open at once, as they will be; port 0 then means any two.
    let udp = UdpSocket::bind((address, port)).map_err(LiveError::binding(address, port))?;
    let tcp = TcpListener::bind((address, port)).map_err(LiveError::binding(address, port))?;
    drop((udp, tcp));
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

/// Refuses messages without a header: between two processes it is by their headers that messages are known.
pub(crate) fn refuse_bare(scenario: &Scenario) -> Result<(), LiveError> {
    match scenario.flows.iter().find(|flow| flow.framing == Framing::None) {
        None => Ok(()),
        Some(flow) => Err(LiveError::Flow {
            flow: flow.meta.name.clone(),
            reason: "`framing = \"none\"` is for `sim` only; live messages are measured by their headers"
                .to_owned(),
        }),
    }
}
