//! `trunkline reflect`: everything that comes goes back.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_peer::Peer;

use super::{Event, Observer, ProgramError};
use crate::request::Request;
use crate::server::{Handler, Server, ServerOptions, Stop, echo};
use crate::session::Session;

/// Reflects until it is stopped; `ready` is told where once the control port is open.
///
/// # Errors
/// The control port cannot be opened.
pub fn reflect(
    options: ServerOptions,
    stop: &Stop,
    observer: &dyn Observer,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ProgramError> {
    let server = Server::bind(options, Reflector { observer, sessions: AtomicU64::new(0) })?;
    ready(server.local_address().map_err(ProgramError::system("the control port has no address"))?);
    Ok(server.serve(stop)?)
}

/// Plays by sending back: who sends to it measures round trips.
struct Reflector<'o> {
    observer: &'o dyn Observer,
    sessions: AtomicU64,
}

impl Handler for Reflector<'_> {
    fn admit(&self, _: &Request, _: SocketAddr) -> Result<(), String> {
        Ok(())
    }

    fn play(&self, session: &mut Session, stop: &Stop) {
        self.around(session, &mut |session| echo(session, stop));
    }

    fn paired(&self, from: SocketAddr, outcome: Result<&Peer, &str>) {
        let outcome = outcome.map(|client| client.name.as_str());
        self.observer.event(0, Event::Pairing { from, outcome });
    }

    fn around(&self, session: &mut Session, serve: &mut dyn FnMut(&mut Session)) {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let Request { transport, stream, .. } = session.request();
        let (transport, stream) = (transport.to_string(), *stream);
        self.observer.event(number, Event::Began { peer: session.peer(), transport, stream });
        serve(session);
        self.observer.event(number, Event::Ended { figures: None, why: None });
    }
}
