//! From values to places on an axis, and the ticks that a person expects there.

use crate::units::number;

/// How values are laid along an axis. Values are in the axis's unit; places go from 0 (start) to 1 (end).
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Even steps.
    Linear {
        /// The value at the start.
        min: f64,
        /// The value at the end.
        max: f64,
    },
    /// Even factors; both ends above zero.
    Log {
        /// The value at the start.
        min: f64,
        /// The value at the end.
        max: f64,
    },
    /// Even factors above a break, with zero below it: for figures that are mostly tiny, but may be nothing at all.
    LogAndZero {
        /// The value above the break.
        min: f64,
        /// The value at the end.
        max: f64,
    },
    /// Shares of a distribution from 0 to below 1, with the tail spread out: 90 %, 99 % and 99.9 % at even steps.
    Tail {
        /// The share at the end.
        top: f64,
    },
    /// Words, one place each.
    Words(Vec<String>),
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Where, in the axis's unit.
    pub at: f64,
    /// Empty for a mark without a number.
    pub label: String,
}

/// Beyond this ratio of largest to smallest, even steps no longer show the small values.
const NEEDS_LOG: f64 = 50.0;
/// The share of a [`Scale::LogAndZero`] axis below its break.
const ZERO_PART: f64 = 0.09;

impl Scale {
    /// A scale for a quantity that starts at zero, logarithmic where the values need it.
    pub fn of_quantity(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let (smallest, largest) = extremes(values.clone().filter(|v| *v > 0.0)).unwrap_or((0.0, 0.0));
        if smallest > 0.0 && largest / smallest >= NEEDS_LOG {
            let (min, max) = decades(smallest, largest);
            let zero = values.into_iter().any(|v| v <= 0.0);
            return if zero { Scale::LogAndZero { min, max } } else { Scale::Log { min, max } };
        }
        Scale::linear(0.0, largest, 5)
    }

    /// A scale for latencies: starts at zero unless they are so close together that nothing would be seen.
    pub(crate) fn of_latency(values: impl Iterator<Item = f64> + Clone) -> Scale {
        match extremes(values.clone()) {
            Some((min, max)) if min > 0.0 && max > min && max - min < 0.1 * max => Scale::linear(min, max, 5),
            _ => Scale::of_quantity(values),
        }
    }

    /// A scale for swept numbers: logarithmic if they were chosen so.
    pub fn of_sweep(numbers: &[f64]) -> Scale {
        let mut sorted = numbers.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.dedup();
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Scale::Linear { min: 0.0, max: 1.0 };
        };
        if min == max {
            let margin = if min == 0.0 { 1.0 } else { min.abs() * 0.5 };
            return Scale::Linear { min: min - margin, max: max + margin };
        }
        let (least, most) = extremes(sorted.windows(2).map(|pair| pair[1] / pair[0])).unwrap_or((1.0, 1.0));
        if min > 0.0 && sorted.len() > 2 && (max / min >= 100.0 || (max / min >= 16.0 && most / least <= 1.6))
        {
            let margin = (max / min).powf(0.04);
            return Scale::Log { min: min / margin, max: max * margin };
        }
        let margin = (max - min) * 0.04;
        Scale::Linear { min: min - margin, max: max + margin }
    }

    /// Even steps from at most `min` to at least `max`, both on a tick.
    pub fn linear(min: f64, max: f64, ticks: usize) -> Scale {
        if max <= min {
            return Scale::Linear { min, max: if min == 0.0 { 1.0 } else { min + min.abs() } };
        }
        let step = nice_step((max - min) / ticks as f64);
        let start = (min / step + 1e-9).floor() * step;
        Scale::Linear { min: start, max: (max / step - 1e-9).ceil() * step }
    }

    /// Even factors from at most the smallest to at least the largest of these values, of which those above zero count.
    pub fn log(values: impl Iterator<Item = f64>) -> Scale {
        let (smallest, largest) = extremes(values.filter(|v| *v > 0.0)).unwrap_or((1.0, 10.0));
        let (min, max) = decades(smallest, largest);
        if max > min { Scale::Log { min, max } } else { Scale::Log { min, max: min * 10.0 } }
    }

    /// Shares up to what `count` messages can show, at least 99 % and at most 99.99 %.
    pub(crate) fn tail(count: u64) -> Scale {
        let top = 1.0 - 0.5 / (count.max(1) as f64);
        Scale::Tail { top: top.clamp(0.99, 0.9999) }
    }

    /// Where a value lies, from 0 to 1.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let place = match self {
            Scale::Linear { min, max } => (value - min) / (max - min),
            Scale::Log { min, max } if value > 0.0 => (value / min).ln() / (max / min).ln(),
            Scale::LogAndZero { min, max } if value > 0.0 => {
                ZERO_PART + (1.0 - ZERO_PART) * ((value / min).ln() / (max / min).ln()).max(0.0)
            }
            Scale::Log { .. } | Scale::LogAndZero { .. } => 0.0,
            Scale::Tail { top } => (1.0 - value.min(*top)).log10() / (1.0 - top).log10(),
            Scale::Words(words) => (value + 0.5) / words.len().max(1) as f64,
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Where the axis is broken, if it is.
    pub(crate) fn break_at(&self) -> Option<f64> {
        matches!(self, Scale::LogAndZero { .. }).then_some(ZERO_PART * 0.5)
    }

    /// About `wanted` ticks at round values.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<Tick> {
        let wanted = wanted.max(2);
        match self {
            Scale::Linear { min, max } => linear_ticks(*min, *max, wanted),
            Scale::Log { min, max } => log_ticks(*min, *max, wanted),
            Scale::LogAndZero { min, max } => {
                let mut ticks = vec![Tick { at: 0.0, label: "0".to_owned() }];
                ticks.extend(log_ticks(*min, *max, wanted));
                ticks
            }
            Scale::Tail { top } => [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999]
                .into_iter()
                .filter(|share| *share <= *top + 1e-12)
                .map(|share| Tick { at: share, label: number(share * 100.0, 6) })
                .collect(),
            Scale::Words(words) => {
                words.iter().enumerate().map(|(i, w)| Tick { at: i as f64, label: w.clone() }).collect()
            }
        }
    }
}

