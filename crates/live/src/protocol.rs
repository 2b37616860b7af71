//! What the two ends of a live run say to each other, over any pair of byte pipes.
//!
//! ```text
//! near                                far
//!  | Open(flows, key, address ...)   ->|   opens its sockets
//!  |<- Ready(ports)                    |
//!  | Start(epoch)                    ->|   measured messages may come from now on
//!  |<- Started                         |
//!  |<- Report(observations)            |   at least every 100 ms while there are any
//!  | Finish                          ->|
//!  |<- Report(the rest)                |
//!  |<- Bye(counters)                   |
//! ```
//! Where the far end has a clock of its own, the near end asks it for the time ([`trunkline_peer::clock`]) again and again,
//! from `Ready` until it has what it wants to know, and then closes the pipe. `Start` is in the far end's clock.
//!
//! Messages are frames of [`trunkline_peer`], JSON but for the time and for observations, which are packed. Over pipes between processes of
//! one host, a greeting and a welcome precede them, as over every connection of `peer`; the two agents of a pair have
//! exchanged theirs with the token. The end of the connection ends the session in either direction.

use core::ops::Range;
use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use trunkline_core::Duration;
use trunkline_flows::{FlowSpec, ListenerSpec};
use trunkline_io::tcp::TcpSetup;
use trunkline_peer::clock::{TimeReply, TimeRequest};
use trunkline_peer::wire::{Frame, Message, WireError, from_json, sized, tag, to_json};

use crate::error::Failure;
use crate::options::Receive;

/// The first thing the near end says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Open {
    /// The run's key: messages without it are strangers'.
    pub(crate) key: u32,
    /// Where the far end opens its sockets.
    pub(crate) address: IpAddr,
    /// Its UDP port and its first TCP port; 0 for any.
    pub(crate) port: u16,
    /// Nobody else is answered. Over a pipe this is an address of the host itself; a network control channel puts
    /// here from where the session was opened.
    pub(crate) peer: IpAddr,
    pub(crate) receive: Receive,
    pub(crate) kernel_stamps: bool,
    /// How long receivers of UDP rest after each batch.
    pub(crate) rest: Duration,
    /// Receive buffer of the UDP socket.
    pub(crate) udp_buffer: u64,
    /// The largest UDP message, with its header.
    pub(crate) largest: u32,
    /// One listener each.
    pub(crate) listeners: Vec<ListenerTerms>,
    /// What both ends' protocol engines draw comes from here.
    pub(crate) seed: u64,
    /// Flows over protocol engines.
    pub(crate) engines: Vec<EngineTerms>,
    /// Every so-manieth packet of theirs is lost on purpose.
    pub(crate) lose_every: u32,
    pub(crate) flows: Vec<FlowTerms>,
}

/// A listener of the far end for the kernel's streams; connections inherit its options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListenerTerms {
    /// The first flow that uses it, for messages.
    pub(crate) flow: String,
    pub(crate) setup: TcpSetup,
}

/// A flow over protocol engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EngineTerms {
    /// Its place among the flows.
    pub(crate) flow: usize,
    /// From which both ends make its endpoints.
    pub(crate) spec: FlowSpec,
}

impl EngineTerms {
    /// The ids of the members of each conversation of this flow: all share one, or every member has one.
    pub(crate) fn conversations(&self, flow: &FlowTerms) -> impl Iterator<Item = Range<u32>> + use<> {
        let ListenerSpec { first, members, .. } = flow.listens;
        let end = first.saturating_add(members);
        let is_shared = self.spec.is_shared();
        let step = if is_shared { members.max(1) } else { 1 };
        (first..end).step_by(step as usize).map(move |id| id..if is_shared { end } else { id + 1 })
    }
}

/// What the far end has to know of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FlowTerms {
    /// By which both ends recognise its messages.
    pub(crate) listens: ListenerSpec,
    /// Whether its source has no pace of its own.
    pub(crate) is_greedy: bool,
}

/// Where the far end's sockets are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) udp: u16,
    /// One per listener.
    pub(crate) tcp: Vec<u16>,
    /// For each flow over protocol engines, the UDP port of every conversation.
    pub(crate) engines: Vec<Vec<u16>>,
}

/// The last thing the far end says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bye {
    /// Datagrams that the reflector's socket did not take.
    pub(crate) unreflected: u64,
    /// For each flow over protocol engines, what its engines have counted.
    pub(crate) engines: Vec<BTreeMap<String, u64>>,
    /// For each flow, how long its replies have waited for what the far end's owner allows, in nanoseconds.
    pub(crate) held: Vec<u64>,
}

