//! `trunkline kernel`: Linux kernels that are hosts of simulations.

use jiff::Timestamp;
use trunkline_kernel::build::{self, BuildError};
use trunkline_kernel::named::{self, Built};

use super::agent::moment;
use super::kernels_folder;
use crate::args::Global;
use crate::args::kernel::{Kernel as Arguments, KernelAction};
use crate::json::{BuiltKernel, KernelsOutput};
use crate::output::{self, Failure};

pub(super) fn kernel(global: &Global, arguments: &Arguments) -> Result<u8, Failure> {
    let folder = kernels_folder()?;
    let list =
        || named::list(&folder).map_err(|e| Failure::environment(format_args!("{}: {e}", folder.display())));
    match &arguments.action {
        KernelAction::Build { name } => {
            let stop = super::run::stop_with_note("stopping the build; press Ctrl-C again to exit at once")?;
            let progress = |step: &str| output::note(step);
            match build::build(&folder, name, &progress, &stop) {
                Ok(_) => show(global, list()?.into_iter().filter(|built| built.name == *name).collect()),
                Err(BuildError::Stopped) => {
                    output::note(BuildError::Stopped);
                    return Ok(output::INTERRUPTED);
                }
                Err(error) if error.is_bad_input() => return Err(Failure::input(error)),
                Err(error) => return Err(Failure::environment(error)),
            }
        }
        KernelAction::List => {
            let built = list()?;
            if built.is_empty() && !global.json {
                output::note("no kernel has been built; `trunkline kernel build` builds one");
            }
            show(global, built);
        }
    }
    Ok(output::DONE)
}

fn show(global: &Global, built: Vec<Built>) {
    let kernel = |Built { name, path, time, bytes }: Built| {
        let built = Timestamp::try_from(time).unwrap_or_default();
        BuiltKernel { name, path: path.display().to_string(), built, bytes }
    };
    let kernels: Vec<BuiltKernel> = built.into_iter().map(kernel).collect();
    if global.json {
        output::print_json(&KernelsOutput { kernels });
        return;
    }
    let row = |kernel: &BuiltKernel| vec![kernel.name.clone(), moment(kernel.built), kernel.path.clone()];
    let head = ["kernel", "built", "file"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(kernels.iter().map(row)).collect();
    if !kernels.is_empty() {
        output::print(output::table(&rows, output::screen()));
    }
}
