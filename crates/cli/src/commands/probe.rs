//! `trunkline probe`

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use trunkline_advisor::{
    Advice, Findings, Live, Observer, Prober as _, Question, Stage, Step, Transport, Use, advise, probe,
};
use trunkline_calls::Client;
use trunkline_core::Duration;

use super::peer::{keys, pair_with};
use super::send::{on_signal, shared_key};
use crate::args::Global;
use crate::args::probe::Probe;
use crate::output::{self, Failure};

/// A server that is not there is given up after this share of the budget.
const PATIENCE: u64 = 10;

pub(super) fn run(global: &Global, arguments: &Probe) -> Result<u8, Failure> {
    let begun = trunkline_calls::now();
    let mut question = question(arguments)?;
    if let Some(directory) = &arguments.out {
        std::fs::create_dir_all(directory).map_err(|e| Failure::unwritable(directory, &e))?;
    }
    let key = shared_key(arguments.key_file.as_deref())?;
    let stopped = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stopped);
    on_signal(move || told.store(true, Ordering::Relaxed))?;

    pair_with(&arguments.host, arguments.pair.as_ref())?;
    let client = Client { patience: question.budget / PATIENCE, key, keys: keys() };
    let mut prober = match Live::by(&arguments.host, client) {
        Ok(prober) => prober,
        Err(_) if stopped.load(Ordering::Relaxed) => return Ok(output::INTERRUPTED),
        Err(error) => return Err(super::send::failure(error.into())),
    };
    // Finding the server is part of what may take so long.
    question.budget = question.budget.saturating_sub(prober.now().since(begun));
    let display = Display::new(question.budget, stopped);
    let probed = probe(question, &mut prober, &display);
    display.bar.finish_and_clear();

    let Some(advice) = advise(&arguments.host, &probed) else {
        let why: Vec<String> =
            probed.findings.failed().map(|(transport, why)| format!("\n  {transport}: {why}")).collect();
        let why = if why.is_empty() { "\n  it was stopped too early".to_owned() } else { why.concat() };
        return Err(Failure::environment(format_args!(
            "nothing could be measured to `{}`:{why}",
            arguments.host
        )));
    };
    if global.json {
        output::print_json(&trunkline_advisor::output::Advice::from(&advice));
    } else {
        output::print(trunkline_advisor::terminal(&advice, output::screen()).trim_end());
    }
    if let Some(directory) = &arguments.out {
        let page = write(directory, &advice, &probed.findings)?;
        let say: fn(String) =
            if global.json { |text| output::note(text) } else { |text| output::print(text) };
        say(format!("\nadvice: {}", page.display()));
    }
    Ok(if probed.is_partial { output::INTERRUPTED } else { output::DONE })
}

fn question(arguments: &Probe) -> Result<Question, Failure> {
    let budget = arguments.budget;
    if !(Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&budget) {
        return Err(Failure::input(format_args!("`--budget {budget}` is not between 1 s and 1 h")));
    }
    let or_all = |transports: &[Transport]| match transports {
        [] => Transport::all(),
        some => some.to_vec(),
    };
    Ok(Question {
        budget,
        transports: or_all(&arguments.transports),
        uses: if arguments.uses.is_empty() { Use::ALL.to_vec() } else { arguments.uses.clone() },
        channels: arguments.channels,
        sample_rate: arguments.rate,
        sample_bytes: arguments.format.bytes(),
        concealed: arguments.concealed,
        load: !arguments.no_load,
    })
}

/// Writes the page and the JSON; returns where the page is.
fn write(directory: &Path, advice: &Advice, findings: &Findings) -> Result<PathBuf, Failure> {
    let write = |name: &str, text: String| {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|e| Failure::unwritable(&path, &e))?;
        Ok(path)
    };
    write("advice.json", format!("{:#}\n", trunkline_advisor::json(advice)))?;
    write("advice.html", trunkline_advisor::html(advice, findings))
}

/// How far it is: a bar on a terminal, else a line for every stage.
struct Display {
    bar: ProgressBar,
    is_terminal: bool,
    budget: Duration,
    stage: RefCell<Option<Stage>>,
    stopped: Arc<AtomicBool>,
}

impl Display {
    fn new(budget: Duration, stopped: Arc<AtomicBool>) -> Display {
        let is_terminal = output::is_error_terminal();
        let bar = if is_terminal {
            let style = ProgressStyle::with_template("{msg}  {wide_bar} {percent:>3} %");
            let bar = ProgressBar::with_draw_target(
                Some(budget.as_nanos().max(1)),
                ProgressDrawTarget::stderr_with_hz(10),
            );
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        } else {
            ProgressBar::hidden()
        };
        Display { bar, is_terminal, budget, stage: RefCell::new(None), stopped }
    }

    fn say(&self, text: &str) {
        self.bar.suspend(|| output::note(text));
    }
}

impl Observer for Display {
    fn begins(&self, step: &Step, left: Duration) {
        let seconds = left.as_secs_f64().ceil();
        let message = format!("{}: {}, {seconds} s left", purpose(step.stage), step.configuration);
        output::set_message(&self.bar, message);
        self.bar.set_position((self.budget - left).as_nanos());
        if !self.is_terminal && self.stage.replace(Some(step.stage)) != Some(step.stage) {
            self.say(&format!("{}, {seconds} s left", purpose(step.stage)));
        }
    }

    fn failed(&self, step: &Step, why: &str) {
        self.say(&format!("{}: {why}", step.configuration.transport));
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

fn purpose(stage: Stage) -> &'static str {
    match stage {
        Stage::Transports => "comparing transports",
        Stage::Load => "loading the network",
        Stage::Sizes => "comparing block sizes",
        Stage::Calls => "trying calls",
        Stage::Channels => "trying more and fewer channels",
        Stage::Marking => "loading the network, marked and unmarked",
        Stage::Refinement => "measuring the most promising options",
    }
}