/// The smallest and the largest.
pub(crate) fn extremes(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |so_far, v| match so_far {
        None => Some((v, v)),
        Some((min, max)) => Some((v.min(min), v.max(max))),
    })
}

/// Ends of a logarithmic axis: the nearest 1, 2 or 5 times a power of ten outside the values.
fn decades(smallest: f64, largest: f64) -> (f64, f64) {
    let below = |v: f64| {
        let power = 10f64.powf(v.log10().floor());
        let lead = v / power * (1.0 + 1e-9);
        power
            * if lead >= 5.0 {
                5.0
            } else if lead >= 2.0 {
                2.0
            } else {
                1.0
            }
    };
    let above = |v: f64| {
        let power = 10f64.powf(v.log10().floor());
        let lead = v / power * (1.0 - 1e-9);
        power
            * if lead <= 1.0 {
                1.0
            } else if lead <= 2.0 {
                2.0
            } else if lead <= 5.0 {
                5.0
            } else {
                10.0
            }
    };
    (below(smallest), above(largest))
}

/// The nearest of 1, 2, 2.5 and 5 times a power of ten that is at least `step`.
fn nice_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let lead = step / power * (1.0 - 1e-9);
    power * [1.0, 2.0, 2.5, 5.0].into_iter().find(|nice| lead <= *nice).unwrap_or(10.0)
}

fn linear_ticks(min: f64, max: f64, wanted: usize) -> Vec<Tick> {
    let step = nice_step((max - min) / wanted as f64);
    if !step.is_finite() || step <= 0.0 {
        return vec![Tick { at: min, label: number(min, 4) }];
    }
    let first = (min / step - 1e-9).ceil();
    (0..=wanted * 2)
        .map(|i| (first + i as f64) * step)
        .take_while(|at| *at <= max + step * 1e-6)
        // A multiple near zero is zero: no `-0` and no `1e-17`.
        .map(|at| if at.abs() < step * 1e-6 { 0.0 } else { at })
        .map(|at| Tick { at, label: number(at, 12.min(digits_for(at, step))) })
        .collect()
}

/// As many significant digits as tell neighbours apart that are `step` from each other.
fn digits_for(at: f64, step: f64) -> i32 {
    if at == 0.0 {
        return 1;
    }
    (at.abs().log10().floor() - step.log10().floor()) as i32 + 2
}

fn log_ticks(min: f64, max: f64, wanted: usize) -> Vec<Tick> {
    let (low, high) = (min.log10().floor() as i32, max.log10().ceil() as i32);
    let inside = |at: &f64| *at >= min * (1.0 - 1e-9) && *at <= max * (1.0 + 1e-9);
    let at_leads = |leads: &[f64], every: i32| -> Vec<f64> {
        (low..=high)
            .filter(|power| power.rem_euclid(every) == 0)
            .flat_map(|power| leads.iter().map(move |lead| lead * 10f64.powi(power)))
            .filter(inside)
            .collect()
    };
    let candidates = [
        at_leads(&[1.0, 2.0, 3.0, 4.0, 6.0, 8.0], 1),
        at_leads(&[1.0, 2.0, 5.0], 1),
        at_leads(&[1.0, 3.0], 1),
        at_leads(&[1.0], 1),
        at_leads(&[1.0], 2),
        at_leads(&[1.0], 4),
    ];
    let chosen = candidates.iter().find(|ticks| ticks.len() <= wanted).unwrap_or(&candidates[5]);
    let fits = chosen.len() >= 2;
    let chosen = if fits { chosen.clone() } else { vec![min, max] };
    chosen.into_iter().map(|at| Tick { at, label: number(at, 3) }).collect()
}
