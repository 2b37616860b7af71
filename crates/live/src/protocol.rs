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
//! Where the far end has a clock of its own, the near end asks it for the time again and again, from `Ready` until it has
//! what it wants to know, and then closes the pipe: `Ask(sent)`, `Time(sent, received, replied)`. `Start` is in the far
//! end's clock.
//!
//! Every frame is a length of four bytes (big-endian, of what follows), a tag of one byte and a body: JSON for what is
//! said once, packed binary for observations. The end of the pipe ends the session in either direction.

use core::ops::Range;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::IpAddr;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use trunkline_core::Duration;
use trunkline_flows::{FlowSpec, ListenerSpec};
use trunkline_io::tcp::TcpSetup;
use trunkline_metrics::clocks::Turning;

use crate::error::{Failure, LiveError};
use crate::options::Receive;

/// Both ends must have the same.
pub(crate) const VERSION: u32 = 11;

/// The largest frame that a reader accepts.
pub(crate) const MAX_FRAME: usize = 64 << 20;

/// The first thing the near end says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) version: u32,
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
    /// What is done to its clock; who does not say may have one that is turned.
    #[serde(default)]
    pub(crate) clock: Turning,
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

/// What the near end says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToFar {
    Open(Open),
    /// The raw value of the far end's monotonic clock that is its time zero.
    Start(u64),
    /// What does the far end's clock show? With what ours shows.
    Ask(u64),
    Finish,
}

/// What the far end says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FromFar {
    Ready(Ready),
    Started,
    /// Packed observations: [`report::Report`](crate::events).
    Report(Vec<u8>),
    Bye(Bye),
    Failed(Failure),
    /// The answer to [`ToFar::Ask`], with what it said, and when it came by the far end's clock. When the answer leaves
    /// is written with it.
    Time {
        sent: u64,
        received: u64,
        replied: u64,
    },
}

impl ToFar {
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            ToFar::Open(open) => write_json(to, b'O', open),
            ToFar::Start(epoch) => write_frame(to, b'S', &epoch.to_be_bytes()),
            ToFar::Ask(sent) => write_frame(to, b'A', &sent.to_be_bytes()),
            ToFar::Finish => write_frame(to, b'F', &[]),
        }?;
        to.flush()
    }

    /// The next thing said, or `None` at the end of the pipe.
    pub(crate) fn read(from: &mut impl Read) -> Result<Option<ToFar>, LiveError> {
        let Some((tag, body)) = read_frame(from)? else { return Ok(None) };
        Ok(Some(match tag {
            b'O' => {
                check_version(&body)?;
                ToFar::Open(from_json(&body)?)
            }
            b'S' => ToFar::Start(number(&body, 0)?),
            b'A' => ToFar::Ask(number(&body, 0)?),
            b'F' => ToFar::Finish,
            tag => return Err(unknown(tag)),
        }))
    }
}

impl FromFar {
    pub(crate) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            FromFar::Ready(ready) => write_json(to, b'R', ready),
            FromFar::Started => write_frame(to, b's', &[]),
            FromFar::Report(report) => write_frame(to, b'r', report),
            FromFar::Bye(bye) => write_json(to, b'B', bye),
            FromFar::Failed(failure) => write_json(to, b'X', failure),
            FromFar::Time { sent, received, replied } => {
                let body: Vec<u8> =
                    [sent, received, replied].iter().flat_map(|time| time.to_be_bytes()).collect();
                write_frame(to, b't', &body)
            }
        }?;
        to.flush()
    }

    /// The next thing said, or `None` at the end of the pipe.
    pub(crate) fn read(from: &mut impl Read) -> Result<Option<FromFar>, LiveError> {
        let Some((tag, body)) = read_frame(from)? else { return Ok(None) };
        Ok(Some(match tag {
            b'R' => FromFar::Ready(from_json(&body)?),
            b's' => FromFar::Started,
            b'r' => FromFar::Report(body),
            b'B' => FromFar::Bye(from_json(&body)?),
            b'X' => FromFar::Failed(from_json(&body)?),
            b't' => FromFar::Time {
                sent: number(&body, 0)?,
                received: number(&body, 1)?,
                replied: number(&body, 2)?,
            },
            tag => return Err(unknown(tag)),
        }))
    }
}

/// The number at this place of a body of numbers.
fn number(body: &[u8], place: usize) -> Result<u64, LiveError> {
    let bytes = body.chunks_exact(8).nth(place).and_then(|bytes| bytes.try_into().ok());
    bytes.map(u64::from_be_bytes).ok_or_else(|| LiveError::Protocol("a frame that is too short".to_owned()))
}

