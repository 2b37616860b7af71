//! Access to the server.
//!
//! - Everybody shows a token: a browser a cookie that it got for a link ([`tokens`]), a program an `Authorization` header.
//!   On a loopback address the owner may waive it for all users of this machine.
//! - On a loopback address browsers bring two dangers: a page of another site that sends requests here, and one whose name
//!   was made to lead here (DNS rebinding). So requests from other sites, and under names that are not this machine's, are
//!   refused.
//! - On other addresses nothing is served without TLS, here or in a proxy.

mod guard;
mod headers;
mod tls;
pub(crate) mod tokens;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use guard::{SESSION, cookie_of, guard};
pub(crate) use headers::{headers, report_policy};
use tokens::Tokens;

use crate::error::ServeError;

/// The protocol by which browsers reach the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// HTTP.
    Plain,
    /// HTTPS with a certificate that is made once and signs itself.
    OwnTls,
    /// HTTPS with this certificate.
    Tls {
        /// A PEM file: the certificate, and behind it those that signed it.
        certificate: PathBuf,
        /// A PEM file.
        key: PathBuf,
    },
    /// HTTP from a proxy on a network of its own, which browsers reach by HTTPS under this address:
    /// `https://trunkline.example.org`.
    BehindProxy(String),
}

/// Access to the server.
#[derive(Debug)]
pub(crate) struct Access {
    /// Those who may log in; `None` where nobody has to.
    pub(crate) tokens: Option<Tokens>,
    /// The server's own address, where names of other machines are refused.
    local: Option<SocketAddr>,
    /// The one origin that a proxy shows.
    origin: Option<String>,
    /// True if browsers use HTTPS.
    pub(crate) is_encrypted: bool,
    /// True if its certificate is signed by an authority.
    is_vouched: bool,
}

impl Access {
    /// What holds for a server that listens at `address`.
    ///
    /// # Errors
    /// If it would be open to other machines without TLS, or the proxy's address is none.
    pub(crate) fn new(
        address: SocketAddr,
        transport: &Transport,
        authenticate: bool,
        tokens: &Path,
    ) -> Result<Access, ServeError> {
        let is_local = address.ip().to_canonical().is_loopback();
        if !is_local && *transport == Transport::Plain {
            return Err(ServeError::Open(address));
        }
        let origin = match transport {
            Transport::BehindProxy(url) => Some(origin(url)?),
            _ => None,
        };
        // A proxy on this machine lets others in.
        let authenticate = authenticate || !is_local || origin.is_some();
        Ok(Access {
            tokens: authenticate.then(|| Tokens::open(tokens)).transpose()?,
            local: (is_local && origin.is_none()).then_some(address),
            origin,
            is_encrypted: *transport != Transport::Plain,
            is_vouched: matches!(transport, Transport::Tls { .. } | Transport::BehindProxy(_)),
        })
    }

    /// Whether everybody on this machine, and nobody else, may use it.
    pub(crate) fn is_open(&self) -> bool {
        self.tokens.is_none()
    }
}

/// What encrypts connections, if anything does.
pub(crate) fn acceptor(
    transport: &Transport,
    address: SocketAddr,
    folder: &Path,
) -> Result<Option<Arc<rustls::ServerConfig>>, ServeError> {
    match transport {
        Transport::Plain | Transport::BehindProxy(_) => Ok(None),
        Transport::OwnTls => tls::own(folder, address).map(Some),
        Transport::Tls { certificate, key } => tls::from_files(certificate, key).map(Some),
    }
}

/// `https://host[:port]` of an address.
fn origin(url: &str) -> Result<String, ServeError> {
    let origin = url.strip_suffix('/').unwrap_or(url).to_ascii_lowercase();
    let is_origin = origin.strip_prefix("https://").is_some_and(|host| {
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.:[]".contains(&b))
    });
    is_origin.then_some(origin).ok_or_else(|| ServeError::Proxy(url.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_address_is_https_and_a_host() {
        assert_eq!(origin("https://Trunkline.example.org/").unwrap(), "https://trunkline.example.org");
        assert_eq!(origin("https://10.0.0.1:8443").unwrap(), "https://10.0.0.1:8443");
        for wrong in ["http://a.example", "https://", "https://a.example/below", "a.example", "https://a b"] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_machines_are_served_with_tls_and_tokens_only() {
        let folder = tempfile::tempdir().unwrap();
        let beyond = "0.0.0.0:4780".parse().unwrap();
        let local = "127.0.0.1:4780".parse().unwrap();
        let access = |address, transport: &Transport| Access::new(address, transport, false, folder.path());
        assert!(matches!(access(beyond, &Transport::Plain), Err(ServeError::Open(_))));
        assert!(access(beyond, &Transport::OwnTls).unwrap().tokens.is_some());
        assert!(access(local, &Transport::Plain).unwrap().is_open());
        let proxy = Transport::BehindProxy("https://trunkline.example.org".to_owned());
        assert!(!access(local, &proxy).unwrap().is_open());
        assert!(!Access::new(local, &Transport::Plain, true, folder.path()).unwrap().is_open());
    }
}
