//! The loop: takes the next event, tells whom it concerns, and queues what follows from it.

use std::collections::BTreeMap;

use trunkline_core::{Duration, Seed, Time};
use trunkline_experiment::{Progress, Scenario, Supervisor};
use trunkline_metrics::{DriverOutcome, FlowOutcome, Recorder};
use trunkline_traffic::MessageBuffer;
use trunkline_transport::framing::{HEADER_LENGTH, Key};

use crate::SimulationError;
use crate::events::EventQueue;
use crate::member::{Member, Side};
use crate::network::Network;

/// What can be due. Small and `Copy`: the packet itself waits in a slot of the [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The source of a member wants to produce.
    Source(u32),
    /// The packet in a slot arrives at the end of a link.
    Arrive(u32),
    /// A link has something to do.
    Medium(u32),
    /// An endpoint of a member wants to be called.
    Timeout(u32, Side),
    /// The message at the head of a member's send queue has waited for the whole send timeout.
    GiveUp(u32),
    /// The packet in a slot, held back for pacing, departs.
    Depart(u32),
}

/// What members need to act: the time, the network and whom to tell. One per event.
pub(crate) struct Context<'c, 's> {
    pub(crate) now: Time,
    pub(crate) key: Key,
    pub(crate) network: &'c mut Network<'s>,
    pub(crate) events: &'c mut EventQueue<Event>,
    pub(crate) recorder: &'c mut dyn Recorder,
    /// Where sources produce.
    pub(crate) messages: &'c mut MessageBuffer,
    /// Where received bytes are read into.
    pub(crate) received: &'c mut Vec<u8>,
}

/// How many events pass between two reports of progress: some milliseconds' worth.
const EVENTS_PER_REPORT: u32 = 1 << 14;

/// A point being simulated.
pub(crate) struct Engine<'s> {
    scenario: &'s Scenario,
    key: Key,
    network: Network<'s>,
    members: Vec<Member<'s>>,
    events: EventQueue<Event>,
}

impl<'s> Engine<'s> {
    pub(crate) fn new(scenario: &'s Scenario, seed: Seed) -> Result<Engine<'s>, SimulationError> {
        let key = Key(seed.stream("run/key").bits() as u32);
        let mut events = EventQueue::new();
        let mut members = Vec::new();
        for (f, flow) in scenario.flows.iter().enumerate() {
            for m in 0..flow.meta.members {
                let member = Member::new(scenario, f, m, key, seed)?;
                // The first call lets the source say when it is due, and the endpoint start to connect.
                events.push(Time::ZERO, Event::Source(members.len() as u32));
                members.push(member);
            }
        }
        Ok(Engine { scenario, key, network: Network::new(scenario, seed), members, events })
    }

    pub(crate) fn run(mut self, recorder: &mut dyn Recorder, supervisor: &mut dyn Supervisor) -> DriverOutcome {
        let key = self.key;
        let end = Time::ZERO + self.scenario.duration + self.scenario.drain;
        let mut messages = MessageBuffer::with_headroom(HEADER_LENGTH);
        let mut received = Vec::new();
        let mut until_report = EVENTS_PER_REPORT;
        let mut stopped_at = None;
        while let Some((now, event)) = self.events.pop() {
            if now > end {
                break;
            }
            until_report -= 1;
            if until_report == 0 {
                until_report = EVENTS_PER_REPORT;
                if supervisor.progress(now.since(Time::ZERO)) == Progress::Stop {
                    stopped_at = Some(now);
                    break;
                }
            }
            let Engine { network, members, events, .. } = &mut self;
            let mut context =
                Context { now, key, network, events, recorder, messages: &mut messages, received: &mut received };
            match event {
                Event::Source(member) => members[member as usize].produce(&mut context),
                Event::Arrive(slot) => {
                    if let Some(packet) = context.network.arrive(now, slot, context.events) {
                        members[packet.flow.0 as usize].packet_arrived(packet, &mut context);
                    }
                }
                Event::Medium(link) => context.network.advance(now, link, context.events),
                Event::Timeout(member, side) => members[member as usize].timeout(side, &mut context),
                Event::GiveUp(member) => members[member as usize].give_up(&mut context),
                Event::Depart(slot) => context.network.depart(now, slot, context.events),
            }
        }
        self.outcome(stopped_at)
    }

    fn outcome(&self, stopped_at: Option<Time>) -> DriverOutcome {
        let ran = stopped_at.map_or(Duration::MAX, |at| at.since(Time::ZERO)).min(self.scenario.duration);
        let mut flows = Vec::with_capacity(self.scenario.flows.len());
        for (f, flow) in self.scenario.flows.iter().enumerate() {
            let mut transport_counters = BTreeMap::new();
            let first = flow.meta.first.0 as usize;
            for member in &self.members[first..first + flow.meta.members as usize] {
                member.counters(&mut |name, count| {
                    *transport_counters.entry(name.to_owned()).or_insert(0) += count;
                });
            }
            flows.push(FlowOutcome { transport_counters, network: Some(self.network.first_link_bytes(f)) });
        }
        DriverOutcome {
            duration: ran,
            links: self.network.summaries(ran),
            flows,
            partial: stopped_at.is_some(),
            ..DriverOutcome::default()
        }
    }
}