/// Messages of the near end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToFar {
    Open(Box<Open>),
    /// The raw value of the far end's monotonic clock that is its time zero.
    Start(u64),
    /// Asks for the time of the far end's clock.
    #[serde(skip)]
    Time(TimeRequest),
    Finish,
}

/// Messages of the far end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FromFar {
    Ready(Ready),
    Started,
    /// Packed observations: [`report::Report`](crate::events).
    #[serde(skip)]
    Report(Vec<u8>),
    Bye(Bye),
    Failed(Failure),
    /// The time. The thread that writes it sets when it leaves.
    #[serde(skip)]
    Time(TimeReply),
}

impl Message for ToFar {
    fn to_frame(&self) -> Result<Frame, WireError> {
        match self {
            ToFar::Time(request) => request.to_frame(),
            said => to_json(tag::MESSAGE, "message", said),
        }
    }
    fn from_frame(frame: Frame) -> Result<ToFar, WireError> {
        match frame.tag {
            tag::TIME_REQUEST => TimeRequest::from_frame(frame).map(ToFar::Time),
            _ => from_json(&frame, tag::MESSAGE, "a message"),
        }
    }
}

impl FromFar {
    /// The frame that carries it.
    pub(crate) fn into_frame(self) -> Result<Frame, WireError> {
        match self {
            FromFar::Report(body) => sized(Frame { tag: tag::CHUNK, body }),
            FromFar::Time(reply) => reply.to_frame(),
            said => to_json(tag::MESSAGE, "message", &said),
        }
    }

    pub(crate) fn from_frame(frame: Frame) -> Result<FromFar, WireError> {
        match frame.tag {
            tag::CHUNK => Ok(FromFar::Report(frame.body)),
            tag::TIME_REPLY => TimeReply::from_frame(frame).map(FromFar::Time),
            _ => from_json(&frame, tag::MESSAGE, "a message"),
        }
    }
}

/// Before hosts greeted each other, a session began with a frame of this tag, and a failure had that tag: an end that is
/// too old is told so in its own words.
pub(crate) const OLD_OPEN: u8 = b'O';
pub(crate) const OLD_FAILURE: u8 = b'X';

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_core::Time;
    use trunkline_io::tcp::StreamProtocol;
    use trunkline_metrics::clocks::Turning;

    use super::*;

    #[test]
    fn everything_said_is_heard() {
        let open = Open {
            key: 7,
            address: "127.0.0.1".parse().unwrap(),
            port: 5000,
            peer: "::1".parse().unwrap(),
            receive: Receive::Polling,
            kernel_stamps: true,
            rest: Duration::from_micros(5),
            udp_buffer: 1 << 20,
            largest: 120,
            listeners: vec![ListenerTerms {
                flow: "bulk".into(),
                setup: TcpSetup {
                    protocol: StreamProtocol::Mptcp,
                    window: Some(32_768),
                    nodelay: true,
                    congestion_control: Some("cubic".into()),
                    user_timeout: Some(Duration::from_secs(3)),
                    ..TcpSetup::default()
                },
            }],
            seed: u64::MAX,
            engines: Vec::new(),
            lose_every: 20,
            flows: vec![FlowTerms {
                listens: ListenerSpec {
                    first: 0,
                    members: 4,
                    ids: 4,
                    channels: 2,
                    reflect: true,
                    answer: Some(4),
                    cover: trunkline_transport::framing::Cover::default(),
                    keeps_payload: false,
                },
                is_greedy: true,
            }],
        };
        let request = TimeRequest { sent: Time::from_nanos(1) };
        let reply = request.reply(Time::from_nanos(u64::MAX), Turning::Never);
        for said in
            [ToFar::Open(Box::new(open)), ToFar::Start(u64::MAX - 1), ToFar::Time(request), ToFar::Finish]
        {
            assert_eq!(ToFar::from_frame(said.to_frame().unwrap()), Ok(said));
        }
        for said in [
            FromFar::Ready(Ready { udp: 1, tcp: vec![2, 3], engines: vec![vec![4], vec![]] }),
            FromFar::Started,
            FromFar::Report(vec![1, 2, 3]),
            FromFar::Failed(Failure::Other("no".into())),
            FromFar::Time(reply),
            FromFar::Bye(Bye {
                unreflected: 1,
                engines: vec![BTreeMap::from([("retransmissions".to_owned(), 3)])],
                held: vec![0, 7],
            }),
        ] {
            assert_eq!(FromFar::from_frame(said.clone().into_frame().unwrap()), Ok(said));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(tag: u8, body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for tag in [tag, tag::MESSAGE, tag::CHUNK, tag::TIME_REQUEST, tag::TIME_REPLY] {
                let frame = Frame { tag, body: body.clone() };
                let _ = FromFar::from_frame(frame.clone());
                let _ = ToFar::from_frame(frame);
            }
        }
    }
}
