//! The near end's view of the far end, and all that is observed on its way to the recorder.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::ScopedJoinHandle;

use trunkline_core::{Duration, Time};
use trunkline_experiment::{Progress, Scenario, Supervisor};
use trunkline_io::{MonotonicClock, clock};
use trunkline_metrics::clocks::Turning;

use crate::collect::Collector;
use crate::error::LiveError;
use crate::events::Input;
use crate::link::Link;
use crate::near::Common;
use crate::options::{FarEnd, LiveOptions};
use crate::part::Gate;
use crate::place::Place;
use crate::protocol::{Bye, FromFar, Ready, ToFar};
use crate::relation::Relation;
use crate::setup::Terms;
use crate::start::{Agreed, Start};
use crate::threads::{Crew, Left};

/// With whom a session has its begin and its end in common.
#[derive(Clone, Copy)]
pub(crate) struct Company<'s> {
    /// The other sessions of this process.
    pub(crate) start: &'s Start,
    /// Parts elsewhere: then they decide.
    pub(crate) gate: Option<&'s dyn Gate>,
}

/// The near end's view of the far end.
pub(crate) struct Session {
    /// Dropped first, however the run ends: a thread that waits for room in it would never let the far end go.
    incoming: Receiver<Input>,
    pub(crate) inbox: SyncSender<Input>,
    link: Link,
    patience: Duration,
    /// Where the far end has a clock of its own.
    relation: Option<Relation>,
}

/// How a run ended.
pub(crate) struct End {
    pub(crate) at: Time,
    pub(crate) partial: bool,
    /// When the sources were over with which the sending ends, if they were.
    pub(crate) sent_all: Option<Time>,
    /// The far end was lost: with its own reason, if it gave one.
    pub(crate) lost: Option<Option<String>>,
    /// A clock has stepped, so far.
    pub(crate) jumped: Option<Duration>,
    pub(crate) bye: Option<Bye>,
}

impl End {
    fn new() -> End {
        End { at: Time::ZERO, partial: false, sent_all: None, lost: None, jumped: None, bye: None }
    }

    fn is_cut_short(&self) -> bool {
        self.lost.is_some() || self.jumped.is_some()
    }
}

impl Session {
    /// Starts the far end.
    pub(crate) fn start(options: &LiveOptions, far: &dyn Place) -> Result<Session, LiveError> {
        let (inbox, incoming) = sync_channel(1024);
        let link = Link::start(&options.far_end, far, inbox.clone())?;
        let has_its_clock = matches!(options.far_end, FarEnd::Channel(_));
        let relation = has_its_clock.then(|| Relation::new(Turning::of(clock::IS_FREE)));
        Ok(Session { link, inbox, incoming, patience: options.patience, relation })
    }

    /// Tells the far end the terms and waits until its sockets are open.
    pub(crate) fn open(&mut self, terms: &Terms) -> Result<Ready, LiveError> {
        self.link.say(&ToFar::Open(Box::new(terms.open.clone())));
        loop {
            if let FromFar::Ready(ready) = self.hear("opening its sockets")? {
                if self.relation.is_some() {
                    self.link.ask()?;
                }
                return Ok(ready);
            }
        }
    }

    /// Agrees on an epoch with the other sessions of the run, and tells it to the far end.
    pub(crate) fn synchronise(&mut self, company: Company<'_>) -> Result<MonotonicClock, LiveError> {
        if let Some(gate) = company.gate {
            return self.pass(company.start, gate);
        }
        let mut agreed = None;
        loop {
            match (company.start.meet(agreed).ok_or(LiveError::Abandoned)?, agreed) {
                (Agreed::Begin, Some(clock)) => return Ok(clock),
                (Agreed::Begin, None) => {}
                (Agreed::On(clock), _) => {
                    self.tell_start(company.start, clock)?;
                    agreed = Some(clock);
                }
            }
        }
    }

