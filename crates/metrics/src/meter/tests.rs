use std::collections::BTreeMap;

use proptest::prelude::*;
use trunkline_core::{Rate, Ratio};

use super::*;
use crate::figures;
use crate::record::{BundleMeta, FlowOutcome, Lasting, OnNetwork};
use crate::summary::{FlowSummary, JitterSummary, Measured, Spread, ThroughputSummary};

/// Keeps every record.
#[derive(Default)]
pub(super) struct Kept(pub(super) Vec<(usize, Record)>);

impl TraceSink for Kept {
    fn write(&mut self, flow: usize, record: &Record) {
        self.0.push((flow, *record));
    }
}

pub(crate) fn meta(first: u32, members: u32, channels: u16) -> FlowMeta {
    FlowMeta {
        name: format!("flow-{first}"),
        transport: "udp".to_owned(),
        first: FlowId(first),
        members,
        sinks: vec!["b".to_owned()],
        channels,
        measured: Measured::OneWay,
        ends: ms(1000),
        propagation: Vec::new(),
        wander: Duration::ZERO,
        reliable: Vec::new(),
        presence: Vec::new(),
        send_limit: None,
        is_answered: false,
        is_greedy: false,
        lasting: Lasting::Volume,
        playout: None,
        carries_audio: false,
        keeps_payload: false,
        voice_path: None,
        listening: None,
    }
}

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

const MS: fn(u64) -> Duration = Duration::from_millis;

fn send(meter: &mut Meter<'_>, flow: u32, channel: u16, sequence: u32, due: u64, sent: u64) {
    let what = Observation::Sent { channel, sequence, due: ms(due), payload: Bytes(80) };
    meter.record(ms(sent), FlowId(flow), what);
}

/// Read when the measurement ended after a second.
fn on_network(bytes: u64) -> Option<OnNetwork> {
    Some(OnNetwork { measured: Bytes(bytes), until: ms(1000), all: Bytes(bytes) })
}

fn refuse(meter: &mut Meter<'_>, flow: u32, channel: u16, sequence: u32, due: u64) {
    let what = Observation::Refused { channel, sequence, due: ms(due), payload: Bytes(80) };
    meter.record(ms(due + 40), FlowId(flow), what);
}

fn receive(meter: &mut Meter<'_>, flow: u32, channel: u16, sequence: u32, sent: u64, at: u64) {
    let what = Observation::Received {
        channel,
        sequence,
        sent: ms(sent),
        reflected: Time::ZERO,
        payload: Bytes(80),
    };
    meter.record(ms(at), FlowId(flow), what);
}

