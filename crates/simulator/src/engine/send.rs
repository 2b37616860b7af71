//! From a source to the network: talkers, and the near ends of conversations as they use them.

use trunkline_core::{FlowId, Time};
use trunkline_flows::{Buffers, Lane, Progress, Talker, TalkerSpec};
use trunkline_metrics::Recorder;
use trunkline_transport::{self as transport, Close, Features, Message, Received, SendError};

use super::Engine;
use super::handing::HandOver;
use crate::conversation::{Conversation, End, Side};
use crate::event::Event;
use crate::observed::Sending;
use crate::outlet::Outlet;

/// A member's talker with all that it needs.
struct Talk<'a, 's> {
    talker: &'a mut Talker,
    spec: &'a TalkerSpec,
    lane: &'a mut Lane,
    buffers: &'a mut Buffers,
    line: Line<'a, 's>,
    out: Sending<'a>,
}

/// The near end of a conversation as one of its talkers uses it: what the transport takes leaves at once, unless the
/// host takes time to hand it over.
struct Line<'a, 's> {
    id: FlowId,
    near: &'a mut End,
    outlet: Outlet<'a, 's>,
    hand_over: Option<HandOver<'a>>,
}

impl Engine<'_, '_> {
    /// Sends what a member's source has due, as far as the transport takes it.
    pub(crate) fn produce(&mut self, m: u32, recorder: &mut dyn Recorder) {
        let member = &mut self.members[m as usize];
        member.source_scheduled = Time::MAX;
        let conversation = member.conversation;
        self.fill(m, recorder);
        if self.conversations[conversation as usize].owner.is_some() {
            // An engine with a state of its own wants to be looked after; a datagram has left already.
            self.serve(conversation, Side::Near, recorder);
        }
    }

    /// Gives up the message that has waited for the whole send timeout.
    pub(crate) fn give_up(&mut self, m: u32, recorder: &mut dyn Recorder) {
        if self.is_handing_over(m) {
            return; // the one before it is not yet with the transport: it is not the next to go
        }
        let now = self.now;
        let Talk { talker, spec, buffers, mut out, .. } = self.talk(m, recorder);
        if !talker.give_up(now, (spec, buffers), &mut out) {
            return; // the transport took it meanwhile
        }
        self.arm_send_timeout(m);
        self.fill(m, recorder);
        let conversation = self.members[m as usize].conversation;
        self.serve(conversation, Side::Near, recorder);
    }

    /// At the end of the run: messages that a source had due while it was measured, and that its transport never took, are refused.
    pub(crate) fn refuse_the_rest(&mut self, m: u32, recorder: &mut dyn Recorder) {
        // What the host had begun with was observed as sent.
        let was_handing = self.handing.remove(&m).is_some();
        let member = &self.members[m as usize];
        let is_cut_short = self.conversations[member.conversation as usize].is_never_connected;
        if was_handing || is_cut_short || member.talker.is_waiting() {
            let now = self.now.min(self.over_at);
            let Talk { talker, spec, lane, buffers, mut out, .. } = self.talk(m, recorder);
            talker.refuse_overdue(now, (spec, lane, buffers), &mut out);
        }
    }

    /// Produces and sends until the source is not due or the transport is full, and queues the next call.
    pub(crate) fn fill(&mut self, m: u32, recorder: &mut dyn Recorder) {
        loop {
            let member = &mut self.members[m as usize];
            if member.talker.is_waiting() || self.is_over || self.is_handing_over(m) {
                return; // called again when the transport has room
            }
            let member = &mut self.members[m as usize];
            match member.talker.next_due() {
                Some(due) if due <= self.now => {
                    self.network.begin(member.flow as usize);
                    let now = self.now;
                    let Talk { talker, spec, lane, buffers, mut line, mut out } = self.talk(m, recorder);
                    if talker.produce(now, lane, &mut out) == 0 {
                        return; // nothing came although it was due: never ask twice at one moment
                    }
                    loop {
                        let parts = (spec, &mut *lane, &mut *buffers);
                        match talker.send_next(now, parts, &mut line, &mut out) {
                            Progress::Sent | Progress::Full => {}
                            Progress::Nothing => break,
                        }
                    }
                    self.arm_send_timeout(m);
                }
                Some(due) => {
                    if due < member.source_scheduled {
                        member.source_scheduled = due;
                        self.events.push(due, Event::Source(m));
                    }
                    return;
                }
                None => {
                    let flow = member.flow;
                    return self.look_for_the_end(flow, recorder);
                }
            }
        }
    }

