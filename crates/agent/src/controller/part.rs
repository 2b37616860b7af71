//! A part of a repetition as the controller sees it: which of its chunks are here, and how it has ended.

use trunkline_control::PartId;
use trunkline_control::message::{Chunk, Finished};
use trunkline_live::packed;
use trunkline_metrics::{DriverOutcome, FlowOutcome, Recorder};

/// A part that is measured, or collected.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) id: PartId,
    /// The index of the agent that keeps it.
    pub(crate) near: usize,
    /// The indices of its flows in the scenario.
    pub(crate) flows: Vec<usize>,
    /// The first chunk that is not here.
    pub(crate) next: u64,
    /// From where it was asked for last.
    asked: u64,
    end: Option<End>,
}

/// How a part has ended.
#[derive(Debug)]
struct End {
    /// How many chunks there are; those that are here, if nobody knows.
    chunks: u64,
    outcome: Option<DriverOutcome>,
    /// Why it is not whole.
    failure: Option<String>,
}

/// What to do about a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nothing: it was recorded, or was here before.
    Done,
    /// Ask for the chunks from this one again: some are missing before it.
    AskFrom(u64),
}

impl Part {
    /// Nothing of it is here yet.
    pub(crate) fn new(id: PartId, near: usize, flows: Vec<usize>) -> Part {
        Part { id, near, flows, next: 0, asked: 0, end: None }
    }

    /// Records a chunk, once and in its turn.
    ///
    /// # Errors
    /// If it cannot be read: then the part has failed.
    pub(crate) fn take(
        &mut self,
        chunk: &Chunk,
        recorder: &mut dyn Recorder,
    ) -> Result<Taken, packed::Damaged> {
        if chunk.number < self.next || self.is_complete() {
            return Ok(Taken::Done);
        }
        if chunk.number > self.next {
            // What follows comes again too.
            let asks = self.asked != self.next || self.next == 0;
            self.asked = self.next;
            return Ok(if asks { Taken::AskFrom(self.next) } else { Taken::Done });
        }
        self.next += 1;
        packed::unpack(&chunk.data, recorder).map(|_| Taken::Done)
    }

    /// It has ended as it should, or because it was told to.
    pub(crate) fn finish(&mut self, finished: &Finished) {
        let outcome = serde_json::from_str(&finished.outcome).ok().map(|mut outcome: DriverOutcome| {
            for (flow, error) in outcome.flows.iter_mut().zip(&finished.clock_errors) {
                flow.clock_error = flow.clock_error.max(*error);
            }
            outcome
        });
        let failure = outcome.is_none().then(|| "its report of the measurement is malformed".to_owned());
        self.end.get_or_insert(End { chunks: finished.chunks, outcome, failure });
    }

    /// It has failed, and this is what there is of it.
    pub(crate) fn fail(&mut self, why: String, outcome: Option<&str>, chunks: u64) {
        let outcome = outcome.and_then(|outcome| serde_json::from_str(outcome).ok());
        self.end.get_or_insert(End { chunks, outcome, failure: Some(why) });
    }

    /// Nothing more is expected of it: what is here is what there is.
    pub(crate) fn give_up(&mut self, why: String) {
        let outcome = self.end.take().and_then(|end| end.outcome);
        self.end = Some(End { chunks: self.next, outcome, failure: Some(why) });
    }

    /// Whether it has ended, whether or not all of it is here.
    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether all is here that will come.
    pub(crate) fn is_complete(&self) -> bool {
        self.end.as_ref().is_some_and(|end| self.next >= end.chunks)
    }

    /// Why it is not whole, if it is not.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.end.as_ref()?.failure.as_deref()
    }
}

