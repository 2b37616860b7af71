//! The rate at which a queue that was never empty was served, and the side of the line on which packets were lost.

use super::passage::{Passage, Passages};

/// Packets of a busy period that make a rate, and distinct moments at which they arrived: offloading delivers groups.
const WINDOW_PACKETS: usize = 40;
const WINDOW_MOMENTS: usize = 10;
/// The shortest such period.
const WINDOW: f64 = 100e6;
/// Windows within this share of each other have one rate.
const CONSTANT: f64 = 0.1;
/// Times of captures are exact to a microsecond.
const RESOLUTION: f64 = 1e3;

/// A gap is a transmission if its rest is smaller than this share of a packet's.
const EXACT: f64 = 0.25;
/// The difference of two clocks' rates is smaller.
const DRIFT: f64 = 2e-3;
/// Pairs that have one rate.
const AROUND: usize = 50;
/// Gaps depend on sizes in other ways too, such as framing and a faster line behind a shaper: a share of lost bytes is not known better.
const SIZES: f64 = 0.05;

#[derive(Debug)]
pub(super) struct RateEstimate {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) windows: usize,
    pub(super) busy: f64,
    /// Windows agree: the median counts, and otherwise the 90th percentile.
    pub(super) is_constant: bool,
    /// There are enough windows for an interval of 95 % of the median.
    pub(super) has_interval: bool,
    /// The gap between two packets is the transmission of the second.
    pub(super) is_exact: bool,
    /// The standard deviation of the rest of gaps, in nanoseconds.
    pub(super) noise: f64,
}

/// Two packets that arrived one after the other, while the line was never idle.
#[derive(Debug)]
struct Pair {
    gap: f64,
    /// The gap between the times of sending.
    sent: f64,
    /// Bytes of the second packet.
    bytes: f64,
    /// Bytes that were sent between the two and lost at a full queue.
    dropped: f64,
    /// Bytes that were sent between the two and lost otherwise.
    lost: f64,
    /// The pair before ended where this one begins.
    continues: bool,
}

/// The pairs of a direction.
#[derive(Debug)]
pub(super) struct Service {
    pairs: Vec<Pair>,
    /// Bytes that arrived although they found a full queue, or nearly.
    past_full: f64,
    /// The share of packets that are lost behind the line: the least, the likely and the largest.
    behind: [f64; 3],
}

/// The share of lost bytes that were transmitted. A packet that is lost behind the line lengthens the gap between its neighbours by its own
/// transmission; one that is lost before the line does not.
#[derive(Clone, Copy, Debug)]
struct Transmitted {
    value: f64,
    low: f64,
    high: f64,
    /// Pairs with such losses.
    pairs: usize,
}

/// The lost bytes of a pair, as the rate counts them.
#[derive(Clone, Copy, Debug)]
enum Counting {
    /// Gaps are exact: pairs with losses do not have to count.
    Skip,
    /// The least, the likely and the largest share of them that was transmitted.
    Share([f64; 3]),
}

impl Transmitted {
    /// `None` if some were and some were not, or if gaps do not show it.
    fn all_or_none(&self) -> Option<f64> {
        match (self.low, self.high) {
            (..=0.0, ..0.25) => Some(0.0),
            (0.75.., 1.0..) => Some(1.0),
            _ => None,
        }
    }
}

impl Service {
    /// `smallest` is the smallest delay. `is_full` marks packets, in the order of sending, that found a full queue.
    pub(super) fn of(passages: &Passages, smallest: f64, is_full: &[bool]) -> Service {
        let found_full = |place: usize| is_full.get(place).copied().unwrap_or_default();
        let mut sums = vec![(0.0, 0.0)];
        let (mut dropped, mut lost) = (0.0, 0.0);
        for (place, packet) in passages.all.iter().enumerate() {
            match (packet.is_lost, found_full(place)) {
                (true, true) => dropped += packet.bytes,
                (true, false) => lost += packet.bytes,
                (false, _) => {}
            }
            sums.push((dropped, lost));
        }
        // In order of arrival, since only a FIFO's busy periods count, in which both orders agree.
        let mut pairs = Vec::new();
        let mut continues = false;
        for (before, passage) in passages.arrived.iter().zip(passages.arrived.iter().skip(1)) {
            let is_busy = is_busy(before, passage, smallest);
            if is_busy {
                let (from, to) = (sums[before.place], sums[passage.place.max(before.place)]);
                let gap = passage.received - before.received;
                let (dropped, lost) = (to.0 - from.0, to.1 - from.1);
                let sent = passage.sent - before.sent;
                pairs.push(Pair { gap, sent, bytes: passage.bytes, dropped, lost, continues });
            }
            continues = is_busy;
        }
        let past_full = passages.arrived.iter().filter(|p| found_full(p.place)).map(|p| p.bytes).sum();
        Service { pairs, past_full, behind: [0.0; 3] }
    }

