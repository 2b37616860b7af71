//! The addresses that a server serves.

use core::fmt;
use std::net::{IpAddr, SocketAddr};

use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use trunkline_io::networks::Network;

/// The addresses that a server serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Peers {
    /// This host, private networks, link-local addresses, and the networks of this host's interfaces.
    #[default]
    Near,
    /// These networks.
    In(Vec<Network>),
    /// Every address.
    All,
}

impl Peers {
    /// Whether a peer with this address is served.
    pub fn include(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let within = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
        match self {
            Peers::Near => {
                let is_local = match address {
                    IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
                    IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
                };
                is_local || within(&Network::PRIVATE) || within(&own_networks())
            }
            Peers::In(networks) => within(networks),
            Peers::All => true,
        }
    }
}

impl fmt::Display for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peers::Near => f.write_str("private networks and the networks of its own interfaces"),
            Peers::In(networks) => {
                let networks: Vec<String> = networks.iter().map(Network::to_string).collect();
                f.write_str(&networks.join(", "))
            }
            Peers::All => f.write_str("every address"),
        }
    }
}

/// The networks that this host's interfaces are in. They may change while a server runs.
fn own_networks() -> Vec<Network> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return Vec::new() };
    let shared = interfaces.filter(|interface| !interface.flags.contains(InterfaceFlags::IFF_POINTOPOINT));
    shared.filter_map(|interface| network(ip(&interface.address?)?, ip(&interface.netmask?)?)).collect()
}

/// The network of an address with a mask; none if the mask leaves every address.
fn network(address: IpAddr, mask: IpAddr) -> Option<Network> {
    let prefix = match mask {
        IpAddr::V4(mask) => mask.to_bits().leading_ones(),
        IpAddr::V6(mask) => mask.to_bits().leading_ones(),
    };
    let prefix = u8::try_from(prefix).ok()?;
    (prefix > 0).then(|| Network::around(address, prefix))
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| address.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|address| address.ip().into()))
}

/// The refusal of a peer that is not served.
pub(super) fn refusal(peers: &Peers, from: SocketAddr) -> String {
    let from = from.ip().to_canonical();
    format!(
        "it serves {peers}, not {from}; on its host, `--allow {from}` lets this address in, and `--key-file FILE` whoever has \
         the key"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_neighbourhood_is_served_and_the_internet_is_not() {
        for near in [
            "127.0.0.1",
            "192.168.1.7",
            "10.1.2.3",
            "169.254.3.4",
            "::1",
            "fe80::1",
            "fd00::7",
            "::ffff:10.0.0.1",
        ] {
            assert!(Peers::Near.include(address(near)), "{near}");
        }
        for far in ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(!Peers::Near.include(address(far)), "{far}");
            assert!(Peers::All.include(address(far)), "{far}");
        }
        let listed = Peers::In(vec!["192.0.2.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()]);
        for (text, served) in
            [("192.0.2.9", true), ("192.0.3.1", false), ("2001:db8::1", true), ("127.0.0.1", false)]
        {
            assert_eq!(listed.include(address(text)), served, "{text}");
        }
    }

    #[test]
    fn a_mask_makes_a_network() {
        let of = |own: &str, mask: &str| network(address(own), address(mask));
        let public = of("203.0.113.9", "255.255.255.0").unwrap();
        assert!(public.contains(address("203.0.113.200")) && !public.contains(address("203.0.114.1")));
        let v6 = of("2001:db8:0:7::5", "ffff:ffff:ffff:ffff::").unwrap();
        assert!(v6.contains(address("2001:db8:0:7::ffff")) && !v6.contains(address("2001:db8:0:8::1")));
        assert_eq!(of("203.0.113.9", "0.0.0.0"), None);
        // Loopback is an interface of every host.
        assert!(own_networks().iter().any(|network| network.contains(address("127.0.0.1"))));
    }
}
