//! What becomes of a conversation: how it begins, what the engine says of it, and how it ends.

use bytes::Bytes as Buffer;
use quinn_proto::{
    ConnectionError, ConnectionEvent, ConnectionHandle, Dir, Event as Happened, Incoming, StreamEvent,
};
use trunkline_core::Ecn;
use trunkline_transport::CloseReason;

use super::clock::instant;
use super::config::Mode;
use super::patience::Patience;
use super::receiving::Receiving;
use super::sending::Sending;
use super::{ABORTED, DONE, QuicEndpoint, Role, identity};

impl QuicEndpoint {
    /// Begins to connect.
    pub(super) fn start(&mut self) {
        let Role::Connecting { peer, config } = &mut self.role else { return };
        let Some(config) = config.take() else { return };
        match self.engine.connect(instant(self.now), *config, *peer, identity::NAME) {
            Ok(link) => self.link = Some(link),
            // The port has been checked, and the name is one: what is left is an engine without connection IDs.
            Err(_) => self.end(CloseReason::Reset),
        }
    }

    /// A peer wants to talk.
    pub(super) fn accept(&mut self, incoming: Incoming) {
        if self.link.is_some() || self.progress.closing {
            return self.engine.ignore(incoming);
        }
        let mut reply = Vec::new();
        match self.engine.accept(incoming, instant(self.now), &mut reply, None) {
            Ok(link) => self.link = Some(link),
            Err(error) => {
                if let Some(transmit) = error.response {
                    reply.truncate(transmit.size);
                    self.replies.push_back((transmit.destination, reply));
                }
            }
        }
    }

    /// Takes what the engine has to say after something happened, and draws the conclusions.
    pub(super) fn observe(&mut self) {
        self.exchange();
        while let Some((_, connection)) = &mut self.link {
            let Some(event) = connection.poll() else { break };
            match event {
                Happened::Connected => {
                    self.progress.connected = true;
                    self.pending.connected = true;
                    self.sending.connected(connection);
                }
                Happened::ConnectionLost { reason } => self.lost(&reason),
                Happened::DatagramsUnblocked
                | Happened::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { dir: Dir::Uni }) =>
                {
                    self.sending.unblock();
                }
                Happened::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    self.pending.readable |= self.receiving.accept(connection);
                }
                Happened::Stream(StreamEvent::Readable { id }) => {
                    self.pending.readable |= self.receiving.readable(connection, id);
                }
                Happened::Stream(StreamEvent::Finished { id }) => self.sending.acknowledged(id),
                Happened::Stream(StreamEvent::Stopped { .. }) => {
                    self.shut(ABORTED);
                    self.end(CloseReason::Reset);
                }
                // Streams of two directions are not allowed, and datagrams are fetched after every packet.
                Happened::HandshakeDataReady | Happened::DatagramReceived | Happened::Stream(_) => {}
            }
        }
        self.conclude();
    }

    /// Carries messages between the engine's two parts.
    fn exchange(&mut self) {
        let Some((handle, connection)) = &mut self.link else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.engine.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
        if connection.is_drained() && !self.progress.connected && matches!(self.role, Role::Listening) {
            // That handshake came to nothing. Others may still connect.
            self.link = None;
            self.patience = Patience::new(self.timeout);
            self.sending = Sending::new(self.mode);
            self.receiving = Receiving::new(self.mode, self.window);
        }
    }

    /// Draws the conclusions from how far both directions have come.
    pub(super) fn conclude(&mut self) {
        match self.receiving.ended() {
            // Both have closed. Of a byte stream that says nothing about whether the peer has all of ours.
            Some(CloseReason::Peer) if self.progress.closing && self.mode == Mode::Stream => {}
            // Elsewhere this end says so only after the peer has all of it.
            Some(CloseReason::Peer) if self.sending.has_said_so() => self.end(CloseReason::Local),
            Some(reason) => self.end(reason),
            None => {}
        }
        if self.sending.is_over() {
            self.end(CloseReason::Local);
            let both = self.mode != Mode::Stream || self.receiving.ended().is_some();
            if both && !self.progress.over {
                self.progress.done.get_or_insert(self.now);
            }
        }
    }

    /// The engine has given the connection up.
    fn lost(&mut self, reason: &ConnectionError) {
        if !self.progress.connected && matches!(self.role, Role::Listening) {
            return; // see `exchange`
        }
        self.progress.over = true;
        self.sending.forget();
        match reason {
            ConnectionError::ApplicationClosed(close) if close.error_code == DONE.into() => {
                // On one stream a peer is done only when it has all of ours, too.
                if self.progress.closing && (self.mode == Mode::Stream || self.sending.has_said_so()) {
                    self.end(CloseReason::Local);
                }
                if let Some((_, connection)) = &mut self.link {
                    self.receiving.finish(connection);
                }
            }
            // The alert that a certificate which is not the pinned one leads to (RFC 8446 section 6.2).
            ConnectionError::TransportError(error) if !self.progress.connected && is_distrust(error) => {
                self.end(CloseReason::Untrusted);
            }
            ConnectionError::TimedOut => {
                self.end(CloseReason::TimedOut(self.now.since(self.patience.heard())))
            }
            _ => self.end(CloseReason::Reset),
        }
    }

    /// The conversation is over. Only the first reason counts.
    pub(super) fn end(&mut self, reason: CloseReason) {
        if self.progress.ended.is_none() {
            self.progress.ended = Some(reason);
            self.pending.closed = Some(reason);
        }
        let broken = matches!(
            reason,
            CloseReason::Reset
                | CloseReason::TimedOut(_)
                | CloseReason::Untrusted
                | CloseReason::NotConnected
        );
        if broken || (reason == CloseReason::Peer && self.mode != Mode::Stream) {
            self.sending.forget();
        }
    }

    /// Closes the connection with this code.
    pub(super) fn shut(&mut self, code: u32) {
        self.progress.over = true;
        self.progress.done = None;
        self.sending.forget();
        if let Some((_, connection)) = &mut self.link {
            connection.close(instant(self.now), code.into(), Buffer::new());
        }
    }

    /// Gives the connection what came for it.
    pub(super) fn deliver(&mut self, handle: ConnectionHandle, event: ConnectionEvent, ecn: Ecn) {
        let Some((_, connection)) = self.link.as_mut().filter(|(own, _)| *own == handle) else { return };
        connection.handle_event(event);
        self.patience.received(self.now, &connection.stats());
        self.pending.readable |= self.receiving.packet(connection, ecn);
        if self.progress.done.is_some() {
            self.progress.done = Some(self.now);
        }
    }

    /// Does not connect any more if it has not begun to.
    pub(super) fn start_nothing(&mut self) {
        if let Role::Connecting { config, .. } = &mut self.role {
            *config = None;
        }
    }
}

/// Whether a handshake failed over the certificate: it is not the expected one, or its holder has not got the key.
fn is_distrust(error: &quinn_proto::TransportError) -> bool {
    // TLS alerts `bad_certificate` to `certificate_unknown`, `unknown_ca`, `access_denied`, `decrypt_error`.
    const ALERTS: [u8; 8] = [42, 43, 44, 45, 46, 48, 49, 51];
    ALERTS.iter().any(|&alert| error.code == quinn_proto::TransportErrorCode::crypto(alert))
}