/// Measures one flow, of which `run` reports everything, for a second.
fn measure(flow: FlowMeta, run: impl FnOnce(&mut Meter<'_>)) -> (FlowSummary, Vec<Record>) {
    let mut kept = Kept::default();
    let mut meter = Meter::new(&[flow], &mut kept);
    run(&mut meter);
    let outcome = DriverOutcome { duration: MS(1_000), ..DriverOutcome::default() };
    let summary = meter.finish(outcome).flows.remove(0);
    (summary, kept.0.into_iter().map(|(_, record)| record).collect())
}

#[test]
fn every_message_gets_one_record_with_due_and_sent() {
    let (summary, records) = measure(meta(0, 1, 1), |meter| {
        send(meter, 0, 0, 0, 0, 1);
        receive(meter, 0, 0, 0, 1, 21);
        send(meter, 0, 0, 1, 10, 11);
        refuse(meter, 0, 0, 2, 20);
        send(meter, 0, 0, 3, 30, 30);
        receive(meter, 0, 0, 3, 30, 55);
        receive(meter, 0, 0, 3, 30, 56);
    });
    let row = |r: &Record| (r.sequence, r.due, r.sent, r.received, r.fate);
    assert_eq!(
        records.iter().map(row).collect::<Vec<_>>(),
        [
            (0, ms(0), Some(ms(1)), Some(ms(21)), Fate::Received),
            (2, ms(20), None, None, Fate::Refused),
            (3, ms(30), Some(ms(30)), Some(ms(55)), Fate::Received),
            (3, ms(30), Some(ms(30)), Some(ms(56)), Fate::Duplicate),
            (1, ms(10), Some(ms(11)), None, Fate::Lost),
        ]
    );
    let expected = Counts { sent: 3, refused: 1, received: 2, lost: 1, duplicate: 1, ..Counts::default() };
    assert_eq!(summary.counts, expected);
    let quarter = Ratio::new(0.25).unwrap();
    assert_eq!((summary.loss, summary.refused, summary.unfinished), (quarter, quarter, Ratio::ZERO));
    // The refused one beside it is no loss.
    assert_eq!(summary.loss_bursts, BTreeMap::from([(1, 1)]));
    let (latency, from_due) = (summary.latency.unwrap(), summary.latency_from_due.unwrap());
    assert_eq!((latency.min, latency.max, latency.mean), (MS(20), MS(25), Duration::from_micros(22_500)));
    assert_eq!((from_due.min, from_due.max), (MS(21), MS(25)));
}

#[test]
fn a_blocked_sender_shows_in_latency_from_due_only() {
    let (summary, _) = measure(meta(0, 1, 1), |meter| {
        send(meter, 0, 0, 0, 100, 400);
        receive(meter, 0, 0, 0, 400, 410);
    });
    assert_eq!(summary.latency.unwrap().max, MS(10));
    assert_eq!(summary.latency_from_due.unwrap().max, MS(310));
}

#[test]
fn an_arrival_may_be_reported_before_its_sending() {
    let (summary, records) = measure(meta(0, 1, 1), |meter| {
        receive(meter, 0, 0, 1, 11, 12);
        receive(meter, 0, 0, 0, 2, 13);
        assert_eq!(meter.progress().next().unwrap().counts.received, 0);
        send(meter, 0, 0, 0, 0, 2);
        send(meter, 0, 0, 1, 10, 11);
    });
    assert_eq!(records.iter().map(|r| (r.sequence, r.due)).collect::<Vec<_>>(), [(0, ms(0)), (1, ms(10))]);
    assert_eq!(summary.counts, Counts { sent: 2, received: 2, reordered: 1, ..Counts::default() });
}

#[test]
fn an_arrival_without_any_sending_was_sent_all_the_same() {
    let (summary, records) = measure(meta(0, 1, 1), |meter| receive(meter, 0, 0, 1, 11, 12));
    assert_eq!(summary.counts, Counts { sent: 1, received: 1, ..Counts::default() });
    assert_eq!((records[0].due, records[0].sent), (ms(11), Some(ms(11))));
    assert!(summary.loss_bursts.is_empty(), "message 0 was never heard of");
}

#[test]
fn late_messages_missed_their_playout() {
    let flow = FlowMeta { playout: Some(MS(60)), ..meta(0, 1, 1) };
    let (summary, records) = measure(flow, |meter| {
        for (sequence, at) in [(0, 20), (1, 90), (2, 101)] {
            send(meter, 0, 0, sequence, 10 * u64::from(sequence), 10 * u64::from(sequence));
            receive(meter, 0, 0, sequence, 10 * u64::from(sequence), at);
        }
    });
    let fates: Vec<Fate> = records.iter().map(|r| r.fate).collect();
    assert_eq!(fates, [Fate::Received, Fate::Received, Fate::Late]);
    assert_eq!((summary.counts.received, summary.counts.late), (2, 1));
    assert_eq!(summary.late, Ratio::new(1.0 / 3.0).unwrap());
    // Late is not lost: its latency counts.
    assert_eq!(summary.latency.unwrap().count, 3);
}

#[test]
fn jitter_by_every_definition() {
    // Sent each 10 ms; latencies 20, 24, 20, (lost), 28.
    let (summary, _) = measure(meta(0, 1, 1), |meter| {
        for (sequence, latency) in [(0u32, Some(20)), (1, Some(24)), (2, Some(20)), (3, None), (4, Some(28))]
        {
            let sent = 10 * u64::from(sequence);
            send(meter, 0, 0, sequence, sent, sent);
            if let Some(latency) = latency {
                receive(meter, 0, 0, sequence, sent, sent + latency);
            }
        }
    });
    let jitter = summary.jitter.unwrap();
    let us = Duration::from_micros;
    assert_eq!(jitter.mean_absolute_deviation, MS(3)); // mean 23: 3, 1, 3, 5
    assert_eq!(jitter.standard_deviation, Duration::from_nanos(3_829_708)); // sqrt(44 / 3)
    assert_eq!(jitter.ipdv_mean, Some(MS(4))); // |4|, |-4|; 4 has no predecessor
    assert_eq!(jitter.ipdv_p999, Some(MS(4)));
    assert_eq!((jitter.pdv_mean, jitter.pdv_p999), (MS(3), MS(8)));
    // Arrivals at 20, 34, 40, 68: 14, 6, 28; sd sqrt(248 / 2) about 16.
    assert_eq!(jitter.interarrival_mean, Some(MS(16)));
    assert_eq!(jitter.interarrival_standard_deviation, Some(Duration::from_nanos(11_135_529)));
    // J: 4/16 = 0.25; 0.25 + 3.75/16 = 0.484375; + 7.515625/16 = 0.954102.
    let nanos = jitter.interarrival.unwrap().as_nanos();
    assert!(nanos.abs_diff(us(954).as_nanos() + 102) <= 2, "{nanos}");
}

/// With the trace at hand, the percentiles of latency become exact, and those of IPDV do not.
#[test]
fn percentiles_of_many_messages_are_said_to_be_from_a_histogram() {
    let of = |messages: u32| {
        let (mut summary, _) = measure(meta(0, 1, 1), |meter| {
            for sequence in 0..messages {
                send(meter, 0, 0, sequence, 0, 0);
                receive(meter, 0, 0, sequence, 0, 1);
            }
        });
        summary.latency.as_mut().unwrap().exact = true;
        let counted = figures::of_flows().filter(|figure| figure.is_from_histogram(&summary, None));
        counted.map(|figure| figure.id).collect::<Vec<_>>()
    };
    assert!(of(65_536).is_empty());
    let ids = ["latency_from_due_p50", "latency_from_due_p99", "latency_from_due_p999", "jitter_ipdv_p999"];
    assert_eq!(of(65_537), ids);
}

/// One message of each of two channels arrives: there are two latencies, and no pair of a channel.
#[test]
fn jitter_of_no_pair_is_not_measured() {
    let (summary, _) = measure(meta(0, 1, 2), |meter| {
        for channel in 0..2 {
            send(meter, 0, channel, 0, 0, 0);
            receive(meter, 0, channel, 0, 0, 20 + u64::from(channel));
        }
    });
    let jitter = summary.jitter.unwrap();
    assert_eq!((jitter.interarrival, jitter.ipdv_mean, jitter.ipdv_p999), (None, None, None));
    assert_eq!((jitter.interarrival_mean, jitter.interarrival_standard_deviation), (None, None));
    let shown = |id: &str| figures::of_flows().find(|figure| figure.id == id).unwrap().value(&summary);
    assert_eq!((shown("jitter_interarrival"), shown("jitter_pdv_mean")), (None, Some(0.0005)));
    // Runs that were stored with zeros open.
    let text = serde_json::to_string(&jitter).unwrap().replace("null", "0");
    let stored: JitterSummary = serde_json::from_str(&text).unwrap();
    assert_eq!(stored.ipdv_mean, Some(Duration::ZERO));
}

#[test]
fn throughput_of_a_source_with_an_end_lasts_to_the_last_arrival() {
    let run = |meter: &mut Meter<'_>| {
        for sequence in 0..50u32 {
            let sent = 100 + 10 * u64::from(sequence);
            send(meter, 0, 0, sequence, sent, sent);
            receive(meter, 0, 0, sequence, sent, sent + 10);
        }
    };
    let (summary, _) = measure(meta(0, 1, 1), run);
    assert_eq!(summary.throughput.active, MS(500));
    assert_eq!(summary.throughput.user, Rate::from_bits_per_second(64_000));
    assert_eq!(summary.throughput.offered, Rate::from_bits_per_second(64_000));
    assert_eq!(summary.voice_channels, 1);

    let (summary, _) = measure(FlowMeta { lasting: Lasting::Run, ..meta(0, 1, 1) }, run);
    assert_eq!(summary.throughput.active, MS(900));
    assert_eq!(summary.throughput.user, Rate::from_bits_per_second(35_556));
    assert_eq!(summary.voice_channels, 0);
}

