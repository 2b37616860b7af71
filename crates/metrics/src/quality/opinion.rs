//! What users would say of a connection (ITU-T G.107 Annex B and Appendix I).

use libm::{atan2, cos, erfc, sqrt};
use trunkline_core::Ratio;

/// The mean opinion score in a conversation, MOS-CQE, from 1 (bad) to 4.5, for a rating R (B-4). The recommendation's
/// polynomial is a little below 1 for R from 0 to 6.5; that counts as 1.
pub fn mos(r: f64) -> f64 {
    if r <= 0.0 {
        1.0
    } else if r >= 100.0 {
        4.5
    } else {
        (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
    }
}

/// The rating R, from 6.5 to 100, that has this mean opinion score (I-1); `None` outside 1 to 4.5.
pub fn r_of_mos(mos: f64) -> Option<f64> {
    if !(1.0..=4.5).contains(&mos) {
        return None;
    }
    let root = sqrt(-903_522.0 + 1_113_960.0 * mos - 202_500.0 * mos * mos);
    let h = atan2(15.0 * root, 18_566.0 - 6_750.0 * mos) / 3.0;
    Some(20.0 / 3.0 * (8.0 - sqrt(226.0) * cos(h + core::f64::consts::FRAC_PI_3)))
}

/// GoB: the share of users who would call it good or better (B-2).
pub fn good_or_better(r: f64) -> Ratio {
    normal((r - 60.0) / 16.0)
}

/// PoW: the share of users who would call it poor or worse (B-3).
pub fn poor_or_worse(r: f64) -> Ratio {
    normal((45.0 - r) / 16.0)
}

/// The standard normal distribution up to `x` (B-1).
fn normal(x: f64) -> Ratio {
    Ratio::new(erfc(-x / core::f64::consts::SQRT_2) / 2.0).unwrap_or_default()
}
