//! What is sent: how much at once (RFC 793, RFC 1122 section 4.2.3.4), what is repeated (RFC 6298, RFC 2001 section 3), and
//! probes of a closed window (RFC 1122 section 4.2.2.17).
//!
//! Bytes have places: that of the SYN is 0, that of the first byte 1, and that of the FIN the one behind the last byte.

use std::collections::VecDeque;

use trunkline_core::Time;

use super::config::{MIN_MSS, TcpConfig};
use super::congestion::Congestion;
use super::rto::Rto;

/// The sending half of a connection.
pub(super) struct Sender {
    mss: usize,
    capacity: usize,
    nagle: usize,
    fast_retransmit: bool,
    initial_window: u32,
    /// The initial sequence number.
    initial: u32,
    /// The first place that is unacknowledged, the next to be sent, and the first that never was.
    unacknowledged: u64,
    next: u64,
    fresh: u64,
    /// From the place `base` on.
    bytes: VecDeque<u8>,
    base: u64,
    /// Whether a FIN follows the bytes.
    fin: bool,
    /// The peer's window, the largest that it was, and the sequence number's place and the acknowledgement of the segment
    /// that announced it (RFC 793 section 3.9).
    window: u64,
    largest_window: u64,
    announced: (i64, u64),
    congestion: Congestion,
    duplicates: u32,
    rto: Rto,
    timer: Option<Timer>,
    /// A segment that was sent once, by its first place, and when: one at a time is timed.
    timed: Option<(u64, Time)>,
    /// What goes out whatever else is to be sent.
    urgent: Option<Urgent>,
    /// Probes of the closed window since it closed.
    probes: u32,
    pub(super) counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Retransmission(Time),
    Persist(Time),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgent {
    /// The first unacknowledged segment again.
    Retransmission,
    /// At least a byte, whatever the window.
    Probe,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) retransmitted: u64,
    pub(super) timeouts: u64,
    pub(super) fast_retransmits: u64,
    pub(super) probes: u64,
}

/// A segment to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    place: u64,
    pub(super) length: usize,
    pub(super) syn: bool,
    pub(super) fin: bool,
    /// It empties the send buffer.
    pub(super) push: bool,
}

impl Sender {
    pub(super) fn new(config: &TcpConfig, initial: u32) -> Sender {
        Sender {
            mss: config.mss,
            capacity: config.window,
            nagle: config.nagle,
            fast_retransmit: config.fast_retransmit,
            initial_window: config.initial_window,
            initial,
            unacknowledged: 0,
            next: 0,
            fresh: 0,
            bytes: VecDeque::new(),
            base: 1,
            fin: false,
            window: 0,
            largest_window: 0,
            announced: (0, 0),
            congestion: Congestion::new(config.mss, config.initial_window),
            duplicates: 0,
            rto: Rto::new(config.timer),
            timer: None,
            timed: None,
            urgent: None,
            probes: 0,
            counters: Counters::default(),
        }
    }

    /// The peer's SYN has come, with the largest segment that it takes (536 bytes if it does not say, RFC 1122 section
    /// 4.2.2.6); the largest that are sent now.
    pub(super) fn agree(&mut self, mss: Option<u16>) -> usize {
        self.mss = self.mss.min(usize::from(mss.unwrap_or(536)).max(MIN_MSS));
        // A SYN that was lost is a sign of congestion (RFC 5681 section 3.1).
        let initial = if self.counters.timeouts > 0 { 1 } else { self.initial_window };
        self.congestion = Congestion::new(self.mss, initial);
        self.mss
    }

    /// Sends the SYN once more.
    pub(super) fn repeat_syn(&mut self) {
        self.next = self.unacknowledged;
    }

    /// Whether a message is taken.
    pub(super) fn has_room(&self) -> bool {
        self.bytes.len() < self.capacity
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Nothing is pushed any more.
    pub(super) fn finish(&mut self) {
        self.fin = true;
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.fin
    }

    /// Whether the peer has acknowledged the FIN.
    pub(super) fn is_finished(&self) -> bool {
        self.fin && self.unacknowledged > self.end()
    }

    /// The connection is over.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        (self.timer, self.urgent) = (None, None);
    }