/// What the parts have come to as one repetition of so many flows.
pub(crate) fn together(flows: usize, parts: &[Part]) -> DriverOutcome {
    let mut whole = DriverOutcome { flows: vec![FlowOutcome::default(); flows], ..DriverOutcome::default() };
    for part in parts {
        let Some(End { outcome: Some(outcome), failure, .. }) = &part.end else {
            whole.partial = true;
            continue;
        };
        whole.partial |= outcome.partial || failure.is_some();
        whole.duration = whole.duration.max(outcome.duration);
        whole.cpu = match (whole.cpu, outcome.cpu) {
            (Some(sum), Some(more)) => Some(sum + more),
            (one, other) => one.or(other),
        };
        // The machine that stood still most says how far the whole can be trusted.
        let share =
            |outcome: &DriverOutcome| outcome.stalls.as_ref().map_or(-1.0, |stalls| stalls.share.value());
        if share(outcome) > share(&whole) {
            whole.stalls.clone_from(&outcome.stalls);
        }
        for (flow, outcome) in part.flows.iter().zip(&outcome.flows) {
            whole.flows[*flow] = outcome.clone();
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use trunkline_core::{Bytes, Duration, FlowId, Time};
    use trunkline_live::packed::Packer;
    use trunkline_metrics::Observation;

    use super::*;

    #[derive(Default)]
    struct Log(Vec<u64>);

    impl Recorder for Log {
        fn record(&mut self, at: Time, _: FlowId, _: Observation) {
            self.0.push(at.as_nanos());
        }
    }

    fn part() -> Part {
        let id = PartId { run: "00".repeat(16), point: 0, repetition: 0, pair: 0, attempt: 0 };
        Part::new(id, 0, vec![0])
    }

    fn chunk(number: u64) -> Chunk {
        let mut packer = Packer::new();
        packer.record(Time::from_nanos(number), FlowId(0), Observation::Stray { bytes: Bytes(1) });
        Chunk { part: part().id, number, data: packer.take() }
    }

    #[test]
    fn every_chunk_is_recorded_once_whatever_is_sent_again() {
        let (mut part, mut log) = (part(), Log::default());
        let mut take = |number| part.take(&chunk(number), &mut log).unwrap();
        assert_eq!(take(0), Taken::Done);
        assert_eq!(take(1), Taken::Done);
        // After a cut: from one that is here, and with a gap.
        assert_eq!(take(0), Taken::Done);
        assert_eq!(take(4), Taken::AskFrom(2));
        assert_eq!(take(5), Taken::Done, "it was asked for");
        for number in 2..=5 {
            assert_eq!(take(number), Taken::Done);
        }
        assert_eq!(log.0, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_part_is_complete_when_its_last_chunk_is_here() {
        let (mut part, mut log) = (part(), Log::default());
        let outcome = DriverOutcome { duration: Duration::from_secs(3), ..DriverOutcome::default() };
        let outcome = serde_json::to_string(&outcome).unwrap();
        part.finish(&Finished { part: part.id.clone(), outcome, clock_errors: Vec::new(), chunks: 2 });
        part.take(&chunk(0), &mut log).unwrap();
        assert!(part.has_ended() && !part.is_complete());
        part.take(&chunk(1), &mut log).unwrap();
        assert!(part.is_complete() && part.failure().is_none());
        let whole = together(1, &[part]);
        assert_eq!((whole.duration, whole.partial), (Duration::from_secs(3), false));
    }

    #[test]
    fn what_is_lost_makes_the_repetition_partial_and_nothing_else() {
        let (mut lost, mut whole) = (part(), part());
        whole.flows = vec![1];
        let flow = FlowOutcome { clock_error: Some(Duration::from_micros(7)), ..FlowOutcome::default() };
        let outcome = DriverOutcome { flows: vec![flow.clone()], ..DriverOutcome::default() };
        let outcome = serde_json::to_string(&outcome).unwrap();
        whole.finish(&Finished { part: whole.id.clone(), outcome, clock_errors: vec![None], chunks: 0 });
        lost.give_up("its agent did not come back".to_owned());
        let together = together(2, &[lost, whole]);
        assert!(together.partial);
        assert_eq!(together.flows, [FlowOutcome::default(), flow]);
    }
}
