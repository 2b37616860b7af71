//! The loop: takes the next event, tells whom it concerns, and queues what follows from it.

mod group;
mod guests;
mod handing;
mod receive;
mod send;

use std::collections::BTreeMap;

use trunkline_core::{FlowId, Packet, Seed, Time};
use trunkline_experiment::{Flow, Progress, Scenario, Supervisor};
use trunkline_flows::{Buffers, Lane, Talker, TalkerSpec};
use trunkline_metrics::{DriverOutcome, FlowOutcome, FlowSummary, Recorder};
use trunkline_transport::framing::Key;

use crate::SimulationError;
use crate::conversation::{Conversation, Side};
use crate::covered::Covered;
use crate::drops::{self, Drops};
use crate::event::Event;
use crate::events::EventQueue;
use crate::guests::{GuestFailure, GuestPacket, Guests};
use crate::hosts::Hosts;
use crate::member::Member;
use crate::network::Network;
use crate::observed::Counted;
use crate::places::Places;
use crate::telemetry::Telemetry;
use crate::transports;
use crate::watch::Watch;
use handing::{Handing, Kept};

/// How many events pass between two reports of progress: some milliseconds' worth.
const EVENTS_PER_REPORT: i32 = 1 << 14;
/// A run of the guests takes as long as its event and about this many others.
const EVENTS_PER_RUN_OF_GUESTS: i32 = 1 << 7;

/// A point being simulated.
pub(crate) struct Engine<'s, 'g> {
    pub(crate) scenario: &'s Scenario,
    /// Of this repetition.
    seed: Seed,
    pub(crate) now: Time,
    pub(crate) key: Key,
    pub(crate) network: Network<'s>,
    pub(crate) events: EventQueue<Event>,
    /// In the order in which they are first due: periodic sources stay in that order, so memory is walked in one
    /// direction, which caches see coming.
    pub(crate) members: Vec<Member>,
    places: Places,
    pub(crate) conversations: Vec<Conversation>,
    pub(crate) hosts: Hosts,
    /// Messages that wait for a processor, by slot; empty slots are listed in `free_kept`.
    pub(crate) kept: Vec<Option<Kept>>,
    pub(crate) free_kept: Vec<u32>,
    /// By flow of the file: whether its source's host takes time to hand messages over, or does so in pieces.
    pub(crate) slow_flows: Vec<bool>,
    /// By flow of the file: whether that host waits for each burst to leave the network.
    pub(crate) watched: Vec<bool>,
    /// Whether the flow with which the measurement ends is over: nothing new is sent.
    pub(crate) is_over: bool,
    /// When that was.
    pub(crate) over_at: Time,
    /// When the run ends, drain time included.
    pub(crate) end: Time,
    /// By flow of the file: what its talkers have in common.
    pub(crate) talks: Vec<TalkerSpec>,
    /// Where sources produce.
    pub(crate) lane: Lane,
    /// Memory of messages that wait.
    pub(crate) waiting: Buffers,
    /// By member: the message that its host is handing over.
    pub(crate) handing: BTreeMap<u32, Handing>,
    pub(crate) covered: Covered,
    drops: Drops,
    /// By flow, whether the message of every packet that is dropped is reported.
    knows_drops: Vec<bool>,
    /// Where received bytes are read into.
    pub(crate) received: Vec<u8>,
    pub(crate) counted: Counted,
    /// The hosts that are kernels.
    pub(crate) guests: Option<&'g mut dyn Guests>,
    /// When the guests' next event is queued; [`Time::MAX`] if none is.
    pub(crate) guests_scheduled: Time,
    /// Memory of packets that guests send.
    pub(crate) sent: Vec<GuestPacket>,
}

