//! The near end of a run, from the set-up to the outcome.

use std::sync::OnceLock;

use trunkline_core::{Duration, Seed, Time};
use trunkline_experiment::{Flow, Scenario, Supervisor};
use trunkline_flows::NOT_REFLECTED;
use trunkline_io::{process, tcp};
use trunkline_metrics::{DriverOutcome, FlowOutcome, Measured, Recorder};
use trunkline_traffic::Source;
use trunkline_transport::framing::Key;
use trunkline_transport::kind::{Sockets, StreamProtocol};

use crate::ceiling::Limited;
use crate::collect::Collector;
use crate::error::LiveError;
use crate::events::Pool;
use crate::near::{self, Answers, Common, Stage, udp_receive, udp_send};
use crate::observed::observed;
use crate::options::LiveOptions;
use crate::part::NearPart;
use crate::place::{Place, ThisHost};
use crate::protocol::Bye;
use crate::session::{Company, Session};
use crate::setup::{self, Connected, Terms};
use crate::start::Start;
use crate::threads::{Crew, Left};

/// Runs one point on real sockets.
///
/// Sources send for the scenario's duration; then it waits for stragglers for the scenario's drain time, or until
/// every message that was sent has arrived. When the supervisor says stop, what was measured is kept and the outcome is
/// marked partial.
///
/// # Errors
/// [`LiveError`]; [`LiveError::is_bad_input`] tells those that the user's input is to blame for. If the far end is
/// lost during the run, what was measured until then has been recorded, and [`LiveError::outcome`] is the rest of it.
pub fn run(
    scenario: &Scenario,
    seed: Seed,
    options: &LiveOptions,
    recorder: &mut dyn Recorder,
    supervisor: &mut dyn Supervisor,
) -> Result<DriverOutcome, LiveError> {
    run_with(
        scenario,
        &|flow, member| scenario.build_source(flow, member, seed),
        options,
        recorder,
        supervisor,
    )
}

/// As [`run`], with sources of the caller's own: `build` is given the index of a flow and a member of it. What the
/// flow says of its source (its kind, whether it needs answers) must hold for them.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    scenario: &Scenario,
    build: &dyn Fn(usize, u32) -> Result<Box<dyn Source>, String>,
    options: &LiveOptions,
    recorder: &mut dyn Recorder,
    supervisor: &mut dyn Supervisor,
) -> Result<DriverOutcome, LiveError> {
    crate::check::refuse_simulated(scenario)?;
    let start = Start::of(1, awaited(scenario));
    let company = Company { start: &start, gate: None };
    observed(&start, || session(scenario, build, options, (&ThisHost, company), recorder, supervisor))
}

/// Measures the near end's flows, from opening the sockets to the far end's last report. Returns when all is recorded.
///
/// # Errors
/// As [`run`]'s, and [`LiveError::ClockJumped`]. What was measured until then has been recorded, and
/// [`LiveError::outcome`] is the rest of it. [`LiveError::Abandoned`] if the gate does not let it begin.
pub fn run_near(
    part: NearPart<'_>,
    recorder: &mut dyn Recorder,
    supervisor: &mut dyn Supervisor,
) -> Result<DriverOutcome, LiveError> {
    let NearPart { scenario, seed, options, gate } = part;
    crate::check::refuse_simulated(scenario)?;
    let start = Start::of(1, awaited(scenario));
    let company = Company { start: &start, gate: Some(gate) };
    let build = |flow: usize, member| scenario.build_source(flow, member, seed);
    observed(&start, || session(scenario, &build, options, (&ThisHost, company), recorder, supervisor))
}

/// How many sources must be over before the sending ends, if it ends with a flow.
pub(crate) fn awaited(scenario: &Scenario) -> Option<u32> {
    scenario.until.map(|flow| scenario.flows[flow].meta.members)
}

