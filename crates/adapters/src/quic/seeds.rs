//! What the engine would draw from the system's random numbers, drawn from a seed.

use std::sync::Arc;

use quinn_proto::crypto::HandshakeTokenKey;
use quinn_proto::{ConnectionId, EndpointConfig, HashedConnectionIdGenerator};
use ring::{hkdf, hmac};
use trunkline_core::Seed;

use super::config::QuicConfigError;

/// Everything that one end draws.
pub(super) struct Seeds(Seed);

impl Seeds {
    pub(super) fn new(seed: u64) -> Seeds {
        Seeds(Seed::new(seed, 0))
    }

    pub(super) fn endpoint_config(&self, payload: u16) -> Result<EndpointConfig, QuicConfigError> {
        let reset_key = hmac::Key::new(hmac::HMAC_SHA256, &self.bytes("quic/reset"));
        let key = self.0.stream("quic/connection-id").bits();
        let mut config = EndpointConfig::new(Arc::new(reset_key));
        // Part of a connection ID is drawn from the system all the same. It shows in no size and at no time.
        config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(key)));
        config.rng_seed(Some(self.bytes("quic/engine")));
        config
            .max_udp_payload_size(payload)
            .map_err(|error| QuicConfigError::Cryptography(error.to_string()))?;
        Ok(config)
    }

    /// For the tokens by which a listening end knows addresses again.
    pub(super) fn token_key(&self) -> Arc<dyn HandshakeTokenKey> {
        Arc::new(hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&self.bytes("quic/token")))
    }

    /// For the connection ID by which a connecting end addresses its first packets (RFC 9000 section 7.2).
    pub(super) fn first_connection_id(&self) -> Arc<dyn Fn() -> ConnectionId + Send + Sync> {
        let bytes = self.bytes("quic/first-connection-id");
        Arc::new(move || ConnectionId::new(&bytes[..16]))
    }

    fn bytes(&self, place: &str) -> [u8; 32] {
        let mut stream = self.0.stream(place);
        let mut bytes = [0; 32];
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&stream.bits().to_le_bytes());
        }
        bytes
    }
}
