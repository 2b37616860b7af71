//! The transports that are measured: those of the registry that have a place in the advice.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Serialize, Serializer};
use trunkline_experiment::TRANSPORTS;
use trunkline_transport::kind::{Advised, TransportKind};
use trunkline_transport::{tcp, udp};

/// A transport. Of two that do equally well, the smaller one is recommended: it asks less of the hosts.
#[derive(Clone, Copy)]
pub struct Transport {
    kind: &'static TransportKind,
    advised: Advised,
}

/// Someone asked for a transport that is not measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot measure transport `{0}`; expected one of {names}", names = names())]
pub struct UnknownTransport(String);

impl Transport {
    /// UDP.
    pub const UDP: Transport = Transport::known(&udp::KIND);
    /// TCP.
    pub const TCP: Transport = Transport::known(&tcp::KIND);

    const fn known(kind: &'static TransportKind) -> Transport {
        match Transport::of(kind) {
            Some(transport) => transport,
            None => panic!("UDP and TCP are measured"),
        }
    }

    /// The transport of this kind, if it is measured.
    pub const fn of(kind: &'static TransportKind) -> Option<Transport> {
        match kind.advised {
            Some(advised) => Some(Transport { kind, advised }),
            None => None,
        }
    }

    /// All of them.
    pub fn all() -> Vec<Transport> {
        let mut all: Vec<Transport> = TRANSPORTS.iter().filter_map(|kind| Transport::of(kind)).collect();
        all.sort();
        all
    }

    /// Its name, as in experiment files and on the command line.
    pub const fn name(self) -> &'static str {
        self.kind.name
    }

    /// True if it retransmits until everything has arrived.
    pub const fn is_reliable(self) -> bool {
        self.kind.features.reliable
    }

    /// True if networks treat both alike.
    pub fn is_kin_of(self, other: Transport) -> bool {
        self.advised.alike == other.advised.alike
    }

    /// Bytes of all headers of a packet, from the IPv4 header on; see [`Advised::headers`].
    pub const fn headers(self) -> u32 {
        self.advised.headers
    }

    /// Bytes that a session sends with each packet, beside these headers and that of the audio.
    pub const fn session(self) -> u32 {
        trunkline_calls::line::added(self.kind.features) as u32
    }

    fn key(self) -> (u8, &'static str) {
        (self.advised.rank, self.kind.name)
    }
}

impl PartialEq for Transport {
    fn eq(&self, other: &Transport) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Transport {}

impl PartialOrd for Transport {
    fn partial_cmp(&self, other: &Transport) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Transport {
    fn cmp(&self, other: &Transport) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Transport {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Serialize for Transport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
        let name = text.trim();
        let found = Transport::all().into_iter().find(|transport| transport.name() == name);
        found.ok_or_else(|| UnknownTransport(name.to_owned()))
    }
}

fn names() -> String {
    let names: Vec<String> = Transport::all().iter().map(|transport| format!("`{transport}`")).collect();
    names.join(", ")
}
