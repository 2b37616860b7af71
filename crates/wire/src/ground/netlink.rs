//! Interfaces, addresses and routes of the network namespace that the calling thread is in (rtnetlink(7)).

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourHeader, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::plan::Subnet;

const CREATE: u16 = NLM_F_CREATE | NLM_F_EXCL;

/// A conversation with the kernel about one network namespace.
pub(super) struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// Opens one about the namespace that the calling thread is in; it stays with it.
    pub(super) fn open() -> io::Result<Netlink> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket })
    }

    /// The number of an interface.
    pub(super) fn index(&self, name: &str) -> io::Result<u32> {
        nix::net::if_::if_nametoindex(name).map_err(io::Error::from)
    }

    /// Makes a pair of virtual Ethernet interfaces, the second of them in another namespace.
    pub(super) fn add_pair(
        &self,
        (name, mac): (&str, [u8; 6]),
        (peer, there): (&str, BorrowedFd<'_>),
    ) -> io::Result<()> {
        let mut other = LinkMessage::default();
        other.attributes =
            vec![LinkAttribute::IfName(peer.to_owned()), LinkAttribute::NetNsFd(there.as_raw_fd())];
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::Address(mac.to_vec()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
            ]),
        ];
        self.ask(RouteNetlinkMessage::NewLink(link), CREATE)
    }

    /// Switches the interface on.
    pub(super) fn set_up(&self, index: u32) -> io::Result<()> {
        self.change(index, Vec::new())
    }

    /// Sets the largest packet and how many packets may wait for whoever reads the other side, and switches the interface
    /// on.
    pub(super) fn set_up_with(&self, index: u32, mtu: u32, queue: u32) -> io::Result<()> {
        self.change(index, vec![LinkAttribute::Mtu(mtu), LinkAttribute::TxQueueLen(queue)])
    }

    fn change(&self, index: u32, attributes: Vec<LinkAttribute>) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        link.attributes = attributes;
        self.ask(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Gives an interface an address, at once: nobody else can have it (no duplicate address detection); with or without a
    /// route to those of the same prefix.
    pub(super) fn add_address(
        &self,
        index: u32,
        address: IpAddr,
        prefix: u8,
        with_route: bool,
    ) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.index = index;
        message.header.scope = AddressScope::Universe;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if !with_route {
            message
                .attributes
                .push(AddressAttribute::Flags(AddressFlags::Nodad | AddressFlags::Noprefixroute));
        }
        self.ask(RouteNetlinkMessage::NewAddress(message), CREATE)
    }

    /// Records the hardware address behind an address for good: the kernel does not ask for it.
    pub(super) fn add_neighbour(&self, index: u32, address: IpAddr, mac: [u8; 6]) -> io::Result<()> {
        let destination = match address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        };
        let mut message = NeighbourMessage::default();
        message.header = NeighbourHeader {
            family: family(address),
            ifindex: index,
            state: NeighbourState::Permanent,
            kind: RouteType::Unspec,
            ..NeighbourHeader::default()
        };
        message.attributes = vec![
            NeighbourAttribute::Destination(destination),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        self.ask(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Sends what is for a subnet over an interface, to a gateway or at once, in packets of at most `mtu` bytes if that is
    /// less than the interface takes.
    pub(super) fn add_route(
        &self,
        to: Subnet,
        gateway: Option<IpAddr>,
        index: u32,
        mtu: Option<u32>,
    ) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(to.first),
            destination_prefix_length: to.prefix,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: if gateway.is_some() { RouteScope::Universe } else { RouteScope::Link },
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes =
            vec![RouteAttribute::Destination(RouteAddress::from(to.first)), RouteAttribute::Oif(index)];
        message
            .attributes
            .extend(gateway.map(|gateway| RouteAttribute::Gateway(RouteAddress::from(gateway))));
        message.attributes.extend(mtu.map(|mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)])));
        self.ask(RouteNetlinkMessage::NewRoute(message), CREATE)
    }

    /// Sends a request and waits for the kernel's answer, which comes at once.
    fn ask(&self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            NetlinkPayload::Error(_) => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "unexpected reply from the kernel")),
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
