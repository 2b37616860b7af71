//! `trunkline check`

use serde_json::json;
use trunkline_core::Duration;
use trunkline_experiment::{Experiment, Scenario};

use crate::args::{Check, Global};
use crate::output::{self, Failure};

pub(super) fn check(global: &Global, arguments: &Check) -> Result<u8, Failure> {
    let experiment = trunkline_runner::load(&arguments.file).map_err(Failure::input)?;
    let length = total_length(&experiment);
    let refused_on = |refuses: &dyn Fn(&Scenario) -> Option<String>| {
        experiment.points.iter().find_map(|point| refuses(&point.scenario))
    };
    let refused = [
        ("wire", refused_on(&|of| trunkline_runner::refuse_unwired(of).err().map(|e| e.to_string()))),
        ("live", refused_on(&|of| trunkline_live::refuse_simulated(of).err().map(|e| e.to_string()))),
    ];
    let backends = refused.iter().filter(|(_, reason)| reason.is_none()).map(|(backend, _)| *backend);
    let backends: Vec<&str> = core::iter::once("sim").chain(backends).collect();
    if global.json {
        output::print_json(&json!({
            "format": 1,
            "name": experiment.name,
            "points": experiment.points.len(),
            "repetitions": experiment.repetitions,
            "length_ns": length.as_nanos(),
            "backends": backends,
            "sweep": experiment.axes,
            "limits": experiment.limits,
        }));
        return Ok(output::DONE);
    }
    let points = experiment.points.len();
    let repetitions = points as u64 * u64::from(experiment.repetitions);
    output::print(format_args!(
        "{} is valid: {}, {}, {}; {}{length} in all{}",
        arguments.file.display(),
        count(points as u64, "point"),
        count(u64::from(experiment.repetitions), "repetition") + " of each",
        count(repetitions, "measurement"),
        if ends_early(&experiment) { "at most " } else { "" },
        if backends.len() > 1 { " in real time" } else { ", in virtual time" },
    ));
    for (backend, reason) in refused {
        if let Some(reason) = reason {
            output::print(format_args!("  not on `{backend}`: {reason}"));
        }
    }
    for axis in &experiment.axes {
        output::print(format_args!("  sweeps {} over {}", axis.key, axis.values.join(", ")));
    }
    if let Some(point) = experiment.points.first() {
        for flow in &point.scenario.flows {
            output::print(format_args!(
                "  flow {}: {} x {} over {}",
                flow.meta.name,
                count(u64::from(flow.meta.members), "member"),
                count(u64::from(flow.meta.channels), "channel"),
                flow.meta.transport,
            ));
        }
    }
    Ok(output::DONE)
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

fn count(n: u64, thing: &str) -> String {
    if n == 1 { format!("1 {thing}") } else { format!("{n} {thing}s") }
}
