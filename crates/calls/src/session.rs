//! A session at either end: a line, and the control connection beside it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

use serde::Serialize;
use trunkline_core::{Duration, Time};
use trunkline_io::{Interest, clock};
use trunkline_metrics::clocks::{Offset, Turning};
use trunkline_peer::clock::{ClockComparison, Pace, TimeRequests};
use trunkline_transport::Features;

use crate::control::Channel;
use crate::control::wire::{ToClient, ToServer};
use crate::line::{Ended, Line, LineCounters, Packets, Refused};
use crate::request::{Facts, Key, Request};
use crate::wait::Waiter;

/// Who has not said anything for so long is gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(10);
/// The intervals at which a client asks for the server's time.
const PACE: Pace = Pace { first: 20, fast: Duration::from_millis(50), slow: Duration::from_secs(1) };
/// So many lines of the control connection are heard before others have their turn.
const LINES: usize = 16;
/// So many packets are kept that arrive before the session has begun.
const MOST_EARLY: usize = 1024;
/// So much of what the other end tells is kept.
const MOST_TOLD: usize = 16;

/// A session at one of its ends. As a [`Line`] it puts the session's key of eight bytes before every packet, counts and
/// drops what arrives without, and never hands on an empty packet. It ends when the control connection does, or says
/// nothing for ten seconds: so its owner turns it at least as often as [`next_timeout`](Line::next_timeout) asks for.
pub struct Session {
    line: Box<dyn Line>,
    control: Channel,
    side: Side,
    request: Request,
    facts: Facts,
    key: Key,
    peer: SocketAddr,
    /// Packets behind their keys, on their way out.
    leaving: Packets,
    /// What arrived before the session had begun.
    early: Vec<(Time, Vec<u8>)>,
    /// What was counted before.
    before: LineCounters,
    strays: u64,
    /// Greetings, which a client repeats until it is heard. They are not packets of the session.
    greetings: u64,
    /// What the other end has told.
    told: VecDeque<serde_json::Value>,
    ended: Option<Ended>,
}

enum Side {
    Client {
        clock: ClockComparison,
        requests: TimeRequests,
        far: Option<LineCounters>,
        /// The server has got a packet with the key.
        heard: bool,
    },
    Server {
        /// A packet with the key has come.
        heard: bool,
    },
}

/// What both ends know of a session.
pub(crate) struct Terms {
    pub(crate) request: Request,
    pub(crate) facts: Facts,
    pub(crate) key: Key,
    pub(crate) peer: SocketAddr,
}

impl Session {
    pub(crate) fn client(line: Box<dyn Line>, control: Channel, terms: Terms) -> Session {
        let side = Side::Client {
            clock: ClockComparison::new(Turning::of(clock::IS_FREE)),
            requests: TimeRequests::new(PACE),
            far: None,
            heard: false,
        };
        Session::new(line, control, side, terms)
    }

    pub(crate) fn server(line: Box<dyn Line>, control: Channel, terms: Terms) -> Session {
        Session::new(line, control, Side::Server { heard: false }, terms)
    }

    fn new(line: Box<dyn Line>, control: Channel, side: Side, terms: Terms) -> Session {
        let Terms { request, facts, key, peer } = terms;
        Session {
            line,
            control,
            side,
            request,
            facts,
            key,
            peer,
            leaving: Packets::default(),
            early: Vec::new(),
            before: LineCounters::default(),
            strays: 0,
            greetings: 0,
            told: VecDeque::new(),
            ended: None,
        }
    }

    /// What the client has asked for.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// What the server says of itself.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The other end of the control connection.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What the peer's clock shows beyond ours when ours shows `time`, with a bound; `None` at the server, and until the
    /// first answer has come.
    pub fn offset(&self, time: Time) -> Option<Offset> {
        match &self.side {
            Side::Client { clock, .. } => clock.offset(time),
            Side::Server { .. } => None,
        }
    }

    /// What the server's end of the line has counted at its latest answer; `None` at the server, and until the first has
    /// come.
    pub fn far_counters(&self) -> Option<LineCounters> {
        match &self.side {
            Side::Client { far, .. } => *far,
            Side::Server { .. } => None,
        }
    }

    /// Tells the other end something; it is [told](Self::told) there, or not, if the session ends.
    ///
    /// # Errors
    /// That the session is over.
    pub fn tell(&mut self, what: &impl Serialize) -> Result<(), Ended> {
        let what = serde_json::to_value(what).map_err(|error| Ended(error.to_string()))?;
        match &self.side {
            Side::Client { .. } => self.control.say(&ToServer::Tell { what }),
            Side::Server { .. } => self.control.say(&ToClient::Tell { what }),
        }
    }

