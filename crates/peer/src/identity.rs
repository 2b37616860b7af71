//! Who a host or a controller is.

use core::fmt;
use std::path::Path;

use data_encoding::BASE64;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use crate::error::PeerError;
use crate::files;
use crate::fingerprint::Fingerprint;

/// Who a host or a controller is: an Ed25519 key (RFC 8410), made once and kept in a folder, with a certificate signed by
/// itself. Nobody asks what the certificate says; others know the key by its [`Fingerprint`].
pub struct Identity {
    key: PrivatePkcs8KeyDer<'static>,
    certificate: CertificateDer<'static>,
    fingerprint: Fingerprint,
}

/// The name in every certificate. It stands for nothing: what counts is the key.
pub(crate) const NAME: &str = "trunkline";

/// The file of the key within the folder.
const FILE: &str = "key.pem";

const ADVICE: &str = "restore it from a backup, or delete it to create a new key, and enrol again";

impl Identity {
    /// The identity kept in this folder; where there is none, one is made. The file `key.pem` (PKCS #8) is readable by its
    /// owner only, and is refused if it is not.
    ///
    /// # Errors
    /// If the folder cannot be used, or its key is damaged or readable by others.
    pub fn open(folder: &Path) -> Result<Identity, PeerError> {
        let path = folder.join(FILE);
        loop {
            if let Some(text) = files::read(&path)? {
                files::require_private(&path)?;
                let damaged = |reason: String| PeerError::Damaged {
                    path: path.clone(),
                    reason,
                    advice: ADVICE.to_owned(),
                };
                let key = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes())
                    .map_err(|_| damaged("it is not a private key in PEM format (PKCS #8)".to_owned()))?;
                return Identity::of_key(key)
                    .map_err(|error| damaged(format!("it is not an Ed25519 key: {error}")));
            }
            let made = Identity::generate()?;
            files::make_folder(folder)?;
            // Whoever was first has made the key of this folder.
            if files::write_new(&path, &made.pem())? {
                return Ok(made);
            }
        }
    }

    /// An identity that is kept nowhere.
    ///
    /// # Errors
    /// If the system provides no entropy.
    pub fn generate() -> Result<Identity, PeerError> {
        let pair = KeyPair::generate_for(&PKCS_ED25519).map_err(cryptography)?;
        Identity::of_key(PrivatePkcs8KeyDer::from(pair.serialize_der())).map_err(cryptography)
    }

    /// By what others know it.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn of_key(key: PrivatePkcs8KeyDer<'static>) -> Result<Identity, rcgen::Error> {
        let pair = KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ED25519)?;
        let mut parameters = CertificateParams::new([NAME.to_owned()])?;
        // The same key gives the same certificate: there is nothing else to keep.
        parameters.serial_number = Some(SerialNumber::from(1));
        let certificate = CertificateDer::from(parameters.self_signed(&pair)?);
        let fingerprint =
            Fingerprint::of_certificate(&certificate).map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        Ok(Identity { key, certificate, fingerprint })
    }

    fn pem(&self) -> String {
        let key = BASE64.encode(self.key.secret_pkcs8_der());
        let lines = key.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
        format!("-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n")
    }

    pub(crate) fn key(&self) -> PrivatePkcs8KeyDer<'static> {
        self.key.clone_key()
    }

    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.fingerprint).finish()
    }
}

fn cryptography(error: rcgen::Error) -> PeerError {
    PeerError::Cryptography(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn an_identity_stays() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("identity");
        let made = Identity::open(&folder).unwrap();
        let found = Identity::open(&folder).unwrap();
        assert_eq!(made.fingerprint(), found.fingerprint());
        assert_eq!(made.certificate(), found.certificate());
        assert_eq!(fs::metadata(folder.join(FILE)).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        assert_ne!(Identity::generate().unwrap().fingerprint(), made.fingerprint());
    }

    #[test]
    fn nobody_prints_a_key() {
        let identity = Identity::generate().unwrap();
        assert_eq!(format!("{identity:?}"), format!("Identity(Fingerprint({}))", identity.fingerprint()));
    }

    #[test]
    fn processes_that_begin_at_once_agree() {
        let home = tempfile::tempdir().unwrap();
        let open = || Identity::open(home.path()).unwrap().fingerprint();
        let all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(all.iter().all(|one| *one == open()), "{all:?}");
    }

    #[test]
    fn a_damaged_key_says_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        Identity::open(home.path()).unwrap();
        let path = home.path().join(FILE);
        let whole = fs::read_to_string(&path).unwrap();
        for text in [String::new(), whole[..60].to_owned(), whole.replacen('M', "N", 1), "\0".repeat(100)] {
            fs::write(&path, text).unwrap();
            let error = Identity::open(home.path()).unwrap_err().to_string();
            assert!(error.contains("key.pem is damaged: ") && error.contains("enrol again"), "{error}");
        }
    }
}
