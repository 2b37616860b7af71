//! What holds for every kind of source, and the rates and volumes of the paced ones.

use proptest::prelude::*;
use trunkline_core::schema::Value;
use trunkline_core::{Bytes, Distribution, Duration, Time};

use crate::registry::{KINDS, find};
use crate::source::{Answer, AudioFormat, Coding, Feedback, MessageBuffer, Packetiser, SourceContext};
use crate::testing::{Sent, build, constant, context, exponential, produce_until, run, values};

/// What a kind must be given to be built at all.
fn required(kind: &str) -> Vec<(&'static str, Value)> {
    match kind {
        "load" => vec![("interval", constant(Duration::from_millis(10)))],
        "cross-traffic" => vec![("rate", Value::Rate(trunkline_core::Rate::from_bits_per_second(800_000)))],
        _ => Vec::new(),
    }
}

#[test]
fn names_and_aliases_are_unique_and_found() {
    let mut words: Vec<&str> =
        KINDS.iter().flat_map(|kind| kind.aliases.iter().copied().chain([kind.name])).collect();
    for (index, kind) in KINDS.iter().enumerate() {
        for name in kind.aliases.iter().chain([&kind.name]) {
            assert_eq!(find(name).unwrap().0, index);
        }
        assert!(!kind.doc.is_empty() && kind.parameters.iter().all(|p| !p.doc.is_empty()));
    }
    words.sort_unstable();
    let all = words.len();
    words.dedup();
    assert_eq!(words.len(), all);
    assert!(find("vioce").is_none());
}

#[test]
fn every_kind_builds_from_its_defaults_and_keeps_the_contract() {
    for kind in KINDS {
        let values = values(kind.name, &required(kind.name));
        let context = SourceContext { channels: 3, ..context() };
        let mut source = (kind.build)(&values, &context).unwrap();
        let mut buffer = MessageBuffer::with_headroom(0);
        source.produce(Time::ZERO, &mut buffer);
        assert!(buffer.messages().is_empty(), "{}: sent before the start", kind.name);

        let (mut last_due, mut now) = (context.start, Time::ZERO);
        for _ in 0..50_000 {
            let Some(due) = source.next_due() else { break };
            assert!(due >= last_due && due < context.stop, "{}: {due:?}", kind.name);
            last_due = due;
            // A source without a pace stays due: a millisecond for each message, as if the transport took that long.
            now =
                due.max(now + Duration::from_millis(if (kind.needs_flow_control)(&values) { 1 } else { 0 }));
            buffer.clear();
            source.produce(now, &mut buffer);
            assert_eq!(buffer.messages().is_empty(), now >= context.stop, "{}: {now:?}", kind.name);
            for message in buffer.messages() {
                assert!(
                    message.due >= due && message.due <= now && message.due < context.stop,
                    "{}",
                    kind.name
                );
                assert!(message.channel < 3);
                assert!(message.range.len() as u64 <= (kind.max_message)(&values), "{}", kind.name);
            }
        }
        source.notify(context.stop, Feedback::Writable);
        assert!(source.is_finished(), "{}", kind.name);
        assert_eq!(source.next_due(), None);
    }
}

#[test]
fn nothing_is_sent_where_the_stop_is_not_after_the_start() {
    for kind in KINDS {
        let context = SourceContext { stop: context().start, ..context() };
        let source = (kind.build)(&values(kind.name, &required(kind.name)), &context).unwrap();
        assert_eq!(source.next_due(), None, "{}", kind.name);
        assert!(source.is_finished(), "{}", kind.name);
    }
}

#[test]
fn a_load_has_the_rate_that_its_distributions_say() {
    let sizes = Value::Distribution(Distribution::Bivalue { first: 1500, second: 40, probability: 0.25 });
    let given = [("message", sizes), ("interval", exponential(Duration::from_millis(1)))];
    let sent = run(&mut *build("load", &given, &SourceContext { channels: 4, ..context() }));
    let (count, bytes) = (sent.len() as f64, sent.iter().map(|s| s.length as f64).sum::<f64>());
    assert!((count / 40_000.0 - 1.0).abs() < 0.02, "{count} messages");
    assert!((bytes / count / 405.0 - 1.0).abs() < 0.03, "{} bytes a message", bytes / count);
    // Poisson: the standard deviation of the intervals of one channel is their mean.
    let dues: Vec<f64> = sent.iter().filter(|s| s.channel == 2).map(|s| s.due.as_secs_f64() * 1e3).collect();
    let intervals: Vec<f64> = dues.windows(2).map(|d| d[1] - d[0]).collect();
    let mean = intervals.iter().sum::<f64>() / intervals.len() as f64;
    let variance = intervals.iter().map(|i| (i - mean) * (i - mean)).sum::<f64>() / intervals.len() as f64;
    assert!((mean - 1.0).abs() < 0.05 && (variance - 1.0).abs() < 0.1, "mean {mean}, variance {variance}");
}

