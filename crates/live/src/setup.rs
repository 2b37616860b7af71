//! What a scenario and the options come to: the terms for the far end, sockets, sources.

use core::ops::Range;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::mpsc::{Sender, channel};

use trunkline_core::{Duration, Seed};
use trunkline_experiment::{Answer, Flow, Scenario};
use trunkline_flows::{Carrier, ListenerSpec, Talker, TalkerSpec};
use trunkline_io::tcp::{self, StreamProtocol, TcpError};
use trunkline_io::udp::SocketOptions;
use trunkline_metrics::{ConnectionOverTime, SocketPair};
use trunkline_traffic::{KINDS, Source};
use trunkline_transport::framing::{HEADER_LENGTH, Key};
use trunkline_transport::kind::Sockets;
use trunkline_transport::tcp::TcpOptions;

use crate::ceiling::Limited;
use crate::check;
use crate::engine::{self, Engine, Engines, Intake, Loss, NotConnected, Route};
use crate::error::LiveError;
use crate::near::engine::{EngineFlow, Speaker};
use crate::near::tcp::{Conversation, Returns};
use crate::near::udp_send::{Member, SENDER};
use crate::options::{LiveOptions, Receive};
use crate::protocol::{EngineTerms, FlowTerms, ListenerTerms, Open, Ready};

/// UDP members share this many sockets at most: enough to look like many conversations to a network that sorts by
/// port, few enough to send in batches and to wait for together.
const MAX_LANES: usize = 64;
/// Above so many datagrams a second, waking the receiver for each costs more than all the rest: in blocking mode
/// receivers then rest for [`REST`] after each batch, and arrivals are stamped by the kernel, so that a rest shows in no
/// latency but that of the reflector. Fewer sockets then make larger batches.
const BUSY: f64 = 50_000.0;
const REST: Duration = Duration::from_micros(100);
const BUSY_LANES: usize = 8;
/// Receive buffer of UDP sockets unless the file says otherwise: the instrument should not lose what the network has
/// delivered because the machine stood still for some milliseconds. Without privilege the system grants less.
const UDP_BUFFER: u64 = 4 << 20;
/// The largest payload of a UDP datagram.
const LARGEST_DATAGRAM: u64 = 65_507;

/// What a run is made of, in numbers.
pub(crate) struct Terms {
    pub(crate) open: Open,
    pub(crate) key: Key,
    /// By flow, its UDP sockets: no two flows share one, so that a network tells them apart.
    pub(crate) lanes: Vec<Range<usize>>,
    /// How many members all flows have together: ids are below this.
    pub(crate) members: usize,
    /// By flow id: the thread that sends for it.
    pub(crate) sender_of: Vec<usize>,
    /// How many numbers senders have, and how many of them there are.
    pub(crate) sender_numbers: usize,
    pub(crate) senders: usize,
    pub(crate) spin: Duration,
    /// How many descriptors it may take.
    pub(crate) descriptors: u64,
    /// By place among the flows over engines of ours: its number among the senders.
    engine_senders: Vec<usize>,
    /// By flow: its listener, for TCP.
    listener_of: Vec<usize>,
}

impl Terms {
    /// How many UDP sockets there are.
    fn lane_count(&self) -> usize {
        self.lanes.last().map_or(0, |lanes| lanes.end)
    }

