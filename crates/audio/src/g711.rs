//! G.711 companding (ITU-T Recommendation G.711, 11/1988): mu-law and A-law, one byte per sample.
//!
//! Samples are 16-bit linear, as every sound card and WAV file has them. G.711 itself speaks of 14-bit (mu-law) and
//! 13-bit (A-law) values: those are the upper bits of ours, and a decoded sample has zeros below them.

/// Samples per second of telephone speech.
pub const SAMPLE_RATE: u32 = 8_000;

/// The mu-law code of silence (positive zero).
pub const MU_LAW_SILENCE: u8 = 0xFF;

/// The mu-law code of a sample (Table 2a of G.711; its "all bits inverted" is included).
///
/// Decision values belong to the interval further from zero, for both signs alike.
pub fn encode_mu_law(sample: i16) -> u8 {
    let sign = if sample < 0 { 0x80 } else { 0x00 };
    let biased = sample.unsigned_abs().min(MU_LAW_CLIP) + MU_LAW_BIAS;
    // The bias puts the leading one at bits 7 to 14: its place is the segment, the four bits below it the step.
    let segment = 8 - biased.leading_zeros() as u8;
    let step = (biased >> (segment + 3)) as u8 & 0x0F;
    !(sign | segment << 4 | step)
}

/// The sample of a mu-law code: the middle of its interval (Table 2a, column 8). Both codes of zero give 0.
pub fn decode_mu_law(code: u8) -> i16 {
    MU_LAW[usize::from(code)]
}

/// The A-law code of a sample (Table 1a of G.711, even bits inverted).
///
/// A-law has no zero: 0 belongs to the smallest positive interval and -1 to the smallest negative one.
pub fn encode_a_law(sample: i16) -> u8 {
    // The complement, not the absolute value: the intervals of both signs meet between 0 and -1.
    let (sign, magnitude) = if sample < 0 { (0x00, !sample as u16) } else { (0x80, sample as u16) };
    // The two lowest segments share one step size, so they are one segment of 32 steps here.
    let segment = (8 - magnitude.leading_zeros().min(8)) as u8;
    let step = (magnitude >> (segment.max(1) + 3)) as u8 & 0x0F;
    (sign | segment << 4 | step) ^ A_LAW_INVERSION
}

/// The sample of an A-law code: the middle of its interval (Table 1a, column 8).
pub fn decode_a_law(code: u8) -> i16 {
    A_LAW[usize::from(code)]
}

/// Added to a magnitude so that the segments of mu-law begin at powers of two: 33 in G.711's 14-bit units.
const MU_LAW_BIAS: u16 = 132;

/// The largest magnitude that does not leave the last segment with the bias added: above it, mu-law clips.
const MU_LAW_CLIP: u16 = 32_767 - MU_LAW_BIAS;

/// Every even bit, counted from 1 at the top, is sent inverted (Table 1a, note 2).
const A_LAW_INVERSION: u8 = 0x55;

static MU_LAW: [i16; 256] = {
    let mut table = [0; 256];
    let mut code = 0;
    while code < 256 {
        table[code] = mu_law_value(code as u8);
        code += 1;
    }
    table
};

static A_LAW: [i16; 256] = {
    let mut table = [0; 256];
    let mut code = 0;
    while code < 256 {
        table[code] = a_law_value(code as u8);
        code += 1;
    }
    table
};

const fn mu_law_value(code: u8) -> i16 {
    let code = !code;
    let (segment, step) = (code >> 4 & 7, (code & 0x0F) as i16);
    let magnitude = (((step << 3) + MU_LAW_BIAS as i16) << segment) - MU_LAW_BIAS as i16;
    if code & 0x80 != 0 { -magnitude } else { magnitude }
}

const fn a_law_value(code: u8) -> i16 {
    let code = code ^ A_LAW_INVERSION;
    let (segment, step) = (code >> 4 & 7, (code & 0x0F) as i16);
    let magnitude = if segment == 0 { (step << 4) + 8 } else { ((step << 4) + 0x108) << (segment - 1) };
    if code & 0x80 != 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests;
