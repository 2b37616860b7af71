//! The state of the sending half that congestion controls read and write.

use trunkline_core::Time;

use super::config::{TcpConfig, TimeoutConfig};
use super::rtt::Rtt;

/// No slow-start threshold yet.
pub(super) const NO_THRESHOLD: u32 = u32::MAX;

/// Where the repair of losses stands. The order matters: from CWR on the window is being reduced or has been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Something arrived out of order: a loss or only reordering.
    Disorder,
    /// The network has marked packets: the window shrinks to the threshold (RFC 3168 section 6.1.2).
    Cwr,
    /// Losses are being repaired (RFC 6675).
    Recovery,
    /// The timer has run out.
    Loss,
}

/// The state of the sending half that congestion controls read and write. Windows and counts are in segments, places are
/// offsets in the sequence space: the SYN has place 0, the first byte 1.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) now: Time,
    /// The first unacknowledged place.
    pub(super) una: u64,
    /// The next place to be sent.
    pub(super) next: u64,
    /// Payload of a full segment, in bytes.
    pub(super) mss: u32,
    /// Segments sent and not acknowledged, however often sent.
    pub(super) packets_out: u32,
    /// Of them, those that have arrived out of order.
    pub(super) sacked_out: u32,
    /// Of them, those that count as lost.
    pub(super) lost_out: u32,
    /// Repetitions that are under way.
    pub(super) retrans_out: u32,
    /// The congestion window.
    pub(super) cwnd: u32,
    /// The slow-start threshold, or [`NO_THRESHOLD`].
    pub(super) ssthresh: u32,
    /// Acknowledged segments that have not yet grown the window, in congestion avoidance.
    pub(super) cwnd_count: u32,
    /// The window before it was reduced last.
    pub(super) prior_cwnd: u32,
    /// The threshold before it was reduced last, 0 if that is not to be undone.
    pub(super) prior_ssthresh: u32,
    /// Whether the window was full, or how many segments were out at most, since `cwnd_usage` was unacknowledged.
    pub(super) is_cwnd_limited: bool,
    pub(super) max_packets_out: u32,
    pub(super) cwnd_usage: u64,
    /// What of the window was used since `cwnd_stamp`.
    pub(super) cwnd_used: u32,
    pub(super) cwnd_stamp: Time,
    pub(super) phase: Phase,
    /// Segments behind a gap that are taken for reordering and not for a loss.
    pub(super) reordering: u32,
    /// Segments delivered so far, by any kind of acknowledgement, and of them those with marks.
    pub(super) delivered: u64,
    pub(super) delivered_ce: u64,
    /// Segments that were taken for lost so far.
    pub(super) lost: u64,
    /// As long as fewer segments than this were delivered, the application and not the network limits the rate. 0 if not.
    pub(super) app_limited: u64,
    /// When a segment was delivered last, and when the one was sent that was delivered last.
    pub(super) delivered_at: Time,
    pub(super) first_sent_at: Time,
    /// When data was sent last.
    pub(super) data_sent_at: Time,
    pub(super) rtt: Rtt,
    /// Bytes per second, 0 before there is one.
    pub(super) pacing_rate: u64,
    /// The most that it may be.
    pub(super) max_pacing_rate: u64,
    /// Whether departures follow `pacing_rate`.
    pub(super) is_paced: bool,
    /// When the last burst departed, or, with pacing, when the next may.
    pub(super) departure: Time,
    /// The largest burst in bytes.
    pub(super) burst: u32,
    /// Whether the peer counts marks (RFC 9768): `delivered_ce` is exact.
    pub(super) has_accurate_ecn: bool,
    /// Whether the window is one of bytes, which grows with every acknowledgement.
    pub(super) counts_bytes: bool,
}

