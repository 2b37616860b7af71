//! From a flow to its endpoints.

use core::net::IpAddr;

use serde::{Deserialize, Serialize};
use trunkline_core::{Address, Bytes, FlowId, Seed};
use trunkline_experiment::{Flow, Scenario, Transport};
use trunkline_transport::kind::{Carrier, Group, GroupPlace, Pair, Place, Sockets};

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
        if let Some(reason) = self.transport.only_simulated() {
            return Err(reason);
        }
        if !matches!(self.transport.sockets(), Sockets::Carried(_)) {
            return Err("the kernel's sockets are its endpoints".to_owned());
        }
        self.network = Some(network);
        Ok(self)
    }

    /// What carries the packets between real hosts.
    pub fn carrier(&self) -> Carrier {
        match self.transport.sockets() {
            Sockets::Carried(carrier) => carrier,
            Sockets::Datagrams | Sockets::Stream(..) => Carrier::Udp,
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
        self.transport.is_shared()
    }

    /// Makes the endpoints of a member's conversation. What they draw comes from `seed`, from streams named after the
    /// flow, the member and the end.
    ///
    /// # Errors
    /// What the transport refuses of the flow's options.
    pub fn pair(&self, member: u32, seed: Seed) -> Result<Pair, String> {
        self.transport.pair(&self.place(member, seed))
    }

    /// Makes the endpoints of a member's conversation with all sinks of a multicast. What they draw comes from `seed`, from
    /// streams named after the flow, the member and the end.
    ///
    /// # Errors
    /// What the transport refuses of the flow's options, or that it is not for groups.
    pub fn group(&self, member: u32, seed: Seed) -> Result<Group, String> {
        let place = self.place(member, seed);
        let sinks: Vec<Address> = self.to.iter().map(|host| Address { host: *host, ..place.far }).collect();
        let group = GroupPlace {
            address: Address { host: NO_HOST, ..place.near },
            sinks: &sinks,
            prompt: self.prompt,
            reflect: self.reflect,
        };
        self.transport.group(&place, &group)
    }

    fn place(&self, member: u32, seed: Seed) -> Place<'_> {
        let (near, far) = self.addresses(member, seed);
        let FlowSpec { ref flow, mtu, priority, network, .. } = *self;
        Place { flow, member, seed, near, far, mtu, priority, network }
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

/// The smallest MTU of a flow's path, there and back.
fn path_mtu(scenario: &Scenario, flow: &Flow) -> Option<Bytes> {
    flow.entrances().map(|(link, port)| scenario.links[link].directions[usize::from(port)].mtu).min()
}
