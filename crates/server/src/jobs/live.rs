//! What live charts show of a job: batches of records, ten a second, of one repetition at a time. Of simulations nothing is
//! gathered while nobody watches, and whoever measures does no more than to put a record into a list.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use trunkline_core::{Bytes, Time};
use trunkline_experiment::Limit;
use trunkline_metrics::{Fate, FlowMeta, Record, RepetitionSummary};
use trunkline_runner::{RepetitionTap, Tap, TappedRepetition};

use super::Job;
use super::so_far::{Figures, MOST_COUNTED};
use crate::api::{FlowThroughput, QueueLength, Records, RepetitionDone};

/// Between two batches.
const EVERY: Duration = Duration::from_millis(100);
/// A batch shows so many records at most; of simulations, more are thinned.
const MOST_SHOWN: usize = 2000;
/// In real time, so many records that earlier batches had room for may come later: those of three seconds, on a machine that
/// stood still.
const MOST_SPARE: usize = 30 * MOST_SHOWN;
/// And so many queues.
const MOST_QUEUES: usize = 500;

/// Listens to the runs of a job.
#[derive(Debug)]
pub(crate) struct Live {
    job: Arc<Job>,
    /// Simulated repetitions run at once, and a chart can show one: whoever comes while none is shown.
    shown: Arc<Mutex<Option<Arc<Shown>>>>,
    told: Arc<Told>,
    /// The limits of the file.
    limits: Vec<Limit>,
}

/// What the job's watchers have been told until now.
#[derive(Debug)]
struct Told {
    batches: AtomicU64,
    last: Mutex<Instant>,
    /// So many records could have been shown until now and were not.
    spare: AtomicUsize,
    /// Whether each record counts: what is measured in real time comes no faster than charts can follow. Of simulations of
    /// some milliseconds each, no more is told than can be seen.
    in_full: bool,
}

/// The repetition that is shown.
#[derive(Debug)]
struct Shown {
    job: Arc<Job>,
    told: Arc<Told>,
    point: u32,
    repetition: u32,
    values: Vec<String>,
    flows: Vec<FlowMeta>,
    batch: Mutex<Batch>,
    /// Kept only in real time.
    figures: Option<Mutex<Figures>>,
}

/// What was measured since the last batch.
#[derive(Debug, Default)]
struct Batch {
    /// Every `stride`th record, and no more than `most`.
    kept: Vec<(u32, Record)>,
    most: usize,
    /// All, for the figures so far.
    all: Vec<(u32, Record)>,
    stride: u64,
    counted: u64,
    /// The slowest of all, which no thinning may hide.
    slowest: Option<(u32, Record)>,
    /// Payload that each flow has received.
    received: Vec<u64>,
    queues: Vec<QueueLength>,
    /// The latest moment that was told of; and the one before the batch.
    now: Time,
    from: Time,
}

impl Live {
    /// `in_real_time`: whether what it measures is.
    pub(crate) fn new(job: &Arc<Job>, in_real_time: bool, limits: &[Limit]) -> Live {
        let told = Told {
            batches: AtomicU64::new(0),
            last: Mutex::new(Instant::now()),
            spare: AtomicUsize::new(if in_real_time { MOST_SPARE } else { 0 }),
            in_full: in_real_time,
        };
        Live { job: Arc::clone(job), shown: Arc::default(), told: Arc::new(told), limits: limits.to_vec() }
    }

    /// Does `work`, which measures, and meanwhile tells the job's watchers what is measured.
    pub(crate) fn during<R>(&self, work: impl FnOnce(&Live) -> R) -> R {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let teller =
                std::thread::Builder::new().name("live charts".to_owned()).spawn_scoped(scope, || {
                    while !over.load(Ordering::Relaxed) {
                        self.tell();
                        std::thread::park_timeout(EVERY);
                    }
                    self.tell();
                });
            let _over = SetWhenDropped(&over, teller.as_ref().ok().map(|teller| teller.thread().clone()));
            work(self)
        })
    }

    /// Tells what has been gathered.
    fn tell(&self) {
        let shown = slot(&self.shown).clone();
        if let Some(shown) = shown {
            shown.tell(false);
        }
    }
}

/// Ends the teller, also if the work panics.
struct SetWhenDropped<'s>(&'s AtomicBool, Option<std::thread::Thread>);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(thread) = &self.1 {
            thread.unpark();
        }
    }
}

