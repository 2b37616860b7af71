//! The states of an association and what is done with each chunk in them (RFC 9260 sections 4, 5, 8 and 9).

use trunkline_core::{Address, Duration};

use super::handshake::{COOKIE_LIFE, Cookie, Init};
use super::path::{self, Due};
use super::receiver::{Data, Receiver};
use super::sender::Sender;
use super::wire::{self, CHUNK_HEADER, Chunk, Chunks, Header, TAG_REFLECTED, cause, kind};
use super::{SctpEndpoint, rto};
use crate::CloseReason;

/// Packets that wait to be sent, but for data.
const MOST_ANSWERS: usize = 16;

/// The states of RFC 9260 section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not yet, or not any more.
    Closed,
    CookieWait,
    CookieEchoed,
    Established,
    ShutdownPending,
    ShutdownSent,
    ShutdownReceived,
    ShutdownAckSent,
}

impl State {
    /// Whether data or acknowledgements may be sent.
    pub(super) fn exchanges(self) -> bool {
        use State::*;
        matches!(self, Established | ShutdownPending | ShutdownSent | ShutdownReceived)
    }

    /// True while heartbeats are sent (RFC 9260 section 8.3): from ESTABLISHED on, until this end sends a SHUTDOWN.
    pub(super) fn tests_path(self) -> bool {
        use State::*;
        matches!(self, Established | ShutdownPending | ShutdownReceived)
    }

    /// Whether data is taken (RFC 9260 section 6).
    fn takes_data(self) -> bool {
        use State::*;
        matches!(self, Established | ShutdownPending | ShutdownSent)
    }
}

impl SctpEndpoint {
    /// Lets a connecting end begin.
    pub(super) fn start(&mut self) {
        if self.state != State::Closed || self.progress.ended.is_some() || self.peer.is_none() {
            return;
        }
        (self.tag, _) = self.draw();
        let tsn = self.draw().1;
        self.sender = Sender::new(&self.config, tsn);
        self.state = State::CookieWait;
        self.request();
    }

    /// A tag, which is never 0, and a TSN.
    fn draw(&mut self) -> (u32, u32) {
        let bits = self.draws.bits();
        ((bits as u32).max(1), (bits >> 32) as u32)
    }

    /// Sends what the state asks of the peer, and again later until it has come.
    pub(super) fn request(&mut self) {
        let Some(peer) = self.peer else { return };
        let (kind, tag, value) = match self.state {
            State::CookieWait => {
                let own = (self.tag, self.sender.acknowledged().wrapping_add(1));
                (kind::INIT, 0, Init::value(own, self.config.window, self.config.streams, None))
            }
            State::CookieEchoed => (kind::COOKIE_ECHO, self.peer_tag, self.cookie.clone()),
            State::ShutdownSent => {
                (kind::SHUTDOWN, self.peer_tag, self.receiver.cumulative().to_be_bytes().to_vec())
            }
            State::ShutdownAckSent => (kind::SHUTDOWN_ACK, self.peer_tag, Vec::new()),
            _ => return self.repeat = None,
        };
        self.reply(peer, tag, Chunk { kind, flags: 0, value: &value });
        self.repeat = Some(self.now + self.patience);
    }

    /// Enters a state in which the peer is asked for something.
    fn ask(&mut self, state: State, patience: Duration) {
        (self.state, self.patience) = (state, patience);
        self.request();
    }

    fn reply(&mut self, to: Address, tag: u32, chunk: Chunk<'_>) {
        // More than one packet can want: the rest is lost, as on a bad path.
        if self.outgoing.len() < MOST_ANSWERS {
            self.outgoing.push_back((to, wire::packet(self.local.port, to.port, tag, chunk)));
        }
    }

    /// Reports an error: its cause and what there is to say of it.
    fn report(&mut self, kind: u8, cause: u16, value: &[u8]) {
        let Some(peer) = self.peer else { return };
        let mut causes = Vec::new();
        wire::put_parameter(&mut causes, cause, value);
        self.reply(peer, self.peer_tag, Chunk { kind, flags: 0, value: &causes });
    }

    /// Tells the peer, if it knows of the association, that it is over.
    pub(super) fn abort(&mut self) {
        if let Some(peer) = self.peer
            && !matches!(self.state, State::Closed | State::CookieWait)
        {
            self.reply(peer, self.peer_tag, Chunk { kind: kind::ABORT, flags: 0, value: &[] });
        }
    }