    /// What the other end has told, in its order. Of what nobody takes, the oldest is forgotten.
    pub fn told(&mut self) -> Option<serde_json::Value> {
        self.told.pop_front()
    }

    /// Turns it until the server has got all that was sent, or for `patience`, and says whether it has: a transport that
    /// repairs losses may still be at work when the last packet was handed over. For clients; at a server false.
    ///
    /// # Errors
    /// That the session is over.
    pub fn finish(
        &mut self,
        patience: Duration,
        arrived: &mut dyn FnMut(Time, &[u8]),
    ) -> Result<bool, Ended> {
        let deadline = crate::now() + patience;
        let mut waiter = Waiter::default();
        loop {
            let now = crate::now();
            self.turn(now, arrived)?;
            let Side::Client { requests, far, .. } = &mut self.side else { return Ok(false) };
            requests.hasten(now);
            let received = far.map_or(0, |far| far.received);
            let counters = self.counters();
            if received >= counters.sent && self.line.unsent() == 0 {
                return Ok(true);
            }
            if now >= deadline {
                return Ok(false);
            }
            waiter.wait(self, None, deadline);
        }
    }

    /// Whether a packet with the key has reached the server.
    pub(crate) fn is_open(&self) -> bool {
        match self.side {
            Side::Client { heard, .. } | Side::Server { heard } => heard,
        }
    }

    /// Sends a packet with nothing but the key.
    pub(crate) fn greet(&mut self, now: Time) {
        // What is not taken is sent again.
        let _ = self.line.send(now, &self.key.bytes());
    }

    /// Turns it before it has begun, which [`is_open`](Self::is_open) tells.
    pub(crate) fn open(&mut self, now: Time) -> Result<(), Ended> {
        let mut early = core::mem::take(&mut self.early);
        let result = self.turn(now, &mut |at, packet| {
            if early.len() < MOST_EARLY {
                early.push((at, packet.to_vec()));
            }
        });
        self.early = early;
        self.before = LineCounters::default();
        self.before = self.counters();
        result
    }

    /// Tells the peer why the session is over.
    pub(crate) fn tell_end(&mut self, why: &str) {
        // Who does not hear it sees the end of the connection.
        let _ = match self.side {
            Side::Client { .. } => self.control.say(&ToServer::Bye),
            Side::Server { .. } => self.control.say(&ToClient::Ended { why: why.to_owned() }),
        };
    }

    /// Hears and says what there is on the control connection.
    fn converse(&mut self, now: Time) -> Result<(), Ended> {
        let Session { control, side, told, .. } = self;
        if now.since(control.heard()) > SILENCE {
            let who = if matches!(side, Side::Client { .. }) { "server" } else { "client" };
            return Err(Ended(format!("the {who} has sent nothing for {SILENCE}")));
        }
        control.flush()?;
        for _ in 0..LINES {
            match side {
                Side::Client { clock, far, heard, .. } => match control.hear::<ToClient>(now)? {
                    Some(ToClient::Time(reply)) => _ = clock.take(reply, crate::now()),
                    Some(ToClient::Counters(counters)) => *far = Some(counters),
                    Some(ToClient::Heard) => *heard = true,
                    Some(ToClient::Tell { what }) => keep(told, what),
                    Some(ToClient::Ended { why }) => return Err(Ended(why)),
                    Some(ToClient::Refused { refusal }) => return Err(Ended(refusal.why)),
                    Some(ToClient::Opened(_) | ToClient::Challenge { .. }) => {
                        return Err(Ended("the server opened the session twice".to_owned()));
                    }
                    None => break,
                },
                Side::Server { .. } => match control.hear::<ToServer>(now)? {
                    Some(ToServer::Time(request)) => {
                        let reply = request.reply(crate::now(), Turning::of(clock::IS_FREE));
                        control.say(&ToClient::Time(reply))?;
                        let counters =
                            without(self.line.counters(), self.strays, self.greetings).since(&self.before);
                        control.say(&ToClient::Counters(counters))?;
                    }
                    Some(ToServer::Tell { what }) => keep(told, what),
                    Some(ToServer::Bye) => return Err(Ended(GOODBYE.to_owned())),
                    Some(ToServer::Open { .. } | ToServer::Proof { .. }) => {
                        return Err(Ended("the client opened the session twice".to_owned()));
                    }
                    None => break,
                },
            }
        }
        if let Side::Client { requests, .. } = side
            && let Some(request) = requests.poll(crate::now())
        {
            control.say(&ToServer::Time(request))?;
        }
        Ok(())
    }

