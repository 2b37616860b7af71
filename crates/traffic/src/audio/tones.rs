//! Something to hear: notes that are plucked twice a second, other ones in each channel. A sample follows from its number
//! alone.

use std::sync::OnceLock;

/// A period of a sine in steps.
const STEPS: usize = 1 << 10;

/// A pentatonic scale above 220 Hz, in hundredths of a hertz.
const SCALE: [u64; 6] = [22_000, 24_750, 27_500, 33_000, 36_667, 44_000];

/// How far full scale is above the loudest sample: 12 dB.
const HEADROOM: i64 = 4;

/// Writes samples of a channel, from that of the number `first` on, as integers of so many bytes, at most 4, most significant
/// byte first.
pub(super) fn fill(sample_rate: u64, channel: u16, first: u64, bytes: usize, payload: &mut [u8]) {
    let sine = sine();
    let length = (sample_rate / 2).max(1);
    for (number, sample) in (first..).zip(payload.chunks_exact_mut(bytes)) {
        let (note, at) = (number / length, number % length);
        let frequency = SCALE[(note * note + 3 * note + u64::from(channel)) as usize % SCALE.len()];
        // A note begins with zero.
        let step = at * frequency * STEPS as u64 / (100 * sample_rate);
        let value = i64::from(sine[step as usize % STEPS]);
        let fading = value * (length - at) as i64 / length as i64 / HEADROOM;
        sample.copy_from_slice(&(fading as i32).to_be_bytes()[..bytes]);
    }
}

/// A period of a sine at full scale.
fn sine() -> &'static [i32; STEPS] {
    static SINE: OnceLock<[i32; STEPS]> = OnceLock::new();
    SINE.get_or_init(|| {
        core::array::from_fn(|step| {
            let angle = core::f64::consts::TAU * step as f64 / STEPS as f64;
            (libm::sin(angle) * f64::from(i32::MAX)) as i32
        })
    })
}
