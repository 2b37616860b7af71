//! Who a listening end is, and how the other knows it: a certificate made on the fly, known by its fingerprint.

use core::fmt;
use std::sync::Arc;

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use ring::digest::{SHA256, digest};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::ring::kx_group::X25519;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::time_provider::TimeProvider;

use super::config::{Mode, QuicConfigError};
use crate::pinned::Pinned;

/// The name in every certificate. It stands for nothing: what counts is the fingerprint.
pub(super) const NAME: &str = "trunkline";

/// A certificate and its key.
///
/// Keys are Ed25519 (RFC 8410): keys, signatures and so certificates have one size, and packets of a handshake too.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl Identity {
    /// The identity of a secret: the same secret gives the same certificate. Over a real network the secret must be
    /// drawn from the system's entropy; in virtual time any will do.
    ///
    /// # Errors
    /// If the cryptography refuses, which no secret is known to cause.
    pub fn new(secret: [u8; 32]) -> Result<Identity, QuicConfigError> {
        // RFC 8410 section 7: a private key in PKCS #8 is this and the secret.
        const PREFIX: [u8; 16] =
            [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
        let key = PrivatePkcs8KeyDer::from([PREFIX.as_slice(), &secret].concat());
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ED25519).map_err(refused)?;
        let mut parameters = CertificateParams::new([NAME.to_owned()]).map_err(refused)?;
        // A serial number that is drawn begins with a zero now and then, and then the certificate is shorter.
        parameters.serial_number = Some(SerialNumber::from(1));
        let certificate = parameters.self_signed(&pair).map_err(refused)?;
        Ok(Identity { certificate: certificate.into(), key })
    }

    /// By what a connecting end knows it.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// The certificate (X.509 in DER), for programs that want it whole.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// The TLS of a listening end. Sessions are not resumed: every conversation shows the same handshake.
    pub(super) fn server(&self, mode: Mode) -> Result<QuicServerConfig, QuicConfigError> {
        let mut tls = rustls::ServerConfig::builder_with_details(Arc::new(provider()), Arc::new(NoClock))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(refused)?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key().into())
            .map_err(refused)?;
        tls.alpn_protocols = vec![protocol(mode)];
        tls.send_tls13_tickets = 0;
        tls.session_storage = Arc::new(NoServerSessionStorage {});
        QuicServerConfig::try_from(tls).map_err(refused)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.fingerprint()).finish()
    }
}

impl Fingerprint {
    fn of(certificate: &[u8]) -> Fingerprint {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, certificate).as_ref());
        Fingerprint(bytes)
    }

    /// The TLS of a connecting end that talks with the end of this fingerprint, and no other.
    pub(super) fn client(self, mode: Mode) -> Result<QuicClientConfig, QuicConfigError> {
        let provider = Arc::new(provider());
        // Names and dates do not matter: the certificate was made for this conversation.
        let pinned = Pinned::new(provider.signature_verification_algorithms, move |certificate| {
            Ok(Fingerprint::of(certificate) == self)
        });
        let mut tls = rustls::ClientConfig::builder_with_details(provider, Arc::new(NoClock))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(pinned))
            .with_no_client_auth();
        tls.alpn_protocols = vec![protocol(mode)];
        tls.resumption = rustls::client::Resumption::disabled();
        QuicClientConfig::try_from(tls).map_err(refused)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// Nothing here depends on the date, and a pure crate does not ask for it.
#[derive(Debug)]
struct NoClock;

impl TimeProvider for NoClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(core::time::Duration::ZERO))
    }
}

/// One cipher suite and one group: what is negotiated, and so the size of every packet, does not depend on the machine.
fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![X25519],
        ..rustls::crypto::ring::default_provider()
    }
}

/// What is spoken (ALPN, RFC 7301). Ends of different modes would not understand each other, and learn it in the handshake.
fn protocol(mode: Mode) -> Vec<u8> {
    format!("{NAME}-{}", mode.name()).into_bytes()
}

fn refused(error: impl fmt::Display) -> QuicConfigError {
    QuicConfigError::Cryptography(error.to_string())
}