#[test]
fn what_arrives_in_the_drain_time_counts_in_no_throughput() {
    let run = |meter: &mut Meter<'_>| {
        for sequence in 0..100u32 {
            let at = 10 * u64::from(sequence);
            send(meter, 0, 0, sequence, at, at);
            // The link takes twice as long as the source.
            receive(meter, 0, 0, sequence, at, 20 * u64::from(sequence + 1));
        }
    };
    let flow = FlowMeta { lasting: Lasting::Run, propagation: vec![MS(10)], ..meta(0, 1, 1) };
    let (summary, _) = measure(flow, run);
    assert_eq!(summary.throughput.active, MS(1_000));
    assert_eq!(summary.throughput.user, Rate::from_bits_per_second(32_000));
    assert_eq!(summary.throughput.offered, Rate::from_bits_per_second(64_000));
    assert_eq!(summary.counts.received, 100);
    let (summary, _) = measure(meta(0, 1, 1), run);
    assert_eq!(summary.throughput.active, MS(2_000));
    assert_eq!(summary.throughput.user, Rate::from_bits_per_second(32_000));
}

#[test]
fn what_a_reliable_transport_has_not_delivered_is_unfinished_and_no_loss() {
    let (summary, records) = measure(FlowMeta { reliable: vec![true], ..meta(0, 1, 1) }, |meter| {
        for sequence in 0..4 {
            send(meter, 0, 0, sequence, 0, 0);
        }
        refuse(meter, 0, 0, 4, 10);
        receive(meter, 0, 0, 0, 0, 20);
    });
    assert_eq!(
        summary.counts,
        Counts { sent: 4, refused: 1, received: 1, unfinished: 3, ..Counts::default() }
    );
    let share = |n| Ratio::new(n).unwrap();
    assert_eq!((summary.loss, summary.unfinished, summary.refused), (Ratio::ZERO, share(0.6), share(0.2)));
    assert!(summary.loss_bursts.is_empty(), "{:?}", summary.loss_bursts);
    assert_eq!(records.iter().filter(|record| record.fate == Fate::Unfinished).count(), 3);
}

#[test]
fn a_volume_that_did_not_all_arrive_is_measured_for_as_long_as_its_bytes_were_counted() {
    let user = |arrived: u32| {
        let mut nothing = ();
        let flows = [FlowMeta { reliable: vec![true], ..meta(0, 1, 1) }];
        let mut meter = Meter::new(&flows, &mut nothing).with_drain(MS(1000));
        (0..2).for_each(|sequence| send(&mut meter, 0, 0, sequence, 0, 0));
        (0..arrived).for_each(|sequence| receive(&mut meter, 0, 0, sequence, 0, 500));
        let flows = vec![FlowOutcome { network: on_network(160), ..FlowOutcome::default() }];
        let outcome = DriverOutcome { duration: MS(1000), flows, ..DriverOutcome::default() };
        let throughput = meter.finish(outcome).flows[0].throughput;
        (throughput.active, throughput.network.map(Rate::bits_per_second))
    };
    assert_eq!(user(2), (MS(500), Some(2560)));
    assert_eq!(user(1), (MS(2000), Some(640)));
}

