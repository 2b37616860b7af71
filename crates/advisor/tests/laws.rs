//! What holds for any measurement.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use support::{idle, question, stereo};
use trunkline_advisor::{
    Choice, Evidence, Findings, Judgement, Load, Measured, PROTECTIONS, Probed, Trace, Transport, Use,
    advise, choose,
};
use trunkline_audio::pipeline::Protection;
use trunkline_core::{Duration, Ratio};

const US: fn(u64) -> Duration = Duration::from_micros;

/// Round trips of up to 60 ms, of which some are lost.
fn traces() -> impl Strategy<Value = Trace> {
    let round_trip = prop_oneof![9 => (1_000u64..60_000).prop_map(Some), 1 => Just(None)];
    vec(round_trip, 40..200).prop_map(|round_trips| trace(&round_trips))
}

fn trace(micros: &[Option<u64>]) -> Trace {
    Trace { round_trips: micros.iter().map(|round_trip| round_trip.map(US)).collect() }
}

fn evidence(trace: &Trace) -> Option<Evidence> {
    let fastest = *trace.round_trips.iter().flatten().min()?;
    Evidence::new(idle(Transport::UDP, stereo(128)), fastest, std::iter::once(trace))
}

fn judged(trace: &Trace, protection: Protection, depth: Duration) -> Option<Judgement> {
    Some(evidence(trace)?.protect(protection)?.at(depth))
}

fn chosen(purpose: Use, transport: Transport, trace: &Trace) -> Option<Choice> {
    let mut findings = Findings::default();
    findings.add(idle(transport, stereo(128)), Measured { trace: trace.clone(), bulk: None });
    choose(purpose, &question(&[transport]), &findings)
}

/// The same without one more of the packets, but never without the fastest.
fn with_one_more_lost(trace: &Trace, which: prop::sample::Index) -> Trace {
    let fastest = trace.round_trips.iter().flatten().min().copied();
    let mut worse = trace.clone();
    let places: Vec<usize> = (0..worse.round_trips.len())
        .filter(|place| worse.round_trips[*place].is_some() && worse.round_trips[*place] != fastest)
        .collect();
    if !places.is_empty() {
        worse.round_trips[places[which.index(places.len())]] = None;
    }
    worse
}

/// A fifteenth of 60 s is 4 s, which are 1500 blocks of 128 frames.
#[test]
fn what_was_measured_briefly_is_told_of_the_best_and_of_the_runner_up() {
    for (udp, tcp, [is_best_brief, is_runner_up_brief]) in
        [(1_600, 1_400, [false, true]), (1_400, 1_600, [true, false]), (1_400, 1_400, [true, true])]
    {
        let mut findings = Findings::default();
        for (transport, blocks, micros) in
            [(Transport::UDP, udp, 1_000), ("tcp".parse().unwrap(), tcp, 90_000)]
        {
            let trace = trace(&vec![Some(micros); blocks]);
            findings.add(idle(transport, stereo(128)), Measured { trace, bulk: None });
        }
        let question = question(&[Transport::UDP, "tcp".parse().unwrap()]);
        let probed = Probed { question, findings, took: Duration::from_secs(60), is_partial: false };
        let advice = advise("studio", &probed).unwrap();
        let rehearsal =
            advice.recommendations.iter().find(|one| one.choice.purpose == Use::Rehearsal).unwrap();
        let Choice { best, .. } = rehearsal.choice;
        assert_eq!(best.transport, Transport::UDP, "ten times faster");
        let (best, other) = (&rehearsal.why, rehearsal.runner_up_costs.as_ref().unwrap());
        let brief = "It was measured for 3733 ms only, which is too short to rely on";
        assert_eq!(best.contains(brief) && best.contains("`--budget`"), is_best_brief, "{best}");
        assert_eq!(other.contains(brief), is_runner_up_brief, "{other}");
    }
}