    /// Waits until somebody outside says when it begins, and tells that to the far end.
    fn pass(&mut self, start: &Start, gate: &dyn Gate) -> Result<MonotonicClock, LiveError> {
        while self.relation.as_ref().is_some_and(|relation| !relation.is_known()) {
            self.hear("synchronising the clocks")?;
        }
        gate.ready();
        let epoch = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.begin());
            while !waiting.is_finished() {
                match self.incoming.recv_timeout(SHORT.to_std()) {
                    Ok(input) => _ = self.heard(input, "waiting for the start")?,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            waiting.join().unwrap_or(None).ok_or(LiveError::Abandoned)
        })?;
        let clock = MonotonicClock::with_epoch(epoch);
        self.tell_start(start, clock)?;
        Ok(clock)
    }

    fn tell_start(&mut self, start: &Start, clock: MonotonicClock) -> Result<(), LiveError> {
        start.epoch.store(clock.epoch(), Ordering::Relaxed);
        let epoch = self.relation.as_mut().map_or(clock.epoch(), |relation| relation.begin(clock.epoch()));
        self.link.say(&ToFar::Start(epoch));
        while !matches!(self.hear("starting the clock")?, FromFar::Started) {}
        Ok(())
    }

    /// The next thing that the far end says during the set-up.
    fn hear(&mut self, step: &'static str) -> Result<FromFar, LiveError> {
        match self.incoming.recv_timeout(self.patience.to_std()) {
            Ok(input) => self.heard(input, step),
            Err(_) => Err(LiveError::NoAnswer { patience: self.patience, step }),
        }
    }

    fn heard(&mut self, input: Input, step: &'static str) -> Result<FromFar, LiveError> {
        let Input::Far { heard, said } = input else {
            return Err(LiveError::Protocol("observations before the start".to_owned()));
        };
        match said {
            Ok(FromFar::Failed(failure)) => Err(failure.into()),
            Ok(FromFar::Time(reply)) => {
                if let Some(relation) = &mut self.relation {
                    relation
                        .exchanged(reply, heard)
                        .map_err(|jump| LiveError::ClockJumped { by: jump.by, outcome: Box::default() })?;
                }
                Ok(FromFar::Time(reply))
            }
            Ok(frame) => Ok(frame),
            Err(reason) => {
                let ended = self.link.close();
                let reason = reason.map_or(ended.clone(), |reason| format!("{ended}: {reason}"));
                Err(LiveError::FarEndLost {
                    reason: format!("{reason}, while {step}"),
                    outcome: Box::default(),
                })
            }
        }
    }

    /// Passes observations to the recorder until the run is at its end.
    pub(crate) fn attend(
        &mut self,
        scenario: &Scenario,
        terms: &Terms,
        common: &Common<'_>,
        collector: &mut Collector<'_>,
        supervisor: &mut dyn Supervisor,
        gate: Option<&dyn Gate>,
    ) -> End {
        let mut stop = Time::ZERO + scenario.duration;
        let mut deadline = stop + scenario.drain;
        let mut end = End::new();
        let mut senders = terms.senders;
        let mut told = Time::ZERO;
        let mut is_over_told = false;
        let mut is_measured = false;
        loop {
            let input = self.incoming.recv_timeout(STEP.to_std());
            if let Ok(Input::Departures { until: Time::MAX, .. }) = input {
                senders = senders.saturating_sub(1);
            }
            if let Ok(input) = input {
                self.take(&mut end, input, terms, collector);
            }
            self.look_after_far_end(&mut end);
            let now = common.clock.now();
            if !end.partial && now.since(told) >= STEP {
                told = now;
                if supervisor.progress(now.min(deadline).since(Time::ZERO)) == Progress::Stop {
                    common.stage.stop();
                    end.partial = true;
                    end.at = now;
                    deadline = deadline.min(now + LAST_CALL);
                }
            }
            let all_are_over = common.stage.all_are_over();
            if let Some(gate) = gate
                && all_are_over
                && !is_over_told
            {
                is_over_told = true;
                gate.sources_over();
            }
            let is_to_end = all_are_over || gate.is_some_and(Gate::end_sending);
            if now < stop && !end.partial && is_to_end {
                common.stage.stop();
                end.sent_all = Some(now);
                collector.end_measurement(now);
                stop = now;
                deadline = now + scenario.drain;
            }
            if !is_measured && (now >= stop || end.partial || end.is_cut_short()) {
                is_measured = true;
                supervisor.measured(now.since(Time::ZERO));
            }
            let complete = senders == 0 && (now >= stop || end.partial) && collector.is_all_back();
            if end.is_cut_short() || now >= deadline || complete {
                if !end.partial || end.is_cut_short() {
                    end.at = now;
                }
                end.partial |= end.is_cut_short();
                return end;
            }
        }
    }

    /// A connection to another host may be gone without a word.
    fn look_after_far_end(&self, end: &mut End) {
        let silent = |relation: &Relation| clock::raw_now().saturating_sub(relation.returned());
        if self.relation.as_ref().is_some_and(|relation| silent(relation) > self.patience.as_nanos()) {
            end.lost.get_or_insert_with(|| Some(self.silence()));
        }
    }

    fn silence(&self) -> String {
        format!("it has not reported for {}", self.patience)
    }

    /// Tells the far end that the run is over, and takes what it still has to report.
    pub(crate) fn finish(&mut self, mut end: End, terms: &Terms, collector: &mut Collector<'_>) -> End {
        if end.lost.is_none() {
            self.link.say(&ToFar::Finish);
        }
        while end.bye.is_none() && end.lost.is_none() {
            match self.incoming.recv_timeout(self.patience.to_std()) {
                Ok(input) => self.take(&mut end, input, terms, collector),
                Err(_) => end.lost = Some(Some(self.silence())),
            }
            self.look_after_far_end(&mut end);
        }
        // The last reports wait for an exchange of their own, and for one that meets no queue of ours any more.
        let until = clock::raw_now() + SETTLING.as_nanos();
        let is_done = |relation: &Relation| relation.is_settled() && relation.is_calm();
        while !end.is_cut_short() && !self.relation.as_ref().is_none_or(is_done) && clock::raw_now() < until {
            if let Ok(input) = self.incoming.recv_timeout(SHORT.to_std()) {
                self.take(&mut end, input, terms, collector);
            }
        }
        self.settle(true, &mut end, terms, collector);
        end.partial |= end.is_cut_short();
        end
    }

    /// Waits for the threads, which have been told to end, and takes what they still have.
    pub(crate) fn gather(
        &mut self,
        terms: &Terms,
        crew: Crew<'_, '_>,
        collector: &mut Collector<'_>,
    ) -> Vec<Left> {
        // What the far end says now changes nothing any more.
        let mut end = End::new();
        let short = core::time::Duration::from_millis(1);
        loop {
            let ended = crew.threads.iter().all(ScopedJoinHandle::is_finished);
            match self.incoming.recv_timeout(short) {
                Ok(input) => self.take(&mut end, input, terms, collector),
                Err(_) if ended => break,
                Err(_) => {}
            }
        }
        self.settle(true, &mut end, terms, collector);
        crew.threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    }

    /// How far arrivals at the far end may be from the truth, where it has a clock of its own.
    pub(crate) fn clock_error(&self) -> Option<Duration> {
        self.relation.as_ref().and_then(Relation::bound)
    }

    /// Ends the far end and says how it ended.
    pub(crate) fn close(self) -> String {
        let Session { mut link, incoming, .. } = self;
        drop(incoming);
        link.close()
    }

    /// Passes one input on.
    fn take(&mut self, end: &mut End, input: Input, terms: &Terms, collector: &mut Collector<'_>) {
        match input {
            Input::Departures { sender, until, batch } => collector.departures(sender, until, batch),
            Input::Arrivals { sender, mut batch } => {
                if let Some(relation) = &self.relation {
                    relation.correct_reflected(&mut batch);
                }
                collector.arrivals(sender, batch);
            }
            Input::Far { heard, said } => self.take_said(end, heard, said, terms, collector),
        }
    }

    fn take_said(
        &mut self,
        end: &mut End,
        heard: u64,
        said: Result<FromFar, Option<String>>,
        terms: &Terms,
        collector: &mut Collector<'_>,
    ) {
        match said {
            Ok(FromFar::Report(report)) => {
                let batch = collector.unpacked(&report);
                let taken = match (&mut self.relation, batch) {
                    (Some(relation), Some(batch)) => {
                        relation.reported(heard, batch);
                        Some(())
                    }
                    (None, Some(batch)) => collector.report(batch, &terms.sender_of),
                    (_, None) => None,
                };
                if taken.is_none() {
                    end.lost = Some(Some(DAMAGED.to_owned()));
                }
            }
            Ok(FromFar::Time(reply)) => {
                let Some(relation) = &mut self.relation else { return };
                if let Err(jump) = relation.exchanged(reply, heard) {
                    end.jumped.get_or_insert(jump.by);
                }
                self.settle(false, end, terms, collector);
            }
            Ok(FromFar::Bye(bye)) => end.bye = Some(bye),
            Ok(FromFar::Failed(failure)) => {
                end.lost = Some(Some(LiveError::from(failure).to_string()));
            }
            Ok(FromFar::Ready(_) | FromFar::Started) => {}
            Err(reason) => {
                if end.bye.is_none() && end.lost.is_none() {
                    end.lost = Some(reason);
                }
            }
        }
    }

    /// Passes on what of the far end's reports can be brought to our clock now, or must be.
    fn settle(&mut self, all: bool, end: &mut End, terms: &Terms, collector: &mut Collector<'_>) {
        let Some(relation) = &mut self.relation else { return };
        while let Some(batch) = relation.settled(all) {
            if collector.report(batch, &terms.sender_of).is_none() {
                end.lost = Some(Some(DAMAGED.to_owned()));
            }
        }
    }
}

const DAMAGED: &str = "its report is damaged";
/// The recorder waits no longer than this for observations before it looks at the clock and tells the supervisor.
const STEP: Duration = Duration::from_millis(50);
/// After a stop, what is on its way may still arrive for so long.
const LAST_CALL: Duration = Duration::from_millis(200);
/// How long the last reports wait for an exchange that surrounds them.
const SETTLING: Duration = Duration::from_secs(2);
const SHORT: Duration = Duration::from_millis(10);
