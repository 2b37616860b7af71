//! `trunkline report`

use super::{open_store, write_report};
use crate::args::{Global, Report};
use crate::output::{self, Failure};

pub(super) fn report(global: &Global, arguments: &Report) -> Result<u8, Failure> {
    let store = open_store(global)?;
    let run = store.find(&arguments.run).map_err(Failure::input)?;
    let run = store.run(run).map_err(Failure::environment)?;
    let counterpart =
        if arguments.alone { None } else { store.counterpart(&run).map_err(Failure::environment)? };
    let counterpart = counterpart.as_ref();

    if let Some(directory) = &arguments.csv {
        trunkline_report::csv(&run, directory).map_err(Failure::environment)?;
        output::note(format_args!("tables: {}", directory.display()));
    }
    if let Some(directory) = &arguments.png {
        trunkline_report::png(&run, counterpart, directory).map_err(Failure::environment)?;
        output::note(format_args!("figures: {}", directory.display()));
    }
    let path = write_report(&run, counterpart, arguments.html.clone())?;
    if global.json {
        output::print_json(&trunkline_report::json(&run, counterpart));
        output::note(format_args!("report: {}", path.display()));
    } else {
        output::print(trunkline_report::terminal(&run, output::screen()).trim_end());
        output::print(format_args!("\nreport: {}", path.display()));
    }
    Ok(output::DONE)
}
