//! What became of packets.

/// What happened since the start, in packets: a block that comes in parts counts for as many.
///
/// Every packet that was inserted, unless a codec made it too late to be played, is in exactly one of `played`, `late`, `duplicate`, `refused`, `skipped` and those
/// [waiting](super::Playout::waiting).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Played.
    pub played: u64,
    /// Of these, those that a codec made in the place of lost ones.
    pub made: u64,
    /// Not there at their turn.
    pub missing: u64,
    /// Came after their turn.
    pub late: u64,
    /// Came before.
    pub duplicate: u64,
    /// Wrong length, or far from the expected sequence numbers.
    pub refused: u64,
    /// Came after one with a higher sequence number (RFC 4737, section 3.3), late or not.
    pub reordered: u64,
    /// Thrown away to make the buffer shallower, or because the sender started again.
    pub skipped: u64,
    /// Concealed without being missing, to make the buffer deeper.
    pub added: u64,
    /// Times that the buffer ran dry: the missing packet's successors were missing too.
    pub underruns: u64,
    /// Times that playing started anew at a sequence number far from the expected ones.
    pub restarts: u64,
}

impl Counters {
    /// Packets whose turn is over, whether they had come or not.
    pub fn turns(&self) -> u64 {
        self.played + self.missing + self.skipped
    }

    /// Packets in whose place something else was played: a codec's, or what conceals them here.
    pub fn concealed(&self) -> u64 {
        self.missing + self.made
    }

    /// Packets that have not come at all so far.
    pub fn lost(&self) -> u64 {
        self.concealed().saturating_sub(self.late)
    }
}
