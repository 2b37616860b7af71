//! `trunkline learn`

use trunkline_learn::plan;

use crate::args::Global;
use crate::args::learn::Learn;
use crate::output::{self, Failure};

pub(super) fn learn(global: &Global, arguments: &Learn) -> Result<u8, Failure> {
    if !arguments.from.is_empty() {
        return super::learn_from::learn(global, arguments);
    }
    if arguments.plan {
        output::print(plan::first().text(&plan::Place::default(), 1).trim_end());
        return Ok(output::DONE);
    }
    Err(Failure::environment(format_args!(
        "`{}` cannot be probed yet; `--plan` prints the experiment of the first phase",
        arguments.host.as_deref().unwrap_or_default()
    )))
}
