//! What a controller and an agent say to each other. Every message is one JSON object in a frame ([`trunkline_peer::wire`]), except
//! for what there is much of: [`Chunk`].

use std::collections::BTreeMap;
use std::net::IpAddr;

use data_encoding::BASE64;
use serde::{Deserialize, Serialize, Serializer};
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_peer::clock::{TimeReply, TimeRequest};
pub use trunkline_peer::message::{Enrolment, Hello, Purpose, Reply, VERSION, Welcome};
use trunkline_peer::{Fingerprint, Refusal, bounded};

use crate::facts::{Facts, PartInfo, Status};
use crate::part::PartId;

/// The longest name or token, and address, in bytes.
const MAX_NAME: usize = 256;
const MAX_ADDRESS: usize = 300;
/// The longest experiment file, in bytes.
pub const MAX_EXPERIMENT: usize = 1 << 20;
/// The most files that an experiment names, axes of its sweep, and flows of a part.
const MAX_FILES: usize = 1024;
const MAX_AXES: usize = 256;
const MAX_FLOWS: usize = 1 << 16;

/// What a controller says. What is answered is said at each; any of them may be answered by [`FromAgent::Refused`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToAgent {
    /// Asks for the time; answered at once by [`FromAgent::Time`]. In a frame of its own kind, not in JSON.
    #[serde(skip)]
    Time(TimeRequest),
    /// What kind of host are you? Answered by [`FromAgent::Facts`].
    Facts,
    /// What are you doing? Answered by [`FromAgent::Status`].
    Status,
    /// You will be the far end of a part; answered by [`FromAgent::Offered`].
    Offer(Offer),
    /// You will be the near end of a part: connect to the far end and open sockets. Answered by [`FromAgent::Prepared`].
    Prepare(Box<Prepare>),
    /// Start what was prepared; answered by [`FromAgent::Started`].
    Start {
        /// The part.
        part: PartId,
        /// When the part's time is zero, in nanoseconds of this agent's monotonic clock.
        at: u64,
    },
    /// Let the sources of a part end: the flow that the measurement ends with is over elsewhere.
    EndSending {
        /// The part.
        part: PartId,
    },
    /// End a part; what was measured until then is kept. Answered by [`FromAgent::Finished`] on the connections that are
    /// attached.
    Stop {
        /// The part.
        part: PartId,
    },
    /// Stream the chunks of a part to this connection, the kept ones first.
    Attach {
        /// The part.
        part: PartId,
        /// The first chunk that is wanted, from 0.
        from: u64,
    },
    /// Chunks up to this one are safe here: the agent may delete them.
    Ack {
        /// Of which part.
        part: PartId,
        /// The last chunk that is safe.
        through: u64,
    },
    /// Which parts do you keep? Answered by [`FromAgent::Parts`].
    Parts,
    /// Nobody wants this part any more; answered by [`FromAgent::Discarded`].
    Discard {
        /// The part.
        part: PartId,
    },
}

/// That an agent will be the far end of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// The part.
    pub part: PartId,
    /// The name of the near end's host in the experiment.
    #[serde(deserialize_with = "bounded::text::<_, MAX_NAME>")]
    pub near: String,
    /// The near end's key: nobody else may join.
    pub near_fingerprint: Fingerprint,
    /// How many conversations the part has.
    pub conversations: u64,
    /// How long it takes at most.
    pub duration: Duration,
    /// What the far end will send back at most; `None` for as fast as the network takes.
    pub rate: Option<Rate>,
    /// The most that its engines hold in buffers.
    pub buffers: Bytes,
}

