//! Counters of a connection.

/// What the sending half counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SendCounters {
    /// Segments with data, a SYN or a FIN, those sent again included.
    pub(super) segments: u64,
    /// Segments sent again, by cause: three or more segments had arrived after them ...
    pub(super) fast: u64,
    /// ... a later one had arrived and time had passed (RFC 8985) ...
    pub(super) rack: u64,
    /// ... as a probe of the tail (RFC 8985 section 7) ...
    pub(super) tlp: u64,
    /// ... after a timeout.
    pub(super) timeout: u64,
    /// Segments sent again that the peer had already (RFC 2883).
    pub(super) spurious: u64,
    /// SYNs sent again.
    pub(super) syn_repeated: u64,
    /// How often the timer has run out.
    pub(super) timeouts: u64,
    /// Timeouts that turned out to have been too early.
    pub(super) spurious_timeouts: u64,
    /// How often a repair began before that.
    pub(super) recoveries: u64,
    /// Reductions of the window that were undone.
    pub(super) undone: u64,
    /// Probes of a closed window, and of the tail of the data.
    pub(super) window_probes: u64,
    pub(super) tail_probes: u64,
    /// Reductions of the window because of marks.
    pub(super) marks: u64,
}

impl SendCounters {
    /// All segments sent again.
    pub(super) fn repeated(&self) -> u64 {
        self.fast + self.rack + self.tlp + self.timeout
    }
}
