//! The addresses that a server serves.

use core::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use trunkline_io::networks::{self, Network};

/// The addresses that a server serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Peers {
    /// This host, private networks (RFC 1918, RFC 4193), link-local addresses, the shared space of RFC 6598 (CGNAT, overlay
    /// networks), and the spaces of RFC 2544 and RFC 5180, which wires have. The Internet routes none of them. Also the IPv6
    /// networks in which this host is when a peer connects: a LAN's addresses may be global.
    #[default]
    Near,
    /// These networks.
    In(Vec<Network>),
    /// Every address.
    All,
}

impl Peers {
    /// True if a peer with this address is served.
    pub fn include(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let within = |networks: &[Network]| networks.iter().any(|network| network.contains(address));
        match self {
            Peers::Near => {
                let is_local = match address {
                    IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
                    IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
                };
                let wires = [
                    Network::around(Ipv4Addr::new(198, 18, 0, 0).into(), 15),
                    Network::around(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0).into(), 48),
                ];
                // Of a host that does not list its interfaces only the other networks are known.
                is_local
                    || within(&Network::PRIVATE)
                    || within(&wires)
                    || within(&networks::own().unwrap_or_default())
            }
            Peers::In(networks) => within(networks),
            Peers::All => true,
        }
    }
}

impl fmt::Display for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peers::Near => {
                f.write_str("this host, its IPv6 networks, and private, link-local and CGNAT networks")
            }
            Peers::In(networks) => {
                let networks: Vec<String> = networks.iter().map(Network::to_string).collect();
                f.write_str(&networks.join(", "))
            }
            Peers::All => f.write_str("every address"),
        }
    }
}

/// The refusal of a peer that is not served.
pub(super) fn refusal(peers: &Peers, from: SocketAddr) -> String {
    let from = from.ip().to_canonical();
    format!(
        "it serves {peers}, not {from}; to let this host in, pair with it (`--pair`), or start it with `--allow {from}`, or \
         with `--key-file FILE` at both ends"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn private_networks_are_served_and_the_internet_is_not() {
        for near in [
            "127.0.0.1",
            "192.168.1.7",
            "10.1.2.3",
            "169.254.3.4",
            "::1",
            "fe80::1",
            "fd00::7",
            "::ffff:10.0.0.1",
            "172.31.255.255",
            "100.127.0.1",
            "198.19.0.1",
            "2001:2::1",
        ] {
            assert!(Peers::Near.include(address(near)), "{near}");
        }
        for far in [
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "198.20.0.1",
            "203.0.113.9",
            "2001:db8::1",
            "2001:2:1::1",
            "::ffff:8.8.8.8",
        ] {
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
}
