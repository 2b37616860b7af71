//! The other end of a live run: reflects what is to be reflected, sinks the rest and reports what arrived.
//!
//! It serves one session and ends with it. It answers nobody but the near end: datagrams and connections count only if
//! they come from the address the session was opened from, and messages only with the run's key, so that it can
//! never be used to send to somebody else.

mod engine;
mod report;
mod tcp;
mod udp;

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;

use trunkline_core::{Bytes, Duration, Seed, Time};
use trunkline_flows::{Carrier, Listener, ListenerSpec, Side};
use trunkline_io::tcp::{TcpError, listen as listen_as};
use trunkline_io::udp::SocketOptions;
use trunkline_io::{MonotonicClock, clock};
use trunkline_metrics::clocks::Turning;
use trunkline_peer::PeerError;
use trunkline_peer::clock::TimeRequest;
use trunkline_peer::frames::{self, FrameSink, FrameSource, PipeReader, PipeWriter};
use trunkline_peer::wire::Frame;
use trunkline_transport::framing::{Cover, Key};

use crate::ceiling::{Limited, Turn};
use crate::engine::{Counters, Engine, Engines, Intake, Loss, Route};
use crate::error::{Failure, LiveError};
use crate::part::FarLimits;
use crate::protocol::{Bye, EngineTerms, FlowTerms, FromFar, OLD_FAILURE, OLD_OPEN, Open, Ready, ToFar};
pub(crate) use report::Reporter;

/// Serves one session over this process's standard input and output, and dies with the process that started it. What
/// a program does that is started as [`FarEnd::Process`](crate::FarEnd::Process).
///
/// # Errors
/// If the near end breaks the protocol, or a socket fails. The near end has been told.
pub fn serve_standard_streams() -> Result<(), LiveError> {
    trunkline_io::process::die_with_parent();
    // Past the standard library's line buffer, which has no place between binary frames.
    let output = io::stdout().as_fd().try_clone_to_owned().map_err(LiveError::system("standard output"))?;
    serve(io::stdin(), std::fs::File::from(output))
}

/// Serves one session of the process or thread that has started this one, over a pair of pipes, until it says that it is
/// over, or `input` ends.
///
/// # Errors
/// If the near end breaks the protocol, or a socket fails. The near end has been told.
pub fn serve(input: impl Read + Send, output: impl Write + Send) -> Result<(), LiveError> {
    let (mut from, mut to) = (PipeReader::new(input, NEAR_END), PipeWriter::new(output, NEAR_END));
    let Some(frame) = from.next_frame()? else { return Ok(()) };
    if frame.tag == OLD_OPEN {
        let error = LiveError::TooOld(NEAR_END);
        let body = serde_json::to_vec(&Failure::from(&error)).unwrap_or_default();
        // Whether or not it still reads this.
        let _ = to.send_frame(&Frame { tag: OLD_FAILURE, body });
        return Err(error);
    }
    frames::welcome(frame, NEAR_END, &mut to)?;
    serve_within(from, to, None)
}

const NEAR_END: &str = "the near end";

/// Serves the far end of one part, over a connection whose two ends have greeted each other, until the near end says that it
/// is over or `from` ends.
///
/// # Errors
/// If the near end breaks the protocol or asks for more than it may, or a socket fails. The near end has been told.
pub fn serve_far(from: impl FrameSource, to: impl FrameSink, allowed: FarLimits) -> Result<(), LiveError> {
    serve_within(from, to, Some(allowed))
}

/// Serves one session of a near end that was welcomed; with limits, what it says of addresses does not count.
fn serve_within(
    mut from: impl FrameSource,
    to: impl FrameSink,
    allowed: Option<FarLimits>,
) -> Result<(), LiveError> {
    let (say, said) = sync_channel(64);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || write_frames(to, &said));
        let result = session(&mut from, &say, allowed);
        if let Err(error) = &result {
            // If nobody hears it, the pipe's end tells.
            let _ = say.send(FromFar::Failed(Failure::from(error)));
        }
        drop(say);
        let panicked = || LiveError::System {
            what: "the thread that writes to the near end has ended".to_owned(),
            error: io::ErrorKind::Other.into(),
        };
        // A near end that has left needs no reports.
        let written = writer.join().unwrap_or_else(|_| Err(panicked()));
        match (result, written) {
            (Ok(()), Err(LiveError::Peer(PeerError::CutOff { .. } | PeerError::Closed { .. }))) => Ok(()),
            (Ok(()), written) => written,
            (result, _) => result,
        }
    })
}

