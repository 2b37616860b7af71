//! Sinks that come and go, and what a sender knows of those of a multicast.

use trunkline_core::Time;
use trunkline_experiment::Sink;
use trunkline_metrics::Recorder;
use trunkline_transport::{Close, Membership};

use super::Engine;
use crate::conversation::{Presence, Side};
use crate::event::Event;
use crate::transports::knows_its_sinks;

impl Engine<'_, '_> {
    /// Queues what will become of the sinks of the conversations from this one on.
    pub(crate) fn expect_changes(&mut self, first: u32) {
        for (index, conversation) in (0..).zip(&self.conversations).skip(first as usize) {
            let sinks = &self.scenario.flows[conversation.flow as usize].to;
            for (place, sink) in (0..).zip(sinks) {
                let joins = Some(sink.join).filter(|join| !join.is_zero());
                for at in [joins, sink.leave, sink.fail].into_iter().flatten() {
                    self.events.push(Time::ZERO + at, Event::Sink(index, place));
                }
            }
        }
    }

    /// Does what the file says of a sink for this moment.
    pub(crate) fn sink_changes(&mut self, conversation: u32, sink: u16, recorder: &mut dyn Recorder) {
        let side = Side::Far(sink);
        let flow = self.conversations[conversation as usize].flow;
        let sinks = &self.scenario.flows[flow as usize].to;
        let Sink { join, leave, fail, .. } = sinks[usize::from(sink)];
        let at = Some(self.now.since(Time::ZERO));
        let knows = knows_its_sinks(&self.scenario.flows[flow as usize]);
        let end = self.conversations[conversation as usize].end(side);
        if at == Some(join) {
            end.presence.is_away = false;
            end.presence.is_awaited |= !knows;
            self.network.set_present(flow as usize, sink, true);
            if sinks.iter().all(|sink| sink.join >= join) {
                self.network.restart(flow as usize);
            }
        }
        if at == leave && !end.presence.is_away {
            end.endpoint.close(self.now, Close::Graceful);
            self.serve(conversation, side, recorder);
            let end = self.conversations[conversation as usize].end(side);
            end.presence = Presence { is_away: true, is_awaited: false };
            self.network.set_present(flow as usize, sink, false);
        }
        if at == fail {
            self.conversations[conversation as usize].end(side).presence.is_away = true;
        }
    }

    /// A sender of a multicast has a receiver more, or one less.
    pub(crate) fn membership(&mut self, index: u32, what: Membership) {
        let conversation = &mut self.conversations[index as usize];
        let flow = conversation.flow;
        let (address, is_member, name) = match what {
            Membership::Joined(address) => (address, true, "receivers-joined"),
            Membership::Left(address) => (address, false, "receivers-left"),
            Membership::Dropped(address) => (address, false, "receivers-dropped"),
        };
        let sinks = &self.scenario.flows[flow as usize].to;
        let Some(sink) = sinks.iter().position(|sink| sink.host == usize::from(address.host)) else { return };
        conversation.end(Side::Far(sink as u16)).presence.is_awaited = is_member;
        let host = &self.scenario.hosts[sinks[sink].host].name;
        *self.counted.entry((flow, format!("{name} {host}"))).or_insert(0) += 1;
    }
}
