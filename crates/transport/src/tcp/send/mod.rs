//! The sending half of a connection: what is sent, what is repeated, and what acknowledgements say of it.
//!
//! The structure is that of Linux's sender: a scoreboard of segments, phases of repair, and one timer for timeouts, tail loss
//! probes, reordering and probes of a closed window.

mod ack;
mod output;
mod rack;
mod recovery;
mod repeat;
mod sack;
mod timer;

use trunkline_core::{Duration, Stream, Time};

pub(super) use ack::{Ack, AckOutcome, MILLISECOND, to_millisecond};
use rack::Rack;
use timer::SendTimer;
pub(super) use timer::{TimerOutcome, after};

use super::config::{Pacing, Recovery, TcpConfig};
use super::congestion::{CongestionControl, Making};
use super::counters::SendCounters;
use super::flow::Flow;
use super::queue::ByteQueue;
use super::scoreboard::{Id, Scoreboard, mark};

/// A segment to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) place: u64,
    pub(super) length: usize,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) push: bool,
    /// It was never sent before.
    pub(super) is_new: bool,
}

/// What both ends have agreed on in their SYNs, as the sender needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Agreed {
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    /// The largest payload that the peer takes, without options.
    pub(super) mss: u32,
}

/// What is sent again when the sender has its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Repair {
    #[default]
    Nothing,
    /// New data first, to find out whether the timeout was a mistake (RFC 5682 section 2.1 step 2b).
    New,
    /// What counts as lost.
    Lost,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) flow: Flow,
    pub(super) control: Box<dyn CongestionControl>,
    board: Scoreboard,
    bytes: ByteQueue,
    pub(super) agreed: Agreed,
    /// True if selective acknowledgements are looked at.
    has_sack: bool,
    /// The initial sequence number.
    initial: u32,
    /// What the application has said with its last message: more of it follows.
    is_corked: bool,
    /// True if a FIN follows the bytes.
    is_finishing: bool,
    /// The send buffer's size now, and whether a message waits for room in it.
    buffer: usize,
    pub(super) is_writer_waiting: bool,
    /// The peer's window behind the first unacknowledged place, its largest so far, and the peer's place in the segment that
    /// announced it last.
    window: u64,
    max_window: u64,
    window_from: i64,
    bytes_acked: u64,
    /// The end of the repair under way: all that had been sent when it began.
    high: u64,
    repair: Repair,
    rack: Rack,
    undo: Undo,
    reduction: Reduction,
    recovery: Recovery,
    /// The window was reduced, and the peer is to be told so (RFC 3168 section 6.1.2).
    has_reduced: bool,
    /// The time stamp that the last acknowledgement echoed.
    echo: Option<Time>,
    /// True if the timeout under way is checked for having been too early.
    has_frto: bool,
    /// The end of the tail loss probe under way; 0 if there is none.
    tlp_end: u64,
    is_tlp_repetition: bool,
    /// The receiver has dropped data that it had acknowledged selectively.
    is_reneging: bool,
    /// Timeouts in a row without progress, doublings of the time between probes, and probes without an answer.
    retransmits: u32,
    backoff: u32,
    probes_out: u32,
    /// Since when the window has been probed.
    probing_since: Option<Time>,
    /// The end of the last segment that was known to have arrived out of order.
    sacked_end: u64,
    /// Blocks of the last acknowledgement: what lies in them has been looked at.
    seen_blocks: [(u64, u64); 4],
    /// Where the search for segments to be repeated goes on.
    hint: Option<Id>,
    /// The end of the last segment that was smaller than the largest (Minshall's variant of Nagle's algorithm).
    small_end: u64,
    /// The chunk that is being written segment by segment.
    chunk: Chunk,
    /// Where the kernel's buffer ends that the next byte stands in: a burst never reaches beyond it.
    buffer_end: u64,
    /// Something has happened that may let another segment go; one went since.
    may_send: bool,
    has_sent: bool,
    /// True if the congestion window held the last segment back.
    is_held_by_cwnd: bool,
    is_window_probe_due: bool,
    is_tail_probe_due: bool,
    is_timeout_repetition_due: bool,
    is_keepalive_due: bool,
    /// Both SYNs are acknowledged.
    is_established: bool,
    /// The application or the peer was heard of last at this time while something was unacknowledged.
    waiting_since: Time,
    /// When to try to send again: pacing or the interface holds a segment back.
    wake: Option<Time>,
    timer: Option<(SendTimer, Time)>,
    /// When the interface has sent everything.
    interface_free: Time,
    pub(super) counters: SendCounters,
}