/// A round trip under load that grows at one end of its distribution only, and one whose 99th percentile is its slowest.
#[test]
fn only_what_grows_under_load_is_said_to_grow() {
    let udp = Transport::UDP;
    for (idle_trips, loaded_trips, told) in [
        (
            [45_000, 47_600],
            [90_000, 120_000],
            vec!["from 45.0 ms to 90.0 ms at the median", "from 47.6 ms to 120 ms at the 99th percentile"],
        ),
        ([47_600, 60_000], [46_200, 120_000], vec!["from 60.0 ms to 120 ms at the 99th percentile"]),
        ([45_000, 47_600], [46_200, 60_000], vec![]),
    ] {
        for blocks in [1_000, 150] {
            // One block in twenty is slow.
            let trips = |[usual, slow]: [u64; 2]| {
                let all: Vec<_> = (0..blocks).map(|n| Some(if n % 20 == 0 { slow } else { usual })).collect();
                Measured { trace: trace(&all), bulk: None }
            };
            let mut findings = Findings::default();
            let quiet = idle(udp, stereo(128));
            findings.add(quiet, trips(idle_trips));
            findings.add(quiet.under(Load::Bulk), trips(loaded_trips));
            let (question, took) = (question(&[udp]), Duration::from_secs(60));
            let advice = advise("studio", &Probed { question, findings, took, is_partial: false }).unwrap();
            let warning = advice.warnings.iter().find(|warning| warning.contains("bufferbloat"));
            let told: Vec<_> =
                told.iter().filter(|told| blocks > 200 || told.contains("median")).copied().collect();
            let expected = (!told.is_empty()).then(|| format!("grows {}:", told.join(" and ")));
            assert_eq!(warning.is_some(), expected.is_some(), "{warning:?}");
            if let (Some(warning), Some(expected)) = (warning, expected) {
                assert!(warning.contains(&expected), "{warning}");
            }
        }
    }
}

proptest! {
    #[test]
    fn a_deeper_playout_conceals_no_more(trace in traces(), shallow in 0u64..80_000, more in 0u64..80_000) {
        for protection in PROTECTIONS {
            let (Some(a), Some(b)) = (
                judged(&trace, protection, US(shallow)),
                judged(&trace, protection, US(shallow + more)),
            ) else { continue };
            prop_assert!(b.concealed.value() <= a.concealed.value());
            prop_assert!(b.late.value() <= a.late.value());
            prop_assert_eq!(a.lost.value(), b.lost.value());
            prop_assert_eq!(b.mouth_to_ear - a.mouth_to_ear, US(more));
        }
    }

    #[test]
    fn more_loss_conceals_no_less(trace in traces(), which: prop::sample::Index, depth in 0u64..80_000) {
        let worse = with_one_more_lost(&trace, which);
        for protection in PROTECTIONS {
            let (Some(a), Some(b)) =
                (judged(&trace, protection, US(depth)), judged(&worse, protection, US(depth))) else { continue };
            prop_assert!(b.concealed.value() >= a.concealed.value());
        }
    }

    #[test]
    fn more_loss_makes_no_recommendation_better(trace in traces(), which: prop::sample::Index) {
        let worse = with_one_more_lost(&trace, which);
        for transport in [Transport::UDP, Transport::TCP] {
            let choices = |purpose| chosen(purpose, transport, &trace).zip(chosen(purpose, transport, &worse));
            if let Some((a, b)) = choices(Use::Rehearsal) {
                prop_assert!(a.suffices || !b.suffices);
                // Of what is as good within half a millisecond the cheapest is taken.
                let ms = |choice: &Choice| choice.best.mouth_to_ear.as_millis_f64();
                prop_assert!(!b.suffices || ms(&b) >= ms(&a) - 0.5, "{a:?} {b:?}");
            }
            if let Some((a, b)) = choices(Use::Recording) {
                prop_assert!(a.suffices || !b.suffices);
            }
        }
    }

    /// Redundancy is no worse than none, at the depths at which it is there in time, of what all of them judge.
    #[test]
    fn repeated_packets_conceal_no_more_than_single_ones(trace in traces(), depth in 0u64..80_000) {
        // The last packets are not judged, since what would have repeated them was not measured.
        let shorter = Trace { round_trips: trace.round_trips[..trace.round_trips.len() - 2].to_vec() };
        let fastest = *trace.round_trips.iter().flatten().min().expect("some came back");
        let of = |trace: &Trace, protection| {
            let evidence = Evidence::new(idle(Transport::UDP, stereo(128)), fastest, std::iter::once(trace))?;
            Some(evidence.protect(protection)?.at(US(depth)).concealed.value())
        };
        if let (Some(bare), Some(repeated)) =
            (of(&shorter, Protection::None), of(&trace, Protection::Repeat(2)))
        {
            prop_assert!(repeated <= bare);
        }
    }

    #[test]
    fn what_is_recommended_keeps_its_promise(trace in traces()) {
        let bound = question(&[]).concealed.value();
        if let Some(choice) = chosen(Use::Rehearsal, Transport::UDP, &trace) {
            prop_assert_eq!(choice.suffices, choice.best.concealed.value() <= bound);
        }
        if let Some(choice) = chosen(Use::Recording, Transport::TCP, &trace) {
            prop_assert_eq!(choice.suffices, choice.best.concealed == Ratio::ZERO);
        }
        if let Some(choice) = chosen(Use::Telephony, Transport::UDP, &trace) {
            prop_assert!((1.0..=4.5).contains(&choice.best.mos));
        }
    }
}

