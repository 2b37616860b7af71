//! TLS 1.3 between two keys: no names, no dates, no authorities.

use core::fmt;
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
};

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
    let found = Arc::default();
    let pinned = Pinned { expected, found: Arc::clone(&found), provider: Arc::clone(&provider) };
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
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(refused)?
        .with_client_cert_verifier(Arc::new(Anybody { provider }))
        .with_single_cert(vec![identity.certificate()], identity.key().into())
        .map_err(refused)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(config)
}

/// Trusts one key, and has its holder prove by a signature that it is theirs.
#[derive(Debug)]
struct Pinned {
    expected: Expected,
    found: Arc<OnceLock<Fingerprint>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = Fingerprint::of_certificate(certificate)?;
        let _ = self.found.set(found);
        if self.expected.is(&found) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// Lets anybody in who proves by a signature that they hold a key; the caller judges whose it is.
#[derive(Debug)]
struct Anybody {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Anybody {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Fingerprint::of_certificate(certificate).map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

fn refused(error: impl fmt::Display) -> PeerError {
    PeerError::Cryptography(error.to_string())
}