    /// Some packets are lost behind the line, full queue or not.
    pub(super) fn losing_behind(self, behind: [f64; 3]) -> Service {
        Service { behind, ..self }
    }

    /// The share of bytes lost at a full queue that were transmitted. A full queue's drops never use the line; of the packets that it lets
    /// in, as many are lost behind the line as elsewhere.
    fn transmitted_of_dropped(&self) -> [f64; 3] {
        let dropped: f64 = self.pairs.iter().map(|pair| pair.dropped).sum();
        self.behind
            .map(|share| (self.past_full * share / (1.0 - share).max(0.01) / dropped.max(1.0)).min(1.0))
    }

    /// Time and bytes of pairs without losses.
    fn clean(&self) -> Option<(f64, f64)> {
        clean(&self.pairs)
    }

    /// The rest of a gap between two arrivals beyond the transmission of the second packet, as a standard deviation that outliers do not
    /// change.
    fn noise(&self, per_byte: f64) -> f64 {
        let explained = self.pairs.iter().filter(|pair| pair.lost == 0.0);
        let mut noise: Vec<f64> = explained.map(|pair| (pair.gap - pair.bytes * per_byte).abs()).collect();
        1.48 * median(&mut noise)
    }

    fn transmitted_of_lost(&self) -> Transmitted {
        let is_lossy = |pair: &Pair| pair.lost > 0.0 && pair.dropped == 0.0;
        // Bytes that the line could have transmitted beside the second packet, at the rate of the pairs around, since rates change.
        let mut extras = Vec::new();
        for (chunk, place) in self.pairs.chunks(AROUND).zip(0_usize..) {
            let from = place.saturating_sub(1) * AROUND;
            let around = &self.pairs[from..self.pairs.len().min((place + 2) * AROUND)];
            let Some((time, bytes)) = clean(around) else { continue };
            let lossy = chunk.iter().filter(|pair| is_lossy(pair));
            extras.extend(lossy.map(|pair| (pair.gap * bytes / time - pair.bytes, pair.lost)));
        }
        let pairs = extras.len();
        let unknown = Transmitted { value: 0.5, low: 0.0, high: 1.0, pairs };
        let Some((time, bytes)) = self.clean().filter(|_| pairs > 0) else { return unknown };
        let per_byte = time / bytes;
        let (extra, lost) = extras.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let value = extra / lost;
        let residuals: f64 = extras.iter().map(|(extra, lost)| (extra - value * lost).powi(2)).sum();
        let noise = self.noise(per_byte) / per_byte * (pairs as f64).sqrt();
        let error = 3.0 * residuals.sqrt().max(noise) / lost + SIZES;
        let (low, high) = (value - error, value + error);
        // Neither kind of loss explains such gaps: packets are missing from the recording, or were held together.
        if low > 1.2 || high < -0.2 { unknown } else { Transmitted { value, low, high, pairs } }
    }

    /// True if packets that did not find a full queue were lost before the line, false if they were lost behind it, and `None` if gaps cannot
    /// show it.
    pub(super) fn is_before(&self) -> Option<bool> {
        match self.transmitted_of_lost() {
            Transmitted { pairs: 0..5, .. } => None,
            Transmitted { high, .. } if high < 0.5 => Some(true),
            Transmitted { low, .. } if low > 0.5 => Some(false),
            _ => None,
        }
    }

