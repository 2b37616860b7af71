//! Messages of two hosts before they know each other: greetings, and enrolment with a pairing code. Each message is
//! a JSON object in a frame ([`crate::wire`]).

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::error::{Refusal, printable};
use crate::wire::{Frame, Message, WireError, from_json, tag, to_json};

/// The version of the protocol that this program speaks: greetings, all messages of agents, sessions and far ends, and the header
/// of measured messages. Both ends must speak the same.
pub const VERSION: u32 = 4;

/// The longest proof, and name or token, in bytes.
const MAX_PROOF: usize = 64;
const MAX_NAME: usize = 256;

/// The first thing that is said on a connection, by the end that connected. Its frame and its first two fields stay as they
/// are in all versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol's version: [`VERSION`].
    pub version: u32,
    /// The version of Trunkline.
    #[serde(deserialize_with = "bounded::text::<_, MAX_NAME>")]
    pub program: String,
    /// What the connection is for.
    pub purpose: Purpose,
}

/// What a connection is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// To command the agent: its key must be among the agent's controllers.
    Control,
    /// To become known to the agent; [`Enrolment`] follows.
    Pair,
    /// To be the near end of a measurement, from another agent that has this one-time token. The messages of the near and
    /// the far end follow the welcome.
    Join {
        /// The token.
        #[serde(deserialize_with = "bounded::text::<_, MAX_NAME>")]
        token: String,
    },
    /// The same, from the process that has started this one as its far end.
    FarEnd,
    /// To open a session of `trunkline reflect` or `trunkline receive`.
    Session,
}

/// The answer to a [`Hello`] that is accepted, or whose version is another. Its frame and its first two fields stay as they
/// are in all versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The protocol's version: [`VERSION`].
    pub version: u32,
    /// The version of Trunkline.
    #[serde(deserialize_with = "printable")]
    pub program: String,
    /// The agent's name.
    #[serde(deserialize_with = "printable")]
    pub name: String,
}

/// The request of an end that wants to become known to the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enrolment {
    /// Proves that this end knows the other's pairing code; answered by [`Reply::Paired`].
    Pair {
        /// Computed from the code and from secrets of this connection.
        #[serde(deserialize_with = "bounded::list::<_, _, MAX_PROOF>")]
        proof: Vec<u8>,
        /// The name of this end.
        #[serde(deserialize_with = "bounded::text::<_, MAX_NAME>")]
        name: String,
    },
}

/// The answer to an [`Enrolment`], or the refusal of a [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// The key of the connecting end is known from now on.
    Paired {
        /// Computed from the code and from secrets of this connection.
        #[serde(deserialize_with = "bounded::list::<_, _, MAX_PROOF>")]
        proof: Vec<u8>,
    },
    /// The request is refused.
    Refused {
        /// The reason.
        refusal: Refusal,
    },
}

impl Message for Hello {
    fn to_frame(&self) -> Result<Frame, WireError> {
        to_json(tag::HELLO, "greeting", self)
    }
    fn from_frame(frame: Frame) -> Result<Hello, WireError> {
        from_json(&frame, tag::HELLO, "a greeting")
    }
}

impl Message for Welcome {
    fn to_frame(&self) -> Result<Frame, WireError> {
        to_json(tag::WELCOME, "welcome", self)
    }
    fn from_frame(frame: Frame) -> Result<Welcome, WireError> {
        from_json(&frame, tag::WELCOME, "a welcome")
    }
}

impl Message for Enrolment {
    fn to_frame(&self) -> Result<Frame, WireError> {
        to_json(tag::MESSAGE, "message", self)
    }
    fn from_frame(frame: Frame) -> Result<Enrolment, WireError> {
        from_json(&frame, tag::MESSAGE, "a message")
    }
}

impl Message for Reply {
    fn to_frame(&self) -> Result<Frame, WireError> {
        to_json(tag::MESSAGE, "message", self)
    }
    fn from_frame(frame: Frame) -> Result<Reply, WireError> {
        from_json(&frame, tag::MESSAGE, "a message")
    }
}
