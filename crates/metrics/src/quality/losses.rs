//! Packet-loss probability and burst ratio.

use trunkline_core::Ratio;

/// How many messages were not heard, and in how many bursts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// All messages.
    pub messages: u64,
    /// Those that were not heard.
    pub unheard: u64,
    /// Runs of consecutive messages of one channel that were not heard.
    pub bursts: u64,
}

/// Finds out in which bursts the messages of one channel are missing. Sequence numbers wrap. A message that is overtaken by
/// 128 others counts as missing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unheard {
    /// The first message that is not counted yet.
    next: u32,
    /// Which of the 128 messages from `next` on were heard, the first in the lowest bit.
    heard: u128,
    /// The number after the largest known.
    end: u32,
    /// Whether the last message counted was not heard.
    in_burst: bool,
    /// Whether there was a message yet.
    has_begun: bool,
}

impl Losses {
    /// Ppl: the share of the messages that were not heard.
    pub fn ppl(&self) -> Ratio {
        Ratio::new(self.unheard as f64 / self.messages.max(1) as f64).unwrap_or_default()
    }

    /// BurstR (ITU-T G.107 clause 7.5): the mean length of the bursts over that of random loss of the same probability,
    /// which is 1 / (1 - Ppl). It is 1 where nothing is lost.
    pub fn burst_r(&self) -> f64 {
        if self.bursts == 0 {
            return 1.0;
        }
        self.unheard as f64 / self.bursts as f64 * (1.0 - self.ppl().value())
    }

    /// Adds a burst of so many messages that never were handed over.
    pub fn add_burst(&mut self, messages: u64) {
        self.messages += messages;
        self.unheard += messages;
        self.bursts += 1;
    }
}

impl Unheard {
    /// Takes the number of a message that was to be heard. The first one begins the count: a sink that joins late misses
    /// nothing that was sent before.
    #[inline]
    pub fn due(&mut self, sequence: u32) {
        if !self.has_begun {
            *self = Unheard { next: sequence, end: sequence, has_begun: true, ..Unheard::default() };
        }
        let end = sequence.wrapping_add(1);
        if is_before(self.end, end) {
            self.end = end;
        }
    }

    /// Takes the number of a message that was heard.
    #[inline]
    pub fn heard(&mut self, sequence: u32, losses: &mut Losses) {
        self.due(sequence);
        if is_before(sequence, self.next) {
            return; // it is counted as missing
        }
        while sequence.wrapping_sub(self.next) >= u128::BITS {
            self.count_next(losses);
        }
        self.heard |= 1 << sequence.wrapping_sub(self.next);
        while self.heard & 1 == 1 {
            self.count_next(losses);
        }
    }

    /// Counts what is left when nothing more comes.
    pub fn finish(&mut self, losses: &mut Losses) {
        while is_before(self.next, self.end) {
            self.count_next(losses);
        }
    }

    fn count_next(&mut self, losses: &mut Losses) {
        let is_missing = self.heard & 1 == 0;
        losses.messages += 1;
        losses.unheard += u64::from(is_missing);
        losses.bursts += u64::from(is_missing && !self.in_burst);
        self.in_burst = is_missing;
        self.heard >>= 1;
        self.next = self.next.wrapping_add(1);
    }
}

/// Serial comparison of sequence numbers.
fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}