    /// For the bytes that were lost at a full queue, and for those that were lost otherwise.
    fn counting(&self) -> [Counting; 2] {
        let clean = self.pairs.iter().filter(|pair| pair.lost + pair.dropped == 0.0).count();
        if let Some((time, bytes)) = self.clean()
            && 5 * clean > self.pairs.len()
            && self.is_exact(time / bytes)
        {
            return [Counting::Skip; 2];
        }
        let transmitted = self.transmitted_of_lost();
        let Transmitted { low, value, high, .. } = transmitted;
        let some = || [low, value, high].map(|share| share.clamp(0.0, 1.0));
        let of_lost = transmitted.all_or_none().map_or_else(some, |share| [share; 3]);
        [self.transmitted_of_dropped(), of_lost].map(Counting::Share)
    }

    /// True if single gaps are transmissions.
    fn is_exact(&self, per_byte: f64) -> bool {
        let (bytes, n) = (self.pairs.iter().map(|pair| pair.bytes).sum::<f64>(), self.pairs.len());
        self.noise(per_byte) < EXACT * per_byte * bytes / n.max(1) as f64
    }

    /// `None` if there are no busy periods that are long enough.
    pub(super) fn rate(&self) -> Option<RateEstimate> {
        let windows = self.windows();
        // Those in which the line's own rate shows, and those that agree with them.
        let shown: Vec<f64> = windows.iter().filter(|window| window.is_shown).map(Window::rate).collect();
        let least = shown.iter().copied().fold(f64::INFINITY, f64::min) * (1.0 - CONSTANT);
        let most = shown.iter().copied().fold(0.0, f64::max) * (1.0 + CONSTANT);
        let windows: Vec<Window> =
            windows.into_iter().filter(|window| (least..=most).contains(&window.rate())).collect();
        if windows.is_empty() {
            return None;
        }
        let sum = |of: fn(&Window) -> f64| windows.iter().map(of).sum::<f64>();
        let (busy, bytes) = (sum(|window| window.length), sum(|window| window.bytes));
        let (least_bytes, most_bytes) = (sum(|window| window.low), sum(|window| window.high));
        let mut rates: Vec<f64> = windows.iter().map(Window::rate).collect();
        rates.sort_by(f64::total_cmp);
        let n = rates.len();
        let quantile = |share: f64| rates[((n - 1) as f64 * share).round() as usize];
        let (low, high) = (quantile(0.1), quantile(0.9));
        let is_constant = high - low < CONSTANT * high;
        let value = if is_constant { f64::midpoint(rates[(n - 1) / 2], rates[n / 2]) } else { high };
        let (is_exact, noise) = (self.is_exact(8e9 / value), self.noise(8e9 / value));
        let (fewer, more) = (least_bytes / bytes, most_bytes / bytes);
        // The median's 95 % interval by order statistics (Conover 1999), which needs six windows: the number of the value at its end.
        let end = ((n as f64 - 1.96 * (n as f64).sqrt()) / 2.0).round() as usize;
        let has_interval = is_constant && end > 0;
        let rate =
            RateEstimate { value, low, high, windows: n, busy, is_constant, has_interval, is_exact, noise };
        if !is_constant {
            return Some(RateEstimate { low: low * fewer, high: high * more, ..rate });
        }
        // Not below what the noise of a gap makes of them.
        let rank = end.saturating_sub(1);
        let least = value * 2.0 * noise.max(RESOLUTION) * (n as f64).sqrt() / busy;
        let low = rates[rank].min(value - least) * fewer;
        let high = rates[n - 1 - rank].max(value + least) * more;
        Some(RateEstimate { low, high, ..rate })
    }

    fn windows(&self) -> Vec<Window> {
        let counting = self.counting();
        let mut windows = Vec::new();
        // A busy period is tested as a whole too: noise hides the line from short windows.
        for period in self.pairs.chunk_by(|_, pair| pair.continues) {
            let first = windows.len();
            let (mut from, mut pairs) = (Window::default(), Vec::new());
            for pair in period {
                let Some([low, value, high]) = pair.transmitted(counting) else { continue };
                pairs.push(pair);
                from.moments += usize::from(pair.gap > 0.0);
                from.length += pair.gap;
                from.bytes += value;
                from.low += low;
                from.high += high;
                // A group that arrives at once is not divided.
                let is_whole =
                    pairs.len() >= WINDOW_PACKETS && from.moments >= WINDOW_MOMENTS && from.length >= WINDOW;
                if is_whole && pair.gap > 0.0 {
                    windows.push(Window { is_shown: is_shown(pairs.iter().copied()), ..from });
                    (from, pairs) = (Window::default(), Vec::new());
                }
            }
            if windows.len() > first + 1 && is_shown(period.iter()) {
                windows[first..].iter_mut().for_each(|window| window.is_shown = true);
            }
        }
        windows
    }

