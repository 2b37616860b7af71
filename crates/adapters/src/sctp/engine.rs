//! dcsctp's socket, held to what a deterministic simulation asks of an engine.
//!
//! The socket may not leave its thread (it counts references without locks), endpoints may. So sockets live in a table of
//! the thread that made them, and an [`Engine`] is the key to one: on another thread it finds nothing, and the
//! association is over. Drivers may make an endpoint anywhere, as the engine is made with the first thing that is asked
//! of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dcsctp::api::{DcSctpSocket, LifecycleId, Message, Options, PpId, SendOptions, SocketEvent, SocketTime};
use dcsctp::api::{SocketState, StreamId};
use trunkline_core::Time;

use super::config::{Reliability, SctpConfig};
use super::packet::chunk;

/// RTO.Initial, RTO.Min and RTO.Max of RFC 9260 section 16; the first is for setup as well.
const RTO_INITIAL: Duration = Duration::from_secs(1);
const RTO_MIN: Duration = Duration::from_secs(1);
const RTO_MAX: Duration = Duration::from_secs(60);
/// The delay of acknowledgements, RFC 9260 section 6.2.
const SACK_DELAY: Duration = Duration::from_millis(200);
/// The granularity of clocks in RFC 9260 section 6.3.1, rule G1.
const GRANULARITY: Duration = Duration::from_millis(1);
/// The engine adds this to every lifetime.
const ADDED_LIFETIME: Duration = Duration::from_millis(1);

/// Payload protocol identifiers: none for bytes as they are, and RFC 8831's for "empty", since a chunk without user data
/// is not allowed: it goes as one zero byte.
const PLAIN: PpId = PpId(0);
const EMPTY: PpId = PpId(57);

