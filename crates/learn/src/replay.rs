//! The packets that were observed, sent once more at the same times over a candidate link in the simulator.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use trunkline_core::{Seed, Time};
use trunkline_experiment::{Experiment, NamedFiles, Progress, Scenario, Supervisor};

use crate::collector::Collector;
use crate::link::Link;
use crate::observations::{Observations, ObservedFlow, Packet, Way};

/// Headers of IPv4 and UDP.
const HEADERS: u32 = 28;
/// Time after the last packet in which a queue may still drain.
const DRAIN: u64 = 10;

/// A schedule of packets in one direction that can be sent over any link.
#[derive(Debug)]
pub struct Replay {
    scenario: Scenario,
    /// The fate of these packets on the path.
    observed: Vec<ObservedFlow>,
}

struct Never;

impl Supervisor for Never {
    fn progress(&mut self, _: trunkline_core::Duration) -> Progress {
        Progress::Continue
    }
}

impl Replay {
    /// The packets of a direction that were sent in these times, in seconds.
    ///
    /// # Errors
    /// If the schedule cannot be written as an experiment.
    pub fn new(observations: &Observations, way: Way, windows: &[Range<f64>]) -> Result<Replay, String> {
        let mut observed = Vec::new();
        let begin = windows.iter().map(|window| window.start).fold(f64::INFINITY, f64::min).max(0.0);
        for flow in observations.of(way) {
            let mut packets = Vec::new();
            for packet in &flow.packets {
                let sent = packet.sent.as_secs_f64();
                if windows.iter().any(|window| window.contains(&sent)) {
                    packets.push(Packet { sent: Time::from_nanos(((sent - begin) * 1e9) as u64), ..*packet });
                }
            }
            if !packets.is_empty() {
                observed.push(ObservedFlow { packets, ..flow.clone() });
            }
        }
        let end = windows.iter().map(|window| window.end).fold(begin, f64::max);
        let (text, files) = experiment(&observed, end - begin);
        let read = Experiment::parse(&text, "replay", &files).map_err(|problems| problems.to_string())?;
        let scenario = Arc::clone(&read.points.first().scenario);
        Ok(Replay { scenario: Arc::unwrap_or_clone(scenario), observed })
    }

    /// The packets with their fate on the path.
    pub fn observed(&self) -> &[ObservedFlow] {
        &self.observed
    }

    /// The packets with their fate on a link in the simulator. The result has the flows of [`observed`](Replay::observed),
    /// packet by packet.
    ///
    /// # Errors
    /// If the link cannot be simulated.
    pub fn over(&self, link: &Link, seed: u64) -> Result<Vec<ObservedFlow>, String> {
        let text = format!(
            "name = \"link\"\nduration = \"1 s\"\n{HOSTS}[link.path]\nbetween = [\"here\", \"there\"]\n{}\
             [flow.none]\nfrom = \"here\"\nto = \"there\"\ntransport = \"udp\"\nsource = \"voice\"\n",
            link.toml()
        );
        let read = Experiment::parse(&text, "link", &()).map_err(|problems| problems.to_string())?;
        let with_link = &read.points.first().scenario;
        let scenario = Scenario { links: with_link.links.clone(), ..self.scenario.clone() };
        let mut collector = Collector::new(&scenario, "here");
        trunkline_simulator::run(&scenario, Seed::new(seed, 0), &mut collector, &mut Never)
            .map_err(|error| error.to_string())?;
        Ok(collector.finish().flows)
    }
}

const HOSTS: &str = "[hosts]\nhere = {}\nthere = {}\n";

/// The experiment file of a schedule, with the files of its times and sizes.
fn experiment(flows: &[ObservedFlow], lasts: f64) -> (String, NamedFiles) {
    let mut files = BTreeMap::new();
    let mut text = format!(
        "name = \"replay\"\nduration = \"{:.3} s\"\ndrain = \"{DRAIN} s\"\n{HOSTS}\
         [link.path]\nbetween = [\"here\", \"there\"]\nrate = \"1 Gbit/s\"\n",
        lasts.max(0.001) + 0.001
    );
    for (number, flow) in flows.iter().enumerate() {
        let (mut gaps, mut sizes) = (String::new(), String::new());
        let mut last = 0;
        for packet in &flow.packets {
            let sent = packet.sent.as_nanos();
            gaps += &format!("{} ns\n", sent - last);
            sizes += &format!("{}\n", packet.bytes.saturating_sub(HEADERS).max(1));
            last = sent;
        }
        // The trace begins again behind its end, which the run does not reach.
        gaps += "3600 s\n";
        sizes += "100\n";
        files.insert(format!("{number}.gaps"), gaps.into_bytes());
        files.insert(format!("{number}.sizes"), sizes.into_bytes());
        text += &format!(
            "[flow.\"{}\"]\nfrom = \"here\"\nto = \"there\"\ntransport = \"udp\"\nsource = {{ kind = \"load\", \
             message = {{ kind = \"trace\", file = \"{number}.sizes\" }}, interval = {{ kind = \"trace\", file = \"{number}.gaps\" }} }}\n",
            flow.name
        );
    }
    (text, files.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Queue;

    #[test]
    fn packets_leave_at_their_times_and_meet_the_candidate() {
        let packet = |us: u64, bytes| Packet { sent: Time::from_nanos(us * 1_000), bytes, delay: None };
        let flow = |name: &str, packets| ObservedFlow { name: name.to_owned(), way: Way::Backward, packets };
        let observations = Observations {
            flows: vec![
                flow("one", vec![packet(1_000_000, 1_228), packet(1_000_000, 1_228), packet(5_000_000, 128)]),
                flow("two", vec![packet(1_000_500, 128), packet(9_000_000, 128)]),
            ],
            clock_error: None,
        };
        let replay = Replay::new(&observations, Way::Backward, &[0.9..2.0, 4.0..6.0]).unwrap();
        assert_eq!(replay.observed()[0].packets.len(), 3);
        assert_eq!(replay.observed()[1].packets.len(), 1);
        // A packet of 1228 B takes 1 ms.
        let link = Link::line(9_824_000.0, 0.02, Queue::FifoBytes(1e6));
        let simulated = replay.over(&link, 1).unwrap();
        let delays =
            |flow: &ObservedFlow| flow.packets.iter().map(|p| p.delay.unwrap() / 1_000).collect::<Vec<_>>();
        for (flow, observed) in simulated.iter().zip(replay.observed()) {
            let sent = |flow: &ObservedFlow| flow.packets.iter().map(|p| p.sent).collect::<Vec<_>>();
            assert_eq!(sent(flow), sent(observed));
        }
        assert_eq!(delays(&simulated[0]), [21_000, 22_000, 20_104]);
        assert_eq!(delays(&simulated[1]), [21_604]);
    }
}
