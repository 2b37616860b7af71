//! One agent as the controller sees it: the connection, which comes and goes, and its clock.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use trunkline_control::clock::ClockComparison;
use trunkline_control::facts::Facts;
use trunkline_control::message::Purpose;
use trunkline_control::{
    Connection, Fingerprint, FrameReader, FrameWriter, FromAgent, Identity, Peer, PeerError, Peers,
    RefusalKind, ToAgent, connect,
};
use trunkline_core::Duration;
use trunkline_io::clock;
use trunkline_metrics::clocks::Turning;

use crate::controller::error::FleetError;

/// What reaches the thread that measures.
#[derive(Debug)]
pub(crate) struct Event {
    /// Of which agent, by its index.
    pub(crate) agent: usize,
    /// Of which of its connections.
    pub(crate) connection: u32,
    /// What our raw clock showed.
    pub(crate) heard: u64,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Said(FromAgent),
    /// The connection is over, for this reason.
    Gone(String),
    /// There is a new one.
    Back(Box<Connection>),
    /// There is none yet; whether another attempt would come to the same.
    Away {
        reason: String,
        is_final: bool,
    },
}

/// One agent, which may stand for several hosts.
#[derive(Debug)]
pub(crate) struct Agent {
    /// The name under which it is enrolled here: no other agent has it.
    pub(crate) name: String,
    /// The first host that it stands for.
    pub(crate) host: String,
    pub(crate) address: String,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) facts: Option<Facts>,
    /// While there is a connection.
    pub(crate) link: Option<FrameWriter>,
    /// How many connections there have been: what an older one says does not count.
    pub(crate) connection: u32,
    /// Why there is no connection.
    pub(crate) gone: Option<String>,
    /// Whether one is being made.
    pub(crate) returning: bool,
    /// Whether it is there and does not let us in any more.
    pub(crate) is_turned_away: bool,
    /// Its clock, compared with ours over this connection.
    pub(crate) clock: ClockComparison,
}

impl Agent {
    /// Not connected yet.
    pub(crate) fn new(host: &str, address: &str, peer: &Peer) -> Agent {
        Agent {
            name: peer.name.clone(),
            host: host.to_owned(),
            address: address.to_owned(),
            fingerprint: peer.fingerprint,
            facts: None,
            link: None,
            connection: 0,
            gone: None,
            returning: false,
            is_turned_away: false,
            clock: compared(),
        }
    }

    /// Talks with the agent over this connection from now on. The clock may be another one: the host may have started anew.
    pub(crate) fn take(
        &mut self,
        index: usize,
        connection: Connection,
        tell: &SyncSender<Event>,
    ) -> Result<(), PeerError> {
        let (reader, writer) = connection.split();
        self.connection += 1;
        (self.link, self.gone, self.returning) = (Some(writer), None, false);
        self.is_turned_away = false;
        self.clock = compared();
        let (connection, tell) = (self.connection, tell.clone());
        let listen = move || listen(reader, index, connection, &tell);
        let thread = std::thread::Builder::new().name("hear-agent".to_owned()).spawn(listen);
        thread.map(|_| ()).map_err(|error| PeerError::System { what: "cannot start a thread", error })
    }

    /// The connection is over.
    pub(crate) fn lose(&mut self, reason: String) {
        self.link = None;
        self.gone.get_or_insert(reason);
    }

    /// Says something, if there is a connection. That nobody hears it, the reader will notice.
    pub(crate) fn say(&self, what: &ToAgent) {
        if let Some(link) = &self.link {
            let _ = link.send(what);
        }
    }
}

/// No reply yet.
fn compared() -> ClockComparison {
    ClockComparison::new(Turning::of(clock::IS_FREE))
}

fn listen(mut reader: FrameReader, agent: usize, connection: u32, tell: &SyncSender<Event>) {
    loop {
        let (what, is_last) = match reader.receive() {
            Ok(Some(said)) => (What::Said(said), false),
            Ok(None) => (What::Gone("it closed the connection".to_owned()), true),
            Err(error) => (What::Gone(error.to_string()), true),
        };
        let event = Event { agent, connection, heard: clock::raw_now(), what };
        if tell.send(event).is_err() || is_last {
            return;
        }
    }
}

