//! The loop: takes the next event, tells whom it concerns, and queues what follows from it.

use std::collections::BTreeMap;

use trunkline_core::{Duration, FlowId, Seed, Time};
use trunkline_experiment::{Progress, Scenario, Supervisor};
use trunkline_metrics::{DriverOutcome, FlowOutcome, Recorder};
use trunkline_traffic::MessageBuffer;
use trunkline_transport::framing::{HEADER_LENGTH, Key};

use crate::SimulationError;
use crate::conversation::{Conversation, Side};
use crate::events::EventQueue;
use crate::member::Member;
use crate::network::Network;
use crate::transports;

/// What can be due. Small and `Copy`: the packet itself waits in a slot of the [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The source of the member at a place wants to produce.
    Source(u32),
    /// The packet in a slot arrives at the end of a link.
    Arrive(u32),
    /// A link has something to do.
    Medium(u32),
    /// An endpoint of a conversation wants to be called.
    Timeout(u32, Side),
    /// The message at the head of a member's send queue has waited for the whole send timeout.
    GiveUp(u32),
    /// The packet in a slot, held back for pacing, departs.
    Depart(u32),
}

/// Where a member is found, without a look at the member itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Its index in the engine's members.
    pub(crate) member: u32,
    /// Its conversation's index.
    pub(crate) conversation: u32,
}

/// How many events pass between two reports of progress: some milliseconds' worth.
const EVENTS_PER_REPORT: u32 = 1 << 14;

/// A point being simulated.
pub(crate) struct Engine<'s> {
    pub(crate) scenario: &'s Scenario,
    pub(crate) now: Time,
    pub(crate) key: Key,
    pub(crate) network: Network<'s>,
    pub(crate) events: EventQueue<Event>,
    /// In the order in which they are first due: periodic sources stay in that order, so memory is walked in one
    /// direction, which caches see coming.
    pub(crate) members: Vec<Member>,
    /// By member's id.
    places: Vec<Place>,
    pub(crate) conversations: Vec<Conversation>,
    /// Where sources produce.
    pub(crate) messages: MessageBuffer,
    /// Where received bytes are read into.
    pub(crate) received: Vec<u8>,
}

impl<'s> Engine<'s> {
    pub(crate) fn new(scenario: &'s Scenario, seed: Seed) -> Result<Engine<'s>, SimulationError> {
        let mut engine = Engine {
            scenario,
            now: Time::ZERO,
            key: Key(seed.stream("run/key").bits() as u32),
            network: Network::new(scenario, seed),
            events: EventQueue::new(),
            members: Vec::new(),
            places: Vec::new(),
            conversations: Vec::new(),
            messages: MessageBuffer::with_headroom(HEADER_LENGTH),
            received: Vec::new(),
        };
        let refused = |flow: usize| {
            let name = &scenario.flows[flow].meta.name;
            move |reason: String| SimulationError::Flow { flow: name.clone(), reason }
        };
        // Everything is built twice: first to learn when it is due, then in that order.
        let mut order = Vec::new();
        for (f, flow) in scenario.flows.iter().enumerate() {
            let first = engine.conversations.len() as u32;
            let made = transports::conversations(scenario, f, flow.meta.members, engine.key, seed);
            engine.conversations.extend(made.map_err(refused(f))?);
            for m in 0..flow.meta.members {
                let source = scenario.build_source(f, m, seed).map_err(refused(f))?;
                let own = engine.conversations[first as usize].member.is_some();
                let conversation = if own { first + m } else { first };
                order.push((source.next_due().unwrap_or(Time::MAX), flow.member(m), f, m, conversation));
            }
        }
        order.sort_unstable();
        engine.places = vec![Place::default(); order.len()];
        for (_, id, f, m, conversation) in order {
            let source = scenario.build_source(f, m, seed).map_err(refused(f))?;
            let place = engine.members.len() as u32;
            engine.places[id.0 as usize] = Place { member: place, conversation };
            // The first call lets the source say when it is due, and the endpoint start to connect.
            engine.events.push(Time::ZERO, Event::Source(place));
            let channels = scenario.flows[f].meta.channels;
            engine.members.push(Member::new(source, id, channels, f as u32, conversation));
        }
        Ok(engine)
    }

    pub(crate) fn run(
        mut self,
        recorder: &mut dyn Recorder,
        supervisor: &mut dyn Supervisor,
    ) -> DriverOutcome {
        let end = Time::ZERO + self.scenario.duration + self.scenario.drain;
        let mut until_report = EVENTS_PER_REPORT;
        let mut stopped_at = None;
        while let Some((now, event)) = self.events.pop() {
            if now > end {
                break;
            }
            self.now = now;
            until_report -= 1;
            if until_report == 0 {
                until_report = EVENTS_PER_REPORT;
                if supervisor.progress(now.since(Time::ZERO)) == Progress::Stop {
                    stopped_at = Some(now);
                    break;
                }
            }
            match event {
                Event::Source(member) => self.produce(member, recorder),
                Event::Arrive(slot) => {
                    if let Some(packet) = self.network.arrive(now, slot, &mut self.events) {
                        self.packet_arrived(packet, recorder);
                    }
                }
                Event::Medium(link) => self.network.advance(now, link, &mut self.events),
                Event::Timeout(conversation, side) => self.timeout(conversation, side, recorder),
                Event::GiveUp(member) => self.give_up(member, recorder),
                Event::Depart(slot) => self.network.depart(now, slot, &mut self.events),
            }
        }
        if stopped_at.is_none() {
            self.now = end;
            for member in 0..self.members.len() as u32 {
                self.refuse_the_rest(member, recorder);
            }
        }
        self.outcome(stopped_at)
    }

    /// Where the member with this id is found.
    pub(crate) fn place(&self, id: FlowId) -> Place {
        self.places[id.0 as usize]
    }

    fn outcome(&self, stopped_at: Option<Time>) -> DriverOutcome {
        let ran = stopped_at.map_or(Duration::MAX, |at| at.since(Time::ZERO)).min(self.scenario.duration);
        let mut counters = vec![BTreeMap::new(); self.scenario.flows.len()];
        for conversation in &self.conversations {
            let counters = &mut counters[conversation.flow as usize];
            conversation.counters(&mut |name, count| *counters.entry(name.to_owned()).or_insert(0) += count);
        }
        let flows = counters.into_iter().enumerate().map(|(flow, transport_counters)| FlowOutcome {
            transport_counters,
            network: Some(self.network.first_link_bytes(flow)),
        });
        DriverOutcome {
            duration: ran,
            links: self.network.summaries(ran),
            flows: flows.collect(),
            partial: stopped_at.is_some(),
            ..DriverOutcome::default()
        }
    }
}
