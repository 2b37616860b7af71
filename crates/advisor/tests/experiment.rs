//! What is recommended can be tried as an experiment on the network that was measured.

mod support;

use support::{DSL, LAN, LOSSY, Simulated, question};
use trunkline_advisor::{Advice, Blocks, Question, Transport, Use, advise, experiment, probe};
use trunkline_core::Duration;
use trunkline_experiment::{Experiment, Point};

fn advice(link: &'static str, purpose: Use) -> Advice {
    let transports = [Transport::UDP, Transport::TCP];
    let question = Question { budget: Duration::from_secs(20), uses: vec![purpose], ..question(&transports) };
    let probed = probe(question, &mut Simulated::over(link), &());
    advise("studio.example", &probed).expect("something was measured")
}

fn read(advice: &Advice) -> (String, Experiment) {
    let text = experiment(advice).expect("something is recommended");
    let read =
        Experiment::parse(&text, "advice.toml", &()).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    (text, read)
}

fn point(experiment: &Experiment) -> &Point {
    experiment.points.first()
}

#[test]
fn the_link_is_the_network_that_was_measured() {
    for (link, delay) in [(LAN, 0.1e-3), (LOSSY, 5e-3), (DSL, 8e-3)] {
        let advice = advice(link, Use::Rehearsal);
        let (text, experiment) = read(&advice);
        let found = &point(&experiment).scenario.links[0].directions[0];
        let measured = advice.capacity.expect("the network was loaded").bits_per_second() as f64;
        let share = found.rate.bits_per_second() as f64 / measured;
        assert!((share - 1.0).abs() < 0.006, "three digits of {measured}: {text}");
        // The fastest block had to be sent, too.
        let behind = found.delay.as_secs_f64() - delay;
        assert!((0.0..3e-3).contains(&behind), "{text}");
    }
}

#[test]
fn the_flow_is_what_is_recommended() {
    for purpose in Use::ALL {
        let advice = advice(LOSSY, purpose);
        let (text, experiment) = read(&advice);
        let best = &advice.recommendations[0].choice.best;
        let flow = &point(&experiment).scenario.flows[0];
        assert_eq!(flow.meta.name, purpose.name());
        assert_eq!(flow.meta.transport, best.transport.name(), "{text}");
        assert_eq!(experiment.limits.len(), usize::from(purpose == Use::Rehearsal));
        assert!(text.contains("playout = \""), "{text}");
    }
    let text = read(&advice(LOSSY, Use::Telephony)).0;
    assert!(text.contains("source = { kind = \"voice\", samples = "), "{text}");
    // One packet in a hundred was lost on the way there, and one on the way back.
    let text = read(&advice(LOSSY, Use::Rehearsal)).0;
    assert!(text.contains("loss = \""), "{text}");
}

#[test]
fn every_way_to_send_that_can_be_recommended_is_a_valid_experiment() {
    let mut advice = advice(LAN, Use::Rehearsal);
    advice.host = "a \"strange\"\nhost\\".to_owned();
    for transport in Transport::all() {
        for (frames, channels, sample_bytes) in [(64, 1, 2), (512, 2, 3), (512, 64, 4), (512, 1024, 4)] {
            for capacity in [None, advice.capacity] {
                let mut advice = Advice { capacity, ..advice.clone() };
                let best = &mut advice.recommendations[0].choice.best;
                (best.transport, best.blocks) =
                    (transport, Blocks { sample_rate: 44_100, frames, channels, sample_bytes });
                read(&advice);
            }
        }
    }
    advice.recommendations.clear();
    assert_eq!(experiment(&advice), None);
}
