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

/// A click bends the difference so much more than the sent audio is bent around it, root mean square.
const SHARP: f64 = 8.0;

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
    for (sent, received) in blocks() {
        let (sent, received) = (energy(sent), energy(received));
        if sent > loudest * SOFT && received <= sent * GONE {
            length += 1;
        } else {
            end(length);
            length = 0;
        }
    }
    end(length);
    (count, (total * block) as f64 / f64::from(sample_rate))
}

/// By the second difference, which is small in sound and large at a jump or a kink: of the difference between received and
/// sent, against that of the sent audio within 10 ms.
fn clicks(sample_rate: u32, sent: &[f32], received: &[f32]) -> (u32, f64) {
    let around = (sample_rate as usize / 100).max(8);
    let bend = |at: &dyn Fn(usize) -> f64, n: usize| at(n) - 2.0 * at(n - 1) + at(n - 2);
    let of_sent = |n: usize| f64::from(sent[n]);
    let of_difference = |n: usize| f64::from(received[n]) - f64::from(sent[n]);
    let loudest = sent.iter().fold(0.0f64, |most, s| most.max(f64::from(s.abs())));
    let length = sent.len().min(received.len());
    // The running sum of squares, exact enough since each is taken out as it was put in.
    let squares: Vec<f64> =
        (0..length).map(|n| if n < 2 { 0.0 } else { bend(&of_sent, n) }).map(|bend| bend * bend).collect();
    let mut sum: f64 = squares.iter().take(around).sum();
    let (mut count, mut total, mut last) = (0, 0u64, None);
    for n in 2..length {
        sum += squares.get(n + around).copied().unwrap_or(0.0);
        sum -= n.checked_sub(around + 1).map_or(0.0, |gone| squares[gone]);
        let usual = libm::sqrt(sum.max(0.0) / (2 * around + 1) as f64);
        let sharp = bend(&of_difference, n).abs();
        if sharp > SHARP * usual && sharp > FAINT * loudest {
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