impl Flow {
    pub(super) fn new(config: &TcpConfig) -> Flow {
        Flow {
            now: Time::ZERO,
            una: 0,
            next: 0,
            mss: config.mss as u32,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            cwnd: config.initial_window,
            ssthresh: NO_THRESHOLD,
            cwnd_count: 0,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            is_cwnd_limited: false,
            max_packets_out: 0,
            cwnd_usage: 0,
            cwnd_used: 0,
            cwnd_stamp: Time::ZERO,
            phase: Phase::Open,
            reordering: DUPLICATES,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            app_limited: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            data_sent_at: Time::ZERO,
            rtt: Rtt::new(&config.timeout),
            pacing_rate: 0,
            max_pacing_rate: config
                .max_pacing_rate
                .map_or(u64::MAX, |rate| (rate.bits_per_second() / 8).max(1)),
            is_paced: false,
            departure: Time::ZERO,
            burst: config.burst as u32,
            has_accurate_ecn: false,
            counts_bytes: config.window_in_bytes,
        }
    }

    /// Segments that are believed to be in the network.
    pub(super) fn in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// The place behind what the congestion window allows, if it counts bytes. In a recovery every duplicate says that a
    /// segment has left the network (RFC 2001 section 4).
    pub(super) fn cwnd_end(&self) -> u64 {
        if !self.counts_bytes {
            return u64::MAX;
        }
        let duplicates = if self.phase == Phase::Recovery { self.sacked_out } else { 0 };
        self.una + u64::from(self.cwnd + duplicates) * u64::from(self.mss)
    }

    /// Segments that have left the network or are believed to be lost.
    pub(super) fn left_out(&self) -> u32 {
        self.sacked_out + self.lost_out
    }

    pub(super) fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether the window is being reduced by proportional rate reduction (RFC 6937).
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Cwr | Phase::Recovery)
    }

    /// Whether the window, and not the application or the peer, held the sender back in the last round trip. In slow start
    /// half of the window is enough: it may double (RFC 7661 is the stricter idea).
    pub(super) fn is_limited_by_cwnd(&self) -> bool {
        self.is_cwnd_limited
            || self.counts_bytes
            || self.is_in_slow_start() && self.cwnd < 2 * self.max_packets_out
    }

    /// The threshold as it would be if it were lowered for a reason that is no loss: at least three quarters of the window.
    pub(super) fn current_ssthresh(&self) -> u32 {
        if self.is_reducing() { self.ssthresh } else { self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4) }
    }

    pub(super) fn set_pacing_rate(&mut self, rate: u64) {
        self.pacing_rate = rate.min(self.max_pacing_rate);
    }

    pub(super) fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    /// Grows the window by a segment for every acknowledged one up to the threshold (RFC 5681 section 3.1), and returns how
    /// many acknowledged segments are left over behind the threshold.
    pub(super) fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let rest = acked - (grown - self.cwnd);
        self.cwnd = grown;
        rest
    }

    /// Grows the window by one for every `per_segment` acknowledged segments (RFC 5681 section 3.1).
    pub(super) fn additive_increase(&mut self, per_segment: u32, acked: u32) {
        let per_segment = per_segment.max(1);
        // Credit that was gathered at a slower pace counts for one segment at most.
        if self.cwnd_count >= per_segment {
            self.cwnd_count = 0;
            self.cwnd += 1;
        }
        self.cwnd_count += acked;
        self.cwnd += self.cwnd_count / per_segment;
        self.cwnd_count %= per_segment;
    }

    /// Half of the window, as after a loss in RFC 5681 section 3.1.
    pub(super) fn half_cwnd(&self) -> u32 {
        (self.cwnd / 2).max(2)
    }

    /// Takes a sample of the round trip for the timeout.
    pub(super) fn take_rtt(&mut self, sample: trunkline_core::Duration, config: &TimeoutConfig) {
        self.rtt.take(sample, config, self.una, self.next);
    }
}

/// So many segments behind a gap mean a loss (RFC 5681 section 3.2).
pub(super) const DUPLICATES: u32 = 3;
/// The most reordering that is believed: Linux's `tcp_max_reordering`.
pub(super) const MAX_REORDERING: u32 = 300;
