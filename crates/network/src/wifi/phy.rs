//! How long a frame takes on the air, and which rates there are (IEEE 802.11-2016, clauses 10.3, 17 and 18).

use trunkline_core::schema::Values;
use trunkline_core::{Bytes, Duration, Rate};

/// Bits of the OFDM PHY around a frame: SERVICE and tail (clause 17.3.5.2).
const SERVICE_AND_TAIL: u64 = 16 + 6;
/// An acknowledgement, with its check sequence (clause 9.3.1.4).
const ACK: Bytes = Bytes(14);
/// The rates of 802.11a and 802.11g's OFDM (clause 17.2.3.3).
const OFDM: [u64; 8] = [54, 48, 36, 24, 18, 12, 9, 6];

/// What all stations of a cell have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phy {
    pub(super) slot: Duration,
    sifs: Duration,
    preamble: Duration,
    extension: Duration,
    symbol: Duration,
    ack_rate: Rate,
    pub(super) basic_rate: Rate,
    cw_min: u64,
    cw_max: u64,
}

impl From<&Values> for Phy {
    fn from(shared: &Values) -> Phy {
        let cw_min = shared.integer("cw-min");
        Phy {
            slot: shared.duration("slot"),
            sifs: shared.duration("sifs"),
            preamble: shared.duration("preamble"),
            extension: shared.duration("signal-extension"),
            symbol: shared.duration("symbol"),
            ack_rate: shared.rate("ack-rate"),
            basic_rate: shared.rate("basic-rate"),
            cw_min,
            cw_max: shared.integer("cw-max").max(cw_min),
        }
    }
}

impl Phy {
    /// How long a frame of that size is on the air.
    pub(super) fn airtime(&self, frame: Bytes, rate: Rate) -> Duration {
        let bits = SERVICE_AND_TAIL + 8 * frame.count();
        // Of a symbol, in billionths of a bit.
        let symbol = rate.bits_per_second() * self.symbol.as_nanos();
        let symbols = (bits * 1_000_000_000).div_ceil(symbol.max(1));
        self.preamble + self.symbol * symbols + self.extension
    }

    /// From the end of a frame of that rate to the end of its acknowledgement.
    pub(super) fn acknowledgement(&self, rate: Rate) -> Duration {
        self.sifs + self.airtime(ACK, self.ack_rate.min(rate))
    }

    /// How long the channel must have been idle before slots are counted.
    pub(super) fn difs(&self) -> Duration {
        self.sifs + self.slot * 2
    }

    /// The contention window of a frame that was transmitted so often in vain: its backoff is one of this many numbers
    /// from 0 on.
    pub(super) fn window(&self, failures: u64) -> u64 {
        let doubled = (self.cw_min + 1).saturating_mul(1 << failures.min(32));
        doubled.min(self.cw_max + 1)
    }
}

/// The next lower rate: the next of OFDM, above these the half.
pub(super) fn below(rate: Rate) -> Option<Rate> {
    let (now, mega) = (rate.bits_per_second(), 1_000_000);
    if now / 2 > OFDM[0] * mega {
        return Some(Rate::from_bits_per_second(now / 2));
    }
    OFDM.iter().map(|rate| rate * mega).find(|&rate| rate < now).map(Rate::from_bits_per_second)
}

#[cfg(test)]
mod tests {
    use trunkline_testkit::values::values;

    use super::*;

    fn phy(given: &[(&str, &str)]) -> Phy {
        Phy::from(&values(super::super::KIND.shared, given))
    }

    fn mbits(rate: u64) -> Rate {
        Rate::from_bits_per_second(rate * 1_000_000)
    }

    #[test]
    fn frames_take_whole_symbols() {
        let phy = phy(&[]);
        let micros = |frame, rate| phy.airtime(Bytes(frame), mbits(rate)).as_nanos() / 1000;
        // 16 + 6 + 8 x 1542 bits at 216 a symbol: 57.2 symbols.
        assert_eq!(micros(1542, 54), 20 + 58 * 4 + 6);
        // 134 bits at 24 a symbol, and at 96.
        assert_eq!((micros(14, 6), micros(14, 24)), (20 + 6 * 4 + 6, 20 + 2 * 4 + 6));
        assert_eq!(phy.acknowledgement(mbits(54)), Duration::from_micros(10 + 34));
        assert_eq!(
            phy.acknowledgement(mbits(6)),
            Duration::from_micros(10 + 50),
            "never faster than the frame"
        );
        assert_eq!(phy.difs(), Duration::from_micros(28));
    }

    #[test]
    fn the_window_doubles_up_to_its_end() {
        let windows = |phy: Phy| (0..8).map(|failures| phy.window(failures)).collect::<Vec<_>>();
        assert_eq!(windows(phy(&[])), [16, 32, 64, 128, 256, 512, 1024, 1024]);
        assert_eq!(windows(phy(&[("cw-min", "7"), ("cw-max", "20")])), [8, 16, 21, 21, 21, 21, 21, 21]);
        assert_eq!(phy(&[("cw-min", "31"), ("cw-max", "15")]).window(9), 32, "never below the first");
        assert_eq!(phy(&[]).window(u64::MAX), 1024);
    }

    #[test]
    fn rates_step_down_to_the_lowest() {
        let mut rates = vec![mbits(600)];
        while let Some(next) = below(rates[rates.len() - 1]) {
            rates.push(next);
        }
        let mut expected = [600, 300, 150, 75, 54, 48, 36, 24, 18, 12, 9, 6].map(mbits);
        assert_eq!(rates, expected);
        expected.sort();
        assert_eq!(below(mbits(5)), None);
    }
}