/// What would show that a reduction of the window was a mistake.
#[derive(Clone, Copy, Debug, Default)]
struct Undo {
    /// The first unacknowledged place when it was reduced; `None` if it cannot be undone.
    marker: Option<u64>,
    /// Repetitions since then that the peer has not reported as duplicates; `None` before the first.
    repetitions: Option<u32>,
    /// When the first was sent.
    first_repeated_at: Option<Time>,
}

/// Proportional rate reduction (RFC 6937, RFC 9937).
#[derive(Clone, Copy, Debug, Default)]
struct Reduction {
    delivered: u32,
    sent: u32,
}

/// Segments that leave together and are not yet written: so many from this number on.
#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    next: Id,
    left: u32,
    is_new: bool,
}

impl Sender {
    pub(super) fn new(config: &TcpConfig, initial: u32, stream: &dyn Fn() -> Stream) -> Sender {
        let kind = config.congestion_control.kind();
        let making = Making { hystart: config.hystart, initial_window: config.initial_window, stream };
        let mut flow = Flow::new(config);
        flow.is_paced = match config.pacing {
            Pacing::Auto => kind.needs_pacing || config.max_pacing_rate.is_some(),
            Pacing::Always => true,
            Pacing::Never => false,
        };
        Sender {
            flow,
            control: (kind.make)(&making),
            board: Scoreboard::default(),
            bytes: ByteQueue::default(),
            has_sack: false,
            agreed: Agreed { mss: config.mss as u32, ..Agreed::default() },
            initial,
            is_corked: false,
            is_finishing: false,
            buffer: config.send_buffer.initial,
            is_writer_waiting: false,
            window: 0,
            max_window: 0,
            window_from: i64::MIN,
            bytes_acked: 0,
            high: 0,
            repair: Repair::Nothing,
            rack: Rack::default(),
            undo: Undo::default(),
            reduction: Reduction::default(),
            recovery: config.recovery,
            has_reduced: false,
            echo: None,
            has_frto: false,
            tlp_end: 0,
            is_tlp_repetition: false,
            is_reneging: false,
            retransmits: 0,
            backoff: 0,
            probes_out: 0,
            probing_since: None,
            sacked_end: 0,
            seen_blocks: [(0, 0); 4],
            hint: None,
            small_end: 0,
            chunk: Chunk::default(),
            buffer_end: 0,
            may_send: true,
            has_sent: false,
            is_held_by_cwnd: false,
            is_window_probe_due: false,
            is_tail_probe_due: false,
            is_timeout_repetition_due: false,
            is_keepalive_due: false,
            is_established: false,
            waiting_since: Time::ZERO,
            wake: None,
            timer: None,
            interface_free: Time::ZERO,
            counters: SendCounters::default(),
        }
    }

    /// The sequence number of a place.
    pub(super) fn sequence_of(&self, place: u64) -> u32 {
        self.initial.wrapping_add(place as u32)
    }

    /// The sequence number that an acknowledgement without data carries: of the next place, unless the peer has taken its
    /// window back.
    pub(super) fn acceptable_sequence(&self) -> u32 {
        let end = self.window_end();
        let shrunk = self.flow.next > end && self.flow.next - end >= u64::from(self.flow.mss);
        self.sequence_of(if shrunk { end.max(self.flow.una) } else { self.flow.next })
    }

    /// The place of an acknowledgement number: the nearest to the first unacknowledged one.
    pub(super) fn place_of(&self, acknowledgement: u32) -> i64 {
        let known = self.sequence_of(self.flow.una);
        self.flow.una as i64 + i64::from(acknowledgement.wrapping_sub(known) as i32)
    }

