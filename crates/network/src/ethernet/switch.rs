//! A port of the switch: the buffer in front of the line to a station, and that line.

use std::collections::VecDeque;

use trunkline_core::schema::{Limit, Values};
use trunkline_core::{Amount, Bytes, Duration, Packet, Time};

use super::{GAP, LEAST_DATA};
use crate::busy::BusyTime;
use crate::serial::serialiser::Serialiser;

/// A packet on its way through the switch, with what its sender's impairments decided.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    pub(super) packet: Packet,
    pub(super) corrupted: bool,
    pub(super) duplicated: bool,
    pub(super) overtakes: bool,
    /// It takes its time on the line and is for nobody there.
    pub(super) unclaimed: bool,
}

#[derive(Debug)]
pub(super) struct Output {
    limit: Limit,
    overhead: Bytes,
    delay: Duration,
    line: Serialiser,
    waiting: VecDeque<Frame>,
    bytes: Bytes,
    busy: BusyTime,
    dropped: u64,
    sent: u64,
    waited: Duration,
    waited_most: Duration,
    bytes_most: Bytes,
}

impl Output {
    /// The port of the station with these values.
    pub(super) fn new(station: &Values) -> Output {
        Output {
            limit: station.limit("switch-buffer"),
            overhead: station.bytes("overhead"),
            delay: station.duration("delay"),
            line: Serialiser::new(station.rate("rate")),
            waiting: VecDeque::new(),
            bytes: Bytes::ZERO,
            busy: BusyTime::default(),
            dropped: 0,
            sent: 0,
            waited: Duration::ZERO,
            waited_most: Duration::ZERO,
            bytes_most: Bytes::ZERO,
        }
    }

    /// Takes a frame, or gives it back if the buffer is full.
    pub(super) fn enqueue(&mut self, now: Time, mut frame: Frame) -> Result<(), Frame> {
        if !self.limit.admits(self.waiting.len() as u64, self.bytes, frame.packet.size) {
            self.dropped += 1;
            return Err(frame);
        }
        frame.packet.enqueued = now;
        self.bytes += frame.packet.size;
        self.waiting.push_back(frame);
        // What leaves at once has not waited.
        if self.wake(now) > now {
            self.bytes_most = self.bytes_most.max(self.bytes);
        }
        Ok(())
    }

    /// The packets in its buffer that are for the station.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Packet> {
        self.waiting.iter().filter(|frame| !frame.unclaimed).map(|frame| &frame.packet)
    }

    /// When the next frame can begin to leave; [`Time::MAX`] while none waits.
    pub(super) fn wake(&self, now: Time) -> Time {
        if self.waiting.is_empty() { Time::MAX } else { self.line.free().max(now) }
    }

    /// Begins to transmit the next frame, and says when it will be at the station.
    pub(super) fn transmit(&mut self, now: Time) -> Option<(Time, Frame)> {
        let frame = self.waiting.pop_front()?;
        let waited = now.since(frame.packet.enqueued);
        self.bytes = Bytes(self.bytes.count() - frame.packet.size.count());
        self.sent += 1;
        self.waited += waited;
        self.waited_most = self.waited_most.max(waited);
        let (end, busy) = transmit(&mut self.line, now, &frame.packet, self.overhead);
        self.busy.add(now + busy, busy);
        Some((end + self.delay, frame))
    }

    /// Transmissions do not count as busy time any more.
    pub(super) fn end_measurement(&mut self, at: Time) {
        self.busy.end(at);
    }

    /// Figures of the port, in a measurement that lasted `over`.
    pub(super) fn figures(&self, over: Duration) -> [(&'static str, Option<Amount>); 5] {
        let if_sent = |time| (self.sent > 0).then_some(Amount::Time(time));
        [
            ("switch-utilisation", Some(Amount::Share(self.busy.share(over)))),
            ("switch-sojourn-mean", if_sent(self.waited / self.sent.max(1))),
            ("switch-sojourn-max", if_sent(self.waited_most)),
            ("switch-backlog-max", Some(Amount::Bytes(self.bytes_most))),
            ("switch-dropped", Some(Amount::Count(self.dropped))),
        ]
    }
}

/// What a packet takes on a line, with the gap behind it.
pub(super) fn on_line(packet: &Packet, overhead: Bytes) -> Bytes {
    packet.size.max(LEAST_DATA) + overhead
}

/// Transmits a packet from `now` on: when its last bit leaves, and how long the line is busy, the gap behind it included.
pub(super) fn transmit(
    line: &mut Serialiser,
    now: Time,
    packet: &Packet,
    overhead: Bytes,
) -> (Time, Duration) {
    let frame = Bytes(on_line(packet, overhead).count().saturating_sub(GAP.count()));
    let (end, busy) = line.transmit(now, frame);
    let (_, gap) = line.transmit(end, GAP);
    (end, busy + gap)
}
