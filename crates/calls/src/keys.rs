//! The keys of this host for sessions: its own, and those of hosts that it has paired with.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use trunkline_core::Duration;
use trunkline_peer::{Fingerprint, Identity, Pairing, PairingCode, Peer, PeerError, Peers, Service};

use crate::client::DEFAULT_PORT;

/// The service at the port of sessions.
pub static SESSIONS: Service = Service {
    what: "server",
    port: DEFAULT_PORT,
    run: "`trunkline reflect` or `trunkline receive`",
    pair: "`--pair` or `trunkline peer pair`",
    log: "its terminal",
    forget: "`trunkline peer forget NAME`",
};

/// The keys of this host for sessions, in a folder:
///
/// ```text
/// key.pem               the key of this host
/// pairing               the pairing code that is open
/// clients/NAME.toml     hosts that may open sessions here
/// servers/NAME.toml     servers that this host has paired with
/// ```
///
/// All files are read when they are needed, so that what another process adds or removes counts at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    folder: PathBuf,
    name: String,
}

impl Keys {
    /// The keys in this folder, of a host that calls itself `name`. Nothing is made yet.
    pub fn new(folder: impl Into<PathBuf>, name: impl Into<String>) -> Keys {
        Keys { folder: folder.into(), name: name.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name of this host, as others see it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key of this host, which is made if there is none.
    ///
    /// # Errors
    /// If the folder cannot be used, or the key is damaged or readable by others.
    pub fn identity(&self) -> Result<Identity, PeerError> {
        Identity::open(&self.folder)
    }

    /// Hosts that may open sessions here.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn clients(&self) -> Result<Peers, PeerError> {
        Peers::open(&self.folder.join("clients"))
    }

    /// Servers that this host has paired with.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn servers(&self) -> Result<Peers, PeerError> {
        Peers::open(&self.folder.join("servers"))
    }

    /// True if this host has a key. Without one, nobody has paired with it.
    pub fn exist(&self) -> bool {
        self.folder.join("key.pem").exists()
    }

    /// Opens pairing for one client, and returns the code; an earlier code is void.
    ///
    /// # Errors
    /// If nothing can be written to the folder.
    pub fn begin(&self) -> Result<PairingCode, PeerError> {
        let identity = self.identity()?;
        self.pairing()?.begin(&identity.fingerprint(), None, Timestamp::now())
    }

    /// Pairs with a server, with the code that is shown there.
    ///
    /// # Errors
    /// If the server cannot be reached, is another one, or refuses; or if its key cannot be kept.
    pub fn enrol(&self, server: &str, code: &PairingCode, patience: Duration) -> Result<Peer, PeerError> {
        let (identity, servers) = (self.identity()?, self.servers()?);
        trunkline_peer::enrol(&SESSIONS, server, code, (&identity, &self.name), &servers, patience)
    }

    pub(crate) fn pairing(&self) -> Result<Pairing, PeerError> {
        Pairing::open(&SESSIONS, &self.folder)
    }

    /// The client with this key.
    pub(crate) fn client(&self, key: &Fingerprint) -> Result<Option<Peer>, PeerError> {
        if self.exist() { self.clients()?.find(key) } else { Ok(None) }
    }

    /// The server that this host has paired with under this name, or at this address.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(crate) fn server(&self, name: &str) -> Result<Option<Peer>, PeerError> {
        if !self.exist() {
            return Ok(None);
        }
        let mut servers = self.servers()?.list()?;
        let is_meant = |peer: &Peer| {
            peer.name == name
                || peer.address.as_deref().is_some_and(|address| with_port(address) == with_port(name))
        };
        let found = servers.iter().position(is_meant);
        Ok(found.map(|place| servers.swap_remove(place)))
    }
}

/// An address with its port, without resolving it.
fn with_port(address: &str) -> String {
    if let Ok(ip) = address.trim_matches(['[', ']']).parse::<std::net::IpAddr>() {
        return std::net::SocketAddr::new(ip, DEFAULT_PORT).to_string();
    }
    match address.rsplit_once(':') {
        Some(_) => address.to_ascii_lowercase(),
        None => format!("{}:{DEFAULT_PORT}", address.to_ascii_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_compared_with_their_ports() {
        for (one, other) in [
            ("192.0.2.7", "192.0.2.7:4780"),
            ("2001:db8::1", "[2001:db8::1]:4780"),
            ("[2001:db8::1]", "2001:db8:0::1"),
            ("Studio.example", "studio.example:4780"),
        ] {
            assert_eq!(with_port(one), with_port(other));
        }
        assert_ne!(with_port("192.0.2.7"), with_port("192.0.2.7:4781"));
    }
}