/// Reports and answers go through one thread, so that nothing that measures waits for the pipe.
fn write_frames(mut to: impl FrameSink, messages: &Receiver<FromFar>) -> Result<(), LiveError> {
    messages.iter().try_for_each(|mut message| {
        if let FromFar::Time(reply) = &mut message {
            reply.replied = Time::from_nanos(clock::raw_now());
        }
        let frame = message.into_frame().map_err(|error| LiveError::Protocol(error.to_string()))?;
        Ok(to.send_frame(&frame)?)
    })
}

/// What all threads of a session share.
pub(crate) struct Session {
    pub(crate) key: Key,
    pub(crate) peer: IpAddr,
    pub(crate) flows: Vec<FlowTerms>,
    /// Ids are below this.
    pub(crate) members: u32,
    /// Datagrams have at most so many bytes.
    pub(crate) largest: usize,
    /// The clock's epoch; [`NOT_STARTED`] until it is known.
    epoch: AtomicU64,
    over: AtomicBool,
    pub(crate) unreflected: AtomicU64,
    /// What the host's owner lets be sent back.
    replies: [Limited; 2],
}

const NOT_STARTED: u64 = u64::MAX;
/// No thread waits longer than this without looking whether the session is over.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

impl Session {
    /// The run's clock, once it has started.
    #[inline]
    pub(crate) fn clock(&self) -> Option<MonotonicClock> {
        let epoch = self.epoch.load(Ordering::Relaxed);
        (epoch != NOT_STARTED).then(|| MonotonicClock::with_epoch(epoch))
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// The index of the flow of the member with this id.
    #[inline]
    pub(crate) fn place_of(&self, id: u32) -> Option<usize> {
        // Files have few flows; the members of one are found by arithmetic.
        self.flows.iter().position(|flow| id.wrapping_sub(flow.listens.first) < flow.listens.members)
    }

    /// A listener on what may bring messages of any flow.
    pub(crate) fn listener(&self) -> Listener {
        let first = self.flows.first().map_or(0, |flow| flow.listens.first);
        let flows = self.flows.iter().map(|flow| flow.listens).collect();
        Listener::new(Side::Sink(0), flows, first..self.members)
    }

    /// The place of a conversation of this flow whose replies are held back; `None` if nothing holds them back.
    pub(crate) fn turn(&self, flow: usize) -> Option<Turn> {
        self.replies.iter().find_map(|limited| limited.turn(flow))
    }

    /// For each flow, how long its replies have waited.
    fn held(&self) -> Vec<u64> {
        let of_flow = |flow| self.replies.iter().map(|limited| limited.held(flow).as_nanos()).sum();
        (0..self.flows.len()).map(of_flow).collect()
    }
}

/// Ends the session also when a thread panics or returns early.
struct EndOnDrop<'s>(&'s Session);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