    /// Goes on with the end of the association when all has been acknowledged (RFC 9260 section 9.2).
    pub(super) fn shut_down(&mut self) {
        match self.state {
            State::ShutdownPending if self.sender.is_empty() => {
                self.ask(State::ShutdownSent, self.sender.rto());
            }
            State::ShutdownReceived if self.sender.is_empty() => {
                self.ask(State::ShutdownAckSent, self.sender.rto());
            }
            _ => {}
        }
    }

    /// Takes a packet; false if it is none of this association's.
    pub(super) fn take(&mut self, from: Address, header: &Header, mut chunks: Chunks<'_>) -> bool {
        let is_peer = self.peer == Some(from);
        let mut rest = chunks;
        let Some(first) = rest.next() else { return false };
        let is_reflected =
            matches!(first.kind, kind::ABORT | kind::SHUTDOWN_COMPLETE) && first.flags & TAG_REFLECTED != 0;
        let tag = if is_reflected { self.peer_tag } else { self.tag };
        match first.kind {
            // Alone in a packet without a tag, from anybody where there is no peer yet.
            kind::INIT => {
                return (is_peer || self.peer.is_none())
                    && header.tag == 0
                    && rest.next().is_none()
                    && self.take_init(from, first.value);
            }
            kind::COOKIE_ECHO if is_peer || self.peer.is_none() => {
                if !self.take_cookie(from, header, first.value) {
                    return false;
                }
                chunks = rest;
            }
            // The peer has an association from before, and is to end it (RFC 9260 section 8.5.1).
            kind::SHUTDOWN_ACK
                if is_peer && matches!(self.state, State::CookieWait | State::CookieEchoed) =>
            {
                self.answer_stray(from, header, chunks);
                return true;
            }
            _ if !is_peer || tag == 0 || header.tag != tag => return false,
            _ => {}
        }
        self.unanswered = None;
        self.take_chunks(chunks);
        true
    }

    fn take_chunks(&mut self, chunks: Chunks<'_>) {
        let mut has_data = false;
        for chunk in chunks {
            match chunk.kind {
                kind::DATA if self.state.takes_data() => {
                    has_data = true;
                    self.take_data(&chunk);
                }
                kind::SACK if self.state.exchanges() => self.take_sack(chunk.value),
                kind::FORWARD_TSN if self.state.takes_data() => {
                    if let Some(to) = wire::u32_at(chunk.value, 0) {
                        self.receive_with(|receiver| receiver.forward(to, &chunk.value[4..]));
                    }
                }
                kind::HEARTBEAT if self.state.exchanges() => {
                    if let Some(peer) = self.peer {
                        self.reply(peer, self.peer_tag, Chunk { kind: kind::HEARTBEAT_ACK, ..chunk });
                    }
                }
                kind::HEARTBEAT_ACK if self.state.tests_path() => {
                    let (now, rto, draws) = (self.now, self.sender.rto_mut(), &mut self.draws);
                    self.path.acknowledge(now, chunk.value, rto, draws);
                }
                kind::INIT_ACK if self.state == State::CookieWait => self.take_init_ack(chunk.value),
                kind::COOKIE_ACK if self.state == State::CookieEchoed => self.establish(),
                kind::ABORT => self.end(CloseReason::Reset),
                kind::SHUTDOWN => self.take_shutdown(chunk.value),
                kind::SHUTDOWN_ACK => self.take_shutdown_ack(),
                kind::SHUTDOWN_COMPLETE if self.state == State::ShutdownAckSent => self.end_gracefully(),
                kind::ERROR => self.take_error(chunk.value),
                kind::DATA..=kind::COOKIE_ACK | kind::SHUTDOWN_COMPLETE | kind::FORWARD_TSN => {}
                // The highest bit says to go on, the next to report (RFC 9260 section 3.2).
                unknown => {
                    if unknown & 0x40 != 0 && self.state.exchanges() {
                        let length = ((CHUNK_HEADER + chunk.value.len()) as u16).to_be_bytes();
                        let head = [&[unknown, chunk.flags], &length[..]].concat();
                        let quoted = &chunk.value[..chunk.value.len().min(64)];
                        self.report(kind::ERROR, cause::UNRECOGNIZED_CHUNK, &[&head, quoted].concat());
                    }
                    if unknown & 0x80 == 0 {
                        break;
                    }
                }
            }
            if self.progress.ended.is_some() {
                return;
            }
        }
        if has_data {
            self.receiver.end_packet(self.now);
            // RFC 9260 section 9.2: a SHUTDOWN acknowledges, but for what lies behind gaps.
            if self.state == State::ShutdownSent {
                self.ask(State::ShutdownSent, self.sender.rto());
            }
        }
        self.shut_down();
    }

