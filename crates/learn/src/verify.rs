//! Proof on workloads that were not learned from: predicted with the learned links, then measured on the path.

use trunkline_core::{FlowId, Time};
use trunkline_experiment::{Experiment, Scenario};
use trunkline_metrics::{Observation, Recorder};

use crate::estimate::statistics::{Interval, quantile, sorted};
use crate::link::{percent, rate};
use crate::plan::{Phase, Place};
use crate::probing::{Observer, Path, Prober};
use crate::simulated::Simulated;
use trunkline_core::Duration;

/// A figure of a workload, predicted and measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The workload, as a person calls it, with its rate where that is scaled down to the path.
    pub workload: String,
    /// The figure: `delay p95`, `goodput`, ...
    pub figure: &'static str,
    /// Seconds, bits per second, or a share.
    pub predicted: Interval,
    /// The measurement.
    pub measured: f64,
}

/// Below this, differences of delay and of loss are not judged relatively.
pub(crate) const FLOORS: (f64, f64) = (1e-3, 0.002);

impl Verified {
    /// The error of the prediction relative to the measurement. Delays below 1 ms, and loss below 0.2 %, count as those.
    pub fn error(&self) -> f64 {
        (self.predicted.value - self.measured).abs() / self.measured.max(self.floor().unwrap_or(1.0))
    }

    /// The smallest value to which an error is relative; `None` if there is none.
    pub(crate) fn floor(&self) -> Option<f64> {
        match self.figure {
            "loss" => Some(FLOORS.1),
            "goodput" => None,
            _ => Some(FLOORS.0),
        }
    }

    /// True if the result counts it. The median delay beside a transfer depends on where in its sawtooth the transfer is, and no loss
    /// that was not predicted either is easily right.
    pub fn is_counted(&self) -> bool {
        let none = self.figure == "loss" && self.predicted.value == 0.0 && self.measured == 0.0;
        self.figure != "delay p50" && !none
    }
}

/// The rate of video, in bits per second of IP.
const VIDEO: f64 = 2e6;
/// The most that it takes of the slower direction.
const VIDEO_SHARE: f64 = 0.6;

/// The workloads: their name and flows. A call beside transfers that fill the way back, video, and a download.
fn workloads(slowest: f64) -> Vec<(String, Phase)> {
    let voice = "[flow.voice]\nfrom = \"there\"\nto = \"here\"\ntransport = \"udp\"\nstart = \"2 s\"\n\
                 source = { kind = \"voice\", samples = 160 }\n";
    let transfers = |count: u32| {
        format!(
            "[flow.transfer]\nfrom = \"there\"\nto = \"here\"\ncount = {count}\n\
             transport = {{ kind = \"tcp\", window = \"4 MiB\" }}\nsource = {{ kind = \"bulk\", message = \"8 KiB\" }}\n"
        )
    };
    let video = (VIDEO_SHARE * slowest).min(VIDEO);
    let scaled = if video < VIDEO {
        format!(" (scaled from {} to {} of the slower direction)", rate(VIDEO), percent(VIDEO_SHARE))
    } else {
        String::new()
    };
    let interval = 8.0 * 1_228.0 / video * 1e6;
    let phase = |purpose: &str, seconds: u64, flows: String| Phase {
        purpose: format!("verifying: {purpose}"),
        lasts: Duration::from_secs(seconds),
        flows,
    };
    vec![
        (
            "a call beside one transfer".to_owned(),
            phase("a call beside one transfer", 10, voice.to_owned() + &transfers(1)),
        ),
        (
            "a call beside four transfers".to_owned(),
            phase("a call beside four transfers", 10, voice.to_owned() + &transfers(4)),
        ),
        (
            format!("video of {}{scaled}", rate(video)),
            phase(
                "video",
                8,
                format!(
                    "[flow.voice]\nfrom = \"there\"\nto = \"here\"\ntransport = \"udp\"\nsource = {{ kind = \"load\", \
                     message = \"1200 B\", interval = {{ kind = \"exponential\", mean = \"{interval:.1} us\" }} }}\n"
                ),
            ),
        ),
        ("a download".to_owned(), phase("a download", 10, transfers(1))),
    ]
}

/// Delays and bytes of the flows of a workload.
struct Pooled {
    ends: Time,
    flows: Vec<(FlowId, u32, OfFlow)>,
}

#[derive(Clone, Debug, Default)]
struct OfFlow {
    name: String,
    delays: Vec<f64>,
    sent: usize,
    bytes: u64,
}

impl Pooled {
    fn new(scenario: &Scenario) -> Pooled {
        let flows = scenario.flows.iter().map(|flow| {
            let of = OfFlow { name: flow.meta.name.clone(), ..OfFlow::default() };
            (flow.meta.first, flow.meta.ids(), of)
        });
        Pooled { ends: Time::ZERO + scenario.duration, flows: flows.collect() }
    }