    /// Transmitted bytes for each byte that arrived.
    pub(super) fn used(&self) -> f64 {
        let arrived: f64 = self.pairs.iter().map(|pair| pair.bytes).sum();
        let sum = |of: fn(&Pair) -> f64| self.pairs.iter().map(of).sum::<f64>();
        let [_, of_dropped, _] = self.transmitted_of_dropped();
        let of_lost = self.transmitted_of_lost();
        let of_lost = of_lost.all_or_none().unwrap_or(of_lost.value.clamp(0.0, 1.0));
        let unseen = sum(|pair| pair.dropped) * of_dropped + sum(|pair| pair.lost) * of_lost;
        if arrived > 0.0 { 1.0 + unseen / arrived } else { 1.0 }
    }
}

fn clean(pairs: &[Pair]) -> Option<(f64, f64)> {
    let clean = pairs.iter().filter(|pair| pair.lost + pair.dropped == 0.0);
    let (time, bytes) = clean.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.gap, sum.1 + pair.bytes));
    (time > 0.0 && bytes > 0.0).then_some((time, bytes))
}

impl Pair {
    /// Bytes that the line has transmitted during the gap: the least, the likely and the most. `None` if the pair does not count.
    fn transmitted(&self, counting: [Counting; 2]) -> Option<[f64; 3]> {
        let mut transmitted = [self.bytes; 3];
        for (lost, counting) in [self.dropped, self.lost].into_iter().zip(counting) {
            let shares = match counting {
                Counting::Share(shares) => shares,
                Counting::Skip if lost > 0.0 => return None,
                Counting::Skip => [0.0; 3],
            };
            transmitted.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share * lost);
        }
        Some(transmitted)
    }
}

#[derive(Clone, Copy, Default)]
struct Window {
    length: f64,
    /// Bytes that the line has transmitted, and the bounds of them.
    bytes: f64,
    low: f64,
    high: f64,
    moments: usize,
    is_shown: bool,
}

impl Window {
    fn rate(&self) -> f64 {
        self.bytes * 8e9 / self.length
    }
}

/// True if the packets' transmissions explain the times of arrival, and the times of sending do not. A path that has become longer, or a
/// jitter with a long memory, delivers packets as they were sent, and so shows nothing of the line.
fn is_shown<'p>(pairs: impl Iterator<Item = &'p Pair> + Clone) -> bool {
    // Packets that were lost at a full queue have not lengthened a gap.
    let sum = |of: &dyn Fn(&Pair) -> f64| pairs.clone().filter(|p| p.lost == 0.0).map(of).sum::<f64>();
    let gaps = sum(&|pair| pair.gap);
    let per_byte = gaps / sum(&|pair| pair.bytes).max(1.0);
    let by_line = sum(&|pair| (pair.gap - pair.bytes * per_byte).abs());
    let by_sending = sum(&|pair| (pair.gap - pair.sent).abs());
    if by_sending > 2.0 * by_line && by_sending > DRIFT * gaps {
        return true;
    }
    // Neither explains single gaps: delays that wander by chance do not explain the sum.
    let clean = || pairs.clone().filter(|pair| pair.lost + pair.dropped == 0.0);
    let n = clean().count() as f64;
    let (gaps, sent) = clean().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.gap, sum.1 + pair.sent));
    let variance = sum(&|pair| (pair.gap - pair.sent - (gaps - sent) / n).powi(2)) / n;
    (gaps - sent).abs() > (5.0 * (variance * n).sqrt()).max(DRIFT * gaps)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// True if a packet was sent before the one in front of it had left.
fn is_busy(before: &Passage, passage: &Passage, smallest: f64) -> bool {
    passage.sent >= before.sent && passage.sent + smallest < before.received
}
