//! Analysis by synthesis: candidate links are simulated with the very packets that were sent, and compared with what
//! happened to them.

use std::collections::VecDeque;

use crate::estimate::idle::is_thin;
use crate::estimate::statistics::{Interval, mean, median, minimise};
use crate::link::{Bucket, Link, Loss, Queue};
use crate::observations::ObservedFlow;
use crate::replay::Replay;

/// Packets that were sent within this time are compared together.
const BIN: f64 = 0.02;
/// Neighbouring bins that are resampled together.
const BLOCK: usize = 5;
/// Difference of loss within a bin that weighs as much as the scale of delays.
const LOSS_SCALE: f64 = 0.1;
/// Difference of loss over [`TREND`] bins that weighs as much.
const TREND_SCALE: f64 = 0.02;
/// Bins over which a difference of loss adds up.
const TREND: usize = 10;
/// Seeds with which a link with random losses or delays is fitted, and Student's quantile for an interval of 90 %
/// from five values.
const SEEDS: u64 = 5;
const STUDENT: f64 = 2.132;
/// The error of a link that cannot be simulated.
const MOST: f64 = 10.0;

/// A kind of link under load, with parameters as logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    FifoBytes,
    FifoPackets,
    Drr,
    Policer,
    Codel,
    Pie,
    FqCodel,
    Shaper,
}

impl Family {
    /// All of them, the simplest first.
    pub(crate) const ALL: [Family; 8] = [
        Family::FifoBytes,
        Family::FifoPackets,
        Family::Drr,
        Family::Policer,
        Family::Codel,
        Family::Pie,
        Family::FqCodel,
        Family::Shaper,
    ];

    /// The names of its parameters.
    pub(crate) fn parameters(self) -> &'static [Parameter] {
        match self {
            Family::FifoBytes | Family::FifoPackets | Family::Drr => &[Parameter::Rate, Parameter::Limit],
            Family::Codel | Family::Pie | Family::FqCodel => &[Parameter::Rate, Parameter::Target],
            Family::Policer => &[Parameter::BucketRate, Parameter::Burst],
            Family::Shaper => &[Parameter::BucketRate, Parameter::Burst, Parameter::Limit],
        }
    }

    /// The link with these parameters; everything else is that of `base`.
    pub(crate) fn link(self, base: &Link, logarithms: &[f64]) -> Link {
        let value = |wanted: Parameter| {
            let place = self.parameters().iter().position(|parameter| *parameter == wanted);
            place.and_then(|place| logarithms.get(place)).map_or(0.0, |x| x.clamp(-30.0, 40.0).exp())
        };
        let mut link = base.clone();
        link.queue = match self {
            Family::FifoBytes | Family::Shaper => Queue::FifoBytes(value(Parameter::Limit).max(1_500.0)),
            Family::FifoPackets => Queue::FifoPackets(value(Parameter::Limit).max(1.0)),
            Family::Drr => Queue::Drr(value(Parameter::Limit).max(1_500.0)),
            Family::Codel => Queue::Codel(value(Parameter::Target).clamp(1e-4, 1.0)),
            Family::FqCodel => Queue::FqCodel(value(Parameter::Target).clamp(1e-4, 1.0)),
            Family::Pie => Queue::Pie(value(Parameter::Target).clamp(1e-4, 1.0)),
            // What a policer lets pass does not wait.
            Family::Policer => Queue::FifoBytes(1e6),
        };
        link.bucket = matches!(self, Family::Policer | Family::Shaper).then(|| Bucket {
            shapes: self == Family::Shaper,
            rate: value(Parameter::BucketRate),
            burst: value(Parameter::Burst).max(1_500.0),
        });
        if link.bucket.is_none() {
            link.rate = value(Parameter::Rate);
        }
        link
    }
}

/// A parameter that is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    Rate,
    Limit,
    Target,
    BucketRate,
    Burst,
}

