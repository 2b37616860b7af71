//! How sessions are doing: a line for each on a terminal, plain lines otherwise, and a table at their end.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use trunkline_audio::pipeline::Stream;
use trunkline_calls::program::{Counts, Event, Figures, Format, Observer};

use crate::json::SessionOutput;
use crate::output;

/// Between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows what happens in sessions: on standard error while they go on, on standard output when they end.
pub(crate) struct Sessions {
    json: bool,
    terminal: bool,
    bars: MultiProgress,
    shown: Mutex<BTreeMap<u64, Shown>>,
}

struct Shown {
    bar: ProgressBar,
    line_at: Instant,
}

impl Sessions {
    /// Results as JSON or as tables.
    pub(crate) fn new(json: bool) -> Sessions {
        Sessions {
            json,
            terminal: output::is_error_terminal(),
            bars: MultiProgress::new(),
            shown: Mutex::default(),
        }
    }

    /// Says something between the lines of sessions.
    pub(crate) fn note(&self, text: &str) {
        self.bars.suspend(|| output::note(text));
    }

    fn begin(&self, session: u64) {
        let bar = if self.terminal { self.bars.add(ProgressBar::no_length()) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let shown = Shown { bar, line_at: Instant::now() + LINE_EVERY };
        self.with(|all| drop(all.insert(session, shown)));
    }

    fn go(&self, session: u64, figures: &Figures) {
        self.with(|all| {
            let Some(shown) = all.get_mut(&session) else { return };
            if self.terminal {
                output::set_message(&shown.bar, line(figures));
            } else if Instant::now() >= shown.line_at {
                shown.line_at = Instant::now() + LINE_EVERY;
                output::note(line(figures));
            }
        });
    }

    fn end(&self, session: u64, figures: Option<&Figures>, why: Option<&str>) {
        if let Some(shown) = self.with(|all| all.remove(&session)) {
            shown.bar.finish_and_clear();
        }
        self.bars.suspend(|| {
            match (figures, why) {
                (_, Some(why)) => output::note(format_args!("session {session} has ended: {why}")),
                (None, None) => output::note(format_args!("session {session} has ended")),
                (Some(_), None) => {}
            }
            match figures {
                Some(figures) if self.json => output::print_json(&SessionOutput {
                    session,
                    ended: why.filter(|why| *why != trunkline_calls::GOODBYE).map(str::to_owned),
                    figures: figures.into(),
                }),
                Some(figures) => output::print(output::list(&table(figures), output::screen())),
                None => {}
            }
        });
    }

    fn with<R>(&self, act: impl FnOnce(&mut BTreeMap<u64, Shown>) -> R) -> R {
        // A panic in another session must not hide this one.
        act(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Sessions {
    fn event(&self, session: u64, event: Event<'_>) {
        match event {
            Event::Began { peer, transport, stream } => {
                let stream = stream.map_or(String::new(), |stream| format!(", {}", described(&stream)));
                self.note(&format!("session {session} with {peer} over `{transport}`{stream}"));
                self.begin(session);
            }
            Event::Going(figures) => self.go(session, figures),
            Event::Ended { figures, why } => self.end(session, figures, why),
            Event::Pairing { from, outcome: Ok(name) } => {
                self.note(&format!("{name} at {from} has paired with this host"));
            }
            Event::Pairing { from, outcome: Err(why) } => self.note(&format!("{from} could not pair: {why}")),
            Event::Retrying(why) => self.note(&format!("{why}; trying again")),
            Event::DeviceLost(why) => self.note(&format!("{why}; waiting for it")),
            Event::DeviceBack => self.note("the sound is back"),
            Event::Advice(advice) => self.bars.suspend(|| output::warn(advice)),
            _ => {}
        }
    }
}

/// What a stream is, in a few words.
fn described(stream: &Stream) -> String {
    let channels = match stream.channels {
        1 => "1 channel".to_owned(),
        channels => format!("{channels} channels"),
    };
    let Stream { sample_rate, block_frames, codec, .. } = stream;
    format!("{channels} at {sample_rate} Hz as `{}` in blocks of {block_frames} frames", Format(*codec))
}

/// How a session is doing.
fn line(figures: &Figures) -> String {
    let seconds = figures.elapsed.as_nanos() / 1_000_000_000;
    let stages: Vec<String> = stages(figures)
        .into_iter()
        .filter(|stage| !stage.is_zero)
        .map(|stage| format!("{} {}", stage.short, stage.text))
        .collect();
    let Counts { late, concealed, xruns, .. } = figures.counts;
    let lost = figures.counts.loss().map_or(String::new(), |loss| format!(" · lost {:.2} %", loss * 100.0));
    let drift = figures.drift_ppm.map_or(String::new(), |ppm| format!(" · {ppm:+.0} ppm"));
    format!(
        "{}:{:02} · {} = {} ms{lost} · late {late} · concealed {concealed}{drift} · xruns {xruns}",
        seconds / 60,
        seconds % 60,
        stages.join(" + "),
        total(figures),
    )
}

/// The latency from mouth to ear in milliseconds, as far as it is known.
fn total(figures: &Figures) -> String {
    let known = if figures.stages.network.is_some() { "" } else { "at least " };
    format!("{known}{:.1}", figures.stages.total().as_millis_f64())
}

struct Stage {
    short: &'static str,
    name: &'static str,
    text: String,
    is_zero: bool,
}

/// The latency of each stage in milliseconds, in the order in which audio passes them.
fn stages(figures: &Figures) -> Vec<Stage> {
    let all = &figures.stages;
    let of = |short, name, duration: trunkline_core::Duration| Stage {
        short,
        name,
        // Without the other end's word, a stage of zero is one of the other end.
        text: match (all.network, duration.is_zero()) {
            (None, true) => "–".to_owned(),
            _ => format!("{:.1}", duration.as_millis_f64()),
        },
        is_zero: duration.is_zero(),
    };
    let bound = figures.network_bound.map_or(String::new(), |b| format!(" ± {:.1}", b.as_millis_f64()));
    let network = Stage {
        short: "network",
        name: if figures.returns { "network, there and back" } else { "network" },
        text: all.network.map_or("?".to_owned(), |n| format!("{:.1}{bound}", n.as_millis_f64())),
        is_zero: false,
    };
    vec![
        of("capture", "capture block", all.capture),
        of("block", "resampling and block", all.block),
        of("packet", "packet", all.packet),
        network,
        of("playout", "playout", all.playout),
        of("resampling", "resampling", all.resampling),
        of("playback", "playback block", all.playback),
    ]
}

/// What is printed of a session at its end.
fn table(figures: &Figures) -> Vec<Vec<String>> {
    let mut rows = vec![row("latency", "ms")];
    rows.extend(stages(figures).into_iter().map(|stage| row(&format!("  {}", stage.name), stage.text)));
    rows.push(row("  mouth to ear", total(figures)));
    if let Some(trip) = &figures.round_trip {
        let delays = &trip.delays;
        let ms = |duration: trunkline_core::Duration| format!("{:.3}", duration.as_millis_f64());
        rows.push(row("round trip", "ms"));
        rows.push(row("  mean", ms(delays.mean)));
        rows.push(row("  jitter (mean absolute deviation)", ms(trip.jitter)));
        rows.push(row("  standard deviation", delays.deviation().map_or_else(|| "–".to_owned(), ms)));
        for (name, value) in [
            ("  smallest", delays.min),
            ("  p50", delays.p50),
            ("  p90", delays.p90),
            ("  p99", delays.p99),
            ("  p99.9", delays.p999),
            ("  largest", delays.max),
        ] {
            rows.push(row(name, ms(value)));
        }
    }
    if let Some(report) = &figures.reported {
        rows.push(row("last RTCP report of the receiver", ""));
        rows.push(row(
            "  packets lost",
            format!("{} ({:.1} % lately)", report.block.lost, report.block.loss() * 100.0),
        ));
        rows.push(row("  jitter", format!("{:.3} ms", report.jitter.as_millis_f64())));
        if let Some(round_trip) = report.round_trip {
            rows.push(row("  round trip", format!("{:.3} ms", round_trip.as_millis_f64())));
        }
    }
    let ours = ["from the capturing callback to the socket", "from the socket to the playing callback"];
    for (name, delays) in ours.into_iter().zip(figures.added) {
        if let Some(delays) = delays {
            let micros = |duration: trunkline_core::Duration| duration.as_secs_f64() * 1e6;
            rows.push(row(
                name,
                format!("p50 {:.0} µs, p99 {:.0} µs", micros(delays.p50), micros(delays.p99)),
            ));
        }
    }
    let counts = figures.counts;
    rows.push(row("packets sent", counts.sent));
    rows.push(row("packets received", counts.received));
    let loss = counts.loss().map_or(String::new(), |loss| format!(" ({:.3} %)", loss * 100.0));
    // Parity packets are among those that are sent and received; what they repaired is not lost.
    rows.push(row("audio packets lost", format!("{} of {}{loss}", counts.lost, counts.expected)));
    for (name, count) in [
        ("late", counts.late),
        ("concealed", counts.concealed),
        ("recovered", counts.recovered),
        ("reordered", counts.reordered),
        ("duplicate", counts.duplicate),
        ("send timeouts", counts.timed_out),
        ("refused, send buffer full", counts.refused),
        ("unmatched packets", counts.strange),
        ("dropped between threads", counts.overflowed),
        ("xruns", counts.xruns),
    ] {
        rows.push(row(name, count));
    }
    let drift = figures.drift_ppm.map_or("–".to_owned(), |ppm| format!("{ppm:+.1} ppm"));
    rows.push(row("drift", drift));
    rows
}

fn row(name: &str, value: impl ToString) -> Vec<String> {
    vec![name.to_owned(), value.to_string()]
}

#[cfg(test)]
mod tests {
    use trunkline_audio::pipeline::Stages;
    use trunkline_calls::program::RoundTrip;
    use trunkline_core::Duration;
    use trunkline_report::Screen;

    use super::*;

    fn figures() -> Figures {
        let ms = Duration::from_millis;
        Figures {
            elapsed: Duration::from_secs(83),
            stages: Stages {
                capture: ms(11),
                block: ms(2),
                network: Some(ms(7)),
                playout: ms(10),
                playback: ms(11),
                ..Stages::default()
            },
            network_bound: Some(Duration::from_micros(300)),
            counts: Counts { expected: 1000, lost: 5, late: 2, concealed: 7, ..Counts::default() },
            drift_ppm: Some(-12.4),
            ..Figures::default()
        }
    }

    #[test]
    fn a_line_says_where_the_time_goes() {
        assert_eq!(
            line(&figures()),
            "1:23 · capture 11.0 + block 2.0 + network 7.0 ± 0.3 + playout 10.0 + playback 11.0 = 41.0 ms · \
             lost 0.50 % · late 2 · concealed 7 · -12 ppm · xruns 0"
        );
        let unknown = Figures { stages: Stages::default(), network_bound: None, ..figures() };
        assert!(
            line(&unknown).starts_with("1:23 · network ? = at least 0.0 ms · lost"),
            "{}",
            line(&unknown)
        );
    }

    #[test]
    fn the_table_has_what_was_measured() {
        let text = output::list(&table(&figures()), Screen::default());
        for expected in ["  mouth to ear", "41.0", "5 of 1000 (0.500 %)", "-12.4 ppm"] {
            assert!(text.contains(expected), "{text}");
        }
        assert!(!text.contains("round trip"), "nothing came back:\n{text}");
        let unknown = output::list(&table(&Figures { drift_ppm: None, ..figures() }), Screen::default());
        let drift = unknown.lines().find(|line| line.starts_with("drift")).unwrap();
        assert!(drift.ends_with(" –"), "{drift}");
        let echo = Figures { returns: true, round_trip: Some(program_round_trip()), ..figures() };
        let text = output::list(&table(&echo), Screen::default());
        for expected in ["network, there and back", "jitter (mean absolute deviation)  0.250", "p99.9"] {
            assert!(text.contains(expected), "{text}");
        }
    }

    fn program_round_trip() -> RoundTrip {
        RoundTrip { delays: Default::default(), jitter: Duration::from_micros(250) }
    }
}
