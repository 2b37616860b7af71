//! The progress of a run: a bar on a terminal, with the figures of the last repetition below it; plain lines otherwise; both
//! with the time left.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use trunkline_experiment::{Experiment, Point};
use trunkline_metrics::RepetitionSummary;
use trunkline_planner::Forecast;
use trunkline_runner::{Heard, Observer, Plan};
use trunkline_store::RunInfo;

use crate::output;

/// Before the first plain line: what is over sooner needs none.
const FIRST_LINE: Duration = Duration::from_secs(1);
/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows progress on standard error.
pub(crate) struct Display {
    state: Mutex<State>,
}

struct State {
    bar: ProgressBar,
    terminal: bool,
    name: String,
    length: u64,
    passed: u64,
    repetitions: usize,
    done: usize,
    points: usize,
    points_done: usize,
    started: Instant,
    /// When the next plain line is due.
    line_at: Instant,
    /// Whether any plain line was written.
    any_line: bool,
    /// When the first round began.
    since: Instant,
    /// What was written for listeners.
    heard: Vec<Heard>,
    /// Where it is stored.
    run: Option<u64>,
    /// Of a plan of several rounds: when the whole will be over; nothing while its edges are probed.
    whole: Option<Whole>,
}

/// How far a plan of several rounds is.
enum Whole {
    /// Nobody knows yet.
    Unknown,
    /// It ends at about this moment.
    Until(Instant),
}

impl Display {
    pub(crate) fn new() -> Display {
        let now = Instant::now();
        Display {
            state: Mutex::new(State {
                bar: ProgressBar::hidden(),
                terminal: output::is_error_terminal() && !output::is_quiet(),
                name: String::new(),
                length: 1,
                passed: 0,
                repetitions: 0,
                done: 0,
                points: 0,
                points_done: 0,
                started: now,
                line_at: now + FIRST_LINE,
                any_line: false,
                since: now,
                heard: Vec::new(),
                run: None,
                whole: None,
            }),
        }
    }

    /// A display of a plan, whose rounds are parts of a whole with one time left.
    pub(crate) fn of_plan() -> Display {
        let display = Display::new();
        display.with(|state| state.whole = Some(Whole::Unknown));
        display
    }

    /// Takes the bar away, says in a pipe how it ended, and returns what was written for listeners.
    pub(crate) fn finish(&self) -> Vec<Heard> {
        let mut heard = Vec::new();
        self.with(|state| {
            state.bar.finish_and_clear();
            if state.any_line {
                output::note(state.last_line(Instant::now()));
            }
            heard = std::mem::take(&mut state.heard);
        });
        heard.sort_by_cached_key(heard_line);
        heard
    }

    /// The run that it has become in the store, once it has.
    pub(crate) fn run(&self) -> Option<u64> {
        let mut run = None;
        self.with(|state| run = state.run);
        run
    }

    fn begin(&self, name: &str, repetitions: usize, length: trunkline_core::Duration) {
        self.with(|state| {
            state.name = name.to_owned();
            state.length = length.as_nanos().max(1);
            state.repetitions = repetitions;
            state.started = Instant::now();
            state.line_at = state.line_at.max(state.started + FIRST_LINE);
            (state.passed, state.done, state.points, state.points_done) = (0, 0, 0, 0);
            state.bar.finish_and_clear();
            if state.terminal {
                let style = ProgressStyle::with_template(match state.whole {
                    None => "{prefix}  {wide_bar} {percent:>3} %  {eta} left\n{wide_msg:.dim}",
                    Some(_) => "{prefix}  {wide_bar}\n{wide_msg:.dim}",
                });
                let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
                state.bar =
                    ProgressBar::with_draw_target(Some(state.length), ProgressDrawTarget::stderr_with_hz(10));
                state.bar.set_style(style);
                output::set_prefix(&state.bar, state.message());
            }
        });
    }

    /// So much more has passed.
    fn pass(&self, by: trunkline_core::Duration) {
        self.with(|state| {
            state.passed = state.passed.saturating_add(by.as_nanos()).min(state.length);
            state.bar.set_position(state.passed);
            if state.whole.is_some() {
                output::set_prefix(&state.bar, state.message());
            }
            if let Some(line) = state.line_due(Instant::now()) {
                output::note(line);
            }
        });
    }