impl Parameter {
    /// The key that it belongs to.
    pub(crate) fn key(self, link: &Link) -> &'static str {
        match (self, link.bucket) {
            (Parameter::Rate, _) => "rate",
            (Parameter::Limit | Parameter::Target, _) => "queue",
            (Parameter::BucketRate, Some(Bucket { shapes: true, .. })) => "shape-rate",
            (Parameter::BucketRate, _) => "committed-rate",
            (Parameter::Burst, Some(Bucket { shapes: true, .. })) => "shape-burst",
            (Parameter::Burst, _) => "committed-burst",
        }
    }
}

/// A family with the parameters that fit best.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fitted {
    pub(crate) family: Family,
    pub(crate) logarithms: Vec<f64>,
    pub(crate) link: Link,
    /// Errors of the bins that were fitted, and of those that were held out.
    pub(crate) fitted: Vec<f64>,
    pub(crate) held_out: Vec<f64>,
}

/// Packets to be explained: those that are fitted, and those that are held out.
#[derive(Clone, Copy)]
pub(crate) struct Comparison<'c> {
    pub(crate) fitted: &'c Replay,
    pub(crate) held_out: Option<&'c Replay>,
    /// Delay that weighs as much as [`LOSS_SCALE`], in seconds.
    pub(crate) scale: f64,
    /// Seed of the candidates' random numbers.
    pub(crate) seed: u64,
}

