//! Which station of a medium a frame is for.

use core::net::IpAddr;
use std::collections::BTreeMap;

use trunkline_core::{Destination, Port};

use super::header::Header;
use crate::device::Layer;
use crate::plan::{Plan, Subnet, Target};

/// More hardware addresses than stations appear when a host bridges; beyond this they are not learnt.
const MOST_LEARNT: usize = 4096;

/// How a relay finds out whom a frame is for.
#[derive(Clone, Debug)]
pub enum Stations {
    /// A link between two: for the other one.
    Two,
    /// By the hardware address, learnt from what each station sends; what is for an unknown one is for everyone.
    Learnt(BTreeMap<[u8; 6], Port>),
    /// By the IP address and the routes of the host that sends; what has no route is for nobody.
    Routed(Vec<Hop>),
}

/// A route of one station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The station that sends.
    pub from: Port,
    /// What it sends that way.
    pub to: IpAddr,
    /// How many leading bits of `to` count.
    pub prefix: u32,
    /// The station that gets it.
    pub next: Port,
}

impl Stations {
    /// The stations of a planned link, whose devices carry these frames.
    pub fn of(plan: &Plan, link: usize, layer: Layer) -> Stations {
        let stations = &plan.links[link].stations;
        match layer {
            _ if stations.len() == 2 => Stations::Two,
            Layer::Ethernet => {
                Stations::Learnt(stations.iter().map(|station| (station.mac, Port(station.port))).collect())
            }
            Layer::Ip => Stations::Routed(hops(plan, link)),
        }
    }

    /// Whom a frame from the station at `from` is for.
    #[inline]
    pub(super) fn destination(&mut self, from: Port, frame: &[u8], header: &Header) -> Destination {
        match self {
            Stations::Two => Destination::Port(Port(1 - from.0.min(1))),
            Stations::Learnt(ports) => learnt(ports, from, frame),
            Stations::Routed(hops) => routed(hops, from, header),
        }
    }
}

fn learnt(ports: &mut BTreeMap<[u8; 6], Port>, from: Port, frame: &[u8]) -> Destination {
    let Some((to, rest)) = frame.split_first_chunk::<6>() else { return Destination::Nobody };
    // The lowest bit of the first byte: a group (IEEE 802). Groups send nothing.
    let is_group = |address: &[u8; 6]| address[0] & 1 != 0;
    if let Some(sender) = rest.first_chunk::<6>()
        && !is_group(sender)
        && ports.get(sender) != Some(&from)
        && ports.len() < MOST_LEARNT
    {
        ports.insert(*sender, from);
    }
    match ports.get(to) {
        Some(&port) if port == from => Destination::Nobody,
        Some(&port) => Destination::Port(port),
        None => Destination::Everyone,
    }
}

fn routed(hops: &[Hop], from: Port, header: &Header) -> Destination {
    let Some(key) = &header.key else { return Destination::Nobody };
    let to = key.addresses[1];
    let is_broadcast = matches!(to, IpAddr::V4(to) if to.is_broadcast());
    if to.is_multicast() || is_broadcast {
        return Destination::Everyone;
    }
    let hop = hops.iter().find(|hop| hop.from == from && hop.leads_to(to));
    hop.map_or(Destination::Nobody, |hop| Destination::Port(hop.next))
}

impl Hop {
    fn leads_to(&self, to: IpAddr) -> bool {
        match (self.to, to) {
            (IpAddr::V4(own), IpAddr::V4(to)) => {
                let differ = own.to_bits() ^ to.to_bits();
                differ.leading_zeros() >= self.prefix
            }
            (IpAddr::V6(own), IpAddr::V6(to)) => {
                let differ = own.to_bits() ^ to.to_bits();
                differ.leading_zeros() >= self.prefix
            }
            _ => false,
        }
    }
}

/// The routes of all stations that lead over this link, the more specific first.
fn hops(plan: &Plan, link: usize) -> Vec<Hop> {
    let mut hops = Vec::new();
    let stations = &plan.links[link].stations;
    for station in stations {
        let from = Port(station.port);
        let routes = plan.hosts[station.host].routes.iter().filter(|route| route.out == (link, station.port));
        let routes = routes.map(|route| (route.to, route.next));
        let others = stations.iter().map(|other| other.port).filter(|other| *other != station.port);
        // The host's kernel prefers a route to a station even where it could reach it at once.
        for (to, next) in routes.chain(others.map(|other| (Target::Station(link, other), other))) {
            let hop = |to: Subnet| Hop { from, to: to.first, prefix: to.prefix.into(), next: Port(next) };
            hops.extend(plan.subnets(to).into_iter().map(hop));
        }
    }
    hops.sort_by_key(|hop| core::cmp::Reverse(hop.prefix));
    hops
}