    /// One more is measured.
    fn count(&self) {
        self.with(|state| {
            state.done += 1;
            output::set_prefix(&state.bar, state.message());
        });
    }

    fn with(&self, act: impl FnOnce(&mut State)) {
        // A panic in another thread must not hide the progress of the others.
        act(&mut self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

impl Observer for Display {
    fn begun(&self, run: &RunInfo) {
        self.with(|state| state.run = Some(run.id));
    }

    fn planned(&self, plan: &Plan) {
        self.begin(&plan.name, plan.repetitions, plan.length);
        self.with(|state| state.points = plan.points);
    }

    fn advanced(&self, by: trunkline_core::Duration) {
        self.pass(by);
    }

    fn measured(&self, experiment: &Experiment, point: &Point, summary: &RepetitionSummary) {
        let line = trunkline_report::one_line(experiment, point, summary);
        self.with(|state| output::set_message(&state.bar, line));
    }

    fn repetition_done(&self) {
        self.count();
    }

    fn console(&self, host: &str, file: &Path) {
        let line = format!("console: host {host} in {}", file.display());
        self.with(|state| state.bar.suspend(|| output::note(line)));
    }

    fn heard(&self, heard: &Heard) {
        self.with(|state| state.heard.push(heard.clone()));
    }

    fn point_done(&self) {
        self.with(|state| state.points_done += 1);
    }

    fn warning(&self, message: &str) {
        self.with(|state| state.bar.suspend(|| output::warn(message)));
    }
}

impl trunkline_planner::Observer for Display {
    fn judged(&self, sentence: &str) {
        self.with(|state| state.bar.suspend(|| output::note(sentence)));
    }

    fn estimated(&self, forecast: &Forecast) {
        let sentence = estimate(forecast);
        self.with(|state| state.bar.suspend(|| output::note(sentence)));
        self.forecast(forecast);
    }

    fn forecast(&self, forecast: &Forecast) {
        self.with(|state| state.whole = Some(Whole::Until(Instant::now() + forecast.left)));
    }
}

/// A file that was written for listeners.
pub(crate) fn heard_line(heard: &Heard) -> String {
    let Heard { key, path, frames, sample_rate, concealed, .. } = heard;
    let seconds = *frames as f64 / f64::from(*sample_rate);
    let share = concealed.value() * 100.0;
    format!("heard: {key} in {}, {seconds:.1} s, {share:.2} % concealed", path.display())
}

/// What a plan takes, before it begins.
fn estimate(forecast: &Forecast) -> String {
    format!(
        "estimated from the probe: {} more for about {} repetitions of {} values; values near an edge may need more",
        whole_seconds(forecast.left),
        forecast.repetitions,
        forecast.values
    )
}

/// Rounded up.
fn whole_seconds(time: Duration) -> trunkline_core::Duration {
    trunkline_core::Duration::from_secs_f64(time.as_secs_f64().ceil())
}

/// Of a study.
impl trunkline_papers::Observer for Display {
    fn planned(&self, study: &str, simulations: usize, length: trunkline_core::Duration) {
        self.begin(study, simulations, length);
    }

    fn advanced(&self, by: trunkline_core::Duration) {
        self.pass(by);
    }

    fn simulation_done(&self) {
        self.count();
    }
}

impl State {
    fn message(&self) -> String {
        let points = match self.points {
            0 | 1 => String::new(),
            points => format!(", {} of {points} points done", self.points_done),
        };
        let left = self.whole_left(Instant::now()).map_or_else(String::new, |left| format!(", {left}"));
        format!("{}: {} of {} measured{points}{left}", self.name, self.done, self.repetitions)
    }

    /// The time left of a plan of several rounds; `None` for what has one round.
    fn whole_left(&self, now: Instant) -> Option<String> {
        match self.whole.as_ref()? {
            Whole::Unknown => Some("time left not known yet".to_owned()),
            Whole::Until(end) => {
                Some(format!("about {} left of the plan", whole_seconds(end.saturating_duration_since(now))))
            }
        }
    }

    /// The plain line that is due.
    fn line_due(&mut self, now: Instant) -> Option<String> {
        if self.terminal || now < self.line_at {
            return None;
        }
        self.line_at = now + LINE_EVERY;
        self.any_line = true;
        Some(self.line(now))
    }

    /// How it ended, after plain lines.
    fn last_line(&self, now: Instant) -> String {
        let took = trunkline_core::Duration::from_secs(now.duration_since(self.since).as_secs());
        let is_done = self.done >= self.repetitions;
        match (&self.whole, is_done) {
            (Some(_), true) => format!("plan: done after {took}"),
            (Some(_), false) => format!("plan: stopped after {took}, while it measured {}", self.name),
            (None, true) => format!("{}, done after {took}", self.message()),
            (None, false) => format!("{}, stopped after {took}", self.message()),
        }
    }

    fn line(&self, now: Instant) -> String {
        if self.whole.is_some() {
            return self.message();
        }
        let share = self.passed as f64 / self.length as f64;
        let elapsed = now.duration_since(self.started).as_secs_f64();
        let left = if share > 0.0 { elapsed / share * (1.0 - share) } else { f64::INFINITY };
        let left = trunkline_core::Duration::from_secs_f64(left.ceil());
        format!("{}, {:.0} %, {left} left", self.message(), share * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_tells_the_time_left_of_all_its_rounds() {
        let display = Display::of_plan();
        display.with(|state| state.terminal = false);
        display.begin("probe", 4, trunkline_core::Duration::from_secs(8));
        display.with(|state| assert_eq!(state.message(), "probe: 0 of 4 measured, time left not known yet"));
        let forecast = Forecast { values: 3, repetitions: 15, left: Duration::from_millis(89_500) };
        trunkline_planner::Observer::forecast(&display, &forecast);
        display.begin("one of two searches", 5, trunkline_core::Duration::from_secs(10));
        display.with(|state| {
            let Some(Whole::Until(end)) = state.whole else { panic!("it has a forecast") };
            let left = |before: u64| state.whole_left(end - Duration::from_secs(before));
            assert_eq!(left(89).as_deref(), Some("about 89 s left of the plan"));
            // A round that takes longer than it should is not over before it is.
            let late = state.whole_left(end + Duration::from_secs(5));
            assert_eq!(late.as_deref(), Some("about 0 s left of the plan"));
            assert!(
                state.line(end).starts_with("one of two searches: 0 of 5 measured, about "),
                "one for all rounds"
            );
            // How it ended, and where if it was stopped.
            let at = state.since + Duration::from_millis(8100);
            state.done = 3;
            let stopped = "plan: stopped after 8 s, while it measured one of two searches";
            assert_eq!(state.last_line(at), stopped);
            state.done = 5;
            assert_eq!(state.last_line(at), "plan: done after 8 s");
        });
        assert_eq!(
            estimate(&forecast),
            "estimated from the probe: 90 s more for about 15 repetitions of 3 values; values near an edge may need more"
        );
    }

    #[test]
    fn a_pipe_hears_of_runs_that_take_a_second_and_of_their_end() {
        let display = Display::new();
        display.with(|state| state.terminal = false);
        display.begin("calls", 4, trunkline_core::Duration::from_secs(100));
        display.with(|state| {
            let begin = state.since;
            let at = |millis: u64| begin + FIRST_LINE + Duration::from_millis(millis);
            assert_eq!(
                state.line_due(begin + Duration::from_millis(10)),
                None,
                "a run of 10 ms says nothing"
            );
            assert!(!state.any_line);
            // `begin` has taken the time a moment after `since`.
            let first = state.line_due(at(500)).unwrap();
            assert!(first.starts_with("calls: 0 of 4 measured, 0 %"), "{first}");
            assert_eq!(state.line_due(at(5400)), None);
            assert!(state.line_due(at(5500)).is_some());
            state.done = 3;
            assert_eq!(state.last_line(at(9000)), "calls: 3 of 4 measured, stopped after 10 s");
            state.done = 4;
            assert_eq!(state.last_line(at(9000)), "calls: 4 of 4 measured, done after 10 s");
        });
    }
}