const LOST: Option<u64> = None;

/// One packet in ten is lost, always alone: a parity packet after every two replaces it once both others are there.
#[test]
fn redundancy_is_judged_by_the_pattern_of_losses() {
    let scattered: Vec<Option<u64>> =
        (0..400).map(|n| if n % 10 == 3 { LOST } else { Some(2_000) }).collect();
    // As many are lost, in runs of ten.
    let bursty: Vec<Option<u64>> = (0..400).map(|n| if n % 100 < 10 { LOST } else { Some(2_000) }).collect();
    let concealed = |trace: &[Option<u64>], protection| {
        judged(&trace_of(trace), protection, Duration::from_millis(100)).unwrap().concealed.value()
    };
    let xor = Protection::Xor { data: 2 };
    for protection in [Protection::None, xor] {
        assert!((concealed(&bursty, protection) - 0.1).abs() < 0.02);
    }
    assert!((concealed(&scattered, Protection::None) - 0.1).abs() < 1e-9);
    assert_eq!(concealed(&scattered, xor), 0.0);
    assert_eq!(concealed(&scattered, Protection::Repeat(1)), 0.0);
    // Eight packets and four of parity bear four losses, wherever they are: of ten in a row not even this.
    let rs = Protection::ReedSolomon { data: 8, parity: 4 };
    assert!(concealed(&bursty, rs) > 0.05);
    assert_eq!(concealed(&scattered, rs), 0.0);
}

fn trace_of(micros: &[Option<u64>]) -> Trace {
    trace(micros)
}

/// By hand: 128 frames at 48 kHz last 2.667 ms. The second of three packets is lost.
#[test]
fn what_replaces_a_packet_has_to_come_in_time() {
    let one_lost = trace(&[Some(2_000), LOST, Some(2_000), Some(2_000)]);
    let block = stereo(128).interval();
    let concealed = |protection, beyond: Duration| {
        judged(&one_lost, protection, block + beyond).unwrap().concealed.value()
    };
    // Its copy comes with the next packet, one interval later.
    assert!(concealed(Protection::Repeat(1), block - US(1)) > 0.0);
    assert_eq!(concealed(Protection::Repeat(1), block), 0.0);
}

#[test]
fn nothing_is_said_of_nothing() {
    assert!(chosen(Use::Rehearsal, Transport::UDP, &Trace::default()).is_none());
    assert!(chosen(Use::Rehearsal, Transport::UDP, &trace(&[LOST; 50])).is_none());
    // Too short for any redundancy, but not for an answer.
    assert!(chosen(Use::Rehearsal, Transport::UDP, &trace(&[Some(2_000)])).is_some());
}
