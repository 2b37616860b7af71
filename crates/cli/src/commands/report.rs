//! `trunkline report`

use std::path::Path;

use super::{open_store, write_report};
use crate::args::{Global, Report};
use crate::output::{self, Failure};

pub(super) fn report(global: &Global, arguments: &Report) -> Result<u8, Failure> {
    let store = open_store(global)?;
    let run = store.find(&arguments.run).map_err(super::store_failure)?;
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
    // A store that can only be looked at has no place for it.
    let path = match &arguments.html {
        Some(path) => {
            let html = trunkline_server::saved_run(&store, &run, counterpart, Path::new("."));
            std::fs::write(path, html.map_err(Failure::environment)?)
                .map_err(|error| Failure::unwritable(path, &error))?;
            Some(path.clone())
        }
        None if store.is_read_only() => None,
        None => Some(write_report(&run, counterpart)?),
    };
    if global.json {
        trunkline_report::cautions(&run).into_iter().for_each(output::add_to_json);
        output::print_json(&trunkline_report::output::Report {
            html: path.as_deref().map(|path| path.display().to_string()),
            ..trunkline_report::report(&run, counterpart)
        });
    } else {
        output::print(trunkline_report::terminal(&run, output::screen()).trim_end());
    }
    match path {
        Some(path) if global.json => output::note(format_args!("report: {}", path.display())),
        Some(path) => output::print(format_args!("\nreport: {}", path.display())),
        None => output::note("the store is read-only: use `--html FILE` to write the HTML report elsewhere"),
    }
    Ok(output::DONE)
}
