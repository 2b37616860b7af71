//! Where hosts and links are joined: interfaces, their addresses, and the routes over them.

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use nix::libc::{EACCES, ENODEV, ENOENT, ENOTTY, ENXIO};
use trunkline_io::interface::{self, TCP_OFFLOADS};
use trunkline_io::tun::Tun;

use super::namespace::Network;
use super::netlink::Netlink;
use super::settings;
use crate::device::{self, Device};
use crate::plan::{Attachment, Plan, PlannedLink, Target};

/// How many packets the kernel keeps for a relay that is late, where it keeps any.
const QUEUE: u32 = Tun::QUEUE as u32;

/// A TUN interface on the host, for a station to which packets of up to `largest` bytes come.
pub(super) fn tun(
    host: &Network,
    station: &Attachment,
    name: &str,
    largest: u32,
) -> io::Result<Box<dyn Device>> {
    inside(host, || {
        let device = device::open_tun(name, largest as usize).map_err(|error| match error.raw_os_error() {
            Some(ENOENT | ENODEV | ENXIO | ENOTTY | EACCES) => io::Error::new(
                error.kind(),
                format!("`/dev/net/tun` cannot be used ({error}); leave out `--devices tun`, or load the module `tun`"),
            ),
            _ => error,
        })?;
        set_up(station, name, station.mtu)?;
        Ok(device)
    })
}

/// A pair of Ethernet interfaces, one on the host and the relay's in the hub. Either drops what is larger than its own MTU
/// in both directions, so both have the link's largest.
pub(super) fn pair(
    host: &Network,
    hub: &Network,
    station: &Attachment,
    name: &str,
    largest: u32,
) -> io::Result<Box<dyn Device>> {
    let behind = format!("l{}p{}", station.link, station.port);
    inside(host, || {
        Netlink::open()?.add_pair((name, station.mac), (&behind, hub.descriptor()))?;
        interface::limit_offloads(name, &TCP_OFFLOADS)
    })?;
    let device = inside(hub, || {
        let netlink = Netlink::open()?;
        interface::limit_offloads(&behind, &TCP_OFFLOADS)?;
        netlink.set_up_with(netlink.index(&behind)?, largest, QUEUE)?;
        device::open_ring(&behind)
    })?;
    inside(host, || {
        set_up(station, name, largest)?;
        add_link_local(station, name)
    })?;
    Ok(device)
}

fn inside<T: Send>(network: &Network, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    network.run(work).map_err(io::Error::other)?
}

/// Gives the interface of a station, in the network of the calling thread, its addresses.
fn set_up(station: &Attachment, name: &str, mtu: u32) -> io::Result<()> {
    let netlink = Netlink::open()?;
    let index = netlink.index(name)?;
    settings::quieten(name);
    netlink.set_up_with(index, mtu, QUEUE)?;
    // Where the interface takes more than the station may send, the route says so: see `add_routes`.
    let with_route = station.mtu == mtu;
    netlink.add_address(index, station.ipv4.into(), 24, with_route)?;
    match station.ipv6.filter(|_| settings::has_ipv6()) {
        Some(ipv6) => netlink.add_address(index, ipv6.into(), 64, with_route),
        None => Ok(()),
    }
}

/// Gives an Ethernet interface, in the network of the calling thread, the address from which a host that forwards asks for
/// its neighbours (RFC 4861 section 7.2.2).
fn add_link_local(station: &Attachment, name: &str) -> io::Result<()> {
    if station.ipv6.is_none() || !settings::has_ipv6() {
        return Ok(());
    }
    let netlink = Netlink::open()?;
    netlink.add_address(netlink.index(name)?, link_local(station).into(), 64, true)
}

fn link_local(station: &Attachment) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, station.port + 1)
}

/// Records, on the Ethernet interface `name` in the network of the calling thread, the hardware addresses of the other
/// stations of its link. On a real network a host asks for those of its own segment only, which takes no time; across a link
/// the question would wait in its queue, take its delay, and be lost like any other packet.
pub(super) fn add_neighbours(link: &PlannedLink, own: &Attachment, name: &str) -> io::Result<()> {
    let netlink = Netlink::open()?;
    let index = netlink.index(name)?;
    let has_ipv6 = settings::has_ipv6();
    for station in link.stations.iter().filter(|station| station.port != own.port) {
        let ipv6 = station.ipv6.filter(|_| has_ipv6).map(|ipv6| [ipv6, link_local(station)]);
        let addresses = ipv6.into_iter().flatten().map(IpAddr::from);
        for address in core::iter::once(station.ipv4.into()).chain(addresses) {
            netlink.add_neighbour(index, address, station.mac)?;
        }
    }
    Ok(())
}

/// Gives the host, in the network of the calling thread, its routes. The kernel has made those to its own links, but for
/// links over which it gets larger packets than it may send. IPv6 goes beyond the links only if `beyond_ipv6`.
pub(super) fn add_routes(
    plan: &Plan,
    host: usize,
    beyond_ipv6: bool,
    name: impl Fn(&Attachment) -> String,
) -> io::Result<()> {
    let netlink = Netlink::open()?;
    let has_ipv6 = settings::has_ipv6();
    let interface = |station: &Attachment| -> io::Result<_> {
        let name = name(station);
        let mtu = Some(station.mtu)
            .filter(|mtu| interface::mtu(&name).is_ok_and(|largest| largest > *mtu as usize));
        Ok((netlink.index(&name)?, mtu))
    };
    for own in &plan.hosts[host].attachments {
        if let (index, Some(mtu)) = interface(plan.station(*own))? {
            for subnet in plan.subnets(Target::Link(own.0)) {
                if subnet.first.is_ipv4() || has_ipv6 {
                    netlink.add_route(subnet, None, index, Some(mtu))?;
                }
            }
        }
    }
    for route in &plan.hosts[host].routes {
        let (index, mtu) = interface(plan.station(route.out))?;
        let next = plan.station((route.out.0, route.next));
        for subnet in plan.subnets(route.to) {
            let gateway = match subnet.first {
                IpAddr::V4(_) => Some(IpAddr::from(next.ipv4)),
                IpAddr::V6(_) => next.ipv6.filter(|_| has_ipv6).map(IpAddr::from),
            };
            let is_open = route.to != Target::Elsewhere || subnet.first.is_ipv4() || beyond_ipv6;
            if gateway.is_some() && is_open {
                netlink.add_route(subnet, gateway, index, mtu)?;
            }
        }
    }
    Ok(())
}
