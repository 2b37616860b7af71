//! From a flow to its endpoints.

use core::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trunkline_adapters::quic::{self, Identity, QuicEndpoint};
use trunkline_core::{Address, Bytes, FlowId, Seed};
use trunkline_experiment::{Flow, Scenario, SctpStyle, TcpEngine, TcpOptions, Transport, XtpService};
use trunkline_transport::Endpoint;
use trunkline_transport::classic_tcp;
use trunkline_transport::dccp::{self, DccpEndpoint};
use trunkline_transport::rtp::{self, RtpEndpoint};
use trunkline_transport::sctp::{self, SctpEndpoint};
use trunkline_transport::tcp::TcpEndpoint;
use trunkline_transport::udp::{self, UdpEndpoint};
use trunkline_transport::urp::UrpEndpoint;
use trunkline_transport::xtp::{
    self, XtpDatagrams, XtpEndpoint, XtpGroupReceiver, XtpGroupSender, XtpTransactions,
};

use crate::answered::Answered;
use crate::options;

/// First of the ports that conversations use on both hosts: the dynamic range of RFC 6335.
const FIRST_PORT: u32 = 49_152;

/// No host has this index: it stands for a group of them, or for one that does not exist.
const NO_HOST: u16 = u16::MAX;

/// What both ends of a flow have to know to make their endpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSpec {
    /// The flow's name, after which random streams are named.
    flow: String,
    first: FlowId,
    /// Index of the host of the sources.
    from: u16,
    /// Indices of the hosts of the sinks.
    to: Vec<u16>,
    /// How many of them listen from the beginning.
    prompt: u32,
    /// Whether they answer.
    reflect: bool,
    transport: Transport,
    /// Of the flow's packets.
    priority: u16,
    /// The smallest MTU of the path, there and back.
    mtu: Option<Bytes>,
    /// Where both ends are, if they are real.
    network: Option<[IpAddr; 2]>,
}

/// What carries the packets of endpoints between real hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Sockets of UDP.
    Udp,
    /// Sockets of UDP-Lite.
    UdpLite {
        /// How much of the payload checksums cover; all of it if absent.
        coverage: Option<u16>,
    },
    /// Raw sockets of IP.
    Ip {
        /// The number of the endpoints' protocol.
        protocol: u8,
    },
}

impl Carrier {
    /// Whether packets are told apart by the ports of the source and the destination with which they begin. On UDP and
    /// UDP-Lite the kernel does it, and XTP's packets are known by their keys.
    pub fn has_ports(self) -> bool {
        matches!(self, Carrier::Ip { protocol: dccp::IP_PROTOCOL | SCTP_PROTOCOL })
    }
}

/// SCTP's protocol number in IP (IANA).
const SCTP_PROTOCOL: u8 = 132;

/// Both endpoints of a conversation.
pub struct Pair {
    /// Where the sources are. It opens the conversation.
    pub near: Made,
    /// Where the sink or the reflector is.
    pub far: Made,
}

/// The endpoints of one that sends to many.
pub struct Group {
    /// Where the sources are.
    pub near: Made,
    /// What is sent to this address is for the whole group.
    pub address: Address,
    /// Where the sinks are, in their order.
    pub far: Vec<Made>,
}

/// An endpoint, and where it believes itself to be.
pub struct Made {
    /// Its address. Hosts are indices of the experiment's: a driver in real time maps addresses to its sockets.
    pub address: Address,
    /// The endpoint.
    pub endpoint: Box<dyn Endpoint + Send>,
}

