//! The states of a connection, and what a segment does in each (RFC 9293 section 3.10.7, RFC 5961, RFC 7323 section 5).

use trunkline_core::{Address, Duration, Ecn as Codepoint, Seed};

use super::receive::{Receiver, Text};
use super::segment::{self, Header, SackBlock};
use super::send::{Ack, AckOutcome, Agreed, Sender, TimerOutcome};
use super::{TcpEndpoint, send_after};
use crate::CloseReason;

/// RFC 9293 section 3.3.2. CLOSED is where a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// How long an end that closed first stays to answer the peer's last segment: Linux's 60 s (RFC 9293 section 3.4.2 has 4
/// minutes).
const TIME_WAIT: Duration = Duration::from_secs(60);
/// Unacceptable segments are answered so often at most (Linux's `tcp_invalid_ratelimit`, RFC 5961 section 7).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);

impl TcpEndpoint {
    /// Takes a segment (RFC 9293's SEGMENT ARRIVES).
    pub(super) fn take(&mut self, from: Address, field: Codepoint, header: &Header, data: &[u8]) {
        match self.state {
            State::Closed => self.refuse(from, header, data),
            State::Listen => self.take_listening(from, field, header, data),
            State::SynSent => self.take_connecting(from, field, header, data),
            _ => self.take_synchronized(from, field, header, data),
        }
    }

    /// Tells the application what has come of a segment.
    pub(super) fn settle(&mut self) {
        if self.progress.refused && self.sender.is_worth_writing(&self.config) && self.unsendable().is_none()
        {
            self.progress.refused = false;
            self.sender.is_writer_waiting = false;
            self.pending.writable = true;
        }
    }

