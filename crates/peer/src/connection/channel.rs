//! One end of a connection for event loops: frames over TCP, or over TLS, without threads and without waiting.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection};

use super::greeting;
use super::shared::{describe, is_later};
use crate::error::{PeerError, Refusal};
use crate::fingerprint::Fingerprint;
use crate::identity::{self, Identity};
use crate::message::{Hello, Purpose, Reply, Welcome};
use crate::service::Service;
use crate::tls::{self, Expected};
use crate::wire::{self, Deframer, Frame, Message, WireError, tag};

/// One end of a connection, for event loops: [`send`](Channel::send) keeps what the system does not take,
/// [`receive`](Channel::receive) returns what has come, and neither waits. Over TLS the handshake goes on in both.
#[derive(Debug)]
pub struct Channel {
    /// In non-blocking mode.
    stream: TcpStream,
    tls: Option<Tls>,
    deframer: Deframer,
    /// Bytes that the system has not taken yet.
    unsent: Vec<u8>,
    /// The other end, for messages.
    who: String,
}

#[derive(Debug)]
struct Tls {
    connection: Box<rustls::Connection>,
    pinned: Option<Pinned>,
}

/// The key that a connecting end expects.
#[derive(Debug)]
struct Pinned {
    service: &'static Service,
    address: String,
    expected: Fingerprint,
    found: Arc<OnceLock<Fingerprint>>,
}

/// The result of receiving.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Frame(Frame),
    /// Nothing more at the moment.
    Nothing,
    /// The other end has closed the connection.
    End,
}

/// The first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// With a TLS handshake.
    Tls,
    /// With a frame, or with anything else.
    Frame,
    /// With a line of the protocol that sessions had before there were frames.
    Line,
}

