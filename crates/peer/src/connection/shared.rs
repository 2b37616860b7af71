//! What the reading and the writing end of a connection share.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use trunkline_core::Duration;

use crate::error::PeerError;
use crate::fingerprint::Fingerprint;
use crate::wire::{self, tag};

/// How often an end shows that it lives, and for how long it believes in the other without a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// An end that has said nothing for so long says that it is still there.
    pub every: Duration,
    /// An end that has heard nothing for so long takes the connection for cut.
    pub silence: Duration,
}

impl Default for Pulse {
    /// A sign every 3 s; cut after 9 s without one.
    fn default() -> Pulse {
        Pulse { every: Duration::from_secs(3), silence: Duration::from_secs(9) }
    }
}

/// Ends a connection from any thread: whoever waits on it returns with [`PeerError::Closed`].
#[derive(Clone, Debug)]
pub struct Closer(pub(super) Arc<Shared>);

impl Closer {
    /// Ends the connection at once, without a farewell.
    pub fn close(&self) {
        self.0.cut();
    }
}

/// What the reading and the writing end of a connection share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Who the other end is, for messages.
    pub(super) who: String,
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
    pub(super) fingerprint: Fingerprint,
    pub(super) pulse: Pulse,
    /// In non-blocking mode.
    socket: TcpStream,
    tls: Mutex<rustls::Connection>,
    /// Locked before `tls`, never after it.
    outgoing: Mutex<Outgoing>,
    began: Instant,
    /// Nanoseconds since the beginning.
    heard: AtomicU64,
    said: AtomicU64,
    /// This end says nothing more.
    finished: AtomicBool,
    cut: AtomicBool,
}

/// Encrypted bytes on their way to the socket, in the order of their encryption.
#[derive(Debug, Default)]
struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

/// So many encrypted bytes are handed to the system at once, if there is so much to say.
const BATCH: usize = 64 << 10;

/// What came of reading.
pub(super) enum Got {
    Bytes(usize),
    /// The other end says nothing more.
    End,
    /// Nothing came in time.
    Nothing,
}

impl Shared {
    pub(super) fn new(
        socket: TcpStream,
        tls: rustls::Connection,
        who: String,
        (peer, local): (SocketAddr, SocketAddr),
        fingerprint: Fingerprint,
        pulse: Pulse,
    ) -> Shared {
        Shared {
            who,
            peer,
            local,
            fingerprint,
            pulse,
            socket,
            tls: Mutex::new(tls),
            outgoing: Mutex::default(),
            began: Instant::now(),
            heard: AtomicU64::new(0),
            said: AtomicU64::new(0),
            finished: AtomicBool::new(false),
            cut: AtomicBool::new(false),
        }
    }

    /// What only the two ends of this connection can derive (RFC 8446 section 7.5).
    pub(super) fn export(&self, label: &[u8]) -> Result<[u8; 32], PeerError> {
        lock(&self.tls)
            .export_keying_material([0; 32], label, None)
            .map_err(|error| PeerError::Cryptography(error.to_string()))
    }

    /// Reads what was said; waits for it until `deadline`, and for signs of life only so long.
    pub(super) fn read(&self, into: &mut [u8], deadline: Option<Instant>) -> Result<Got, PeerError> {
        loop {
            if self.cut.load(Ordering::Acquire) {
                return Err(PeerError::Closed { who: self.who.clone() });
            }
            let (got, answers) = self.read_now(into)?;
            if answers {
                self.flush_if_free();
            }
            match got {
                Some(Got::Nothing) | None => {}
                Some(got) => return Ok(got),
            }
            // What has come may say nothing, again and again: that is no reason to wait for longer.
            if got.is_some() && deadline.is_none_or(|at| Instant::now() < at) {
                continue;
            }
            // All that has come was read just now, however long nobody looked: what is missing was not sent.
            let silent_at = self.heard() + self.pulse.silence;
            let now = self.now();
            if now >= silent_at {
                return Err(
                    self.fail(PeerError::Silent { who: self.who.clone(), patience: self.pulse.silence })
                );
            }
            let patience = deadline.map(|at| Duration::from(at.saturating_duration_since(Instant::now())));
            if patience.is_some_and(Duration::is_zero) {
                return Ok(Got::Nothing);
            }
            let wait = patience.unwrap_or(Duration::MAX).min(silent_at - now);
            wait_for(&self.socket, PollFlags::POLLIN, wait).map_err(|error| self.broken(&error))?;
        }
    }