/// That an agent will be the near end of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// The part. Its point is to be found in the experiment.
    pub part: PartId,
    /// The experiment file.
    #[serde(deserialize_with = "bounded::text::<_, MAX_EXPERIMENT>")]
    pub experiment: String,
    /// The other files that it names (sound, traces), by the paths in it.
    #[serde(serialize_with = "contents", deserialize_with = "bounded::files::<_, MAX_FILES>")]
    pub files: BTreeMap<String, Vec<u8>>,
    /// The chosen value's index on each axis of the sweep.
    #[serde(deserialize_with = "bounded::list::<_, _, MAX_AXES>")]
    pub choice: Vec<usize>,
    /// The seed of the run.
    pub seed: u64,
    /// Which flows of the point run in this part, by their index.
    #[serde(deserialize_with = "bounded::list::<_, _, MAX_FLOWS>")]
    pub flows: Vec<usize>,
    /// The far end.
    pub far: FarEndpoint,
    /// For traces of what happened: W3C `traceparent`, if the controller has one.
    #[serde(default, deserialize_with = "bounded::text_if_any::<_, MAX_NAME>")]
    pub traceparent: Option<String>,
}

/// Where a near end finds its far end, and how it shows that it may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FarEndpoint {
    /// Its control port: `host:port`.
    #[serde(deserialize_with = "bounded::text::<_, MAX_ADDRESS>")]
    pub address: String,
    /// Its key.
    pub fingerprint: Fingerprint,
    /// The token of [`FromAgent::Offered`].
    #[serde(deserialize_with = "bounded::text::<_, MAX_NAME>")]
    pub token: String,
}

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromAgent {
    /// The time, in a frame of its own kind.
    #[serde(skip)]
    Time(TimeReply),
    /// What kind of host this is.
    Facts(Box<Facts>),
    /// What the agent is doing.
    Status(Box<Status>),
    /// The agent will be the far end of the part.
    Offered {
        /// The part.
        part: PartId,
        /// Opens the pipe, once, for half a minute.
        token: String,
        /// The port of the agent's control connections.
        port: u16,
    },
    /// The part's sockets are open.
    Prepared {
        /// The part.
        part: PartId,
        /// The address that the far end was reached at.
        far: IpAddr,
    },
    /// The part will start or has started.
    Started {
        /// The part.
        part: PartId,
    },
    /// How far a part has come.
    Progress {
        /// The part.
        part: PartId,
        /// Time since its start.
        done: Duration,
    },
    /// All sources of the flow that the measurement ends with are over.
    SourcesOver {
        /// Of which part.
        part: PartId,
    },
    /// A part has ended; all of its chunks have been sent or follow.
    Finished(Box<Finished>),
    /// A part has failed. What was measured until then is kept.
    Failed {
        /// The part.
        part: PartId,
        /// Why.
        refusal: Refusal,
        /// What the driver hands back of what was measured until then, as JSON.
        outcome: Option<String>,
        /// How many chunks there are.
        chunks: u64,
    },
    /// The parts that the agent keeps.
    Parts(Vec<PartInfo>),
    /// The part is no longer kept.
    Discarded {
        /// The part.
        part: PartId,
    },
    /// Packed observations. In a frame of its own kind, not in JSON.
    #[serde(skip)]
    Chunk(Chunk),
    /// What was asked for is not done.
    Refused {
        /// The part it is about, if any.
        part: Option<PartId>,
        /// Why.
        refusal: Refusal,
    },
}

/// How a part has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    /// The part.
    pub part: PartId,
    /// What the driver hands back beside its observations, as JSON.
    pub outcome: String,
    /// For each flow of the part, how far one-way times may be wrong because of the two clocks.
    pub clock_errors: Vec<Option<Duration>>,
    /// How many chunks there are.
    pub chunks: u64,
}

/// Packed observations of a part. Chunks are numbered from 0 and kept until they are acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Of which part.
    pub part: PartId,
    /// Its number.
    pub number: u64,
    /// The observations, as the drivers pack them.
    pub data: Vec<u8>,
}

/// Writes files as JSON: their contents in base64.
fn contents<S: Serializer>(files: &BTreeMap<String, Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(files.iter().map(|(name, data)| (name, BASE64.encode(data))))
}