    /// Sends a heartbeat if the path has rested, and notices that one has had no answer.
    pub(super) fn test_path(&mut self) {
        let (now, sent) = (self.now, self.sender.sent());
        match self.path.handle_timeout(now, sent, self.sender.rto_mut(), &mut self.draws) {
            Due::Nothing => {}
            Due::Error => self.count_error(),
            Due::Heartbeat(nonce) => {
                if let Some(peer) = self.peer {
                    let value = path::parameter(nonce);
                    self.reply(peer, self.peer_tag, Chunk { kind: kind::HEARTBEAT, flags: 0, value: &value });
                }
            }
        }
    }

    /// Gives something to the receiver, and tells if there is more to be read then.
    fn receive_with(&mut self, give: impl FnOnce(&mut Receiver)) {
        let before = self.receiver.readable();
        give(&mut self.receiver);
        self.pending.readable |= self.receiver.readable() > before;
    }

    fn take_data(&mut self, chunk: &Chunk<'_>) {
        let Some(data) = Data::parse(chunk) else { return };
        if data.bytes.is_empty() {
            self.report(kind::ABORT, cause::NO_USER_DATA, &chunk.value[..4]);
            return self.end(CloseReason::Reset);
        }
        if !self.receiver.has_stream(data.stream) {
            let [high, low] = data.stream.to_be_bytes();
            self.report(kind::ERROR, cause::INVALID_STREAM, &[high, low, 0, 0]);
        }
        self.receive_with(|receiver| receiver.take(&data));
    }

    fn take_sack(&mut self, value: &[u8]) {
        let (Some(cumulative), Some(window)) = (wire::u32_at(value, 0), wire::u32_at(value, 4)) else {
            return;
        };
        let Some(count) = wire::u16_at(value, 8) else { return };
        let Some(blocks) = value.get(12..).and_then(|rest| rest.get(..4 * usize::from(count))) else {
            return;
        };
        if self.sender.acknowledge(self.now, cumulative, Some(window), blocks) {
            self.path.answered();
        }
    }

    /// Answers an INIT without keeping anything of it, also where there is an association: its sender may have begun
    /// anew, or at the same time (RFC 9260 sections 5.2.1 and 5.2.2).
    fn take_init(&mut self, from: Address, value: &[u8]) -> bool {
        let Some(init) = Init::parse(value) else { return false };
        if self.state == State::ShutdownAckSent {
            self.request();
            return true;
        }
        let (mut tag, mut tsn) = self.draw();
        if matches!(self.state, State::CookieWait | State::CookieEchoed) {
            (tag, tsn) = (self.tag, self.sender.acknowledged().wrapping_add(1));
        }
        let cookie = Cookie {
            tag,
            tsn,
            peer_tag: init.tag,
            peer_tsn: init.tsn,
            peer_window: init.window,
            peer_sends_on: init.sends_on,
            streams: init.streams,
            can_forward: init.can_forward,
            made: self.now,
        };
        let cookie = cookie.seal(self.key, from);
        let (window, streams) = (self.config.window, self.config.streams);
        let value = Init::value((tag, tsn), window, streams, Some((&cookie, &init)));
        self.reply(from, init.tag, Chunk { kind: kind::INIT_ACK, flags: 0, value: &value });
        true
    }

    fn take_init_ack(&mut self, value: &[u8]) {
        let Some(init) = Init::parse(value) else {
            return self.end(CloseReason::Reset);
        };
        self.peer_tag = init.tag;
        let Some(cookie) = init.cookie else {
            self.report(kind::ABORT, cause::INVALID_PARAMETER, &[]);
            return self.end(CloseReason::Reset);
        };
        self.cookie = cookie.to_vec();
        self.path.answered();
        self.receiver = Receiver::new(self.config.window, init.tsn, init.sends_on);
        self.sender.agree(init.window, init.streams, init.can_forward);
        self.ask(State::CookieEchoed, rto::RTO_INITIAL);
    }

