//! What is said first: versions, and what the connection is for.

use serde::Deserialize;
use trunkline_core::Duration;

use super::Connection;
use crate::error::{PeerError, Refusal};
use crate::message::{Hello, Purpose, Reply, VERSION, Welcome};
use crate::wire::{Frame, Message, WireError, malformed, printable, tag};

/// The version of Trunkline.
pub(super) const PROGRAM: &str = env!("CARGO_PKG_VERSION");

const STEP: &str = "exchanging greetings";

/// What every version can read of every other's greeting.
#[derive(Deserialize)]
struct AnyVersion {
    version: u32,
    program: String,
}

impl Connection {
    /// Says what this connection is for, and hears whether the agent agrees.
    ///
    /// # Errors
    /// If it does not, if it speaks another version, or does not answer in time.
    pub fn introduce(&mut self, purpose: Purpose, patience: Duration) -> Result<Welcome, PeerError> {
        self.send(&Hello { version: VERSION, program: PROGRAM.to_owned(), purpose })?;
        let frame = self.reader.frame_within(patience, STEP)?.ok_or_else(|| self.gone())?;
        match frame.tag {
            tag::WELCOME => {
                compare(&self.reader.shared.who, &frame)?;
                self.reader.understand(frame)
            }
            _ => match self.reader.understand(frame)? {
                Reply::Refused { refusal } => {
                    Err(PeerError::Refused { who: self.reader.shared.who.clone(), refusal })
                }
                Reply::Paired { .. } => Err(self
                    .reader
                    .not_understood(&WireError::Tag { found: tag::MESSAGE, expected: "a welcome" })),
            },
        }
    }

    /// Hears what a connection is for that somebody has opened. If they speak another version they are told ours, so that
    /// both know what to update.
    ///
    /// # Errors
    /// If they speak another version or something else, or say nothing in time.
    pub fn hear(&mut self, patience: Duration) -> Result<Hello, PeerError> {
        let frame = self.reader.frame_within(patience, STEP)?.ok_or_else(|| self.gone())?;
        if frame.tag != tag::HELLO {
            let wrong = WireError::Tag { found: frame.tag, expected: "a greeting" };
            return Err(self.reader.not_understood(&wrong));
        }
        if let Err(error) = compare(&self.reader.shared.who, &frame) {
            if matches!(error, PeerError::Version { .. }) {
                // Whether or not it still reads this.
                let _ = self.welcome("");
            }
            return Err(error);
        }
        self.reader.understand(frame)
    }

    /// Agrees to what was heard, by the name of this agent.
    ///
    /// # Errors
    /// If the connection is cut.
    pub fn welcome(&self, name: &str) -> Result<(), PeerError> {
        let name = name.to_owned();
        self.send(&Welcome { version: VERSION, program: PROGRAM.to_owned(), name })
    }

    /// Does not agree to what was heard, and says farewell.
    ///
    /// # Errors
    /// If the connection is cut.
    pub fn refuse(self, refusal: Refusal) -> Result<(), PeerError> {
        self.send(&Reply::Refused { refusal })?;
        self.writer.finish()
    }

    fn gone(&self) -> PeerError {
        let who = self.reader.shared.who.clone();
        PeerError::CutOff { who, reason: "the peer closed it without a reply".to_owned() }
    }

    /// The next message, which must come within so long.
    pub(crate) fn expect<M: Message>(
        &mut self,
        patience: Duration,
        step: &'static str,
    ) -> Result<M, PeerError> {
        self.reader.receive_within(patience, step)?.ok_or_else(|| self.gone())
    }
}

/// Checks that a greeting or welcome has our version.
pub(super) fn compare(who: &str, frame: &Frame) -> Result<(), PeerError> {
    let theirs: AnyVersion = serde_json::from_slice(&frame.body).map_err(|error| PeerError::Protocol {
        who: who.to_owned(),
        reason: format!("it sends {}", malformed("greeting", error.to_string())),
    })?;
    if theirs.version == VERSION {
        return Ok(());
    }
    Err(PeerError::Version {
        who: who.to_owned(),
        ours: VERSION,
        our_program: PROGRAM.to_owned(),
        theirs: theirs.version,
        // The text of a stranger is shortened.
        their_program: printable(&theirs.program, 40),
    })
}
