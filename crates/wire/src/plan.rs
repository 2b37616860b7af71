//! What is to be made for a scenario: hosts, their attachments to links, addresses, routes and names. Pure.
//!
//! Addresses are those set aside for benchmarking, which no real network uses: a /24 of 198.18.0.0/15 (RFC 2544,
//! RFC 6890) and a /64 of 2001:2::/48 (RFC 5180) per link, in the file's order; the station at port `p` is number `p + 1`.

mod routes;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use trunkline_experiment::{PathStep, Scenario};

/// Links that have a /24 of their own.
const MOST_LINKS: usize = 512;
/// Stations that have an address in a /24.
const MOST_STATIONS: usize = 253;
/// The smallest packet that an IPv6 link carries whole (RFC 8200 section 5), below which a kernel does without IPv6.
const LEAST_IPV6_MTU: u32 = 1280;
/// The longest name of an interface.
const LONGEST_INTERFACE: usize = 15;

/// What is made for a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The hosts, in the file's order.
    pub hosts: Vec<PlannedHost>,
    /// The links, in the file's order.
    pub links: Vec<PlannedLink>,
}

/// A host to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedHost {
    /// Its name.
    pub name: String,
    /// Its attachments, as link and port.
    pub attachments: Vec<(usize, u16)>,
    /// Where it sends what is for links that it does not stand on, and single stations that a flow's path reaches
    /// otherwise. The more specific route wins.
    pub routes: Vec<Route>,
}

/// A link to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedLink {
    /// Its name.
    pub name: String,
    /// Its stations, by port.
    pub stations: Vec<Attachment>,
}

/// A host's end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The link.
    pub link: usize,
    /// The port of the link.
    pub port: u16,
    /// The host.
    pub host: usize,
    /// What the interface is called on the host: as the link, if an interface can be called so.
    pub interface: String,
    /// The interface's hardware address, where it has one.
    pub mac: [u8; 6],
    /// Its address.
    pub ipv4: Ipv4Addr,
    /// Its address; `None` on a link whose packets are smaller than IPv6 allows.
    pub ipv6: Option<Ipv6Addr>,
    /// The largest packet that it may send.
    pub mtu: u32,
}

/// Where a host sends what is for `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Whom it is for.
    pub to: Target,
    /// The host's own attachment by which it leaves.
    pub out: (usize, u16),
    /// The port of the same link at which the next host stands.
    pub next: u16,
}

/// What a route leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Every station of a link.
    Link(usize),
    /// The station at a port of a link.
    Station(usize, u16),
    /// Everything else.
    Elsewhere,
}

/// Why a scenario cannot be put on a wire.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Too many links.
    #[error("the file has {0} links; a wire has addresses for {MOST_LINKS}")]
    Links(usize),
    /// Too many stations on one link.
    #[error("link `{link}` has {stations} stations; a wire has addresses for {MOST_STATIONS} per link")]
    Stations {
        /// The link.
        link: String,
        /// How many it has.
        stations: usize,
    },
    /// Two flows want to reach the same address by different ways.
    #[error(
        "flow `{flow}` passes host `{at}` on its way to `{to}` and continues to `{towards}`, but another flow to \
         `{to}` continues from there to another host; the kernel routes by destination address only, so let the two \
         paths enter `{to}` over different links"
    )]
    Crossing {
        /// The later of the two flows.
        flow: String,
        /// Where the ways part.
        at: String,
        /// Where both lead.
        to: String,
        /// The next host on the later flow's way.
        towards: String,
    },
}

impl Plan {
    /// Plans a scenario.
    ///
    /// # Errors
    /// If a wire cannot be what the scenario asks for.
    pub fn new(scenario: &Scenario) -> Result<Plan, PlanError> {
        if scenario.links.len() > MOST_LINKS {
            return Err(PlanError::Links(scenario.links.len()));
        }
        let links = (0..scenario.links.len()).map(|link| planned_link(scenario, link));
        let links: Vec<PlannedLink> = links.collect::<Result<_, _>>()?;
        let mut hosts: Vec<PlannedHost> = scenario
            .hosts
            .iter()
            .map(|host| PlannedHost { name: host.name.clone(), attachments: Vec::new(), routes: Vec::new() })
            .collect();
        for station in links.iter().flat_map(|link| &link.stations) {
            hosts[station.host].attachments.push((station.link, station.port));
        }
        let mut plan = Plan { hosts, links };
        routes::fill(&mut plan, scenario)?;
        Ok(plan)
    }

    /// The same, with everything that is for no link sent to this host.
    pub fn with_way_out(mut self, outside: usize) -> Plan {
        for host in (0..self.hosts.len()).filter(|host| *host != outside) {
            let Some((link, port)) = self.nearest(host, outside).map(|station| (station.link, station.port))
            else {
                continue;
            };
            let host = &mut self.hosts[host];
            let own = host.attachments.iter().find(|own| own.0 == link).map(|own| (*own, port));
            let known = host.routes.iter().find(|route| route.to == Target::Link(link));
            if let Some((out, next)) = own.or(known.map(|route| (route.out, route.next))) {
                host.routes.push(Route { to: Target::Elsewhere, out, next });
            }
        }
        self
    }

    /// A station of a link.
    ///
    /// # Panics
    /// If there is no such link or port.
    pub fn station(&self, (link, port): (usize, u16)) -> &Attachment {
        &self.links[link].stations[usize::from(port)]
    }

