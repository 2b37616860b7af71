//! A signal with the rhythm and the spectrum of speech, where no recording is given.
//!
//! Pulses of the voice or noise pass through two resonators, as in the oldest speech synthesisers (Klatt 1980 has the
//! modern form). All arithmetic is in integers, so the bytes are the same on every machine.

use std::sync::{Arc, LazyLock};

use trunkline_audio::g711::encode_mu_law;

use crate::source::SourceContext;

/// Samples of each voice before it begins again: 4 s.
pub(super) const LENGTH: usize = 32_000;

/// The voices: mu-law at 8 kHz, [`LENGTH`] bytes each. Made once per process.
pub(super) fn voices() -> Arc<[Vec<u8>]> {
    static VOICES: LazyLock<Arc<[Vec<u8>]>> =
        LazyLock::new(|| PITCH_PERIODS.iter().map(|&p| voice(p)).collect());
    Arc::clone(&VOICES)
}

/// How many places there are in each voice at which a channel may begin.
const STARTS: usize = 8;

/// In which voice a channel begins to speak, and where: the first 32 channels of a flow say different things at any
/// time. There are few places on purpose. All channels move on together, so that at any moment thousands of them read
/// the same few KiB.
pub(super) fn place(context: &SourceContext, channel: u16) -> (u16, u32) {
    let number = u64::from(context.member) * u64::from(context.channels) + u64::from(channel);
    let voices = PITCH_PERIODS.len() as u64;
    let start = number / voices % STARTS as u64 * (LENGTH / STARTS) as u64;
    ((number % voices) as u16, start as u32)
}

/// Samples from one pulse of the voice to the next: 110, 138, 195 and 222 Hz.
const PITCH_PERIODS: [usize; 4] = [73, 58, 41, 36];

/// A syllable lasts 200 ms, a word has four of them, and a pause as long as one follows it.
const SYLLABLE: usize = 1_600;
const SYLLABLES_PER_WORD: usize = 4;
const CONSONANT: usize = 320;

/// First and second formants of a, e, i, o, u (730/1090, 530/1840, 270/2290, 570/840, 300/870 Hz; bandwidths 80 and
/// 120 Hz) as coefficients of the two resonators, in units of 2^-14.
const VOWELS: [[Resonance; 2]; 5] = [
    [(26_677, 15_386), (20_488, 14_910)],
    [(29_043, 15_386), (3_918, 14_910)],
    [(31_043, 15_386), (-7_058, 14_910)],
    [(28_625, 15_386), (24_700, 14_910)],
    [(30_877, 15_386), (24_242, 14_910)],
];
type Resonance = (i64, i64);

fn voice(pitch_period: usize) -> Vec<u8> {
    let mut noise = pitch_period as u32;
    let mut resonators = [Resonator::default(); 2];
    let signal: Vec<i64> = (0..LENGTH)
        .map(|at| {
            let (syllable, within) = (at / SYLLABLE, at % SYLLABLE);
            let excitation = match (syllable % (SYLLABLES_PER_WORD + 1), within) {
                (SYLLABLES_PER_WORD, _) => 0,
                (_, ..CONSONANT) => {
                    noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    i64::from(noise >> 22) - 512
                }
                _ if at % pitch_period == 0 => 8 * (SYLLABLE - within) as i64,
                _ => 0,
            };
            // Every voice goes through the vowels in its own order, and every word begins with another one.
            let word = syllable / (SYLLABLES_PER_WORD + 1);
            let vowel = VOWELS[(syllable * (1 + pitch_period % 4) + word) % VOWELS.len()];
            resonators
                .iter_mut()
                .zip(vowel)
                .fold(excitation, |signal, (resonator, vowel)| resonator.pass(signal, vowel))
        })
        .collect();
    let peak = signal.iter().map(|s| s.abs()).max().unwrap_or(0).max(1);
    signal.iter().map(|s| encode_mu_law((s * 20_000 / peak) as i16)).collect()
}

/// y(n) = x(n) + a y(n-1) - b y(n-2).
#[derive(Clone, Copy, Default)]
struct Resonator {
    before: i64,
    before_that: i64,
}

impl Resonator {
    fn pass(&mut self, signal: i64, (a, b): Resonance) -> i64 {
        let out = signal + ((a * self.before - b * self.before_that) >> 14);
        (self.before_that, self.before) = (self.before, out);
        out
    }
}