impl<'s, 'g> Engine<'s, 'g> {
    pub(crate) fn new(
        scenario: &'s Scenario,
        seed: Seed,
        guests: Option<&'g mut dyn Guests>,
    ) -> Result<Engine<'s, 'g>, SimulationError> {
        let mut engine = Engine {
            scenario,
            seed,
            now: Time::ZERO,
            key: Key(seed.stream("run/key").bits() as u32),
            network: Network::new(scenario, seed),
            events: EventQueue::new(),
            members: Vec::new(),
            places: Places::default(),
            conversations: Vec::new(),
            hosts: Hosts::new(scenario, seed),
            kept: Vec::new(),
            free_kept: Vec::new(),
            slow_flows: Vec::new(),
            watched: Vec::new(),
            is_over: false,
            over_at: Time::MAX,
            end: Time::ZERO + scenario.duration + scenario.drain,
            talks: Vec::new(),
            lane: Lane::default(),
            waiting: Buffers::new(usize::MAX),
            handing: BTreeMap::new(),
            covered: Covered::default(),
            drops: Drops::new(seed),
            knows_drops: vec![false; scenario.flows.len()],
            received: Vec::new(),
            counted: Counted::new(),
            guests,
            guests_scheduled: Time::MAX,
            sent: Vec::new(),
        };
        // Before whatever else happens at that moment.
        engine.events.push(Time::ZERO + scenario.duration, Event::Measured);
        let refused = |flow: usize| {
            let name = &scenario.flows[flow].meta.name;
            move |reason: String| SimulationError::Flow { flow: name.clone(), reason }
        };
        // Everything is built twice: first to learn when it is due, then in that order. A function is begun once.
        let mut order = Vec::new();
        for (f, flow) in scenario.flows.iter().enumerate() {
            let host = engine.hosts.get(flow.from);
            let (is_slow, is_watched) = (host.costs().send_message, host.one_burst_at_a_time());
            let send_buffer = host.send_buffer().filter(|_| !flow.is_multicast());
            engine.talks.push(TalkerSpec::in_one(flow, engine.key));
            engine.slow_flows.push(is_slow);
            engine.watched.push(is_watched);
            if is_watched {
                engine.network.watch(f);
            }
            let first = engine.conversations.len() as u32;
            let made = transports::conversations(scenario, f, flow.meta.members, engine.key, seed);
            engine.conversations.extend(made.map_err(refused(f))?);
            let is_shared =
                engine.conversations.get(first as usize).is_none_or(|first| first.member.is_none());
            engine.places.add(&flow.meta, first, is_shared);
            // A flow may have no members at some point of a sweep.
            let Some(conversation) = engine.conversations.get(first as usize) else { continue };
            if drops::are_messages(scenario, flow, conversation) {
                engine.network.keep_dropped(f);
                // A host that is silent reports nothing, and nobody reports what it discards by its checksum.
                engine.knows_drops[f] =
                    !crosses_corruption(scenario, flow) && flow.to.iter().all(|sink| sink.fail.is_none());
            }
            // What keeps a window, or a queue of its own, is held back by that.
            if let Some(buffer) = send_buffer.filter(|_| conversation.owner.is_none()) {
                engine.network.limit(f, buffer);
            }
            engine.expect_changes(first);
            for m in 0..flow.meta.members {
                let due = match flow.source.is_custom() {
                    true => Time::ZERO + flow.start + flow.stagger * u64::from(m),
                    false => {
                        let source = scenario.build_source(f, m, seed).map_err(refused(f))?;
                        source.next_due().unwrap_or(Time::MAX)
                    }
                };
                order.push((due, flow.member(m), f, m));
            }
        }
        order.sort_unstable();
        engine.members.reserve_exact(order.len());
        for (_, id, f, m) in order {
            let place = engine.members.len() as u32;
            engine.places.set_member(f, id, place);
            let conversation = engine.places.conversation(f, id);
            // The first call lets the source say when it is due, or the endpoint start to connect.
            engine.events.push(Time::ZERO, Event::Source(place));
            let channels = scenario.flows[f].meta.channels;
            let talker = match engine.conversations[conversation as usize].is_awaited {
                true => Talker::awaiting_connection(id, channels),
                false => Talker::new(scenario.build_source(f, m, seed).map_err(refused(f))?, id, channels),
            };
            engine.members.push(Member { talker, source_scheduled: Time::MAX, flow: f as u32, conversation });
        }
        Ok(engine)
    }

