//! The engines of a flow at one end: waiting for what they are to do, and doing it.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use trunkline_core::{Duration, Time};
use trunkline_flows::Found;
use trunkline_io::poll::Interest;
use trunkline_io::udp::ReceiveBatch;
use trunkline_io::{MonotonicClock, Poller, clock};
use trunkline_transport::framing::Header;
use trunkline_transport::{Close, CloseReason, Conversation, Event, Features, Message, Received, SendError};

use super::carried::{Counters, receive_batch};
use super::one::Engine;
use crate::options::Receive;

/// The engines of a flow at one end, by place, and their sockets.
pub(crate) struct Engines<'s> {
    clock: MonotonicClock,
    sockets: &'s [UdpSocket],
    engines: Vec<Engine>,
    /// When each wants to be looked after.
    wakes: Vec<Time>,
    poller: Poller<'s>,
    batch: ReceiveBatch,
    receive: Receive,
    touched: Vec<usize>,
    /// How conversations have ended that nobody has asked about yet.
    ended: Vec<CloseReason>,
}

/// Who sends through the engines and takes what comes out of them.
pub(crate) trait Application {
    /// Whether it takes more messages of the conversation at this place.
    fn reads(&self, place: usize) -> bool;

    /// Takes a message, header included.
    fn message(&mut self, place: usize, header: Header, bytes: &mut [u8]);

    /// Takes note of bytes that are no message of this run.
    fn unmatched(&mut self, place: usize, bytes: usize);

    /// Sends what waits, as far as the engine takes it.
    fn pour(&mut self, place: usize, line: &mut Line<'_>);
}

/// An engine that takes messages.
pub(crate) struct Line<'e> {
    engine: &'e mut Engine,
    socket: &'e UdpSocket,
    clock: MonotonicClock,
}

/// The packets that follow from a message leave at once. Engines have a clock of their own: the times of their
/// applications do not count here.
impl Conversation for Line<'_> {
    fn send(&mut self, _: Time, message: Message<'_>) -> Result<(), SendError> {
        let now = self.clock.now();
        self.engine.carried.conversation().send(now, message)?;
        self.engine.carried.transmit(now, self.socket);
        Ok(())
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        self.engine.carried.conversation().receive(into)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.engine.carried.conversation().poll_event()
    }

    fn close(&mut self, _: Time, _: Close) {
        self.engine.carried.close(self.clock.now(), self.socket);
    }

    fn features(&self) -> &'static Features {
        self.engine.carried.features()
    }
}

/// Why a conversation did not come about.
pub(crate) struct NotConnected {
    /// With whom; `None` if the socket does not say.
    pub(crate) to: Option<SocketAddr>,
    /// `None` if nobody answered.
    pub(crate) reason: Option<CloseReason>,
}

