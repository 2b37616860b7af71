//! Runs as the store hands them out, made up but plausible.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trunkline_core::{Amount, Bytes, Duration, Rate, Ratio, Time};
use trunkline_experiment::{Axis, Limit, Operator, Subject};
use trunkline_metrics::figures;
use trunkline_metrics::{
    BundleSummary, ClassSummary, ConnectionSample, Counts, DelaySummary, FlowSummary, JitterSummary,
    LinkSummary, Measured, MediumSummary, RepetitionSummary, Retransmissions, RobustDelay, SinkSummary,
    Spread, StallSummary, ThroughputSummary, TransferSummary,
};
use trunkline_store::{Backend, RunInfo, Status, StoredPoint, StoredRepetition, StoredRun};

const EXPERIMENT: &str = "# Four channels of speech beside bulk transfers over a slow trunk.\n\
    name = \"voice beside bulk\"\nduration = \"10 s\"\nrepetitions = 3\nseed = 7\n\n[hosts]\nottawa = {}\nberlin = {}\n\n\
    [link.trunk]\nbetween = [\"berlin\", \"ottawa\"]\nrate = \"2 Mbit/s\"\ndelay = \"20 ms\"\n\
    queue = { kind = \"fifo\", limit = \"64 KiB\" }\n\n[limits]\n\"flow.voice.loss\" = \"< 1 %\"\n\
    \"flow.voice.latency.p99\" = \"< 150 ms\"\n";

/// A fixed sequence of numbers from 0 to 1.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponential with mean 1.
    fn tail(&mut self) -> f64 {
        -(1.0 - self.next()).ln()
    }
}

/// What a made-up flow is like.
pub(crate) struct Made {
    pub(crate) name: String,
    pub(crate) members: u32,
    pub(crate) channels: u32,
    pub(crate) measured: Measured,
    pub(crate) messages: u64,
    pub(crate) base: f64,
    pub(crate) spread: f64,
    pub(crate) loss: f64,
    pub(crate) rate: f64,
}

fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

/// A window that grows and falls over 10 s. The causes of retransmissions are unknown of the kernel's.
fn connection(place: u64, live: bool) -> ConnectionSample {
    let fell = place / 80;
    let window = Bytes(14_480 + 1_000 * (place % 80));
    let known = |count: u64| (!live).then_some(count);
    ConnectionSample {
        at: Time::from_nanos(place * 25_000_000),
        congestion_window: window,
        slow_start_threshold: (fell > 0).then_some(Bytes(50_000)),
        in_flight: Bytes(window.count() * 9 / 10),
        smoothed_round_trip: (place > 1).then_some(Duration::from_micros(20_000 + 500 * (place % 80))),
        pacing_rate: (place > 1).then_some(Rate::from_bits_per_second(window.count() * 300)),
        retransmissions: Retransmissions {
            all: 4 * fell,
            fast: known(fell),
            rack: known(2 * fell),
            tail_probe: known(0),
            timeout: known(fell),
            spurious: Some(fell / 2),
        },
    }
}

