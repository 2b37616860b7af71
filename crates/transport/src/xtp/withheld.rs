//! Arrivals that are kept from the sender: how a study made loss where nothing was lost (Weaver & McNabb 1992, section
//! 8.1).

use trunkline_core::{Ratio, Seed, Stream};

use super::wire::Span;

/// Data that were taken and delivered, and are reported as missing until they come again.
#[derive(Clone, Debug)]
pub(super) struct Withheld {
    share: f64,
    chance: Stream,
    /// In the order of the stream, and apart.
    spans: Vec<Span>,
    /// What is said to be here above [`rseq`](Withheld::rseq).
    shown: Vec<Span>,
}

impl Withheld {
    /// This share of all packets; nothing for none.
    pub(super) fn new(share: Ratio, bits: u64) -> Option<Box<Withheld>> {
        let chance = Seed::new(bits, 0).stream("withhold");
        let withheld = Withheld { share: share.value(), chance, spans: Vec::new(), shown: Vec::new() };
        (share.value() > 0.0).then(|| Box::new(withheld))
    }

    /// Whether to keep the arrival of new data from the sender.
    pub(super) fn hides(&mut self, start: u64, end: u64) -> bool {
        let place = self.spans.partition_point(|span| span.right <= start);
        let is_apart = self.spans.get(place).is_none_or(|span| span.left >= end);
        let hides = is_apart && self.chance.chance(self.share);
        if hides {
            self.spans.insert(place, Span { left: start, right: end });
        }
        hides
    }

    /// Data have come again.
    pub(super) fn came_again(&mut self, start: u64, end: u64) {
        self.spans.retain(|span| span.left < start || span.right > end);
    }

    /// What is said to be here without a gap, of what is.
    pub(super) fn rseq(&self, rseq: u64) -> u64 {
        self.spans.first().map_or(rseq, |span| span.left.min(rseq))
    }

    /// What is said to be here above that: at most `most` spans.
    pub(super) fn show(&mut self, rseq: u64, spans: &[Span], most: usize) -> &[Span] {
        self.shown.clear();
        let mut left = self.rseq(rseq);
        let here = core::iter::once(Span { left, right: rseq }).chain(spans.iter().copied());
        for whole in here {
            left = left.max(whole.left);
            for hole in &self.spans {
                if hole.right <= left || hole.left >= whole.right {
                    continue;
                }
                if hole.left > left {
                    self.shown.push(Span { left, right: hole.left });
                }
                left = hole.right;
            }
            if whole.right > left {
                self.shown.push(Span { left, right: whole.right });
            }
        }
        self.shown.truncate(most);
        &self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: f64 = 1.0;

    fn withheld() -> Box<Withheld> {
        Withheld::new(Ratio::new(ALL).expect("a share"), 1).expect("more than nothing")
    }

    fn span(left: u64, right: u64) -> Span {
        Span { left, right }
    }

    #[test]
    fn what_is_withheld_is_a_hole_until_it_comes_again() {
        let mut withheld = withheld();
        assert!(withheld.hides(100, 200));
        assert!(withheld.hides(300, 400));
        assert_eq!(withheld.rseq(500), 100);
        assert_eq!(
            withheld.show(500, &[span(600, 700)], 8),
            [span(200, 300), span(400, 500), span(600, 700)]
        );
        assert_eq!(withheld.show(500, &[span(600, 700)], 2), [span(200, 300), span(400, 500)]);
        withheld.came_again(100, 200);
        assert_eq!((withheld.rseq(500), withheld.show(500, &[], 8)), (300, &[span(400, 500)][..]));
        withheld.came_again(300, 400);
        assert_eq!((withheld.rseq(500), withheld.show(500, &[], 8)), (500, &[][..]));
    }

    #[test]
    fn nothing_is_withheld_unless_asked_for() {
        assert!(Withheld::new(Ratio::default(), 1).is_none());
    }
}
