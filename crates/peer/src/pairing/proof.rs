//! How each end shows the other that it knows the code, without saying it.
//!
//! ```text
//! key      = HMAC-SHA-256("trunkline pairing 1", secret of the code)
//! material = TLS exporter of this connection (RFC 8446 section 7.5)
//! proof    = HMAC-SHA-256(key, side | material | name of the connecting end)
//! ```
//! Bound to the connection, a proof is worth nothing on another: whoever stands between has two connections and so two
//! different materials.

use ring::hmac::{self, HMAC_SHA256, Key};

use crate::connection::Connection;
use crate::error::PeerError;

/// The label of the TLS exporter.
pub(super) const LABEL: &[u8] = b"EXPORTER-trunkline-pairing";

/// Who proves: the other's proof cannot be sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Connecting,
    Listening,
}

/// What only the two ends of this connection know.
pub(super) fn material(connection: &Connection) -> Result<[u8; 32], PeerError> {
    connection.export(LABEL)
}

pub(super) fn make(key: &[u8], side: Side, material: &[u8; 32], name: &str) -> Vec<u8> {
    hmac::sign(&Key::new(HMAC_SHA256, key), &said(side, material, name)).as_ref().to_vec()
}

/// In a time that does not depend on what is wrong with it.
pub(super) fn is_right(key: &[u8], side: Side, material: &[u8; 32], name: &str, proof: &[u8]) -> bool {
    hmac::verify(&Key::new(HMAC_SHA256, key), &said(side, material, name), proof).is_ok()
}

fn said(side: Side, material: &[u8; 32], name: &str) -> Vec<u8> {
    let side = match side {
        Side::Connecting => b"c",
        Side::Listening => b"a",
    };
    [side.as_slice(), material, name.as_bytes()].concat()
}