    /// Says all of this in one piece, and waits until the system has taken it.
    pub(super) fn send(&self, tag: u8, body: &[u8]) -> Result<(), PeerError> {
        let head = wire::head(tag, body.len())
            .map_err(|error| PeerError::Protocol { who: "this end".to_owned(), reason: error.to_string() })?;
        let mut outgoing = lock(&self.outgoing);
        if self.finished.load(Ordering::Acquire) {
            return Err(PeerError::Closed { who: self.who.clone() });
        }
        let (mut said, all) = (0, head.len() + body.len());
        while said < all {
            said += self.encrypt(&mut outgoing, &head, body, said)?;
            if outgoing.bytes.len() >= BATCH || said == all {
                self.flush(&mut outgoing, true)?;
            }
        }
        // A burst leaves no memory behind.
        outgoing.bytes.shrink_to(4 << 10);
        Ok(())
    }

    /// Says that this end says nothing more; without patience, as far as the system takes it at once.
    pub(super) fn finish(&self, patiently: bool) -> Result<(), PeerError> {
        self.say_farewell(&mut lock(&self.outgoing), patiently).map(|_| ())
    }

    /// Whether it has been said.
    fn say_farewell(&self, outgoing: &mut Outgoing, patiently: bool) -> Result<bool, PeerError> {
        if !self.finished.swap(true, Ordering::AcqRel) {
            let mut tls = lock(&self.tls);
            tls.send_close_notify();
            self.drain(&mut tls, outgoing)?;
        }
        let is_said = self.flush(outgoing, patiently)?;
        if is_said {
            // Fails only where there is no connection any more.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        Ok(is_said)
    }

    /// Shows that this end lives, if it has said nothing for a while; returns when it will be time again, if ever.
    pub(super) fn beat(&self) -> Option<Duration> {
        if self.cut.load(Ordering::Acquire) {
            return None;
        }
        let quiet = self.now() - Duration::from_nanos(self.said.load(Ordering::Relaxed));
        if quiet < self.pulse.every {
            return Some(self.pulse.every - quiet);
        }
        // Whoever holds it is saying something.
        if let Some(mut outgoing) = self.outgoing_if_free() {
            if self.finished.load(Ordering::Acquire) {
                // The farewell may have waited for the other end's window.
                if self.say_farewell(&mut outgoing, false).ok()? {
                    return None;
                }
            } else if outgoing.bytes.is_empty() {
                let ping = wire::head(tag::PING, 0).ok()?;
                self.encrypt(&mut outgoing, &ping, &[], 0).ok()?;
            }
            // What waits for the other end's window is sign enough when it opens.
            self.flush(&mut outgoing, false).ok()?;
        }
        self.said.store(self.now().as_nanos(), Ordering::Relaxed);
        Some(self.pulse.every)
    }

    /// Ends the connection; whoever waits for it wakes up.
    pub(super) fn cut(&self) {
        self.cut.store(true, Ordering::Release);
        // Fails only where there is no connection any more.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Reads what is there; also whether TLS has something to answer.
    fn read_now(&self, into: &mut [u8]) -> Result<(Option<Got>, bool), PeerError> {
        let mut tls = lock(&self.tls);
        match tls.reader().read(into) {
            Ok(0) => return Ok((Some(Got::End), false)),
            Ok(read) => return Ok((Some(Got::Bytes(read)), false)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(self.broken(&error)),
        }
        match tls.read_tls(&mut &self.socket) {
            Ok(_) => {}
            Err(error) if is_later(&error) => return Ok((None, false)),
            Err(error) => return Err(self.broken(&error)),
        }
        self.heard.store(self.now().as_nanos(), Ordering::Relaxed);
        match tls.process_new_packets() {
            Ok(_) => Ok((Some(Got::Nothing), tls.wants_write())),
            Err(error) => {
                // What is wrong is told the other end if it can be.
                let _ = tls.write_tls(&mut &self.socket);
                drop(tls);
                let who = self.who.clone();
                Err(self.fail(PeerError::Protocol { who, reason: error.to_string() }))
            }
        }
    }

    /// Encrypts what follows the first `said` bytes of head and body, or the beginning of that.
    fn encrypt(
        &self,
        outgoing: &mut Outgoing,
        head: &[u8],
        body: &[u8],
        said: usize,
    ) -> Result<usize, PeerError> {
        /// The most that one record of TLS holds.
        const RECORD: usize = 16 << 10;
        let head = head.get(said..).unwrap_or_default();
        let body = &body[said.saturating_sub(wire::HEAD).min(body.len())..];
        let body = &body[..body.len().min(RECORD - head.len())];
        let mut tls = lock(&self.tls);
        let written = tls
            .writer()
            .write_vectored(&[IoSlice::new(head), IoSlice::new(body)])
            .map_err(|error| self.broken(&error))?;
        self.drain(&mut tls, outgoing)?;
        Ok(written)
    }

    fn drain(&self, tls: &mut rustls::Connection, outgoing: &mut Outgoing) -> Result<(), PeerError> {
        while tls.wants_write() {
            tls.write_tls(&mut outgoing.bytes).map_err(|error| self.broken(&error))?;
        }
        Ok(())
    }

    /// Hands encrypted bytes to the system: all of them, or without patience those that it takes at once. Whether that
    /// is all.
    fn flush(&self, outgoing: &mut Outgoing, patiently: bool) -> Result<bool, PeerError> {
        let mut moved = self.now();
        while outgoing.sent < outgoing.bytes.len() {
            if self.cut.load(Ordering::Acquire) {
                return Err(PeerError::Closed { who: self.who.clone() });
            }
            match (&self.socket).write(&outgoing.bytes[outgoing.sent..]) {
                Ok(0) => return Err(self.broken(&io::ErrorKind::WriteZero.into())),
                Ok(sent) => {
                    outgoing.sent += sent;
                    moved = self.now();
                    self.said.store(moved.as_nanos(), Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !patiently {
                        return Ok(false);
                    }
                    // An end that takes nothing is busy for as long as it shows that it lives.
                    let silent_at = self.heard().max(moved) + self.pulse.silence;
                    let now = self.now();
                    if now >= silent_at {
                        return Err(self.fail(PeerError::Silent {
                            who: self.who.clone(),
                            patience: self.pulse.silence,
                        }));
                    }
                    wait_for(&self.socket, PollFlags::POLLOUT, silent_at - now)
                        .map_err(|error| self.broken(&error))?;
                }
                Err(error) => return Err(self.broken(&error)),
            }
        }
        outgoing.bytes.clear();
        outgoing.sent = 0;
        Ok(true)
    }

    /// Hands over what TLS itself has to say, unless somebody who is writing will, or the farewell is said.
    fn flush_if_free(&self) {
        if let Some(mut outgoing) = self.outgoing_if_free()
            && !self.finished.load(Ordering::Acquire)
        {
            let drained = {
                let mut tls = lock(&self.tls);
                self.drain(&mut tls, &mut outgoing)
            };
            // A connection that is broken shows it to whoever reads on.
            let _ = drained.and_then(|()| self.flush(&mut outgoing, false));
        }
    }

    fn outgoing_if_free(&self) -> Option<MutexGuard<'_, Outgoing>> {
        match self.outgoing.try_lock() {
            Ok(outgoing) => Some(outgoing),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Has TLS change its keys, as it does by itself after very much was said.
    #[cfg(test)]
    pub(super) fn change_keys(&self) {
        lock(&self.tls).refresh_traffic_keys().expect("the handshake is over");
        self.flush_if_free();
    }

    fn heard(&self) -> Duration {
        Duration::from_nanos(self.heard.load(Ordering::Relaxed))
    }

    /// Since the beginning of the connection.
    fn now(&self) -> Duration {
        self.began.elapsed().into()
    }

    fn broken(&self, error: &io::Error) -> PeerError {
        if self.cut.load(Ordering::Acquire) {
            return PeerError::Closed { who: self.who.clone() };
        }
        self.fail(PeerError::CutOff { who: self.who.clone(), reason: describe(error) })
    }

    /// After this error nothing more can be said or heard.
    pub(super) fn fail(&self, error: PeerError) -> PeerError {
        self.cut();
        error
    }
}

/// What the system says of a connection that has ended, in words.
pub(crate) fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the peer has disconnected".to_owned(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "the peer has closed it".to_owned(),
        _ => error.to_string(),
    }
}

/// Whether it is only a matter of time.
pub(super) fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Waits until a socket can be read or written, or has failed, and no longer than this. May return early.
pub(super) fn wait_for(socket: &impl AsFd, what: PollFlags, patience: Duration) -> io::Result<()> {
    // Rounded up: a wait of nothing would spin.
    let millis = patience.as_nanos().div_ceil(1_000_000);
    let timeout = PollTimeout::try_from(millis.min(60_000)).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(socket.as_fd(), what)], timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A lock whose holder has panicked guards nothing that could be half done in memory: TLS then says what is wrong.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