    pub(crate) fn of(scenario: &Scenario, options: &LiveOptions, key: Key) -> Terms {
        let mut listeners: Vec<ListenerTerms> = Vec::new();
        let mut listener_of = Vec::new();
        let mut sender_of = Vec::new();
        let mut sender_numbers = SENDER + 1;
        let (mut udp_members, mut tcp_members) = (0, 0);
        let (mut channels, mut largest, mut udp_buffer) = (0, 0, None);
        let mut per_second = 0.0;
        let (mut engines, mut engine_senders, mut engine_members) = (Vec::new(), Vec::new(), 0);
        for (index, flow) in scenario.flows.iter().enumerate() {
            let members = flow.meta.members as usize;
            sender_of.resize(flow.meta.first.0 as usize, SENDER);
            channels += u64::from(flow.meta.members) * u64::from(flow.meta.channels);
            if let Some(stream) = check::kernel_stream(&flow.transport) {
                sender_of.extend(sender_numbers..sender_numbers + members);
                sender_numbers += members;
                tcp_members += members;
                listener_of.push(listener(&mut listeners, flow, stream));
                continue;
            }
            udp_buffer = udp_buffer.max(flow.transport.socket_buffer());
            match is_datagrams(flow) {
                true => {
                    udp_members += members;
                    sender_of.resize(sender_of.len() + members, SENDER);
                    largest = largest.max((KINDS[flow.source.kind].max_message)(&flow.source.values));
                    largest = largest.max(ListenerSpec::of(flow).answer.map_or(0, u64::from));
                    per_second += datagrams_per_second(flow);
                    listener_of.push(usize::MAX);
                }
                // Over engines of ours: the flow has one thread.
                false => {
                    listener_of.push(usize::MAX);
                    if members > 0
                        && let Some(Ok(spec)) = check::spec(scenario, index, options.ends())
                    {
                        sender_of.resize(sender_of.len() + members, sender_numbers);
                        engine_senders.push(sender_numbers);
                        sender_numbers += 1;
                        engine_members += members;
                        engines.push(EngineTerms { flow: index, spec });
                    }
                }
            }
        }
        let busy = per_second > BUSY && options.receive == Receive::Blocking;
        let rest = if busy { REST } else { Duration::ZERO };
        let largest = (largest + HEADER_LENGTH as u64).min(LARGEST_DATAGRAM);
        let flow_terms = |(index, flow): (usize, &Flow)| FlowTerms {
            listens: ListenerSpec { cover: flow.cover_on_sockets(), ..ListenerSpec::of(flow) },
            is_greedy: options.limited.is_greedy(index),
        };
        Terms {
            open: Open {
                key: key.0,
                address: options.address,
                port: options.port,
                peer: options.ends()[0],
                receive: options.receive,
                kernel_stamps: options.kernel_stamps || (busy && cfg!(target_os = "linux")),
                rest,
                udp_buffer: udp_buffer.map_or(UDP_BUFFER, |bytes| bytes.0),
                largest: largest as u32,
                listeners,
                seed: u64::from(draw()) << 32 | u64::from(draw()),
                engines,
                lose_every: options.lose_every,
                flows: scenario.flows.iter().enumerate().map(flow_terms).collect(),
            },
            key,
            lanes: lanes(scenario, udp_members, if busy { BUSY_LANES } else { MAX_LANES }),
            members: sender_of.len(),
            sender_of,
            sender_numbers,
            senders: tcp_members + engine_senders.len() + usize::from(udp_members > 0),
            engine_senders,
            spin: options.spin.stretch(channels),
            // Two per reflected conversation; the other end may be a thread of this process.
            descriptors: 3 * tcp_members as u64 + 2 * engine_members as u64 + 2 * MAX_LANES as u64 + 64,
            listener_of,
        }
    }
}

/// The UDP sockets of every flow: as many as it has members, or its share of the most that there may be, and at least one.
fn lanes(scenario: &Scenario, members: usize, most: usize) -> Vec<Range<usize>> {
    let mut next = 0;
    let of_flow = |flow: &Flow| {
        let own = if is_datagrams(flow) { flow.meta.members as usize } else { 0 };
        let share = if members > most { own * most / members } else { own };
        let start = next;
        next += share.max(own.min(1));
        start..next
    };
    scenario.flows.iter().map(of_flow).collect()
}

/// Returns true if the flow runs over the kernel's UDP.
pub(crate) fn is_datagrams(flow: &Flow) -> bool {
    flow.transport.sockets() == Sockets::Datagrams
}

/// How many datagrams the flow's sources want to send in a second; 0 if answers decide.
fn datagrams_per_second(flow: &Flow) -> f64 {
    let interval = (KINDS[flow.source.kind].interval)(&flow.source.values).map_or(0.0, Duration::as_secs_f64);
    let channels = f64::from(flow.meta.members) * f64::from(flow.meta.channels);
    if interval > 0.0 { channels / interval } else { 0.0 }
}

/// The place of a listener with these options, which is added if there is none.
fn listener(
    listeners: &mut Vec<ListenerTerms>,
    flow: &Flow,
    (protocol, options): (StreamProtocol, TcpOptions),
) -> usize {
    let setup = check::stream_setup(protocol, &options);
    listeners.iter().position(|other| other.setup == setup).unwrap_or_else(|| {
        listeners.push(ListenerTerms { flow: flow.meta.name.clone(), setup });
        listeners.len() - 1
    })
}

/// The sources of all members, before anything is opened.
pub(crate) struct Sources {
    pub(crate) udp: Vec<Member>,
    /// With the index of the flow, the member's number, and its source.
    pub(crate) tcp: Vec<(usize, u32, Box<dyn Source>)>,
    /// The same.
    pub(crate) engines: Vec<(usize, u32, Box<dyn Source>)>,
}

