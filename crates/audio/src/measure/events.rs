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
    let energy = |samples: &[f32]| samples.iter().map(|s| f64::from(*s) * f64::from(*s)).sum::<f64>();
    let blocks = || sent.chunks_exact(block).zip(received.chunks_exact(block));
    let loudest = blocks().map(|(sent, _)| energy(sent)).fold(0.0, f64::max);
    let (mut count, mut total, mut length) = (0, 0, 0);
    let mut end = |length: usize| {
        if length >= SHORTEST {
            count += 1;
            total += length;
        }
    };
    let mut soft = 0;
    for (sent, received) in blocks() {
        let (sent, received) = (energy(sent), energy(received));
        let is_audible = sent > loudest * SOFT;
        if is_audible && received <= sent * GONE {
            length += 1;
            soft = 0;
        } else if !is_audible && received <= sent && length > 0 && soft < PAUSE {
            // Of a soft moment nothing can be gone: it does not part a gap.
            soft += 1;
        } else {
            end(length);
            (length, soft) = (0, 0);
        }
    }
    end(length);
    (count, (total * block) as f64 / f64::from(sample_rate))
}

/// The sample from which on the received audio is gone to its end, as in a gap: the recording has ended there, or the sender
/// had. The number of samples if it is not gone there, or gone altogether.
pub(super) fn end(sample_rate: u32, sent: &[f32], received: &[f32]) -> usize {
    let block = (sample_rate as usize / 1000).max(1);
    let energy = |samples: &[f32]| samples.iter().map(|s| f64::from(*s) * f64::from(*s)).sum::<f64>();
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