thread_local! {
    static SOCKETS: RefCell<BTreeMap<u64, Box<dyn DcSctpSocket>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Distinguishes the sockets of all threads. Nothing depends on the values.
static NEXT_KEY: AtomicU64 = AtomicU64::new(0);

/// One association of dcsctp. It draws from the thread's generator, which is the association's own while the engine runs
/// and as it was afterwards.
pub(super) struct Engine {
    key: u64,
    draws: u64,
    options: SendOptions,
    /// Streams of which the next message takes the next.
    streams: u16,
    stream: u16,
}

impl Engine {
    /// An association that is closed yet, between these ports.
    pub(super) fn new(local_port: u16, remote_port: u16, config: &SctpConfig, draws: u64) -> Engine {
        let options = Options {
            local_port,
            remote_port,
            announced_maximum_outgoing_streams: config.streams,
            mtu: config.max_packet - config.encapsulation.headers(),
            max_message_size: usize::MAX,
            max_receiver_window_buffer_size: buffer(config.window),
            // Bounded by the endpoint, which counts what is unacknowledged too.
            max_send_buffer_size: usize::MAX,
            per_stream_send_queue_limit: usize::MAX,
            rto_initial: RTO_INITIAL,
            rto_min: RTO_MIN,
            rto_max: RTO_MAX,
            t1_init_timeout: RTO_INITIAL,
            t1_cookie_timeout: RTO_INITIAL,
            t2_shutdown_timeout: RTO_INITIAL,
            max_timer_backoff_duration: Some(RTO_MAX),
            min_rtt_variance: GRANULARITY,
            delayed_ack_max_timeout: SACK_DELAY,
            // RFC 9260 section 7.2.1: min(4 PMDCS, max(2 PMDCS, 4404 bytes)), 3 packets of Ethernet.
            cwnd_mtus_initial: 3,
            immediate_sack_under_cwnd_mtus: 0,
            // How long is enough is for the endpoint to say, in time.
            max_retransmissions: None,
            max_init_retransmits: None,
            heartbeat_interval: Duration::ZERO,
            // The endpoint has verified it.
            disable_checksum_verification: true,
            ..Options::default()
        };
        let (lifetime, max_retransmissions) = match config.reliability {
            Reliability::Full => (None, None),
            Reliability::Lifetime(lifetime) => (Some(lifetime.to_std().saturating_sub(ADDED_LIFETIME)), None),
            Reliability::Retransmissions(count) => (None, Some(count)),
        };
        let key = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
        SOCKETS.with_borrow_mut(|sockets| sockets.insert(key, dcsctp::new_socket("", &options)));
        Engine {
            key,
            draws,
            options: SendOptions {
                unordered: !config.ordered,
                lifetime,
                max_retransmissions,
                lifecycle_id: None,
            },
            streams: config.streams,
            stream: 0,
        }
    }

    pub(super) fn connect(&mut self) {
        self.drawing(|socket| socket.connect());
    }

    pub(super) fn handle_input(&mut self, packet: &[u8]) {
        self.drawing(|socket| socket.handle_input(packet));
    }

    pub(super) fn advance(&mut self, now: Time) {
        self.with(|socket| socket.advance_time(SocketTime::zero() + Duration::from_nanos(now.as_nanos())));
    }

    /// Hands a message over, to be told of its end under the number `id`. False if the engine does not want it.
    pub(super) fn send(&mut self, bytes: &[u8], id: u64) -> bool {
        let (ppid, payload) = if bytes.is_empty() { (EMPTY, vec![0]) } else { (PLAIN, bytes.to_vec()) };
        let message = Message::new(StreamId(self.stream), ppid, payload);
        // Zero is no identifier.
        self.options.lifecycle_id = LifecycleId::new(id + 1);
        let taken = self.with(|socket| socket.send(message, &self.options).is_ok()) == Some(true);
        if taken {
            self.stream = (self.stream + 1) % self.streams;
        }
        taken
    }

    /// The next whole message; empty if that is what was sent.
    pub(super) fn next_message(&mut self) -> Option<Vec<u8>> {
        let Message { ppid, mut payload, .. } = self.with(|socket| socket.get_next_message())??;
        if ppid == EMPTY {
            payload.clear();
        }
        Some(payload)
    }

    /// How many whole messages wait to be read.
    pub(super) fn messages(&self) -> usize {
        self.with(|socket| socket.messages_ready_count()).unwrap_or(0)
    }

    pub(super) fn poll_event(&mut self) -> Option<SocketEvent> {
        self.with(|socket| socket.poll_event())?
    }

    /// When it wants to be called, possibly now.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        let next = self.with(|socket| socket.poll_timeout())?;
        let nanoseconds = (next - SocketTime::zero()).as_nanos();
        (next != SocketTime::infinite_future())
            .then(|| Time::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
    }

    /// Takes no more messages, delivers those it has, and ends.
    pub(super) fn shut_down(&mut self) {
        self.with(|socket| socket.shutdown());
    }

    /// Ends at once, telling the peer.
    pub(super) fn abort(&mut self) {
        self.with(|socket| socket.close());
    }

    /// Whether there is no association, not even on its way.
    pub(super) fn is_closed(&self) -> bool {
        self.with(|socket| socket.state()).is_none_or(|state| state == SocketState::Closed)
    }

    pub(super) fn is_established(&self) -> bool {
        self.with(|socket| socket.state()) == Some(SocketState::Connected)
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.with(|socket| socket.state()) == Some(SocketState::ShuttingDown)
    }

    /// Sends on no more streams than the peer accepts, now that it has said how many.
    pub(super) fn agree_on_streams(&mut self) {
        if let Some(Some(metrics)) = self.with(|socket| socket.get_metrics()) {
            self.streams = self.streams.min(metrics.negotiated_maximum_outgoing_streams).max(1);
        }
    }

    /// Packets with repeated data so far; `None` when the association is over.
    pub(super) fn retransmissions(&self) -> Option<u64> {
        Some(self.with(|socket| socket.get_metrics())??.rtx_packets_count as u64)
    }

    /// Whether this is another thread than that of the socket.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.with(|_| ()).is_none()
    }

    /// Whatever state is left to draw from, for an engine that replaces this one.
    pub(super) fn draws(&self) -> u64 {
        self.draws
    }

    /// `None` on another thread than the socket's.
    fn with<R>(&self, run: impl FnOnce(&mut dyn DcSctpSocket) -> R) -> Option<R> {
        SOCKETS.with_borrow_mut(|sockets| sockets.get_mut(&self.key).map(|socket| run(socket.as_mut())))
    }

    /// What a chunk of this type announces as the receive window, where the engine would announce `engine` bytes of its
    /// larger buffer.
    pub(super) fn announced(window: usize, kind: u8, engine: usize) -> usize {
        match kind {
            chunk::SACK => (engine + window).saturating_sub(watermark(window)).min(window),
            _ => window,
        }
    }

    fn drawing(&mut self, run: impl FnOnce(&mut dyn DcSctpSocket)) {
        let others = fastrand::get_seed();
        fastrand::seed(self.draws);
        self.with(run);
        self.draws = fastrand::get_seed();
        fastrand::seed(others);
    }
}

/// The engine's buffer for a receive window. At the watermark the engine drops what arrives, even what closes a gap: with
/// a buffer just as large as the window, what a sender puts behind a lost packet could keep that packet out for ever.
fn buffer(window: usize) -> usize {
    window * 5 / 2
}

/// Where the engine's window ends in its buffer.
fn watermark(window: usize) -> usize {
    (buffer(window) as f32 * 0.9) as usize
}

impl Drop for Engine {
    fn drop(&mut self) {
        // A thread that is ending drops its sockets itself.
        let _ = SOCKETS.try_with(|sockets| sockets.borrow_mut().remove(&self.key));
    }
}
