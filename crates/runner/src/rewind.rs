//! A moment of a simulated repetition, simulated again with an eye on each packet: the same seed gives the same packets.

use std::collections::BTreeMap;

use trunkline_core::{Bytes, Duration, FlowId, PacketId, Seed, Time};
use trunkline_experiment::{PacketEvent, PacketStep, Progress, Scenario, Supervisor};
use trunkline_metrics::{ConnectionSample, Observation, Record, Recorder};

use crate::error::RunnerError;

/// The message, and the part of the repetition around it.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Index of its flow in the scenario.
    pub flow: usize,
    /// The message, as the run has recorded it.
    pub message: Record,
    /// Start and end of the part.
    pub window: (Time, Time),
    /// Number of intervals of the part for which backlogs are returned.
    pub intervals: usize,
}

/// The moment, packet by packet.
#[derive(Clone, Debug, Default)]
pub struct Rewound {
    /// False if the simulator of this version sends the message at another time, with another latency or another fate, or if the
    /// simulation was stopped before its end.
    pub is_same: bool,
    /// Starts of the intervals.
    pub times: Vec<Time>,
    /// Queues in which anything waited in that part.
    pub queues: Vec<RewoundQueue>,
    /// Packets dropped and marked in that part, in the order of time.
    pub events: Vec<RewoundEvent>,
    /// TCP connections over the repetition, by member.
    pub connections: Vec<(FlowId, Vec<ConnectionSample>)>,
    /// Links that the packets of the message crossed, in their order.
    pub hops: Vec<Hop>,
    /// Packets of the member that were sent with the message or later, and dropped while it was on its way; at most 1000.
    pub lost: Vec<Loss>,
}

/// A queue over time.
#[derive(Clone, Debug)]
pub struct RewoundQueue {
    /// Index of the link.
    pub link: usize,
    /// The port at which packets enter it.
    pub port: u16,
    /// Bytes that waited at the start of each interval, by index of the flow in the scenario.
    pub flows: BTreeMap<usize, Vec<Bytes>>,
}

/// A packet that was dropped or marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewoundEvent {
    /// When.
    pub at: Time,
    /// Index of the link.
    pub link: usize,
    /// The port at which it entered.
    pub port: u16,
    /// Its member.
    pub member: FlowId,
    /// True for a mark, false for a drop.
    pub is_mark: bool,
    /// The cause.
    pub cause: &'static str,
}

/// A packet of the message at a link.
#[derive(Clone, Debug)]
pub struct Hop {
    /// Index of the link.
    pub link: usize,
    /// The port at which it entered.
    pub port: u16,
    /// When it did.
    pub entered: Time,
    /// When it left the queue.
    pub left: Time,
    /// When it arrived.
    pub arrived: Time,
    /// Bytes that waited in the queue when it entered, by member.
    pub before: BTreeMap<FlowId, Bytes>,
    /// The longest time in which nothing left this queue while the packet waited.
    pub silence: Duration,
    /// Time from the queue to the other end, less that of the fastest packet of the same size.
    pub late: Duration,
}

/// A packet that was dropped.
#[derive(Clone, Debug)]
pub struct Loss {
    /// The packet: those that are sent later have larger numbers.
    pub packet: PacketId,
    /// When.
    pub at: Time,
    /// Index of the link.
    pub link: usize,
    /// The port at which it entered.
    pub port: u16,
    /// The cause.
    pub cause: &'static str,
    /// Bytes that waited in the queue, by member.
    pub before: BTreeMap<FlowId, Bytes>,
}

/// Events of a part that are returned at most.
const MAX_EVENTS: usize = 20_000;
/// Dropped packets that are returned at most.
const MAX_LOST: usize = 1_000;
/// Packets of the member that have arrived and are kept: the message is among the last.
const MAX_ARRIVED: usize = 1_000;
/// Departures of a queue that are kept.
const MAX_DEPARTURES: usize = 1_000_000;

