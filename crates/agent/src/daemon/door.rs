//! Who has a connection: strangers, until they have shown who they are, and those who are known.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use trunkline_control::message::Purpose;
use trunkline_control::{Connection, Fingerprint, Held, Incoming, PeerError, Refusal, RefusalKind};
use trunkline_core::Duration;
use trunkline_io::admission::{Places, Ticket};

use super::connected::{Controller, Open};
use super::{Daemon, far, session};
use crate::counters::Connection as Became;
use crate::memory;
use crate::traces::{Parent, Span};

/// How long somebody who connects has for the handshake, and then for the greeting.
pub(super) const GREETING: Duration = Duration::from_secs(10);
/// Connections of those whom we do not know yet: each has a thread.
pub(super) const STRANGERS: Places = Places { total: 64, of_source: 8 };
/// Connections of one controller.
const OF_CONTROLLER: usize = 32;

/// A connection that is among those that are open until this is dropped.
struct Entered<'d> {
    daemon: &'d Daemon,
    number: u64,
    /// What the connection takes of memory.
    _held: Option<Held>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.daemon.sessions().remove(&self.number);
    }
}

impl Daemon {
    /// Takes in somebody who has connected; another may have to go for them. `None` if no descriptor is left.
    pub(super) fn ticket(&self, incoming: &Incoming) -> Option<Ticket> {
        let cut = incoming.cutter().ok()?;
        Some(self.strangers.enter(incoming.peer_address().ip(), cut))
    }

    /// Somebody had connected and said nothing.
    pub(super) fn refused_silent(&self) {
        self.counters.connection(Became::Refused);
    }

    /// Somebody has connected and says something.
    pub(super) fn receive(self: &Arc<Daemon>, incoming: Incoming, ticket: Ticket) {
        let daemon = Arc::clone(self);
        if let Err(error) = self.spawn("connection", move || daemon.greet(incoming, ticket)) {
            self.notices.tell(error.to_string());
        }
    }

    /// Finds out who it is and what they want, and does that.
    fn greet(self: Arc<Daemon>, incoming: Incoming, ticket: Ticket) {
        let peer = incoming.peer_address();
        let mut span =
            self.traces.span("connection", &Parent::default(), &[("network.peer.address", peer.to_string())]);
        let greeted = incoming.handshake(GREETING).and_then(|mut connection| {
            let hello = connection.hear(GREETING)?;
            Ok((connection, hello.purpose))
        });
        let (connection, purpose) = match greeted {
            Ok(greeted) => greeted,
            Err(error) => {
                self.counters.connection(Became::Failed);
                span.failed(&error.to_string());
                return self.notices.log_of_stranger(&error.to_string());
            }
        };
        match purpose {
            Purpose::Control => self.control(connection, ticket, &mut span),
            Purpose::Pair => self.pair(connection, ticket, &mut span),
            Purpose::Session | Purpose::FarEnd => {
                self.counters.connection(Became::Refused);
                let why = "this is an agent; `trunkline reflect` and `trunkline receive` serve sessions, and \
                           `trunkline far-end` the process that started it";
                // Who has left need not know.
                let _ = connection.refuse(Refusal::new(RefusalKind::Other, why));
            }
            Purpose::Join { token } => {
                span.know("trunkline.purpose", "join");
                // Known by the token.
                let known = |connection: &Connection| {
                    ticket.known();
                    self.entered(connection)
                };
                match far::join(&self, connection, &token, known) {
                    Ok(()) => self.counters.connection(Became::Joined),
                    Err(refusal) => {
                        span.failed(&refusal.why);
                        self.counters.connection(Became::Refused);
                        self.notices.log_of_stranger(&format!("{peer} as a near end: {}", refusal.why));
                    }
                }
            }
        }
    }

    fn control(self: &Arc<Daemon>, connection: Connection, ticket: Ticket, span: &mut Span) {
        span.know("trunkline.purpose", "control");
        let (peer, fingerprint) = (connection.peer_address(), connection.peer_fingerprint());
        let controller = match self.known(&fingerprint) {
            Ok(controller) => controller,
            Err(refusal) => {
                self.counters.connection(Became::Refused);
                span.failed(&refusal.why);
                self.notices.log_of_stranger(&format!("refused {peer}: {}", refusal.why));
                // Who has left need not know.
                let _ = connection.refuse(refusal);
                return;
            }
        };
        ticket.known();
        let entered = match self.enter(&connection, &controller) {
            Ok(entered) => entered,
            Err(refusal) => {
                self.counters.connection(Became::Refused);
                span.failed(&refusal.why);
                let _ = connection.refuse(refusal);
                return;
            }
        };
        if connection.welcome(&self.config.name).is_err() {
            return self.counters.connection(Became::Failed);
        }
        self.counters.connection(Became::Control);
        span.know("trunkline.controller", controller.name.as_str());
        self.notices.log(&format!("{} has connected from {peer}", controller.name));
        let how = session::serve(self, connection, &controller);
        drop(entered);
        match how {
            Ok(()) => self.notices.log(&format!("{} has left", controller.name)),
            Err(error) => {
                span.failed(&error.to_string());
                self.notices.log(&format!("{}: {error}", controller.name));
            }
        }
    }

