//! Who agents and controllers are, how they come to trust each other, and what they say.
//!
//! An [`Identity`] is a key that a host makes once; others know it by its [`Fingerprint`]. A [`PairingCode`], shown by an
//! agent and typed at a controller once, makes the two known to each other ([`enrol`], [`Pairing`]); from then on each
//! finds the other among its [`Peers`]. A [`Connection`] is TLS 1.3 with a certificate at both ends: [`connect`] talks
//! with one key and no other, a [`Listener`] hears who comes and leaves the judgement to its caller.
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
//!
//! What is said is in [`message`]; how it is cut into frames in [`wire`]. The threat model is in docs/security.md.

mod base32;
mod bounded;
mod connection;
mod error;
pub mod facts;
mod files;
mod fingerprint;
mod identity;
mod memory;
pub mod message;
mod pairing;
mod peers;
mod tls;
pub mod wire;

pub use connection::{
    Closer, Connection, FrameReader, FrameWriter, Incoming, Listener, PipeReader, PipeWriter, Pulse, connect,
};
pub use error::{ControlError, Refusal, RefusalKind};
pub use fingerprint::{Fingerprint, ParseFingerprintError};
pub use identity::Identity;
pub use memory::{Held, Memory, NoMemory, Share};
pub use message::{FromAgent, PartId, ToAgent};
pub use pairing::{Pairing, PairingCode, ParseCodeError, enrol};
pub use peers::{Peer, Peers, check_name};

/// What must hold for any bytes that somebody sends or types; for fuzzing. The first byte says what they are.
#[doc(hidden)]
pub fn fuzz_agent(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    match kind % 2 {
        0 => wire::fuzz_wire(rest),
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

/// The port of an agent, unless told otherwise.
pub const DEFAULT_PORT: u16 = 4781;
