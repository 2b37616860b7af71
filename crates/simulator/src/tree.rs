//! The links over which packets reach all members of a group.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_core::{Destination, Port};
use trunkline_experiment::{Flow, Link};

/// The paths of a flow to its sinks, put together. Each is the only shortest one, so that they form a tree: a packet that
/// leaves every host by all of its links but that on which it came crosses every link once, whoever sends it.
#[derive(Debug)]
pub(crate) struct Tree {
    /// By link and port.
    stations: Vec<Station>,
    /// By host: all links of the tree.
    leaving: BTreeMap<usize, Box<[Branch]>>,
}

/// A host where it is joined to a link of the tree.
#[derive(Debug)]
struct Station {
    link: usize,
    port: u16,
    member: Option<Member>,
    /// All other links of the tree.
    onward: Box<[Branch]>,
}

/// Who a member of the group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// The source of the flow.
    Source,
    /// A sink, by its place among them.
    Sink(u16),
}

/// A link that a packet enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) link: usize,
    pub(crate) from_port: u16,
    /// Everyone, if there are several others of the tree on that link.
    pub(crate) to: Destination,
}

impl Tree {
    pub(crate) fn new(flow: &Flow, links: &[Link]) -> Tree {
        let steps = || flow.to.iter().flat_map(|sink| &sink.forward);
        let ports: BTreeSet<(usize, u16)> =
            steps().flat_map(|step| [(step.link, step.from_port), (step.link, step.to_port)]).collect();
        let host = |(link, port): (usize, u16)| links[link].between[usize::from(port)];
        let branch = |(link, from_port): (usize, u16)| {
            let mut others = ports.range((link, 0)..=(link, u16::MAX)).filter(|(_, port)| *port != from_port);
            let to = match (others.next(), others.next()) {
                (Some(&(_, only)), None) => Destination::Port(Port(only)),
                _ => Destination::Everyone,
            };
            Branch { link, from_port, to }
        };
        let mut leaving: BTreeMap<usize, Vec<Branch>> = BTreeMap::new();
        for &at in &ports {
            leaving.entry(host(at)).or_default().push(branch(at));
        }
        let sinks = (0..).zip(&flow.to).map(|(place, sink)| (sink.host, Member::Sink(place)));
        let members: BTreeMap<usize, Member> = sinks.chain([(flow.from, Member::Source)]).collect();
        let station = |&(link, port): &(usize, u16)| {
            let host = host((link, port));
            let onward = leaving[&host].iter().filter(|branch| branch.link != link).copied().collect();
            Station { link, port, member: members.get(&host).copied(), onward }
        };
        Tree {
            stations: ports.iter().map(station).collect(),
            leaving: leaving.into_iter().map(|(host, branches)| (host, branches.into())).collect(),
        }
    }

    /// The place of the station at a port of a link; `None` if packets of the group are not for it.
    pub(crate) fn station(&self, link: usize, port: u16) -> Option<u32> {
        let found = self.stations.binary_search_by_key(&(link, port), |station| (station.link, station.port));
        found.ok().map(|place| place as u32)
    }

    /// Which member of the group is at a station.
    pub(crate) fn member(&self, station: u32) -> Option<Member> {
        self.stations[station as usize].member
    }

    /// Where a packet goes on from a station.
    pub(crate) fn onward(&self, station: u32) -> &[Branch] {
        &self.stations[station as usize].onward
    }

    /// Where a packet goes that a host sends.
    pub(crate) fn leaving(&self, host: u16) -> &[Branch] {
        self.leaving.get(&usize::from(host)).map_or(&[], |branches| branches)
    }
}
