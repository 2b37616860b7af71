//! Probes: what a network does to audio, and how to send it.

use std::sync::atomic::Ordering;

use serde_json::Value;
use trunkline_advisor::{
    Live, Measured, Observer, Prober as _, Question, Step, Transport, advise, experiment, json, probe,
};
use trunkline_core::{Duration, Ratio};

use crate::api::{ApiError, NewProbe, Use};
use crate::jobs::{Ended, Job};

/// A server that is not there is given up after this share of the budget.
const PATIENCE: u64 = 10;
/// The share of a rehearsal's audio that may have to be concealed, as of `trunkline probe`.
const CONCEALED: f64 = 0.005;
/// Bytes of a sample: 16 bits, as of `trunkline probe`.
const SAMPLE_BYTES: u8 = 2;

/// A probe that makes sense.
pub(super) struct Asked {
    server: String,
    question: Question,
}

impl Asked {
    pub(super) fn new(new: NewProbe) -> Result<Asked, ApiError> {
        let NewProbe { host, port, budget_s, purpose, channels, rate } = new;
        let host = host.trim();
        if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(ApiError::input(
                "`host` must be the name or the address of a host on which `trunkline reflect` runs",
            ));
        }
        let outside = |name: &str, value: &dyn std::fmt::Display, range: &str| {
            ApiError::input(format_args!("`{name}` is {value} and must be {range}"))
        };
        if !(1.0..=3600.0).contains(&budget_s) {
            return Err(outside("budget_s", &budget_s, "from 1 to 3600 seconds"));
        }
        if !(1..=1024).contains(&channels) {
            return Err(outside("channels", &channels, "from 1 to 1024"));
        }
        if !(8000..=192_000).contains(&rate) {
            return Err(outside("rate", &rate, "from 8000 to 192000 samples per second"));
        }
        let uses = match purpose {
            None => trunkline_advisor::Use::ALL.to_vec(),
            Some(Use::Rehearsal) => vec![trunkline_advisor::Use::Rehearsal],
            Some(Use::Recording) => vec![trunkline_advisor::Use::Recording],
            Some(Use::Telephony) => vec![trunkline_advisor::Use::Telephony],
        };
        Ok(Asked {
            server: server(host, port),
            question: Question {
                budget: Duration::from_secs_f64(budget_s),
                transports: Transport::all(),
                uses,
                channels,
                sample_rate: rate,
                sample_bytes: SAMPLE_BYTES,
                concealed: Ratio::new(CONCEALED).unwrap_or_default(),
                load: true,
            },
        })
    }

    pub(super) fn title(&self) -> String {
        format!("audio to {}", self.server)
    }

    /// Measures, and gives advice on what was measured; also if it was stopped before.
    pub(super) fn measure(self, job: &Job) -> Result<Ended, ApiError> {
        let Asked { server, mut question } = self;
        let begun = trunkline_calls::now();
        let whole = question.budget;
        job.progress(0.0, Some(whole));
        let told = Told { job, whole };
        let mut prober = match Live::new(&server, question.budget / PATIENCE) {
            Ok(prober) => prober,
            Err(_) if told.is_stopped() => return Ok(Ended::Stopped(None)),
            Err(error) => return Err(ApiError::environment(error)),
        };
        // Finding the server is part of what may take so long.
        question.budget = question.budget.saturating_sub(prober.now().since(begun));
        let probed = probe(question, &mut prober, &told);
        let Some(advice) = advise(&server, &probed) else {
            if probed.is_partial {
                return Ok(Ended::Stopped(None));
            }
            let why: Vec<String> =
                probed.findings.failed().map(|(transport, why)| format!("{transport}: {why}")).collect();
            return Err(ApiError::environment(format_args!(
                "nothing could be measured to `{server}`: {}",
                why.join("; ")
            )));
        };
        let mut result = json(&advice);
        result["experiment"] = experiment(&advice).map_or(Value::Null, Value::from);
        Ok(match probed.is_partial {
            true => Ended::Stopped(Some(result)),
            false => Ended::Done(Some(result)),
        })
    }
}

/// `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`.
fn server(host: &str, port: Option<u16>) -> String {
    match port {
        None => host.to_owned(),
        Some(port) if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
    }
}

/// Tells the job how far its probe is.
struct Told<'j> {
    job: &'j Job,
    whole: Duration,
}

impl Observer for Told<'_> {
    fn begins(&self, _: &Step, left: Duration) {
        let done = 1.0 - left.as_secs_f64() / self.whole.as_secs_f64().max(1e-9);
        self.job.progress(done, Some(left));
    }

    fn measured(&self, step: &Step, found: &Measured) {
        self.job.warn(&format!("{}: {}", step.configuration, found.trace));
    }

    fn failed(&self, step: &Step, why: &str) {
        self.job.warn(&format!("{}: {why}", step.configuration.transport));
    }

    fn is_stopped(&self) -> bool {
        self.job.stop().load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> NewProbe {
        NewProbe {
            host: "studio".into(),
            port: None,
            budget_s: 10.0,
            purpose: None,
            channels: 2,
            rate: 48_000,
        }
    }

    fn refused(new: NewProbe) -> String {
        Asked::new(new).err().map(|error| error.info().message.clone()).unwrap_or_default()
    }

    #[test]
    fn what_cannot_be_asked_is_told() {
        assert!(refused(NewProbe { host: " ".into(), ..asked() }).contains("`host`"));
        assert!(refused(NewProbe { host: "a b".into(), ..asked() }).contains("`host`"));
        for budget_s in [0.0, 0.5, f64::NAN, 1e9] {
            assert!(refused(NewProbe { budget_s, ..asked() }).contains("`budget_s`"), "{budget_s}");
        }
        assert!(refused(NewProbe { channels: 0, ..asked() }).contains("`channels`"));
        assert!(refused(NewProbe { rate: 7999, ..asked() }).contains("`rate`"));
        assert_eq!(refused(asked()), "");
    }

    #[test]
    fn a_port_goes_behind_any_kind_of_host() {
        assert_eq!(server("studio", None), "studio");
        assert_eq!(server("studio", Some(9)), "studio:9");
        assert_eq!(server("::1", Some(9)), "[::1]:9");
        assert_eq!(server("[::1]", Some(9)), "[::1]:9");
    }

    #[test]
    fn one_use_or_all_of_them_are_asked_for() {
        assert_eq!(Asked::new(asked()).map(|asked| asked.question.uses.len()).ok(), Some(3));
        let one = NewProbe { purpose: Some(Use::Recording), ..asked() };
        let uses = Asked::new(one).map(|asked| asked.question.uses).ok();
        assert_eq!(uses, Some(vec![trunkline_advisor::Use::Recording]));
    }
}
