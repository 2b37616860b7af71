//! Packets as they were seen at both ends of a path: the input of all estimates.

use trunkline_core::{Duration, Time};

/// A direction of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Way {
    /// From this host to the other one.
    Forward,
    /// From the other host to this one.
    Backward,
}

impl Way {
    /// Both of them.
    pub const ALL: [Way; 2] = [Way::Forward, Way::Backward];

    /// The name of its table in a link: `forward` or `backward`.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Forward => "forward",
            Way::Backward => "backward",
        }
    }
}

/// All that was seen of a path, on one time line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observations {
    /// Flows of both directions. Each is a flow of its own for queues, too: it has its own addresses and ports.
    pub flows: Vec<ObservedFlow>,
    /// The largest error of the difference between the clocks of the two ends. `None` if they have the same clock, or if
    /// nothing is known of them: then only differences between delays count.
    pub clock_error: Option<Duration>,
}

/// The packets of a flow in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedFlow {
    /// Its name.
    pub name: String,
    /// Its direction.
    pub way: Way,
    /// Its packets in the order of sending.
    pub packets: Vec<Packet>,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it was sent.
    pub sent: Time,
    /// Its bytes at the network layer, with the headers of IP and UDP.
    pub bytes: u32,
    /// Its one-way delay in nanoseconds: the receiver's clock at its arrival minus the sender's clock at its departure. The
    /// difference of the clocks may make it negative. `None` if it was lost.
    pub delay: Option<i64>,
}

impl Packet {
    /// When it arrived, on a clock that differs from the sender's by a constant only.
    pub fn received(&self) -> Option<i128> {
        self.delay.map(|delay| i128::from(self.sent.as_nanos()) + i128::from(delay))
    }
}

impl Observations {
    /// The flows of a direction.
    pub fn of(&self, way: Way) -> impl Iterator<Item = &ObservedFlow> {
        self.flows.iter().filter(move |flow| flow.way == way)
    }

    /// The packets of a direction, in the order of sending.
    pub fn packets(&self, way: Way) -> Vec<Packet> {
        let mut packets: Vec<Packet> = self.of(way).flat_map(|flow| flow.packets.iter().copied()).collect();
        packets.sort_by_key(|packet| packet.sent);
        packets
    }

    /// Adds what was observed from `at` on.
    pub fn append(&mut self, later: Observations, at: Duration) {
        self.clock_error = self.clock_error.max(later.clock_error);
        for mut flow in later.flows {
            for packet in &mut flow.packets {
                packet.sent += at;
            }
            match self.flows.iter_mut().find(|own| own.name == flow.name && own.way == flow.way) {
                Some(own) => own.packets.extend(flow.packets),
                None => self.flows.push(flow),
            }
        }
    }

    /// The end of the last packet's flight: no packet was sent later.
    pub fn end(&self) -> Time {
        self.flows.iter().flat_map(|flow| &flow.packets).map(|packet| packet.sent).max().unwrap_or(Time::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_observations_continue_flows_of_the_same_name() {
        let packet = |ms: u64| Packet { sent: Time::from_nanos(ms * 1_000_000), bytes: 100, delay: Some(5) };
        let flow = |way| ObservedFlow { name: "thin".to_owned(), way, packets: vec![packet(1)] };
        let mut all = Observations { flows: vec![flow(Way::Forward)], clock_error: None };
        let later = Observations {
            flows: vec![flow(Way::Forward), flow(Way::Backward)],
            clock_error: Some(Duration::from_micros(3)),
        };
        all.append(later, Duration::from_secs(1));
        assert_eq!(all.packets(Way::Forward), [packet(1), packet(1_001)]);
        assert_eq!(all.packets(Way::Backward), [packet(1_001)]);
        assert_eq!(all.clock_error, Some(Duration::from_micros(3)));
        assert_eq!(all.end(), Time::from_nanos(1_001_000_000));
    }
}