    /// Simulates to the end, until `supervisor` says stop, or until a guest fails.
    pub(crate) fn run(
        mut self,
        recorder: &mut dyn Recorder,
        supervisor: &mut dyn Supervisor,
    ) -> (DriverOutcome, Option<GuestFailure>) {
        let mut until_report = EVENTS_PER_REPORT;
        let (mut stopped_at, mut failed) = (None, None);
        let mut watch = Watch::new(self.scenario, supervisor);
        let follows = supervisor.follows_packets();
        self.network.followed = follows.then(Vec::new);
        let mut telemetry = Telemetry::new(self.scenario, &self.conversations, follows);
        self.schedule_guests();
        while let Some((now, event)) = self.events.pop() {
            if now > self.end {
                break;
            }
            if watch.is_due(now) {
                watch.look(now, self.scenario, &self.network, supervisor);
            }
            if telemetry.is_due(now) {
                telemetry.sample(now, &self.conversations);
            }
            self.now = now;
            until_report -= 1;
            if until_report <= 0 {
                until_report = EVENTS_PER_REPORT;
                let is_stopped = supervisor.progress(now.since(Time::ZERO)) == Progress::Stop;
                if is_stopped || self.scenario.custom_problem().is_some() {
                    stopped_at = Some(now);
                    break;
                }
            }
            match event {
                Event::Source(member) => self.produce(member, recorder),
                Event::Arrive(slot) if self.network.is_of_guest(slot) => {
                    failed = self.guest_packet_arrived(slot).err();
                }
                Event::Guests => {
                    until_report -= EVENTS_PER_RUN_OF_GUESTS;
                    failed = self.run_guests().err();
                }
                Event::Arrive(slot) => {
                    if let Some(packet) = self.network.arrive(now, slot, &mut self.events) {
                        self.packet_arrived(packet, recorder);
                    }
                }
                Event::Medium(link) => self.network.advance(now, link, &mut self.events),
                Event::Timeout(conversation, place) => self.timeout(conversation, Side::at(place), recorder),
                Event::GiveUp(member) => self.give_up(member, recorder),
                Event::Depart(slot) => self.network.depart(now, slot, &mut self.events),
                Event::Fetch(slot) => {
                    let packet = self.network.take(slot);
                    self.fetch_packet(packet, recorder);
                }
                Event::Take(slot) => {
                    let packet = self.network.take(slot);
                    self.take_packet(packet, recorder);
                }
                Event::HandOver(member) => self.hand_over(member, recorder),
                Event::Left(id) => self.left(id),
                Event::Room(id) => self.send_waiting(self.member(id), recorder),
                Event::Kept(slot) => self.kept(slot, recorder),
                Event::Sink(conversation, sink) => self.sink_changes(conversation, sink, recorder),
                Event::Measured => self.network.end_measurement(now),
                Event::Until => {
                    if let Some(flow) = self.scenario.until {
                        self.look_for_the_end(flow as u32, recorder);
                    }
                }
            }
            while self.network.has_dropped()
                && let Some((packet, link)) = self.network.take_dropped()
            {
                self.packet_dropped(packet, link, recorder);
            }
            if let Some(followed) = &mut self.network.followed {
                followed.drain(..).for_each(|packet| supervisor.packet(packet));
            }
            if failed.is_some() {
                stopped_at = Some(now);
                break;
            }
        }
        // Only the first end counts.
        self.network.end_measurement(self.now);
        if stopped_at.is_none() {
            self.now = self.end;
            for index in 0..self.conversations.len() as u32 {
                if self.begin(index, Time::ZERO) {
                    self.conversations[index as usize].is_never_connected = true;
                    self.count_not_connected(index);
                }
            }
            for member in 0..self.members.len() as u32 {
                self.refuse_the_rest(member, recorder);
            }
        }
        self.network.end(self.now);
        telemetry.sample_last(self.now, &self.conversations);
        if follows {
            telemetry.tell(self.scenario, &self.conversations, supervisor);
        }
        (self.outcome(stopped_at, &telemetry), failed)
    }

    /// Records the messages of a packet that a link has dropped as lost.
    fn packet_dropped(&mut self, packet: Packet, link: usize, recorder: &mut dyn Recorder) {
        let flow = self.network.flow_of(packet.flow);
        let one = [packet.sink];
        let sinks = match packet.group {
            true => self.network.behind(flow, link, &packet),
            false => &one,
        };
        self.drops.record(self.now, (self.scenario, self.key), flow, (&packet, sinks), recorder);
        self.network.recycle(packet.bytes);
    }

