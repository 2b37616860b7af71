//! The latencies of a trace over time, no more of them than can be drawn.

use std::path::Path;

use trunkline_core::{Duration, Time};
use trunkline_metrics::Fate;

use super::read::{Course, read_courses, spans};
use crate::StoreError;

/// Latencies over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencySeries {
    /// Whether every latency of the range is in `points`. If not, they are the least, the greatest and two others of each
    /// bucket: no peak is missing.
    pub is_exact: bool,
    /// How many latencies the range has.
    pub counted: u64,
    /// When a message was sent, and its latency; in order of time. Duplicates have none.
    pub points: Vec<(Time, Duration)>,
    /// When messages were due that never arrived, or never left; in order. If there are more than can be drawn, one of each
    /// bucket.
    pub lost: Vec<Time>,
    /// How many there are.
    pub lost_counted: u64,
}

impl LatencySeries {
    /// Up to so many latencies, and so many lost messages, are given one by one.
    pub const EXACT_UP_TO: usize = 50_000;
}

/// Reads the latencies of the messages sent at or after the first time of `range` and before the second, all of them
/// without one; `buckets` (at least one) is into how many equal parts the range is divided if there are more than `exact_up_to`,
/// usually [`LatencySeries::EXACT_UP_TO`].
///
/// A message that was given up and arrived after all is among the lost ones and has a latency too, as in the trace.
///
/// # Errors
/// If the trace cannot be read, or is damaged.
pub fn latency_series(
    path: &Path,
    range: Option<(Time, Time)>,
    buckets: usize,
    exact_up_to: usize,
) -> Result<LatencySeries, StoreError> {
    let (from, to) = match range {
        Some(range) => range,
        None => whole(path)?,
    };
    let mut latencies = Thinned::new(from, to, buckets, exact_up_to);
    let mut lost = Thinned::new(from, to, buckets, exact_up_to);
    let is_within = |at: Time| from <= at && at < to;
    read_courses(
        path,
        |span| span.first < to && from <= span.last,
        |Course { due, sent, received, fate }| match (fate, sent.zip(received)) {
            (Fate::Duplicate, _) => {}
            (_, Some((sent, received))) if is_within(sent) => latencies.push(sent, received.since(sent)),
            (Fate::Lost, None) if is_within(due) => lost.push(due, Duration::ZERO),
            _ => {}
        },
    )?;
    let (counted, lost_counted) = (latencies.counted, lost.counted);
    let (points, is_exact) = latencies.finish(Bucket::extremes_and_samples);
    let (lost, _) = lost.finish(|bucket| vec![bucket.least]);
    let lost = lost.into_iter().map(|(at, _)| at).collect();
    Ok(LatencySeries { is_exact, counted, points, lost, lost_counted })
}

/// The times between which everything in a trace was due and sent.
fn whole(path: &Path) -> Result<(Time, Time), StoreError> {
    let spans = spans(path)?;
    let first = spans.iter().map(|span| span.first).min().unwrap_or_default();
    let last = spans.iter().map(|span| span.last).max().unwrap_or_default();
    Ok((first, last + Duration::from_nanos(1)))
}

/// A message, or one that is lost and has no latency.
type Point = (Time, Duration);

/// Points one by one, until there are too many.
struct Thinned {
    from: Time,
    /// The length of a bucket.
    length: Duration,
    counted: u64,
    all: Vec<Point>,
    /// Made when there are too many for `all`.
    buckets: Vec<Option<Bucket>>,
    wanted: usize,
    exact_up_to: usize,
}

impl Thinned {
    fn new(from: Time, to: Time, buckets: usize, exact_up_to: usize) -> Thinned {
        let wanted = buckets.max(1);
        let nanos = to.since(from).as_nanos().div_ceil(wanted as u64).max(1);
        let length = Duration::from_nanos(nanos);
        Thinned { from, length, counted: 0, all: Vec::new(), buckets: Vec::new(), wanted, exact_up_to }
    }

    /// Takes a point of the range.
    #[inline]
    fn push(&mut self, at: Time, latency: Duration) {
        self.counted += 1;
        if self.buckets.is_empty() {
            self.all.push((at, latency));
            if self.all.len() > self.exact_up_to {
                self.buckets = vec![None; self.wanted];
                for (n, point) in (1..).zip(std::mem::take(&mut self.all)) {
                    self.sort_in(n, point);
                }
            }
        } else {
            self.sort_in(self.counted, (at, latency));
        }
    }

    #[inline]
    fn sort_in(&mut self, number: u64, point: Point) {
        let index = (point.0.since(self.from).as_nanos() / self.length.as_nanos()) as usize;
        match self.buckets.get_mut(index) {
            Some(Some(bucket)) => bucket.add(number, point),
            Some(empty) => *empty = Some(Bucket::of(point)),
            None => {}
        }
    }

    /// The points in order of time, and whether they are all.
    fn finish(self, chosen: impl Fn(&Bucket) -> Vec<Point>) -> (Vec<Point>, bool) {
        let is_exact = self.buckets.is_empty();
        let mut points = match is_exact {
            true => self.all,
            false => self.buckets.iter().flatten().flat_map(chosen).collect(),
        };
        points.sort_unstable();
        (points, is_exact)
    }
}

/// What is kept of a bucket's points.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    count: u64,
    least: Point,
    greatest: Point,
    samples: [Point; 2],
}

impl Bucket {
    fn of(point: Point) -> Bucket {
        Bucket { count: 1, least: point, greatest: point, samples: [point; 2] }
    }

    /// Each point is as likely as any other to stay among the samples, and always the same ones do.
    #[inline]
    fn add(&mut self, number: u64, point: Point) {
        self.count += 1;
        if point.1 < self.least.1 {
            self.least = point;
        }
        if point.1 > self.greatest.1 {
            self.greatest = point;
        }
        let drawn = scattered(number) % self.count;
        if let Some(sample) = self.samples.get_mut(drawn as usize) {
            *sample = point;
        }
    }

    fn extremes_and_samples(&self) -> Vec<Point> {
        let [first, second] = self.samples;
        let mut points = vec![self.least, self.greatest, first, second];
        points.sort_unstable();
        points.dedup();
        points
    }
}

/// A number that has nothing to do with its neighbours' (SplitMix64).
#[inline]
pub(super) fn scattered(number: u64) -> u64 {
    let mut z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