    /// Takes back a cookie of this end's (RFC 9260 sections 5.1.5 and 5.2.4).
    fn take_cookie(&mut self, from: Address, header: &Header, value: &[u8]) -> bool {
        let Some(cookie) = Cookie::open(self.key, from, value) else { return false };
        if header.tag != cookie.tag {
            return false;
        }
        let is_begun = !matches!(self.state, State::Closed | State::CookieWait | State::CookieEchoed);
        let is_ours = [cookie.tag == self.tag, cookie.peer_tag == self.peer_tag];
        let age = self.now.since(cookie.made);
        match is_ours {
            // A second copy: the acknowledgement was lost.
            [true, true] if is_begun => {}
            _ if age > COOKIE_LIFE && is_ours != [true, true] => {
                let staleness = u32::try_from((age - COOKIE_LIFE).as_nanos() / 1_000).unwrap_or(u32::MAX);
                let mut causes = Vec::new();
                wire::put_parameter(&mut causes, cause::STALE_COOKIE, &staleness.to_be_bytes());
                self.reply(from, cookie.peer_tag, Chunk { kind: kind::ERROR, flags: 0, value: &causes });
                return true;
            }
            // The peer has begun anew, and does not know what was under way.
            [false, false] if is_begun => {
                self.reply(from, cookie.peer_tag, Chunk { kind: kind::ABORT, flags: 0, value: &[] });
                self.end(CloseReason::Reset);
                return true;
            }
            _ if is_begun => return false,
            _ => {
                (self.peer, self.tag, self.peer_tag) = (Some(from), cookie.tag, cookie.peer_tag);
                self.sender = Sender::new(&self.config, cookie.tsn);
                self.sender.agree(cookie.peer_window, cookie.streams, cookie.can_forward);
                self.receiver = Receiver::new(self.config.window, cookie.peer_tsn, cookie.peer_sends_on);
                self.establish();
            }
        }
        self.reply(from, self.peer_tag, Chunk { kind: kind::COOKIE_ACK, flags: 0, value: &[] });
        true
    }

    fn establish(&mut self) {
        self.state = State::Established;
        self.path.answered();
        self.path.rest(self.now, self.sender.rto_mut(), &mut self.draws);
        self.repeat = None;
        self.cookie = Vec::new();
        self.pending.connected = true;
    }

    /// A cookie that has become stale is asked for again (RFC 9260 section 5.2.6).
    fn take_error(&mut self, value: &[u8]) {
        let is_stale = wire::parameters(value).any(|(cause, _)| cause == cause::STALE_COOKIE);
        if is_stale && self.state == State::CookieEchoed {
            let tsn = self.sender.acknowledged().wrapping_add(1);
            self.sender = Sender::new(&self.config, tsn);
            self.peer_tag = 0;
            self.ask(State::CookieWait, rto::RTO_INITIAL);
        }
    }

    fn take_shutdown(&mut self, value: &[u8]) {
        let Some(cumulative) = wire::u32_at(value, 0) else { return };
        match self.state {
            State::Established | State::ShutdownPending | State::ShutdownReceived => {
                if self.sender.acknowledge(self.now, cumulative, None, &[]) {
                    self.path.answered();
                }
                self.state = State::ShutdownReceived;
                self.pending.writable = false;
            }
            State::ShutdownSent | State::ShutdownAckSent => {
                self.ask(State::ShutdownAckSent, self.sender.rto());
            }
            State::Closed | State::CookieWait | State::CookieEchoed => {}
        }
    }

    fn take_shutdown_ack(&mut self) {
        if matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            if let Some(peer) = self.peer {
                self.reply(
                    peer,
                    self.peer_tag,
                    Chunk { kind: kind::SHUTDOWN_COMPLETE, flags: 0, value: &[] },
                );
            }
            self.end_gracefully();
        }
    }

    fn end_gracefully(&mut self) {
        self.end(if self.progress.closing { CloseReason::Local } else { CloseReason::Peer });
    }

    /// Answers a packet of an association that is none, or no more (RFC 9260 section 8.4).
    pub(super) fn answer_stray(&mut self, from: Address, header: &Header, mut chunks: Chunks<'_>) {
        let Some(first) = chunks.next() else { return };
        let (kind, flags, tag) = match first.kind {
            kind::ABORT | kind::SHUTDOWN_COMPLETE => return,
            kind::INIT => match wire::u32_at(first.value, 0) {
                Some(tag) => (kind::ABORT, 0, tag),
                None => return,
            },
            kind::SHUTDOWN_ACK => (kind::SHUTDOWN_COMPLETE, TAG_REFLECTED, header.tag),
            _ => (kind::ABORT, TAG_REFLECTED, header.tag),
        };
        self.reply(from, tag, Chunk { kind, flags, value: &[] });
    }
}