    /// The sequence number behind everything that was sent.
    pub(super) fn sequence(&self) -> u32 {
        self.initial.wrapping_add(self.fresh as u32)
    }

    pub(super) fn sequence_of(&self, piece: &Piece) -> u32 {
        self.initial.wrapping_add(piece.place as u32)
    }

    pub(super) fn data_of(&self, piece: &Piece) -> [&[u8]; 2] {
        let from = (piece.place.max(self.base) - self.base) as usize;
        let to = from + piece.length;
        let (front, back) = self.bytes.as_slices();
        let split = front.len();
        [&front[from.min(split)..to.min(split)], &back[from.max(split) - split..to.max(split) - split]]
    }

    /// The place of an acknowledgement number; `None` if it is of something that was never sent.
    pub(super) fn place(&self, acknowledgement: u32) -> Option<u64> {
        let known = self.initial.wrapping_add(self.unacknowledged as u32);
        let place = self.unacknowledged as i64 + i64::from(acknowledgement.wrapping_sub(known) as i32);
        (place <= self.fresh as i64).then_some(place.max(0) as u64)
    }

    /// Takes an acknowledgement of all before this place, with a window. `alone`: nothing else was in the segment.
    pub(super) fn acknowledged(&mut self, now: Time, place: u64, window: u16, alone: bool) {
        if place > self.unacknowledged {
            self.progress(now, place);
        } else if place == self.unacknowledged {
            // Jacobson's definition (1990), as in 4.3BSD-Reno.
            let awaits = matches!(self.timer, Some(Timer::Retransmission(_)));
            if alone && u64::from(window) == self.window && awaits {
                self.duplicate();
            } else {
                self.duplicates = 0;
            }
        }
    }

    /// Takes a window from a segment at this place of the peer's that acknowledges up to that one of ours, unless a later
    /// segment has announced another (RFC 793 section 3.9).
    pub(super) fn update_window(&mut self, from: i64, place: u64, window: u16) {
        if place >= self.unacknowledged && (from, place) >= self.announced {
            self.window = u64::from(window);
            self.largest_window = self.largest_window.max(self.window);
            self.announced = (from, place);
        }
    }

    /// The next segment to be sent now; `more`: what follows the last byte may be written at once.
    pub(super) fn poll(&mut self, now: Time, more: bool) -> Option<Piece> {
        let urgent = self.urgent.take();
        let piece = match urgent {
            Some(Urgent::Retransmission) => Some(self.piece(self.unacknowledged, self.mss)),
            Some(Urgent::Probe) => self.probe(),
            None => self.choose().filter(|piece| !(more && piece.push && piece.length < self.mss)),
        };
        let Some(piece) = piece else {
            if self.timer.is_none() && !self.bytes.is_empty() {
                self.timer = Some(Timer::Persist(now + self.rto.backed_off(self.probes)));
            }
            return None;
        };
        let end = piece.place + piece.length as u64 + u64::from(piece.syn) + u64::from(piece.fin);
        if urgent == Some(Urgent::Probe) {
            self.counters.probes += 1;
            self.fresh = self.fresh.max(end);
            return Some(piece);
        }
        if piece.place < self.fresh {
            self.counters.retransmitted += 1;
        } else if self.timed.is_none() {
            self.timed = Some((piece.place, now));
        }
        self.next = self.next.max(end);
        self.fresh = self.fresh.max(end);
        if !matches!(self.timer, Some(Timer::Retransmission(_))) {
            self.timer = Some(Timer::Retransmission(now + self.rto.current()));
            self.probes = 0;
        }
        Some(piece)
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        match self.timer {
            Some(Timer::Retransmission(at)) if at <= now => {
                self.counters.timeouts += 1;
                self.rto.back_off();
                if self.unacknowledged > 0 {
                    self.congestion.timed_out(self.window);
                }
                // From the first unacknowledged byte on, as in BSD.
                self.next = self.unacknowledged;
                (self.timer, self.timed, self.duplicates) = (None, None, 0);
            }
            Some(Timer::Persist(at)) if at <= now => {
                (self.timer, self.urgent) = (None, Some(Urgent::Probe));
                self.probes = self.probes.saturating_add(1);
            }
            _ => {}
        }
    }

