//! Carries a plan out.

use trunkline_core::{Duration, Time};

use crate::findings::Findings;
use crate::plan::{Plan, Question, Step};
use crate::trace::Measured;

/// Whoever can measure: real sockets, or the simulator.
pub trait Prober {
    /// The time, which never decreases.
    fn now(&self) -> Time;

    /// Measures `step`, and is back by its [`until`](Step::until) whatever happens. Once `observer` has
    /// [stopped](Observer::is_stopped) it is back at once, with what came back until then.
    ///
    /// # Errors
    /// Why it could not be measured, in one clause.
    fn measure(&mut self, step: &Step, observer: &dyn Observer) -> Result<Measured, String>;
}

/// Whoever waits for the advice.
pub trait Observer {
    /// A step begins, with so much of the budget left.
    fn begins(&self, _step: &Step, _left: Duration) {}

    /// A step was measured.
    fn measured(&self, _step: &Step, _found: &Measured) {}

    /// A step could not be made.
    fn failed(&self, _step: &Step, _why: &str) {}

    /// Whether to make do with what was measured so far.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Nobody.
impl Observer for () {}

/// What probing found.
#[derive(Clone, Debug)]
pub struct Probed {
    /// What was asked.
    pub question: Question,
    /// The findings.
    pub findings: Findings,
    /// How long it took.
    pub took: Duration,
    /// Whether the observer stopped it.
    pub is_partial: bool,
}

/// Measures as much as the budget allows.
pub fn probe(question: Question, prober: &mut dyn Prober, observer: &dyn Observer) -> Probed {
    let begun = prober.now();
    let mut plan = Plan::new(question, begun);
    while !observer.is_stopped()
        && let Some(step) = plan.next(prober.now())
    {
        observer.begins(&step, plan.left(prober.now()));
        let found = prober.measure(&step, observer);
        let is_empty = |measured: &Measured| measured.trace.round_trips.iter().all(Option::is_none);
        if observer.is_stopped() && found.as_ref().map_or(true, is_empty) {
            break; // it was cut short, which says nothing of the network
        }
        match &found {
            Ok(measured) => observer.measured(&step, measured),
            Err(why) => observer.failed(&step, why),
        }
        plan.found(&step, found, prober.now());
    }
    Probed {
        question: plan.question().clone(),
        findings: plan.findings().clone(),
        took: prober.now().since(begun),
        is_partial: observer.is_stopped(),
    }
}
