//! The arithmetic of TCP-Friendly Rate Control (RFC 5348 sections 3.1 and 5.4).

/// How many loss intervals count (`n` of RFC 5348 section 5.4), beside the present one.
pub(super) const INTERVALS: usize = 8;

const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// The rate of a TCP in bytes per second, with segments of `size` bytes, a round-trip time of `rtt` seconds and `p`
/// loss events per packet (RFC 5348 section 3.1, with t_RTO = 4 R and b = 1).
pub fn throughput(size: f64, rtt: f64, p: f64) -> f64 {
    size / (rtt * denominator(p))
}

/// The loss event rate at which the equation gives `packets` per round-trip time.
pub(super) fn loss_event_rate(packets: f64) -> f64 {
    let (mut low, mut high) = (1e-9, 1.0);
    // The denominator grows with p: bisection on a logarithmic scale, far beyond the 5 % that are asked for.
    for _ in 0..48 {
        let middle = libm::sqrt(low * high);
        if 1.0 / denominator(middle) > packets {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// `f(p)` of RFC 5348 section 8.1: round trips per packet.
fn denominator(p: f64) -> f64 {
    libm::sqrt(2.0 * p / 3.0) + 12.0 * libm::sqrt(3.0 * p / 8.0) * p * (1.0 + 32.0 * p * p)
}

/// The average loss interval of RFC 5348 section 5.4. The first of the lengths is that of the present interval, which
/// counts only if that makes the average larger, and if it `may_count` at all.
pub(super) fn mean_interval(lengths: &[f64], may_count: bool) -> Option<f64> {
    let (&present, past) = lengths.split_first()?;
    if past.is_empty() {
        return Some(present);
    }
    let past = &past[..past.len().min(INTERVALS)];
    let weighted = |lengths: &mut dyn Iterator<Item = f64>| -> f64 {
        lengths.zip(WEIGHTS).map(|(length, weight)| length * weight).sum()
    };
    let total_weight: f64 = WEIGHTS[..past.len()].iter().sum();
    let with = weighted(&mut lengths.iter().copied().take(past.len()));
    let without = weighted(&mut past.iter().copied());
    let total = if may_count { with.max(without) } else { without };
    Some((total / total_weight).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_equation_gives_tcp_s_rate() {
        // At little loss, TCP's 1.22 / sqrt(p) packets per round trip (Mathis and others 1997) with the timeouts' share.
        let rate = throughput(1460.0, 0.1, 0.01) / 1460.0 * 0.1;
        assert!((rate - 11.2).abs() < 0.1, "{rate} packets per round trip");
        let rate = throughput(1000.0, 0.1, 0.1) / 1000.0 * 0.1;
        assert!((rate - 1.77).abs() < 0.01, "{rate} packets per round trip");
    }

    #[test]
    fn the_inverse_inverts() {
        for packets in [0.5, 1.0, 4.0, 50.0, 1000.0] {
            let p = loss_event_rate(packets);
            let back = throughput(1.0, 1.0, p);
            assert!((back / packets - 1.0).abs() < 1e-6, "{packets} packets gave p = {p} and {back}");
        }
    }

    #[test]
    fn the_present_interval_counts_only_if_it_helps() {
        let close = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?}")
        };
        assert_eq!(mean_interval(&[], true), None);
        close(mean_interval(&[7.0], true), 7.0);
        close(mean_interval(&[1.0, 100.0], true), 100.0);
        close(mean_interval(&[300.0, 100.0], true), 300.0);
        close(mean_interval(&[300.0, 100.0], false), 100.0);
        close(mean_interval(&[1.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0], true), 10.0);
        // All eight count: 4 * 20 + (0.8 + 0.6 + 0.4 + 0.2) * 10 over 6.
        close(mean_interval(&[1.0, 20.0, 20.0, 20.0, 20.0, 10.0, 10.0, 10.0, 10.0, 99.0], true), 100.0 / 6.0);
    }
}