#[test]
fn what_may_be_under_way_when_the_sinks_stop_to_listen_is_unfinished() {
    let counts = |propagation: Vec<Duration>, drain, partial, arrives: bool| {
        let flows = [FlowMeta { propagation, ..meta(0, 1, 1) }];
        let mut nothing = ();
        let mut meter = Meter::new(&flows, &mut nothing).with_drain(MS(drain));
        for sequence in 0..10 {
            send(&mut meter, 0, 0, sequence, 100 * u64::from(sequence), 100 * u64::from(sequence));
        }
        if arrives {
            receive(&mut meter, 0, 0, 0, 0, 250);
        }
        let outcome = DriverOutcome { duration: MS(1000), partial, ..DriverOutcome::default() };
        let counts = meter.finish(outcome).flows[0].counts;
        (counts.received, counts.lost, counts.unfinished)
    };
    // Sent from 0 to 900 ms: what was sent after 750 ms may take longer than until 1000 ms.
    assert_eq!(counts(Vec::new(), 0, false, true), (1, 7, 2));
    assert_eq!(counts(Vec::new(), 1000, true, true), (1, 7, 2), "a run that is stopped does not wait");
    assert_eq!(counts(Vec::new(), 1000, false, true), (1, 9, 0));
    assert_eq!(counts(vec![MS(350)], 0, false, true), (1, 6, 3), "nothing is faster than the path");
    assert_eq!(counts(vec![MS(350)], 0, false, false), (0, 7, 3));
    assert_eq!(counts(Vec::new(), 0, false, false), (0, 10, 0), "how long the way is is not known");
}

#[test]
fn what_was_dropped_or_overtaken_is_lost_however_long_others_took() {
    let counts = |arrivals: &[(u32, u64)], dropped: &[u32]| {
        let flows = [meta(0, 1, 1)];
        let mut nothing = ();
        let mut meter = Meter::new(&flows, &mut nothing).with_drain(Duration::ZERO);
        for sequence in 0..10 {
            send(&mut meter, 0, 0, sequence, 100 * u64::from(sequence), 100 * u64::from(sequence));
        }
        dropped.iter().for_each(|&sequence| Recorder::dropped(&mut meter, FlowId(0), 0, sequence));
        for &(sequence, at) in arrivals {
            receive(&mut meter, 0, 0, sequence, 100 * u64::from(sequence), at);
        }
        let outcome = DriverOutcome { duration: MS(1000), ..DriverOutcome::default() };
        let counts = meter.finish(outcome).flows[0].counts;
        (counts.received, counts.lost, counts.unfinished)
    };
    // The largest latency is almost the length of the run.
    assert_eq!(counts(&[(0, 950)], &[]), (1, 0, 9));
    assert_eq!(counts(&[(0, 950)], &[3, 4, 9]), (1, 3, 6), "the network knows what it dropped");
    assert_eq!(counts(&[(0, 950), (3, 960)], &[3]), (2, 2, 6), "a copy arrived of what was dropped");
    assert_eq!(counts(&[(0, 900), (5, 950)], &[]), (2, 4, 4), "1 to 4 were overtaken, and order is kept");
    // 1 arrived after 4: what was overtaken by 300 ms or less may still come.
    assert_eq!(counts(&[(0, 900), (4, 950), (1, 990)], &[]), (3, 0, 7));
    assert_eq!(counts(&[(0, 900), (5, 950), (4, 990)], &[]), (3, 3, 4), "1 to 3 were overtaken by more");
}

#[test]
fn members_and_channels_are_kept_apart() {
    let mut kept = Kept::default();
    let flows = [meta(10, 2, 2), meta(12, 1, 1)];
    let mut meter = Meter::new(&flows, &mut kept);
    for (flow, channel) in [(10, 0), (10, 1), (11, 0), (12, 0)] {
        send(&mut meter, flow, channel, 0, 0, 0);
        receive(&mut meter, flow, channel, 0, 0, 5);
    }
    // What no flow, member or channel has.
    send(&mut meter, 9, 0, 0, 0, 0);
    send(&mut meter, 13, 0, 0, 0, 0);
    send(&mut meter, 12, 1, 0, 0, 0);
    let progress: Vec<_> =
        meter.progress().map(|p| (p.flow, p.counts.received, p.received, p.outstanding)).collect();
    assert_eq!(progress, [("flow-10", 3, Bytes(240), 0), ("flow-12", 1, Bytes(80), 0)]);
    let outcome = DriverOutcome {
        duration: MS(1_000),
        flows: vec![
            FlowOutcome::default(),
            FlowOutcome { network: on_network(1_000), ..FlowOutcome::default() },
        ],
        ..DriverOutcome::default()
    };
    let summary = meter.finish(outcome);
    assert_eq!(summary.flows[0].fairness, Some(0.9)); // 160 and 80 bytes: 240^2 / (2 * (160^2 + 80^2))
    assert_eq!(summary.flows[1].fairness, None);
    assert_eq!(summary.flows[1].throughput.network, Some(Rate::from_bits_per_second(1_600_000)));
    let rows: Vec<_> = kept.0.iter().map(|(flow, r)| (*flow, r.member, r.channel)).collect();
    assert_eq!(rows, [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]);
}

#[test]
fn strange_sequence_numbers_are_stray_and_cost_nothing() {
    let (summary, records) = measure(meta(0, 1, 1), |meter| {
        receive(meter, 0, 0, u32::MAX, 0, 1);
        receive(meter, 0, 0, 1 << 30, 0, 1);
        send(meter, 0, 0, 0, 0, 1);
        receive(meter, 0, 0, 0, 0, 1);
        send(meter, 0, 0, 1 << 30, 0, 1);
        assert_eq!(meter.remembered().windows, 0);
    });
    assert_eq!(records.len(), 1);
    assert_eq!(summary.counts, Counts { sent: 1, received: 1, ..Counts::default() });
    assert_eq!(summary.stray, Bytes(160));
}