#[test]
fn a_source_that_does_not_catch_up_goes_on_from_when_it_could() {
    let at = |ms| context().start + Duration::from_millis(ms);
    let dues = |catches_up| {
        let given = [
            ("interval", constant(Duration::from_millis(10))),
            ("messages", Value::Integer(6)),
            ("catch-up", Value::Flag(catches_up)),
        ];
        let mut source = build("bulk", &given, &context());
        let mut sent = Vec::new();
        for ms in [0, 10, 35, 45, 55, 65] {
            let mut out = crate::source::MessageBuffer::with_headroom(0);
            source.produce(at(ms), &mut out);
            sent.extend(out.messages().iter().map(|message| (ms, message.due)));
        }
        sent
    };
    assert_eq!(dues(false), [0, 10, 20, 45, 55, 65].map(|due| (if due == 20 { 35 } else { due }, at(due))));
    assert_eq!(
        dues(true),
        [(0, 0), (10, 10), (35, 20), (35, 30), (45, 40), (55, 50)].map(|(ms, due)| (ms, at(due)))
    );
}

#[test]
fn constant_loads_begin_at_a_random_phase_and_do_not_drift() {
    let given = [("interval", constant(Duration::from_nanos(333_333)))];
    let context = SourceContext { channels: 2, stop: Time::from_nanos(2 * 3_600_000_000_000), ..context() };
    let mut source = build("load", &given, &context);
    let mut sent = Vec::new();
    produce_until(&mut *source, Time::from_nanos(3_000_000_000), &mut sent);
    let of = |channel: u16| sent.iter().filter(move |s| s.channel == channel).map(|s| s.due);
    let (first, second) = (of(0).next().unwrap(), of(1).next().unwrap());
    assert!(first != second && first.max(second) < context.start + Duration::from_nanos(333_333));
    for (k, due) in of(0).enumerate() {
        assert_eq!(due, first + Duration::from_nanos(333_333) * k as u64);
    }
}

#[test]
fn bursts_are_sent_at_once_and_come_strictly_periodically() {
    // Weaver and McNabb 1992, table 7: 15 frames each 6.667 ms.
    let given = [
        ("message", Value::Distribution(Distribution::Constant(4142))),
        ("interval", constant(Duration::from_micros(6_667))),
        ("burst", Value::Integer(15)),
    ];
    assert_eq!(
        (find("load").unwrap().1.interval)(&values("load", &given)),
        Some(Duration::from_nanos(444_466))
    );
    let mut sent = Vec::new();
    produce_until(
        &mut *build("load", &given, &context()),
        context().start + Duration::from_secs(1),
        &mut sent,
    );
    let first = sent[0].due;
    for (k, message) in sent.iter().enumerate() {
        assert_eq!(
            (message.due, message.length),
            (first + Duration::from_micros(6_667) * (k as u64 / 15), 4142)
        );
    }
    assert!(sent.len() == 15 * 149 || sent.len() == 15 * 150, "{}", sent.len());
}

#[test]
fn a_traced_load_repeats_its_trace() {
    let interval = Value::Distribution(Distribution::Trace(vec![2_000_000, 0, 0, 5_000_000].into()));
    let size = Value::Distribution(Distribution::Trace(vec![10, 20, 30].into()));
    let sent = run(&mut *build("load", &[("interval", interval), ("message", size)], &context()));
    let millis: Vec<u64> =
        sent.iter().take(6).map(|s| s.due.since(context().start).as_nanos() / 1_000_000).collect();
    assert_eq!(millis, [2, 2, 2, 7, 9, 9]);
    assert_eq!(sent.iter().take(4).map(|s| s.length).collect::<Vec<_>>(), [10, 20, 30, 10]);
}

