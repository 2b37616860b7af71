//! Which channel of a source is due next.

use trunkline_core::Time;

/// The next due time of every channel, and the earliest of them at hand.
#[derive(Debug)]
pub(crate) struct Agenda {
    due: Due,
    stop: Time,
}

/// [`Time::MAX`] for never.
#[derive(Debug)]
enum Due {
    /// Of an only channel: nothing but this.
    One(Time),
    Many(Box<Tournament>),
}

/// A tournament tree, in which changing one channel's time costs the logarithm of their number and nothing is ever
/// allocated.
#[derive(Debug)]
struct Tournament {
    /// By channel.
    due: Box<[Time]>,
    /// Node `i` holds the earlier channel of nodes `2i` and `2i + 1`; node 1 the earliest of all. The second half are
    /// the leaves, one per channel.
    earliest: Box<[u16]>,
}

impl Agenda {
    /// Nothing is due on any of the channels, and nothing ever will be at or after `stop`.
    pub(crate) fn new(channels: u16, stop: Time) -> Agenda {
        let due = match channels {
            0 | 1 => Due::One(Time::MAX),
            _ => Due::Many(Box::new(Tournament::new(channels))),
        };
        Agenda { due, stop }
    }

    /// Makes a channel due at this time, or never if that is not before the stop.
    #[inline]
    pub(crate) fn set(&mut self, channel: u16, due: Time) {
        let due = if due < self.stop { due } else { Time::MAX };
        match &mut self.due {
            Due::One(only) => *only = due,
            Due::Many(tournament) => tournament.set(channel, due),
        }
    }

    /// Makes a channel never due again.
    pub(crate) fn clear(&mut self, channel: u16) {
        self.set(channel, Time::MAX);
    }

    /// The earliest due time and its channel; of several at that time, the lowest channel.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Time, u16)> {
        let (due, channel) = match &self.due {
            Due::One(only) => (*only, 0),
            Due::Many(tournament) => tournament.first(),
        };
        (due < Time::MAX).then_some((due, channel))
    }

    /// The same, if it is not later than `now`.
    #[inline]
    pub(crate) fn first_by(&self, now: Time) -> Option<(Time, u16)> {
        self.first().filter(|&(due, _)| due <= now)
    }
}

impl Tournament {
    fn new(channels: u16) -> Tournament {
        let leaves = usize::from(channels);
        let mut earliest = vec![0; 2 * leaves];
        for channel in 0..channels {
            earliest[leaves + usize::from(channel)] = channel;
        }
        for node in (1..leaves).rev() {
            earliest[node] = earliest[2 * node].min(earliest[2 * node + 1]);
        }
        Tournament { due: vec![Time::MAX; leaves].into(), earliest: earliest.into() }
    }

    fn set(&mut self, channel: u16, due: Time) {
        self.due[usize::from(channel)] = due;
        let mut node = (self.due.len() + usize::from(channel)) / 2;
        while node > 0 {
            let (left, right) = (self.earliest[2 * node], self.earliest[2 * node + 1]);
            let key = |channel: u16| (self.due[usize::from(channel)], channel);
            self.earliest[node] = if key(left) < key(right) { left } else { right };
            node /= 2;
        }
    }

    fn first(&self) -> (Time, u16) {
        let channel = self.earliest[1];
        (self.due[usize::from(channel)], channel)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_is_the_smallest_of_all(
            channels in 1u16..40,
            changes in prop::collection::vec((any::<u16>(), 0u64..60), 1..200),
        ) {
            let stop = Time::from_nanos(50);
            let mut agenda = Agenda::new(channels, stop);
            let mut plain = vec![None; usize::from(channels)];
            prop_assert_eq!(agenda.first(), None);
            for (channel, due) in changes {
                let (channel, due) = (channel % channels, Time::from_nanos(due));
                agenda.set(channel, due);
                plain[usize::from(channel)] = (due < stop).then_some((due, channel));
                prop_assert_eq!(agenda.first(), plain.iter().flatten().min().copied());
            }
        }
    }
}
