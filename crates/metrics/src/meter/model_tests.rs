//! The meter against a plain model that keeps everything: random loss, duplication, reordering, refusal, and reports
//! in an order of their own.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::tests::{Kept, meta};
use super::*;
use crate::summary::FlowSummary;

const CHANNELS: u16 = 3;
const PLAYOUT: u64 = 60;

/// A message of the model. Times in milliseconds.
#[derive(Clone, Debug)]
struct Message {
    channel: u16,
    /// Since the message before.
    gap: u64,
    /// How long the sender was blocked.
    blocked: u64,
    refused: bool,
    /// Latency of each copy that arrives; none if it is lost.
    copies: Vec<u64>,
    /// How much later than it happened the sending is reported.
    report_lag: u64,
}

fn message() -> impl Strategy<Value = Message> {
    let copies = prop_oneof![
        2 => Just(vec![]),
        8 => prop::collection::vec(20u64..40, 1),
        2 => prop::collection::vec(1u64..300, 1..4),
    ];
    let lag = prop_oneof![6 => Just(0u64), 1 => 0u64..200];
    (0..CHANNELS, 0u64..12, 0u64..4, prop::bool::weighted(0.05), copies, lag).prop_map(
        |(channel, gap, blocked, refused, copies, report_lag)| Message {
            channel,
            gap,
            blocked,
            refused,
            copies,
            report_lag,
        },
    )
}

/// What is reported, in order.
fn reports(messages: &[Message]) -> Vec<(Time, Observation)> {
    let ms = |n: u64| Time::from_nanos(n * 1_000_000);
    let mut next = [0u32; CHANNELS as usize];
    let mut due = 0;
    let mut reports = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        due += message.gap;
        let sequence = next[usize::from(message.channel)];
        next[usize::from(message.channel)] += 1;
        let (channel, payload, sent) = (message.channel, Bytes(80), due + message.blocked);
        let mut report = |when: u64, at: u64, what| reports.push(((when, index), ms(at), what));
        if message.refused {
            let what = Observation::Refused { channel, sequence, due: ms(due), payload };
            report(sent, sent, what);
            continue;
        }
        report(
            sent + message.report_lag,
            sent,
            Observation::Sent { channel, sequence, due: ms(due), payload },
        );
        for latency in &message.copies {
            let at = sent + latency;
            let what =
                Observation::Received { channel, sequence, sent: ms(sent), reflected: Time::ZERO, payload };
            report(at, at, what);
        }
    }
    reports.sort_by_key(|(order, _, _)| *order);
    reports.into_iter().map(|(_, at, what)| (at, what)).collect()
}

#[derive(Clone, Default)]
struct Known {
    due: Option<Time>,
    sent: Option<Time>,
    received: Option<Time>,
    refused: bool,
}

/// The plain model: counts, loss bursts, and the fates of every message in the trace.
#[derive(Default)]
struct Model {
    counts: Counts,
    bursts: BTreeMap<u32, u64>,
    latencies: Vec<Duration>,
    fates: BTreeMap<(u16, u32), Vec<Fate>>,
}

fn model(reports: &[(Time, Observation)]) -> Model {
    let mut model = Model::default();
    let mut known: BTreeMap<(u16, u32), Known> = BTreeMap::new();
    let mut largest: BTreeMap<u16, u32> = BTreeMap::new();
    let mut anchors: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    for (at, what) in reports {
        let key = match *what {
            Observation::Sent { channel, sequence, due, .. } => {
                model.counts.sent += 1;
                let message = known.entry((channel, sequence)).or_default();
                (message.due, message.sent) = (Some(due), Some(*at));
                (channel, sequence)
            }
            Observation::Refused { channel, sequence, .. } => {
                model.counts.refused += 1;
                known.entry((channel, sequence)).or_default().refused = true;
                model.fates.entry((channel, sequence)).or_default().push(Fate::Refused);
                continue;
            }
            Observation::Received { channel, sequence, sent, .. } => {
                let message = known.entry((channel, sequence)).or_default();
                if message.received.is_some() {
                    model.counts.duplicate += 1;
                    model.fates.entry((channel, sequence)).or_default().push(Fate::Duplicate);
                    continue;
                }
                message.received = Some(*at);
                model.latencies.push(at.since(sent));
                let seen = largest.entry(channel).or_default();
                model.counts.reordered += u64::from(sequence < *seen);
                *seen = sequence.max(*seen);
                (channel, sequence)
            }
            _ => continue,
        };
        // Both are known from now on.
        if let Some(Known { due: Some(due), received: Some(received), .. }) = known.get(&key) {
            let (due, received) = (due.as_nanos(), received.as_nanos());
            let (first_due, first_received) = *anchors.entry(key.0).or_insert((due, received));
            let late = received + first_due > first_received + PLAYOUT * 1_000_000 + due;
            let fate = if late { Fate::Late } else { Fate::Received };
            *(if late { &mut model.counts.late } else { &mut model.counts.received }) += 1;
            model.fates.entry(key).or_default().push(fate);
        }
    }
    let mut run: Option<((u16, u32), u32)> = None;
    for (&(channel, sequence), message) in &known {
        let lost = !message.refused && message.received.is_none();
        if lost {
            model.counts.lost += 1;
            model.fates.entry((channel, sequence)).or_default().push(Fate::Lost);
        }
        if lost {
            run = match run {
                Some((last, length)) if last.0 == channel && last.1 + 1 == sequence => {
                    Some(((channel, sequence), length + 1))
                }
                other => {
                    other.into_iter().for_each(|(_, length)| *model.bursts.entry(length).or_default() += 1);
                    Some(((channel, sequence), 1))
                }
            };
        }
    }
    run.into_iter().for_each(|(_, length)| *model.bursts.entry(length).or_default() += 1);
    model
}