#[test]
fn sequence_numbers_wrap() {
    let mut outstanding = outstanding::Outstanding::default();
    let mut bounds = Bounds::new(Limits::DEFAULT);
    outstanding.begin_at((1 << 32) - 40);
    let arrival = Arrival { received: ms(2), sent: ms(1), reflected: Time::ZERO, payload: 80 };
    let entry = Entry::Sent { due: ms(1), sent: ms(1), payload: 80 };
    let start = (u32::MAX - 39) as u64;
    for number in start..start + 80 {
        assert_eq!(outstanding.sent(number as u32, entry, 0, &mut bounds), OnSent::New);
        // The first is overtaken by all others.
        if number > start {
            let on = outstanding.arrived(number as u32, arrival, 0, &mut bounds);
            assert_eq!(on, OnArrival::First { due: ms(1), sent: ms(1), payload: 80 }, "{number}");
            assert_eq!(outstanding.arrived(number as u32, arrival, 0, &mut bounds), OnArrival::Duplicate);
        }
    }
    assert_eq!(bounds.remembered(), (0, 1));
    assert_eq!(
        outstanding.arrived(start as u32, arrival, 0, &mut bounds),
        OnArrival::First { due: ms(1), sent: ms(1), payload: 80 }
    );
}

#[test]
fn what_is_kept_of_a_channel_is_small() {
    assert_eq!(size_of::<Entry>(), 32);
    assert!(size_of::<Channel>() <= 256, "{}", size_of::<Channel>());
}

#[test]
fn memory_is_bounded_with_one_percent_loss() {
    const CHANNELS: u16 = 20;
    const ON_THE_WAY: u32 = 10;
    let limits = Limits { entries: 1 << 20, overtaken: 500 };
    let mut meter_trace = ();
    let mut meter = Meter::with_limits(&[meta(0, 1, CHANNELS)], &mut meter_trace, limits);
    for sequence in 0..10_000 {
        for channel in 0..CHANNELS {
            let at = u64::from(sequence) * 10;
            send(&mut meter, 0, channel, sequence, at, at);
            let arrived = sequence.checked_sub(ON_THE_WAY);
            if let Some(arrived) = arrived.filter(|a| !(a + u32::from(channel)).is_multiple_of(100)) {
                receive(&mut meter, 0, channel, arrived, at - 100, at);
            }
        }
        let remembered = meter.remembered();
        assert!(remembered.windows <= usize::from(CHANNELS) * 3 * ON_THE_WAY as usize, "{remembered:?}");
        assert!(remembered.overtaken <= 500, "{remembered:?}");
    }
    let capacity: usize = meter.channels.iter().map(|c| c.outstanding.capacity()).sum();
    assert!(capacity <= usize::from(CHANNELS) * 64 + 2 * 1_024, "{capacity} entries");
    let flow = meter.finish(DriverOutcome::default()).flows.remove(0);
    assert_eq!(flow.counts.sent, 200_000);
    // One in a hundred of the first 9,990, and those on their way.
    assert_eq!(flow.counts.lost, 1_990 + 200);
    assert_eq!(flow.counts.sent, flow.counts.received + flow.counts.lost);
}

#[test]
fn nothing_is_overtaken_in_order_without_loss() {
    let mut nothing = ();
    let mut meter = Meter::new(&[meta(0, 1, 1)], &mut nothing);
    for sequence in 0..2_000 {
        send(&mut meter, 0, 0, sequence, 0, 0);
        if let Some(arrived) = sequence.checked_sub(100) {
            receive(&mut meter, 0, 0, arrived, 0, 1);
        }
        assert_eq!(meter.remembered().overtaken, 0, "{sequence}");
    }
    assert_eq!(meter.remembered().windows, 100);
}

#[test]
fn memory_is_bounded_when_nothing_arrives() {
    let mut nothing = ();
    let limits = Limits { entries: 1_000, overtaken: 500 };
    let mut meter = Meter::with_limits(&[meta(0, 1, 4)], &mut nothing, limits);
    for sequence in 0..20_000 {
        for channel in 0..4 {
            send(&mut meter, 0, channel, sequence, 0, 0);
        }
        let remembered = meter.remembered();
        assert!(remembered.windows <= 1_001 && remembered.overtaken <= 500, "{remembered:?}");
    }
    let flow = meter.finish(DriverOutcome::default()).flows.remove(0);
    assert_eq!((flow.counts.sent, flow.counts.lost), (80_000, 80_000));
    assert_eq!(flow.loss_bursts, BTreeMap::from([(20_000, 4)]));
}

#[test]
fn an_arrival_after_being_given_up_corrects_the_counts() {
    let mut kept = Kept::default();
    let mut meter =
        Meter::with_limits(&[meta(0, 1, 1)], &mut kept, Limits { entries: 1 << 20, overtaken: 0 });
    for sequence in 0..100 {
        send(&mut meter, 0, 0, sequence, 0, 0);
        if sequence > 0 {
            receive(&mut meter, 0, 0, sequence, 0, 10);
        }
    }
    assert_eq!(meter.progress().next().unwrap().counts.lost, 1);
    receive(&mut meter, 0, 0, 0, 0, 500);
    receive(&mut meter, 0, 0, 0, 0, 501);
    let counts = meter.finish(DriverOutcome::default()).flows.remove(0).counts;
    assert_eq!(counts, Counts { sent: 100, received: 100, duplicate: 1, reordered: 1, ..Counts::default() });
    let fates: Vec<Fate> = kept.0.iter().filter(|(_, r)| r.sequence == 0).map(|(_, r)| r.fate).collect();
    assert_eq!(fates, [Fate::Lost, Fate::Received, Fate::Duplicate]);
}

