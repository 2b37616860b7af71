//! TLS 1.3 between two keys: no names, no dates, no authorities.

use core::fmt;
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, ServerConfig};
use trunkline_adapters::pinned::Pinned;

use crate::error::PeerError;
use crate::fingerprint::Fingerprint;
use crate::identity::Identity;

/// What is spoken (ALPN, RFC 7301), in all versions of the protocol.
pub(crate) const PROTOCOL: &[u8] = b"trunkline-agent";

/// Whom a connecting end talks with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// With this key.
    Key(Fingerprint),
    /// With the key whose fingerprint begins with these symbols of base32.
    Beginning(Vec<u8>),
}

impl Expected {
    fn is(&self, found: &Fingerprint) -> bool {
        match self {
            Expected::Key(key) => key == found,
            Expected::Beginning(symbols) => found.first(symbols.len()) == *symbols,
        }
    }
}

/// The TLS of a connecting end; after a handshake, `found` holds the key that answered.
pub(crate) fn client(
    identity: &Identity,
    expected: Expected,
) -> Result<(ClientConfig, Arc<OnceLock<Fingerprint>>), PeerError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let found: Arc<OnceLock<Fingerprint>> = Arc::default();
    let seen = Arc::clone(&found);
    let pinned = Pinned::new(provider.signature_verification_algorithms, move |certificate| {
        let key = Fingerprint::of_certificate(certificate)?;
        let _ = seen.set(key);
        Ok(expected.is(&key))
    })
    .ed25519_only();
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(refused)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_client_auth_cert(vec![identity.certificate()], identity.key().into())
        .map_err(refused)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok((config, found))
}

/// The TLS of a listening end. Sessions are not resumed: every connection proves both keys.
pub(crate) fn server(identity: &Identity) -> Result<ServerConfig, PeerError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // The caller judges whose key it is.
    let anybody = Pinned::new(provider.signature_verification_algorithms, |certificate| {
        Fingerprint::of_certificate(certificate).map(|_| true)
    })
    .ed25519_only();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(refused)?
        .with_client_cert_verifier(Arc::new(anybody))
        .with_single_cert(vec![identity.certificate()], identity.key().into())
        .map_err(refused)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

fn refused(error: impl fmt::Display) -> PeerError {
    PeerError::Cryptography(error.to_string())
}
