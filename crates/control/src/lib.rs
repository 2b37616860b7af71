//! Messages between agents and controllers, over the authenticated connections of [`trunkline_peer`].
//!
//! ```text
//! controller                                agent
//!  | TLS 1.3, both with their keys        |
//!  | Hello(version, purpose)            ->|   is this key among my controllers?
//!  |<- Welcome(version, name) or Refused  |
//!  | ToAgent                            ->|
//!  |<- FromAgent, Chunk                   |   at any time, in both directions
//!  |<- Ping                             ->|   when there is nothing else to say
//! ```

pub mod facts;
mod frames;
pub mod message;
mod part;

pub use message::{FromAgent, ToAgent};
pub use part::PartId;
pub use trunkline_peer::{
    Closer, Connection, Fingerprint, FrameReader, FrameWriter, Held, Identity, Incoming, Listener, Memory,
    NoMemory, Pairing, PairingCode, ParseCodeError, ParseFingerprintError, Peer, PeerError, Peers, Pulse,
    Refusal, RefusalKind, Service, Share, check_name, clock, connect, enrol, wire,
};

/// The port of an agent, unless told otherwise.
pub const DEFAULT_PORT: u16 = Service::AGENT.port;

/// What must hold for any bytes that somebody sends or types; for fuzzing. The first byte says what they are.
#[doc(hidden)]
pub fn fuzz_agent(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 2 {
        0 => frames::fuzz_frames_of_agents(rest),
        _ => {
            let text = String::from_utf8_lossy(rest);
            if let Ok(code) = text.parse::<PairingCode>() {
                assert_eq!(code.to_string().parse(), Ok(code));
            }
            if let Ok(fingerprint) = text.parse::<Fingerprint>() {
                assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
            }
            let _ = check_name(&text);
        }
    }
}