/// A flow's summary with figures that belong together.
pub(crate) fn flow(made: &Made, live: bool, draw: &mut Draw) -> FlowSummary {
    let empty = made.members == 0 || made.messages == 0;
    let lost = (made.messages as f64 * made.loss) as u64;
    let received = made.messages - lost.min(made.messages);
    let mut summary = FlowSummary {
        flow: made.name.clone(),
        transport: if made.name == "bulk" { "tcp" } else { "udp" }.to_owned(),
        members: made.members,
        channels: made.channels,
        measured: made.measured,
        ..FlowSummary::default()
    };
    if empty {
        return summary;
    }
    let mut over_time = Vec::new();
    let mut all = Vec::new();
    let samples = received.min(2_000);
    for i in 0..samples {
        let at = 10.0 * i as f64 / samples as f64;
        let swing = 0.5 + 0.5 * (at * 2.1).sin();
        let latency = made.base + made.spread * (swing + 0.35 * draw.tail());
        over_time.push((Time::from_nanos((at * 1e9) as u64), seconds(latency)));
        all.push(latency);
    }
    all.sort_by(f64::total_cmp);
    let n = all.len();
    if n > 0 {
        let mean = all.iter().sum::<f64>() / n as f64;
        let deviation = (all.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        let rank = |share: f64| seconds(all[((share * n as f64).ceil() as usize).clamp(1, n) - 1]);
        let latency = DelaySummary {
            count: received,
            mean: seconds(mean),
            standard_deviation: seconds(deviation),
            min: rank(0.0),
            p50: rank(0.5),
            p90: rank(0.9),
            p99: rank(0.99),
            p999: rank(0.999),
            max: rank(1.0),
            exact: !live,
        };
        summary.latency = Some(latency);
        summary.latency_from_due = Some(latency);
        summary.jitter = Some(JitterSummary {
            mean_absolute_deviation: seconds(deviation * 0.8),
            standard_deviation: seconds(deviation),
            interarrival: Some(seconds(deviation * 0.3)),
            ipdv_mean: Some(seconds(deviation * 0.4)),
            ipdv_p999: Some(seconds(deviation * 4.0)),
            pdv_mean: seconds(mean - made.base),
            pdv_p999: seconds(deviation * 6.0),
            interarrival_mean: Some(Duration::from_millis(10)),
            interarrival_standard_deviation: Some(seconds(deviation * 0.5)),
        });
        summary.robust = Some(RobustDelay {
            minimum: seconds(made.base),
            minimum_kept: received / 2,
            minimum_removed: received - received / 2,
            minimum_threshold: seconds(made.base + made.spread),
            minimum_ratio: 12.5,
            loaded: seconds(mean),
            loaded_kept: received,
            loaded_removed: 0,
            loaded_threshold: seconds(mean + 8.0 * deviation),
            minimum_standard_deviation: seconds(made.base / 12.5),
            loaded_standard_deviation: seconds(deviation),
            loaded_ratio: if deviation > 0.0 { mean / deviation } else { 0.0 },
        });
        let step = (n / 500).max(1);
        summary.latency_cdf = (0..n)
            .step_by(step)
            .chain([n - 1])
            .map(|i| (seconds(all[i]), (i + 1) as f64 / n as f64))
            .collect();
        summary.latency_cdf.dedup();
        summary.latency_over_time = over_time;
        if made.name == "bulk" {
            summary.connection = (0..400).map(|place| connection(place, live)).collect();
        }
    }
    summary.counts = Counts { sent: made.messages, received, lost, ..Counts::default() };
    summary.loss = Ratio::new(lost as f64 / made.messages as f64).unwrap_or_default();
    summary.loss_bursts = BTreeMap::from([(1, lost / 2), (2, lost / 4)]);
    let user = made.rate * (1.0 - made.loss) * (0.995 + 0.01 * draw.next());
    summary.throughput = ThroughputSummary {
        offered: Rate::from_bits_per_second(made.rate as u64),
        user: Rate::from_bits_per_second(user as u64),
        network: (!live).then(|| Rate::from_bits_per_second((user * 1.35) as u64)),
        active: Duration::from_secs(10),
        ..ThroughputSummary::default()
    };
    summary.voice_channels = user as u64 / 64_000;
    summary.fairness = (made.members > 1).then_some(0.98);
    if live {
        summary.schedule_error = summary.latency;
        summary.send_call = summary.latency;
    }
    summary.transport_counters = BTreeMap::from([("retransmissions".to_owned(), lost)]);
    summary
}

/// One repetition of voice beside `bulk` transfers.
pub(crate) fn repetition(bulk: u32, live: bool, draw: &mut Draw) -> RepetitionSummary {
    let load = f64::from(bulk);
    let noise = 0.97 + 0.06 * draw.next();
    let voice = Made {
        name: "voice".to_owned(),
        members: 1,
        channels: 4,
        measured: Measured::RoundTrip,
        messages: 4_000,
        base: if live { 0.0001 } else { 0.0407 },
        spread: if live { 0.0004 * (1.0 + load) } else { 0.002 + 0.055 * load * noise },
        loss: if live { 0.0 } else { (0.004 * load * load * noise).min(0.5) },
        rate: 256_000.0,
    };
    let transfers = Made {
        name: "bulk".to_owned(),
        members: bulk,
        channels: 1,
        measured: Measured::OneWay,
        messages: u64::from(bulk) * 90,
        base: if live { 0.0003 } else { 0.055 },
        spread: if live { 0.001 } else { 0.12 * load * noise },
        loss: 0.0,
        rate: if live { 3.1e9 } else { 560_000.0 * load.min(2.7) * noise },
    };
    let link = |name: &str, share: f64| LinkSummary {
        link: name.to_owned(),
        utilisation: Ratio::new(share.min(0.998)).unwrap_or_default(),
        load: None,
        offered: 4_100 + 900 * u64::from(bulk),
        delivered: 4_090 + 880 * u64::from(bulk),
        dropped: if bulk > 1 {
            BTreeMap::from([("queue-full".to_owned(), 17 * u64::from(bulk))])
        } else {
            BTreeMap::new()
        },
        marked: BTreeMap::new(),
        sojourn_mean: seconds(0.0004 + 0.05 * load),
        sojourn_p50: Some(seconds(0.0003 + 0.04 * load)),
        sojourn_p99: Some(seconds(0.001 + 0.07 * load)),
        sojourn_p999: Some(seconds(0.0015 + 0.075 * load)),
        sojourn_max: seconds(0.002 + 0.08 * load),
        backlog_max: Bytes(900 + 16_384 * u64::from(bulk)),
        backlog_packets_max: 6 + 12 * u64::from(bulk),
        backlog_over_time: Vec::new(),
    };
    RepetitionSummary {
        flows: vec![flow(&voice, live, draw), flow(&transfers, live, draw)],
        bundles: Vec::new(),
        links: if live {
            Vec::new()
        } else {
            vec![
                link("trunk berlin>ottawa", 0.2 + 0.3 * load),
                link("trunk ottawa>berlin", 0.18 + 0.01 * load),
            ]
        },
        media: Vec::new(),
        stalls: live.then(|| StallSummary {
            probe: "sleeping".to_owned(),
            watched: Duration::from_secs(11),
            gaps: [(50u64, 912), (200, 48), (1_000, 7), (5_000, 1), (20_000, 0)]
                .map(|(us, n)| (Duration::from_micros(us), n))
                .to_vec(),
            share: Ratio::new(0.0123).unwrap_or_default(),
            longest: Duration::from_micros(6_120),
            over_time: Vec::new(),
        }),
        duration: Duration::from_secs(10),
        cpu: live.then(|| Duration::from_millis(2_310)),
        partial: false,
    }
}

fn info(backend: Backend, points: usize, repetitions: u32) -> RunInfo {
    RunInfo {
        id: if backend == Backend::Sim { 12 } else { 13 },
        name: "voice beside bulk".to_owned(),
        backend,
        status: Status::Complete,
        started: jiff::Timestamp::constant(1_795_268_000, 0),
        finished: Some(jiff::Timestamp::constant(1_795_268_140, 0)),
        version: "0.1.0".to_owned(),
        machine: "Linux 6.18, x86_64, 2 cores, host relay".to_owned(),
        seed: 7,
        repetitions,
        points: points as u32,
        repetitions_done: points as u32 * repetitions,
        repetition_length: Duration::from_secs(11),
        directory: PathBuf::from("runs/12"),
        file: PathBuf::from("examples/voice-beside-bulk.toml"),
        experiment_hash: "d1f0".to_owned(),
        tags: Vec::new(),
        key: String::new(),
        settings: Vec::new(),
        shard: None,
    }
}

pub(crate) fn stored(index: u32, summary: RepetitionSummary) -> StoredRepetition {
    StoredRepetition {
        index,
        partial: summary.partial,
        summary: Some(summary),
        traces: vec![("voice".to_owned(), PathBuf::from("voice.parquet"))],
        audio: Vec::new(),
    }
}

pub(crate) fn limits() -> Vec<Limit> {
    vec![
        Limit {
            key: "flow.voice.loss".to_owned(),
            condition: "< 1 %".to_owned(),
            subject: Subject::Flow { flow: 0, sink: None, metric: figures::flow("loss") },
            operator: Operator::Less,
            bound: 0.01,
        },
        Limit {
            key: "flow.voice.latency.p99".to_owned(),
            condition: "< 150 ms".to_owned(),
            subject: Subject::Flow { flow: 0, sink: None, metric: figures::flow("latency_p99") },
            operator: Operator::Less,
            bound: 0.15,
        },
    ]
}

/// Voice beside 0, 1, 2 and 4 bulk transfers, three repetitions each.
pub(crate) fn swept(backend: Backend) -> StoredRun {
    let values = [0u32, 1, 2, 4];
    let mut draw = Draw::new(7);
    let axis = Axis {
        key: "flow.bulk.count".to_owned(),
        values: values.iter().map(u32::to_string).collect(),
        numbers: Some(values.iter().map(|v| f64::from(*v)).collect()),
        unit: String::new(),
    };
    let points = values.iter().enumerate().map(|(i, bulk)| StoredPoint {
        index: i as u32,
        choice: vec![i],
        repetitions: (0..3)
            .map(|r| stored(r, repetition(*bulk, backend == Backend::Live, &mut draw)))
            .collect(),
    });
    StoredRun {
        info: info(backend, values.len(), 3),
        text: EXPERIMENT.to_owned(),
        axes: vec![axis],
        limits: limits(),
        points: points.collect(),
    }
}

/// One point, one repetition.
pub(crate) fn single(backend: Backend) -> StoredRun {
    let summary = repetition(1, backend == Backend::Live, &mut Draw::new(3));
    StoredRun {
        info: info(backend, 1, 1),
        text: EXPERIMENT.to_owned(),
        axes: Vec::new(),
        limits: limits(),
        points: vec![StoredPoint { index: 0, choice: Vec::new(), repetitions: vec![stored(0, summary)] }],
    }
}

/// Three axes: counts, windows, and words; 4 x 4 x 2 points.
pub(crate) fn grid() -> StoredRun {
    let mut run = swept(Backend::Sim);
    let axis = |key: &str, values: &[&str], numbers: Option<&[f64]>, unit: &str| Axis {
        key: key.to_owned(),
        values: values.iter().map(|v| (*v).to_owned()).collect(),
        numbers: numbers.map(<[f64]>::to_vec),
        unit: unit.to_owned(),
    };
    run.axes = vec![
        axis("flow.bulk.count", &["1", "2", "4", "16"], Some(&[1.0, 2.0, 4.0, 16.0]), ""),
        axis(
            "link.trunk.rate",
            &["1 Mbit/s", "2 Mbit/s", "4 Mbit/s", "8 Mbit/s"],
            Some(&[1.0, 2.0, 4.0, 8.0]),
            "Mbit/s",
        ),
        axis("link.trunk.queue.kind", &["fifo", "round-robin"], None, ""),
    ];
    let mut draw = Draw::new(11);
    run.points = (0..32)
        .map(|i| StoredPoint {
            index: i as u32,
            choice: vec![i / 8, i / 2 % 4, i % 2],
            repetitions: (0..2)
                .map(|r| stored(r, repetition([1, 2, 4, 8][i / 8], false, &mut draw)))
                .collect(),
        })
        .collect();
    run.info.points = 32;
    run.info.repetitions = 2;
    run.info.repetitions_done = 64;
    run
}

/// Stopped in the middle: two points done, one cut short, one never begun.
pub(crate) fn partial() -> StoredRun {
    let mut run = swept(Backend::Live);
    run.info.status = Status::Partial;
    run.info.finished = None;
    run.info.repetitions_done = 6;
    run.points[2].repetitions.truncate(1);
    run.points[2].repetitions[0].partial = true;
    if let Some(summary) = &mut run.points[2].repetitions[0].summary {
        summary.partial = true;
    }
    run.points[3].repetitions.clear();
    run
}

/// Nothing received at all.
pub(crate) fn silent() -> StoredRun {
    let mut run = single(Backend::Live);
    for repetition in &mut run.points[0].repetitions {
        if let Some(summary) = &mut repetition.summary {
            for flow in &mut summary.flows {
                flow.latency = None;
                flow.latency_from_due = None;
                flow.jitter = None;
                flow.robust = None;
                flow.latency_cdf.clear();
                flow.latency_over_time.clear();
                flow.throughput.user = Rate::ZERO;
                flow.counts.lost = flow.counts.sent;
                flow.counts.received = 0;
                flow.loss = Ratio::ONE;
            }
        }
    }
    run
}

/// Bulk that makes transfers.
pub(crate) fn transfers() -> StoredRun {
    let mut run = single(Backend::Sim);
    let kilobits = |n: u64| Rate::from_bits_per_second(n * 1_000);
    let summaries = run.points[0].repetitions.iter_mut().filter_map(|repetition| repetition.summary.as_mut());
    for flow in summaries.flat_map(|summary| &mut summary.flows).filter(|flow| flow.flow == "bulk") {
        flow.transfers = Some(TransferSummary {
            completed: 10,
            kept: 8,
            rate_mean: kilobits(930),
            rate_standard_deviation: kilobits(7),
            rate_min: kilobits(921),
            rate_max: kilobits(941),
            rate_total: kilobits(3_720),
        });
    }
    run
}

/// Beside the link a ring of two stations.
pub(crate) fn ring() -> StoredRun {
    let mut run = swept(Backend::Sim);
    let mut draw = Draw::new(5);
    for summary in run.points.iter_mut().flat_map(|p| &mut p.repetitions).filter_map(|r| r.summary.as_mut()) {
        let figures = [
            ("ring-utilisation", Amount::Share(Ratio::new(0.25 + draw.next() / 100.0).unwrap_or_default())),
            ("token-rotations", Amount::Count(5_000_000_000)),
            ("token-rotation-mean", Amount::Time(seconds(2e-6))),
            ("bytes-synchronous", Amount::Bytes(Bytes(31_250_000))),
        ];
        let medium = |station: Option<&str>, figures: &[(&str, Amount)]| MediumSummary {
            medium: "ring".to_owned(),
            station: station.map(str::to_owned),
            figures: figures.iter().map(|(name, amount)| ((*name).to_owned(), Some(*amount))).collect(),
        };
        let station = [("frames", Amount::Count(7_500)), ("late-counter-max", Amount::Count(1))];
        summary.media =
            vec![medium(None, &figures), medium(Some("ottawa"), &station), medium(Some("berlin"), &station)];
    }
    run
}

/// Voice goes to three sinks, of which `far` is the worst.
pub(crate) fn sinks() -> StoredRun {
    let mut run = swept(Backend::Sim);
    run.limits[1].key = "flow.voice.sink.far.latency.p99".to_owned();
    run.limits[1].subject =
        Subject::Flow { flow: 0, sink: Some("far".to_owned()), metric: figures::flow("latency_p99") };
    for summary in run.points.iter_mut().flat_map(|p| &mut p.repetitions).filter_map(|r| r.summary.as_mut()) {
        let flow = &mut summary.flows[0];
        flow.measured = Measured::OneWay;
        let sink = |name: &str, times: u64, loss: f64| {
            let longer = |d: &DelaySummary| DelaySummary { p99: d.p99 * times, p999: d.p999 * times, ..*d };
            let latency = flow.latency.as_ref().map(longer);
            SinkSummary {
                sink: name.to_owned(),
                counts: flow.counts,
                loss: Ratio::new(loss).unwrap_or_default(),
                unfinished: Ratio::ZERO,
                refused: Ratio::ZERO,
                late: Ratio::ZERO,
                latency,
                latency_from_due: latency,
                mean_absolute_deviation: flow.jitter.map(|jitter| jitter.mean_absolute_deviation),
                user: flow.throughput.user,
                voice_channels: flow.voice_channels,
            }
        };
        flow.sinks = vec![sink("near", 1, 0.0), sink("far", 3, 0.02), sink("late", 2, 0.0)];
    }
    run
}

/// Both flows in a bundle; of voice there are three connections, bulk comes with the sweep.
pub(crate) fn bundles() -> StoredRun {
    let mut run = swept(Backend::Sim);
    for summary in run.points.iter_mut().flat_map(|p| &mut p.repetitions).filter_map(|r| r.summary.as_mut()) {
        let class = |flow: &FlowSummary, members: u32| {
            let user = flow.throughput.user;
            let mean = user.bits_per_second() / u64::from(members.max(1));
            let rate = |percent| Rate::from_bits_per_second(mean * percent / 100);
            let latency = |of: fn(&DelaySummary) -> Duration| {
                let mean = flow.latency.as_ref().map(of)?;
                Some(Spread { mean, min: mean / 2, max: mean * 2, members })
            };
            ClassSummary {
                transport: flow.transport.clone(),
                members,
                measured: flow.measured,
                throughput: (members > 0).then(|| Spread {
                    mean: rate(100),
                    min: rate(80),
                    max: rate(120),
                    members,
                }),
                loss: (members > 0).then_some(Spread {
                    mean: flow.loss,
                    min: Ratio::ZERO,
                    max: Ratio::ONE,
                    members,
                }),
                unfinished: None,
                refused: None,
                latency_mean: latency(|d| d.mean),
                latency_p999: latency(|d| d.p999),
                fairness: (members > 1).then_some(0.97),
            }
        };
        let [voice, bulk] = summary.flows.as_slice() else { continue };
        let bits = voice.throughput.user.bits_per_second() + bulk.throughput.user.bits_per_second();
        summary.bundles = vec![BundleSummary {
            bundle: "atlantic".to_owned(),
            flows: vec![voice.flow.clone(), bulk.flow.clone()],
            members: 3 + bulk.members,
            active: seconds(10.0),
            user: Rate::from_bits_per_second(bits),
            network: Some(Rate::from_bits_per_second(bits + bits / 10)),
            fairness: Some(0.5),
            classes: vec![class(voice, 3), class(bulk, bulk.members)],
        }];
    }
    run
}

/// Numbers at both ends of what the types hold, and names that are markup.
pub(crate) fn odd() -> StoredRun {
    let mut run = swept(Backend::Sim);
    let evil = "<script>alert(1)</script> & \"co\" 'x'";
    run.info.name = evil.to_owned();
    run.info.machine = evil.to_owned();
    run.info.file = PathBuf::from(format!("{evil}.toml"));
    run.text = format!("name = {evil:?}\n</code></pre><script>alert(2)</script>\n");
    run.axes[0].key = format!("flow.{evil}.count");
    run.axes[0].values[1] = evil.to_owned();
    run.limits[0].key = format!("flow.{evil}.loss");
    for (i, point) in run.points.iter_mut().enumerate() {
        for summary in point.repetitions.iter_mut().filter_map(|r| r.summary.as_mut()) {
            let flow = &mut summary.flows[0];
            flow.flow = evil.to_owned();
            let extreme = if i == 0 { Duration::MAX } else { Duration::from_nanos(1) };
            flow.throughput.user = Rate::from_bits_per_second(if i == 0 { u64::MAX } else { 1 });
            flow.latency_over_time = vec![(Time::ZERO, extreme), (Time::MAX, Duration::ZERO)];
            flow.latency_cdf = vec![(Duration::ZERO, 0.5), (extreme, 1.0)];
            if let Some(latency) = &mut flow.latency {
                latency.p99 = extreme;
                latency.max = Duration::MAX;
            }
            summary.links[0].link = evil.to_owned();
        }
    }
    run
}

/// One flow, all latencies the same, a single message.
pub(crate) fn lone() -> StoredRun {
    let mut run = single(Backend::Sim);
    run.limits.clear();
    for summary in run.points[0].repetitions.iter_mut().filter_map(|r| r.summary.as_mut()) {
        summary.flows.truncate(1);
        let flow = &mut summary.flows[0];
        flow.latency_over_time = vec![(Time::from_nanos(5), Duration::from_millis(20))];
        flow.latency_cdf = vec![(Duration::from_millis(20), 1.0)];
    }
    run
}

/// Begun, and killed before anything was written.
pub(crate) fn empty() -> StoredRun {
    let mut run = swept(Backend::Sim);
    run.info.status = Status::Running;
    run.info.repetitions_done = 0;
    for point in &mut run.points {
        point.repetitions.clear();
    }
    run.points[0].repetitions.push(StoredRepetition {
        index: 0,
        partial: true,
        summary: None,
        traces: Vec::new(),
        audio: Vec::new(),
    });
    run
}

/// Every fixture, with its counterpart, by name.
pub(crate) fn all() -> Vec<(&'static str, StoredRun, Option<StoredRun>)> {
    vec![
        ("swept", swept(Backend::Sim), Some(swept(Backend::Live))),
        ("live", swept(Backend::Live), None),
        ("sim", swept(Backend::Sim), None),
        ("single", single(Backend::Live), Some(single(Backend::Sim))),
        ("grid", grid(), None),
        ("partial", partial(), Some(swept(Backend::Sim))),
        ("silent", silent(), None),
        ("transfers", transfers(), None),
        ("ring", ring(), None),
        ("sinks", sinks(), None),
        ("bundles", bundles(), Some(swept(Backend::Live))),
        ("odd", odd(), None),
        ("lone", lone(), None),
        ("empty", empty(), None),
    ]
}
