//! XTP's multicast streams over multicast of UDP: the sender or a receiver, and its sockets.
//!
//! Everybody hears the group through one socket and speaks, to the group and to each other, through another, which has an
//! address of its own. Members may share a host: each hears what the others send, and nobody hears himself.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use trunkline_core::{Address, Duration, Time};
use trunkline_io::multicast::Group;
use trunkline_io::poll::Interest;
use trunkline_io::udp::{ReceiveBatch, SocketOptions, Wait};
use trunkline_io::{MonotonicClock, Poller};
use trunkline_transport::{Close, Endpoint, Event, Message, Received, SendError};

use crate::engine::Loss;
use crate::error::LiveError;

/// As many datagrams are taken from the kernel at once.
const BATCH: usize = 32;
/// The largest payload of a UDP datagram.
const LARGEST: usize = 65_507;
/// Of each socket, as far as the system grants it: the instrument should not lose what the network has delivered.
const BUFFER: usize = 1 << 20;
/// When a socket has no room, it is asked again after so long.
const RETRY: Duration = Duration::from_micros(200);

/// The sockets of a member of a group.
#[derive(Debug)]
pub struct GroupSockets {
    group: SocketAddr,
    /// Where this member is.
    local: SocketAddr,
    /// What is sent to this member, and what it sends.
    own: UdpSocket,
    /// What is sent to the group.
    shared: UdpSocket,
}

impl GroupSockets {
    /// Joins a group as a host with this address.
    ///
    /// # Errors
    /// [`LiveError::System`], with the group.
    pub fn open(group: &Group, local: IpAddr) -> Result<GroupSockets, LiveError> {
        let options =
            SocketOptions { receive_buffer: Some(BUFFER), send_buffer: Some(BUFFER), priority: None };
        let open = || -> io::Result<GroupSockets> {
            let (shared, _) = group.listen(options)?;
            let (own, _) = group.speak(local, options)?;
            own.set_nonblocking(true)?;
            Ok(GroupSockets { group: group.address, local: own.local_addr()?, own, shared })
        };
        open().map_err(LiveError::system(format!("cannot join the group {} from {local}", group.address)))
    }
}

/// A member of a group: an [`XtpGroupSender`](trunkline_transport::xtp::XtpGroupSender) or an
/// [`XtpGroupReceiver`](trunkline_transport::xtp::XtpGroupReceiver) and the sockets that carry its packets.
///
/// Nothing happens by itself: whoever owns it calls [`turn`](Self::turn) again and again, and between the calls sends,
/// receives and asks for events.
pub struct GroupMember<'s, E> {
    endpoint: E,
    sockets: &'s GroupSockets,
    poller: Poller<'s>,
    batch: ReceiveBatch,
    clock: MonotonicClock,
    addresses: Addresses,
    packet: Vec<u8>,
    /// Packets that leave later, in their order: paced, or waiting for room in the socket.
    held: VecDeque<(Time, Address, Vec<u8>)>,
    loss: Loss,
    /// Packets that the socket refused.
    unsent: u64,
}