#[test]
fn a_message_that_arrives_after_being_given_up_has_the_times_of_its_report() {
    let mut kept = Kept::default();
    let mut meter =
        Meter::with_limits(&[meta(0, 1, 1)], &mut kept, Limits { entries: 1 << 20, overtaken: 0 });
    for sequence in 0..100 {
        send(&mut meter, 0, 0, sequence, 2, 5);
        if sequence > 0 {
            receive(&mut meter, 0, 0, sequence, 5, 10);
        }
    }
    // Two periods of a short header's times later, its reader takes the latest possible time of sending.
    let received = 2 * (1 << 36) + 7_000_000;
    let what = Observation::Received {
        channel: 0,
        sequence: 0,
        sent: Time::from_nanos(received - 2_000_000),
        reflected: Time::ZERO,
        payload: Bytes(80),
    };
    meter.record(Time::from_nanos(received), FlowId(0), what);
    let flow = meter.finish(DriverOutcome::default()).flows.remove(0);
    let record = kept.0.last().unwrap().1;
    assert_eq!((record.due, record.sent, record.fate), (ms(2), Some(ms(5)), Fate::Received));
    assert_eq!(flow.latency.unwrap().max, Duration::from_nanos(received - 5_000_000));
}

#[test]
fn a_summary_is_readable_json_and_comes_back() {
    let (summary, _) = measure(meta(0, 2, 1), |meter| {
        for sequence in 0..40 {
            let at = u64::from(sequence) * 10;
            send(meter, 0, 0, sequence, at, at);
            if sequence % 7 > 0 {
                receive(meter, 0, 0, sequence, at, at + 20 + at % 3);
            }
        }
        meter.record(ms(1), FlowId(0), Observation::SendCall { error_nanos: 800, took_nanos: 4_000 });
    });
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["latency"]["min"], 20_000_000);
    assert_eq!(json["loss_bursts"]["1"], 6);
    assert_eq!(json["schedule_error"]["max"], 800);
    assert_eq!(json["measured"], "one-way");
    assert_eq!(serde_json::from_value::<FlowSummary>(json).unwrap(), summary);
}

#[test]
fn a_run_without_messages_has_an_empty_summary() {
    let (summary, _) = measure(meta(0, 1, 1), |_| {});
    assert_eq!((summary.latency, summary.jitter, summary.robust, summary.fairness), (None, None, None, None));
    assert_eq!(summary.loss, Ratio::ZERO);
    assert_eq!(summary.throughput.user, Rate::ZERO);
    assert!(summary.latency_cdf.is_empty() && summary.latency_over_time.is_empty());
    let mut nothing = ();
    assert!(Meter::new(&[], &mut nothing).finish(DriverOutcome::default()).flows.is_empty());
}

#[test]
fn transfers_are_measured_from_their_first_message_to_the_answer() {
    let transfer = |meter: &mut Meter<'_>, member: u32, channel: u16, began: u64, at: u64| {
        let what = Observation::Transferred { channel, began: ms(began), bytes: Bytes(1_000) };
        meter.record(ms(at), FlowId(member), what);
    };
    let (summary, _) = measure(meta(3, 2, 2), |meter| {
        for (began, at) in [(0, 1), (1, 9), (9, 19), (19, 20)] {
            transfer(meter, 4, 1, began, at);
        }
        transfer(meter, 3, 0, 0, 8);
        // What belongs to no member or channel is ignored.
        transfer(meter, 5, 0, 0, 1);
        transfer(meter, 3, 2, 0, 1);
    });
    let transfers = summary.transfers.unwrap();
    assert_eq!((transfers.completed, transfers.kept), (5, 3));
    // 8 ms, 10 ms and 8 ms for 1,000 B.
    let rates = [transfers.rate_min, transfers.rate_max, transfers.rate_mean, transfers.rate_total];
    assert_eq!(rates.map(Rate::bits_per_second), [800_000, 1_000_000, 933_333, 3_733_333]);
}

#[test]
fn summaries_of_before_there_were_transfers_are_readable() {
    let (summary, _) = measure(meta(0, 1, 1), |meter| {
        for sequence in 0..40 {
            let at = u64::from(sequence) * 10;
            send(meter, 0, 0, sequence, at, at);
            receive(meter, 0, 0, sequence, at, at + 20);
        }
    });
    let mut old = serde_json::to_value(&summary).unwrap();
    old.as_object_mut().unwrap().remove("transfers");
    let robust = old["robust"].as_object_mut().unwrap();
    for name in ["minimum_standard_deviation", "loaded_standard_deviation", "loaded_ratio"] {
        assert!(robust.remove(name).is_some(), "{name}");
    }
    assert_eq!(serde_json::from_value::<FlowSummary>(old).unwrap(), summary);
}

