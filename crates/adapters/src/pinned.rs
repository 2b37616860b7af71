//! Certificates known by their keys instead of by authorities: one verifier for QUIC's conversations and for connections between
//! hosts.

use core::fmt;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// Accepts the certificates that `accepts` returns true for, from peers that prove by a signature of TLS 1.3 that they hold
/// the key. Names and dates do not matter.
pub struct Pinned<A> {
    algorithms: WebPkiSupportedAlgorithms,
    schemes: Vec<SignatureScheme>,
    accepts: A,
}

impl<A: Fn(&CertificateDer<'_>) -> Result<bool, Error>> Pinned<A> {
    /// A verifier of signatures by these algorithms, which offers all of their schemes.
    pub fn new(algorithms: WebPkiSupportedAlgorithms, accepts: A) -> Pinned<A> {
        Pinned { algorithms, schemes: algorithms.supported_schemes(), accepts }
    }

    /// The same, which offers Ed25519 only.
    #[must_use]
    pub fn ed25519_only(self) -> Pinned<A> {
        Pinned { schemes: vec![SignatureScheme::ED25519], ..self }
    }

    fn verify(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        if (self.accepts)(certificate)? {
            Ok(())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }
}

impl<A> fmt::Debug for Pinned<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").finish_non_exhaustive()
    }
}

/// Both verifiers have these methods, with the same signatures.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _certificate: &CertificateDer<'_>,
            _signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(rustls::PeerIncompatible::Tls12NotOffered.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.verify_signature(message, certificate, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.schemes.clone()
        }
    };
}

impl<A> ServerCertVerifier for Pinned<A>
where
    A: Fn(&CertificateDer<'_>) -> Result<bool, Error> + Send + Sync,
{
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(certificate).map(|()| ServerCertVerified::assertion())
    }

    signatures!();
}

impl<A> ClientCertVerifier for Pinned<A>
where
    A: Fn(&CertificateDer<'_>) -> Result<bool, Error> + Send + Sync,
{
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(certificate).map(|()| ClientCertVerified::assertion())
    }

    signatures!();
}