impl<'s, E: Endpoint> GroupMember<'s, E> {
    /// A member with the endpoint that `make` makes for its own address and that of the group.
    ///
    /// # Errors
    /// That of `make`.
    pub fn new<F>(
        sockets: &'s GroupSockets,
        make: impl FnOnce(Address, Address) -> Result<E, F>,
    ) -> Result<GroupMember<'s, E>, F> {
        let mut addresses = Addresses::default();
        let [local, group] = [sockets.local, sockets.group].map(|at| addresses.named(at).unwrap_or_default());
        let descriptors = [&sockets.own, &sockets.shared].map(|socket| (socket.as_fd(), Interest::Read));
        Ok(GroupMember {
            endpoint: make(local, group)?,
            sockets,
            poller: Poller::new(descriptors),
            batch: ReceiveBatch::new(BATCH, LARGEST),
            clock: MonotonicClock::starting_now(),
            addresses,
            packet: Vec::new(),
            held: VecDeque::new(),
            loss: Loss::default(),
            unsent: 0,
        })
    }

    /// Loses every so-manieth packet that arrives, for tests; 0 for none.
    #[doc(hidden)]
    pub fn losing(self, every: u32) -> GroupMember<'s, E> {
        GroupMember { loss: Loss::every(every), ..self }
    }

    /// The endpoint, for what is asked of it without a time: who has joined, what it has counted.
    pub fn endpoint(&mut self) -> &mut E {
        &mut self.endpoint
    }

    /// How many packets the socket has refused, other than for lack of room.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// The socket of a member that the endpoint knows by this address.
    pub fn socket_of(&self, address: Address) -> Option<SocketAddr> {
        self.addresses.sockets.get(usize::from(address.host)).copied()
    }

    /// Hands a message over; the packets that follow from it leave at once.
    ///
    /// # Errors
    /// The endpoint's.
    pub fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        let now = self.clock.now();
        self.endpoint.send(now, Message::new(message))?;
        self.transmit(now);
        Ok(())
    }

    /// Appends what has arrived, if anything has; what follows from it leaves at once.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let received = self.endpoint.receive(into);
        self.transmit(self.clock.now());
        received
    }

    /// What has happened since the last call, one event at a time.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.endpoint.poll_event()
    }

    /// Ends the conversation; a graceful end takes further turns.
    pub fn close(&mut self, how: Close) {
        let now = self.clock.now();
        self.endpoint.close(now, how);
        self.transmit(now);
    }

    /// Does what is due, waits until something arrives or is due but not longer than `patience`, and does what follows.
    pub fn turn(&mut self, patience: Duration) {
        self.transmit(self.clock.now());
        let held = self.held.front().map_or(Time::MAX, |(at, ..)| *at);
        let wake = self.endpoint.next_timeout().unwrap_or(Time::MAX).min(held);
        match self.poller.wait(wake.since(self.clock.now()).min(patience)) {
            Ok(0) => {}
            Ok(_) => self.take_arrivals(),
            // For lack of memory; a moment later there may be some.
            Err(_) => trunkline_io::pace::sleep(Duration::from_millis(1)),
        }
        let now = self.clock.now();
        self.endpoint.handle_timeout(now);
        self.transmit(now);
    }

    fn take_arrivals(&mut self) {
        let sockets = [&self.sockets.own, &self.sockets.shared];
        for place in self.poller.ready() {
            // Errors tell of packets of ours that found nobody: the endpoint notices by itself.
            let count = self.batch.receive(sockets[place], Wait::Poll).unwrap_or(0);
            let now = self.clock.now();
            for datagram in 0..count {
                let source = self.batch.source(datagram).filter(|source| *source != self.sockets.local);
                if let Some(from) = source.and_then(|source| self.addresses.named(source))
                    && !self.loss.strikes()
                {
                    let ecn = self.batch.ecn(datagram);
                    self.endpoint.handle_packet(now, from, ecn, self.batch.datagram(datagram));
                }
            }
        }
    }

    /// Hands every packet that may leave to the socket.
    fn transmit(&mut self, now: Time) {
        while let Some((at, to, packet)) = self.held.pop_front() {
            if at > now || !self.put(to, &packet) {
                self.held.push_front((at.max(now + RETRY), to, packet));
                return;
            }
        }
        let mut packet = core::mem::take(&mut self.packet);
        while self.held.is_empty()
            && let Some(transmit) = self.endpoint.poll_transmit(now, &mut packet)
        {
            if transmit.earliest > now || !self.put(transmit.to, &packet) {
                let at = transmit.earliest.max(now + RETRY);
                self.held.push_back((at, transmit.to, core::mem::take(&mut packet)));
            }
        }
        self.packet = packet;
    }

    /// Hands a packet to the socket; false if that has no room. What it refuses for another reason is lost, as in any
    /// network.
    fn put(&mut self, to: Address, packet: &[u8]) -> bool {
        let Some(to) = self.socket_of(to) else { return true };
        // An ICMP error tells of an earlier packet that found nobody; the one at hand was not tried yet.
        for _ in 0..2 {
            match self.sockets.own.send_to(packet, to) {
                Ok(_) => return true,
                Err(error) if crate::engine::has_no_room(&error) => return false,
                Err(_) => {}
            }
        }
        self.unsent += 1;
        true
    }
}

/// Sockets by the addresses under which an endpoint knows them.
#[derive(Debug, Default)]
struct Addresses {
    hosts: BTreeMap<SocketAddr, u16>,
    sockets: Vec<SocketAddr>,
}

impl Addresses {
    /// The address of this socket, a new one if it has none; `None` when there are no more.
    fn named(&mut self, socket: SocketAddr) -> Option<Address> {
        let host = match self.hosts.get(&socket) {
            Some(&host) => host,
            None => {
                let host = u16::try_from(self.sockets.len()).ok()?;
                self.sockets.push(socket);
                self.hosts.insert(socket, host);
                host
            }
        };
        Some(Address { host, port: socket.port() })
    }
}

#[cfg(test)]
mod tests;