/// Simulates a repetition of a scenario to the end of the moment's part. `go_on` is asked many times a second; if it says no,
/// the rest is left out.
///
/// # Errors
/// If the simulator refuses the scenario.
pub fn rewind(
    scenario: &Scenario,
    seed: Seed,
    moment: Moment,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Rewound, RunnerError> {
    let meta = &scenario.flows[moment.flow].meta;
    let member = FlowId(meta.first.0 + moment.message.member % meta.members.max(1));
    let flows = scenario.flows.iter().enumerate();
    let flow_of = flows.flat_map(|(f, flow)| (0..flow.meta.ids()).map(move |_| f)).collect();
    let (from, to) = moment.window;
    let step = (to.since(from) / moment.intervals.max(1) as u64).max(Duration::from_nanos(1));
    let mut follow = Follow {
        moment,
        member,
        flow_of,
        times: (0..moment.intervals as u64).map(|i| from + step * i).collect(),
        go_on,
        queues: BTreeMap::new(),
        ports: BTreeMap::new(),
        fastest: BTreeMap::new(),
        own: BTreeMap::new(),
        kept: 0,
        before: None,
        is_stopped: false,
        rewound: Rewound::default(),
    };
    let mut found = Found {
        moment,
        member: FlowId(meta.first.0 + moment.message.member),
        is_sent: false,
        received: None,
    };
    trunkline_simulator::run(scenario, seed, &mut found, &mut follow)?;
    let is_same = found.is_same() && !follow.is_stopped;
    Ok(Rewound { is_same, ..follow.finish() })
}

/// Notes whether the message comes again.
struct Found {
    moment: Moment,
    member: FlowId,
    /// True after the message was sent, or refused, when the run says.
    is_sent: bool,
    /// Its first arrival.
    received: Option<Time>,
}

impl Found {
    fn is_same(&self) -> bool {
        let Record { received, .. } = self.moment.message;
        // What arrives after the part is not simulated again.
        let is_later = |at: Time| at > self.moment.window.1;
        self.is_sent
            && (self.received == received || received.is_none() && self.received.is_some_and(is_later))
    }
}

impl Recorder for Found {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        let Record { channel: its, sequence: number, sent, .. } = self.moment.message;
        let is_its = |channel, sequence| flow == self.member && (channel, sequence) == (its, number);
        match what {
            Observation::Sent { channel, sequence, .. } if is_its(channel, sequence) => {
                self.is_sent |= sent == Some(at);
            }
            Observation::Refused { channel, sequence, .. } if is_its(channel, sequence) => {
                self.is_sent |= sent.is_none();
            }
            Observation::Received { channel, sequence, sent: then, .. } if is_its(channel, sequence) => {
                self.is_sent |= sent == Some(then);
                self.received.get_or_insert(at);
            }
            _ => {}
        }
    }
}

/// A queue while it is followed.
#[derive(Default)]
struct Waiting {
    packets: BTreeMap<PacketId, (Time, FlowId, Bytes)>,
    members: BTreeMap<FlowId, Bytes>,
    flows: BTreeMap<usize, Bytes>,
    /// Intervals that are filled.
    filled: usize,
    over_time: BTreeMap<usize, Vec<Bytes>>,
    /// When packets left while the message was on its way.
    departures: Vec<Time>,
}

struct Follow<'f> {
    moment: Moment,
    member: FlowId,
    flow_of: Vec<usize>,
    times: Vec<Time>,
    go_on: &'f mut dyn FnMut() -> bool,
    queues: BTreeMap<(usize, u16), Waiting>,
    /// The port at which each packet on a link entered it.
    ports: BTreeMap<(usize, PacketId), u16>,
    /// Shortest time from the queue to the other end, by size.
    fastest: BTreeMap<(usize, u16, Bytes), Duration>,
    /// Packets of the member while the message is on its way: the links that they crossed.
    own: BTreeMap<PacketId, Vec<(Hop, Bytes)>>,
    /// Packets in `own` after those that had arrived were last removed.
    kept: usize,
    /// The last packet of the member that was sent before the message.
    before: Option<PacketId>,
    /// True if `go_on` has ended the simulation.
    is_stopped: bool,
    rewound: Rewound,
}

impl Supervisor for Follow<'_> {
    fn progress(&mut self, done: Duration) -> Progress {
        let is_over = Time::ZERO + done > self.moment.window.1.max(self.end());
        self.is_stopped |= !is_over && !(self.go_on)();
        if is_over || self.is_stopped { Progress::Stop } else { Progress::Continue }
    }

    fn follows_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, event: PacketEvent) {
        if event.at > self.moment.window.1.max(self.end()) {
            return;
        }
        match event.step {
            PacketStep::Entered { port, size } => self.entered(event, port, size),
            PacketStep::Left { arrives } => self.left(event, arrives),
            PacketStep::Dropped(cause) => self.dropped(event, cause),
            PacketStep::Marked(cause) => self.marked(event, cause),
        }
    }

    fn connection(&mut self, member: FlowId, samples: &[ConnectionSample]) {
        self.rewound.connections.push((member, samples.to_vec()));
    }
}