impl Tap for Live {
    fn repetition(&self, tapped: &TappedRepetition<'_>) -> Option<Box<dyn RepetitionTap>> {
        let mut slot = slot(&self.shown);
        if slot.is_some() {
            return None;
        }
        let shown = Arc::new(Shown {
            job: Arc::clone(&self.job),
            told: Arc::clone(&self.told),
            point: tapped.point,
            repetition: tapped.repetition,
            values: tapped.values.to_vec(),
            flows: tapped.flows.to_vec(),
            batch: Mutex::new(Batch::new(Time::ZERO, tapped.flows.len(), self.told.most())),
            figures: self.told.in_full.then(|| Mutex::new(Figures::new(tapped.flows, &self.limits))),
        });
        *slot = Some(Arc::clone(&shown));
        Some(Box::new(Listener { shown, slot: Arc::clone(&self.shown) }))
    }

    fn finished(&self, point: u32, repetition: u32, summary: &RepetitionSummary) {
        let figures: Map<String, Value> = summary
            .flows
            .iter()
            .map(|flow| {
                let figures =
                    trunkline_report::flow_figures(flow).map(|(id, value)| (id.to_owned(), value.into()));
                (flow.flow.clone(), Value::Object(figures.collect()))
            })
            .collect();
        self.job
            .feed()
            .tell("repetition", &RepetitionDone { point, repetition, figures: Value::Object(figures) });
    }
}

/// Is told what happens in the repetition that is shown.
struct Listener {
    shown: Arc<Shown>,
    slot: Arc<Mutex<Option<Arc<Shown>>>>,
}

impl RepetitionTap for Listener {
    fn record(&self, flow: usize, record: &Record) {
        if self.shown.is_gathered() {
            let mut batch = self.shown.batch();
            batch.add(flow as u32, record);
            if self.shown.figures.is_some() && batch.all.len() <= MOST_COUNTED {
                batch.all.push((flow as u32, *record));
            }
        }
    }

    fn backlog(&self, at: Time, link: &str, direction: &str, bytes: Bytes, packets: u64) {
        if !self.shown.is_gathered() {
            return;
        }
        let mut batch = self.shown.batch();
        batch.now = batch.now.max(at);
        if batch.queues.len() < MOST_QUEUES {
            let (link, direction) = (link.to_owned(), direction.to_owned());
            batch.queues.push(QueueLength {
                link,
                direction,
                bytes: bytes.count(),
                packets,
                t: at.as_secs_f64(),
            });
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if self.shown.told.in_full || self.shown.told.is_time() {
            self.shown.tell(true);
        }
        *slot(&self.slot) = None;
    }
}

fn slot(shown: &Mutex<Option<Arc<Shown>>>) -> MutexGuard<'_, Option<Arc<Shown>>> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Told {
    /// Whether the last batch is long enough ago.
    fn is_time(&self) -> bool {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= EVERY
    }

    /// So many records the next batch may show.
    fn most(&self) -> usize {
        self.spare.load(Ordering::Relaxed).max(MOST_SHOWN)
    }

    /// So many have been shown now.
    fn shown(&self, records: usize) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = mem::replace(&mut *last, Instant::now()).elapsed();
        if self.in_full {
            self.spare.store(spare(self.spare.load(Ordering::Relaxed), passed, records), Ordering::Relaxed);
        }
    }
}

/// How many records can be shown later, if so many could before, `passed` has gone by, and `shown` have been shown.
fn spare(before: usize, passed: Duration, shown: usize) -> usize {
    let more = passed.as_secs_f64() / EVERY.as_secs_f64() * MOST_SHOWN as f64;
    before.saturating_add(more as usize).min(MOST_SPARE).saturating_sub(shown)
}

impl Shown {
    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody sees what is measured, or may: who comes later finds the last that was measured in real time. Of
    /// simulations the next repetition comes soon enough.
    fn is_gathered(&self) -> bool {
        self.told.in_full || self.job.feed().is_watched()
    }

