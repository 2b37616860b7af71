//! Looks at the queues of all links at regular times, for a supervisor that wants to know.

use trunkline_core::{Duration, Time};
use trunkline_experiment::{Scenario, Supervisor};

use crate::network::Network;

/// When the queues are looked at next, and what their directions are called.
pub(crate) struct Watch {
    /// [`Time::MAX`] if nobody wants to know.
    next: Time,
    interval: Duration,
    directions: Vec<Vec<String>>,
}

impl Watch {
    pub(crate) fn new(scenario: &Scenario, supervisor: &dyn Supervisor) -> Watch {
        let interval = supervisor.backlog_interval().filter(|interval| *interval > Duration::ZERO);
        Watch {
            next: interval.map_or(Time::MAX, |_| Time::ZERO),
            interval: interval.unwrap_or_default(),
            directions: match interval {
                Some(_) => scenario.links.iter().map(|link| scenario.directions(link)).collect(),
                None => Vec::new(),
            },
        }
    }

    /// Whether a look is due before what happens at `now`.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next < now
    }

    /// Tells what waits, as it has since the last event before `now`. Between two events nothing changes, and one look is
    /// enough.
    #[cold]
    pub(crate) fn look(
        &mut self,
        now: Time,
        scenario: &Scenario,
        network: &Network<'_>,
        supervisor: &mut dyn Supervisor,
    ) {
        for (link, directions) in self.directions.iter().enumerate() {
            for (port, direction) in directions.iter().enumerate() {
                let waiting = network.backlog(link, port);
                let name = &scenario.links[link].name;
                supervisor.backlog(self.next, name, direction, waiting.bytes, waiting.packets);
            }
        }
        let looks = now.since(self.next).as_nanos().div_ceil(self.interval.as_nanos());
        self.next += self.interval * looks;
    }
}
