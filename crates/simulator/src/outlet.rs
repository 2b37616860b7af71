//! The way of a conversation's packets out of its host.

use trunkline_core::{Address, FlowId, Packet, Time};
use trunkline_experiment::{Flow, Sink};
use trunkline_transport::{Message, SendError, Transmit, drain};

use crate::conversation::{End, Side};
use crate::event::Event;
use crate::events::EventQueue;
use crate::hosts::Hosts;
use crate::network::Network;

/// The way of a conversation's packets to the network.
pub(crate) struct Outlet<'a, 's> {
    pub(crate) flow: &'s Flow,
    /// The flow's index in the scenario.
    pub(crate) index: u32,
    pub(crate) group: Option<Address>,
    pub(crate) on_their_way: &'a mut u32,
    pub(crate) network: &'a mut Network<'s>,
    pub(crate) events: &'a mut EventQueue<Event>,
    pub(crate) hosts: &'a mut Hosts,
}

impl Outlet<'_, '_> {
    /// When a host with this message at hand can begin to hand it over to its transport.
    pub(crate) fn begins_at(&mut self, now: Time) -> Time {
        self.hosts.get(self.flow.from).send_message(now, self.flow.effort)
    }

    /// A buffer with a copy of these bytes.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut copy = self.network.buffer();
        copy.extend_from_slice(bytes);
        copy
    }

    pub(crate) fn queue(&mut self, at: Time, event: Event) {
        self.events.push(at, event);
    }

    /// Gives a message of the member `id` to its endpoint, and puts the packets of it on their path.
    #[inline]
    pub(crate) fn send(
        &mut self,
        now: Time,
        end: &mut End,
        (side, id): (Side, FlowId),
        message: Message<'_>,
    ) -> Result<(), SendError> {
        let mut bytes = self.network.buffer();
        match end.endpoint.send_now(message, &mut bytes) {
            Some(Ok(transmit)) => self.put(now, end.address, (side, id), transmit, bytes),
            Some(Err(error)) => {
                self.network.recycle(bytes);
                return Err(error);
            }
            None => {
                self.network.recycle(bytes);
                end.endpoint.send(now, message)?;
                self.transmit(now, end, side, id);
            }
        }
        Ok(())
    }

    /// Puts every packet that an endpoint wants to send on its path, as packets of the member `id`.
    pub(crate) fn transmit(&mut self, now: Time, end: &mut End, side: Side, id: FlowId) {
        let mut buffer = self.network.buffer();
        let from = end.address;
        drain(end.endpoint.as_mut(), now, &mut buffer, |transmit, bytes| {
            let bytes = core::mem::replace(bytes, self.network.buffer());
            self.put(now, from, (side, id), transmit, bytes);
        });
        self.network.recycle(buffer);
    }

    /// Puts a packet on its path.
    #[inline]
    fn put(
        &mut self,
        now: Time,
        from: Address,
        (side, id): (Side, FlowId),
        transmit: Transmit,
        bytes: Vec<u8>,
    ) {
        let Outlet { flow, group, network, events, hosts, on_their_way, .. } = self;
        let to_group = *group == Some(transmit.to);
        let sink = match side {
            Side::Far(sink) => sink,
            Side::Near if to_group => 0,
            Side::Near => {
                let is_there = |sink: &Sink| sink.host == usize::from(transmit.to.host);
                flow.to.iter().position(is_there).unwrap_or(0) as u16
            }
        };
        let packet = Packet {
            flow: id,
            size: transmit.size,
            ecn: transmit.ecn,
            priority: flow.priority,
            backward: side != Side::Near,
            sink,
            group: to_group,
            from,
            bytes,
            ..Packet::default()
        };
        if side == Side::Near && !to_group {
            **on_their_way = on_their_way.wrapping_add(1);
        }
        let mut departs = transmit.earliest;
        if let Some(host) = hosts.slow_sender(from.host) {
            departs = departs.max(host.send_packet(now, transmit.size, flow.effort));
        }
        if departs > now {
            network.depart_later(departs, packet, events);
        } else {
            network.send(now, packet, events);
        }
    }
}