/// Refuses terms of another version, whatever else they have.
fn check_version(open: &[u8]) -> Result<(), LiveError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let Versioned { version } = from_json(open)?;
    if version == VERSION {
        return Ok(());
    }
    Err(LiveError::Protocol(format!(
        "the near end has version {version} of it, this end version {VERSION}; update the older of the two"
    )))
}

fn unknown(tag: u8) -> LiveError {
    LiveError::Protocol(format!("a frame with the unknown tag {tag:#04x}"))
}

fn write_json(to: &mut impl Write, tag: u8, body: &impl Serialize) -> io::Result<()> {
    write_frame(to, tag, &serde_json::to_vec(body)?)
}

fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, LiveError> {
    serde_json::from_slice(body).map_err(|error| LiveError::Protocol(error.to_string()))
}

fn write_frame(to: &mut impl Write, tag: u8, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len() + 1).map_err(|_| io::ErrorKind::InvalidInput)?;
    let [a, b, c, d] = length.to_be_bytes();
    to.write_all(&[a, b, c, d, tag])?;
    to.write_all(body)
}

fn read_frame(from: &mut impl Read) -> Result<Option<(u8, Vec<u8>)>, LiveError> {
    let broken =
        |error: io::Error| LiveError::System { what: "the session was interrupted".to_owned(), error };
    let mut head = [0u8; 5];
    let mut filled = 0;
    while filled < head.len() {
        match from.read(&mut head[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(broken(error)),
        }
    }
    let [a, b, c, d, tag] = head;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length == 0 || length > MAX_FRAME {
        return Err(LiveError::Protocol(format!("a frame of {length} bytes")));
    }
    // Grows with what really comes, so that a wrong length costs no memory.
    let mut body = Vec::new();
    from.take(length as u64 - 1).read_to_end(&mut body).map_err(broken)?;
    if body.len() != length - 1 {
        return Err(broken(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(Some((tag, body)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use trunkline_io::tcp::StreamProtocol;

    use super::*;

    #[test]
    fn everything_said_is_heard() {
        let open = Open {
            version: VERSION,
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
        let mut pipe = Vec::new();
        let said = [ToFar::Open(open), ToFar::Start(u64::MAX - 1), ToFar::Ask(9), ToFar::Finish];
        said.iter().for_each(|what| what.write(&mut pipe).unwrap());
        let mut from = pipe.as_slice();
        for what in said {
            assert_eq!(ToFar::read(&mut from).unwrap(), Some(what));
        }
        assert_eq!(ToFar::read(&mut from).unwrap(), None);

        let said = [
            FromFar::Ready(Ready {
                udp: 1,
                tcp: vec![2, 3],
                engines: vec![vec![4], vec![]],
                clock: Turning::Never,
            }),
            FromFar::Started,
            FromFar::Report(vec![1, 2, 3]),
            FromFar::Failed(Failure::Other("no".into())),
            FromFar::Time { sent: 1, received: u64::MAX, replied: 3 },
            FromFar::Bye(Bye {
                unreflected: 1,
                engines: vec![BTreeMap::from([("retransmissions".to_owned(), 3)])],
                held: vec![0, 7],
            }),
        ];
        let mut pipe = Vec::new();
        said.iter().for_each(|what| what.write(&mut pipe).unwrap());
        let mut from = pipe.as_slice();
        for what in said {
            assert_eq!(FromFar::read(&mut from).unwrap(), Some(what));
        }
    }

    #[test]
    fn another_version_is_refused_by_its_number_and_not_by_what_it_lacks() {
        let mut pipe = Vec::new();
        write_frame(&mut pipe, b'O', br#"{"version":7,"flows":[{"first":0}]}"#).unwrap();
        let refused = ToFar::read(&mut pipe.as_slice()).unwrap_err().to_string();
        assert!(
            refused.ends_with(&format!(
                "has version 7 of it, this end version {VERSION}; update the older of the two"
            )),
            "{refused}"
        );
    }

    #[test]
    fn a_pipe_that_breaks_off_is_told_from_one_that_ends() {
        let mut pipe = Vec::new();
        ToFar::Start(5).write(&mut pipe).unwrap();
        for cut in 1..pipe.len() {
            assert!(ToFar::read(&mut &pipe[..cut]).is_err(), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut from = bytes.as_slice();
            while let Ok(Some(_)) = FromFar::read(&mut from) {}
            let mut from = bytes.as_slice();
            while let Ok(Some(_)) = ToFar::read(&mut from) {}
        }
    }
}
