//! Two ends on the loopback interface, and a wire between them that can be cut.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a module of several tests, none of which uses all of it"
)]

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use trunkline_control::{Connection, Identity, Listener, PeerError, Pulse};
use trunkline_core::Duration;

/// Long enough on any machine; nothing waits for it to pass.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// For tests in which somebody falls silent.
pub const QUICK: Pulse = Pulse { every: Duration::from_millis(20), silence: Duration::from_secs(1) };

pub fn identity() -> Identity {
    Identity::generate().unwrap()
}

pub fn listener(identity: &Identity, pulse: Pulse) -> Listener {
    Listener::bind("127.0.0.1:0", identity).unwrap().with_pulse(pulse)
}

/// The next who connects, with all formalities.
pub fn accept(listener: &Listener) -> Result<Connection, PeerError> {
    listener.accept_within(PATIENCE)?.expect("somebody connects").handshake(PATIENCE)
}

/// A connecting and a listening end, by way of `through`.
pub fn pair_by(pulse: Pulse, through: impl FnOnce(SocketAddr) -> SocketAddr) -> (Connection, Connection) {
    let (near, far) = (identity(), identity());
    let listener = listener(&far, pulse);
    let address = through(listener.local_address()).to_string();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| accept(&listener).unwrap());
        let client = Connection::open(&address, &near, &far.fingerprint(), PATIENCE, pulse).unwrap();
        let mut server = accepted.join().unwrap();
        assert_eq!(client.peer_fingerprint(), far.fingerprint());
        assert_eq!(server.peer_fingerprint(), near.fingerprint());
        server.trust();
        (client, server)
    })
}

pub fn pair(pulse: Pulse) -> (Connection, Connection) {
    pair_by(pulse, |address| address)
}

/// Carries bytes between two ends until it is cut, after which both hear nothing, not even an end.
#[derive(Clone, Default)]
pub struct Cable(Arc<AtomicBool>);

impl Cable {
    pub fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Where to connect to reach `to` through the cable, once.
    pub fn lay(&self, to: SocketAddr) -> SocketAddr {
        let entry = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = entry.local_addr().unwrap();
        let cable = self.clone();
        thread::spawn(move || {
            let near = entry.accept().unwrap().0;
            let far = TcpStream::connect(to).unwrap();
            let (near_too, far_too, cable_too) =
                (near.try_clone().unwrap(), far.try_clone().unwrap(), cable.clone());
            thread::spawn(move || cable.carry(near, far));
            cable_too.carry(far_too, near_too);
        });
        address
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 16 << 10];
        loop {
            match from.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                // Goes on reading, so that the sender notices nothing.
                Ok(_) if self.0.load(Ordering::SeqCst) => {}
                Ok(read) => {
                    if to.write_all(&buffer[..read]).is_err() {
                        break;
                    }
                }
            }
        }
        if !self.0.load(Ordering::SeqCst) {
            let _ = to.shutdown(Shutdown::Write);
        }
    }
}

/// A listener that does to the first who connects what it is told.
pub fn impostor(answer: impl FnOnce(TcpStream) -> io::Result<()> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || answer(listener.accept().unwrap().0));
    address
}
