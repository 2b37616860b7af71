//! Protocol engines of ours, whose packets travel through sockets.

use std::net::UdpSocket;
use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_core::Time;
use trunkline_io::udp::ReceiveBatch;
use trunkline_io::{Interest, MonotonicClock};
use trunkline_live::engine::{Carried, receive_batch};
use trunkline_transport::{CloseReason, Features, SendError};

use super::Ended;
use super::frames::{self, Frames};
use super::queued::{Carrier, Offer};
use crate::request::Key;

/// An engine and its socket. It has a clock of its own, which starts with it: an engine may take what is at hand then, and
/// its time never decreases though the caller's may be older than its last arrival.
pub(crate) struct EngineCarrier {
    carried: Carried,
    socket: UdpSocket,
    clock: MonotonicClock,
    batch: ReceiveBatch,
    /// For byte streams: packets and back.
    frames: Option<Frames>,
    frame: Vec<u8>,
    received: Vec<u8>,
    /// The largest packet, as far as is known.
    largest: usize,
}

impl EngineCarrier {
    /// Over a socket that does not block.
    pub(crate) fn new(carried: Carried, socket: UdpSocket, key: Key) -> EngineCarrier {
        EngineCarrier {
            clock: MonotonicClock::starting_now(),
            batch: receive_batch(),
            frames: (!carried.features().message_oriented).then(|| Frames::new(key)),
            frame: Vec::new(),
            received: Vec::new(),
            largest: frames::LARGEST,
            carried,
            socket,
        }
    }

    /// Reads all that has arrived.
    fn read(&mut self, strays: &mut u64, arrived: &mut dyn FnMut(Time, &[u8])) -> bool {
        let mut any = false;
        loop {
            self.received.clear();
            if !self.carried.receive(&mut self.received) {
                return any;
            }
            any = true;
            let at = crate::now();
            match &mut self.frames {
                None => arrived(at, &self.received),
                Some(frames) => *strays += frames.push(&self.received, &mut |packet| arrived(at, packet)),
            }
        }
    }
}

impl Carrier for EngineCarrier {
    fn descriptors<'l>(&'l self, _: bool, add: &mut dyn FnMut(BorrowedFd<'l>, Interest)) {
        // Room in the engine comes with what arrives, or with time.
        add(self.socket.as_fd(), Interest::Read);
    }

    fn offer(&mut self, _: Time, packet: &[u8]) -> Offer {
        if packet.len() > self.largest {
            return Offer::TooLarge(self.largest);
        }
        let message = match &self.frames {
            None => packet,
            Some(_) => {
                self.frame.clear();
                frames::write(packet, &mut self.frame);
                &self.frame
            }
        };
        let now = self.clock.now();
        match self.carried.send(now, message) {
            Ok(()) => {
                self.carried.transmit(now, &self.socket);
                Offer::Taken
            }
            Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) => Offer::Full,
            Err(SendError::TooLarge { limit }) => {
                self.largest = limit - (message.len() - packet.len()).min(limit);
                Offer::TooLarge(self.largest)
            }
            Err(SendError::Closed(reason)) => Offer::Ended(over(reason)),
        }
    }

    fn receive(
        &mut self,
        _: Time,
        strays: &mut u64,
        arrived: &mut dyn FnMut(Time, &[u8]),
    ) -> Result<(), Ended> {
        let clock = self.clock;
        self.carried.take_arrivals(&self.socket, &mut self.batch, &|| clock.now());
        let now = clock.now();
        if self.carried.wake() <= now {
            self.carried.due(now);
        }
        // Reading makes room, which is told to the peer; events may bring more to read.
        loop {
            self.carried.transmit(clock.now(), &self.socket);
            let happened = self.carried.take_events(&self.socket);
            if !self.read(strays, arrived) && !happened {
                break;
            }
        }
        self.carried.closed().map_or(Ok(()), |reason| Err(over(reason)))
    }

    fn next_timeout(&self, _: bool) -> Option<Time> {
        let wake = self.carried.wake();
        (wake < Time::MAX).then(|| Time::from_nanos(self.clock.to_raw(wake)))
    }

    fn features(&self) -> &'static Features {
        self.carried.features()
    }

    fn largest(&self) -> usize {
        self.largest
    }

    fn close(&mut self, _: Time) {
        self.carried.close(self.clock.now(), &self.socket);
    }
}

fn over(reason: CloseReason) -> Ended {
    Ended(format!("the conversation is over: {reason}"))
}
