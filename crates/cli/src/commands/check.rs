//! `trunkline check`

use std::path::Path;

use trunkline_core::{Duration, count};
use trunkline_experiment::Experiment;
use trunkline_live::LiveOptions;
use trunkline_metrics::FlowMeta;
use trunkline_runner::{Hear, Request, RunnerError};

use super::run::{backend, far_end};
use crate::args::{Check, Global, On};
use crate::json::{CheckOutput, CheckedLimit, RefusedBackend};
use crate::output::{self, Failure};

/// The values of an axis that are all listed.
const MOST_LISTED: usize = 20;

pub(super) fn check(global: &Global, arguments: &Check) -> Result<u8, Failure> {
    let experiment = super::load(&arguments.file, &arguments.settings.all())?;
    let length = total_length(&experiment);
    let (seen, refused) = (Seen::of(&experiment), trunkline_runner::refusals(&experiment));
    judge(&experiment, seen.has_flows, arguments)?;
    if global.json {
        if !seen.has_flows {
            output::add_to_json(NO_FLOWS);
        }
        let (mut backends, mut others) = (Vec::new(), Vec::new());
        for (backend, reason) in refused {
            match reason {
                None => backends.push(backend.into()),
                Some(reason) => others.push(RefusedBackend { backend: backend.into(), reason }),
            }
        }
        let limits = experiment.limits.iter();
        output::print_json(&CheckOutput {
            name: experiment.name.clone(),
            points: experiment.points.len(),
            repetitions: experiment.repetitions,
            length_s: length.as_secs_f64(),
            backends,
            refused: others,
            sweep: experiment.axes.iter().map(Into::into).collect(),
            limits: limits
                .map(|limit| CheckedLimit {
                    key: limit.key.clone(),
                    condition: limit.condition.clone(),
                    bound: limit.bound,
                })
                .collect(),
        });
        return Ok(output::DONE);
    }
    let points = experiment.points.len();
    let repetitions = points as u64 * u64::from(experiment.repetitions);
    output::print_words(format_args!(
        "{} is valid: {}, {}, {}; {}{length} in all in {} time",
        super::named(&arguments.file),
        count(points as u64, "point"),
        count(u64::from(experiment.repetitions), "repetition") + " of each",
        count(repetitions, "measurement"),
        if seen.ends_early { "at most " } else { "" },
        if matches!(arguments.on, None | Some(On::Sim)) { "virtual" } else { "real" },
    ));
    if !seen.has_flows {
        output::print_words(format_args!("  {NO_FLOWS}"));
    }
    for (backend, reason) in &refused {
        if let Some(reason) = reason {
            output::print_words(format_args!("  not on `{}`: {reason}", backend.name()));
        }
    }
    for axis in &experiment.axes {
        output::print_words(format_args!("  sweeps {} over {}", axis.key, listed(&axis.values)));
    }
    for flow in &seen.flows {
        output::print_words(format_args!("  {}", flow.line()));
    }
    Ok(output::DONE)
}

/// The values of an axis; of many the first, the last and their number: `1, 2, 3, ... 100000 (100000 values)`.
fn listed(values: &[String]) -> String {
    match values {
        [a, b, c, .., last] if values.len() > MOST_LISTED => {
            format!("{a}, {b}, {c}, ... {last} ({})", count(values.len() as u64, "value"))
        }
        _ => values.join(", "),
    }
}

/// What the points have, in one pass over them.
#[derive(Default)]
struct Seen {
    has_flows: bool,
    /// True if a repetition of some point ends with a flow.
    ends_early: bool,
    flows: Vec<SeenFlow>,
}

/// A flow at all points.
struct SeenFlow {
    name: String,
    members: [u64; 2],
    channels: [u64; 2],
    transports: Vec<String>,
}

impl Seen {
    fn of(experiment: &Experiment) -> Seen {
        let mut seen = Seen::default();
        for point in experiment.points.iter() {
            seen.has_flows |= !point.scenario.flows.is_empty();
            seen.ends_early |= point.scenario.until.is_some();
            for (place, flow) in point.scenario.flows.iter().enumerate() {
                match seen.flows.get_mut(place) {
                    Some(seen) => seen.add(&flow.meta),
                    None => seen.flows.push(SeenFlow::new(&flow.meta)),
                }
            }
        }
        seen
    }
}

impl SeenFlow {
    fn new(meta: &FlowMeta) -> SeenFlow {
        SeenFlow {
            name: meta.name.clone(),
            members: [meta.members.into(); 2],
            channels: [meta.channels.into(); 2],
            transports: vec![meta.transport.clone()],
        }
    }

    fn add(&mut self, meta: &FlowMeta) {
        let widen = |[least, most]: [u64; 2], value: u64| [least.min(value), most.max(value)];
        self.members = widen(self.members, meta.members.into());
        self.channels = widen(self.channels, meta.channels.into());
        if !self.transports.contains(&meta.transport) {
            self.transports.push(meta.transport.clone());
        }
    }

    /// `flow call: 1 to 4 members x 1 channel over rtp or udp`.
    fn line(&self) -> String {
        let range = |[least, most]: [u64; 2], noun: &str| {
            if least < most { format!("{least} to {}", count(most, noun)) } else { count(most, noun) }
        };
        format!(
            "flow {}: {} x {} over {}",
            self.name,
            range(self.members, "member"),
            range(self.channels, "channel"),
            self.transports.join(" or "),
        )
    }
}

/// What is said of a file without flows.
const NO_FLOWS: &str = "no flows: for `trunkline wire`; `trunkline run` has nothing to measure";

/// Refuses what `trunkline run` would refuse on the same backend. A file without flows is for the wire, unless a backend
/// was named.
fn judge(experiment: &Experiment, has_flows: bool, arguments: &Check) -> Result<(), Failure> {
    if !has_flows && arguments.on.is_none() {
        return Ok(());
    }
    let on = arguments.on.unwrap_or(On::Sim);
    let live = LiveOptions::new(far_end()?);
    let named = super::named(&arguments.file).to_string();
    let kernels = super::kernel_means();
    let request = Request {
        experiment,
        file: Path::new(&named),
        backend: backend(on),
        jobs: 1,
        live: &live,
        wire: None,
        hear: Hear::nothing(),
        tap: None,
        kernels: kernels.as_ref(),
        fleet: None,
    };
    match trunkline_runner::precheck(&request) {
        // Agents say themselves what they refuse.
        Ok(()) | Err(RunnerError::AgentsUnused) => Ok(()),
        Err(error) => Err(super::run::failure(&error)),
    }
}

/// How long all repetitions of all points last, one after the other.
fn total_length(experiment: &Experiment) -> Duration {
    let once = experiment.points.lengths().fold(Duration::ZERO, |sum, length| sum + length);
    once * u64::from(experiment.repetitions)
}
