//! The guests in the loop: their events, and their packets at the ends of links.

use trunkline_core::{Port, Time};

use super::Engine;
use crate::event::Event;
use crate::guests::{GuestFailure, GuestPacket};

impl Engine<'_, '_> {
    /// Lets the guests do what is due.
    pub(crate) fn run_guests(&mut self) -> Result<(), GuestFailure> {
        let Some(guests) = &mut self.guests else { return Ok(()) };
        if self.guests_scheduled != self.now {
            return Ok(()); // an earlier event took its place
        }
        self.guests_scheduled = Time::MAX;
        let until = self.events.next_time().unwrap_or(self.end).min(self.end);
        let mut sent = core::mem::take(&mut self.sent);
        guests.run(self.now, until, &mut sent)?;
        for GuestPacket { at, step, packet } in sent.drain(..) {
            let slot = self.network.keep_of_guest(packet, step);
            self.events.push(at.max(self.now), Event::Depart(slot));
        }
        self.sent = sent;
        self.schedule_guests();
        Ok(())
    }

    /// A packet of a guest has crossed a link.
    pub(crate) fn guest_packet_arrived(&mut self, slot: u32) -> Result<(), GuestFailure> {
        let (packet, step) = self.network.take_of_guest(slot);
        let Some(guests) = &mut self.guests else { return Ok(()) };
        let host = self.scenario.links[step.link].between[usize::from(step.to_port)];
        if guests.is_guest(host) {
            guests.receive(self.now, step.link, Port(step.to_port), packet)?;
            self.schedule_guests();
        } else if let Some(onward) = guests.forward(host, &packet) {
            let slot = self.network.keep_of_guest(packet, onward);
            self.network.depart(self.now, slot, &mut self.events);
        }
        Ok(())
    }

    /// Queues what the guests have to do next.
    pub(crate) fn schedule_guests(&mut self) {
        let next = self.guests.as_ref().and_then(|guests| guests.next_event());
        if let Some(next) = next.map(|next| next.max(self.now))
            && next < self.guests_scheduled
        {
            self.guests_scheduled = next;
            self.events.push(next, Event::Guests);
        }
    }
}