impl Comparison<'_> {
    /// Fits a family from these parameters.
    pub(crate) fn fit(&self, family: Family, base: &Link, start: &[f64], evaluations: usize) -> Fitted {
        let score = |x: &[f64]| mean(&self.errors(self.fitted, &family.link(base, x)));
        let steps: Vec<f64> = family.parameters().iter().map(|parameter| step(*parameter)).collect();
        let (logarithms, _) = minimise(start, &steps, evaluations, score);
        self.fitted_with(family, base, logarithms)
    }

    /// Fits a family; a target stays the usual one unless another explains more.
    pub(crate) fn of_family(&self, family: Family, base: &Link, start: &[f64]) -> Fitted {
        let free = self.fit(family, base, start, 20 * start.len());
        if !family.parameters().contains(&Parameter::Target) {
            return free;
        }
        let usual = self.fitted_with(family, base, vec![free.logarithms[0], start[1]]);
        if is_worse(&usual.fitted, &free.fitted, 2.0) { free } else { usual }
    }

    /// The same family, fitted on from where it is in smaller steps. A target stays as it is.
    pub(crate) fn refined(&self, base: &Link, fitted: &Fitted) -> Fitted {
        let free =
            fitted.family.parameters().iter().filter(|parameter| **parameter != Parameter::Target).count();
        let with = |x: &[f64]| {
            let mut all = fitted.logarithms.clone();
            all[..free].copy_from_slice(x);
            all
        };
        let score = |x: &[f64]| mean(&self.errors(self.fitted, &fitted.family.link(base, &with(x))));
        // The errors are not smooth: the search begins again with simplices of other sizes.
        let mut best = fitted.logarithms[..free].to_vec();
        for step in [0.01, 0.03, 0.004] {
            best = minimise(&best, &vec![step; free], 18 * free, score).0;
        }
        self.fitted_with(fitted.family, base, with(&best))
    }

    /// A family with these parameters.
    pub(crate) fn fitted_with(&self, family: Family, base: &Link, logarithms: Vec<f64>) -> Fitted {
        let link = family.link(base, &logarithms);
        let fitted = self.errors(self.fitted, &link);
        let held_out = self.held_out.map(|replay| self.errors(replay, &link)).unwrap_or_default();
        Fitted { family, logarithms, link, fitted, held_out }
    }

    /// The errors of a link, by bin of time and flow.
    pub(crate) fn errors(&self, replay: &Replay, link: &Link) -> Vec<f64> {
        let Ok(simulated) = replay.over(link, self.seed) else { return vec![MOST; 10] };
        let mut errors = Vec::new();
        for (observed, simulated) in replay.observed().iter().zip(&simulated) {
            // Each flow is a witness of its own, however many packets it has.
            errors.extend(self.of_flow(observed, simulated));
        }
        errors
    }

    fn of_flow(&self, observed: &ObservedFlow, simulated: &ObservedFlow) -> Vec<f64> {
        let mut errors = Vec::new();
        let pairs: Vec<_> = observed.packets.iter().zip(&simulated.packets).collect();
        let bin = if is_thin(&observed.name) { 5.0 * BIN } else { BIN };
        let mut begin = 0;
        // Of the last bins: arrivals on the path minus those on the candidate, and packets.
        let mut trend: VecDeque<(f64, f64)> = VecDeque::new();
        for end in 1..=pairs.len() {
            let start = pairs[begin].0.sent.as_secs_f64();
            if end < pairs.len() && pairs[end].0.sent.as_secs_f64() < start + bin {
                continue;
            }
            let pairs = &pairs[begin..end];
            begin = end;
            let delays = |of: &dyn Fn(usize) -> Option<i64>| {
                let delays: Vec<f64> =
                    (0..pairs.len()).filter_map(of).map(|delay| delay as f64 / 1e9).collect();
                (delays.len(), median(&delays))
            };
            let (seen, delay) = delays(&|n| pairs[n].0.delay);
            let (expected, simulated) = delays(&|n| pairs[n].1.delay);
            let by_delay =
                if seen > 0 && expected > 0 { (delay - simulated).abs() / self.scale } else { 0.0 };
            let share = (seen as f64 - expected as f64).abs() / pairs.len() as f64;
            trend.push_back((seen as f64 - expected as f64, pairs.len() as f64));
            if trend.len() > TREND {
                trend.pop_front();
            }
            let sum = trend.iter().fold((0.0, 0.0), |sum, bin| (sum.0 + bin.0, sum.1 + bin.1));
            let over_time = sum.0.abs() / sum.1.max(50.0) / TREND_SCALE;
            // Large errors are noise of a random drop as often as signs of another mechanism: they weigh less.
            errors.push((by_delay + share / LOSS_SCALE + over_time).ln_1p());
        }
        errors
    }

    /// The fit from `start` of a link with random losses or delays, whose errors depend on the random numbers of the candidates: the
    /// mean of the parameters that fit best with each of several seeds, of which `fitted` is the first. Also returns by how much
    /// each parameter is uncertain for that reason.
    pub(crate) fn over_seeds(&self, base: &Link, fitted: &Fitted, start: &[f64]) -> (Fitted, Vec<f64>) {
        let refined = |seed: u64| {
            let comparison = Comparison { seed, ..*self };
            match seed == self.seed {
                true => comparison.refined(base, fitted).logarithms,
                false => {
                    comparison.refined(base, &comparison.of_family(fitted.family, base, start)).logarithms
                }
            }
        };
        let is_random = base.loss != Loss::None || base.jitter.is_some() || base.reorder.is_some();
        if !is_random && fitted.family != Family::Pie {
            return (self.refined(base, fitted), vec![0.0; fitted.logarithms.len()]);
        }
        let draws: Vec<Vec<f64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=SEEDS).map(|seed| scope.spawn(move || refined(seed))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        let count = draws.len() as f64;
        let (means, halves) = (0..fitted.logarithms.len())
            .map(|place| {
                let values: Vec<f64> = draws.iter().map(|draw| draw[place]).collect();
                let average = mean(&values);
                let variance =
                    values.iter().map(|value| (value - average).powi(2)).sum::<f64>() / (count - 1.0);
                // The path's own random numbers move the fit as much as those of a candidate do.
                (average, STUDENT * (variance * (1.0 + 1.0 / count)).sqrt())
            })
            .unzip();
        (self.fitted_with(fitted.family, base, means), halves)
    }

    /// The interval of each parameter: from where on the errors are worse than the best by more than their own noise, whatever
    /// the others are, and no less than by these `halves`. A shaper with a smaller burst and a higher rate, for one, does nearly
    /// the same.
    pub(crate) fn intervals(&self, base: &Link, best: &Fitted, halves: &[f64]) -> Vec<(Parameter, Interval)> {
        let parameters = best.family.parameters().iter().enumerate();
        let of = parameters.map(|(place, parameter)| {
            let end = |direction: f64| {
                let mut inside = 0.0;
                let mut shift = 0.005;
                let mut others = best.logarithms.clone();
                while shift < 3.0 {
                    others[place] = best.logarithms[place] + direction * shift;
                    let errors = |x: &[f64]| self.errors(self.fitted, &best.family.link(base, x));
                    if is_worse(&errors(&others), &best.fitted, 1.645) {
                        others = self.with_others_fitted(base, best.family, others, place);
                        if is_worse(&errors(&others), &best.fitted, 1.645) {
                            return (inside + shift) / 2.0;
                        }
                    }
                    inside = shift;
                    shift *= 2.0;
                }
                // Nothing bounds it.
                f64::INFINITY
            };
            let value = best.logarithms[place];
            let interval = Interval {
                value: value.exp(),
                low: (value - end(-1.0).max(halves[place])).exp(),
                high: (value + end(1.0).max(halves[place])).exp(),
            };
            (*parameter, interval)
        });
        of.collect()
    }

    /// These parameters, with all but the one at `place` fitted again. A target stays as it is.
    fn with_others_fitted(&self, base: &Link, family: Family, from: Vec<f64>, place: usize) -> Vec<f64> {
        let parameters = family.parameters().iter().enumerate();
        let free: Vec<usize> = parameters
            .filter(|(other, parameter)| *other != place && **parameter != Parameter::Target)
            .map(|(other, _)| other)
            .collect();
        let with = |x: &[f64]| {
            let mut all = from.clone();
            free.iter().zip(x).for_each(|(&other, &value)| all[other] = value);
            all
        };
        let score = |x: &[f64]| mean(&self.errors(self.fitted, &family.link(base, &with(x))));
        let start: Vec<f64> = free.iter().map(|&other| from[other]).collect();
        with(&minimise(&start, &vec![0.01; free.len()], 12 * free.len(), score).0)
    }
}

