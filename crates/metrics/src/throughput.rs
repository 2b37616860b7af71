//! The rate of a voice channel, and fairness between members.

use trunkline_core::Rate;

/// The rate of a G.711 voice channel, one byte each 125 us (Weaver and McNabb 1992 sections 4.2 and 5.2).
pub const VOICE_CHANNEL: Rate = Rate::from_bits_per_second(64_000);

/// Jain's fairness index (sum x)^2 / (n sum x^2) of the members' throughputs, in any unit: 1 if all are equal, 1/n if one
/// has everything. `None` for fewer than two members, or if nobody received anything (Jain, Chiu and Hawe 1984,
/// DEC-TR-301).
pub fn jain_fairness(throughputs: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for x in throughputs {
        n += 1.0;
        sum += x;
        squares += x * x;
    }
    (n > 1.0 && squares > 0.0).then(|| sum * sum / (n * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_of_known_shares() {
        let index = |throughputs: &[u32]| jain_fairness(throughputs.iter().map(|&x| f64::from(x)));
        assert_eq!(index(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(index(&[8, 0, 0, 0]), Some(0.25));
        // 6^2 / (3 * 14)
        assert_eq!(index(&[1, 2, 3]), Some(36.0 / 42.0));
        assert_eq!(index(&[7]), None);
        assert_eq!(index(&[0, 0]), None);
    }
}
