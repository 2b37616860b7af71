//! What the listeners of one flow hear, while it runs.

use trunkline_core::Duration;

use crate::moments::Moments;
use crate::quality::{Listening, Losses, QualitySummary, Unheard};
use crate::record::FlowMeta;

/// Counts what is heard in time, and how long after it was due.
#[derive(Debug)]
pub(super) struct ListeningMeter {
    listening: Listening,
    channels_per_member: u16,
    /// Of all members, one after the other.
    channels: Vec<Unheard>,
    losses: Losses,
    from_due: Moments,
}

impl ListeningMeter {
    /// Of a flow whose listeners are asked.
    pub(super) fn new(meta: &FlowMeta) -> Option<Box<ListeningMeter>> {
        let channels = meta.ids() as usize * usize::from(meta.channels);
        Some(Box::new(ListeningMeter {
            listening: meta.listening?,
            channels_per_member: meta.channels,
            channels: vec![Unheard::default(); channels],
            losses: Losses::default(),
            from_due: Moments::default(),
        }))
    }

    /// A message that the source handed over, whether the transport took it or not.
    pub(super) fn due(&mut self, member: u32, channel: u16, sequence: u32) {
        let place = self.place(member, channel);
        if let Some(channel) = self.channels.get_mut(place) {
            channel.due(sequence);
        }
    }

    /// A message that was played in time, and how long after it was due, if that is known.
    pub(super) fn heard(&mut self, member: u32, channel: u16, sequence: u32, from_due: Option<Duration>) {
        let place = self.place(member, channel);
        if let Some(channel) = self.channels.get_mut(place) {
            channel.heard(sequence, &mut self.losses);
        }
        if let Some(from_due) = from_due {
            self.from_due.add(from_due);
        }
    }

    /// Speech that never got into a message.
    pub(super) fn overflowed(&mut self, length: Duration) {
        let packet = self.listening.packet.as_nanos().max(1);
        self.losses.add_burst(length.as_nanos().div_ceil(packet));
    }

    pub(super) fn finish(mut self) -> Option<QualitySummary> {
        for channel in &mut self.channels {
            channel.finish(&mut self.losses);
        }
        let from_due = (self.from_due.count() > 0).then(|| self.from_due.mean());
        self.listening.judge(from_due, &self.losses)
    }

    fn place(&self, member: u32, channel: u16) -> usize {
        member as usize * usize::from(self.channels_per_member) + usize::from(channel)
    }
}

#[cfg(test)]
mod tests;
