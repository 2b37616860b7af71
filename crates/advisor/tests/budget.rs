//! The budget of time is kept, whatever hangs.

mod support;

use std::cell::Cell;

use support::{DSL, LAN, LOSSY, Simulated, question, transport};
use trunkline_advisor::{
    Load, Measured, Observer, Prober, Question, Stage, Step, Trace, Transport, Use, advise, probe,
};
use trunkline_core::{Duration, Time};

fn within(budget: Duration, hanging: &[Transport]) -> (trunkline_advisor::Probed, Simulated) {
    let mut prober = Simulated { hanging: hanging.to_vec(), ..Simulated::over(DSL) };
    let transports = [Transport::UDP, Transport::TCP, transport("quic"), transport("sctp")];
    let probed = probe(Question { budget, ..question(&transports) }, &mut prober, &());
    assert!(probed.took <= budget, "{} of {budget}", probed.took);
    (probed, prober)
}

#[test]
fn any_budget_is_kept_and_used() {
    for seconds in [1, 2, 5, 15] {
        let budget = Duration::from_secs(seconds);
        let (probed, _) = within(budget, &[]);
        assert!(probed.took >= budget / 2, "{} of {budget}", probed.took);
        assert!(advise("studio", &probed).is_some(), "{budget}");
    }
}

#[test]
fn connections_that_hang_cost_what_they_may_and_are_tried_once() {
    let (probed, prober) = within(Duration::from_secs(30), &[Transport::TCP, transport("quic")]);
    for hanging in [Transport::TCP, transport("quic")] {
        assert_eq!(prober.steps.iter().filter(|step| step.configuration.transport == hanging).count(), 1);
        assert!(probed.findings.failed().any(|(transport, _)| transport == hanging));
    }
    let advice = advise("studio", &probed).expect("others were measured");
    assert_eq!(advice.failed.len(), 2);
    assert!(advice.recommendations.iter().all(|one| one.choice.best.transport != Transport::TCP));
}

#[test]
fn where_everything_hangs_there_is_no_advice() {
    let all = [Transport::UDP, Transport::TCP, transport("quic"), transport("sctp")];
    let (probed, prober) = within(Duration::from_secs(30), &all);
    assert!(advise("studio", &probed).is_none());
    assert_eq!(prober.steps.len(), all.len());
}

/// Takes what time it likes after a step's end, as a machine may that is busy.
struct Slow(Simulated);

impl Prober for Slow {
    fn now(&self) -> Time {
        self.0.now()
    }
    fn measure(&mut self, step: &Step, observer: &dyn Observer) -> Result<Measured, String> {
        let measured = self.0.measure(step, observer);
        self.0.now = step.until;
        measured
    }
}

#[test]
fn steps_that_take_all_they_may_keep_the_budget_too() {
    let budget = Duration::from_secs(20);
    let transports = [Transport::UDP, Transport::TCP];
    let asked = Question { budget, ..question(&transports) };
    let probed = probe(asked, &mut Slow(Simulated::over(LOSSY)), &());
    assert!(probed.took <= budget, "{}", probed.took);
    assert!(advise("studio", &probed).is_some());
}

/// Stops after so many steps.
struct After(Cell<u32>);

impl Observer for After {
    fn begins(&self, _: &Step, _: Duration) {
        self.0.set(self.0.get().saturating_sub(1));
    }
    fn is_stopped(&self) -> bool {
        self.0.get() == 0
    }
}

#[test]
fn advice_from_what_was_measured_until_it_was_stopped() {
    let asked = question(&[Transport::UDP, Transport::TCP, transport("quic")]);
    let probed = probe(asked, &mut Simulated::over(LOSSY), &After(Cell::new(2)));
    assert!(probed.is_partial && probed.took < Duration::from_secs(20));
    let advice = advise("studio", &probed).expect("two transports were measured");
    assert!(
        advice.warnings.iter().any(|warning| warning.starts_with("Stopped after")),
        "{:?}",
        advice.warnings
    );
    assert_eq!(advice.recommendations.len(), Use::ALL.len());
}

#[test]
fn the_most_telling_comes_first_and_no_load_is_made_unasked() {
    let mut prober = Simulated::over(LAN);
    let asked = Question {
        load: false,
        uses: vec![Use::Rehearsal],
        budget: Duration::from_secs(30),
        ..question(&[Transport::UDP, Transport::TCP])
    };
    probe(asked, &mut prober, &());
    assert!(prober.steps.iter().all(|step| step.configuration.load == Load::Idle));
    assert!(prober.steps.iter().all(|step| !step.configuration.blocks.is_telephone()));
    let first: Vec<Transport> = prober.steps[..2].iter().map(|step| step.configuration.transport).collect();
    assert_eq!(first, [Transport::UDP, Transport::TCP]);
    let refined = prober.steps.iter().filter(|step| step.stage == Stage::Refinement);
    assert!(refined.count() > 5, "what looks best is measured on and on");
}

#[test]
fn a_transport_that_answers_nothing_has_failed() {
    struct Silent;
    impl Prober for Silent {
        fn now(&self) -> Time {
            Time::ZERO
        }
        fn measure(&mut self, _: &Step, _: &dyn Observer) -> Result<Measured, String> {
            Ok(Measured { trace: Trace { round_trips: vec![None; 9] }, bulk: None })
        }
    }
    let probed = probe(question(&[Transport::UDP]), &mut Silent, &());
    assert_eq!(probed.findings.failed().collect::<Vec<_>>(), [(Transport::UDP, "no packet came back")]);
    assert!(advise("studio", &probed).is_none());
}
