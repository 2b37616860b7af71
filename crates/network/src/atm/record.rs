//! What a test set on the line would say of cells.

use trunkline_core::{Amount, Duration, Ratio, Time};

/// Counts and transfer delays of cells.
#[derive(Debug)]
pub(super) struct CellRecord {
    nonconforming: u64,
    tagged: u64,
    lost: u64,
    arrived: u64,
    /// In nanoseconds.
    delay_sum: u128,
    delay_least: Duration,
    delay_most: Duration,
}

impl Default for CellRecord {
    fn default() -> CellRecord {
        CellRecord {
            nonconforming: 0,
            tagged: 0,
            lost: 0,
            arrived: 0,
            delay_sum: 0,
            delay_least: Duration::MAX,
            delay_most: Duration::ZERO,
        }
    }
}

impl CellRecord {
    /// Counts a cell with its transfer delay, if it has arrived.
    #[inline]
    pub(super) fn count(&mut self, conforms: bool, tagged: bool, delay: Option<Duration>) {
        self.nonconforming += u64::from(!conforms);
        self.tagged += u64::from(tagged);
        let Some(delay) = delay else {
            self.lost += 1;
            return;
        };
        self.arrived += 1;
        self.delay_sum += u128::from(delay.as_nanos());
        self.delay_least = self.delay_least.min(delay);
        self.delay_most = self.delay_most.max(delay);
    }

    /// Under these names: cells, those not conforming, tagged, lost, the share of these, mean and longest transfer delay,
    /// and the difference between the longest and the shortest. There is no share of no cells, and no delay of none that arrived.
    pub(super) fn figures(
        &self,
        names: [&'static str; 8],
    ) -> impl Iterator<Item = (&'static str, Option<Amount>)> {
        let cells = self.lost + self.arrived;
        let lost = (cells > 0).then(|| Ratio::new(self.lost as f64 / cells as f64).unwrap_or_default());
        let mean = self.delay_sum.checked_div(u128::from(self.arrived));
        let mean = mean.map(|nanos| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
        let most = mean.map(|_| self.delay_most);
        let amounts = [
            Some(Amount::Count(cells)),
            Some(Amount::Count(self.nonconforming)),
            Some(Amount::Count(self.tagged)),
            Some(Amount::Count(self.lost)),
            lost.map(Amount::Share),
            mean.map(Amount::Time),
            most.map(Amount::Time),
            most.map(|most| Amount::Time(most.saturating_sub(self.delay_least))),
        ];
        names.into_iter().zip(amounts)
    }
}

/// Times from one arrival to the next.
#[derive(Debug, Default)]
pub(super) struct Interarrival {
    last: Option<Time>,
    gaps: u64,
    sum: u64,
    /// Of nanoseconds squared.
    squares: u128,
}

impl Interarrival {
    /// Counts an arrival.
    #[inline]
    pub(super) fn count(&mut self, at: Time) {
        if let Some(last) = self.last {
            let gap = at.since(last).as_nanos();
            self.gaps += 1;
            self.sum = self.sum.saturating_add(gap);
            self.squares = self.squares.saturating_add(u128::from(gap) * u128::from(gap));
        }
        self.last = Some(at);
    }

    /// Mean and sample standard deviation; a single time has no deviation.
    pub(super) fn figures(&self) -> [(&'static str, Option<Amount>); 2] {
        let mean = self.sum.checked_div(self.gaps).map(Duration::from_nanos);
        let deviation = self.standard_deviation();
        [
            ("observed-cell-interarrival-mean", mean.map(Amount::Time)),
            ("observed-cell-interarrival-standard-deviation", deviation.map(Amount::Time)),
        ]
    }

    fn standard_deviation(&self) -> Option<Duration> {
        if self.gaps < 2 {
            return None;
        }
        // n Σx² - (Σx)² in whole numbers: nothing cancels.
        let (gaps, sum) = (u128::from(self.gaps), u128::from(self.sum));
        let scaled = gaps.saturating_mul(self.squares).saturating_sub(sum.saturating_mul(sum));
        let variance = scaled as f64 / (gaps * (gaps - 1)) as f64;
        Some(Duration::from_secs_f64(libm::sqrt(variance) / 1e9))
    }
}