/// Builds all sources.
pub(crate) fn sources(
    scenario: &Scenario,
    lanes: &[Range<usize>],
    (key, limited): (Key, &Limited),
    build: &dyn Fn(usize, u32) -> Result<Box<dyn Source>, String>,
) -> Result<Sources, LiveError> {
    let mut sources = Sources { udp: Vec::new(), tcp: Vec::new(), engines: Vec::new() };
    for (index, flow) in scenario.flows.iter().enumerate() {
        for member in 0..flow.meta.members {
            let refused = |reason| LiveError::Flow { flow: flow.meta.name.clone(), reason };
            let source = build(index, member).map_err(refused)?;
            match flow.transport.sockets() {
                Sockets::Stream(..) => sources.tcp.push((index, member, source)),
                Sockets::Datagrams => sources.udp.push(Member {
                    talker: Talker::new(source, flow.member(member), flow.meta.channels),
                    lane: lanes[index].start + member as usize % lanes[index].len().max(1),
                    spec: TalkerSpec::on_sockets(flow, key),
                    answered: flow.answer() != Answer::None,
                    awaited: scenario.until == Some(index),
                    turn: limited.turn(index),
                }),
                Sockets::Carried(_) => sources.engines.push((index, member, source)),
            }
        }
    }
    Ok(sources)
}

/// Opens the sockets through which UDP members send and hear their answers.
pub(crate) fn udp_sockets(
    options: &LiveOptions,
    terms: &Terms,
    far_port: u16,
) -> Result<Vec<UdpSocket>, LiveError> {
    let buffer = usize::try_from(terms.open.udp_buffer).unwrap_or(usize::MAX);
    let buffers = SocketOptions { receive_buffer: Some(buffer), send_buffer: Some(buffer), priority: None };
    let [near, far] = options.ends();
    let open = |_| -> io::Result<UdpSocket> {
        let far = SocketAddr::new(far, far_port);
        let (socket, _) = trunkline_io::udp::open(SocketAddr::new(near, 0), Some(far), buffers)?;
        trunkline_io::udp::set_receive_timeout(&socket, crate::near::LOOK)?;
        if terms.open.kernel_stamps {
            trunkline_io::udp::stamp_received(&socket)?;
        }
        Ok(socket)
    };
    let sockets: io::Result<Vec<UdpSocket>> = (0..terms.lane_count()).map(open).collect();
    sockets.map_err(LiveError::system(format!("cannot open a UDP socket at {near}")))
}

/// The flows of which something comes back over UDP.
pub(crate) fn answered(scenario: &Scenario) -> Vec<ListenerSpec> {
    let udp = scenario.flows.iter().filter(|flow| is_datagrams(flow));
    udp.map(ListenerSpec::of).filter(|flow| flow.is_answered() && flow.members > 0).collect()
}

/// The shortest interval between two samples of a connection of the kernel.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(10);

/// A conversation, its flow's index, and who listens to what comes back.
pub(crate) struct Connected {
    pub(crate) flow: usize,
    pub(crate) conversation: Conversation,
    pub(crate) listener: Option<Returns>,
}

/// Connects every TCP member.
pub(crate) fn connect(
    scenario: &Scenario,
    options: &LiveOptions,
    terms: &Terms,
    ready: &Ready,
    sources: Vec<(usize, u32, Box<dyn Source>)>,
) -> Result<Vec<Connected>, LiveError> {
    // Every conversation has a thread: with more of them than this leaves room for, spinning would only get in its
    // own way.
    let cores = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
    let spin = if sources.len() <= cores / 2 { terms.spin } else { Duration::ZERO };
    let mut connected = Vec::new();
    for (index, member, source) in sources {
        let flow = &scenario.flows[index];
        let place = terms.listener_of[index];
        let (Some(setup), Some(&port)) = (terms.open.listeners.get(place), ready.tcp.get(place)) else {
            return Err(LiveError::Protocol("the far end has opened too few listeners".to_owned()));
        };
        let stream = connect_one(flow, options, setup, port)?;
        let id = flow.member(member);
        let sender = terms.sender_of[id.0 as usize];
        let mut answers = None;
        let mut listener = None;
        if ListenerSpec::of(flow).is_answered() {
            let (give, take) = channel();
            answers = Some(take);
            listener = Some(listen(&stream, flow, member, sender, give)?);
        }
        let conversation = Conversation {
            talker: Talker::new(source, id, flow.meta.channels),
            spec: TalkerSpec::on_sockets(flow, terms.key),
            sender,
            stream,
            answers,
            spin,
            awaited: scenario.until == Some(index),
            turn: options.limited.turn(index),
            over_time: sampled(scenario, index, member),
        };
        connected.push(Connected { flow: index, conversation, listener });
    }
    Ok(connected)
}

