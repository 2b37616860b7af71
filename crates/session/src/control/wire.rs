//! What client and server say to each other: a line of JSON each.
//!
//! ```text
//! client                               server
//!  | hello(version, request)         ->|
//!  |<- challenge(nonce)                 |   only if the server has a shared key
//!  | proof(nonce, proof)             ->|
//!  |<- welcome(key, port, facts ...)    |   or refuse(why)
//!  | (greetings over the transport)  ->|
//!  |<- heard                            |   packets with the key arrive: the session begins
//!  | ask(sent)                       ->|   at least every second
//!  |<- time(sent, received, replied)    |
//!  | tell(what)                      ->|   either way, at any time: what the programs at both ends have to say
//!  | bye                             ->|
//!  |<- ended(why)                       |   or the end of the connection, either way
//! ```

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use trunkline_core::Time;
use trunkline_metrics::clocks::Turning;

use crate::key::{Nonce, Proof};
use crate::line::LineCounters;
use crate::request::{Facts, Key, Request};

/// Both ends must have the same.
pub(crate) const VERSION: u32 = 1;

/// The longest line that is read, in bytes.
pub(crate) const LONGEST: usize = 16 << 10;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub(crate) enum ToServer {
    Hello(Box<Hello>),
    /// Proves that the client has the shared key.
    Proof {
        nonce: Nonce,
        proof: Proof,
    },
    /// Asks what time it is there.
    Ask {
        sent: Time,
    },
    Tell {
        what: serde_json::Value,
    },
    Bye,
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u32,
    pub(crate) request: Request,
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub(crate) enum ToClient {
    Welcome(Box<Welcome>),
    /// Asks for a proof that the client has the shared key.
    Challenge {
        nonce: Nonce,
    },
    /// There will be no session.
    Refuse {
        version: u32,
        why: String,
    },
    /// A packet with the key has come.
    Heard,
    Time {
        sent: Time,
        received: Time,
        replied: Time,
        /// What the server's end of the line has counted.
        counters: LineCounters,
    },
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
pub(crate) struct Welcome {
    pub(crate) key: Key,
    /// Where packets go.
    pub(crate) port: u16,
    /// From which both ends make the endpoints of a protocol engine.
    pub(crate) seed: u64,
    pub(crate) facts: Facts,
    /// What is done to the server's clock; who does not say may have one that is turned.
    #[serde(default)]
    pub(crate) clock: Turning,
    /// Proves that the server has the shared key, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proof: Option<Proof>,
}

impl Welcome {
    /// The terms that a proof holds for: where packets go, and the key that they have.
    pub(crate) fn proved(key: Key, port: u16, seed: u64) -> Vec<u8> {
        [&key.bytes()[..], &port.to_be_bytes(), &seed.to_be_bytes()].concat()
    }
}

/// The version that a first line names, whatever else it says: other versions may say anything.
pub(crate) fn version_of(line: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    serde_json::from_slice::<Versioned>(line).ok().map(|versioned| versioned.version)
}

/// Reads a line.
///
/// # Errors
/// Why it is not one of ours.
pub(crate) fn read<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// A line without its end.
pub(crate) fn line(what: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::new();
    write(what, &mut line);
    line.truncate(line.trim_ascii_end().len());
    line
}

/// Appends a line.
pub(crate) fn write(what: &impl Serialize, into: &mut Vec<u8>) {
    // Fails for maps with other keys than texts only, and none of these has any.
    if serde_json::to_writer(&mut *into, what).is_ok() {
        into.push(b'\n');
    }
}

/// Finds the lines in what arrives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    /// Everything before this has been taken.
    taken: usize,
}

/// A line is longer than [`LONGEST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    /// How many more bytes may be pushed.
    pub(crate) fn room(&self) -> usize {
        LONGEST + 1 - (self.bytes.len() - self.taken)
    }

    /// Takes bytes, at most as many as there is [`room`](Self::room) for; the rest is not looked at.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..core::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(self.room())]);
    }

    /// The next whole line, without its end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, TooLong> {
        let rest = &self.bytes[self.taken..];
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            return if rest.len() > LONGEST { Err(TooLong) } else { Ok(None) };
        };
        let start = self.taken;
        self.taken += length + 1;
        Ok(Some(&self.bytes[start..start + length]))
    }
}

/// The body of a fuzz target: no bytes make the readers of either end panic or keep more than a line, and what they read they
/// write again.
pub(crate) fn fuzz_lines(data: &[u8]) {
    let mut lines = Lines::default();
    for piece in data.chunks(1000) {
        lines.push(piece);
        assert!(lines.bytes.len() <= LONGEST + 1, "{} bytes are kept", lines.bytes.len());
        while let Ok(Some(line)) = lines.next() {
            let _ = version_of(line);
            if let Ok(said) = read::<ToServer>(line) {
                again(&said);
            }
            if let Ok(said) = read::<ToClient>(line) {
                again(&said);
            }
        }
    }
}

fn again<T: Serialize + DeserializeOwned + PartialEq + core::fmt::Debug>(said: &T) {
    let mut line = Vec::new();
    write(said, &mut line);
    assert_eq!(line.pop(), Some(b'\n'));
    assert!(!line.contains(&b'\n'), "one line");
    assert_eq!(read::<T>(&line).as_ref(), Ok(said));
}

#[cfg(test)]
mod tests;
