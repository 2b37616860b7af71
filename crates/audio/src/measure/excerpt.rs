//! Received audio that is a part of what was sent, sample by sample.

use core::ops::Range;

use super::coarse::Line;
use super::product;

/// A place at which all that was received, but silence before and after it, is what was sent, without the least difference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Excerpt {
    /// The delay, in samples.
    delay: i64,
    /// The samples of the sent audio.
    part: Range<usize>,
    /// They are the same numbers.
    pub(super) is_unchanged: bool,
}

/// Differences 100 dB below the sound are those of the numbers.
const EXACT: f64 = 1e-10;

impl Excerpt {
    /// The excerpt at about this delay, if what was received is one.
    pub(super) fn at(sent: &[f32], heard: &[f32], delay: f64) -> Option<Excerpt> {
        let delay = libm::round(delay) as i64;
        let sounds = sounds(heard)?;
        let first = usize::try_from(sounds.start as i64 - delay).ok()?;
        let part = first..first + sounds.len();
        let (own, received) = (sent.get(part.clone())?, &heard[sounds]);
        let energy = product(own, own);
        let gain = product(own, received) / energy.max(f64::MIN_POSITIVE);
        let off = |(s, r): (&f32, &f32)| f64::from(*r) - gain * f64::from(*s);
        let off: f64 = own.iter().zip(received).map(off).map(|off| off * off).sum();
        let is_unchanged = own == received;
        (off <= EXACT * gain * gain * energy).then_some(Excerpt { delay, part, is_unchanged })
    }

    pub(super) fn line(&self) -> Line {
        Line { delay: self.delay as f64, drift: 0.0 }
    }

    /// Returns true if all that was sent has arrived.
    pub(super) fn is_whole(&self, sent: &[f32]) -> bool {
        let (own, all) = (&sent[self.part.clone()], product(sent, sent));
        all - product(own, own) <= EXACT * all
    }

    /// Distance to the nearest other place where the same numbers were sent; more than 0 if they would be later there.
    pub(super) fn other(&self, sent: &[f32], heard: &[f32]) -> Option<i64> {
        let received = &heard[sounds(heard)?];
        let places = sent.windows(received.len()).enumerate().filter(|(_, own)| *own == received);
        let later =
            places.map(|(first, _)| self.part.start as i64 - first as i64).filter(|later| *later != 0);
        later.min_by_key(|later| later.abs())
    }
}

/// The samples between silence at the ends.
fn sounds(heard: &[f32]) -> Option<Range<usize>> {
    let is_sound = |sample: &f32| *sample != 0.0;
    Some(heard.iter().position(is_sound)?..heard.iter().rposition(is_sound)? + 1)
}
