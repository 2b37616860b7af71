//! Over networks that are known, the advice is the right one.

mod support;

use support::{DSL, LAN, LOSSY, Simulated, WIFI, idle, question, simulate, stereo, transport};
use trunkline_advisor::{
    Advice, Blocks, Configuration, Findings, Judgement, Load, PROTECTIONS, Probed, Question, Recommendation,
    SIZES, Stage, Step, Transport, Use, advise, choose, probe,
};
use trunkline_core::{Duration, Ratio, Time};

/// What is simulated in reasonable time, and not hopeless from the beginning.
const TRANSPORTS: [&str; 5] = ["udp", "dccp", "tcp", "sctp", "quic"];

fn probed(link: &'static str, seconds: u64) -> (Advice, Probed) {
    let question = Question { budget: Duration::from_secs(seconds), ..question(&TRANSPORTS.map(transport)) };
    let probed = probe(question, &mut Simulated::over(link), &());
    assert!(probed.took <= probed.question.budget, "{}", probed.took);
    (advise("studio", &probed).expect("something was measured"), probed)
}

fn of(advice: &Advice, purpose: Use) -> &Recommendation {
    advice
        .recommendations
        .iter()
        .find(|one| one.choice.purpose == purpose)
        .expect("a recommendation for each use")
}

fn warns(advice: &Advice, of: &str) -> bool {
    advice.warnings.iter().any(|warning| warning.contains(of))
}

/// Everything that could be recommended for music, each measured for longer than the budget allows.
fn truth(link: &str) -> Findings {
    let mut findings = Findings::default();
    for (seed, transport) in (1_000..).zip(TRANSPORTS.map(transport)) {
        for frames in SIZES {
            let step = Step {
                configuration: idle(transport, stereo(frames)),
                stage: Stage::Refinement,
                settling: Duration::ZERO,
                lasting: Duration::from_secs(8),
                until: Time::MAX,
            };
            findings.add(step.configuration, simulate(link, &step, seed).expect("it can be simulated"));
        }
    }
    findings
}

/// What is recommended, as it would have been in truth.
fn in_truth(judgement: &Judgement, truth: &Findings) -> Judgement {
    let evidence = truth.evidence(&idle(judgement.transport, judgement.blocks)).expect("all was measured");
    evidence.protect(judgement.protection).expect("long enough").at(judgement.depth)
}

#[track_caller]
fn assert_nearly_best(link: &'static str, advice: &Advice) {
    let truth = truth(link);
    let question = question(&TRANSPORTS.map(transport));
    let rehearsal = in_truth(&of(advice, Use::Rehearsal).choice.best, &truth);
    let best = choose(Use::Rehearsal, &question, &truth).expect("all was measured").best;
    let bound = question.concealed.value();
    assert!(rehearsal.concealed.value() <= 3.0 * bound, "{rehearsal:?} instead of {best:?}");
    let ms = |judgement: &Judgement| judgement.mouth_to_ear.as_millis_f64();
    assert!(ms(&rehearsal) <= 1.25 * ms(&best) + 2.0, "{rehearsal:?} instead of {best:?}");
    let recording = in_truth(&of(advice, Use::Recording).choice.best, &truth);
    assert!(recording.concealed.value() < 0.01, "{recording:#?}");
}

#[test]
fn over_a_quiet_lan_the_smallest_blocks_go_bare() {
    let (advice, _) = probed(LAN, 20);
    let best = of(&advice, Use::Rehearsal).choice.best;
    assert_eq!((best.transport, best.blocks, best.protection), (Transport::UDP, stereo(64), PROTECTIONS[0]));
    // A block of each sound card, one of playout, and less than a millisecond for the network.
    assert!(best.mouth_to_ear > Duration::from_millis(4) && best.mouth_to_ear < Duration::from_millis(5));
    let recording = of(&advice, Use::Recording).choice;
    assert!(recording.suffices && recording.best.transport.is_reliable());
    assert!(of(&advice, Use::Telephony).choice.best.mos > 4.3);
    assert!(!warns(&advice, "jitter") && !warns(&advice, "missing"), "{:?}", advice.warnings);
}

#[test]
fn outages_of_wifi_are_told_and_a_recording_outlasts_them() {
    let (advice, _) = probed(WIFI, 60);
    let recording = of(&advice, Use::Recording).choice;
    assert!(recording.suffices && recording.best.transport.is_reliable(), "{recording:?}");
    // An outage shows in some twentieth of the blocks: playout has to outlast it.
    let rehearsal = of(&advice, Use::Rehearsal).choice.best;
    assert!(rehearsal.depth > Duration::from_millis(15) && rehearsal.depth < Duration::from_millis(40));
    assert!(warns(&advice, "jitter"), "{:?}", advice.warnings);
    assert_nearly_best(WIFI, &advice);
}

