//! How far a run is: a bar on a terminal, plain lines otherwise, both with the time left.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use trunkline_runner::{Observer, Plan};

use crate::output;

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
    started: Instant,
    line_at: Instant,
}

impl Display {
    pub(crate) fn new() -> Display {
        let now = Instant::now();
        Display {
            state: Mutex::new(State {
                bar: ProgressBar::hidden(),
                terminal: std::io::stderr().is_terminal(),
                name: String::new(),
                length: 1,
                passed: 0,
                repetitions: 0,
                done: 0,
                started: now,
                line_at: now + LINE_EVERY,
            }),
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.with(|state| state.bar.finish_and_clear());
    }

    fn begin(&self, name: &str, repetitions: usize, length: trunkline_core::Duration) {
        self.with(|state| {
            state.name = name.to_owned();
            state.length = length.as_nanos().max(1);
            state.repetitions = repetitions;
            state.started = Instant::now();
            if state.terminal {
                let style = ProgressStyle::with_template("{msg}  {wide_bar} {percent:>3} %  {eta} left");
                let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
                state.bar =
                    ProgressBar::with_draw_target(Some(state.length), ProgressDrawTarget::stderr_with_hz(10));
                state.bar.set_style(style);
                state.bar.set_message(state.message());
            } else {
                output::note(state.message());
            }
        });
    }

    /// So much more has passed.
    fn pass(&self, by: trunkline_core::Duration) {
        self.with(|state| {
            state.passed = state.passed.saturating_add(by.as_nanos()).min(state.length);
            state.bar.set_position(state.passed);
            let now = Instant::now();
            if !state.terminal && now >= state.line_at {
                state.line_at = now + LINE_EVERY;
                output::note(state.line(now));
            }
        });
    }

    /// One more is measured.
    fn count(&self) {
        self.with(|state| {
            state.done += 1;
            state.bar.set_message(state.message());
        });
    }

    fn with(&self, act: impl FnOnce(&mut State)) {
        // A panic in another thread must not hide the progress of the others.
        act(&mut self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

impl Observer for Display {
    fn planned(&self, plan: &Plan) {
        self.begin(&plan.run.name, plan.repetitions, plan.length);
    }

    fn advanced(&self, by: trunkline_core::Duration) {
        self.pass(by);
    }

    fn repetition_done(&self) {
        self.count();
    }

    fn warning(&self, message: &str) {
        self.with(|state| state.bar.suspend(|| output::warn(message)));
    }
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
        format!("{}: {} of {} measured", self.name, self.done, self.repetitions)
    }

    fn line(&self, now: Instant) -> String {
        let share = self.passed as f64 / self.length as f64;
        let elapsed = now.duration_since(self.started).as_secs_f64();
        let left = if share > 0.0 { elapsed / share * (1.0 - share) } else { f64::INFINITY };
        let left = trunkline_core::Duration::from_secs_f64(left.ceil());
        format!("{}, {:.0} %, {left} left", self.message(), share * 100.0)
    }
}