    /// Data of a piece, in two parts.
    pub(super) fn data_of(&self, piece: &Piece) -> [&[u8]; 2] {
        self.bytes.slices(piece.place, piece.length)
    }

    /// The place behind the last byte.
    pub(super) fn end(&self) -> u64 {
        self.bytes.end()
    }

    /// The place behind the peer's window.
    fn window_end(&self) -> u64 {
        self.flow.una + self.window
    }

    /// Lets the send buffer grow if a writer waits for room while the congestion window is not full.
    pub(super) fn relieve_writer(&mut self, config: &TcpConfig) {
        if self.is_writer_waiting && self.flow.in_flight() < self.flow.cwnd {
            self.expand_buffer(config);
        }
    }

    /// Takes what both SYNs have agreed on.
    pub(super) fn agree(&mut self, agreed: Agreed) {
        self.has_sack = agreed.sack && self.recovery != Recovery::Reno;
        self.agreed = agreed;
    }

    /// Sends the SYN once more, now as an answer to the peer's.
    pub(super) fn repeat_syn(&mut self) {
        self.chunk =
            Chunk { next: self.board.first(), left: u32::from(!self.board.is_empty()), is_new: true };
    }

    /// Returns true if a segment with this place of the peer's changes its window.
    pub(super) fn is_window_news(&self, from: i64, window: u64) -> bool {
        from > self.window_from || from == self.window_from && window > self.window
    }

    /// Returns true if a message is taken.
    pub(super) fn has_room(&self) -> bool {
        self.bytes.len() < self.buffer
    }

    /// Returns true if there is so much room that a writer who was refused should be told.
    pub(super) fn is_worth_writing(&self, config: &TcpConfig) -> bool {
        if config.wakes_writer_late { self.bytes.len() * 3 <= self.buffer * 2 } else { self.has_room() }
    }

    /// Takes a message, or a piece of one if `more`.
    pub(super) fn push(&mut self, bytes: &[u8], more: bool, config: &TcpConfig) {
        if self.flow.packets_out == 0 {
            self.check_idleness(config);
        }
        self.check_app_limit();
        if self.flow.next >= self.end() {
            // The kernel does not add to a buffer that was sent: these bytes begin another.
            self.buffer_end = self.end();
        }
        self.bytes.push(bytes);
        self.is_corked = more;
        self.may_send = true;
    }

    /// Sends a FIN behind everything.
    pub(super) fn finish(&mut self) {
        self.is_finishing = true;
        self.is_corked = false;
        self.may_send = true;
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.is_finishing
    }

    /// Returns true if the peer has acknowledged the FIN.
    pub(super) fn is_finished(&self) -> bool {
        self.is_finishing && self.flow.una > self.end()
    }

    /// The place behind everything that is to be sent, the FIN included.
    fn end_of_all(&self) -> u64 {
        self.end() + u64::from(self.is_finishing)
    }