    /// Sends what has waited, now that the transport takes messages again, and lets the source go on.
    pub(crate) fn send_waiting(&mut self, m: u32, recorder: &mut dyn Recorder) {
        if self.is_handing_over(m) {
            return self.go_on_handing_over(m, recorder);
        }
        let now = self.now;
        let Talk { talker, spec, buffers, mut line, mut out, .. } = self.talk(m, recorder);
        let mut any = false;
        let is_full = loop {
            match talker.send_waiting(now, (spec, &mut *buffers), &mut line, &mut out) {
                Progress::Sent if line.hand_over.is_some() => return, // the host is busy with it
                Progress::Sent => any = true,
                Progress::Full => break true,
                Progress::Nothing => break false,
            }
        };
        if any {
            self.arm_send_timeout(m);
        }
        if !is_full {
            self.fill(m, recorder);
        }
    }

    /// Puts every packet that an endpoint wants to send on its path, as packets of the member `id`.
    pub(crate) fn transmit(&mut self, conversation: u32, side: Side, id: FlowId) {
        let Conversation { near, far, others, group, on_their_way, flow, .. } =
            &mut self.conversations[conversation as usize];
        let end = match side {
            Side::Near => near,
            Side::Far(0) => far,
            Side::Far(sink) => &mut others[usize::from(sink) - 1],
        };
        let mut outlet = Outlet {
            flow: &self.scenario.flows[*flow as usize],
            index: *flow,
            group: *group,
            on_their_way,
            network: &mut self.network,
            events: &mut self.events,
            hosts: &mut self.hosts,
        };
        outlet.transmit(self.now, end, side, id);
    }

    /// Queues the end of the send timeout of the first message that waits.
    fn arm_send_timeout(&mut self, m: u32) {
        let member = &self.members[m as usize];
        if let Some(at) = member.talker.gives_up_at(&self.talks[member.flow as usize]) {
            self.events.push(at.max(self.now), Event::GiveUp(m));
        }
    }

    fn is_handing_over(&self, m: u32) -> bool {
        !self.handing.is_empty() && self.handing.contains_key(&m)
    }
}

impl<'s> Engine<'s, '_> {
    fn talk<'a>(&'a mut self, m: u32, recorder: &'a mut dyn Recorder) -> Talk<'a, 's> {
        let member = &mut self.members[m as usize];
        let index = member.flow;
        let flow = &self.scenario.flows[index as usize];
        let Conversation { near, far, others, group, on_their_way, .. } =
            &mut self.conversations[member.conversation as usize];
        let outlet = Outlet {
            flow,
            index,
            group: *group,
            on_their_way,
            network: &mut self.network,
            events: &mut self.events,
            hosts: &mut self.hosts,
        };
        let hand_over =
            self.slow_flows[index as usize].then_some(HandOver { member: m, handing: &mut self.handing });
        Talk {
            spec: &self.talks[index as usize],
            lane: &mut self.lane,
            buffers: &mut self.waiting,
            line: Line { id: member.talker.id(), near, outlet, hand_over },
            out: Sending {
                recorder,
                flow,
                index,
                counted: &mut self.counted,
                covered: &mut self.covered,
                reader: &mut far.reader,
                first: far.presence,
                others,
            },
            talker: &mut member.talker,
        }
    }
}

impl transport::Conversation for Line<'_, '_> {
    fn send(&mut self, now: Time, message: Message<'_>) -> Result<(), SendError> {
        let Line { id, near, outlet, hand_over } = self;
        if let Some(hand_over) = hand_over {
            return hand_over.begin(now, message.bytes, outlet);
        }
        if outlet.network.is_full(outlet.index, *id) {
            return Err(SendError::Full);
        }
        outlet.send(now, near, (Side::Near, *id), message)
    }

    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        self.near.endpoint.receive(into)
    }

    fn poll_event(&mut self) -> Option<transport::Event> {
        self.near.endpoint.poll_event()
    }

    fn close(&mut self, now: Time, how: Close) {
        self.near.endpoint.close(now, how);
    }

    fn features(&self) -> &'static Features {
        self.near.endpoint.features()
    }
}
