//! The probing plan: a few phases, each an ordinary experiment.
//!
//! Messages are probes of UDP. A thin flow each way goes through all phases and sees base delays, jitter, loss, and as a
//! second flow the queue beside a pulse. Trains and pulses load one direction at a time.

use std::fmt::Write as _;

use trunkline_core::{Duration, Rate};

use crate::observations::Way;

/// Headers of IPv4 and UDP.
pub(crate) const HEADERS: u64 = 28;
/// Payload of a full probe.
pub(crate) const FULL: u64 = 1200;
/// Payload of probes of trains and pulses that are to show what counts per packet.
pub(crate) const SMALL: u64 = 300;
/// Payload of a thin flow's probes.
const THIN: u64 = 100;
/// Paths that are faster are not loaded: the sender would be measured, not the path.
pub const FASTEST_PULSE: Rate = Rate::from_bits_per_second(300_000_000);

/// A phase of probing: flows that run together for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Purpose, as it is shown while it runs.
    pub purpose: String,
    /// The time for which it sends.
    pub lasts: Duration,
    /// The tables of its flows.
    pub flows: String,
}

/// The hosts and the link of the experiment, as the backend needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The tables of the hosts `here` and `there`.
    pub hosts: String,
    /// The tables of the link between them. On real networks, it only says that there is one.
    pub link: String,
}

impl Default for Place {
    fn default() -> Place {
        Place {
            hosts: "[hosts]\nhere = {}\nthere = {}\n".to_owned(),
            link: "[link.path]\nbetween = [\"here\", \"there\"]\nrate = \"10 Gbit/s\"\n".to_owned(),
        }
    }
}

impl Phase {
    /// The experiment file of this phase.
    pub fn text(&self, place: &Place, seed: u64) -> String {
        format!(
            "name = \"{}\"\nduration = \"{} ms\"\ndrain = \"2 s\"\nseed = {seed}\n\n{}\n{}\n{}",
            self.purpose,
            self.lasts.as_nanos() / 1_000_000,
            place.hosts,
            place.link,
            self.flows,
        )
    }
}

/// The first phase: it finds out the order of the rates.
pub fn first() -> Phase {
    look(Duration::ZERO)
}

/// A short look that begins at this time of its run.
pub fn look(start: Duration) -> Phase {
    let mut flows = String::new();
    for way in Way::ALL {
        thin(&mut flows, way, Duration::from_millis(20), start);
        let first = start + Duration::from_millis(200);
        trains(&mut flows, way, "glance", (FULL, 10), Duration::from_millis(700), first);
    }
    Phase { purpose: "first look at the path".to_owned(), lasts: start + Duration::from_secs(3), flows }
}

/// Trains in one direction, thin flows in both. `rates` are those found so far, forward and backward.
pub fn quiet(way: Way, rates: [f64; 2], lasts: Duration) -> Phase {
    let mut flows = String::new();
    for (way, rate) in Way::ALL.into_iter().zip(rates) {
        thin(&mut flows, way, thin_interval(rate), Duration::ZERO);
        runs(&mut flows, way, rate);
    }
    let rate = rates[way as usize];
    // A train takes about 20 ms of the path, two full ones and two small ones a second.
    let length = |payload: u64| {
        let packets = rate * 0.02 / (8.0 * (payload + HEADERS) as f64);
        (payload, packets.clamp(10.0, 60.0) as u64)
    };
    let gap = |length: (u64, u64)| {
        let occupied = length.1 as f64 * 8.0 * (length.0 + HEADERS) as f64 / rate;
        Duration::from_secs_f64((occupied * 8.0).clamp(0.4, 2.0))
    };
    for (name, payload) in [("train", FULL), ("small-train", SMALL)] {
        let length = length(payload);
        trains(&mut flows, way, name, length, gap(length), Duration::from_millis(100));
    }
    Phase { purpose: format!("trains, {}", way.name()), lasts, flows }
}

/// An overload of one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pulse {
    /// Its rate as a multiple of the path's.
    pub load: f64,
    /// Payload of its probes.
    pub payload: u64,
    /// Its length.
    pub lasts: Duration,
    /// Silence after it, in which the queue drains and buckets fill.
    pub rest: Duration,
}

impl Pulse {
    /// Its bytes over the path's rate: the time that they occupy the path.
    pub fn cost(&self) -> f64 {
        self.load * self.lasts.as_secs_f64()
    }
}