/// Measures the flows of a scenario from here to a far end that lives at `far`, together with the company's other
/// sessions.
pub(crate) fn session(
    scenario: &Scenario,
    build: &dyn Fn(usize, u32) -> Result<Box<dyn Source>, String>,
    options: &LiveOptions,
    (far, company): (&dyn Place, Company<'_>),
    recorder: &mut dyn Recorder,
    supervisor: &mut dyn Supervisor,
) -> Result<DriverOutcome, LiveError> {
    let terms = Terms::of(scenario, options, options.key.unwrap_or_else(draw_key));
    let sources = setup::sources(scenario, &terms.lanes, (terms.key, &options.limited), build)?;
    // Whatever fits; a socket that cannot be opened says so itself.
    let _ = process::raise_open_files(terms.descriptors);

    let mut session = Session::start(options, far)?;
    let ready = session.open(&terms)?;
    let sockets = setup::udp_sockets(options, &terms, ready.udp)?;
    let carriers = setup::carriers(options, &terms, &ready)?;
    let engines = setup::engines(scenario, options, &terms, &carriers, sources.engines)?;
    let connected = setup::connect(scenario, options, &terms, &ready, sources.tcp)?;
    let socket_pairs = setup::socket_pairs(scenario, &terms, &sockets, &connected, &carriers);
    let answered = setup::answered(scenario);
    let answers = if answered.is_empty() { None } else { Some(Answers::new()) };
    let answers = answers.transpose().map_err(LiveError::system("cannot create a pipe"))?;
    let stage = Stage::new(&company.start.awaited);
    let common = OnceLock::new();
    // By reference, so that the closure can own the session: should the recorder panic, its end frees the threads.
    let (stage, common, sockets, answered, answers, terms) =
        (&stage, &common, &sockets[..], &answered[..], answers.as_ref(), &terms);
    let (session, end, mut left) = std::thread::scope(move |scope| {
        let _end = EndOnDrop(stage);
        let mut crew = Crew::new(scope);
        let conversing = crew.connect(engines, scenario, options)?;
        let clock = session.synchronise(company)?;
        let common = common.get_or_init(|| Common {
            clock,
            stop: Time::ZERO + scenario.duration,
            key: terms.key,
            stage,
            inbox: session.inbox.clone(),
            pool: Pool::default(),
        });
        let mut collector =
            Collector::new(recorder, common.pool.clone(), terms.sender_numbers, terms.members);
        let started: Result<(), LiveError> = (|| {
            if let Some(answers) = answers {
                crew.start("udp-receive", move || {
                    udp_receive::receive(sockets, answered, &terms.open, common, answers);
                    None
                })?;
            }
            if !sockets.is_empty() {
                crew.start("udp-send", move || {
                    udp_send::send(sources.udp, sockets, terms.spin, common, answers);
                    None
                })?;
            }
            for Connected { flow, conversation, listener } in connected {
                if let Some(listener) = listener {
                    crew.start_slim("tcp-receive", move || {
                        listener.receive(common);
                        None
                    })?;
                }
                let send = move || Some(Left::Tcp(flow, near::tcp::send(conversation, common)));
                crew.start_slim("tcp-send", send)?;
            }
            // Who has ended already will be missed when it is over.
            for flow in conversing {
                let _ = flow.send(common);
            }
            Ok(())
        })();
        let end = match started {
            Ok(()) => session.attend(scenario, terms, common, &mut collector, supervisor, company.gate),
            Err(error) => {
                common.stage.end();
                session.gather(terms, crew, &mut collector);
                return Err(error);
            }
        };
        common.stage.end();
        let end = session.finish(end, terms, &mut collector);
        let left = session.gather(terms, crew, &mut collector);
        collector.finish();
        Ok((session, end, left))
    })?;

    let sending = end.sent_all.map_or(scenario.duration, |at| at.since(Time::ZERO));
    let mut flows = flow_outcomes(scenario, terms, &left, end.bye.as_ref());
    note_held(&mut flows, &options.limited, end.bye.as_ref());
    for left in &mut left {
        if let Left::Tcp(flow, spoken) = left
            && !spoken.samples.is_empty()
        {
            flows[*flow].connection = core::mem::take(&mut spoken.samples);
        }
    }
    let clock_error = session.clock_error();
    for ((flow, outcome), sockets) in scenario.flows.iter().zip(&mut flows).zip(socket_pairs) {
        outcome.sockets = sockets;
        outcome.clock_error = clock_error.filter(|_| flow.meta.measured == Measured::OneWay);
    }
    let outcome = DriverOutcome {
        duration: if end.partial { end.at.since(Time::ZERO).min(sending) } else { sending },
        flows,
        partial: end.partial,
        ..DriverOutcome::default()
    };
    drop(left);
    let how_it_ended = session.close();
    match (end.jumped, end.lost) {
        (None, None) => Ok(outcome),
        (Some(by), _) => Err(LiveError::ClockJumped { by, outcome: Box::new(outcome) }),
        (None, Some(reason)) => {
            let reason = reason.map_or(how_it_ended.clone(), |reason| format!("{how_it_ended}: {reason}"));
            Err(LiveError::FarEndLost { reason, outcome: Box::new(outcome) })
        }
    }
}

/// What the kernel counted, and what went wrong on the way.
fn flow_outcomes(scenario: &Scenario, terms: &Terms, left: &[Left], bye: Option<&Bye>) -> Vec<FlowOutcome> {
    let mut flows = vec![FlowOutcome::default(); scenario.flows.len()];
    let mut count = |flow: usize, name: &str, more: u64| {
        *flows[flow].transport_counters.entry(name.to_owned()).or_default() += more;
    };
    for left in left {
        match left {
            Left::Tcp(flow, spoken) => {
                if let Some(counters) = tcp::counters(&spoken.stream) {
                    count(*flow, "segments-sent", counters.segments_sent);
                    count(*flow, "retransmissions", counters.retransmitted_segments);
                }
                count(*flow, near::BROKEN, u64::from(spoken.broken.is_some()));
                if let Some(how) = spoken.broken {
                    count(*flow, &format!("{}-{how}", near::BROKEN), 1);
                }
                if let Sockets::Stream(StreamProtocol::Mptcp, _) = scenario.flows[*flow].transport.sockets() {
                    let multipath = tcp::is_multipath(&spoken.stream);
                    count(*flow, "connections-multipath", u64::from(multipath));
                    count(*flow, "connections-fallen-back-to-tcp", u64::from(!multipath));
                }
            }
            Left::Engines(flow, counters) => {
                counters.iter().for_each(|(name, more)| count(*flow, name, *more));
            }
        }
    }
    // As in the simulator, the counters of both ends together.
    for (engines, counters) in terms.open.engines.iter().zip(bye.iter().flat_map(|bye| &bye.engines)) {
        counters.iter().for_each(|(name, more)| count(engines.flow, name, *more));
    }
    let reflected = |flow: &Flow| flow.reflect && setup::is_datagrams(flow);
    if let (Some(bye), Some(flow)) = (bye, scenario.flows.iter().position(reflected))
        && bye.unreflected > 0
    {
        count(flow, NOT_REFLECTED, bye.unreflected);
    }
    flows
}

/// For how long what owners of hosts allow has held flows back, which no network did.
fn note_held(flows: &mut [FlowOutcome], limited: &Limited, bye: Option<&Bye>) {
    for (index, flow) in flows.iter_mut().enumerate() {
        let there = bye
            .and_then(|bye| bye.held.get(index))
            .map_or(Duration::ZERO, |held| Duration::from_nanos(*held));
        for (name, held) in [(HELD_HERE, limited.held(index)), (HELD_THERE, there)] {
            let millis = held.as_nanos() / 1_000_000;
            if millis > 0 {
                flow.transport_counters.insert(name.to_owned(), millis);
            }
        }
    }
}

/// Counts for how many milliseconds the conversations of a flow have waited, together, for what the owner of the sending
/// host allows.
pub const HELD_HERE: &str = "held-back-by-owner-ms";

/// The same of answers, at the receiving host.
pub const HELD_THERE: &str = "answers-held-back-by-owner-ms";

/// A key that marks the messages of a run.
pub fn draw_key() -> Key {
    Key(setup::draw())
}

/// Ends the threads however the run ends.
struct EndOnDrop<'r>(&'r Stage);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
