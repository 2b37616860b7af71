//! Hosts that are Linux kernels: only simulations have them.

use trunkline_core::Seed;
use trunkline_experiment::{Point, Scenario, Supervisor};
use trunkline_metrics::Recorder;
use trunkline_store::Backend;

use crate::driven::Driven;
use crate::error::RunnerError;
use crate::request::Request;

/// The most kernels of a simulation: each takes up to its memory of this machine.
const MAX_KERNELS: usize = 32;

/// Refuses kernels on a backend without them.
pub(crate) fn refuse(backend: Backend, scenario: &Scenario) -> Result<(), RunnerError> {
    match scenario.hosts.iter().find(|host| host.kernel.is_some()) {
        Some(host) => Err(RunnerError::Kernel(format!("host `{}`: {}", host.name, elsewhere(backend)))),
        None => Ok(()),
    }
}

/// Refuses kernels that cannot be started here, at their place in the file.
pub(crate) fn check(request: &Request<'_>, scenario: &Scenario) -> Result<(), RunnerError> {
    let kernels = scenario.hosts.iter().filter_map(|host| Some((host, host.kernel.as_ref()?)));
    for (count, (host, kernel)) in kernels.enumerate() {
        let refused = match request.backend {
            Backend::Sim if count == MAX_KERNELS => {
                Some(format!("more than {MAX_KERNELS} hosts with a `kernel`"))
            }
            Backend::Sim => refusal(request, &kernel.file),
            backend => Some(elsewhere(backend)),
        };
        if let Some(message) = refused {
            return Err(request.wrong(&["hosts", &host.name, "kernel"], &kernel.file, &message));
        }
    }
    Ok(())
}

fn elsewhere(backend: Backend) -> String {
    format!(
        "on `{}` a host has no `kernel` of its own; use `--on sim`, or leave `kernel` and `run` out",
        backend.name()
    )
}

/// Simulates a repetition of a point, with the kernels that it names.
pub(crate) fn run(
    request: Request<'_>,
    point: &Point,
    seed: Seed,
    recorder: &mut (dyn Recorder + Send),
    supervisor: &mut (dyn Supervisor + Send),
) -> Driven {
    match request.kernels {
        Some(means) if point.scenario.hosts.iter().any(|host| host.kernel.is_some()) => {
            with_kernels((request, means), point, seed, recorder, supervisor)
        }
        _ => Ok((trunkline_simulator::run(&point.scenario, seed, recorder, supervisor)?, None)),
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{refusal, with_kernels};

#[cfg(target_os = "linux")]
mod linux {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use trunkline_kernel::named::list;
    use trunkline_kernel::{KernelError, KernelMeans, Kernels};
    use trunkline_metrics::DriverOutcome;
    use trunkline_simulator::{GuestFailure, Guests};

    use super::*;

    /// Why a kernel cannot be started.
    pub(crate) fn refusal(request: &Request<'_>, file: &str) -> Option<String> {
        let Some(means) = request.kernels else {
            return Some("only `trunkline run` starts hosts with a `kernel`".to_owned());
        };
        // It is a parameter of the kernel, and those are separated by spaces.
        if means.init.display().to_string().contains(char::is_whitespace) {
            let program = means.init.display();
            return Some(format!(
                "a kernel cannot start `{program}`, whose path has a space; move the program"
            ));
        }
        let path = means.locate(file, folder(request.file));
        match path.metadata() {
            Err(error) => Some(format!("no kernel at `{}` ({error}); {}", path.display(), built(means))),
            Ok(about) if !about.is_file() || about.permissions().mode() & 0o111 == 0 => {
                Some(format!("`{}` is not an executable file; {}", path.display(), built(means)))
            }
            Ok(_) => None,
        }
    }

    /// The kernels that can be named, for an error.
    fn built(means: &KernelMeans) -> String {
        let list = means.folder.as_deref().map(list).and_then(Result::ok).unwrap_or_default();
        let names: Vec<String> = list.iter().map(|built| format!("`{}`", built.name)).collect();
        match names.is_empty() {
            true => "`trunkline kernel build` builds one".to_owned(),
            false => format!("`trunkline kernel build` has built {}", names.join(", ")),
        }
    }

    pub(crate) fn with_kernels(
        (request, means): (Request<'_>, &KernelMeans),
        point: &Point,
        seed: Seed,
        recorder: &mut (dyn Recorder + Send),
        supervisor: &mut (dyn Supervisor + Send),
    ) -> Driven {
        let file =
            std::path::absolute(request.file).map_err(|error| RunnerError::Kernel(error.to_string()))?;
        let scenario = point.scenario.singles();
        let mut kernels = Kernels::start(&scenario, seed, folder(&file), means).map_err(failure)?;
        let guests = kernels.as_mut().map(|kernels| kernels as &mut dyn Guests);
        let (outcome, failed) =
            trunkline_simulator::run_with(&point.scenario, seed, guests, recorder, supervisor)?;
        let consoles = kernels.iter().flat_map(Kernels::consoles).collect();
        Ok((DriverOutcome { consoles, ..outcome }, failed.map(RunnerError::Guest)))
    }

    fn failure(error: KernelError) -> RunnerError {
        match error.is_bad_input() {
            true => RunnerError::Kernel(error.to_string()),
            false => GuestFailure(error.to_string()).into(),
        }
    }

    /// The folder of the experiment file, to which the kernels' paths are relative.
    fn folder(file: &Path) -> &Path {
        file.parent().unwrap_or(file)
    }
}

#[cfg(not(target_os = "linux"))]
fn refusal(_: &Request<'_>, _: &str) -> Option<String> {
    Some("hosts with a `kernel` need Linux".to_owned())
}

#[cfg(not(target_os = "linux"))]
fn with_kernels(
    _: (Request<'_>, &crate::means::KernelMeans),
    point: &Point,
    seed: Seed,
    recorder: &mut (dyn Recorder + Send),
    supervisor: &mut (dyn Supervisor + Send),
) -> Driven {
    Ok((trunkline_simulator::run(&point.scenario, seed, recorder, supervisor)?, None))
}
