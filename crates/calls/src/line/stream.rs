//! The kernel's TCP, MPTCP and SCTP, as streams of bytes in which packets are framed.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_core::Time;
use trunkline_io::{Interest, Marking};
use trunkline_transport::Features;

use super::frames::{self, Frames};
use super::queued::{Carrier, Offer};
use super::{Ended, Packets};
use crate::request::Key;

/// As much is read and written at once, so often before others have their turn.
const CHUNK: usize = 64 << 10;
const CHUNKS: usize = 4;

/// A connection, and until a packet with the key has come over it, the listener at which it is awaited.
pub(crate) struct StreamCarrier {
    stream: Option<TcpStream>,
    awaited: Option<Awaited>,
    features: &'static Features,
    frames: Frames,
    chunk: Vec<u8>,
    /// What is left of a frame that was begun: a stream must not be cut within one.
    rest: Vec<u8>,
}

/// Where a connection is awaited. The listener does not block.
pub(crate) struct Awaited {
    pub(crate) listener: TcpListener,
    /// From this host only.
    pub(crate) host: IpAddr,
    pub(crate) key: Key,
    /// How its packets are marked.
    pub(crate) marking: Marking,
}

impl StreamCarrier {
    /// Over a connection that does not block.
    pub(crate) fn open(stream: TcpStream, key: Key, features: &'static Features) -> StreamCarrier {
        StreamCarrier { stream: Some(stream), ..StreamCarrier::new(key, features) }
    }

    /// Over the first connection that brings a packet with the key.
    pub(crate) fn listen(awaited: Awaited, features: &'static Features) -> StreamCarrier {
        let key = awaited.key;
        StreamCarrier { awaited: Some(awaited), ..StreamCarrier::new(key, features) }
    }

    fn new(key: Key, features: &'static Features) -> StreamCarrier {
        StreamCarrier {
            stream: None,
            awaited: None,
            features,
            frames: Frames::new(key),
            chunk: vec![0; CHUNK],
            rest: Vec::new(),
        }
    }

    /// Takes a connection from the right host, if there is one.
    fn accept(&mut self) {
        let (Some(awaited), None) = (&self.awaited, &self.stream) else { return };
        while let Ok((stream, source)) = awaited.listener.accept() {
            let is_prepared =
                || stream.set_nonblocking(true).is_ok() && awaited.marking.apply(&stream).is_ok();
            if source.ip().to_canonical() == awaited.host && is_prepared() {
                (self.stream, self.frames) = (Some(stream), Frames::new(awaited.key));
                return;
            }
        }
    }

    /// Begins as many of these as there is room for, and says how many that are. Once begun, they are sent whole.
    fn put<'p>(&mut self, packets: impl Iterator<Item = &'p [u8]> + Clone) -> io::Result<usize> {
        let (Some(stream), None) = (&mut self.stream, &self.awaited) else { return Ok(0) };
        while !self.rest.is_empty() {
            match write(stream, &self.rest)? {
                0 => return Ok(0),
                taken => drop(self.rest.drain(..taken)),
            }
        }
        for packet in packets.clone() {
            if packet.len() > frames::LARGEST || self.rest.len() >= CHUNK {
                break;
            }
            frames::write(packet, &mut self.rest);
        }
        let taken = write(stream, &self.rest)?;
        let (mut begun, mut end) = (0, 0);
        for packet in packets {
            if end >= taken {
                break;
            }
            begun += 1;
            end += frames::length(packet);
        }
        self.rest.truncate(end);
        self.rest.drain(..taken);
        Ok(begun)
    }
}

impl Carrier for StreamCarrier {
    fn descriptors<'l>(&'l self, waits: bool, add: &mut dyn FnMut(BorrowedFd<'l>, Interest)) {
        match (&self.stream, &self.awaited) {
            (Some(stream), awaited) => {
                add(stream.as_fd(), Interest::Read);
                if awaited.is_none() && (waits || !self.rest.is_empty()) {
                    add(stream.as_fd(), Interest::Write);
                }
            }
            (None, Some(awaited)) => add(awaited.listener.as_fd(), Interest::Read),
            (None, None) => {}
        }
    }

    fn offer(&mut self, _: Time, packet: &[u8]) -> Offer {
        if packet.len() > frames::LARGEST {
            return Offer::TooLarge(frames::LARGEST);
        }
        match self.put(core::iter::once(packet)) {
            Ok(0) => Offer::Full,
            Ok(_) => Offer::Taken,
            Err(error) => Offer::Ended(broken(&error)),
        }
    }

    fn offer_many(&mut self, _: Time, packets: &Packets, from: usize) -> usize {
        // The next packet is offered by itself, and told the error.
        self.put(packets.iter().skip(from)).unwrap_or(0)
    }

    fn receive(
        &mut self,
        _: Time,
        strays: &mut u64,
        arrived: &mut dyn FnMut(Time, &[u8]),
    ) -> Result<(), Ended> {
        self.accept();
        for _ in 0..CHUNKS {
            let Some(stream) = &mut self.stream else { break };
            let (awaited, at) = (&mut self.awaited, crate::now());
            let read = match stream.read(&mut self.chunk) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) if awaited.is_some() => 0,
                Err(error) => return Err(broken(&error)),
            };
            let gaps = self.frames.push(&self.chunk[..read], &mut |packet| {
                *awaited = None;
                arrived(at, packet);
            });
            *strays += gaps;
            match (awaited.is_some(), read) {
                (false, 0) => return Err(Ended("the peer has closed the connection".to_owned())),
                // Somebody else's.
                (true, 0) => self.stream = None,
                (true, _) if gaps > 0 => self.stream = None,
                (_, CHUNK) => {}
                _ => break,
            }
        }
        // The rest of a frame goes on its way though nothing follows it.
        self.put(core::iter::empty()).map(|_| ()).map_err(|error| broken(&error))
    }

    fn next_timeout(&self, _: bool) -> Option<Time> {
        None
    }

    fn features(&self) -> &'static Features {
        self.features
    }

    fn largest(&self) -> usize {
        frames::LARGEST
    }

    fn close(&mut self, _: Time) {
        (self.stream, self.awaited) = (None, None);
    }
}

/// Writes what there is room for, and says how much.
fn write(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    loop {
        match stream.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            result => return result,
        }
    }
}

fn broken(error: &io::Error) -> Ended {
    Ended(format!("the connection was lost: {error}"))
}
