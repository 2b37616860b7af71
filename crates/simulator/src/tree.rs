//! The links over which packets reach all members of a group.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_core::{Destination, Port};
use trunkline_experiment::{Flow, Link};

/// The paths of a flow to its sinks, put together. Each is the only shortest one, so that they form a tree: a packet that
/// leaves every host by all of its links but that on which it came crosses every link once, whoever sends it. Links that
/// lead to no present sink are left out, as routers do that learn of members by IGMP and PIM. A source does not: its only link is never
/// left out.
#[derive(Debug)]
pub(crate) struct Tree {
    /// By link and port.
    stations: Vec<Station>,
    /// By host: the ways out of it, by their places in `ways`.
    leaving: BTreeMap<usize, Box<[u32]>>,
    ways: Vec<Way>,
    /// By sink: true if packets are for it now.
    present: Vec<bool>,
}

/// A host where it is joined to a link of the tree.
#[derive(Debug)]
struct Station {
    link: usize,
    port: u16,
    member: Option<Member>,
    /// The ways over all other links of the tree.
    onward: Box<[u32]>,
}

/// A way out of a host.
#[derive(Debug)]
struct Way {
    branch: Branch,
    /// The sinks to which it leads.
    sinks: Box<[u16]>,
    /// True if packets always take it.
    is_kept: bool,
    is_taken: bool,
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
        let enters = |sink: usize, &(link, port): &(usize, u16)| {
            flow.to[sink].forward.iter().any(|step| (step.link, step.from_port) == (link, port))
        };
        let of_source = ports.iter().filter(|at| host(**at) == flow.from).count();
        let way = |at: &(usize, u16)| {
            let leads = |sink: &u16| enters(usize::from(*sink), at);
            let sinks: Box<[u16]> = (0..flow.to.len() as u16).filter(leads).collect();
            // All other ways lead to the source.
            let is_kept = sinks.is_empty() || of_source == 1 && host(*at) == flow.from;
            Way { branch: branch(*at), sinks, is_kept, is_taken: true }
        };
        let mut leaving: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (place, at) in (0..).zip(&ports) {
            leaving.entry(host(*at)).or_default().push(place);
        }
        let ways: Vec<Way> = ports.iter().map(way).collect();
        let sinks = (0..).zip(&flow.to).map(|(place, sink)| (sink.host, Member::Sink(place)));
        let members: BTreeMap<usize, Member> = sinks.chain([(flow.from, Member::Source)]).collect();
        let station = |&(link, port): &(usize, u16)| {
            let host = host((link, port));
            let is_other = |place: &u32| ways[*place as usize].branch.link != link;
            let onward = leaving[&host].iter().copied().filter(is_other).collect();
            Station { link, port, member: members.get(&host).copied(), onward }
        };
        let mut tree = Tree {
            stations: ports.iter().map(station).collect(),
            leaving: leaving.into_iter().map(|(host, places)| (host, places.into())).collect(),
            ways,
            present: flow.to.iter().map(|sink| sink.join.is_zero()).collect(),
        };
        tree.prune();
        tree
    }

    /// Packets are for this sink from now on, or are not any more.
    pub(crate) fn set_present(&mut self, sink: u16, is_present: bool) {
        self.present[usize::from(sink)] = is_present;
        self.prune();
    }

    fn prune(&mut self) {
        for way in &mut self.ways {
            way.is_taken = way.is_kept || way.sinks.iter().any(|sink| self.present[usize::from(*sink)]);
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

    /// The ways that a packet may take from a station.
    pub(crate) fn onward(&self, station: u32) -> &[u32] {
        &self.stations[station as usize].onward
    }

    /// The ways that a packet may take that a host sends.
    pub(crate) fn leaving(&self, host: u16) -> &[u32] {
        self.leaving.get(&usize::from(host)).map_or(&[], |places| places)
    }

    /// The link that such a way enters; `None` if it leads to no present sink.
    #[inline]
    pub(crate) fn taken(&self, way: u32) -> Option<Branch> {
        let way = &self.ways[way as usize];
        way.is_taken.then_some(way.branch)
    }

    /// The sinks that a packet of the source does not reach which is dropped where it has entered a link at this port.
    pub(crate) fn behind(&self, link: usize, from_port: u16) -> &[u16] {
        let of = |way: &Way| (way.branch.link, way.branch.from_port);
        let place = self.ways.binary_search_by_key(&(link, from_port), of);
        place.map_or(&[], |place| &self.ways[place].sinks)
    }
}