    fn pair(&self, connection: Connection, ticket: Ticket, span: &mut Span) {
        span.know("trunkline.purpose", "pair");
        let peer = connection.peer_address();
        if connection.welcome(&self.config.name).is_err() {
            return self.counters.connection(Became::Failed);
        }
        match self.pairing.admit(connection, &self.peers, Timestamp::now(), GREETING) {
            Ok(controller) => {
                ticket.known();
                self.counters.connection(Became::Paired);
                self.notices.tell(format!(
                    "the controller {} at {peer} is enrolled, key {}",
                    controller.name, controller.fingerprint
                ));
            }
            Err(error) => {
                span.failed(&error.to_string());
                self.counters.connection(Became::Refused);
                let why = match &error {
                    PeerError::Refused { refusal, .. } => refusal.why.clone(),
                    error => error.to_string(),
                };
                self.tell_of_trial(peer.ip(), &error, &why);
            }
        }
    }

    /// Somebody was not enrolled.
    fn tell_of_trial(&self, from: IpAddr, error: &PeerError, why: &str) {
        let text = format!("{} failed to enrol: {why}", from.to_canonical());
        match concerns_owner(error) {
            true => self.notices.tell(text),
            false => self.notices.log_of_stranger(&text),
        }
    }

    /// Whose key this is.
    fn known(&self, fingerprint: &Fingerprint) -> Result<Controller, Refusal> {
        if *fingerprint == self.identity.fingerprint() {
            let name = self.config.name.clone();
            return Ok(Controller { name, fingerprint: *fingerprint, is_owner: true });
        }
        match self.peers.find(fingerprint) {
            Ok(Some(peer)) => Ok(Controller { name: peer.name, fingerprint: *fingerprint, is_owner: false }),
            Ok(None) => Err(Refusal::new(
                RefusalKind::NotEnrolled,
                format!(
                    "this controller is not enrolled at {}; run `trunkline agent pair` there, and the command \
                    that it prints here",
                    self.config.name
                ),
            )),
            Err(error) => {
                // What is wrong with our files is nothing for strangers.
                self.notices.tell(format!("cannot check whether a controller is enrolled: {error}"));
                let why = format!(
                    "{} cannot check whether this controller is enrolled; `trunkline agent status` there says why",
                    self.config.name
                );
                Err(Refusal::new(RefusalKind::Environment, why))
            }
        }
    }

    /// Takes in a controller's connection, unless it has too many.
    fn enter(&self, connection: &Connection, controller: &Controller) -> Result<Entered<'_>, Refusal> {
        let mut sessions = self.sessions();
        let own = sessions
            .values()
            .filter(|open| open.is_controller() && open.fingerprint == controller.fingerprint);
        if own.count() >= OF_CONTROLLER {
            let (name, host) = (&controller.name, &self.config.name);
            let why = format!(
                "{name} already has the maximum of {OF_CONTROLLER} connections to {host}; close one of them"
            );
            return Err(Refusal::new(RefusalKind::Limit, why));
        }
        // The owner comes in whatever others hold.
        let held = match controller.is_owner {
            true => None,
            false => {
                let share = self.memory.share(controller.fingerprint);
                let held = share.take(memory::CONNECTION);
                Some(held.map_err(|error| memory::refused(&self.config.name, "a connection", &error))?)
            }
        };
        let open = Open {
            fingerprint: controller.fingerprint,
            controller: Some(controller.name.clone()),
            closer: connection.closer(),
        };
        Ok(Entered { daemon: self, number: numbered(&mut sessions, open), _held: held })
    }

    /// Takes in another agent's connection.
    fn entered(&self, connection: &Connection) -> Entered<'_> {
        let (fingerprint, closer) = (connection.peer_fingerprint(), connection.closer());
        let open = Open { fingerprint, controller: None, closer };
        // Counted with the part that it joins.
        Entered { daemon: self, number: numbered(&mut self.sessions(), open), _held: None }
    }
}

fn numbered(sessions: &mut std::collections::BTreeMap<u64, Open>, open: Open) -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    sessions.insert(number, open);
    number
}

/// Whether the owner should know that somebody was not enrolled: a code was tried, or something is wrong here. What anybody
/// can bring about as often as they like would push everything else out of the notices.
fn concerns_owner(error: &PeerError) -> bool {
    match error {
        PeerError::Refused { refusal, .. } => {
            matches!(refusal.kind, RefusalKind::WrongCode | RefusalKind::CodeUsed | RefusalKind::Name)
        }
        error => matches!(error, PeerError::Damaged { .. } | PeerError::File { .. }),
    }
}