impl Channel {
    /// Frames of at most `limit` bytes over a TCP connection; `who` is the other end in messages.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn new(stream: TcpStream, who: impl Into<String>, limit: usize) -> io::Result<Channel> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let deframer = Deframer::new(limit);
        Ok(Channel { stream, tls: None, deframer, unsent: Vec::new(), who: who.into() })
    }

    /// Returns the first bytes of the other end; `None` if nothing has come, and `Frame` if it has gone.
    ///
    /// # Errors
    /// If the connection is cut.
    pub fn beginning(&self) -> Result<Option<Beginning>, PeerError> {
        let mut first = [0];
        match self.stream.peek(&mut first) {
            Ok(0) => Ok(Some(Beginning::Frame)),
            Ok(_) => Ok(Some(match first[0] {
                // The content type of a handshake (RFC 8446 section 5.1). The first frame is shorter than 16 MiB.
                0x16 => Beginning::Tls,
                b'{' => Beginning::Line,
                _ => Beginning::Frame,
            })),
            Err(error) if is_later(&error) => Ok(None),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// From now on TLS, as the end that connected: the other end must hold this key.
    ///
    /// # Errors
    /// If the cryptography refuses.
    pub fn pin(
        &mut self,
        service: &'static Service,
        address: &str,
        identity: &Identity,
        expected: Fingerprint,
    ) -> Result<(), PeerError> {
        let (config, found) = tls::client(identity, Expected::Key(expected))?;
        let name = ServerName::try_from(identity::NAME).map_err(cryptography)?;
        let mut connection = ClientConnection::new(Arc::new(config), name).map_err(cryptography)?;
        connection.set_buffer_limit(None);
        let pinned = Some(Pinned { service, address: address.to_owned(), expected, found });
        self.tls = Some(Tls { connection: Box::new(connection.into()), pinned });
        self.flush()
    }

    /// From now on TLS, as the end that was connected to. Every key is accepted.
    ///
    /// # Errors
    /// If the cryptography refuses.
    pub fn secure(&mut self, identity: &Identity) -> Result<(), PeerError> {
        let config = Arc::new(tls::server(identity)?);
        let mut connection = ServerConnection::new(config).map_err(cryptography)?;
        connection.set_buffer_limit(None);
        self.tls = Some(Tls { connection: Box::new(connection.into()), pinned: None });
        Ok(())
    }

    /// The other end's key, which it has proved to hold; `None` without TLS, and during the handshake.
    pub fn peer_fingerprint(&self) -> Option<Fingerprint> {
        let tls = self.tls.as_ref().filter(|tls| !tls.connection.is_handshaking())?;
        Fingerprint::of_certificate(tls.connection.peer_certificates()?.first()?).ok()
    }

    /// The TCP connection.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The other end, for messages.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// Returns the number of bytes that the system has not taken yet.
    pub fn unsent(&self) -> usize {
        self.unsent.len()
    }

    /// Sends a message; what the system does not take now waits for [`flush`](Channel::flush).
    ///
    /// # Errors
    /// If the connection is cut, or the message is larger than any may be.
    pub fn send(&mut self, message: &impl Message) -> Result<(), PeerError> {
        let frame = message.to_frame().map_err(|error| PeerError::unsendable(&error))?;
        self.send_frame(&frame)
    }

    /// As [`send`](Channel::send), for a message that is a frame already.
    ///
    /// # Errors
    /// As there.
    pub fn send_frame(&mut self, frame: &Frame) -> Result<(), PeerError> {
        self.queue(frame)?;
        self.flush()
    }

    fn queue(&mut self, frame: &Frame) -> Result<(), PeerError> {
        let head = wire::head(frame.tag, frame.body.len()).map_err(|error| PeerError::unsendable(&error))?;
        for part in [&head[..], &frame.body] {
            match &mut self.tls {
                None => self.unsent.extend_from_slice(part),
                Some(tls) => {
                    let written = tls.connection.writer().write_all(part);
                    written.map_err(|error| self.broken(&error))?;
                }
            }
        }
        Ok(())
    }

    /// Sends bytes without a frame, to an end that does not know frames.
    ///
    /// # Errors
    /// If the connection is cut.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), PeerError> {
        self.unsent.extend_from_slice(bytes);
        self.flush()
    }

    /// Hands what waits to the system, as far as it takes it.
    ///
    /// # Errors
    /// If the connection is cut.
    pub fn flush(&mut self) -> Result<(), PeerError> {
        if let Some(tls) = &mut self.tls {
            while tls.connection.wants_write() {
                if let Err(error) = tls.connection.write_tls(&mut self.unsent) {
                    return Err(self.broken(&error));
                }
            }
        }
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(taken) => drop(self.unsent.drain(..taken)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(self.broken(&error)),
            }
        }
        Ok(())
    }

    /// The next message that has come. Signs of life are passed over.
    ///
    /// # Errors
    /// If the connection is cut, the other end holds another key than expected, or sends something else than frames.
    pub fn receive(&mut self) -> Result<Received, PeerError> {
        loop {
            let read = match self.read()? {
                None => return Ok(Received::Nothing),
                Some(0) => return Ok(Received::End),
                Some(read) => read,
            };
            match self.deframer.advance(read) {
                Ok(Some(frame)) if frame.tag != tag::PING => return Ok(Received::Frame(frame)),
                Ok(_) => {}
                Err(error) => return Err(self.not_understood(&error)),
            }
        }
    }

    /// Opens the conversation, as the end that connected, together with the next message. The frame ends with a line break, so
    /// that an end that reads lines answers at once.
    ///
    /// # Errors
    /// As [`send`](Channel::send).
    pub fn greet(&mut self, purpose: Purpose) -> Result<(), PeerError> {
        let mut frame = greeting::hello(purpose).to_frame().map_err(|error| PeerError::unsendable(&error))?;
        frame.body.push(b'\n');
        self.queue(&frame)
    }

    /// The greeting in the first frame of an end that connected. An end of another version receives ours.
    ///
    /// # Errors
    /// If it has another version, or the frame is not a greeting.
    pub fn hello(&mut self, frame: Frame) -> Result<Hello, PeerError> {
        let hello = greeting::read_hello(&self.who, frame);
        if let Err(PeerError::Version { .. }) = hello {
            // Whether or not it still reads this.
            let _ = self.welcome("");
        }
        hello
    }

    /// Accepts a greeting, by the name of this host.
    ///
    /// # Errors
    /// As [`send`](Channel::send).
    pub fn welcome(&mut self, name: &str) -> Result<(), PeerError> {
        self.send(&greeting::welcome(name))
    }

    /// The welcome in the first frame of the end that was connected to.
    ///
    /// # Errors
    /// If that end refuses, has another version, or sends something else.
    pub fn welcomed(&self, frame: Frame) -> Result<Welcome, PeerError> {
        greeting::read_welcome(&self.who, frame)
    }

    /// Refuses what the other end asks for.
    ///
    /// # Errors
    /// As [`send`](Channel::send).
    pub fn refuse(&mut self, refusal: Refusal) -> Result<(), PeerError> {
        self.send(&Reply::Refused { refusal })
    }

    /// A message that this end does not understand.
    pub fn not_understood(&self, error: &WireError) -> PeerError {
        PeerError::not_understood(&self.who, error)
    }

    /// A value that only the two ends of this connection can compute (RFC 8446 section 7.5).
    pub(crate) fn export(&self, label: &[u8]) -> Result<[u8; 32], PeerError> {
        let tls = self.tls.as_ref().ok_or_else(|| PeerError::Protocol {
            who: self.who.clone(),
            reason: "it pairs without TLS".to_owned(),
        })?;
        tls.connection.export_keying_material([0; 32], label, None).map_err(cryptography)
    }

    /// Bytes for the deframer: how many, 0 at the end, `None` if nothing has come.
    fn read(&mut self) -> Result<Option<usize>, PeerError> {
        loop {
            let Some(tls) = &mut self.tls else {
                match self.stream.read(self.deframer.space()) {
                    Ok(read) => return Ok(Some(read)),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                    Err(error) => return Err(self.broken(&error)),
                }
            };
            match tls.connection.reader().read(self.deframer.space()) {
                Ok(read) => return Ok(Some(read)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Without the farewell of TLS; what the other end said before is complete or not a frame.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Some(0)),
                Err(error) => return Err(self.broken(&error)),
            }
            match tls.connection.read_tls(&mut self.stream) {
                Ok(0) if tls.connection.is_handshaking() => return Ok(Some(0)),
                Ok(_) => {}
                Err(error) if is_later(&error) => return Ok(None),
                Err(error) => return Err(self.broken(&error)),
            }
            if let Err(error) = tls.connection.process_new_packets() {
                // The other end is told what is wrong, if it can be.
                let _ = self.flush();
                return Err(self.not_spoken(&error));
            }
            self.flush()?;
        }
    }

    fn not_spoken(&self, error: &rustls::Error) -> PeerError {
        match self.tls.as_ref().and_then(|tls| tls.pinned.as_ref()) {
            Some(Pinned { service, address, expected, found })
                if found.get().is_some_and(|found| found != expected) =>
            {
                let found = *found.get().unwrap_or(expected);
                PeerError::WrongKey { service, address: address.clone(), expected: *expected, found }
            }
            _ => super::handshake::not_spoken(self.who.clone(), error),
        }
    }

    fn broken(&self, error: &io::Error) -> PeerError {
        PeerError::CutOff { who: self.who.clone(), reason: describe(error) }
    }
}

/// To wait for it beside other things.
impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn cryptography(error: impl core::fmt::Display) -> PeerError {
    PeerError::Cryptography(error.to_string())
}