#[test]
fn single_losses_are_worth_redundancy() {
    let (advice, _) = probed(LOSSY, 60);
    let best = of(&advice, Use::Rehearsal).choice.best;
    assert!(!best.transport.is_reliable() && best.protection != PROTECTIONS[0], "{best:?}");
    // Sent bare, more would be lost than a rehearsal bears.
    assert!(best.lost.value() > 0.005 && best.concealed.value() <= 0.005);
    assert!(of(&advice, Use::Recording).choice.best.transport.is_reliable());
    assert_nearly_best(LOSSY, &advice);
}

#[test]
fn a_queue_that_fills_up_is_told() {
    let (advice, _) = probed(DSL, 30);
    assert!(warns(&advice, "bufferbloat"), "{:?}", advice.warnings);
    assert!(warns(&advice, "does not prioritise"), "{:?}", advice.warnings);
    let rehearsal = of(&advice, Use::Rehearsal);
    let loaded = rehearsal.loaded.expect("the best is measured under load");
    assert!(loaded.concealed.value() > 0.5 && rehearsal.choice.best.concealed == Ratio::ZERO);
    assert!(advice.capacity.expect("there was load").bits_per_second() < 50_000_000);
    assert_nearly_best(DSL, &advice);
}

/// Counted again from the round trips, without any of the code that judges.
#[test]
fn the_numbers_are_those_of_the_samples() {
    let (advice, probed) = probed(WIFI, 20);
    for recommendation in &advice.recommendations {
        for judgement in
            [Some(recommendation.choice.best), recommendation.choice.runner_up].into_iter().flatten()
        {
            let configuration = idle(judgement.transport, judgement.blocks);
            let round_trips: Vec<Option<Duration>> =
                probed.findings.traces(&configuration).flat_map(|trace| trace.round_trips.clone()).collect();
            let fastest = judgement.stages.network * 2;
            // The sound card asks for a block at a time.
            let block = judgement.blocks.interval().min(Duration::from_nanos(512 * 1_000_000_000 / 48_000));
            let latest = fastest + judgement.depth.saturating_sub(block);
            let count = round_trips.len() as f64;
            let lost = round_trips.iter().filter(|round_trip| round_trip.is_none()).count() as f64;
            // Half of an odd number of nanoseconds is rounded.
            let late =
                round_trips.iter().flatten().filter(|one| **one > latest + Duration::from_nanos(1)).count()
                    as f64;
            assert_eq!(judgement.measured as f64, count);
            assert_eq!(judgement.lost.value(), lost / count);
            assert_eq!(judgement.late.value(), late / count);
            if judgement.protection == PROTECTIONS[0] {
                assert!((judgement.concealed.value() - (lost + late) / count).abs() < 1e-12);
            }
            let Blocks { frames, sample_rate, .. } = judgement.blocks;
            let seconds = f64::from(frames) / f64::from(sample_rate);
            let told = judgement.stages.capture + judgement.stages.block;
            // A telephone block is resampled, and waits for another block of the card.
            let waiting = if judgement.blocks.is_telephone() { seconds } else { 0.0 };
            let gathered = seconds + waiting;
            assert!((told.as_secs_f64() - gathered).abs() < 1e-8, "{told}, expected {gathered} s");
            let total =
                gathered + fastest.as_secs_f64() / 2.0 + judgement.depth.as_secs_f64() + block.as_secs_f64();
            assert!((judgement.mouth_to_ear.as_secs_f64() - total).abs() < 1e-8);
        }
    }
}

#[test]
fn bulk_transfers_reach_no_more_than_their_link_carries() {
    let step = Step {
        configuration: Configuration { load: Load::Bulk, ..idle(Transport::UDP, stereo(128)) },
        stage: Stage::Load,
        settling: Duration::from_secs(1),
        lasting: Duration::from_secs(1),
        until: Time::MAX,
    };
    let link = "rate = \"30 Mbit/s\"\ndelay = \"5 ms\"\n";
    let bulk = simulate(link, &step, 1).expect("it can be simulated").bulk.expect("it is loaded");
    for rate in [bulk.there, bulk.back] {
        assert!((1_000_000..30_000_000).contains(&rate.bits_per_second()), "{rate}");
    }
}