    /// Tells what has been gathered, if anything has. `is_last`: the repetition is over.
    fn tell(&self, is_last: bool) {
        let Some(batch) = self.take() else { return };
        self.told.shown(batch.kept.len());
        let figures =
            self.figures.as_ref().map(|figures| figures.lock().unwrap_or_else(PoisonError::into_inner));
        let so_far = figures.and_then(|mut figures| figures.with(&batch.all, is_last));
        let mut told = self.records(batch);
        if let (Some(last), Some((flows, limits))) = (told.last_mut(), so_far) {
            (last.so_far, last.limits) = (flows, limits);
        }
        for records in told {
            self.job.feed().tell_records(&records);
        }
    }

    fn take(&self) -> Option<Batch> {
        let mut batch = self.batch();
        if batch.counted == 0 && batch.queues.is_empty() {
            return None;
        }
        let next = Batch::new(batch.now, self.flows.len(), self.told.most());
        Some(mem::replace(&mut batch, next))
    }

    /// A batch as it is told: a late one in several parts, the last of which has what is said of all of it.
    fn records(&self, mut batch: Batch) -> Vec<Records> {
        if let Some(slowest) = batch.slowest.filter(|slowest| !batch.kept.contains(slowest)) {
            batch.kept.push(slowest);
        }
        let parts = batch.kept.chunks(MOST_SHOWN).map(|part| self.part(part));
        let mut told: Vec<Records> = parts.collect();
        if told.is_empty() {
            told.push(self.part(&[]));
        }
        if let Some(last) = told.last_mut() {
            // What was thinned away.
            last.counted += batch.counted.saturating_sub(batch.kept.len() as u64);
            last.queues = mem::take(&mut batch.queues);
            let seconds = batch.now.since(batch.from).as_secs_f64();
            if seconds > 0.0 {
                let received = batch.received.iter().zip(0..);
                last.throughput = received
                    .map(|(bytes, flow)| FlowThroughput { flow, bps: *bytes as f64 * 8.0 / seconds })
                    .collect();
            }
        }
        told
    }

    fn part(&self, kept: &[(u32, Record)]) -> Records {
        let mut records = Records {
            seq: self.told.batches.fetch_add(1, Ordering::Relaxed),
            point: self.point,
            repetition: self.repetition,
            values: self.values.clone(),
            flows: self.flows.iter().map(|flow| flow.name.clone()).collect(),
            shown: kept.len() as u64,
            counted: kept.len() as u64,
            ..Records::default()
        };
        for (flow, record) in kept {
            let sent = record.sent.unwrap_or(record.due);
            let channels = self.flows.get(*flow as usize).map_or(1, |meta| u32::from(meta.channels));
            records.t.push(sent.as_secs_f64());
            records.flow.push(*flow);
            records.channel.push(record.member * channels + u32::from(record.channel));
            records.latency.push(latency(record));
        }
        records
    }
}

/// In seconds; `None` if it did not arrive.
fn latency(record: &Record) -> Option<f64> {
    let sent = record.sent.unwrap_or(record.due);
    record.received.map(|received| received.since(sent).as_secs_f64())
}

impl Batch {
    fn new(from: Time, flows: usize, most: usize) -> Batch {
        Batch { most, stride: 1, from, now: from, received: vec![0; flows], ..Batch::default() }
    }