#[test]
fn no_interval_makes_time_stand_still() {
    for interval in
        [Distribution::Constant(0), Distribution::Constant(999), Distribution::Trace(vec![0, 0].into())]
    {
        let values = values("load", &[("interval", Value::Distribution(interval))]);
        let Err(problem) = (find("load").unwrap().1.build)(&values, &context()) else { panic!("was built") };
        assert!(problem.starts_with("`interval` is ") && problem.contains("at least 1 us"), "{problem}");
    }
    // Almost always zero, though not on average.
    let rare = Distribution::Bivalue { first: u64::MAX, second: 0, probability: 1e-15 };
    let given = [("interval", Value::Distribution(rare))];
    let stop = context().start + Duration::from_millis(10);
    let sent = run(&mut *build("load", &given, &SourceContext { stop, ..context() }));
    // All of one burst at the start, then one in each of the other microseconds.
    assert_eq!(sent.len(), 1024 + 9_999);
}

#[test]
fn paced_bulk_starts_at_once_and_sends_its_volume() {
    let interval = || ("interval", constant(Duration::from_millis(10)));
    let bytes = run(&mut *build("bulk", &[interval(), ("bytes", Value::Bytes(Bytes(20_000)))], &context()));
    assert_eq!(bytes.iter().map(|s| s.length).collect::<Vec<_>>(), [8192, 8192, 3616]);
    assert_eq!(bytes[0].due, context().start);
    assert_eq!(bytes[2].due, context().start + Duration::from_millis(20));

    let both = [interval(), ("bytes", Value::Bytes(Bytes(20_000))), ("messages", Value::Integer(2))];
    let sent = run(&mut *build("bulk", &both, &SourceContext { channels: 3, ..context() }));
    assert_eq!(sent.len(), 6, "two messages on each channel");

    let all = run(&mut *build("bulk", &[interval()], &context()));
    assert_eq!(all.len(), 1000);
}

#[test]
fn unlimited_bulk_gives_a_message_per_call_and_its_channels_take_turns() {
    let given = [("bytes", Value::Bytes(Bytes(20_000)))];
    let mut source = build("bulk", &given, &SourceContext { channels: 2, ..context() });
    let mut buffer = MessageBuffer::with_headroom(40);
    let mut now = context().start;
    let mut sent = Vec::new();
    while let Some(due) = source.next_due() {
        assert!(due <= now);
        buffer.clear();
        source.produce(now, &mut buffer);
        assert_eq!(buffer.messages().len(), 1);
        let message = &buffer.messages()[0];
        assert_eq!(message.due, now, "wanted when the transport takes it");
        sent.push((message.channel, message.range.len() - 40));
        now += Duration::from_millis(3);
    }
    assert_eq!(sent, [(0, 8192), (1, 8192), (0, 8192), (1, 8192), (0, 3616), (1, 3616)]);
    assert!(source.is_finished());
}

#[test]
fn a_source_that_fell_far_behind_fills_no_memory() {
    let given = [("interval", constant(Duration::from_micros(100)))];
    let mut source = build("bulk", &given, &context());
    let late = context().start + Duration::from_secs(5);
    let mut buffer = MessageBuffer::with_headroom(40);
    source.produce(late, &mut buffer);
    assert!(buffer.has_enough() && buffer.messages().len() < 200);
    let mut sent = Vec::new();
    produce_until(&mut *source, late, &mut sent);
    assert_eq!(buffer.messages().len() + sent.len(), 50_001);
}