    /// Ends the measurement if it lasts until this flow is over and that is the case: sources stop, the drain time begins.
    pub(crate) fn look_for_the_end(&mut self, flow: u32, recorder: &mut dyn Recorder) {
        if self.is_over || self.scenario.until != Some(flow as usize) {
            return;
        }
        let meta = &self.scenario.flows[flow as usize].meta;
        let over_at = |m| self.members[self.member(FlowId(meta.first.0 + m)) as usize].talker.over_at();
        let Some(over) = (0..meta.members).map(over_at).reduce(|a, b| Some(a?.max(b?))).flatten() else {
            return;
        };
        if over > self.now {
            return self.events.push(over, Event::Until);
        }
        self.is_over = true;
        self.over_at = self.now;
        self.network.end_measurement(self.now);
        recorder.end_measurement(self.now);
        self.end = self.end.min(self.now + self.scenario.drain);
    }

    /// Returns true until sources end. A conversation that is connected later carries nothing.
    pub(crate) fn is_measuring(&self) -> bool {
        !self.is_over && self.now < Time::ZERO + self.scenario.duration
    }

    /// Counts a conversation that was never connected.
    pub(crate) fn count_not_connected(&mut self, index: u32) {
        let flow = self.conversations[index as usize].flow;
        *self.counted.entry((flow, FlowSummary::NOT_CONNECTED.to_owned())).or_default() += 1;
    }

    /// Lets the sources of a conversation's members begin, from `connected` on if that is later than they want; false if
    /// they have.
    pub(crate) fn begin(&mut self, conversation: u32, connected: Time) -> bool {
        let Conversation { is_awaited, flow, member, .. } = &mut self.conversations[conversation as usize];
        if !core::mem::take(is_awaited) {
            return false;
        }
        let flow = *flow as usize;
        let meta = &self.scenario.flows[flow].meta;
        let members = match *member {
            Some(id) => id.0 - meta.first.0..id.0 - meta.first.0 + 1,
            None => 0..meta.members,
        };
        for m in members {
            // It could be built when the run began.
            if let Ok(source) = self.scenario.build_connected_source(flow, m, self.seed, connected) {
                let place = self.member(FlowId(meta.first.0 + m));
                self.members[place as usize].talker.begin(source);
            }
        }
        true
    }

    /// The index of the member with this id.
    pub(crate) fn member(&self, id: FlowId) -> u32 {
        self.places.member(self.network.flow_of(id), id)
    }

    /// The index of its conversation.
    #[inline]
    pub(crate) fn conversation(&self, id: FlowId) -> u32 {
        self.places.conversation(self.network.flow_of(id), id)
    }

    fn outcome(&self, stopped_at: Option<Time>, telemetry: &Telemetry) -> DriverOutcome {
        let ran =
            stopped_at.unwrap_or(Time::MAX).min(self.over_at).since(Time::ZERO).min(self.scenario.duration);
        let mut counters = vec![BTreeMap::new(); self.scenario.flows.len()];
        for conversation in &self.conversations {
            let counters = &mut counters[conversation.flow as usize];
            conversation.counters(&mut |name, count| *counters.entry(name.to_owned()).or_insert(0) += count);
        }
        for ((flow, name), count) in &self.counted {
            *counters[*flow as usize].entry(name.clone()).or_insert(0) += count;
        }
        let flows = counters.into_iter().enumerate().map(|(flow, transport_counters)| FlowOutcome {
            transport_counters,
            network: Some(self.network.on_first_link(flow)),
            knows_drops: self.knows_drops[flow],
            connection: telemetry.samples(flow),
            ..FlowOutcome::default()
        });
        DriverOutcome {
            duration: ran,
            links: self.network.summaries(ran),
            media: self.network.figures(ran),
            flows: flows.collect(),
            partial: stopped_at.is_some(),
            ..DriverOutcome::default()
        }
    }
}

/// True if a link on the way of a flow, or back, corrupts packets.
fn crosses_corruption(scenario: &Scenario, flow: &Flow) -> bool {
    let mut steps = flow.to.iter().flat_map(|sink| sink.forward.iter().chain(&sink.backward));
    steps.any(|step| {
        let direction = &scenario.links[step.link].directions[usize::from(step.from_port)];
        direction.impairments.corrupt.value() > 0.0
    })
}
