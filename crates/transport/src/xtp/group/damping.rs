//! Which gaps need no report of one's own, because another receiver has reported them.

use trunkline_core::Time;

use super::super::wire::Span;

/// Gaps whose repair is under way, each until it is overdue.
#[derive(Clone, Debug, Default)]
pub(super) struct Reported {
    gaps: Vec<(Span, Time)>,
}

/// How many are remembered; the oldest is forgotten first, and at worst reported twice.
const LIMIT: usize = 256;

impl Reported {
    /// Somebody, or this receiver itself, has reported a gap. Its repair is overdue at `until`.
    pub(super) fn add(&mut self, gap: Span, until: Time) {
        match self.gaps.iter_mut().find(|(known, _)| *known == gap) {
            Some((_, known)) => *known = until.max(*known),
            None => {
                if self.gaps.len() == LIMIT {
                    self.gaps.remove(0);
                }
                self.gaps.push((gap, until));
            }
        }
    }

    /// Forgets what is overdue at `now`, and what lies below `rseq`.
    pub(super) fn tidy(&mut self, now: Time, rseq: u64) {
        self.gaps.retain(|&(gap, until)| until > now && gap.right > rseq);
    }

    /// Whether a gap is part of one that was reported.
    pub(super) fn covers(&self, gap: Span) -> bool {
        self.gaps.iter().any(|(known, _)| known.left <= gap.left && gap.right <= known.right)
    }

    /// When the next one is overdue.
    pub(super) fn next_overdue(&self) -> Option<Time> {
        self.gaps.iter().map(|&(_, until)| until).min()
    }
}

/// What is missing between `rseq` and the last of the spans.
pub(super) fn gaps(rseq: u64, spans: impl Iterator<Item = Span>) -> impl Iterator<Item = Span> {
    spans.scan(rseq, |left, span| {
        let gap = Span { left: *left, right: span.left };
        *left = span.right;
        Some(gap)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Time = Time::from_nanos;

    #[test]
    fn gaps_lie_between_spans() {
        let spans = [Span { left: 20, right: 30 }, Span { left: 50, right: 60 }];
        let gaps: Vec<Span> = gaps(10, spans.into_iter()).collect();
        assert_eq!(gaps, [Span { left: 10, right: 20 }, Span { left: 30, right: 50 }]);
    }

    #[test]
    fn a_gap_is_covered_until_its_repair_is_overdue() {
        let mut reported = Reported::default();
        reported.add(Span { left: 100, right: 300 }, AT(50));
        assert!(reported.covers(Span { left: 100, right: 200 }));
        assert!(!reported.covers(Span { left: 250, right: 301 }));
        assert_eq!(reported.next_overdue(), Some(AT(50)));
        reported.tidy(AT(49), 0);
        assert!(reported.covers(Span { left: 200, right: 300 }));
        reported.tidy(AT(50), 0);
        assert!(!reported.covers(Span { left: 200, right: 300 }));
    }
}
