//! Ranges of addresses.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use nix::net::if_::InterfaceFlags;
use serde::{Deserialize, Serialize};

/// A range of addresses: `10.0.0.0/8`, or a single one: `192.0.2.7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Private networks: RFC 1918, RFC 4193, and the shared space of RFC 6598, which overlay networks use.
    pub const PRIVATE: [Network; 5] = [
        Network::v4(Ipv4Addr::new(10, 0, 0, 0), 8),
        Network::v4(Ipv4Addr::new(172, 16, 0, 0), 12),
        Network::v4(Ipv4Addr::new(192, 168, 0, 0), 16),
        Network::v4(Ipv4Addr::new(100, 64, 0, 0), 10),
        Network { address: IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), prefix: 7 },
    ];

    const fn v4(address: Ipv4Addr, prefix: u8) -> Network {
        Network { address: IpAddr::V4(address), prefix }
    }

    /// The network of this address with a prefix of this length, whatever the bits behind it.
    pub fn around(address: IpAddr, prefix: u8) -> Network {
        let prefix = prefix.min(if address.is_ipv4() { 32 } else { 128 });
        Network { address: start(address, prefix), prefix }
    }

    /// True if the address belongs to it. An IPv4 address that stands in an IPv6 one is what it stands for.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= u32::from(self.prefix)
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;
    fn from_str(text: &str) -> Result<Network, String> {
        let expected = "expected an address such as `192.0.2.7` or a range of them such as `10.0.0.0/8`";
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr =
            address.parse().map_err(|_| format!("`{text}` is not an address; {expected}"))?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix.map(str::parse::<u8>) {
            None => longest,
            Some(Ok(prefix)) if prefix <= longest => prefix,
            Some(_) => {
                return Err(format!("`{text}`: the length behind the `/` must be from 0 to {longest}"));
            }
        };
        let network = Network { address, prefix };
        let start = start(address, prefix);
        // Most likely one of the two was mistyped, and which one nobody can know.
        if start != address {
            return Err(format!("`{text}` has bits behind its prefix; did you mean `{start}/{prefix}`?"));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = if self.address.is_ipv4() { 32 } else { 128 };
        if self.prefix == longest {
            return write!(f, "{}", self.address);
        }
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl TryFrom<String> for Network {
    type Error = String;
    fn try_from(text: String) -> Result<Network, String> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> String {
        network.to_string()
    }
}

/// The addresses that this host has now, each with its network if that is a LAN's of IPv6: a broadcast interface that is up,
/// and a prefix of 64 bits or more. Such networks have global addresses; those of IPv4 with global addresses are mostly a
/// provider's, with strangers in them.
///
/// # Errors
/// If the system does not list its interfaces.
pub fn own() -> io::Result<Vec<Network>> {
    let of_interface = |interface: nix::ifaddrs::InterfaceAddress| {
        if let Some(v4) = interface.address?.as_sockaddr_in() {
            return Some(Network::around(v4.ip().into(), 32));
        }
        let is_lan = interface.flags.contains(InterfaceFlags::IFF_UP | InterfaceFlags::IFF_BROADCAST);
        let prefix = interface.netmask?.as_sockaddr_in6()?.ip().to_bits().leading_ones() as u8;
        let prefix = if is_lan && prefix >= 64 { prefix } else { 128 };
        Some(Network::around(interface.address?.as_sockaddr_in6()?.ip().into(), prefix))
    };
    Ok(nix::ifaddrs::getifaddrs()?.filter_map(of_interface).collect())
}

/// True if this host has this address now; of a host that does not list its interfaces nothing is known.
pub fn is_own(address: IpAddr) -> bool {
    let of_interface = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| v4.ip().into());
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| v6.ip().into()))
    };
    let own = nix::ifaddrs::getifaddrs().into_iter().flatten().filter_map(of_interface);
    own.into_iter().any(|own: IpAddr| own == address.to_canonical())
}

/// The first address with the same prefix.
fn start(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}