/// Room for samples of the first connection of each of the first TCP flows.
fn sampled(scenario: &Scenario, flow: usize, member: u32) -> Option<ConnectionOverTime> {
    let is_tcp = |flow: &&Flow| matches!(flow.transport.sockets(), Sockets::Stream(StreamProtocol::Tcp, _));
    let before = scenario.flows[..flow].iter().filter(is_tcp).count();
    let is_sampled = member == 0 && is_tcp(&&scenario.flows[flow]) && before < ConnectionOverTime::FLOWS;
    is_sampled.then(|| ConnectionOverTime::new(scenario.duration + scenario.drain, SHORTEST_SAMPLE))
}

/// Opens the sockets of engines, flow by flow, each connected to its far end's.
pub(crate) fn carriers(
    options: &LiveOptions,
    terms: &Terms,
    ready: &Ready,
) -> Result<Vec<Vec<UdpSocket>>, LiveError> {
    let ports_are_enough = terms.open.engines.len() == ready.engines.len()
        && terms.open.engines.iter().zip(&ready.engines).all(|(engines, ports)| {
            engines.conversations(&terms.open.flows[engines.flow]).count() == ports.len()
        });
    if !ports_are_enough {
        return Err(LiveError::Protocol("the far end has opened too few sockets".to_owned()));
    }
    let [near, far] = options.ends();
    let local = SocketAddr::new(near, 0);
    let open = |(engines, ports): (&EngineTerms, &Vec<u16>)| {
        let carrier = engines.spec.carrier();
        let one = |&port| {
            let far = SocketAddr::new(far, port);
            engine::open(carrier, local, Some(far), terms.open.udp_buffer)
        };
        let opened = ports.iter().map(one).collect::<io::Result<_>>();
        opened.map_err(engine::not_opened(engines.spec.flow(), carrier, local))
    };
    terms.open.engines.iter().zip(&ready.engines).map(open).collect()
}

/// Makes the engines of every flow that runs over engines of ours. They connect on the thread that will turn them, all at
/// the same time.
pub(crate) fn engines<'s>(
    scenario: &Scenario,
    options: &LiveOptions,
    terms: &Terms,
    carriers: &'s [Vec<UdpSocket>],
    mut sources: Vec<(usize, u32, Box<dyn Source>)>,
) -> Result<Vec<(usize, EngineFlow<'s>)>, LiveError> {
    let cores = std::thread::available_parallelism().map_or(1, core::num::NonZero::get);
    let spin = if carriers.len() <= cores / 2 { terms.spin } else { Duration::ZERO };
    let mut flows = Vec::new();
    for ((place, engine_terms), sockets) in terms.open.engines.iter().enumerate().zip(carriers) {
        let EngineTerms { flow: index, spec } = engine_terms;
        let flow = &scenario.flows[*index];
        let seed = Seed::new(terms.open.seed, 0);
        let engine = |((member, ids), socket)| {
            let refused = |reason| LiveError::Flow { flow: flow.meta.name.clone(), reason };
            let pair = spec.pair(member, seed).map_err(refused)?;
            let (messages, loss) = ((terms.key, ids), Loss::every(options.lose_every));
            let (near, far) = (pair.near.address, pair.far.address);
            let intake = Intake::of(spec.carrier(), options.ends(), near, far);
            Engine::new(pair.near.endpoint, far, (socket, Route::Fixed, intake), messages, loss)
                .map_err(LiveError::system("a socket has no address"))
        };
        let conversations = (0..).zip(engine_terms.conversations(&terms.open.flows[*index]));
        let engines = conversations.zip(sockets).map(engine).collect::<Result<_, _>>()?;
        let own = sources.extract_if(.., |(flow, ..)| flow == index);
        let awaited = scenario.until == Some(*index);
        let speakers = own.map(|(_, member, source)| {
            let turn = options.limited.turn(*index);
            Speaker::new(Talker::new(source, flow.member(member), flow.meta.channels), awaited, turn)
        });
        let flow = EngineFlow {
            engines: Engines::new(engines, sockets, options.receive),
            speakers: speakers.collect(),
            is_shared: spec.is_shared(),
            spec: TalkerSpec::on_sockets(flow, terms.key),
            listens: ListenerSpec::of(flow),
            sender: terms.engine_senders[place],
            spin,
        };
        flows.push((*index, flow));
    }
    Ok(flows)
}

