//! `trunkline plan`

use std::path::Path;

use trunkline_planner::{Found, Goal, Means, Nearness, Plan, PlanError, Question};

use super::run::{backend, fleet, jobs, live_options, stop_on_signal, wire_means};
use super::{open_store, write_report};
use crate::args::{self, Global};
use crate::output::{self, Failure};
use crate::progress::Display;

pub(super) fn plan(global: &Global, arguments: &args::Plan) -> Result<u8, Failure> {
    // Everything is judged before the store is touched: bad input writes nothing.
    let plan = read(arguments)?;
    let live = live_options(&arguments.live)?;
    let backend = backend(arguments.on);
    let wire = wire_means(backend)?;
    let fleet = fleet(plan.first(), backend)?;
    let means = Means {
        backend,
        jobs: jobs(arguments.jobs),
        live: &live,
        wire: wire.as_ref(),
        tap: None,
        fleet: fleet.as_ref(),
        elsewhere: None,
    };
    let named = super::named(&arguments.file).to_string();
    plan.precheck(&means, Some(Path::new(&named))).map_err(|error| failure(&error))?;
    let store = open_store(global)?;
    let resume =
        arguments.resume.as_deref().map(|run| store.find(run)).transpose().map_err(super::store_failure)?;

    let stop = stop_on_signal()?;
    let display = Display::of_plan();
    let found = trunkline_planner::run(&store, &plan, resume, &means, &display, &stop);
    display.finish();
    let found = found.map_err(|error| failure(&error))?;

    let page = match arguments.no_report {
        true => None,
        false => {
            let run = store.run(found.run.id).map_err(Failure::environment)?;
            write_report(&run, None)?;
            Some(write_pages(&plan, &found)?)
        }
    };
    if global.json {
        // The object has the warnings before it.
        warn_if_stopped(&found);
        trunkline_planner::cautions(&plan, &found).into_iter().for_each(output::add_to_json);
        output::print_json(&trunkline_planner::output::PlanOutput {
            run: (&found.run).into(),
            plan: trunkline_planner::of_plan(&plan, &found),
            html: page.as_deref().map(|page| page.display().to_string()),
        });
    } else {
        output::print(trunkline_planner::terminal(&plan, &found, output::screen()).trim_end());
    }
    if let Some(page) = page {
        let say: fn(String) =
            if global.json { |text| output::note(text) } else { |text| output::print(text) };
        say(format!("\nplan: {}", page.display()));
    }
    if !global.json {
        warn_if_stopped(&found);
    }
    Ok(if found.stopped { output::INTERRUPTED } else { output::DONE })
}

fn warn_if_stopped(found: &Found) {
    if found.stopped {
        output::warn(format_args!(
            "stopped early: run {0} is partial; continue with the same command and `--resume {0}`",
            found.run.id
        ));
    }
}

/// The question that was asked, read against the file.
fn read(arguments: &args::Plan) -> Result<Plan, Failure> {
    let (goal, key) = match (&arguments.goal.maximise, &arguments.goal.minimise) {
        (Some(key), _) => (Goal::Maximise, key),
        (None, Some(key)) => (Goal::Minimise, key),
        (None, None) => {
            return Err(Failure::input("`--maximise KEY` or `--minimise KEY` is required"));
        }
    };
    let experiment = super::load(&arguments.file, &arguments.settings.all())?;
    let against = arguments.against.as_deref().map(against).transpose()?;
    let nearness = match (&arguments.step, arguments.precision) {
        (Some(step), _) => Nearness::Step(step),
        (None, Some(share)) => Nearness::Share(share.value()),
        (None, None) => Nearness::Default,
    };
    let question = Question {
        goal,
        key,
        against: against.as_ref().map(|(key, values)| (*key, values.as_slice())),
        from: arguments.from.as_deref(),
        to: arguments.to.as_deref(),
        nearness,
        repetitions: arguments.repetitions,
        most: arguments.most_repetitions,
        confidence: arguments.confidence.value(),
    };
    let file = std::path::absolute(&arguments.file).unwrap_or_else(|_| arguments.file.clone());
    Plan::new(&experiment, &file, &question).map_err(|error| failure(&error))
}

/// `link.trunk.mbs=32,64`
fn against(text: &str) -> Result<(&str, Vec<String>), Failure> {
    let (key, values) =
        text.split_once('=').filter(|(_, values)| !values.trim().is_empty()).ok_or_else(|| {
            Failure::input(format_args!(
                "`--against {text}` is not `KEY=VALUE,VALUE...`, such as `link.trunk.delay=1 ms,20 ms`"
            ))
        })?;
    Ok((key.trim(), values.split(',').map(|value| value.trim().to_owned()).collect()))
}

/// Writes the page beside the run's report, and every figure as an SVG file, and as a PNG file if this build draws those;
/// returns the page's path.
fn write_pages(plan: &Plan, found: &Found) -> Result<std::path::PathBuf, Failure> {
    let folder = &found.run.directory;
    let write = |path: &Path, content: &[u8]| {
        std::fs::write(path, content).map_err(|e| Failure::unwritable(path, &e))
    };
    for (name, figure) in trunkline_planner::svg(plan, found) {
        write(&folder.join(format!("plan-{name}.svg")), figure.as_bytes())?;
        if trunkline_report::DRAWS_PNG {
            let png = trunkline_report::chart::png(&figure).map_err(|e| {
                Failure::environment(format_args!("the figure `{name}` cannot be drawn: {e}"))
            })?;
            write(&folder.join(format!("plan-{name}.png")), &png)?;
        }
    }
    let page = folder.join("plan.html");
    write(&page, trunkline_planner::html(plan, found, Some("report.html")).as_bytes())?;
    Ok(page)
}

fn failure(error: &PlanError) -> Failure {
    match error {
        PlanError::Load(error) => Failure::load(error),
        PlanError::Runner(error) => super::run::failure(error),
        _ if error.is_bad_input() => Failure::input(error),
        _ => Failure::environment(error),
    }
}
