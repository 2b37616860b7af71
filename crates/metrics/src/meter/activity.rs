//! From when to when a flow, or one of its members, is active.

use core::ops::Range;

use trunkline_core::Time;

use crate::record::Lasting;

/// What decides it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Activity {
    first_due: Option<Time>,
    last_due: Option<Time>,
    last_arrival: Option<Time>,
}

impl Activity {
    /// A message was due, whether the transport took it or not.
    #[inline]
    pub(super) fn due(&mut self, at: Time) {
        self.first_due = Some(self.first_due.map_or(at, |first| first.min(at)));
        self.last_due = self.last_due.max(Some(at));
    }

    /// A message arrived.
    #[inline]
    pub(super) fn arrived(&mut self, at: Time) {
        self.last_arrival = Some(self.last_arrival.map_or(at, |last| last.max(at)));
    }

    /// From the first due message to the end that [`Lasting`] defines; `None` if none was due.
    pub(super) fn span(&self, lasting: Lasting, end_of_run: Time) -> Option<(Time, Time)> {
        let first = self.first_due?;
        let end = match (self.last_arrival, lasting) {
            (Some(last), Lasting::Volume) => last.max(self.last_due.unwrap_or(last)),
            // A first message that was due at the very end has no time of its own.
            (Some(last), Lasting::Run) if end_of_run <= first => last,
            (Some(_), Lasting::Run) | (None, _) => end_of_run,
        };
        Some((first, end))
    }
}

/// The part of an active time in which a sink is there: all of it, if the sink comes and goes at no time of its own.
pub(super) fn within(active: Option<(Time, Time)>, there: Option<&Range<Time>>) -> Option<(Time, Time)> {
    let Some(there) = there else { return active };
    let part = active.map(|(begin, end)| (begin.max(there.start), end.min(there.end)));
    part.filter(|(begin, end)| begin < end)
}
