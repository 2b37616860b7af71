//! How much may be on its way: slow start, congestion avoidance and fast recovery (RFC 2001).

/// The congestion window, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    mss: u64,
    window: u64,
    threshold: u64,
}

/// The largest window that can be announced, beyond which nothing need grow; slow start ends there at the latest (RFC 2001
/// section 2).
const MOST: u64 = 65_535;

impl Congestion {
    /// A window of so many segments.
    pub(super) fn new(mss: usize, segments: u32) -> Congestion {
        let mss = mss as u64;
        Congestion { mss, window: (mss * u64::from(segments)).clamp(mss, MOST.max(mss)), threshold: MOST }
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// New data was acknowledged: a segment more per acknowledgement, or per round trip above the threshold.
    pub(super) fn acknowledged(&mut self) {
        let more = match self.window <= self.threshold {
            true => self.mss,
            false => (self.mss * self.mss / self.window).max(1),
        };
        self.window = (self.window + more).min(MOST);
    }

    /// So many duplicate acknowledgements tell of a loss, and that so many segments have left the network.
    pub(super) fn lost(&mut self, peer_window: u64, duplicates: u32) {
        self.halve(peer_window);
        self.window = self.threshold + self.mss * u64::from(duplicates);
    }

    /// One more segment has left the network.
    pub(super) fn inflate(&mut self) {
        self.window = (self.window + self.mss).min(MOST);
    }

    /// What was lost has been acknowledged.
    pub(super) fn recovered(&mut self) {
        self.window = self.window.min(self.threshold);
    }

    /// Nothing was heard for a whole timeout.
    pub(super) fn timed_out(&mut self, peer_window: u64) {
        self.halve(peer_window);
        self.window = self.mss;
    }

    /// Half of what may have been on its way, in whole segments, two at least.
    fn halve(&mut self, peer_window: u64) {
        let segments = self.window.min(peer_window) / 2 / self.mss;
        self.threshold = segments.max(2) * self.mss;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_doubles_up_to_the_threshold_and_then_grows_by_a_segment_per_round_trip() {
        let mut congestion = Congestion::new(1000, 1);
        for window in 2..=20 {
            congestion.acknowledged();
            assert_eq!(congestion.window(), window * 1000);
        }
        congestion.timed_out(10_000);
        assert_eq!(congestion.window(), 1000);
        for _ in 0..5 {
            congestion.acknowledged();
        }
        assert_eq!(congestion.window(), 6000, "half of the peer's window is reached and passed");
        congestion.acknowledged();
        assert_eq!(congestion.window(), 6166);
        congestion.lost(65_535, 3);
        assert_eq!(congestion.window(), 3000 + 3000);
        congestion.inflate();
        congestion.recovered();
        assert_eq!(congestion.window(), 3000);
        congestion.lost(65_535, 3);
        congestion.recovered();
        assert_eq!(congestion.window(), 2000, "two segments at least");
    }
}