/// Connects with an agent and introduces this controller.
pub(crate) fn reach(
    address: &str,
    fingerprint: &Fingerprint,
    identity: &Identity,
    patience: Duration,
) -> Result<Connection, PeerError> {
    let mut connection = connect(address, identity, fingerprint, patience)?;
    connection.introduce(Purpose::Control, patience)?;
    Ok(connection)
}

/// Tries to reach an agent again, in a thread of its own; tells how that went.
pub(crate) fn reach_again(
    agent: &Agent,
    index: usize,
    identity: &Arc<Identity>,
    patience: Duration,
    tell: &SyncSender<Event>,
) {
    let (address, fingerprint, connection) = (agent.address.clone(), agent.fingerprint, agent.connection);
    let (identity, tell) = (Arc::clone(identity), tell.clone());
    let attempt = move || {
        let what = match reach(&address, &fingerprint, &identity, patience) {
            Ok(reached) => What::Back(Box::new(reached)),
            Err(error) => What::Away { is_final: is_final(&error), reason: error.to_string() },
        };
        let _ = tell.send(Event { agent: index, connection, heard: clock::raw_now(), what });
    };
    // Without a thread there will be another attempt.
    let _ = std::thread::Builder::new().name("reach-agent".to_owned()).spawn(attempt);
}

/// Whether another attempt a moment later would come to the same.
fn is_final(error: &PeerError) -> bool {
    match error {
        PeerError::Refused { refusal, .. } => refusal.kind == RefusalKind::NotEnrolled,
        error => matches!(error, PeerError::WrongKey { .. }),
    }
}

/// The agent enrolled at an address, however that is written.
pub(crate) fn enrolled(peers: &Peers, host: &str, address: &str) -> Result<Peer, FleetError> {
    let failed = |error| FleetError::Control { host: host.to_owned(), error };
    let known = peers.list().map_err(failed)?;
    let at = |peer: &&Peer| peer.address.as_deref().is_some_and(|known| with_port(known) == address);
    if let Some(peer) = known.iter().find(at) {
        return Ok(peer.clone());
    }
    let ours = resolved(address);
    let same = |peer: &Peer| {
        let theirs = peer.address.as_deref().map(|known| resolved(&with_port(known))).unwrap_or_default();
        theirs.iter().any(|address| ours.contains(address))
    };
    known
        .into_iter()
        .find(same)
        .ok_or_else(|| FleetError::NotEnrolled { host: host.to_owned(), address: address.to_owned() })
}

/// `host:port`, with an agent's usual port where none is written.
fn with_port(address: &str) -> String {
    let default = trunkline_control::DEFAULT_PORT;
    if address.parse::<SocketAddr>().is_ok() {
        return address.to_owned();
    }
    let bare = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    match bare.parse() {
        Ok(ip) => SocketAddr::new(ip, default).to_string(),
        Err(_) if address.contains(':') => address.to_owned(),
        Err(_) => format!("{address}:{default}"),
    }
}

/// The addresses that a name stands for; none if it stands for nothing.
pub(crate) fn resolved(address: &str) -> Vec<SocketAddr> {
    address.to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_been_revoked_need_not_try_again() {
        let refused = |kind| PeerError::Refused {
            who: "the agent at 10.0.0.7:4781".to_owned(),
            refusal: trunkline_control::Refusal::new(kind, "no"),
        };
        assert!(is_final(&refused(RefusalKind::NotEnrolled)));
        assert!(!is_final(&refused(RefusalKind::Stopping)), "an agent that is being stopped comes back");
    }

    #[test]
    fn an_address_without_a_port_has_the_usual_one() {
        for (written, meant) in [
            ("10.0.0.7", "10.0.0.7:4781"),
            ("10.0.0.7:5", "10.0.0.7:5"),
            ("fd00::7", "[fd00::7]:4781"),
            ("[fd00::7]", "[fd00::7]:4781"),
            ("studio", "studio:4781"),
            ("studio:5", "studio:5"),
        ] {
            assert_eq!(with_port(written), meant, "{written}");
        }
    }
}
