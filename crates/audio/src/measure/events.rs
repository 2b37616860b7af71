//! Gaps and clicks.

/// What was counted, and how long it lasted, in seconds.
pub(super) struct Events {
    pub(super) gaps: u32,
    pub(super) gap_time: f64,
    pub(super) clicks: u32,
    pub(super) click_time: f64,
}

/// A gap is so much softer than what was sent: 40 dB.
const GONE: f64 = 1e-4;

/// Nothing is gone of what is so much softer than the loudest millisecond: 50 dB.
const SOFT: f64 = 1e-5;

/// A gap has at least so many milliseconds.
const SHORTEST: usize = 2;

/// So many milliseconds in which nothing was sent do not part a gap.
const PAUSE: usize = 3;

/// A click bends the difference so much more than the sent audio is bent around it, root mean square.
const SHARP: f64 = 8.0;

/// And so much more than the difference itself is bent around it: a lone step is 14 times so at 16 kHz.
const ALONE: f64 = 8.0;

/// What is sharp is no click if it is so much softer than the loudest sample: 40 dB.
const FAINT: f64 = 0.01;

pub(super) fn measure(sample_rate: u32, sent: &[f32], received: &[f32]) -> Events {
    let (gaps, gap_time) = gaps(sample_rate, sent, received);
    let (clicks, click_time) = clicks(sample_rate, sent, received);
    Events { gaps, gap_time, clicks, click_time }
}

fn gaps(sample_rate: u32, sent: &[f32], received: &[f32]) -> (u32, f64) {
    let block = (sample_rate as usize / 1000).max(1);
    let blocks = || sent.chunks_exact(block).zip(received.chunks_exact(block));
    let loudest = blocks().map(|(sent, _)| energy(sent)).fold(0.0, f64::max);
    let (mut count, mut total) = (0, 0);
    let mut end = |gap: Option<Gap>| {
        let length = gap.map_or(0, |gap| gap.length(block, sent, received));
        if length >= SHORTEST * block {
            count += 1;
            total += length;
        }
    };
    let (mut gap, mut soft) = (None::<Gap>, 0);
    for (at, (sent, received)) in blocks().enumerate() {
        let (sent, received) = (energy(sent), energy(received));
        let is_audible = sent > loudest * SOFT;
        if is_audible && received <= sent * GONE {
            let gap = gap.get_or_insert(Gap { first: at, last: at, gone: 0 });
            (gap.last, gap.gone) = (at, gap.gone + 1);
            soft = 0;
        } else if !is_audible && received <= sent && gap.is_some() && soft < PAUSE {
            // Of a soft moment nothing can be gone: it does not part a gap.
            soft += 1;
        } else {
            end(gap.take());
            soft = 0;
        }
    }
    end(gap);
    (count, total as f64 / f64::from(sample_rate))
}

fn energy(samples: &[f32]) -> f64 {
    samples.iter().map(|s| f64::from(*s) * f64::from(*s)).sum()
}

/// Milliseconds in which nothing arrived of what was sent: the first, the last, and how many.
#[derive(Clone, Copy)]
struct Gap {
    first: usize,
    last: usize,
    gone: usize,
}

impl Gap {
    /// Its length in samples, with those that are gone of the milliseconds before and after it.
    fn length(self, block: usize, sent: &[f32], received: &[f32]) -> usize {
        let of = |number: usize| number * block..((number + 1) * block).min(received.len());
        let is_gone = |beside: usize| {
            let most = GONE * energy(&sent[of(beside)]) / block as f64;
            move |sample: &&f32| f64::from(**sample) * f64::from(**sample) <= most
        };
        let before = self
            .first
            .checked_sub(1)
            .map_or(0, |before| received[of(before)].iter().rev().take_while(is_gone(self.first)).count());
        let after = received[of(self.last + 1)].iter().take_while(is_gone(self.last)).count();
        before + self.gone * block + after
    }
}

/// The sample from which on the received audio is gone to its end, as in a gap: the recording has ended there, or the sender
/// had. The number of samples if it is not gone there, or gone altogether.
pub(super) fn end(sample_rate: u32, sent: &[f32], received: &[f32]) -> usize {
    let block = (sample_rate as usize / 1000).max(1);
    let blocks = || sent.chunks(block).zip(received.chunks(block));
    let loudest = blocks().map(|(sent, _)| energy(sent)).fold(0.0, f64::max);
    let (mut end, mut gone) = (0, 0);
    for (number, (sent, received)) in (1..).zip(blocks()) {
        let (sent, received) = (energy(sent), energy(received));
        match sent > loudest * SOFT {
            true if received <= sent * GONE => gone += 1,
            false if received <= sent => {}
            _ => (end, gone) = (number, 0),
        }
    }
    if gone < SHORTEST || end == 0 { sent.len() } else { end * block }
}

/// By the second difference, which is small in sound and large at a jump or a kink: of the difference between received and
/// sent, against that of the sent audio within 10 ms, and against what it is itself there: noise and codecs are sharp throughout.
fn clicks(sample_rate: u32, sent: &[f32], received: &[f32]) -> (u32, f64) {
    let around = (sample_rate as usize / 100).max(8);
    let length = sent.len().min(received.len());
    let bends = |at: &dyn Fn(usize) -> f64| -> Vec<f64> {
        (0..length).map(|n| if n < 2 { 0.0 } else { at(n) - 2.0 * at(n - 1) + at(n - 2) }).collect()
    };
    let of_sent = bends(&|n| f64::from(sent[n]));
    let of_difference = bends(&|n| f64::from(received[n]) - f64::from(sent[n]));
    let (usual, sharpness) = (usual(&of_sent, around), usual(&of_difference, around));
    let loudest = sent.iter().fold(0.0f64, |most, s| most.max(f64::from(s.abs())));
    let (mut count, mut total, mut last) = (0, 0u64, None);
    for n in 2..length {
        let sharp = of_difference[n].abs();
        if sharp > SHARP * usual[n] && sharp > ALONE * sharpness[n] && sharp > FAINT * loudest {
            total += 1;
            // What follows within 5 ms belongs to it.
            if last.is_none_or(|last| n - last > around / 2) {
                count += 1;
            }
            last = Some(n);
        }
    }
    (count, total as f64 / f64::from(sample_rate))
}

/// The root mean square of values within `around` of each.
fn usual(values: &[f64], around: usize) -> Vec<f64> {
    // The running sum of squares, exact enough since each is taken out as it was put in.
    let squares: Vec<f64> = values.iter().map(|value| value * value).collect();
    let mut sum: f64 = squares.iter().take(around).sum();
    let at = |n: usize| {
        sum += squares.get(n + around).copied().unwrap_or(0.0);
        sum -= n.checked_sub(around + 1).map_or(0.0, |gone| squares[gone]);
        libm::sqrt(sum.max(0.0) / (2 * around + 1) as f64)
    };
    (0..values.len()).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps of any length at any place are found, and as long as they are.
    #[test]
    fn gaps_are_measured_to_the_sample() {
        let mut state = 1u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 16_777_216.0 - 0.5
        };
        let sent: Vec<f32> = (0..48_000).map(|_| noise()).collect();
        for length in [96, 120, 240, 480] {
            let mut received = sent.clone();
            for gap in 0..40 {
                let start = 1000 + gap * 1100 + gap * 7;
                received[start..start + length].fill(0.0);
            }
            let (count, time) = gaps(48_000, &sent, &received);
            assert_eq!((count, (time * 48_000.0).round() as usize), (40, 40 * length), "{length}");
        }
    }
}
