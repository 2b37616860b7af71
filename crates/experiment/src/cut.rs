//! Limits on a flow's way that drop its packets although nothing else is on the line.

use trunkline_core::schema::{Limit, Value, Values};
use trunkline_core::{Bytes, Destination, Distribution, Packet, Port, Seed, Time};
use trunkline_metrics::{CutBy, Lasting};
use trunkline_network::{DropCause, Fate, Outcome};
use trunkline_traffic::KINDS;
use trunkline_transport::kind::{self, MessageSize};

use crate::model::{Direction, Flow, Link, PathStep, Scenario};

/// Most events of a line that carries one packet.
const EVENTS: usize = 100_000;

/// The size that a flow's messages have at least; `None` if they differ.
fn usual_message(flow: &Flow) -> Option<u64> {
    let values = &flow.source.values;
    let named = |name: &str| values.iter().find(|(other, _)| *other == name).map(|(_, value)| value);
    match (named("message"), named("samples")) {
        (Some(Value::Distribution(Distribution::Constant(size))), _) => Some(*size),
        (Some(_), _) => None,
        (None, Some(Value::Integer(samples))) => Some(*samples),
        (None, _) => Some((KINDS[flow.source.kind].max_message)(values)),
    }
}

/// The limit of a queue, if it has one.
fn limit(queue: &Values) -> Option<String> {
    queue.iter().find_map(|(name, value)| match value {
        Value::Limit(limit) if name == "limit" => Some(limit.to_string()),
        _ => None,
    })
}

/// True if each flow has a virtual channel with a queue of its own, instead of the link's.
fn has_channels(medium: &Values) -> bool {
    medium.iter().any(|(name, _)| name == "vc") && medium.text("vc") == "flow"
}

/// The size of the parts in which a medium handles packets.
fn chunk(medium: &Values) -> Option<Bytes> {
    medium.iter().find_map(|(name, value)| match value {
        Value::Bytes(size) if name == "chunk" => Some(*size),
        _ => None,
    })
}

/// The bucket of a policer that never lets a packet of this size pass.
fn bucket(medium: &Values, packet: Bytes) -> Option<(&'static str, String)> {
    let value = |key: &str| medium.iter().find(|(name, _)| *name == key).map(|(_, value)| value);
    let discards = matches!(value("policing"), Some(Value::Text(treatment)) if treatment == "discard");
    let has_peak = matches!(value("peak-rate"), Some(Value::Rate(_)));
    let too_small = |key: &'static str| match value(key) {
        Some(Value::Bytes(size)) if *size < packet => Some((key, size.to_string())),
        _ => None,
    };
    let committed = discards.then(|| too_small("committed-burst")).flatten();
    committed.or_else(|| has_peak.then(|| too_small("peak-burst")).flatten())
}

impl Scenario {
    /// The first limit on the way to a flow's first sink that drops its packets on an idle line; `None` also where the size of
    /// its packets is not known.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn cut_by(&self, flow: usize) -> Option<CutBy> {
        let flow = &self.flows[flow];
        let path = &flow.to.first()?.forward;
        let packet = self.largest_packet(flow, path)?;
        path.iter()
            .filter(|step| self.links[step.link].between.len() == 2)
            .find_map(|step| self.cut_at(step, packet))
    }

    /// A flow's largest packets have at least this size: headers are counted where each message is one datagram.
    fn largest_packet(&self, flow: &Flow, path: &[PathStep]) -> Option<Bytes> {
        let size = usual_message(flow)?;
        let mtu = path.iter().map(|step| self.direction(step).mtu).min()?;
        let full = flow.transport.full_packet(mtu)?;
        let features = flow.transport.features();
        // A stream that always has more to send sends full packets.
        let is_full = flow.meta.is_greedy && flow.meta.lasting == Lasting::Run && !features.message_oriented;
        let least = if is_full { full } else { full.min(Bytes(size)) };
        let message = MessageSize { noun: "a message", size, whole: size, varies: false, is_back: false };
        match flow.transport.packet(&message) {
            kind::Packet::Needs { bytes, .. }
                if features.message_oriented && !features.connection_oriented =>
            {
                Some(least.max(Bytes(bytes).min(mtu)))
            }
            _ => Some(least),
        }
    }

    fn direction(&self, step: &PathStep) -> &Direction {
        &self.links[step.link].directions[usize::from(step.from_port)]
    }

    /// The buffer of a switch's port to the station that a step leads to.
    fn switch_buffer(&self, step: &PathStep) -> Limit {
        self.links[step.link].directions[usize::from(step.to_port)].values.limit("switch-buffer")
    }

    fn cut_at(&self, step: &PathStep, packet: Bytes) -> Option<CutBy> {
        let mut link = self.links[step.link].clone();
        link.directions.iter_mut().for_each(|direction| direction.impairments = Default::default());
        let cause = self.dropped(&link, step, packet)?;
        let direction = self.direction(step);
        let (option, limit) = match cause {
            DropCause::QueueFull if has_channels(&direction.values) => {
                ("vc-limit", direction.values.limit("vc-limit").to_string())
            }
            DropCause::QueueFull => ("queue.limit", limit(&direction.queue.1)?),
            DropCause::InputFull => ("input", direction.values.bytes("input").to_string()),
            DropCause::Policed => bucket(&direction.values, packet)?,
            DropCause::CellLost => {
                // Cells that are tagged find less room.
                let mut roomier = link.clone();
                roomier.directions.iter_mut().for_each(|at| at.values.set("clp-threshold", Value::Absent));
                let is_buffer = self.dropped(&roomier, step, packet).is_some();
                let key = if is_buffer { "buffer" } else { "clp-threshold" };
                (key, format!("{} cells", direction.values.integer(key)))
            }
            DropCause::SwitchFull => ("switch-buffer", self.switch_buffer(step).to_string()),
            _ => return None,
        };
        let (mut largest, mut smallest_cut) = (0, packet.count());
        while largest + 1 < smallest_cut {
            let middle = largest.midpoint(smallest_cut);
            match self.dropped(&link, step, Bytes(middle)) {
                Some(_) => smallest_cut = middle,
                None => largest = middle,
            }
        }
        Some(CutBy {
            option: format!("link.{}.{option}", link.name),
            limit,
            chunk: chunk(&direction.values),
            packet,
            largest: Bytes(largest),
        })
    }

    /// Why an idle link drops a packet, if it does.
    fn dropped(&self, link: &Link, step: &PathStep, size: Bytes) -> Option<DropCause> {
        let to = Destination::Port(Port(step.to_port));
        let mut medium = self.build_link(link, Seed::new(0, 0));
        let mut out = Outcome::default();
        medium.offer(Time::ZERO, Port(step.from_port), Packet { size, to, ..Packet::default() }, &mut out);
        for _ in 0..EVENTS {
            let dropped = out.fates.0.iter().find_map(|fate| match fate {
                Fate::Dropped { cause, .. } => Some(*cause),
                Fate::Marked { .. } => None,
            });
            if dropped.is_some() || !out.deliveries.is_empty() {
                return dropped;
            }
            medium.advance(medium.next_event()?, &mut out);
        }
        None
    }
}
