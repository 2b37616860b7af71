//! A key that both ends of a control connection have.
//!
//! The server sends a random number, the client answers with another one and a proof over both and its request, and the
//! server's welcome has a proof in return. The key itself is not sent. It shows who asks for a session and who grants it;
//! it encrypts nothing.

use core::fmt;

use ring::hmac;

/// A key that both ends have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SharedKey([u8; 32]);

/// The random numbers of both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nonces {
    pub(crate) server: Nonce,
    pub(crate) client: Nonce,
}

pub(crate) type Nonce = [u8; 32];
pub(crate) type Proof = [u8; 32];

impl SharedKey {
    /// The least length of a key.
    pub const SHORTEST: usize = 16;

    /// The key that a text or a file contains; white space around it does not count.
    ///
    /// # Errors
    /// If it is shorter than [`SHORTEST`](Self::SHORTEST) bytes.
    pub fn new(text: &[u8]) -> Result<SharedKey, String> {
        let text = text.trim_ascii();
        if text.len() < SharedKey::SHORTEST {
            let shortest = SharedKey::SHORTEST;
            return Err(format!(
                "the key has {} bytes, and needs {shortest} random ones at least: `openssl rand -hex 32` makes one",
                text.len()
            ));
        }
        let digest = ring::digest::digest(&ring::digest::SHA256, text);
        let mut key = [0; 32];
        key.copy_from_slice(digest.as_ref());
        Ok(SharedKey(key))
    }

    /// Proves to the server that the client has the key, for this first line and no other.
    pub(crate) fn client_proof(&self, nonces: &Nonces, hello: &[u8]) -> Proof {
        self.sign(&message(CLIENT, nonces, hello))
    }

    /// True if the client has the key.
    pub(crate) fn accepts_client(&self, nonces: &Nonces, hello: &[u8], proof: &Proof) -> bool {
        self.verify(&message(CLIENT, nonces, hello), proof)
    }

    /// Proves to the client that the server has the key, for the terms of this session.
    pub(crate) fn server_proof(&self, nonces: &Nonces, terms: &[u8]) -> Proof {
        self.sign(&message(SERVER, nonces, terms))
    }

    /// True if the server has the key.
    pub(crate) fn accepts_server(&self, nonces: &Nonces, terms: &[u8], proof: &Proof) -> bool {
        self.verify(&message(SERVER, nonces, terms), proof)
    }

    fn sign(&self, message: &[u8]) -> Proof {
        let mut proof = [0; 32];
        proof.copy_from_slice(hmac::sign(&self.hmac(), message).as_ref());
        proof
    }

    /// Compares in constant time.
    fn verify(&self, message: &[u8], proof: &Proof) -> bool {
        hmac::verify(&self.hmac(), message, proof).is_ok()
    }

    fn hmac(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

const CLIENT: &[u8; 24] = b"trunkline session client";
const SERVER: &[u8; 24] = b"trunkline session server";

/// The parts before the last have fixed lengths, so different parts never give the same bytes.
fn message(label: &[u8; 24], nonces: &Nonces, what: &[u8]) -> Vec<u8> {
    [&label[..], &nonces.server, &nonces.client, what].concat()
}

/// Not the key itself: it would end in logs.
impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_one_key_one_connection_and_one_text() {
        let key = SharedKey::new(b"0123456789abcdef\n").unwrap();
        assert_eq!(key, SharedKey::new(b" 0123456789abcdef ").unwrap());
        assert!(SharedKey::new(b"short").unwrap_err().contains("16 random ones"));
        let nonces = Nonces { server: [1; 32], client: [2; 32] };
        let proof = key.client_proof(&nonces, b"hello");
        assert!(key.accepts_client(&nonces, b"hello", &proof));
        assert!(!key.accepts_client(&nonces, b"hallo", &proof));
        assert!(!key.accepts_client(&Nonces { server: [3; 32], ..nonces }, b"hello", &proof));
        assert!(!key.accepts_client(&Nonces { client: [3; 32], ..nonces }, b"hello", &proof));
        assert!(!key.accepts_server(&nonces, b"hello", &proof), "a client's proof is not a server's");
        assert!(!SharedKey::new(b"0123456789abcdeg").unwrap().accepts_client(&nonces, b"hello", &proof));
        assert!(!format!("{key:?}").contains("01"));
    }
}