    /// Returns true if everything was sent and acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.flow.packets_out == 0 && self.flow.next >= self.end_of_all()
    }

    /// The connection is over.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.board.clear();
        self.timer = None;
        self.repair = Repair::Nothing;
        self.chunk = Chunk::default();
        self.wake = None;
        (self.is_window_probe_due, self.is_tail_probe_due) = (false, false);
        (self.is_timeout_repetition_due, self.is_keepalive_due) = (false, false);
        let flow = &mut self.flow;
        (flow.packets_out, flow.sacked_out, flow.lost_out, flow.retrans_out) = (0, 0, 0, 0);
    }

    /// Returns true if empty buffers hold memory.
    pub(super) fn holds_memory(&self) -> bool {
        self.bytes.is_empty() && (self.bytes.is_allocated() || self.board.is_allocated())
    }

    /// Gives memory of empty buffers back.
    pub(super) fn release(&mut self) {
        self.bytes.release();
        self.board.release();
    }

    /// The connection is established: the peer's SYN was taken, and ours acknowledged.
    pub(super) fn establish(&mut self, has_accurate_ecn: bool, config: &TcpConfig) {
        self.is_established = true;
        self.flow.has_accurate_ecn = has_accurate_ecn;
        self.sync_mss(config);
        self.expand_buffer(config);
        // A SYN that was lost is a sign of congestion (RFC 6298 section 5.7, RFC 6928 section 2).
        let lost_syn = self.counters.syn_repeated > 1 && self.undo.marker.is_some();
        self.flow.cwnd = if lost_syn { 1 } else { config.initial_window };
        self.flow.cwnd_stamp = self.flow.now;
        self.undo = Undo::default();
        self.flow.data_sent_at = self.flow.now;
        self.retransmits = 0;
        self.control.start(&mut self.flow);
        if !self.control.governs() {
            self.update_pacing_rate();
        }
        self.may_send = true;
    }

    /// Computes the largest payload anew: what both ends take, less options, and half of the peer's largest window at most, so
    /// that two segments fit into it.
    fn sync_mss(&mut self, config: &TcpConfig) {
        let options = if self.agreed.timestamps { super::segment::Options::TIMESTAMPS_LENGTH } else { 0 };
        let by_peer = (self.agreed.mss.min(config.mss as u32)).saturating_sub(options as u32);
        let by_window = if self.max_window > 536 { self.max_window / 2 } else { self.max_window };
        self.flow.mss = match by_window {
            _ if !config.half_window_segments => by_peer,
            0 => by_peer,
            window => by_peer.min(window.max(MIN_MSS) as u32),
        }
        .max(1);
    }

    /// Lets the send buffer grow to two congestion windows, and what Linux reserves for what surrounds the data: 4352 bytes of
    /// memory for a segment of 1448, of which about 2.5 segments of data are left when they are sent in bursts.
    fn expand_buffer(&mut self, config: &TcpConfig) {
        let segment = u64::from(self.flow.mss) * 5 / 2;
        let windows = u64::from(self.control.send_buffer_windows());
        let segments = u64::from(self.flow.cwnd.max(config.initial_window).max(self.flow.reordering + 1));
        let wanted = (windows * segments * segment).min(config.send_buffer.max as u64) as usize;
        self.buffer = self.buffer.max(wanted);
    }

    /// Linux paces at twice the rate of the window in slow start and 1.2 times later, if it paces at all; the rate also decides
    /// how large bursts are.
    fn update_pacing_rate(&mut self) {
        let flow = &mut self.flow;
        let Some(smoothed) = flow.rtt.smoothed() else { return };
        let percent = if flow.cwnd < flow.ssthresh / 2 { 200 } else { 120 };
        let segments = u128::from(flow.cwnd.max(flow.packets_out));
        let rate = u128::from(flow.mss) * segments * percent * 10_000_000 / u128::from(smoothed.as_nanos());
        flow.set_pacing_rate(u64::try_from(rate).unwrap_or(u64::MAX));
    }

    /// The time that a number of bytes takes at the pacing rate.
    fn pacing_time(&self, bytes: u64) -> Duration {
        match self.flow.pacing_rate {
            0 => Duration::ZERO,
            rate => Duration::from_nanos((u128::from(bytes) * 1_000_000_000 / u128::from(rate)) as u64),
        }
    }

    /// Compares the counts with the segments, in debug builds and as long as that is quick.
    pub(super) fn check_counts(&self) {
        if !cfg!(debug_assertions) || self.board.len() > 64 {
            return;
        }
        let count = |marks: u16| {
            let has = |id: &Id| self.board.get(*id).is_some_and(|sent| sent.has(marks));
            self.board.ids().filter(has).count() as u32
        };
        let flow = &self.flow;
        debug_assert_eq!(flow.packets_out, self.board.len() as u32, "segments");
        debug_assert_eq!(flow.lost_out, count(mark::LOST), "lost segments");
        debug_assert_eq!(flow.retrans_out, count(mark::REPEATED), "repetitions");
        if self.has_sack {
            debug_assert_eq!(flow.sacked_out, count(mark::SACKED), "segments that arrived out of order");
        }
    }

    /// Marks of the segment that is unacknowledged for longest.
    fn is_head_repeated(&self) -> bool {
        self.board.front().is_some_and(|sent| sent.has(mark::EVER_REPEATED))
    }
}

/// The smallest payload that a small window makes: Linux's.
const MIN_MSS: u64 = 28;