/// Pulses in one direction one after the other, with the thin flows beside them.
pub fn pulses(way: Way, rates: [f64; 2], pulses: &[Pulse], named: &str) -> Phase {
    let mut flows = String::new();
    let rate = rates[way as usize];
    for (each, rate) in Way::ALL.into_iter().zip(rates) {
        let interval = thin_interval(rate);
        let interval = if each == way { interval.min(BESIDE) } else { interval };
        thin(&mut flows, each, interval, Duration::ZERO);
    }
    let mut start = Duration::from_millis(500);
    for (number, pulse) in pulses.iter().enumerate() {
        let interval = 8.0 * (pulse.payload + HEADERS) as f64 / (rate * pulse.load);
        let messages = (pulse.lasts.as_secs_f64() / interval).round().max(2.0);
        let _ = write!(
            flows,
            "[flow.{named}-{}-{}]\n{}transport = \"udp\"\nstart = \"{} ms\"\n\
             source = {{ kind = \"bulk\", message = \"{} B\", interval = \"{:.3} us\", messages = {messages} }}\n\n",
            number + 1,
            way.name(),
            ends(way),
            start.as_nanos() / 1_000_000,
            pulse.payload,
            interval * 1e6,
        );
        start += pulse.lasts + pulse.rest;
    }
    Phase { purpose: format!("short overloads, {}", way.name()), lasts: start, flows }
}

/// The largest mean interval of the thin flow beside a pulse.
const BESIDE: Duration = Duration::from_millis(10);

/// At most 2 % of the path, and no more than a hundred a second.
fn thin_interval(rate: f64) -> Duration {
    let bits = 8.0 * (HEADERS as f64 + 0.9 * THIN as f64 + 0.1 * FULL as f64);
    Duration::from_secs_f64((bits / (0.02 * rate.max(1.0))).clamp(0.01, 1.0))
}

fn ends(way: Way) -> &'static str {
    match way {
        Way::Forward => "from = \"here\"\nto = \"there\"\n",
        Way::Backward => "from = \"there\"\nto = \"here\"\n",
    }
}

/// A Poisson flow, of which a tenth are full packets.
fn thin(flows: &mut String, way: Way, interval: Duration, start: Duration) {
    let _ = write!(
        flows,
        "[flow.thin-{}]\n{}transport = \"udp\"\nstart = \"{} ms\"\n\
         source = {{ kind = \"load\", message = {{ kind = \"bivalue\", first = \"{THIN} B\", second = \"{FULL} B\", probability = 0.9 }}, \
         interval = {{ kind = \"exponential\", mean = \"{} us\" }} }}\n\n",
        way.name(),
        ends(way),
        start.as_nanos() / 1_000_000,
        interval.as_nanos() / 1_000,
    );
}

/// Ten small packets back to back at random times: they show how long bursts of loss are.
fn runs(flows: &mut String, way: Way, rate: f64) {
    let bits = 80.0 * (HEADERS + THIN) as f64;
    let interval = (bits / (0.01 * rate.max(1.0))).clamp(0.2, 4.0);
    let _ = write!(
        flows,
        "[flow.runs-{}]\n{}transport = \"udp\"\n\
         source = {{ kind = \"load\", message = \"{THIN} B\", burst = 10, interval = {{ kind = \"exponential\", mean = \"{:.0} ms\" }} }}\n\n",
        way.name(),
        ends(way),
        interval * 1e3,
    );
}

/// Packets back to back, at random times of uniform distances.
fn trains(
    flows: &mut String,
    way: Way,
    name: &str,
    (payload, packets): (u64, u64),
    gap: Duration,
    start: Duration,
) {
    let _ = write!(
        flows,
        "[flow.{name}-{}]\n{}transport = \"udp\"\nstart = \"{} ms\"\n\
         source = {{ kind = \"load\", message = \"{payload} B\", burst = {packets}, \
         interval = {{ kind = \"uniform\", min = \"{:.0} ms\", max = \"{:.0} ms\" }} }}\n\n",
        way.name(),
        ends(way),
        start.as_nanos() / 1_000_000,
        gap.as_secs_f64() * 500.0,
        gap.as_secs_f64() * 1500.0,
    );
}

#[cfg(test)]
mod tests {
    use trunkline_experiment::Experiment;

    use super::*;

    #[test]
    fn every_phase_is_an_experiment() {
        let rates = [500e3, 250e6];
        let pulse = Pulse {
            load: 1.5,
            payload: FULL,
            lasts: Duration::from_millis(800),
            rest: Duration::from_millis(1500),
        };
        let mut phases = vec![first()];
        for way in Way::ALL {
            phases.push(quiet(way, rates, Duration::from_secs(10)));
            phases.push(pulses(way, rates, &[pulse, pulse], "pulse"));
        }
        for phase in phases {
            let text = phase.text(&Place::default(), 1);
            Experiment::parse(&text, "plan", &()).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        }
    }
}
