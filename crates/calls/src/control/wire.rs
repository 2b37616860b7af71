//! Messages between client and server, in frames of [`trunkline_peer`].
//!
//! ```text
//! client                               server
//!  | Hello(version, for a session)   ->|   bare from strangers; over TLS from those who have paired
//!  | open(request)                   ->|   at once behind it
//!  |<- Welcome(version, name)           |   or refused(why)
//!  |<- challenge(nonce)                 |   only if the server has a shared key, and the client has not paired
//!  | proof(nonce, proof)             ->|
//!  |<- opened(key, port, facts ...)     |   or refused(why)
//!  | (greetings over the transport)  ->|
//!  |<- heard                            |   packets with the key arrive: the session begins
//!  | time request                    ->|   at least every second
//!  |<- time reply, counters             |
//!  | tell(what)                      ->|   either way, at any time: what the programs at both ends have to say
//!  | bye                             ->|
//!  |<- ended(why)                       |   or the end of the connection, either way
//! ```

use serde::{Deserialize, Serialize};
use trunkline_peer::Refusal;
use trunkline_peer::clock::{TimeReply, TimeRequest};
use trunkline_peer::wire::{Frame, Message, WireError, from_json, tag, to_json};

use crate::key::{Nonce, Proof};
use crate::line::LineCounters;
use crate::request::{Facts, Key, Request};

/// The largest frame that is read, in bytes.
pub(crate) const LARGEST: usize = 16 << 10;

/// Messages of a client after its greeting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToServer {
    /// Asks for a session.
    Open {
        request: Box<Request>,
    },
    /// Proves that the client has the shared key.
    Proof {
        nonce: Nonce,
        proof: Proof,
    },
    /// Asks for the time of the server.
    #[serde(skip)]
    Time(TimeRequest),
    Tell {
        what: serde_json::Value,
    },
    Bye,
}

/// Messages of a server after its welcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToClient {
    Opened(Box<Opened>),
    /// Asks for a proof that the client has the shared key.
    Challenge {
        nonce: Nonce,
    },
    /// There will be no session.
    Refused {
        refusal: Refusal,
    },
    /// A packet with the key has come.
    Heard,
    #[serde(skip)]
    Time(TimeReply),
    /// The counts of the server's end of the line; follows each [`Time`](Self::Time).
    Counters(LineCounters),
    Tell {
        what: serde_json::Value,
    },
    /// The session is over.
    Ended {
        why: String,
    },
}

/// The terms of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub(crate) key: Key,
    /// The port for packets.
    pub(crate) port: u16,
    /// The seed of the endpoints of a protocol engine, at both ends.
    pub(crate) seed: u64,
    pub(crate) facts: Facts,
    /// Proves that the server has the shared key, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proof: Option<Proof>,
}

impl Opened {
    /// The terms that a proof holds for: where packets go, and the key that they have.
    pub(crate) fn proved(key: Key, port: u16, seed: u64) -> Vec<u8> {
        [&key.bytes()[..], &port.to_be_bytes(), &seed.to_be_bytes()].concat()
    }
}

impl Message for ToServer {
    fn to_frame(&self) -> Result<Frame, WireError> {
        match self {
            ToServer::Time(request) => request.to_frame(),
            said => to_json(tag::MESSAGE, "message", said),
        }
    }
    fn from_frame(frame: Frame) -> Result<ToServer, WireError> {
        match frame.tag {
            tag::TIME_REQUEST => TimeRequest::from_frame(frame).map(ToServer::Time),
            _ => from_json(&frame, tag::MESSAGE, "a message"),
        }
    }
}

impl Message for ToClient {
    fn to_frame(&self) -> Result<Frame, WireError> {
        match self {
            ToClient::Time(reply) => reply.to_frame(),
            said => to_json(tag::MESSAGE, "message", said),
        }
    }
    fn from_frame(frame: Frame) -> Result<ToClient, WireError> {
        match frame.tag {
            tag::TIME_REPLY => TimeReply::from_frame(frame).map(ToClient::Time),
            _ => from_json(&frame, tag::MESSAGE, "a message"),
        }
    }
}

/// The line that refuses a client of the protocol that sessions had before there were frames.
pub(crate) fn too_old() -> Vec<u8> {
    let why = format!(
        "this client is too old: the server runs Trunkline {}, which has another protocol for sessions; update the client",
        env!("CARGO_PKG_VERSION")
    );
    let mut line = serde_json::json!({ "say": "refuse", "version": 1, "why": why }).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// The body of a fuzz target: no bytes make the readers of either end panic, and what they read they read again after it was
/// written.
pub(crate) fn fuzz_frames(data: &[u8]) {
    use trunkline_peer::fuzz::{again, fuzz_frames};
    fuzz_frames(data, |frame| {
        again::<ToServer>(frame);
        again::<ToClient>(frame);
    });
}

#[cfg(test)]
mod tests;
