//! The transports that are measured.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// A transport. Of two that do equally well the one that stands first here is recommended: it asks less of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// UDP.
    Udp,
    /// UDP-Lite.
    UdpLite,
    /// DCCP, which is UDP with congestion control.
    Dccp,
    /// TCP.
    Tcp,
    /// SCTP.
    Sctp,
    /// XTP.
    Xtp,
    /// QUIC.
    Quic,
    /// URP.
    Urp,
    /// MPTCP.
    Mptcp,
}

/// Someone asked for a transport that is not measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot measure transport `{0}`; expected one of {names}", names = names())]
pub struct UnknownTransport(String);

impl Transport {
    /// All of them.
    pub const ALL: [Transport; 9] = [
        Transport::Udp,
        Transport::UdpLite,
        Transport::Dccp,
        Transport::Tcp,
        Transport::Sctp,
        Transport::Xtp,
        Transport::Quic,
        Transport::Urp,
        Transport::Mptcp,
    ];

    /// Its name, as in experiment files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::UdpLite => "udp-lite",
            Transport::Dccp => "dccp",
            Transport::Tcp => "tcp",
            Transport::Sctp => "sctp",
            Transport::Xtp => "xtp",
            Transport::Quic => "quic",
            Transport::Urp => "urp",
            Transport::Mptcp => "mptcp",
        }
    }

    /// Whether it repeats what is lost until all has arrived.
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Transport::Udp | Transport::UdpLite | Transport::Dccp)
    }

    /// Whether networks treat both alike.
    pub fn is_kin_of(self, other: Transport) -> bool {
        let plain = |transport| if transport == Transport::UdpLite { Transport::Udp } else { transport };
        plain(self) == plain(other)
    }

    /// Bytes in front of what the session sends in a packet of its own, from the IPv4 header on. Where `live` carries a
    /// protocol over UDP, the UDP header is counted.
    pub const fn headers(self) -> u32 {
        const IP: u32 = 20;
        const UDP: u32 = 8;
        match self {
            Transport::Udp | Transport::UdpLite => IP + UDP,
            // Generic header with 48-bit numbers and the acknowledgement's (RFC 4340 sections 5.1, 5.3), over UDP (RFC 6773).
            Transport::Dccp => IP + UDP + 24,
            // With time stamps (RFC 7323).
            Transport::Tcp => IP + 32,
            // Common header and a DATA chunk (RFC 9260), over UDP (RFC 6951).
            Transport::Sctp => IP + UDP + 12 + 16,
            // The fixed header of XTP 4.0 and the data segment's.
            Transport::Xtp => IP + UDP + 40,
            // Short header with an 8-byte connection ID, a STREAM frame, and the tag of the cipher (RFC 9000, RFC 9001).
            Transport::Quic => IP + UDP + 11 + 8 + 16,
            // An envelope around every character frame.
            Transport::Urp => IP + UDP + 8,
            // TCP's and the data sequence signal (RFC 8684 section 3.3).
            Transport::Mptcp => IP + 32 + 20,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Transport {
    type Err = UnknownTransport;

    fn from_str(text: &str) -> Result<Transport, UnknownTransport> {
        Transport::ALL
            .into_iter()
            .find(|transport| transport.name() == text.trim())
            .ok_or_else(|| UnknownTransport(text.trim().to_owned()))
    }
}

fn names() -> String {
    Transport::ALL.map(|transport| format!("`{transport}`")).join(", ")
}