    /// The figures of all flows of a run that lasted so long.
    fn figures(&self, lasts: Duration) -> Vec<(&'static str, f64)> {
        let mut figures = Vec::new();
        for (_, _, flow) in &self.flows {
            if flow.name == "voice" {
                let delays = sorted(&flow.delays);
                figures.push(("delay p50", quantile(&delays, 0.5)));
                figures.push(("delay p95", quantile(&delays, 0.95)));
                figures.push(("delay p99", quantile(&delays, 0.99)));
                figures.push(("loss", 1.0 - flow.delays.len() as f64 / flow.sent.max(1) as f64));
            } else {
                let time = lasts.as_secs_f64().max(1e-9);
                figures.push(("goodput", flow.bytes as f64 * 8.0 / time));
            }
        }
        figures
    }
}

impl Recorder for Pooled {
    fn record(&mut self, at: Time, id: FlowId, what: Observation) {
        let of = self.flows.iter_mut().find(|(first, ids, _)| (first.0..first.0 + ids).contains(&id.0));
        let Some((_, _, flow)) = of else { return };
        match what {
            Observation::Sent { .. } => flow.sent += 1,
            Observation::Received { sent, payload, .. } => {
                flow.delays.push(at.as_nanos() as f64 / 1e9 - sent.as_nanos() as f64 / 1e9);
                // What arrives while the run drains belongs to no rate.
                flow.bytes += if at <= self.ends { payload.0 } else { 0 };
            }
            _ => {}
        }
    }
}

fn run(
    prober: &mut dyn Prober,
    phase: &Phase,
    place: &Place,
    seed: u64,
) -> Result<Vec<(&'static str, f64)>, String> {
    let text = phase.text(place, seed);
    let read =
        Experiment::parse(&text, "verification", prober.files()).map_err(|problems| problems.to_string())?;
    let point = read.points.first();
    let mut pooled = Pooled::new(&point.scenario);
    prober.run(&read, &mut pooled)?;
    Ok(pooled.figures(phase.lasts))
}

/// Links of the ensemble with which each workload is predicted.
const PREDICTIONS: usize = 6;

/// Predicts workloads with links of the ensemble, then measures them on the path.
///
/// # Errors
/// If a direction was not learned, or what failed on the path; what was measured before that is returned.
pub fn verify(
    path: &Path,
    prober: &mut dyn Prober,
    observer: &dyn Observer,
    seed: u64,
) -> (Vec<Verified>, Option<String>) {
    let [Ok(forward), Ok(backward)] = &path.ways else {
        return (Vec::new(), Some("verification needs both directions".to_owned()));
    };
    let mut verified = Vec::new();
    let workloads = workloads(forward.slowest().min(backward.slowest()));
    let mut left: u64 = workloads.iter().map(|(_, phase)| phase.lasts.as_nanos() + 2_500_000_000).sum();
    for (name, phase) in workloads {
        if observer.is_stopped() {
            break;
        }
        observer.begins(&phase.purpose, Duration::from_nanos(left));
        left -= phase.lasts.as_nanos() + 2_500_000_000;
        let mut predicted: Vec<Vec<(&'static str, f64)>> = Vec::new();
        for number in 0..PREDICTIONS {
            let member = |ensemble: &[crate::Link], link: &crate::Link| {
                let spaced = number * ensemble.len().max(1) / PREDICTIONS;
                ensemble.get(spaced).unwrap_or(link).toml()
            };
            let keys = format!(
                "[forward]\n{}[backward]\n{}",
                member(&forward.ensemble, &forward.link),
                member(&backward.ensemble, &backward.link)
            );
            let mut simulated = Simulated::new(&keys, seed.wrapping_add(1_000 + number as u64));
            let place = simulated.place();
            match run(&mut simulated, &phase, &place, seed.wrapping_add(number as u64)) {
                Ok(figures) => predicted.push(figures),
                Err(error) => return (verified, Some(error)),
            }
        }
        let place = prober.place();
        let measured = match run(prober, &phase, &place, seed.wrapping_add(500)) {
            Ok(figures) => figures,
            Err(error) => return (verified, Some(error)),
        };
        for (place, (figure, measured)) in measured.into_iter().enumerate() {
            let values: Vec<f64> =
                predicted.iter().filter_map(|figures| figures.get(place)).map(|(_, value)| *value).collect();
            let values = sorted(&values);
            let mean = crate::estimate::statistics::mean(&values);
            let interval =
                Interval { value: mean, low: quantile(&values, 0.0), high: quantile(&values, 1.0) };
            verified.push(Verified { workload: name.clone(), figure, predicted: interval, measured });
        }
    }
    (verified, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn video_that_is_scaled_to_a_slow_path_says_its_rate() {
        let video = |slowest| workloads(slowest).swap_remove(2).0;
        assert_eq!(video(10e6), "video of 2 Mbit/s");
        assert_eq!(video(1e6), "video of 600 kbit/s (scaled from 2 Mbit/s to 60 % of the slower direction)");
    }
}
