//! Messages that follow each other regardless of their fate: the common part of background load, paced bulk, the traffic of
//! others and functions.

use core::fmt::Debug;

use trunkline_core::Time;

use crate::agenda::Agenda;
use crate::per_channel::PerChannel;
use crate::source::{Feedback, MessageBuffer, Source, SourceContext};

/// A channel of an open loop.
pub(crate) trait Channel: Debug + Send {
    /// Returns the size in bytes of the message that was due at `due` and is sent at `now`, and the time at which the next is
    /// due: [`Time::MAX`] for never.
    fn next(&mut self, due: Time, now: Time) -> (u64, Time);
}

/// An open loop of one or more channels.
#[derive(Debug)]
pub(crate) struct OpenLoop<C> {
    agenda: Agenda,
    channels: PerChannel<C>,
}

impl<C: Channel> OpenLoop<C> {
    /// The channels by their numbers, each with the time of its first message.
    pub(crate) fn new(context: &SourceContext, mut channel: impl FnMut(u16) -> (C, Time)) -> OpenLoop<C> {
        let mut agenda = Agenda::new(context.channels, context.stop);
        let mut begun = |number| {
            let (channel, first) = channel(number);
            agenda.set(number, first);
            channel
        };
        let channels = (0..context.channels).map(&mut begun).collect();
        OpenLoop { agenda, channels }
    }
}

impl<C: Channel> Source for OpenLoop<C> {
    fn next_due(&self) -> Option<Time> {
        self.agenda.first().map(|(due, _)| due)
    }

    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        while let Some((due, number)) = self.agenda.first_by(now) {
            let (size, next) = self.channels.of(number).next(due, now);
            out.push(number, due, size as usize, |_| {});
            self.agenda.set(number, next);
            if out.has_enough() {
                break;
            }
        }
    }

    fn notify(&mut self, _: Time, _: Feedback) {}

    fn is_finished(&self) -> bool {
        self.agenda.first().is_none()
    }
}
