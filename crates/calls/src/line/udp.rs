//! The kernel's UDP and UDP-Lite.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_core::{Duration, Time};
use trunkline_io::Interest;
use trunkline_io::udp::{ReceiveBatch, SendBatch, Wait};
use trunkline_transport::Features;
use trunkline_transport::udp::MAX_MESSAGE;

use super::Packets;
use super::queued::{Carrier, Offer};
use crate::line::Ended;
use crate::request::Key;

/// As many datagrams are taken from the kernel at once, so often before others have their turn.
const BATCH: usize = 16;
const BATCHES: usize = 4;
/// When the socket has no room for a reason that it does not tell the end of, it is asked again after so long.
const RETRY: Duration = Duration::from_micros(200);

/// A socket, and who is at its other end.
pub(crate) struct UdpCarrier {
    socket: UdpSocket,
    peer: Peer,
    features: &'static Features,
    received: ReceiveBatch,
    leaving: SendBatch,
    /// Until when the host is taken to have no room.
    blocked: Time,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    /// The socket is connected to this address.
    Known(SocketAddr),
    /// Whoever first sends a packet with the key from this host.
    Awaited(IpAddr, Key),
    /// Whoever first sends a packet.
    Anybody,
}

impl Peer {
    /// Whether this packet is the first of the peer.
    fn is_found(self, source: SocketAddr, packet: &[u8]) -> bool {
        match self {
            Peer::Known(_) => false,
            Peer::Awaited(host, key) => source.ip() == host && packet.starts_with(&key.bytes()),
            Peer::Anybody => true,
        }
    }
}

impl UdpCarrier {
    /// A carrier over a socket that does not block, connected to the peer if that is known.
    pub(crate) fn new(socket: UdpSocket, peer: Peer, features: &'static Features) -> UdpCarrier {
        UdpCarrier {
            socket,
            peer,
            features,
            received: ReceiveBatch::new(BATCH, MAX_MESSAGE),
            leaving: SendBatch::with_capacity(2 * BATCH),
            blocked: Time::ZERO,
        }
    }

    /// Sends these, and says how many the kernel took.
    fn put<'p>(
        &mut self,
        now: Time,
        packets: impl Iterator<Item = &'p [u8]> + Clone,
    ) -> Result<usize, Offer> {
        if now < self.blocked || !matches!(self.peer, Peer::Known(_)) {
            return Err(Offer::Full);
        }
        let mut result = self.leaving.send(&self.socket, packets.clone());
        // An ICMP error tells of an earlier packet that found nobody; the one at hand was not tried yet.
        if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            result = self.leaving.send(&self.socket, packets);
        }
        result.map_err(|error| match error.raw_os_error() {
            _ if error.kind() == io::ErrorKind::WouldBlock => Offer::Full,
            Some(libc::ENOBUFS) => {
                self.blocked = now + RETRY;
                Offer::Full
            }
            Some(libc::EMSGSIZE) => Offer::TooLarge(MAX_MESSAGE),
            _ => Offer::Lost,
        })
    }
}

impl Carrier for UdpCarrier {
    fn descriptors<'l>(&'l self, waits: bool, add: &mut dyn FnMut(BorrowedFd<'l>, Interest)) {
        add(self.socket.as_fd(), Interest::Read);
        // A host without room, or without a peer to send to, does not say when it has one.
        if waits && self.blocked == Time::ZERO && matches!(self.peer, Peer::Known(_)) {
            add(self.socket.as_fd(), Interest::Write);
        }
    }

    fn offer(&mut self, now: Time, packet: &[u8]) -> Offer {
        self.put(now, core::iter::once(packet)).map_or_else(|offer| offer, |_| Offer::Taken)
    }

    fn offer_many(&mut self, now: Time, packets: &Packets, from: usize) -> usize {
        let mut taken = from;
        while taken < packets.len()
            && let Ok(more @ 1..) = self.put(now, packets.iter().skip(taken))
        {
            taken += more;
        }
        taken - from
    }

    fn receive(
        &mut self,
        now: Time,
        strays: &mut u64,
        arrived: &mut dyn FnMut(Time, &[u8]),
    ) -> Result<(), Ended> {
        if self.blocked <= now {
            self.blocked = Time::ZERO;
        }
        for _ in 0..BATCHES {
            // Errors tell of packets of ours that found nobody.
            let count = self.received.receive(&self.socket, Wait::Poll).unwrap_or(0);
            let at = crate::now();
            for place in 0..count {
                let (packet, source) = (self.received.datagram(place), self.received.source(place));
                if let Some(source) = source
                    && self.peer.is_found(source, packet)
                    && self.socket.connect(source).is_ok()
                {
                    self.peer = Peer::Known(source);
                }
                // Before it was connected, anybody could send to the socket.
                match self.peer {
                    Peer::Known(peer) if source == Some(peer) => arrived(at, packet),
                    _ => *strays += 1,
                }
            }
            if count < BATCH {
                break;
            }
        }
        Ok(())
    }

    fn next_timeout(&self, waits: bool) -> Option<Time> {
        (waits && self.blocked > Time::ZERO).then_some(self.blocked)
    }

    fn features(&self) -> &'static Features {
        self.features
    }

    fn largest(&self) -> usize {
        MAX_MESSAGE
    }

    fn close(&mut self, _: Time) {}
}