#[test]
fn every_sink_is_measured_by_itself_and_all_of_them_together() {
    let flow = FlowMeta { sinks: vec!["b".to_owned(), "c".to_owned()], ..meta(5, 2, 1) };
    assert_eq!((flow.ids(), flow.id(1, 1)), (4, FlowId(8)));
    let (summary, records) = measure(flow, |meter| {
        // Member 1 to both sinks; the second one joins with the second message, and loses it.
        send(meter, 6, 0, 0, 0, 0);
        receive(meter, 6, 0, 0, 0, 20);
        for id in [6, 8] {
            send(meter, id, 0, 1, 10, 10);
            send(meter, id, 0, 2, 20, 20);
        }
        receive(meter, 6, 0, 1, 10, 40);
        receive(meter, 6, 0, 2, 20, 50);
        receive(meter, 8, 0, 2, 20, 100);
    });
    assert_eq!((summary.counts.sent, summary.counts.received, summary.counts.lost), (5, 4, 1));
    let [b, c] = summary.sinks.as_slice() else { panic!("two sinks: {:?}", summary.sinks) };
    assert_eq!((b.sink.as_str(), b.counts.sent, b.counts.received, b.loss), ("b", 3, 3, Ratio::default()));
    assert_eq!((c.sink.as_str(), c.counts.sent, c.counts.received, c.counts.lost), ("c", 2, 1, 1));
    assert_eq!(c.loss, Ratio::new(0.5).unwrap());
    let mean = |sink: &crate::SinkSummary| sink.latency.unwrap().mean;
    assert_eq!((mean(b), mean(c)), (Duration::from_nanos(26_666_667), MS(80)));
    assert_eq!((c.latency_from_due.unwrap().mean, c.mean_absolute_deviation), (MS(80), None));
    assert_eq!((b.user, c.user), (Rate::of(Bytes(240), MS(100)), Rate::of(Bytes(80), MS(100))));
    assert_eq!(summary.throughput.user, Rate::of(Bytes(320), MS(100)));
    assert_eq!(records.iter().filter(|record| record.member == 3).count(), 2);
}

#[test]
fn a_sink_may_join_after_any_number_of_messages() {
    let flow = FlowMeta { sinks: vec!["b".to_owned(), "c".to_owned()], ..meta(0, 1, 1) };
    let (summary, _) = measure(flow, |meter| {
        for sequence in 0..100_000 {
            send(meter, 0, 0, sequence, 0, 0);
            receive(meter, 0, 0, sequence, 0, 20);
        }
        send(meter, 1, 0, 100_000, 20, 20);
        receive(meter, 1, 0, 100_000, 20, 30);
    });
    assert_eq!(summary.sinks[1].counts, Counts { sent: 1, received: 1, ..Counts::default() });
}

#[test]
fn of_a_flow_to_nobody_only_the_sending_is_counted() {
    let flow = FlowMeta { sinks: Vec::new(), measured: Measured::Nothing, ..meta(0, 1, 1) };
    let (summary, records) = measure(flow, |meter| {
        for sequence in 0..10 {
            send(meter, 0, 0, sequence, 0, 0);
        }
    });
    assert_eq!(summary.counts, Counts { sent: 10, ..Counts::default() });
    assert_eq!((summary.loss, summary.latency, records.len()), (Ratio::default(), None, 0));
    assert_eq!(summary.throughput.offered, Rate::of(Bytes(800), MS(1000)));
}

#[test]
fn members_of_a_bundle_are_measured_by_themselves_and_count_once() {
    let mut flows = [meta(0, 2, 1), meta(2, 1, 1), meta(3, 1, 1)];
    flows[1].transport = "tcp".to_owned();
    flows.iter_mut().for_each(|flow| flow.lasting = Lasting::Run);
    let mut kept = Kept::default();
    let bundle = BundleMeta { name: "trunk".to_owned(), flows: vec![0, 1] };
    let mut meter = Meter::new(&flows, &mut kept).with_bundles(&[bundle]);
    for (flow, latency) in [(0, 10), (1, 30), (2, 50), (3, 70)] {
        send(&mut meter, flow, 0, 0, 0, 0);
        receive(&mut meter, flow, 0, 0, 0, latency);
    }
    // A copy is no second arrival; member 1 loses its second message, member 2 has one refused.
    receive(&mut meter, 0, 0, 0, 0, 90);
    send(&mut meter, 1, 0, 1, 10, 10);
    refuse(&mut meter, 2, 0, 1, 10);
    let network = |bytes| FlowOutcome { network: on_network(bytes), ..FlowOutcome::default() };
    let summary = meter.finish(DriverOutcome {
        duration: MS(1000),
        flows: vec![network(200), network(300), network(1)],
        ..DriverOutcome::default()
    });

    let [bundle] = summary.bundles.as_slice() else { panic!("one bundle") };
    assert_eq!((bundle.flows.len(), bundle.members, bundle.active), (2, 3, MS(1000)));
    let rate = Rate::from_bits_per_second;
    assert_eq!((bundle.user, bundle.network), (rate(3 * 640), Some(rate(4000))));
    assert_eq!(bundle.fairness, Some(1.0));
    let [udp, tcp] = bundle.classes.as_slice() else { panic!("two classes") };
    let half = Ratio::new(0.5).unwrap();
    let loss = Spread { mean: Ratio::new(0.25).unwrap(), min: Ratio::ZERO, max: half, members: 2 };
    assert_eq!(udp.loss, Some(loss));
    assert_eq!(udp.latency_mean, Some(Spread { mean: MS(20), min: MS(10), max: MS(30), members: 2 }));
    // A single member has the figures of its flow.
    let flow = &summary.flows[1];
    let latency = flow.latency.unwrap();
    let alone = |figure| Some(Spread { mean: figure, min: figure, max: figure, members: 1 });
    assert_eq!((tcp.latency_mean, tcp.latency_p999), (alone(latency.mean), alone(latency.p999)));
    assert_eq!((tcp.members, tcp.loss.unwrap().mean), (1, flow.loss));
}