#[test]
fn what_validation_asks_depends_on_the_values() {
    let bulk = find("mpuke").unwrap().1;
    let unlimited = values("bulk", &[]);
    assert!((bulk.needs_flow_control)(&unlimited) && (bulk.endless)(&unlimited));
    assert_eq!((bulk.interval)(&unlimited), None);
    let given = [("interval", exponential(Duration::from_millis(5))), ("bytes", Value::Bytes(Bytes(100)))];
    let paced = values("bulk", &given);
    assert!(!(bulk.needs_flow_control)(&paced) && !(bulk.endless)(&paced));
    assert_eq!((bulk.interval)(&paced), Some(Duration::from_millis(5)));
    assert_eq!((bulk.max_message)(&paced), 100);
    let voice = find("voice").unwrap().1;
    let values = values("voice", &[("samples", Value::Integer(160))]);
    assert_eq!((voice.samples_per_packet)(&values), Some(160));
    assert_eq!((voice.interval)(&values), Some(Duration::from_millis(20)));
    let packetiser =
        |given: &[(&'static str, Value)]| (voice.packetiser)(&crate::testing::values("voice", given));
    assert_eq!(packetiser(&[]), Some(Packetiser { samples: 80, fifo: None, pauses: false }));
    let fifo = crate::testing::values("voice", &[("fifo", Value::Integer(640))]);
    assert_eq!(((voice.max_message)(&fifo), (voice.samples_per_packet)(&fifo)), (640, None));
    let interactive = find("ipuke").unwrap().1;
    let answer =
        |given: &[(&'static str, Value)]| (interactive.answer)(&crate::testing::values("ipuke", given));
    assert_eq!(answer(&[]), Answer::Echo);
    assert_eq!(answer(&[("answer", Value::Bytes(Bytes(4)))]), Answer::Bytes(4));
    assert_eq!((bulk.answer)(&unlimited), Answer::None);
}

fn open_loops() -> impl Strategy<Value = (&'static str, Vec<(&'static str, Value)>)> {
    let durations = (1_000_000u64..50_000_000).prop_flat_map(|mean| {
        prop_oneof![
            Just(Distribution::Constant(mean)),
            Just(Distribution::Exponential { mean }),
            Just(Distribution::Uniform { min: 0, max: 2 * mean }),
            Just(Distribution::Bivalue { first: 2 * mean, second: 0, probability: 0.5 }),
            Just(Distribution::Trace(vec![mean, 0, 3 * mean].into())),
        ]
        .prop_map(Value::Distribution)
    });
    let spurts =
        (1_000_000u64..300_000_000).prop_map(|mean| Value::Distribution(Distribution::Exponential { mean }));
    prop_oneof![
        (durations.clone(), 1u64..40).prop_map(|(interval, burst)| (
            "load",
            vec![("interval", interval), ("burst", Value::Integer(burst))]
        )),
        (durations, 1u64..100_000).prop_map(|(interval, bytes)| {
            ("bulk", vec![("interval", interval), ("bytes", Value::Bytes(Bytes(bytes)))])
        }),
        (8u64..4096).prop_map(|samples| ("voice", vec![("samples", Value::Integer(samples))])),
        (8u64..4096, spurts.clone(), spurts).prop_map(|(samples, talk, silence)| {
            ("voice", vec![("samples", Value::Integer(samples)), ("talk", talk), ("silence", silence)])
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The split property: when a source is asked changes nothing in what it sends.
    #[test]
    fn open_loops_send_the_same_however_they_are_called(
        (kind, given) in open_loops(),
        channels in 1u16..6,
        mut calls in prop::collection::vec(0u64..4_000_000_000, 0..20),
    ) {
        let stop = Time::from_nanos(3_000_000_000);
        let context = SourceContext { channels, stop, ..context() };
        let on_time = run(&mut *build(kind, &given, &context));
        prop_assert!(on_time.windows(2).all(|pair| pair[0].due <= pair[1].due));
        calls.sort_unstable();
        let mut late = Vec::new();
        let mut source = build(kind, &given, &context);
        let mut last = Time::ZERO;
        for now in calls.into_iter().map(Time::from_nanos).chain([stop]) {
            produce_until(&mut *source, now, &mut late);
            prop_assert!(source.next_due().is_none_or(|due| due > now && due >= last));
            last = source.next_due().unwrap_or(stop);
        }
        prop_assert_eq!(on_time, late);
    }

    /// Adding channels changes nothing for those that were there.
    #[test]
    fn channels_draw_from_streams_of_their_own((kind, given) in open_loops(), channels in 2u16..6) {
        let stop = Time::from_nanos(2_000_000_000);
        let alone = run(&mut *build(kind, &given, &SourceContext { stop, ..context() }));
        let among = run(&mut *build(kind, &given, &SourceContext { stop, channels, ..context() }));
        let first: Vec<Sent> = among.into_iter().filter(|sent| sent.channel == 0).collect();
        prop_assert_eq!(alone, first);
    }
}

#[test]
fn samples_are_numbers_from_minus_one_to_one() {
    let decoded = |coding, payload: &[u8]| {
        let format = AudioFormat { sample_rate: 8_000, coding, is_silent: false };
        let mut samples = Vec::new();
        format.decode(payload, &mut samples);
        assert_eq!(samples.len(), format.samples(payload.len()));
        samples
    };
    assert_eq!(decoded(Coding::MuLaw, &[0xFF, 0x80, 0x00]), [0.0, 32_124.0 / 32_768.0, -32_124.0 / 32_768.0]);
    for bytes in 1..=4 {
        let mut payload = vec![0; 2 * usize::from(bytes)];
        (payload[0], payload[usize::from(bytes)]) = (0x40, 0x80);
        payload.push(0); // not a whole sample, unless it is of one byte
        let samples = decoded(Coding::Pcm { bytes }, &payload);
        assert_eq!(samples[..2], [0.5, -1.0], "{bytes}");
    }
}