fn run(reports: &[(Time, Observation)], limits: Limits) -> (FlowSummary, Vec<Record>) {
    let flow = FlowMeta { playout: Some(Duration::from_millis(PLAYOUT)), ..meta(5, 1, CHANNELS) };
    let mut kept = Kept::default();
    let mut meter = Meter::with_limits(&[flow], &mut kept, limits);
    for &(at, what) in reports {
        meter.record(at, FlowId(5), what);
        let progress = meter.progress().next().unwrap();
        let Counts { sent, received, late, lost, .. } = progress.counts;
        assert_eq!(sent, received + late + lost + progress.outstanding);
    }
    let flow = meter.finish(DriverOutcome::default()).flows.remove(0);
    (flow, kept.0.into_iter().map(|(_, record)| record).collect())
}

fn fates(records: &[Record]) -> BTreeMap<(u16, u32), Vec<Fate>> {
    let mut fates: BTreeMap<_, Vec<Fate>> = BTreeMap::new();
    records.iter().for_each(|r| fates.entry((r.channel, r.sequence)).or_default().push(r.fate));
    fates
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_meter_counts_as_the_plain_model(messages in prop::collection::vec(message(), 1..400)) {
        let reports = reports(&messages);
        let mut model = model(&reports);
        let (flow, records) = run(&reports, Limits::DEFAULT);
        prop_assert_eq!(flow.counts, model.counts);
        prop_assert_eq!(flow.loss_bursts, model.bursts);
        let mut found = fates(&records);
        // A duplicate's record may come before that of an arrival whose sending is reported late.
        found.values_mut().chain(model.fates.values_mut()).for_each(|fates| fates.sort_by_key(|f| *f as u8));
        prop_assert_eq!(found, model.fates);
        model.latencies.sort_unstable();
        let count = model.latencies.len() as u64;
        if let Some(latency) = flow.latency {
            let p99 = model.latencies[crate::PerMille(990).rank(count) as usize - 1];
            prop_assert_eq!((latency.count, latency.p99), (count, p99));
        }
    }

    #[test]
    fn identities_hold_when_memory_is_short(
        messages in prop::collection::vec(message(), 1..400),
        entries in 0usize..100,
        overtaken in 0usize..10,
    ) {
        // A sending that is reported after its message has been forgotten would be ignored: not looked at here.
        let messages: Vec<_> =
            messages.into_iter().map(|m| Message { blocked: 0, report_lag: 0, ..m }).collect();
        let reports = reports(&messages);
        let (flow, records) = run(&reports, Limits { entries, overtaken });
        let counts = flow.counts;
        prop_assert_eq!(counts.sent, counts.received + counts.late + counts.lost);
        let refused = messages.iter().filter(|m| m.refused).count() as u64;
        prop_assert_eq!(counts.refused, refused);
        prop_assert_eq!(counts.sent, messages.len() as u64 - refused);
        let copies: usize = messages.iter().filter(|m| !m.refused).map(|m| m.copies.len()).sum();
        prop_assert_eq!(counts.received + counts.late + counts.duplicate, copies as u64);
        prop_assert_eq!(fates(&records).len(), messages.len(), "every message has a record");
    }
}
