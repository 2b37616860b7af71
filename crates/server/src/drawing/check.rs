//! What is wrong with an experiment file, what it would do, and where it can run: what `trunkline check` says.

use trunkline_core::Duration;
use trunkline_experiment::{Experiment, Files};
use trunkline_store::Backend;

use crate::api::{BackendReasons, Checked, ExperimentSummary, MAIN_FILE, Problem};

/// So many points are asked whether they can run on each backend; what others lack is told when they are run.
const MOST_ASKED: usize = 256;

/// What is wrong with a file.
pub(super) fn problems(text: &str, files: &dyn Files) -> Vec<Problem> {
    read(text, files).err().unwrap_or_default()
}

/// What is wrong with a file, or what it would do.
pub(super) fn checked(text: &str, files: &dyn Files) -> Checked {
    match read(text, files) {
        Ok(experiment) => Checked {
            problems: Vec::new(),
            summary: Some(summary(&experiment)),
            backends: Some(reasons(&experiment)),
        },
        Err(problems) => Checked { problems, summary: None, backends: None },
    }
}

fn read(text: &str, files: &dyn Files) -> Result<Experiment, Vec<Problem>> {
    Experiment::parse(text, MAIN_FILE, files).map_err(|problems| problems.iter().map(Problem::from).collect())
}

fn summary(experiment: &Experiment) -> ExperimentSummary {
    let once = experiment.points.lengths().fold(Duration::ZERO, |sum, length| sum + length);
    let first = &experiment.points.first().scenario;
    ExperimentSummary {
        name: experiment.name.clone(),
        points: experiment.points.len(),
        repetitions: experiment.repetitions,
        duration_s: (once * u64::from(experiment.repetitions)).as_secs_f64(),
        ends_early: experiment.points.iter().any(|point| point.scenario.until.is_some()),
        hosts: first.hosts.len(),
        links: first.links.len(),
        flows: first.flows.len(),
    }
}

/// Why it cannot run on a backend, as far as the file alone says.
fn reasons(experiment: &Experiment) -> BackendReasons {
    let refused = |backend| {
        experiment.points.iter().take(MOST_ASKED).find_map(|point| {
            if point.scenario.flows.is_empty() {
                return Some("the file has no flows; add one as `[flow.NAME]`".to_owned());
            }
            trunkline_runner::refused(backend, &point.scenario)
        })
    };
    let agents = || trunkline_agent::controller::agents_of(experiment).err().map(|error| error.to_string());
    BackendReasons {
        sim: refused(Backend::Sim),
        wire: refused(Backend::Wire),
        live: refused(Backend::Live).or_else(agents),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_hosts_with_flows_have_agents_or_none_has() {
        let live = |hosts: &str| {
            let text = format!(
                "name = \"x\"\nduration = \"1 s\"\n[hosts]\n{hosts}\n[link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n\
                 [flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"voice\"\n"
            );
            checked(&text, &()).backends.expect("it is valid").live
        };
        assert_eq!(live("a = {}\nb = {}"), None);
        assert_eq!(live("a = { agent = \"192.0.2.1\" }\nb = { agent = \"192.0.2.2\" }"), None);
        let why = live("a = { agent = \"192.0.2.1\" }\nb = {}").expect("one has none");
        assert!(why.contains("host `b` has no `agent`"), "{why}");
    }
}
