//! From a flow to its endpoints.

use serde::{Deserialize, Serialize};
use trunkline_adapters::quic::{self, Identity, QuicEndpoint};
use trunkline_adapters::sctp::{self, SctpEndpoint};
use trunkline_adapters::tcp::TcpEndpoint;
use trunkline_core::{Address, Bytes, FlowId, Seed};
use trunkline_experiment::{Flow, Scenario, SctpStyle, Transport};
use trunkline_transport::Endpoint;
use trunkline_transport::dccp::{self, DccpEndpoint};
use trunkline_transport::rtp::{self, RtpEndpoint};
use trunkline_transport::udp::UdpEndpoint;
use trunkline_transport::urp::UrpEndpoint;
use trunkline_transport::xtp::{self, XtpEndpoint};

use crate::options;

/// First of the ports that conversations use on both hosts: the dynamic range of RFC 6335.
const FIRST_PORT: u32 = 49_152;

/// What both ends of a flow have to know to make their endpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blueprint {
    /// The flow's name, after which random streams are named.
    flow: String,
    first: FlowId,
    /// Indices of the hosts of the sources and of the sinks.
    hosts: [u16; 2],
    transport: Transport,
    /// Of the flow's packets.
    priority: u16,
    /// The smallest MTU of the path, there and back.
    mtu: Option<Bytes>,
}

/// Both endpoints of a conversation.
pub struct Pair {
    /// Where the sources are. It opens the conversation.
    pub near: Made,
    /// Where the sink or the reflector is.
    pub far: Made,
}

/// An endpoint, and where it believes itself to be.
pub struct Made {
    /// Its address. Hosts are indices of the experiment's: a driver in real time maps addresses to its sockets.
    pub address: Address,
    /// The endpoint.
    pub endpoint: Box<dyn Endpoint + Send>,
}

