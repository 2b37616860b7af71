//! `trunkline papers` and `trunkline paper`

use std::sync::atomic::Ordering;

use trunkline_live::LiveOptions;
use trunkline_papers::{How, Outcome, PaperError, Recalibrated, Study, studies};
use trunkline_store::Backend;

use crate::args::{self, Global};
use crate::output::{self, Failure};
use crate::progress::Display;

pub(super) fn list(global: &Global) -> u8 {
    if global.json {
        output::print_json(&trunkline_papers::listed(studies()));
    } else {
        output::print(trunkline_papers::list(studies(), output::screen()).trim_end());
    }
    output::DONE
}

pub(super) fn paper(global: &Global, arguments: &args::Paper) -> Result<u8, Failure> {
    let study = trunkline_papers::find(&arguments.study).ok_or_else(|| unknown(&arguments.study))?;
    let tables: Vec<&str> = arguments.tables.iter().map(String::as_str).collect();
    let backend = if arguments.on == "wire" { Backend::Wire } else { Backend::Sim };
    // Before the first thread.
    let wire = super::run::wire_means(backend)?;
    let live = LiveOptions::new(super::run::far_end()?);
    let stop = super::run::stop_on_signal()?;
    let how = How {
        jobs: super::run::jobs(arguments.jobs),
        repetitions: arguments.repetitions,
        blocks: arguments.blocks,
        live: Some(&live),
        wire: wire.as_ref(),
        stop: &stop,
    };

    if arguments.calibrate {
        return calibrate(global, study, &tables, how, arguments.strict);
    }
    let display = Display::new();
    let results = trunkline_papers::run(study, &tables, how, &display);
    display.finish();
    let results = results.map_err(|error| failure(&error))?;

    let say: fn(&str) = if global.json { |text| output::note(text) } else { |text| output::print(text) };
    if global.json {
        output::print(trunkline_papers::json(&results).trim_end());
        output::note(trunkline_papers::summary(&results, trunkline_report::Screen::default()).trim_end());
    } else {
        output::print(trunkline_papers::tables(&results, output::screen()).trim_end());
        output::print("");
        output::print(trunkline_papers::summary(&results, output::screen()).trim_end());
    }
    if let Some(directory) = &arguments.out {
        let written = trunkline_papers::write(&results, directory).map_err(Failure::environment)?;
        if let Some(page) = written.first() {
            say(&format!(
                "\npage: {}, with {} figure files in the same folder",
                page.display(),
                written.len() - 1
            ));
        }
    }
    if results.stopped {
        output::warn("stopped early: the missing values were not measured");
        return Ok(output::INTERRUPTED);
    }
    let missed = trunkline_papers::judge(&results).iter().any(|judged| judged.outcome == Outcome::Missed);
    Ok(if arguments.strict && missed { output::BROKEN } else { output::DONE })
}

/// Constants found again, each printed at once.
fn calibrate(
    global: &Global,
    study: &'static Study,
    tables: &[&str],
    how: How<'_>,
    strict: bool,
) -> Result<u8, Failure> {
    let mut told = |constant: &Recalibrated| {
        if global.json {
            output::print_json(&trunkline_papers::constant(study, constant));
        } else {
            let outcome = constant.outcome();
            output::print(format_args!("{} {}: {}", outcome.sign(), constant.constant, constant.sentence()));
        }
    };
    let found =
        trunkline_papers::calibrate(study, tables, how, &(), &mut told).map_err(|error| failure(&error))?;
    if how.stop.load(Ordering::Relaxed) {
        output::warn("stopped early: not all constants were found");
        return Ok(output::INTERRUPTED);
    }
    let missed = found.iter().any(|constant| constant.outcome() != Outcome::Met);
    Ok(if strict && missed { output::BROKEN } else { output::DONE })
}

fn unknown(name: &str) -> Failure {
    let known: Vec<String> = studies().iter().map(|study| format!("`{}`", study.name)).collect();
    Failure::input(format_args!("there is no study `{name}`; known: {}", known.join(", ")))
}

fn failure(error: &PaperError) -> Failure {
    if error.is_bad_input() { Failure::input(error) } else { Failure::environment(error) }
}
