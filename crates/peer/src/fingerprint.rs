//! By what a key is known.

use core::fmt;
use core::str::FromStr;

use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use serde::{Deserialize, Serialize};

use crate::base32;

/// The SHA-256 of a public key (of its SubjectPublicKeyInfo, RFC 5280 section 4.1.2.7): 52 characters of base32 in groups
/// of four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint([u8; 32]);

/// A text that is no fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseFingerprintError {
    /// It holds a character that cannot be in one.
    #[error("a fingerprint has only letters and digits, not `{0}`")]
    Character(char),
    /// It is too short or too long.
    #[error("a fingerprint has 52 letters and digits, not {0}")]
    Length(usize),
    /// The last character says more than there can be.
    #[error("a fingerprint ends with 0 or G")]
    End,
}

/// Symbols of base32 for 256 bits.
const SYMBOLS: usize = 52;

impl Fingerprint {
    /// The fingerprint of the key of a certificate.
    pub(crate) fn of_certificate(certificate: &CertificateDer<'_>) -> Result<Fingerprint, rustls::Error> {
        let key = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
        Ok(Fingerprint::of_key(&key))
    }

    /// Of a public key.
    pub(crate) fn of_key(public_key_info: &[u8]) -> Fingerprint {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, public_key_info).as_ref());
        Fingerprint(bytes)
    }

    /// The first symbols of five bits: what stands for it in a pairing code.
    pub(crate) fn first(&self, symbols: usize) -> Vec<u8> {
        let mut all = base32::symbols(&self.0);
        all.truncate(symbols);
        all
    }

    /// The hash itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&base32::write(&base32::symbols(&self.0)))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Fingerprint, ParseFingerprintError> {
        let symbols = base32::read(text).map_err(ParseFingerprintError::Character)?;
        if symbols.len() != SYMBOLS {
            return Err(ParseFingerprintError::Length(symbols.len()));
        }
        let bytes = <[u8; 32]>::try_from(base32::bytes(&symbols))
            .map_err(|_| ParseFingerprintError::Length(symbols.len()))?;
        // 52 symbols hold four bits more than the hash.
        if symbols[SYMBOLS - 1] & 0b1111 != 0 {
            return Err(ParseFingerprintError::End);
        }
        Ok(Fingerprint(bytes))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = ParseFingerprintError;
    fn try_from(text: String) -> Result<Fingerprint, ParseFingerprintError> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        fingerprint.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_shown_is_read(bytes: [u8; 32]) {
            let fingerprint = Fingerprint(bytes);
            let shown = fingerprint.to_string();
            prop_assert_eq!(shown.len(), 64);
            prop_assert_eq!(shown.parse(), Ok(fingerprint));
            prop_assert_eq!(shown.to_lowercase().replace('-', " ").parse(), Ok(fingerprint));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9A-Za-z-]{0,80}") {
            if let Ok(fingerprint) = text.parse::<Fingerprint>() {
                prop_assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!("abc".parse::<Fingerprint>(), Err(ParseFingerprintError::Length(3)));
        assert_eq!("u".parse::<Fingerprint>(), Err(ParseFingerprintError::Character('u')));
        assert_eq!("z".repeat(52).parse::<Fingerprint>(), Err(ParseFingerprintError::End));
    }
}