impl<'s> Engines<'s> {
    /// Engines with a socket each, in the same order. Their time begins now.
    pub(crate) fn new(engines: Vec<Engine>, sockets: &'s [UdpSocket], receive: Receive) -> Engines<'s> {
        Engines {
            clock: MonotonicClock::starting_now(),
            sockets,
            wakes: vec![Time::ZERO; engines.len()],
            engines,
            poller: Poller::new(sockets.iter().map(|socket| (socket.as_fd(), Interest::Read))),
            batch: receive_batch(),
            receive,
            touched: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Connects all of them, within `patience`.
    pub(crate) fn connect(&mut self, patience: Duration) -> Result<(), NotConnected> {
        struct Nobody;
        impl Application for Nobody {
            // What comes before the run begins waits for it.
            fn reads(&self, _: usize) -> bool {
                false
            }
            fn message(&mut self, _: usize, _: Header, _: &mut [u8]) {}
            fn unmatched(&mut self, _: usize, _: usize) {}
            fn pour(&mut self, _: usize, _: &mut Line<'_>) {}
        }
        let deadline = clock::raw_now().saturating_add(patience.as_nanos());
        let sockets = self.sockets;
        loop {
            self.turn(deadline, &mut Nobody);
            let closed = |(place, engine): (usize, &Engine)| Some((place, engine.carried.closed()?));
            let not_connected = |place: usize, reason| NotConnected {
                to: self.engines[place].carried.peer(&sockets[place]),
                reason,
            };
            if let Some((place, reason)) = self.engines.iter().enumerate().find_map(closed) {
                return Err(not_connected(place, Some(reason)));
            }
            let Some(place) = self.engines.iter().position(|engine| !engine.carried.is_connected()) else {
                return Ok(());
            };
            if clock::raw_now() >= deadline {
                return Err(not_connected(place, None));
            }
        }
    }

    /// Waits until something arrives, something is due, or the monotonic clock reads `until`; then looks after every
    /// engine that this concerns.
    pub(crate) fn turn(&mut self, until: u64, application: &mut impl Application) {
        let earliest = self.wakes.iter().copied().min().unwrap_or(Time::MAX);
        let until = until.min(self.clock.to_raw(earliest));
        let patience = match self.receive {
            Receive::Blocking => Duration::from_nanos(until.saturating_sub(clock::raw_now())),
            Receive::Polling => Duration::ZERO,
        };
        match self.poller.wait(patience) {
            Ok(0) => {}
            Ok(_) => self.take_arrivals(),
            // For lack of memory; a moment later there may be some.
            Err(_) => trunkline_io::pace::sleep(Duration::from_millis(1)),
        }
        let now = self.clock.now();
        for (place, wake) in self.wakes.iter().enumerate() {
            if *wake <= now {
                self.engines[place].carried.due(now);
                self.touched.push(place);
            }
        }
        let mut touched = core::mem::take(&mut self.touched);
        touched.drain(..).for_each(|place| self.serve(place, application));
        self.touched = touched;
    }

    /// Lets the application send through the engine at this place, and looks after that.
    pub(crate) fn pour(&mut self, place: usize, application: &mut impl Application) {
        let Some(mut line) = self.line(place) else { return };
        application.pour(place, &mut line);
        self.serve(place, application);
    }

    /// How conversations have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<CloseReason> {
        core::mem::take(&mut self.ended)
    }

    /// Adds up what was counted, and ends all conversations.
    pub(crate) fn close(mut self) -> Counters {
        let mut counters = Counters::new();
        let now = self.clock.now();
        for (engine, socket) in self.engines.iter_mut().zip(self.sockets) {
            engine.carried.count(&mut counters);
            engine.carried.close(now, socket);
        }
        counters
    }

    fn line(&mut self, place: usize) -> Option<Line<'_>> {
        let engine = self.engines.get_mut(place)?;
        Some(Line { engine, socket: self.sockets.get(place)?, clock: self.clock })
    }

    /// Takes what has arrived at the sockets that are ready.
    fn take_arrivals(&mut self) {
        let Engines { poller, sockets, batch, engines, touched, clock, .. } = self;
        for place in poller.ready() {
            touched.push(place);
            engines[place].carried.take_arrivals(&sockets[place], batch, &|| clock.now());
        }
    }

    /// Drains everything an engine has to say, until it has nothing more.
    fn serve(&mut self, place: usize, application: &mut impl Application) {
        loop {
            let now = self.clock.now();
            let Some(mut line) = self.line(place) else { return };
            line.engine.carried.transmit(now, line.socket);
            let was_open = line.engine.carried.closed().is_none();
            let mut goes_on = line.engine.carried.take_events(line.socket);
            let ended = line.engine.carried.closed().filter(|_| was_open);
            if goes_on {
                application.pour(place, &mut line);
            }
            while application.reads(place) {
                let received = line.engine.receive(|found| match found {
                    Found::Message(header, bytes) => application.message(place, header, bytes),
                    Found::Unmatched(bytes) => application.unmatched(place, bytes),
                });
                if !received {
                    break;
                }
                goes_on = true;
                application.pour(place, &mut line);
            }
            let wake = line.engine.carried.wake();
            self.ended.extend(ended);
            if !goes_on {
                self.wakes[place] = wake;
                return;
            }
        }
    }
}