impl Blueprint {
    /// Of a flow of a scenario, by its index.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn of(scenario: &Scenario, flow: usize) -> Blueprint {
        let flow = &scenario.flows[flow];
        Blueprint {
            flow: flow.meta.name.clone(),
            first: flow.meta.first,
            hosts: [flow.from as u16, flow.to as u16],
            transport: flow.transport.clone(),
            priority: flow.priority,
            mtu: path_mtu(scenario, flow),
        }
    }

    /// The same, for datagrams of a UDP socket that carry exactly the endpoints' packets.
    ///
    /// # Errors
    /// Why this transport's packets cannot travel so, or need not.
    pub fn over_udp(mut self) -> Result<Blueprint, String> {
        match &mut self.transport {
            Transport::Urp(_) => Ok(self),
            Transport::Dccp(options) if options.encapsulation == dccp::Encapsulation::Ip => {
                Err(over_ip("dccp"))
            }
            Transport::Dccp(options) => {
                options.encapsulation = dccp::Encapsulation::UdpPayload;
                Ok(self)
            }
            Transport::Xtp(options) if options.encapsulation == xtp::Encapsulation::Ip => Err(over_ip("xtp")),
            Transport::Xtp(options) if options.encapsulation == xtp::Encapsulation::Revision36 => {
                Err("`encapsulation = \"revision-3.6\"` is for `sim` only; use `\"udp\"`".to_owned())
            }
            Transport::Xtp(_) => Ok(self),
            Transport::Rtp(options) => {
                options.encapsulation = rtp::Encapsulation::UdpPayload;
                Ok(self)
            }
            Transport::Quic(options) => {
                options.encapsulation = quic::Encapsulation::UdpPayload;
                Ok(self)
            }
            Transport::Sctp(options) if options.encapsulation == sctp::Encapsulation::Ip => {
                Err(over_ip("sctp"))
            }
            Transport::Sctp(_) => Ok(self),
            Transport::Udp(_) | Transport::Tcp(_) => Err("the kernel's sockets are its endpoints".to_owned()),
        }
    }

    /// The flow's name.
    pub fn flow(&self) -> &str {
        &self.flow
    }

    /// The transport.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Whether all members of the flow share one conversation, that of its first, as they would share a host's socket;
    /// otherwise every member has one.
    pub fn is_shared(&self) -> bool {
        match &self.transport {
            Transport::Udp(_) => true,
            Transport::Sctp(options) => options.style == SctpStyle::OneToMany,
            _ => false,
        }
    }

    /// Makes the endpoints of a member's conversation. What they draw comes from `seed`, from streams named after the
    /// flow, the member and the end.
    ///
    /// # Errors
    /// What the transport refuses of the flow's options.
    pub fn pair(&self, member: u32, seed: Seed) -> Result<Pair, String> {
        let (near, far) = self.addresses(member);
        // What an engine draws, say its initial sequence number, belongs to this end of this member.
        let bits = |kind: &str, end: &str| {
            let place = format!("flow.{}/{member}/{kind}/{end}", self.flow);
            seed.stream(&place).bits()
        };
        match &self.transport {
            Transport::Udp(options) => {
                let config = options::udp(options);
                Ok(pair(
                    (near, UdpEndpoint::new(near, far, config)),
                    (far, UdpEndpoint::new(far, near, config)),
                ))
            }
            Transport::Tcp(options) => {
                let config = options::tcp(options, self.mtu)?;
                let connecting =
                    TcpEndpoint::connect(near, far, &config, bits("tcp", "near")).map_err(said)?;
                let listening = TcpEndpoint::listen(far, &config, bits("tcp", "far")).map_err(said)?;
                Ok(pair((near, connecting), (far, listening)))
            }
            Transport::Urp(options) => {
                let config = options::urp(options);
                let connecting = UrpEndpoint::connect(near, far, config).map_err(said)?;
                let listening = UrpEndpoint::listen(far, near, config).map_err(said)?;
                Ok(pair((near, connecting), (far, listening)))
            }
            Transport::Dccp(options) => {
                let config = options::dccp(options, self.mtu);
                let connecting =
                    DccpEndpoint::connect(near, far, &config, bits("dccp", "near")).map_err(said)?;
                let listening = DccpEndpoint::listen(far, &config, bits("dccp", "far")).map_err(said)?;
                Ok(pair((near, connecting), (far, listening)))
            }
            Transport::Sctp(options) => {
                let config = options::sctp(options, self.mtu);
                let connecting =
                    SctpEndpoint::connect(near, far, &config, bits("sctp", "near")).map_err(said)?;
                let listening = SctpEndpoint::listen(far, &config, bits("sctp", "far")).map_err(said)?;
                Ok(pair((near, connecting), (far, listening)))
            }
            Transport::Quic(options) => {
                let config = options::quic(options, self.mtu);
                // Both ends know the run's seed, and so the certificate of this member.
                let mut stream = seed.stream(&format!("flow.{}/{member}/quic/identity", self.flow));
                let mut secret = [0; 32];
                for word in secret.chunks_exact_mut(8) {
                    word.copy_from_slice(&stream.bits().to_le_bytes());
                }
                let identity = Identity::new(secret).map_err(said)?;
                let fingerprint = identity.fingerprint();
                let connecting = QuicEndpoint::connect(near, far, &config, fingerprint, bits("quic", "near"))
                    .map_err(said)?;
                let listening =
                    QuicEndpoint::listen(far, &config, &identity, bits("quic", "far")).map_err(said)?;
                Ok(pair((near, connecting), (far, listening)))
            }
            Transport::Xtp(options) => {
                let config = options::xtp(options, self.mtu, self.priority);
                let connecting =
                    XtpEndpoint::connect(near, far, &config, bits("xtp", "near")).map_err(said)?;
                let listening = XtpEndpoint::listen(far, &config, bits("xtp", "far")).map_err(said)?;
                Ok(pair((near, connecting), (far, listening)))
            }
            Transport::Rtp(options) => {
                let config = |end: &str| {
                    let place = format!("flow.{}/{member}/rtp/{end}", self.flow);
                    options::rtp(options, format!("{end}/{member}@{}", self.flow), seed.stream(&place))
                };
                let one = RtpEndpoint::new(near, far, config("near")).map_err(said)?;
                let other = RtpEndpoint::new(far, near, config("far")).map_err(said)?;
                Ok(pair((near, one), (far, other)))
            }
        }
    }

    /// The addresses of both ends. Ports repeat after 16,384 members, which harms nobody: packets find their way by flow.
    fn addresses(&self, member: u32) -> (Address, Address) {
        let id = self.first.0.wrapping_add(member);
        let port = (FIRST_PORT + id % (65_536 - FIRST_PORT)) as u16;
        let [near, far] = self.hosts.map(|host| Address { host, port });
        (near, far)
    }
}

fn pair(
    near: (Address, impl Endpoint + Send + 'static),
    far: (Address, impl Endpoint + Send + 'static),
) -> Pair {
    Pair {
        near: Made { address: near.0, endpoint: Box::new(near.1) },
        far: Made { address: far.0, endpoint: Box::new(far.1) },
    }
}

fn said(error: impl core::fmt::Display) -> String {
    error.to_string()
}

/// The smallest MTU of a flow's path, there and back.
fn path_mtu(scenario: &Scenario, flow: &Flow) -> Option<Bytes> {
    let steps = flow.forward.iter().chain(&flow.backward);
    steps.map(|step| scenario.links[step.link].directions[usize::from(step.from_port)].mtu).min()
}

/// Why a transport directly over IP cannot travel in datagrams.
fn over_ip(transport: &str) -> String {
    format!(
        "`{transport}` directly over IP is for `sim` only; over real sockets add `encapsulation = \"udp\"`"
    )
}