    /// Turns the line, and looks at the keys of what arrives.
    fn carry(&mut self, now: Time, arrived: &mut dyn FnMut(Time, &[u8])) -> Result<(), Ended> {
        let (key, strays, greetings) = (self.key.bytes(), &mut self.strays, &mut self.greetings);
        let mut knocks = false;
        let result = self.line.turn(now, &mut |at, packet| match packet.strip_prefix(&key) {
            Some([]) => {
                knocks = true;
                *greetings += 1;
            }
            Some(packet) => {
                knocks = true;
                arrived(at, packet);
            }
            None => *strays += 1,
        });
        if let Side::Server { heard } = &mut self.side
            && knocks
            && !core::mem::replace(heard, true)
        {
            self.control.say(&ToClient::Heard)?;
        }
        result
    }

    /// Ends it, and tells the peer why.
    pub(crate) fn end(&mut self, now: Time, ended: &Ended) {
        if self.ended.is_none() {
            self.tell_end(&ended.0);
            self.line.close(now);
            self.ended = Some(ended.clone());
        }
    }
}

fn keep(told: &mut VecDeque<serde_json::Value>, what: serde_json::Value) {
    if told.len() == MOST_TOLD {
        told.pop_front();
    }
    told.push_back(what);
}

impl Line for Session {
    fn descriptors<'l>(&'l self, add: &mut dyn FnMut(BorrowedFd<'l>, Interest)) {
        self.line.descriptors(add);
        self.control.descriptors(add);
    }

    fn send(&mut self, now: Time, packet: &[u8]) -> Result<(), Refused> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone().into());
        }
        self.leaving.clear();
        self.leaving.push_parts([&self.key.bytes(), packet]);
        self.line.send(now, self.leaving.get(0).unwrap_or_default()).map_err(|refused| match refused {
            Refused::TooLarge { .. } => Refused::TooLarge { limit: self.largest() },
            refused => refused,
        })
    }

    fn send_all(&mut self, now: Time, packets: &Packets) -> Result<(), Ended> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        self.leaving.clear();
        packets.iter().for_each(|packet| self.leaving.push_parts([&self.key.bytes(), packet]));
        self.line.send_all(now, &self.leaving)
    }

    fn turn(&mut self, now: Time, arrived: &mut dyn FnMut(Time, &[u8])) -> Result<(), Ended> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        if self.is_open() {
            self.early.drain(..).for_each(|(at, packet)| arrived(at, &packet));
        }
        // What arrived before the end is still handed on.
        let carried = self.carry(now, arrived);
        let result = self.converse(now).and(carried);
        if let Err(ended) = &result {
            self.end(now, ended);
        }
        result
    }

    fn next_timeout(&self) -> Option<Time> {
        if !self.early.is_empty() {
            return Some(Time::ZERO);
        }
        let silence = self.control.heard() + SILENCE;
        let ask = match &self.side {
            Side::Client { requests, .. } => requests.next_timeout(),
            Side::Server { .. } => silence,
        };
        let line = self.line.next_timeout().unwrap_or(Time::MAX);
        Some(line.min(ask).min(silence))
    }

    fn unsent(&self) -> usize {
        self.line.unsent()
    }

    fn counters(&self) -> LineCounters {
        without(self.line.counters(), self.strays, self.greetings).since(&self.before)
    }

    fn features(&self) -> &'static Features {
        self.line.features()
    }

    fn largest(&self) -> usize {
        self.line.largest().saturating_sub(Key::LENGTH)
    }

    fn close(&mut self, now: Time) {
        let who = if matches!(self.side, Side::Client { .. }) { "client" } else { "server" };
        self.end(now, &Ended(format!("the {who} has ended the session")));
    }
}

/// The reason of a session that ended in order: the client said goodbye.
pub const GOODBYE: &str = "the client has ended the session";

/// Counters in which packets without the key are strays, and greetings nothing.
fn without(counters: LineCounters, strays: u64, greetings: u64) -> LineCounters {
    let LineCounters { strays: others, received, .. } = counters;
    LineCounters {
        strays: others + strays,
        received: received.saturating_sub(strays + greetings),
        ..counters
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close(crate::now());
    }
}