impl FlowSpec {
    /// Of a flow of a scenario, by its index.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn of(scenario: &Scenario, flow: usize) -> FlowSpec {
        let flow = &scenario.flows[flow];
        FlowSpec {
            flow: flow.meta.name.clone(),
            first: flow.meta.first,
            from: flow.from as u16,
            to: flow.to.iter().map(|sink| sink.host as u16).collect(),
            prompt: flow.to.iter().filter(|sink| sink.join.is_zero()).count() as u32,
            reflect: flow.reflect,
            transport: flow.transport.clone(),
            priority: flow.priority,
            mtu: path_mtu(scenario, flow),
            network: None,
        }
    }

    /// Of one conversation by itself, between two hosts; what its endpoints draw is named after `flow`.
    pub fn between(flow: &str, transport: Transport) -> FlowSpec {
        FlowSpec {
            flow: flow.to_owned(),
            first: FlowId(0),
            from: 0,
            to: vec![1],
            prompt: 1,
            reflect: false,
            transport,
            priority: 0,
            mtu: None,
            network: None,
        }
    }

    /// The same for sockets at these addresses of both ends, which carry exactly the endpoints' packets as
    /// [`carrier`](Self::carrier) says.
    ///
    /// # Errors
    /// Why this transport's packets cannot travel so, or need not.
    pub fn over_sockets(mut self, network: [IpAddr; 2]) -> Result<FlowSpec, String> {
        match &mut self.transport {
            Transport::Dccp(options) if options.encapsulation == dccp::Encapsulation::Udp => {
                options.encapsulation = dccp::Encapsulation::UdpPayload;
            }
            Transport::Xtp(options) if options.encapsulation == xtp::Encapsulation::Revision36 => {
                return Err("`encapsulation = \"revision-3.6\"` is for `sim` only; use `\"udp\"`".to_owned());
            }
            Transport::UdpLite(options) => options.encapsulation = udp::Encapsulation::UdpPayload,
            Transport::Rtp(options) => options.encapsulation = rtp::Encapsulation::UdpPayload,
            Transport::Quic(options) => options.encapsulation = quic::Encapsulation::UdpPayload,
            Transport::Urp(_) | Transport::Dccp(_) | Transport::Xtp(_) | Transport::Sctp(_) => {}
            Transport::Udp(_) | Transport::Tcp(_) | Transport::Mptcp(_) => {
                return Err("the kernel's sockets are its endpoints".to_owned());
            }
        }
        self.network = Some(network);
        Ok(self)
    }

    /// What carries the packets between real hosts.
    pub fn carrier(&self) -> Carrier {
        match &self.transport {
            Transport::UdpLite(options) => Carrier::UdpLite { coverage: options::coverage(options) },
            Transport::Dccp(options) if options.encapsulation == dccp::Encapsulation::Ip => {
                Carrier::Ip { protocol: dccp::IP_PROTOCOL }
            }
            Transport::Xtp(options) if options.encapsulation == xtp::Encapsulation::Ip => {
                Carrier::Ip { protocol: xtp::IP_PROTOCOL }
            }
            Transport::Sctp(options) if options.encapsulation == sctp::Encapsulation::Ip => {
                Carrier::Ip { protocol: SCTP_PROTOCOL }
            }
            _ => Carrier::Udp,
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
        let (near, far) = self.addresses(member, seed);
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
            Transport::UdpLite(options) => {
                let config = options::udp_lite(options);
                Ok(pair(
                    (near, UdpEndpoint::new(near, far, config)),
                    (far, UdpEndpoint::new(far, near, config)),
                ))
            }
            Transport::Mptcp(_) => {
                Err("transport `mptcp` is the kernel's, for `live` only; in `sim` use `tcp`".to_owned())
            }
            Transport::Tcp(options @ TcpOptions { engine: TcpEngine::Classic(classic), .. }) => {
                let config = options::classic_tcp(options, classic, self.mtu);
                let connecting = classic_tcp::TcpEndpoint::connect(near, far, &config, bits("tcp", "near"))
                    .map_err(said)?;
                let listening =
                    classic_tcp::TcpEndpoint::listen(far, &config, bits("tcp", "far")).map_err(said)?;
                Ok(pair((near, connecting), (far, listening)))
            }
            Transport::Tcp(options @ TcpOptions { engine: TcpEngine::Modern(config), .. }) => {
                let config = Arc::new(options::tcp(options, config, self.mtu).map_err(said)?);
                let connecting =
                    TcpEndpoint::connect(near, far, config.clone(), bits("tcp", "near")).map_err(said)?;
                let listening = TcpEndpoint::listen(far, config, bits("tcp", "far")).map_err(said)?;
                Ok(pair((near, connecting), (far, listening)))
            }
            Transport::Urp(options) => {
                let config = options::urp(options);
                let connecting = UrpEndpoint::connect(near, far, config).map_err(said)?;
                let listening = UrpEndpoint::listen(far, near, config).map_err(said)?;
                Ok(pair((near, connecting), (far, listening)))
            }
            Transport::Dccp(options) => {
                let config = options::dccp(options, self.mtu, self.network);
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
                let [one, other] = ["near", "far"].map(|end| bits("xtp", end));
                match options.service {
                    XtpService::Stream => {
                        let connecting = XtpEndpoint::connect(near, far, &config, one).map_err(said)?;
                        let listening = XtpEndpoint::listen(far, &config, other).map_err(said)?;
                        Ok(pair((near, connecting), (far, listening)))
                    }
                    XtpService::Datagram | XtpService::AcknowledgedDatagram => {
                        let acknowledged = options.service == XtpService::AcknowledgedDatagram;
                        let end = |local, peer, seed| {
                            XtpDatagrams::new(local, peer, &config, acknowledged, seed).map_err(said)
                        };
                        Ok(pair((near, end(near, far, one)?), (far, end(far, near, other)?)))
                    }
                    XtpService::Transaction => {
                        let asking = XtpTransactions::connect(near, far, &config, one).map_err(said)?;
                        let answering = XtpTransactions::listen(far, near, &config, other).map_err(said)?;
                        Ok(pair((near, asking), (far, answering)))
                    }
                    XtpService::Multicast | XtpService::ReliableMulticast => {
                        Err(format!("the service `{}` does not connect two ends", options.service.name()))
                    }
                }
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

    /// Makes the endpoints of a member's conversation with all sinks of a multicast. What they draw comes from `seed`, from
    /// streams named after the flow, the member and the end.
    ///
    /// # Errors
    /// What the transport refuses of the flow's options, or that it is not for groups.
    pub fn group(&self, member: u32, seed: Seed) -> Result<Group, String> {
        let (near, first) = self.addresses(member, seed);
        let address = Address { host: NO_HOST, ..near };
        let sinks = self.to.iter().map(|host| Address { host: *host, ..first });
        let bits = |end: &str| seed.stream(&format!("flow.{}/{member}/xtp/{end}", self.flow)).bits();
        match &self.transport {
            Transport::Udp(options) => {
                let config = options::udp(options);
                Ok(Group {
                    near: made(near, UdpEndpoint::to_group(near, address, config)),
                    address,
                    far: sinks.map(|at| made(at, UdpEndpoint::in_group(at, address, near, config))).collect(),
                })
            }
            Transport::Xtp(options) if options.service.is_multicast() => {
                let config = options::xtp_group(options, self.mtu, self.priority, address, self.prompt);
                let answers = |local, peer, end: &str| {
                    let seed = bits(&format!("{end}/answers"));
                    XtpDatagrams::new(local, peer, &config.stream, true, seed).map_err(said)
                };
                let receiver = |(place, at): (usize, Address)| {
                    let end = format!("far/{place}");
                    let stream = XtpGroupReceiver::new(at, &config, bits(&end)).map_err(said)?;
                    Ok(match self.reflect {
                        true => made(at, Answered::receiver(stream, near.host, answers(at, near, &end)?)),
                        false => made(at, stream),
                    })
                };
                let stream = XtpGroupSender::new(near, &config, bits("near")).map_err(said)?;
                let sender = match self.reflect {
                    true => {
                        let of =
                            |at: Address| Ok((at.host, answers(near, at, &format!("near/{}", at.host))?));
                        made(
                            near,
                            Answered::sender(stream, sinks.clone().map(of).collect::<Result<_, String>>()?),
                        )
                    }
                    false => made(near, stream),
                };
                let far = sinks.enumerate().map(receiver).collect::<Result<_, String>>()?;
                Ok(Group { near: sender, address, far })
            }
            _ => Err("the transport reaches one sink".to_owned()),
        }
    }

    /// The addresses of both ends, the first sink's if there are several. Ports repeat after 16,384 members, which harms
    /// nobody: packets find their way by flow.
    ///
    /// On a real network, where others may use the protocol too, the first is drawn; and as both ends may be on one host,
    /// each has a half of the ports.
    fn addresses(&self, member: u32, seed: Seed) -> (Address, Address) {
        const PORTS: u32 = 65_536 - FIRST_PORT;
        let id = self.first.0.wrapping_add(member);
        let (near, far) = match self.network {
            None => (id % PORTS, id % PORTS),
            Some(_) => {
                let place = (seed.stream("ports").bits() as u32).wrapping_add(id) % (PORTS / 2);
                (place, PORTS / 2 + place)
            }
        };
        let address = |host, place| Address { host, port: (FIRST_PORT + place) as u16 };
        (address(self.from, near), address(self.to.first().copied().unwrap_or(NO_HOST), far))
    }
}

fn pair(
    near: (Address, impl Endpoint + Send + 'static),
    far: (Address, impl Endpoint + Send + 'static),
) -> Pair {
    Pair { near: made(near.0, near.1), far: made(far.0, far.1) }
}

fn made(address: Address, endpoint: impl Endpoint + Send + 'static) -> Made {
    Made { address, endpoint: Box::new(endpoint) }
}

fn said(error: impl core::fmt::Display) -> String {
    error.to_string()
}

/// The smallest MTU of a flow's path, there and back.
fn path_mtu(scenario: &Scenario, flow: &Flow) -> Option<Bytes> {
    flow.entrances().map(|(link, port)| scenario.links[link].directions[usize::from(port)].mtu).min()
}