    /// The host's index.
    pub fn host(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }

    /// The attachment by whose address `from` reaches `to` over the fewest links; `None` if no links join them. From
    /// itself a host is reached at its first attachment.
    pub fn nearest(&self, from: usize, to: usize) -> Option<&Attachment> {
        let stations = self.hosts[to].attachments.iter();
        let hops = stations.filter_map(|at| Some((self.hops(from, at.0)?, *at)));
        // The first of several that are equally near.
        hops.min_by_key(|(hops, _)| *hops).map(|(_, at)| self.station(at))
    }

    /// The link by which a host passes on what is for an address, and the ports there; `None` if it is the host's own or leads
    /// nowhere.
    pub fn step_towards(&self, host: usize, address: IpAddr) -> Option<PathStep> {
        let stations = self.links.iter().flat_map(|link| &link.stations);
        let to = stations
            .clone()
            .find(|station| address == station.ipv4 || station.ipv6.is_some_and(|ipv6| address == ipv6))?;
        if to.host == host {
            return None;
        }
        let PlannedHost { attachments, routes, .. } = &self.hosts[host];
        let route =
            |target| routes.iter().find(|route| route.to == target).map(|route| (route.out, route.next));
        let own = attachments.iter().find(|own| own.0 == to.link).map(|own| (*own, to.port));
        let (out, next) =
            route(Target::Station(to.link, to.port)).or(own).or_else(|| route(Target::Link(to.link)))?;
        Some(PathStep { link: out.0, from_port: out.1, to_port: next })
    }

    /// The addresses of a target, IPv4 and IPv6.
    pub fn subnets(&self, to: Target) -> Vec<Subnet> {
        let subnet = |first: IpAddr, prefix| Subnet { first, prefix };
        match to {
            Target::Station(link, port) => {
                let station = self.station((link, port));
                let ipv6 = station.ipv6.map(|ipv6| subnet(ipv6.into(), 128));
                core::iter::once(subnet(station.ipv4.into(), 32)).chain(ipv6).collect()
            }
            Target::Elsewhere => {
                vec![subnet(Ipv4Addr::UNSPECIFIED.into(), 0), subnet(Ipv6Addr::UNSPECIFIED.into(), 0)]
            }
            Target::Link(link) => {
                // The station at port 0 is number 1; the link as a whole is number 0.
                let first = self.station((link, 0));
                let ipv4 = Ipv4Addr::from_bits(first.ipv4.to_bits() - 1);
                let ipv6 = first.ipv6.map(|ipv6| subnet(Ipv6Addr::from_bits(ipv6.to_bits() - 1).into(), 64));
                core::iter::once(subnet(ipv4.into(), 24)).chain(ipv6).collect()
            }
        }
    }

    /// The text of `/etc/hosts` on a host: every host by its name, at the address by which this host reaches it, and every
    /// end of a link as `link.host`.
    pub fn names(&self, on: usize) -> String {
        let mut text = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
        // Writing to a String cannot fail.
        let mut name = |station: &Attachment, name: &str| {
            let _ = writeln!(text, "{} {name}", station.ipv4);
            let _ = station.ipv6.map(|ipv6| writeln!(text, "{ipv6} {name}"));
        };
        for (index, host) in self.hosts.iter().enumerate() {
            if let Some(station) = self.nearest(on, index) {
                name(station, &host.name);
            }
        }
        for link in &self.links {
            for station in &link.stations {
                name(station, &format!("{}.{}", link.name, self.hosts[station.host].name));
            }
        }
        text
    }
}

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The first of them.
    pub first: IpAddr,
    /// How many bits they share.
    pub prefix: u8,
}

fn planned_link(scenario: &Scenario, index: usize) -> Result<PlannedLink, PlanError> {
    let link = &scenario.links[index];
    if link.between.len() > MOST_STATIONS {
        return Err(PlanError::Stations { link: link.name.clone(), stations: link.between.len() });
    }
    let mtus: Vec<u64> = link.directions.iter().map(|direction| direction.mtu.0.min(65_535)).collect();
    let has_ipv6 = mtus.iter().all(|mtu| *mtu >= u64::from(LEAST_IPV6_MTU));
    // Fewer than 512 links and 254 stations: checked above.
    let (high, low) = ((index >> 8) as u8, index as u8);
    let stations = (0u16..).zip(&link.between).zip(mtus).map(|((port, host), mtu)| {
        let number = port as u8 + 1;
        Attachment {
            link: index,
            port,
            host: *host,
            interface: interface_name(&link.name, index),
            // Locally administered; the rest tells link and port.
            mac: [0x02, b't', b'l', high, low, number],
            ipv4: Ipv4Addr::new(198, 18 + high, low, number),
            ipv6: has_ipv6.then(|| Ipv6Addr::new(0x2001, 2, 0, index as u16, 0, 0, 0, number.into())),
            mtu: mtu as u32,
        }
    });
    Ok(PlannedLink { name: link.name.clone(), stations: stations.collect() })
}

/// The link's name, if an interface may have it. `tl-` is the beginning of names that we make up.
fn interface_name(link: &str, index: usize) -> String {
    // A name in the file has letters, digits, `-` and `_`.
    let fits = link.len() <= LONGEST_INTERFACE
        && !link.starts_with("tl-")
        && !["lo", "all", "default"].contains(&link);
    if fits { link.to_owned() } else { format!("tl-{index}") }
}
