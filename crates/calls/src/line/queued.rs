//! A line over anything that takes packets: what is not taken at once waits for as long as the send timeout says.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use trunkline_core::{Duration, Time};
use trunkline_io::Interest;
use trunkline_transport::Features;
use trunkline_transport::rtp::PeerReport;

use super::{Ended, Line, LineCounters, Packets, Refused};

/// So many bytes may wait, or one packet.
const MOST_WAITING: usize = 1 << 20;
/// So many buffers of packets are kept for the next.
const SPARE: usize = 64;

/// What takes packets and gives those that have arrived, without ever waiting.
pub(crate) trait Carrier: Send {
    /// See [`Line::descriptors`]; `waits`: whether packets wait to be offered again.
    fn descriptors<'l>(&'l self, waits: bool, add: &mut dyn FnMut(BorrowedFd<'l>, Interest));

    /// Takes a packet, or says why not.
    fn offer(&mut self, now: Time, packet: &[u8]) -> Offer;

    /// Takes packets from the one at this place on, and says how many.
    fn offer_many(&mut self, now: Time, packets: &Packets, from: usize) -> usize {
        let offers = packets.iter().skip(from).map(|packet| self.offer(now, packet));
        offers.take_while(|offer| matches!(offer, Offer::Taken)).count()
    }

    /// Does what is due and hands on what has arrived; counts what is no packet of this conversation.
    fn receive(
        &mut self,
        now: Time,
        strays: &mut u64,
        arrived: &mut dyn FnMut(Time, &[u8]),
    ) -> Result<(), Ended>;

    /// When [`receive`](Self::receive) wants to be called.
    fn next_timeout(&self, waits: bool) -> Option<Time>;

    /// See [`Line::peer_report`].
    fn peer_report(&self) -> Option<PeerReport> {
        None
    }

    /// See [`Line::features`].
    fn features(&self) -> &'static Features;

    /// See [`Line::largest`].
    fn largest(&self) -> usize;

    /// See [`Line::close`].
    fn close(&mut self, now: Time);
}

/// What became of a packet that was offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// It leaves, or will.
    Taken,
    /// There is no room for it now.
    Full,
    /// It is lost: the system refused it.
    Lost,
    /// It is larger than this.
    TooLarge(usize),
    /// Nothing is taken any more.
    Ended(Ended),
}

/// A line over a carrier.
pub(crate) struct Queued<C> {
    carrier: C,
    patience: Duration,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    spare: Vec<Vec<u8>>,
    counters: LineCounters,
    ended: Option<Ended>,
}

struct Waiting {
    /// When it is given up.
    until: Time,
    packet: Vec<u8>,
}

impl<C: Carrier> Queued<C> {
    /// A line whose packets wait for at most `patience`.
    pub(crate) fn new(carrier: C, patience: Duration) -> Queued<C> {
        Queued {
            carrier,
            patience,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            spare: Vec::new(),
            counters: LineCounters::default(),
            ended: None,
        }
    }

    /// Offers a packet, and counts what became of it; false if there is no room for it now.
    fn offer(&mut self, now: Time, packet: &[u8]) -> Result<bool, Refused> {
        match self.carrier.offer(now, packet) {
            Offer::Taken => {
                self.counters.sent += 1;
                self.counters.sent_bytes += packet.len() as u64;
                Ok(true)
            }
            Offer::Full => Ok(false),
            Offer::Lost => {
                self.counters.refused += 1;
                Ok(true)
            }
            Offer::TooLarge(limit) => {
                self.counters.refused += 1;
                Err(Refused::TooLarge { limit })
            }
            Offer::Ended(ended) => {
                self.ended = Some(ended.clone());
                Err(ended.into())
            }
        }
    }

    /// Lets a packet wait.
    fn keep(&mut self, now: Time, packet: &[u8]) -> Result<(), Refused> {
        if !self.waiting.is_empty() && self.waiting_bytes + packet.len() > MOST_WAITING {
            self.counters.refused += 1;
            return Err(Refused::Full);
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(packet);
        self.waiting_bytes += kept.len();
        self.waiting.push_back(Waiting { until: now + self.patience, packet: kept });
        Ok(())
    }

    /// Offers what waits, as far as there is room, and gives up what has waited for too long.
    fn pour(&mut self, now: Time) -> Result<(), Ended> {
        while let Some(first) = self.waiting.pop_front() {
            match self.offer(now, &first.packet) {
                Ok(false) if first.until > now => {
                    self.waiting.push_front(first);
                    return Ok(());
                }
                Ok(false) => self.counters.timed_out += 1,
                Err(Refused::Ended(ended)) => return Err(ended),
                Ok(true) | Err(_) => {}
            }
            self.waiting_bytes -= first.packet.len();
            if self.spare.len() < SPARE {
                self.spare.push(first.packet);
            }
        }
        Ok(())
    }
}

impl<C: Carrier> Line for Queued<C> {
    fn descriptors<'l>(&'l self, add: &mut dyn FnMut(BorrowedFd<'l>, Interest)) {
        self.carrier.descriptors(!self.waiting.is_empty(), add);
    }

    fn send(&mut self, now: Time, packet: &[u8]) -> Result<(), Refused> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone().into());
        }
        if self.waiting.is_empty() && self.offer(now, packet)? {
            return Ok(());
        }
        self.keep(now, packet)
    }

    fn send_all(&mut self, now: Time, packets: &Packets) -> Result<(), Ended> {
        let mut next = 0;
        while next < packets.len() {
            if self.waiting.is_empty() && self.ended.is_none() {
                let taken = self.carrier.offer_many(now, packets, next);
                let taken = packets.iter().skip(next).take(taken);
                self.counters.sent += taken.len() as u64;
                self.counters.sent_bytes += taken.clone().map(|packet| packet.len() as u64).sum::<u64>();
                next += taken.len();
            }
            // The first that was not taken says why.
            let Some(packet) = packets.get(next) else { break };
            if let Err(Refused::Ended(ended)) = self.send(now, packet) {
                return Err(ended);
            }
            next += 1;
        }
        Ok(())
    }

    fn turn(&mut self, now: Time, arrived: &mut dyn FnMut(Time, &[u8])) -> Result<(), Ended> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        let LineCounters { received, received_bytes, strays, .. } = &mut self.counters;
        let mut arrived = |at: Time, packet: &[u8]| {
            *received += 1;
            *received_bytes += packet.len() as u64;
            arrived(at, packet);
        };
        let result = self.carrier.receive(now, strays, &mut arrived).and_then(|()| self.pour(now));
        if let Err(ended) = &result {
            self.ended = Some(ended.clone());
        }
        result
    }

    fn next_timeout(&self) -> Option<Time> {
        let patience = self.waiting.front().map(|first| first.until);
        let carrier = self.carrier.next_timeout(!self.waiting.is_empty());
        patience.into_iter().chain(carrier).min()
    }

    fn unsent(&self) -> usize {
        self.waiting.len()
    }

    fn counters(&self) -> LineCounters {
        self.counters
    }

    fn peer_report(&self) -> Option<PeerReport> {
        self.carrier.peer_report()
    }

    fn features(&self) -> &'static Features {
        self.carrier.features()
    }

    fn largest(&self) -> usize {
        self.carrier.largest()
    }

    fn close(&mut self, now: Time) {
        // What is refused now is lost with the conversation.
        let _ = self.pour(now);
        self.carrier.close(now);
        self.ended.get_or_insert_with(|| Ended("closed by this end".to_owned()));
    }
}