    /// Sends nothing after what was taken.
    pub(super) fn finish(&mut self) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            State::SynReceived => State::SynReceived,
            State::Listen | State::SynSent => {
                self.sender.clear();
                self.end(CloseReason::Local);
                State::Closed
            }
            ended => return self.state = ended,
        };
        self.sender.finish();
    }

    /// Ends the connection at once, and tells the peer.
    pub(super) fn abort(&mut self, reason: CloseReason) {
        if let Some(peer) = self.peer.filter(|_| self.state != State::Closed) {
            let flags = if self.state == State::SynSent { segment::RST } else { segment::RST | segment::ACK };
            let acknowledgement = self.receiver.acknowledgement();
            let sequence = self.sender.acceptable_sequence();
            self.reply = Some((peer, Header { sequence, acknowledgement, flags, ..Header::default() }));
        }
        self.die(reason);
    }

    /// Does what the sender's timer is due for.
    pub(super) fn handle_send_timeout(&mut self) {
        if self.state == State::Closed || self.state == State::Listen {
            return;
        }
        match self.sender.handle_timeout(self.now, &self.config) {
            TimerOutcome::Alive => {}
            TimerOutcome::Dead(waited) => self.die(CloseReason::TimedOut(waited)),
        }
    }

    /// Probes a connection on which nothing has come for long (RFC 9293 section 3.8.4).
    pub(super) fn handle_keepalive(&mut self) {
        let (Some(config), Some(at)) = (self.config.keepalive, self.keepalive_at) else { return };
        if at > self.now || self.state == State::Closed {
            return;
        }
        let idle = self.now.since(self.heard_at);
        let mut wait = config.time;
        if self.sender.is_idle() && idle < config.time {
            wait = config.time - idle;
        } else if self.sender.is_idle() {
            let is_over = match self.config.user_timeout {
                Some(patience) => idle >= patience && self.keepalive_probes > 0,
                None => self.keepalive_probes >= config.probes,
            };
            if is_over {
                return self.abort(CloseReason::TimedOut(idle));
            }
            self.sender.keep_alive();
            self.keepalive_probes += 1;
            wait = config.interval;
        }
        self.keepalive_at = Some(send_after(self.now, wait, self.config.tick));
    }

    fn take_listening(&mut self, from: Address, field: Codepoint, header: &Header, data: &[u8]) {
        if header.has(segment::RST | segment::ACK) {
            return self.refuse(from, header, data);
        }
        if header.has(segment::SYN) {
            self.peer = Some(from);
            self.ecn.take_syn(header.flags, field);
            self.synchronize(header);
            self.state = State::SynReceived;
        }
    }

    fn take_connecting(&mut self, from: Address, field: Codepoint, header: &Header, data: &[u8]) {
        let answers = header.has(segment::ACK);
        if answers && self.sender.place_of(header.acknowledgement) != 1 {
            // It is about another connection, which the reset ends.
            self.sender.hasten_syn(self.now, &self.config);
            return self.refuse(from, header, data);
        }
        if header.has(segment::RST) {
            if answers {
                self.die(CloseReason::Reset);
            }
            return;
        }
        if !header.has(segment::SYN) {
            return;
        }
        if answers {
            self.ecn.take_syn_ack(header.flags, field, self.sender.counters.syn_repeated > 0);
            self.synchronize(header);
            self.acknowledge_syn(header);
            self.receiver.acknowledge_now();
            self.establish();
        } else {
            // Both connect at once.
            self.ecn.take_syn(header.flags, field);
            self.synchronize(header);
            self.sender.repeat_syn();
            self.state = State::SynReceived;
        }
    }

    fn take_synchronized(&mut self, from: Address, field: Codepoint, header: &Header, data: &[u8]) {
        let first = self.receiver.place(header.sequence);
        if !self.is_valid(first, header, data) {
            return;
        }
        if !header.has(segment::ACK) {
            return;
        }
        if self.state == State::SynReceived {
            // An acknowledgement of what was never sent (RFC 9293 section 3.10.7.4).
            if !(1..=self.sender.flow.next as i64).contains(&self.sender.place_of(header.acknowledgement)) {
                return self.refuse(from, header, data);
            }
            self.ecn.take_third(header.flags);
        }
        let was_connecting = self.state == State::SynReceived;
        if !self.take_acknowledgement(first, header, data) {
            return;
        }
        if was_connecting {
            self.establish();
        }
        self.heard_at = self.now;
        self.keepalive_probes = 0;
        self.take_text(first, field, header, data);
        self.advance();
    }

    /// Checks that a segment belongs here: its time stamp, its place, and the bits that must not come any more. Answers it if
    /// not.
    fn is_valid(&mut self, first: i64, header: &Header, data: &[u8]) -> bool {
        let length = header.length(data.len());
        let end = first + i64::from(length);
        let stamp = header.options.timestamps;
        let age = self.stamps.outdated_by(self.now, stamp).filter(|&age| age > 1);
        if age.is_some_and(|age| !header.has(segment::RST) && !self.is_disordered(first, header, length, age))
        {
            self.counters.paws_rejected += 1;
            self.answer_unacceptable(first, header, data);
            return false;
        }
        if !self.receiver.is_acceptable(first, end) {
            if header.has(segment::SYN) {
                self.challenge();
            } else if !header.has(segment::RST) {
                self.answer_unacceptable(first, header, data);
            } else if self.is_reset_after_fin(first) {
                self.take_reset();
            }
            return false;
        }
        if header.has(segment::RST) {
            let expected = self.receiver.expected();
            // RFC 5961 section 3.2: only an exact match resets; Linux takes the end of what came out of order, too.
            if first == expected
                || self.is_reset_after_fin(first)
                || self.receiver.last_row_end() == Some(first)
            {
                self.take_reset();
            } else {
                self.challenge();
            }
            return false;
        }
        if header.has(segment::SYN) {
            // The other half of a simultaneous open (RFC 9293 section 3.5).
            let is_answer = self.state == State::SynReceived
                && header.has(segment::ACK)
                && first + 1 == self.receiver.expected()
                && self.sender.place_of(header.acknowledgement) == self.sender.flow.next as i64;
            let is_repetition = self.state == State::SynReceived
                && self.is_passive
                && !header.has(segment::ACK)
                && first + 1 == self.receiver.expected();
            if is_repetition && !self.is_challenge_limited() {
                self.sender.repeat_syn();
                return false;
            }
            if !is_answer {
                // RFC 5961 section 4.2.
                self.challenge();
                return false;
            }
            self.receiver.note_syn_again();
        }
        true
    }

    /// An acknowledgement that another has overtaken looks old, and does no harm (Linux's `tcp_disordered_ack`).
    fn is_disordered(&self, first: i64, header: &Header, length: u32, age: u32) -> bool {
        let is_duplicate = self.sender.place_of(header.acknowledgement) == self.sender.flow.una as i64;
        let window = u64::from(header.window) << self.peer_scale.unwrap_or(0);
        let brings_nothing = length == 0 && first == self.receiver.expected() && header.has(segment::ACK);
        let is_recent = Duration::from_millis(age.into()) <= self.sender.flow.rtt.timeout();
        brings_nothing && is_duplicate && !self.sender.is_window_news(first, window) && is_recent
    }

    /// A reset for the place before the expected one, when the last thing that came was a FIN.
    fn is_reset_after_fin(&self, first: i64) -> bool {
        let has_finished = matches!(self.state, State::CloseWait | State::LastAck | State::Closing);
        has_finished && first == self.receiver.expected() - 1
    }

    /// Tells the peer where things stand: a segment of it lies outside the window (RFC 9293 section 3.10.7.4), and if it was
    /// received before, that too (RFC 2883).
    fn answer_unacceptable(&mut self, first: i64, header: &Header, data: &[u8]) {
        let end = first + i64::from(header.length(data.len()));
        let has_text = end > first;
        if !has_text && self.is_challenge_limited() {
            return;
        }
        if has_text && first < self.receiver.expected() {
            self.receiver.note_repetition(first, end);
        }
        self.receiver.acknowledge_now();
    }

    /// Sends an acknowledgement that a peer that is still there will answer, if something is wrong (RFC 5961 section 3.2).
    fn challenge(&mut self) {
        if !self.is_challenge_limited() {
            self.receiver.acknowledge_now();
        }
    }

    fn is_challenge_limited(&mut self) -> bool {
        if self.challenged_at.is_some_and(|at| self.now.since(at) < CHALLENGE_INTERVAL) {
            return true;
        }
        self.challenged_at = Some(self.now);
        false
    }

    /// Takes the acknowledgement of a segment. Returns whether the rest of it is to be taken.
    fn take_acknowledgement(&mut self, first: i64, header: &Header, data: &[u8]) -> bool {
        let stamp = header.options.timestamps;
        let place = self.sender.place_of(header.acknowledgement);
        let acked = place.saturating_sub(self.sender.flow.una as i64).max(0) as u32;
        let (blocks, count) = self.places_of(header.options.sacks.as_slice());
        let scale = if header.has(segment::SYN) { 0 } else { self.peer_scale.unwrap_or(0) };
        // What is acknowledged anew, without what had been reported as arrived before.
        let flow = &self.sender.flow;
        let segments = acked.div_ceil(flow.mss.max(1)).saturating_sub(flow.sacked_out) + count as u32;
        // The third segment of the handshake has no counter.
        let counts = self.state != State::SynReceived;
        let marked = counts.then(|| self.ecn.take_report(header.flags, segments)).flatten();
        let ack = Ack {
            place,
            from: first,
            window: u64::from(header.window) << scale,
            blocks: &blocks[..count],
            has_data: header.length(data.len()) > 0,
            has_echo: self.ecn.has_echo(header.flags) || marked.is_some_and(|marks| marks > 0),
            marked,
            echo: self.stamps.echo(self.now, stamp),
        };
        let outcome = self.sender.take_ack(self.now, &ack, &self.config);
        match outcome {
            AckOutcome::Taken | AckOutcome::Old => {
                self.stamps.take(self.now, stamp, header.sequence);
                true
            }
            AckOutcome::TooOld | AckOutcome::Unsent => {
                self.challenge();
                false
            }
        }
    }

    /// The blocks of a selective acknowledgement as the sender's places.
    fn places_of(&self, blocks: &[SackBlock]) -> ([(i64, i64); 4], usize) {
        let mut places = [(0, 0); 4];
        for (place, block) in places.iter_mut().zip(blocks) {
            *place = (self.sender.place_of(block.0), self.sender.place_of(block.1));
        }
        (places, blocks.len())
    }

    /// Takes the data, the FIN and the marks of a segment.
    fn take_text(&mut self, first: i64, field: Codepoint, header: &Header, data: &[u8]) {
        let fin = header.has(segment::FIN);
        let has_text = !data.is_empty() || fin;
        let reaction = self.ecn.take(field, header.flags, has_text);
        if reaction.sends_delayed && self.receiver.is_ack_delayed() {
            self.reply_with_old_echo();
        }
        if reaction.hurries > 0 {
            self.receiver.hurry(reaction.hurries);
        }
        let place = first + i64::from(header.has(segment::SYN));
        let echo_age = self.stamps.new_echo_age(self.now, header.options.timestamps);
        let text = Text { place, data, push: header.has(segment::PSH), fin, echo_age };
        let pace = self.pace();
        if self.receiver.accept(self.now, text, pace) {
            self.pending.readable = true;
        }
        if reaction.acknowledges {
            self.receiver.acknowledge_now();
        }
        if fin && self.state == State::TimeWait {
            self.linger = Some(self.now + TIME_WAIT);
        }
    }

    /// DCTCP: an acknowledgement that waited is sent before the echo changes (RFC 8257 section 3.2).
    fn reply_with_old_echo(&mut self) {
        let Some(peer) = self.peer else { return };
        let mut header = self.header(None);
        header.flags ^= segment::ECE;
        self.reply = Some((peer, header));
    }

    /// The peer ends the connection at once. An end that listened and has not connected yet listens on.
    fn take_reset(&mut self) {
        match self.state {
            State::SynReceived if self.is_passive => {
                let (initial, seed) = (self.sender.sequence_of(self.sender.flow.next), self.seed);
                let stream = || Seed::new(seed, 0).stream("tcp/congestion");
                self.sender = Sender::new(&self.config, initial, &stream);
                self.receiver = Receiver::new(&self.config);
                self.peer = None;
                self.peer_scale = None;
                self.state = State::Listen;
            }
            State::TimeWait => {
                self.linger = None;
                self.state = State::Closed;
            }
            _ => self.die(CloseReason::Reset),
        }
    }

    /// Takes what a SYN says.
    fn synchronize(&mut self, header: &Header) {
        let (options, config) = (&header.options, &self.config);
        // RFC 9293 section 3.7.1: 536 bytes if the peer does not say.
        let mss = u32::from(options.mss.unwrap_or(536)).max(super::config::MIN_MSS as u32);
        let agreed = Agreed {
            mss: mss.min(config.mss as u32),
            sack: config.sack && options.sack_permitted,
            timestamps: config.timestamps && options.timestamps.is_some(),
        };
        self.sender.agree(agreed);
        self.stamps.agree(agreed.timestamps);
        self.receiver.begin(header.sequence);
        self.stamps.begin(
            self.now,
            options.timestamps.filter(|_| agreed.timestamps),
            self.receiver.acknowledgement(),
        );
        let shift = options.window_scale.map(|shift| shift.min(segment::MAX_WINDOW_SCALE));
        self.peer_scale = shift.filter(|_| config.window_scaling);
        self.sender.take_syn_window(0, header.window.into());
    }

    /// Takes the acknowledgement of our SYN that came with the peer's.
    fn acknowledge_syn(&mut self, header: &Header) {
        let ack = Ack {
            place: 1,
            from: 0,
            window: header.window.into(),
            blocks: &[],
            has_data: true,
            has_echo: false,
            marked: None,
            echo: self.stamps.echo(self.now, header.options.timestamps),
        };
        self.sender.take_ack(self.now, &ack, &self.config);
    }

    fn establish(&mut self) {
        let scale = if self.peer_scale.is_some() { self.receiver.offered_scale() } else { 0 };
        self.receiver.agree(scale, self.sender.agreed.sack);
        self.sender.establish(self.ecn.is_accurate(), &self.config);
        self.receiver.establish(self.now, self.sender.flow.mss);
        self.pending.connected = true;
        self.heard_at = self.now;
        if let Some(keepalive) = self.config.keepalive {
            self.keepalive_at = Some(send_after(self.now, keepalive.time, self.config.tick));
        }
        // It may have been closed meanwhile.
        self.state = if self.sender.is_finishing() { State::FinWait1 } else { State::Established };
    }

    /// Goes on to the state that follows from which FINs have arrived.
    fn advance(&mut self) {
        let (is_acknowledged, is_finished) = (self.sender.is_finished(), self.receiver.is_finished());
        if is_acknowledged {
            self.end(CloseReason::Local);
        } else if is_finished && !self.progress.closing {
            self.end(CloseReason::Peer);
        }
        let before = self.state;
        self.state = match (self.state, is_acknowledged, is_finished) {
            (State::Established, _, true) => State::CloseWait,
            (State::FinWait1, false, true) => State::Closing,
            (State::FinWait1, true, false) => State::FinWait2,
            (State::FinWait1 | State::FinWait2 | State::Closing, true, true) => {
                self.linger = Some(self.now + TIME_WAIT);
                State::TimeWait
            }
            (State::LastAck, true, _) => State::Closed,
            (state, ..) => state,
        };
        // This end sends nothing more that could bring the acknowledgement of the peer's FIN.
        let has_finished = matches!(self.state, State::Closing | State::TimeWait);
        if has_finished && matches!(before, State::FinWait1 | State::FinWait2) {
            self.receiver.acknowledge_now();
        }
    }

    /// Answers a segment that belongs to no connection (RFC 9293 section 3.5.2).
    fn refuse(&mut self, from: Address, header: &Header, data: &[u8]) {
        if header.has(segment::RST) {
            return;
        }
        let reset = if header.has(segment::ACK) {
            Header { sequence: header.acknowledgement, flags: segment::RST, ..Header::default() }
        } else {
            let acknowledgement = header.sequence.wrapping_add(header.length(data.len()));
            Header { acknowledgement, flags: segment::RST | segment::ACK, ..Header::default() }
        };
        self.reply = Some((from, reset));
    }

    /// The connection is over, with whatever waited to be sent.
    fn die(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.sender.clear();
        self.linger = None;
        self.progress.refused = false;
        self.pending.writable = false;
        self.end(reason);
    }

    /// Tells the application that the connection is over, or that the peer sends nothing more. It is told once, the last reason
    /// that it has not heard of.
    fn end(&mut self, reason: CloseReason) {
        if self.progress.ended.replace(reason).is_none() || self.pending.closed.is_some() {
            self.pending.closed = Some(reason);
        }
    }
}
