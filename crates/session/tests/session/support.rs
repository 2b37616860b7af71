//! A server in a thread, and what tests do with sessions.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use trunkline_core::{Duration, Time};
use trunkline_session::{
    Client, Ended, Handler, Line as _, Request, Role, Server, ServerOptions, Session, Stop, Waiter, now,
};

/// Nothing that works takes so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server that is stopped when it is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn new() -> Running {
        Running::with(ServerOptions::default(), ())
    }

    pub(crate) fn with(options: ServerOptions, handler: impl Handler + 'static) -> Running {
        let options = ServerOptions { address: "127.0.0.1:0".parse().unwrap(), ..options };
        let server = Server::bind(options, handler).unwrap();
        let (address, stop) = (server.local_address().unwrap(), Arc::new(Stop::new().unwrap()));
        let its = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || server.serve(&its).unwrap()));
        Running { address, stop, thread }
    }

    pub(crate) fn connect(&self, role: Role, transport: &str) -> Session {
        let request = Request::new(role, transport.parse().unwrap());
        Client::default()
            .connect(&self.address.to_string(), request)
            .unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        self.thread.take().map(JoinHandle::join);
    }
}

/// A packet with this number, filled up to `size`.
pub(crate) fn packet(number: u32, size: usize) -> Vec<u8> {
    let mut packet = number.to_be_bytes().to_vec();
    packet.resize(size.max(4), number as u8);
    packet
}

/// Turns the session until `done`, and says what has arrived.
pub(crate) fn until(
    session: &mut Session,
    mut done: impl FnMut(&[Vec<u8>]) -> bool,
) -> Result<Vec<Vec<u8>>, Ended> {
    let deadline = now() + PATIENCE;
    let (mut waiter, mut arrived) = (Waiter::default(), Vec::new());
    while !done(&arrived) {
        assert!(now() < deadline, "nothing more has arrived than {} packets", arrived.len());
        session.turn(now(), &mut |_: Time, packet| arrived.push(packet.to_vec()))?;
        if !done(&arrived) {
            waiter.wait(session, None, deadline);
        }
    }
    Ok(arrived)
}