    /// When to be called.
    pub(super) fn timer(&self) -> Option<Time> {
        let (Timer::Retransmission(at) | Timer::Persist(at)) = self.timer?;
        Some(at)
    }

    /// The place behind the last byte.
    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// A segment of at most so many bytes.
    fn piece(&self, place: u64, most: usize) -> Piece {
        if place == 0 {
            return Piece { place, length: 0, syn: true, fin: false, push: false };
        }
        let waiting = self.end().saturating_sub(place) as usize;
        let length = waiting.min(most);
        let is_last = length == waiting;
        Piece { place, length, syn: false, fin: is_last && self.fin, push: is_last && length > 0 }
    }

    /// Of what is allowed, what is worth a segment.
    fn choose(&self) -> Option<Piece> {
        if self.unacknowledged == 0 {
            return (self.next == 0).then(|| self.piece(0, 0));
        }
        if self.next > self.end() {
            return None;
        }
        let piece = self.piece(self.next, self.usable_window().min(self.mss));
        if piece.length == 0 {
            return piece.fin.then_some(piece);
        }
        let is_worthwhile = piece.push
            || 2 * piece.length as u64 >= self.largest_window
            || self.nagle > 0 && piece.length >= self.nagle;
        let may_wait = piece.length < self.nagle && self.fresh > self.unacknowledged;
        let is_sent =
            piece.length == self.mss || piece.fin || self.next < self.fresh || is_worthwhile && !may_wait;
        is_sent.then_some(piece)
    }

    /// What the window holds, however little, or one byte if it holds nothing.
    fn probe(&self) -> Option<Piece> {
        let piece = self.piece(self.next, self.usable_window().clamp(1, self.mss));
        (piece.length > 0).then_some(piece)
    }

    fn usable_window(&self) -> usize {
        let window = self.window.min(self.congestion.window());
        window.saturating_sub(self.next - self.unacknowledged) as usize
    }

    /// Everything before this place has been acknowledged for the first time.
    fn progress(&mut self, now: Time, place: u64) {
        if self.duplicates >= DUPLICATES {
            self.congestion.recovered();
        } else if self.unacknowledged > 0 {
            self.congestion.acknowledged();
        }
        self.duplicates = 0;
        self.rto.progressed();
        if let Some((timed, at)) = self.timed
            && place > timed
        {
            self.rto.measure(now.since(at));
            self.timed = None;
        }
        if place == self.fresh {
            self.timer = None;
        } else if !matches!(self.timer, Some(Timer::Persist(_))) {
            self.timer = Some(Timer::Retransmission(now + self.rto.current()));
        }
        let acknowledged = place.min(self.end()).saturating_sub(self.base);
        self.bytes.drain(..acknowledged as usize);
        self.base += acknowledged;
        self.unacknowledged = place;
        self.next = self.next.max(place);
    }

    /// The peer repeats itself: a segment may have been lost (RFC 2001 sections 3 and 4).
    fn duplicate(&mut self) {
        if !self.fast_retransmit {
            return;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        if self.duplicates == DUPLICATES {
            self.counters.fast_retransmits += 1;
            self.congestion.lost(self.window, DUPLICATES);
            (self.timer, self.timed) = (None, None);
            self.urgent = Some(Urgent::Retransmission);
        } else if self.duplicates > DUPLICATES {
            self.congestion.inflate();
        }
    }
}

/// So many duplicate acknowledgements are a loss (RFC 2001 section 3).
const DUPLICATES: u32 = 3;