    fn add(&mut self, flow: u32, record: &Record) {
        if let Some(received) = record.received {
            self.now = self.now.max(received);
            if let Some(bytes) =
                self.received.get_mut(flow as usize).filter(|_| record.fate != Fate::Duplicate)
            {
                *bytes += u64::from(record.payload);
            }
            if self.slowest.is_none_or(|(_, slowest)| latency(&slowest) < latency(record)) {
                self.slowest = Some((flow, *record));
            }
        }
        if self.counted.is_multiple_of(self.stride) {
            self.kept.push((flow, *record));
            if self.kept.len() > self.most {
                // Every second one of them, and of those that come.
                let mut place = 0;
                self.kept.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.stride *= 2;
            }
        }
        self.counted += 1;
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::Duration;

    use super::*;

    fn record(sequence: u32, latency: Option<Duration>) -> Record {
        let sent = Time::from_nanos(1_000_000 * u64::from(sequence));
        let fate = if latency.is_some() { Fate::Received } else { Fate::Lost };
        Record {
            member: 0,
            channel: 0,
            sequence,
            due: sent,
            sent: Some(sent),
            received: latency.map(|latency| sent + latency),
            reflected: None,
            payload: 80,
            fate,
        }
    }

    #[test]
    fn a_batch_has_every_record_until_they_are_too_many() {
        let mut batch = Batch::new(Time::ZERO, 1, MOST_SHOWN);
        for sequence in 0..MOST_SHOWN as u32 {
            batch.add(0, &record(sequence, Some(Duration::from_millis(5))));
        }
        assert_eq!((batch.kept.len(), batch.counted), (MOST_SHOWN, MOST_SHOWN as u64));
        assert_eq!(batch.received, [80 * MOST_SHOWN as u64]);
        assert_eq!(batch.now, Time::from_nanos(1_000_000 * (MOST_SHOWN as u64 - 1) + 5_000_000));
    }

    fn shown(in_real_time: bool) -> Shown {
        let new = crate::jobs::NewJob {
            kind: crate::api::JobKind::Run,
            title: "test".to_owned(),
            needs: crate::jobs::Needs::Machine,
        };
        let live = Live::new(&Arc::new(Job::new("1".to_owned(), new)), in_real_time, &[]);
        let batch = Mutex::new(Batch::new(Time::ZERO, 1, live.told.most()));
        let (point, repetition, values, flows) = (0, 0, Vec::new(), Vec::new());
        Shown { job: live.job, told: live.told, point, repetition, values, flows, batch, figures: None }
    }

    #[test]
    fn a_late_batch_of_real_time_is_told_in_full_and_in_parts() {
        const LATE: u32 = 5001;
        for (in_real_time, parts) in [(true, 3), (false, 1)] {
            let shown = shown(in_real_time);
            for sequence in 0..LATE {
                shown.batch().add(0, &record(sequence, Some(Duration::from_millis(5))));
            }
            let told = shown.records(shown.take().expect("a batch"));
            assert_eq!(told.len(), parts);
            assert!(told.iter().zip(0..).all(|(part, seq)| part.seq == seq && part.t.len() <= MOST_SHOWN));
            assert_eq!(told.iter().map(|part| part.counted).sum::<u64>(), u64::from(LATE));
            let in_full = told.iter().map(|part| part.t.len()).sum::<usize>() == LATE as usize;
            assert_eq!(in_full, in_real_time);
            let with_throughput = told.iter().filter(|part| !part.throughput.is_empty()).count();
            assert!(with_throughput == 1 && !told[parts - 1].throughput.is_empty());
            assert!(shown.take().is_none());
        }
    }

    #[test]
    fn in_the_long_run_no_more_is_shown_than_charts_can_follow() {
        let (mut left, second) = (MOST_SPARE, std::time::Duration::from_secs(1));
        assert_eq!(spare(left, second, 6400), MOST_SPARE - 6400);
        assert_eq!(spare(MOST_SPARE - 6400, second, 6400), MOST_SPARE - 6400);
        for _ in 0..100 {
            left = spare(left, EVERY, 3 * MOST_SHOWN);
        }
        assert_eq!(left, 0);
        assert_eq!(spare(left, second, 0), 10 * MOST_SHOWN);
    }

    #[test]
    fn thinning_is_even_and_hides_no_peak() {
        let mut batch = Batch::new(Time::ZERO, 1, MOST_SHOWN);
        for sequence in 0..100_000 {
            let latency = if sequence == 33_333 { 70 } else { 5 };
            batch.add(0, &record(sequence, Some(Duration::from_millis(latency))));
        }
        assert_eq!(batch.counted, 100_000);
        assert!((MOST_SHOWN / 2..=MOST_SHOWN).contains(&batch.kept.len()), "{}", batch.kept.len());
        let sequences: Vec<u32> = batch.kept.iter().map(|(_, record)| record.sequence).collect();
        let step = batch.stride as u32;
        assert!(sequences.windows(2).all(|pair| pair[1] - pair[0] == step), "every {step}th");
        assert_eq!(batch.slowest.map(|(_, record)| record.sequence), Some(33_333));
    }

    #[test]
    fn what_is_lost_is_shown_and_was_not_received() {
        let mut batch = Batch::new(Time::ZERO, 1, MOST_SHOWN);
        batch.add(0, &record(0, None));
        assert_eq!((batch.kept.len(), batch.received[0], batch.slowest), (1, 0, None));
        assert_eq!(latency(&batch.kept[0].1), None);
    }
}