#[test]
fn a_member_of_a_bundle_is_measured_over_its_own_life() {
    let run = |lasting| {
        let mut kept = Kept::default();
        let flow = FlowMeta { lasting, ..meta(0, 2, 1) };
        let bundle = BundleMeta { name: "trunk".to_owned(), flows: vec![0] };
        let mut meter = Meter::new(&[flow], &mut kept).with_bundles(&[bundle]);
        for (member, due, received) in [(0, 0, 100), (1, 300, 500)] {
            send(&mut meter, member, 0, 0, due, due);
            receive(&mut meter, member, 0, 0, due, received);
        }
        let summary = meter.finish(DriverOutcome { duration: MS(1000), ..DriverOutcome::default() });
        let rates = summary.bundles[0].classes[0].throughput.unwrap();
        (rates.max.bits_per_second(), rates.min.bits_per_second())
    };
    // 640 bit in 100 and in 200 ms; to the end of the run in 1000 and in 700 ms.
    assert_eq!(run(Lasting::Volume), (6400, 3200));
    assert_eq!(run(Lasting::Run), (914, 640));
}

#[test]
fn a_bundle_changes_nothing_in_the_figures_of_its_flows() {
    let run = |bundles: &[BundleMeta]| {
        let mut kept = Kept::default();
        let mut meter = Meter::new(&[meta(0, 3, 2)], &mut kept).with_bundles(bundles);
        for n in 0..60 {
            let (member, channel, sequence) = (n % 3, (n / 3 % 2) as u16, n / 6);
            send(&mut meter, member, channel, sequence, u64::from(n), u64::from(n));
            if n % 7 != 0 {
                receive(&mut meter, member, channel, sequence, u64::from(n), u64::from(n + n % 5));
            }
        }
        meter.finish(DriverOutcome { duration: MS(100), ..DriverOutcome::default() })
    };
    let with = run(&[BundleMeta { name: "a".to_owned(), flows: vec![0] }]);
    assert_eq!(run(&[]), RepetitionSummary { bundles: Vec::new(), ..with });
}

proptest! {
    /// Short headers have lowest bits of times only, and their reader takes the latest times with them.
    #[test]
    fn the_times_of_short_headers_are_whole_whatever_they_were_under_way(
        sent in 1_u64 << 30..1 << 45,
        there in 0_u64..1 << 42,
        back in 0_u64..1 << 42,
        bits in prop::sample::select(vec![36_u32, 40]),
    ) {
        let (reflected, received) = (sent + there, sent + there + back);
        let latest = |time: u64| {
            let latest = received + 8_000_000_000;
            Time::from_nanos(latest - (latest.wrapping_sub(time) & ((1 << bits) - 1)))
        };
        let time = Time::from_nanos;
        let read = outstanding::Arrival { received: time(received), sent: latest(sent), reflected: latest(reflected), payload: 20 };
        let found = read.of_message_sent(time(sent));
        prop_assert_eq!((found.sent, found.received), (time(sent), time(received)));
        // When it was reflected is right or not known; it is known where less than a minute allows one time only.
        let is_known = found.reflected == time(reflected);
        prop_assert!(is_known || found.reflected == Time::ZERO, "{:?}", found.reflected);
        prop_assert!(is_known || there + back > 50_000_000_000);
        // The clocks of the ends may differ by some seconds.
        let apart = time(sent + 5_000_000_000);
        prop_assert_eq!(read.of_message_sent(apart).sent, time(sent));
    }
}

/// Requests of 100 bytes that get answers of 1,000: throughput is that of what was offered, and answers have their own.
#[test]
fn answers_have_a_throughput_of_their_own() {
    let flow = FlowMeta { measured: Measured::RoundTrip, is_answered: true, ends: ms(1000), ..meta(0, 1, 1) };
    // Its sending may be reported before or after its answer, or an answer may never come.
    for is_early in [false, true] {
        let (summary, _) = measure(flow.clone(), |meter| {
            for sequence in 0..10u32 {
                let at = 100 * u64::from(sequence);
                let due = ms(at);
                let sent = Observation::Sent { channel: 0, sequence, due, payload: Bytes(100) };
                let answer = Observation::Received {
                    channel: 0,
                    sequence,
                    sent: due,
                    reflected: ms(at + 10),
                    payload: Bytes(1000),
                };
                let all = [(at, Some(sent)), (at + 20, (sequence > 0).then_some(answer))];
                let order = if is_early { [1, 0] } else { [0, 1] };
                for (at, what) in order.map(|place| all[place]) {
                    if let Some(what) = what {
                        meter.record(ms(at), FlowId(0), what);
                    }
                }
            }
        });
        let ThroughputSummary { offered, user, answers, active, .. } = summary.throughput;
        assert_eq!(offered, Rate::of(Bytes(1000), active));
        assert_eq!(user, Rate::of(Bytes(900), active));
        assert_eq!(answers, Some(Rate::of(Bytes(9000), active)));
    }
    assert_eq!(measure(meta(0, 1, 1), |_| ()).0.throughput.answers, None);
}
