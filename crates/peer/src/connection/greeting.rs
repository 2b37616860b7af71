//! What is said first: versions, and what the connection is for.

use serde::Deserialize;
use trunkline_core::Duration;

use super::Connection;
use crate::error::{PeerError, Refusal};
use crate::message::{Hello, Purpose, Reply, VERSION, Welcome};
use crate::wire::{Frame, Message, WireError, malformed, printable, tag};

/// The version of Trunkline.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");

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
        self.send(&hello(purpose))?;
        let frame = self.reader.frame_within(patience, STEP)?.ok_or_else(|| self.gone())?;
        self.reader.or_cut(read_welcome(&self.reader.shared.who, frame))
    }

    /// Hears what a connection is for that somebody has opened. If they speak another version they are told ours, so that
    /// both know what to update.
    ///
    /// # Errors
    /// If they speak another version or something else, or say nothing in time.
    pub fn hear(&mut self, patience: Duration) -> Result<Hello, PeerError> {
        let frame = self.reader.frame_within(patience, STEP)?.ok_or_else(|| self.gone())?;
        let hello = read_hello(&self.reader.shared.who, frame);
        if let Err(PeerError::Version { .. }) = hello {
            // Whether or not it still reads this.
            let _ = self.welcome("");
        }
        self.reader.or_cut(hello)
    }

    /// Agrees to what was heard, by the name of this agent.
    ///
    /// # Errors
    /// If the connection is cut.
    pub fn welcome(&self, name: &str) -> Result<(), PeerError> {
        self.send(&welcome(name))
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

/// The greeting of this end.
pub(crate) fn hello(purpose: Purpose) -> Hello {
    Hello { version: VERSION, program: PROGRAM.to_owned(), purpose }
}

/// The answer to a greeting, by the name of this host.
pub(crate) fn welcome(name: &str) -> Welcome {
    Welcome { version: VERSION, program: PROGRAM.to_owned(), name: name.to_owned() }
}

/// The greeting in the first frame of an end that connected.
pub(crate) fn read_hello(who: &str, frame: Frame) -> Result<Hello, PeerError> {
    if frame.tag == tag::HELLO {
        compare(who, &frame)?;
    }
    Hello::from_frame(frame).map_err(|error| PeerError::not_understood(who, &error))
}

/// The welcome in the first frame of the end that was connected to.
pub(crate) fn read_welcome(who: &str, frame: Frame) -> Result<Welcome, PeerError> {
    let not_understood = |error| PeerError::not_understood(who, &error);
    if frame.tag == tag::WELCOME {
        compare(who, &frame)?;
        return Welcome::from_frame(frame).map_err(not_understood);
    }
    match Reply::from_frame(frame).map_err(not_understood)? {
        Reply::Refused { refusal } => Err(PeerError::Refused { who: who.to_owned(), refusal }),
        Reply::Paired { .. } => {
            Err(not_understood(WireError::Tag { found: tag::MESSAGE, expected: "a welcome" }))
        }
    }
}

/// Checks that a greeting or welcome has our version.
fn compare(who: &str, frame: &Frame) -> Result<(), PeerError> {
    let theirs: AnyVersion = serde_json::from_slice(&frame.body)
        .map_err(|error| PeerError::not_understood(who, &malformed("greeting", error.to_string())))?;
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