/// Returns true if the errors of one link are larger than those of another by more than `sigmas` of their noise.
pub(crate) fn is_worse(errors: &[f64], than: &[f64], sigmas: f64) -> bool {
    if errors.len() != than.len() || errors.is_empty() {
        return mean(errors) > mean(than);
    }
    let differences: Vec<f64> = errors.iter().zip(than).map(|(one, other)| one - other).collect();
    let blocks: Vec<f64> = differences.chunks(BLOCK).map(mean).collect();
    let average = mean(&blocks);
    let variance = blocks.iter().map(|block| (block - average).powi(2)).sum::<f64>()
        / (blocks.len().max(2) - 1) as f64
        / blocks.len() as f64;
    average > sigmas * variance.sqrt() && average > 1e-3
}

/// The first step of a parameter: how well it is known before.
fn step(parameter: Parameter) -> f64 {
    match parameter {
        Parameter::Rate | Parameter::BucketRate => 0.02,
        Parameter::Limit => 0.1,
        Parameter::Burst => 0.2,
        Parameter::Target => 0.3,
    }
}

/// Returns, of fitted families in the order of simplicity, the simplest whose held-out errors are within one standard error of the
/// best, and the others that are within it too.
pub(crate) fn choose(fitted: &[Fitted]) -> Option<(usize, Vec<usize>)> {
    let judged = |fitted: &Fitted| {
        if fitted.held_out.is_empty() { fitted.fitted.clone() } else { fitted.held_out.clone() }
    };
    let errors: Vec<Vec<f64>> = fitted.iter().map(judged).collect();
    let best = (0..errors.len()).min_by(|a, b| mean(&errors[*a]).total_cmp(&mean(&errors[*b])))?;
    // What was fitted counts too: a family that cannot explain it is out, however it does elsewhere.
    let equal = |index: &usize| {
        !is_worse(&errors[*index], &errors[best], 1.0)
            && !is_worse(&fitted[*index].fitted, &fitted[best].fitted, 3.0)
    };
    let equals: Vec<usize> = (0..errors.len()).filter(equal).collect();
    let (first, others) = equals.split_first()?;
    Some((*first, others.to_vec()))
}