/// Connects the engines of a flow with the far end's.
pub(crate) fn connect_engines(
    engines: &mut Engines<'_>,
    flow: &Flow,
    options: &LiveOptions,
) -> Result<(), LiveError> {
    engines.connect(options.patience).map_err(|NotConnected { to, reason }| LiveError::NotConnected {
        flow: flow.meta.name.clone(),
        to: to.unwrap_or(SocketAddr::new(options.address, 0)),
        transport: flow.meta.transport.clone(),
        reason: match reason {
            Some(reason) => reason.to_string(),
            None => format!("no reply within {}", options.patience),
        },
    })
}

fn connect_one(
    flow: &Flow,
    options: &LiveOptions,
    setup: &ListenerTerms,
    port: u16,
) -> Result<TcpStream, LiveError> {
    let far = SocketAddr::new(options.address, port);
    let setup = &setup.setup;
    tcp::connect(options.ends()[0], far, setup, options.patience).map_err(|error| {
        let (flow, reason) = (flow.meta.name.clone(), error.to_string());
        match error {
            TcpError::Io(_) | TcpError::NoAnswer(_) => {
                let transport = setup.protocol.name().to_owned();
                LiveError::NotConnected { flow, to: far, transport, reason }
            }
            _ => LiveError::Flow { flow, reason },
        }
    })
}

fn listen(
    stream: &TcpStream,
    flow: &Flow,
    member: u32,
    sender: usize,
    answers: Sender<trunkline_flows::Answer>,
) -> Result<Returns, LiveError> {
    let second = || -> io::Result<TcpStream> {
        stream.set_read_timeout(Some(crate::near::LOOK.to_std()))?;
        stream.try_clone()
    };
    let stream = second().map_err(LiveError::system("cannot set up a connection"))?;
    Ok(Returns { stream, id: flow.member(member), flow: ListenerSpec::of(flow), sender, answers })
}

/// By flow, the sockets between which its messages go.
pub(crate) fn socket_pairs(
    scenario: &Scenario,
    terms: &Terms,
    udp: &[UdpSocket],
    connected: &[Connected],
    carriers: &[Vec<UdpSocket>],
) -> Vec<Vec<SocketPair>> {
    let ends = |protocol, near: io::Result<SocketAddr>, far: io::Result<SocketAddr>| {
        Some(SocketPair { protocol, near: near.ok()?, far: far.ok()? })
    };
    let of_lane = |lane: usize| ends(UDP, udp.get(lane)?.local_addr(), udp.get(lane)?.peer_addr());
    let mut pairs: Vec<Vec<SocketPair>> =
        terms.lanes.iter().map(|lanes| lanes.clone().filter_map(of_lane).collect()).collect();
    for Connected { flow, conversation, .. } in connected {
        let kernel = check::kernel_stream(&scenario.flows[*flow].transport);
        let protocol = if kernel.is_some_and(|(p, _)| p == StreamProtocol::Sctp) { SCTP } else { TCP };
        let stream = &conversation.stream;
        pairs[*flow].extend(ends(protocol, stream.local_addr(), stream.peer_addr()));
    }
    for (engines, sockets) in terms.open.engines.iter().zip(carriers) {
        let protocol = match engines.spec.carrier() {
            Carrier::Udp => UDP,
            Carrier::UdpLite { .. } => UDP_LITE,
            Carrier::Ip { protocol, .. } => protocol,
        };
        let has_ports = matches!(engines.spec.carrier(), Carrier::Ip { has_ports: true, .. });
        for (member, socket) in (0..).zip(sockets) {
            let Some(mut pair) = ends(protocol, socket.local_addr(), socket.peer_addr()) else { continue };
            // A raw socket's packets have the ports of their endpoints.
            if has_ports && let Ok(made) = engines.spec.pair(member, Seed::new(terms.open.seed, 0)) {
                pair.near.set_port(made.near.address.port);
                pair.far.set_port(made.far.address.port);
            }
            pairs[engines.flow].push(pair);
        }
    }
    pairs
}

/// Protocol numbers of IP (IANA).
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// A number that nobody can guess: the standard library's hash keys come from the system.
pub(crate) fn draw() -> u32 {
    std::hash::RandomState::new().build_hasher().finish() as u32
}