fn session(
    from: &mut impl FrameSource,
    say: &SyncSender<FromFar>,
    allowed: Option<FarLimits>,
) -> Result<(), LiveError> {
    let mut open = match frames::receive(from)? {
        None => return Ok(()),
        Some(ToFar::Open(open)) => *open,
        Some(_) => {
            return Err(LiveError::Protocol("the session does not begin with its parameters".to_owned()));
        }
    };
    for terms in &open.engines {
        if terms.flow >= open.flows.len() {
            return Err(LiveError::Protocol("engines of an unknown flow".to_owned()));
        }
    }
    let mut replies = [Limited::default(), Limited::default()];
    if let Some(allowed) = allowed {
        replies = allowed.replies(&open.flows);
        (open.address, open.peer) = (allowed.address, allowed.peer);
        let asked = open.flows.iter().fold(0, |sum: u32, flow| sum.saturating_add(flow.listens.members));
        if asked > allowed.members {
            return Err(LiveError::NotAllowed(format!(
                "{asked} simultaneous conversations are more than the {} that its owner allows",
                allowed.members
            )));
        }
        let held = |terms: &EngineTerms| {
            terms
                .spec
                .transport()
                .buffers()
                .count()
                .saturating_mul(open.flows[terms.flow].listens.members.into())
        };
        let held = Bytes(open.engines.iter().map(held).fold(0, u64::saturating_add));
        if held > allowed.buffers {
            return Err(LiveError::NotAllowed(format!(
                "the transports may hold {held} in buffers, more than the {} that were offered for the part",
                allowed.buffers
            )));
        }
    }
    let end = |flow: &FlowTerms| flow.listens.first.saturating_add(flow.listens.members);
    let members = open.flows.iter().map(end).max().unwrap_or(0);
    // Far more than the sockets of one host; one per TCP conversation, and some of our own.
    let _ = trunkline_io::process::raise_open_files(u64::from(members).min(1 << 16) + 64);

    let buffer = usize::try_from(open.udp_buffer).ok();
    let options = SocketOptions { receive_buffer: buffer, send_buffer: buffer, priority: None };
    let (udp, _) = trunkline_io::udp::open(SocketAddr::new(open.address, open.port), None, options)
        .map_err(LiveError::binding(open.address, open.port))?;
    trunkline_io::udp::set_receive_timeout(&udp, LOOK).map_err(LiveError::system("a receive timeout"))?;
    if open.kernel_stamps {
        trunkline_io::udp::stamp_received(&udp)
            .map_err(LiveError::system("the kernel does not timestamp arrivals"))?;
    }
    let listeners = listen(&open)?;
    let carriers = carriers(&open)?;
    let turned = open.engines.iter().zip(&carriers).map(|(terms, sockets)| engines(&open, terms, sockets));
    let turned = turned.collect::<Result<Vec<Engines<'_>>, LiveError>>()?;
    let ports =
        |sockets: &Vec<UdpSocket>| sockets.iter().map(|socket| port_of(socket.local_addr())).collect();
    let ready = Ready {
        udp: port_of(udp.local_addr())?,
        tcp: listeners.iter().map(port).collect::<Result<_, _>>()?,
        engines: carriers.iter().map(ports).collect::<Result<_, _>>()?,
    };
    let counters = Mutex::new(vec![Counters::new(); open.engines.len()]);

    let session = Session {
        key: Key(open.key),
        peer: open.peer,
        flows: open.flows.clone(),
        members,
        largest: open.largest as usize,
        epoch: AtomicU64::new(NOT_STARTED),
        over: AtomicBool::new(false),
        unreflected: AtomicU64::new(0),
        replies,
    };
    let how = udp::How { receive: open.receive, kernel_stamps: open.kernel_stamps, rest: open.rest };
    let _ = say.send(FromFar::Ready(ready));
    let result = std::thread::scope(|scope| {
        let _end = EndOnDrop(&session);
        spawn(scope, "udp", || udp::run(&udp, how, &session, Reporter::new(say.clone())))?;
        if !listeners.is_empty() {
            spawn(scope, "accept", || tcp::accept(scope, &listeners, &session, say))?;
        }
        for (place, (engines, terms)) in turned.into_iter().zip(&open.engines).enumerate() {
            let (flow, reporter) = (session.flows[terms.flow], Reporter::new(say.clone()));
            let conversations = terms.conversations(&flow).collect();
            let (session, counters) = (&session, &counters);
            spawn(scope, "engine", move || {
                let counted = engine::run(engines, conversations, flow, session, reporter);
                counters.lock().unwrap_or_else(PoisonError::into_inner)[place] = counted;
            })?;
        }
        converse(from, say, &session)
    });
    if let Ok(true) = result {
        let engines = counters.into_inner().unwrap_or_else(PoisonError::into_inner);
        let unreflected = session.unreflected.load(Ordering::Relaxed);
        let _ = say.send(FromFar::Bye(Bye { unreflected, engines, held: session.held() }));
        // Who wants to know the time until all is settled closes the pipe when it is.
        while let Some(ToFar::Time(request)) = frames::receive(from)? {
            tell_time(request, say);
        }
    }
    result.map(|_| ())
}

/// Does what the near end says; true when it says that the run is over, false when it says nothing more.
fn converse(
    from: &mut impl FrameSource,
    say: &SyncSender<FromFar>,
    session: &Session,
) -> Result<bool, LiveError> {
    loop {
        match frames::receive(from)? {
            Some(ToFar::Start(epoch)) => {
                session.epoch.store(epoch, Ordering::Relaxed);
                let _ = say.send(FromFar::Started);
            }
            Some(ToFar::Time(request)) => tell_time(request, say),
            Some(ToFar::Finish) => return Ok(true),
            None => return Ok(false),
            Some(ToFar::Open(_)) => return Err(LiveError::Protocol("a session is opened twice".to_owned())),
        }
    }
}

/// Replies to the request for the time that has just arrived.
fn tell_time(request: TimeRequest, say: &SyncSender<FromFar>) {
    let received = Time::from_nanos(clock::raw_now());
    let _ = say.send(FromFar::Time(request.reply(received, Turning::of(clock::IS_FREE))));
}

pub(crate) fn spawn<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    name: &str,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), LiveError> {
    let started = std::thread::Builder::new().name(format!("far-{name}")).spawn_scoped(scope, work);
    started.map(|_| ()).map_err(LiveError::system("cannot start a thread"))
}

