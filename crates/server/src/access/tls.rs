//! HTTPS.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::tokens::{make_private, write_private};
use crate::error::ServeError;

/// With a certificate and its key from PEM files.
pub(super) fn from_files(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, ServeError> {
    let wrong = |path: &Path, why: String| ServeError::Certificate { path: path.to_path_buf(), why };
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain =
        chain.map_err(|e| wrong(certificate, format!("it is not a certificate in PEM format ({e})")))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "it contains no certificate in PEM format".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|e| wrong(key, format!("it is not a private key in PEM format ({e})")))?;
    config(chain, private).map_err(|e| wrong(certificate, format!("{e} (its key is `{}`)", key.display())))
}

/// With a certificate for the names of this machine that signs itself, made once and kept in a folder.
pub(super) fn own(folder: &Path, address: SocketAddr) -> Result<Arc<ServerConfig>, ServeError> {
    let (key_file, certificate_file) = (folder.join("https-key.der"), folder.join("https-certificate.der"));
    if !key_file.exists() || !certificate_file.exists() {
        make_private(folder)?;
        let made =
            make(address).map_err(|e| ServeError::System(format!("a certificate cannot be made: {e}")))?;
        for (path, bytes) in [(&key_file, made.0), (&certificate_file, made.1)] {
            // One without the other is of no use.
            let _ = fs::remove_file(path);
            write_private(path, &bytes)?;
        }
    }
    let key = fs::read(&key_file).map_err(ServeError::file("read", &key_file))?;
    let certificate = fs::read(&certificate_file).map_err(ServeError::file("read", &certificate_file))?;
    config(vec![certificate.into()], PrivatePkcs8KeyDer::from(key).into()).map_err(|e| {
        ServeError::Certificate { path: certificate_file, why: format!("{e}; delete it to create a new one") }
    })
}

/// A key and a certificate of it.
fn make(address: SocketAddr) -> Result<(Vec<u8>, Vec<u8>), rcgen::Error> {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend(Some(host.trim().to_owned()).filter(|name| !name.is_empty()));
    names.extend(
        Some(address.ip()).filter(|ip| !ip.is_unspecified() && !ip.is_loopback()).map(|ip| ip.to_string()),
    );
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = CertificateParams::new(names)?.self_signed(&key)?;
    Ok((key.serialize_der(), certificate.der().to_vec()))
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