impl Follow<'_> {
    fn start(&self) -> Time {
        self.moment.message.sent.unwrap_or(self.moment.message.due)
    }

    /// The arrival, or for a lost message the end of the part.
    fn end(&self) -> Time {
        self.moment.message.received.unwrap_or(self.moment.window.1)
    }

    /// True for a packet of the member that was sent with the message or later, until the message has arrived.
    fn is_own(&self, event: &PacketEvent) -> bool {
        event.flow == self.member
            && (self.start()..=self.end()).contains(&event.at)
            && self.before.is_none_or(|before| event.id > before)
    }

    /// Removes packets that arrived before the last thousand.
    fn forget_arrived(&mut self, now: Time) {
        if self.own.len() < 2 * self.kept + 4 * MAX_ARRIVED {
            return;
        }
        let arrival = |hops: &[(Hop, Bytes)]| hops.last().map_or(Time::MAX, |(hop, _)| hop.arrived);
        let mut arrived: Vec<Time> =
            self.own.values().map(|hops| arrival(hops)).filter(|at| *at < now).collect();
        arrived.sort_unstable();
        let first = arrived.len().checked_sub(MAX_ARRIVED).map_or(Time::ZERO, |place| arrived[place]);
        self.own.retain(|_, hops| arrival(hops) >= first);
        self.kept = self.own.len();
    }

    /// Fills the intervals of a queue that began before `at`.
    fn fill(times: &[Time], queue: &mut Waiting, at: Time) {
        while times.get(queue.filled).is_some_and(|start| *start < at) {
            for (flow, bytes) in queue.flows.iter().filter(|(_, bytes)| **bytes > Bytes::ZERO) {
                let over_time =
                    queue.over_time.entry(*flow).or_insert_with(|| vec![Bytes::ZERO; times.len()]);
                over_time[queue.filled] = *bytes;
            }
            queue.filled += 1;
        }
    }

    fn entered(&mut self, event: PacketEvent, port: u16, size: Bytes) {
        if event.flow == self.member && event.at < self.start() {
            self.before = self.before.max(Some(event.id));
        }
        // Of a message that did not arrive, no way is shown.
        let is_own = self.moment.message.received.is_some() && self.is_own(&event);
        if is_own {
            self.forget_arrived(event.at);
        }
        let queue = self.queues.entry((event.link, port)).or_default();
        Self::fill(&self.times, queue, event.at);
        self.ports.insert((event.link, event.id), port);
        if is_own {
            let hop = Hop {
                link: event.link,
                port,
                entered: event.at,
                left: Time::MAX,
                arrived: Time::MAX,
                before: queue.members.clone(),
                silence: Duration::ZERO,
                late: Duration::ZERO,
            };
            self.own.entry(event.id).or_default().push((hop, size));
        }
        queue.packets.insert(event.id, (event.at, event.flow, size));
        *queue.members.entry(event.flow).or_default() += size;
        if let Some(flow) = self.flow_of.get(event.flow.0 as usize) {
            *queue.flows.entry(*flow).or_default() += size;
        }
    }

    /// Takes a packet out of its queue: the port at which it entered, and its size.
    fn out(&mut self, event: &PacketEvent) -> Option<(u16, Bytes)> {
        let port = self.ports.remove(&(event.link, event.id))?;
        let queue = self.queues.get_mut(&(event.link, port))?;
        Self::fill(&self.times, queue, event.at);
        let (_, flow, size) = queue.packets.remove(&event.id)?;
        if let Some(bytes) = queue.members.get_mut(&flow) {
            *bytes = bytes.saturating_sub(size);
            if *bytes == Bytes::ZERO {
                queue.members.remove(&flow);
            }
        }
        if let Some(bytes) = self.flow_of.get(flow.0 as usize).and_then(|flow| queue.flows.get_mut(flow)) {
            *bytes = bytes.saturating_sub(size);
        }
        Some((port, size))
    }

    fn left(&mut self, event: PacketEvent, arrives: Time) {
        let Some((port, size)) = self.out(&event) else { return };
        let (start, end) = (self.start(), self.end());
        if (start..=end).contains(&event.at)
            && self.moment.message.received.is_some()
            && let Some(queue) = self.queues.get_mut(&(event.link, port))
            && queue.departures.len() < MAX_DEPARTURES
        {
            queue.departures.push(event.at);
        }
        let took = arrives.since(event.at);
        let fastest = self.fastest.entry((event.link, port, size)).or_insert(took);
        *fastest = took.min(*fastest);
        if let Some(hops) = self.own.get_mut(&event.id)
            && let Some((hop, _)) = hops.last_mut().filter(|(hop, _)| hop.link == event.link)
        {
            (hop.left, hop.arrived) = (event.at, arrives);
        }
    }

    fn dropped(&mut self, event: PacketEvent, cause: &'static str) {
        let port = self.ports.get(&(event.link, event.id)).copied().unwrap_or_default();
        let _ = self.out(&event);
        if self.is_own(&event) {
            self.own.remove(&event.id);
            let members = self.queues.get(&(event.link, port)).map(|queue| queue.members.clone());
            let (at, link, packet) = (event.at, event.link, event.id);
            let before = members.unwrap_or_default();
            if self.rewound.lost.len() < MAX_LOST {
                self.rewound.lost.push(Loss { packet, at, link, port, cause, before });
            }
        }
        self.note(event, port, false, cause);
    }

    fn marked(&mut self, event: PacketEvent, cause: &'static str) {
        let port = self.ports.get(&(event.link, event.id)).copied().unwrap_or_default();
        self.note(event, port, true, cause);
    }

    fn note(&mut self, event: PacketEvent, port: u16, is_mark: bool, cause: &'static str) {
        let (from, to) = self.moment.window;
        if (from..=to).contains(&event.at) && self.rewound.events.len() < MAX_EVENTS {
            let PacketEvent { at, link, flow: member, .. } = event;
            self.rewound.events.push(RewoundEvent { at, link, port, member, is_mark, cause });
        }
    }

    fn finish(mut self) -> Rewound {
        self.rewound.hops = self.way();
        for (&(link, port), queue) in &mut self.queues {
            Self::fill(&self.times, queue, Time::MAX);
            if !queue.over_time.is_empty() {
                let flows = core::mem::take(&mut queue.over_time);
                self.rewound.queues.push(RewoundQueue { link, port, flows });
            }
        }
        Rewound { times: self.times, ..self.rewound }
    }

    /// The packet whose arrival was that of the message, and for a round trip the one that it was the answer to.
    fn way(&self) -> Vec<Hop> {
        let Some(received) = self.moment.message.received else { return Vec::new() };
        let ends = |hops: &[(Hop, Bytes)]| hops.last().map_or(Time::MAX, |(hop, _)| hop.arrived);
        let begins = |hops: &[(Hop, Bytes)]| hops.first().map_or(Time::MAX, |(hop, _)| hop.entered);
        let last = |before: Time, other: Option<PacketId>| {
            let arrived = self.own.iter().filter(|(id, hops)| ends(hops) <= before && Some(**id) != other);
            // Of packets that arrive together the one that was sent last.
            arrived.max_by_key(|(id, hops)| (ends(hops), **id))
        };
        let mut packets = Vec::new();
        if let Some((id, hops)) = last(received, None) {
            let start = hops.first().map(|(hop, _)| (hop.link, hop.port));
            packets.push(hops);
            let flow_starts = self.moment.message.reflected.is_some();
            if flow_starts && let Some((_, there)) = last(begins(hops), Some(*id)) {
                let is_other_way = there.first().map(|(hop, _)| (hop.link, hop.port)) != start;
                if is_other_way {
                    packets.insert(0, there);
                }
            }
        }
        packets.into_iter().flatten().map(|(hop, size)| self.measured(hop, *size)).collect()
    }

    fn measured(&self, hop: &Hop, size: Bytes) -> Hop {
        let took = hop.arrived.since(hop.left);
        let fastest = self.fastest.get(&(hop.link, hop.port, size)).copied().unwrap_or(took);
        let departures = self.queues.get(&(hop.link, hop.port)).map_or(&[][..], |queue| &queue.departures);
        let between = departures.iter().copied().filter(|at| (hop.entered..hop.left).contains(at));
        let (mut silence, mut last) = (Duration::ZERO, hop.entered);
        for at in between.chain([hop.left]) {
            silence = silence.max(at.since(last));
            last = at;
        }
        Hop { silence, late: took.saturating_sub(fastest), ..hop.clone() }
    }
}