/// Opens the listeners: the first at the port that was asked for.
fn listen(open: &Open) -> Result<Vec<TcpListener>, LiveError> {
    let mut listeners = Vec::new();
    for (place, terms) in open.listeners.iter().enumerate() {
        let port = if place == 0 { open.port } else { 0 };
        let listener = listen_as(SocketAddr::new(open.address, port), &terms.setup);
        let listener = listener.map_err(|error| match error {
            TcpError::Io(error) => LiveError::binding(open.address, port)(error),
            other => LiveError::Flow { flow: terms.flow.clone(), reason: other.to_string() },
        })?;
        listener.set_nonblocking(true).map_err(LiveError::system("cannot set up a listener"))?;
        listeners.push(listener);
    }
    Ok(listeners)
}

/// Opens the sockets of engines, flow by flow: from the port behind the one that was asked for, where they have ports.
fn carriers(open: &Open) -> Result<Vec<Vec<UdpSocket>>, LiveError> {
    let mut ports = (open.port..=u16::MAX).skip(1);
    let mut carriers = Vec::new();
    for terms in &open.engines {
        let carrier = terms.spec.carrier();
        let socket = |_| {
            let port = match (carrier, open.port) {
                (Carrier::Ip { .. }, _) | (_, 0) => Some(0),
                _ => ports.next(),
            };
            let port = port.ok_or_else(|| LiveError::System {
                what: format!("there are too few ports above {} for all conversations", open.port),
                error: io::ErrorKind::AddrNotAvailable.into(),
            })?;
            let local = SocketAddr::new(open.address, port);
            crate::engine::open(carrier, local, None, open.udp_buffer).map_err(crate::engine::not_opened(
                terms.spec.flow(),
                carrier,
                local,
            ))
        };
        let conversations = terms.conversations(&open.flows[terms.flow]);
        carriers.push(conversations.map(socket).collect::<Result<_, _>>()?);
    }
    Ok(carriers)
}

/// Makes the engines of a flow, which wait for their peers.
fn engines<'s>(open: &Open, terms: &EngineTerms, sockets: &'s [UdpSocket]) -> Result<Engines<'s>, LiveError> {
    let seed = Seed::new(open.seed, 0);
    let engine = |((member, ids), socket)| {
        let refused = |reason| LiveError::Flow { flow: terms.spec.flow().to_owned(), reason };
        let pair = terms.spec.pair(member, seed).map_err(refused)?;
        let messages = (Key(open.key), ids);
        let (near, far) = (pair.near.address, pair.far.address);
        let intake = Intake::of(terms.spec.carrier(), [open.address, open.peer], far, near);
        let way = (socket, Route::Follows(open.peer, None), intake);
        let loss = Loss::every(open.lose_every);
        Engine::new(pair.far.endpoint, near, way, messages, loss)
            .map_err(LiveError::system("a socket has no address"))
    };
    let conversations = (0..).zip(terms.conversations(&open.flows[terms.flow]));
    let engines = conversations.zip(sockets).map(engine).collect::<Result<_, _>>()?;
    Ok(Engines::new(engines, sockets, open.receive))
}

fn port(listener: &TcpListener) -> Result<u16, LiveError> {
    port_of(listener.local_addr())
}

fn port_of(address: io::Result<SocketAddr>) -> Result<u16, LiveError> {
    address.map(|address| address.port()).map_err(LiveError::system("a socket has no address"))
}

/// For benches: the reflector alone, on a socket of the caller's, until `over` is set.
#[doc(hidden)]
pub fn reflect(socket: &UdpSocket, key: Key, peer: IpAddr, receive: crate::Receive, over: &AtomicBool) {
    let listens = ListenerSpec {
        first: 0,
        members: 1,
        ids: 1,
        channels: u16::MAX,
        reflect: true,
        answer: None,
        cover: Cover::default(),
        keeps_payload: false,
    };
    let terms = FlowTerms { listens, is_greedy: false };
    let session = Session {
        key,
        peer,
        flows: vec![terms],
        members: 1,
        largest: 65_507,
        epoch: AtomicU64::new(0),
        over: AtomicBool::new(false),
        unreflected: AtomicU64::new(0),
        replies: [Limited::default(), Limited::default()],
    };
    let (say, _said) = sync_channel(64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                trunkline_io::pace::sleep(LOOK);
            }
            drop(EndOnDrop(&session));
        });
        udp::run(
            socket,
            udp::How { receive, kernel_stamps: false, rest: Duration::ZERO },
            &session,
            Reporter::new(say),
        );
    });
}
