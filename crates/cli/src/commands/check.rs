//! `trunkline check`

use std::path::Path;

use trunkline_core::{Duration, count};
use trunkline_experiment::{Experiment, Point};
use trunkline_live::LiveOptions;
use trunkline_metrics::FlowMeta;
use trunkline_runner::{Hear, Request, RunnerError};
use trunkline_store::Backend;

use super::run::{backend, far_end};
use crate::args::{Check, Global, On};
use crate::json::{CheckOutput, CheckedLimit, RefusedBackend};
use crate::output::{self, Failure};

pub(super) fn check(global: &Global, arguments: &Check) -> Result<u8, Failure> {
    let experiment = super::load(&arguments.file, &arguments.settings.all())?;
    let length = total_length(&experiment);
    let refused = refused(&experiment);
    judge(&experiment, arguments)?;
    if global.json {
        if !has_flows(&experiment) {
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
        if ends_early(&experiment) { "at most " } else { "" },
        if matches!(arguments.on, None | Some(On::Sim)) { "virtual" } else { "real" },
    ));
    if !has_flows(&experiment) {
        output::print_words(format_args!("  {NO_FLOWS}"));
    }
    for (backend, reason) in &refused {
        if let Some(reason) = reason {
            output::print_words(format_args!("  not on `{}`: {reason}", backend.name()));
        }
    }
    for axis in &experiment.axes {
        output::print_words(format_args!("  sweeps {} over {}", axis.key, axis.values.join(", ")));
    }
    for index in 0..experiment.points.first().map_or(0, |point| point.scenario.flows.len()) {
        output::print_words(format_args!("  {}", flow_line(&experiment, index)));
    }
    Ok(output::DONE)
}

/// A flow at all points of the sweep: `flow call: 1 to 4 members x 1 channel over rtp or udp`.
fn flow_line(experiment: &Experiment, index: usize) -> String {
    let metas = || experiment.points.iter().filter_map(|point| Some(&point.scenario.flows.get(index)?.meta));
    let range = |of: fn(&FlowMeta) -> u64, noun: &str| {
        let (least, most) =
            metas().map(of).fold((u64::MAX, 0), |(least, most), n| (least.min(n), most.max(n)));
        if least < most { format!("{least} to {}", count(most, noun)) } else { count(most, noun) }
    };
    let mut transports: Vec<&str> = Vec::new();
    for meta in metas() {
        if !transports.contains(&meta.transport.as_str()) {
            transports.push(&meta.transport);
        }
    }
    format!(
        "flow {}: {} x {} over {}",
        metas().next().map_or("", |meta| meta.name.as_str()),
        range(|meta| meta.members.into(), "member"),
        range(|meta| meta.channels.into(), "channel"),
        transports.join(" or "),
    )
}

/// What is said of a file without flows.
const NO_FLOWS: &str = "no flows: for `trunkline wire`; `trunkline run` has nothing to measure";

fn has_flows(experiment: &Experiment) -> bool {
    experiment.points.iter().any(|point| !point.scenario.flows.is_empty())
}

/// Each backend with the reason why the file cannot be measured there, on any machine.
fn refused(experiment: &Experiment) -> [(Backend, Option<String>); 3] {
    let on = |backend| {
        let refused = |point: &Point| trunkline_runner::refused(backend, &point.scenario);
        (backend, experiment.points.iter().find_map(refused))
    };
    Backend::ALL.map(on)
}

/// Refuses what `trunkline run` would refuse on the same backend. A file without flows is for the wire, unless a backend
/// was named.
fn judge(experiment: &Experiment, arguments: &Check) -> Result<(), Failure> {
    let has_flows = has_flows(experiment);
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

/// Whether a repetition of some point ends with a flow.
fn ends_early(experiment: &Experiment) -> bool {
    experiment.points.iter().any(|point| point.scenario.until.is_some())
}

/// How long all repetitions of all points last, one after the other.
fn total_length(experiment: &Experiment) -> Duration {
    let once = experiment
        .points
        .iter()
        .fold(Duration::ZERO, |sum, point| sum + point.scenario.duration + point.scenario.drain);
    once * u64::from(experiment.repetitions)
}
