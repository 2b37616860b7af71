//! The JSON of a learned path: what `trunkline learn --json` prints.
//!
//! Numbers are in base units: seconds, bits per second, bytes, packets, shares from 0 to 1.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::observations::Way;
use crate::probing::Path;
use crate::verify::Verified;
use crate::watch::{Change, Watch};
use crate::write::sentence;

/// A learned path.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProbedPath {
    /// The other end, as given.
    pub host: String,
    /// The result in a sentence.
    pub summary: String,
    /// The profile that was written.
    pub file: String,
    /// Profiles of links that explain the measurement as well.
    pub ensemble: Vec<String>,
    /// Both directions.
    pub directions: Vec<ProbedDirection>,
    /// Predictions beside measurements of traffic that was not learned from.
    pub verified: Vec<ProbedFigure>,
    /// Other things to know, in sentences.
    pub notes: Vec<String>,
    /// True if the measurement was stopped before its end.
    pub partial: bool,
}

/// A direction of a learned path.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProbedDirection {
    /// `forward` or `backward`.
    pub direction: String,
    /// Why nothing was learned; null if something was.
    #[schema(required = true)]
    pub problem: Option<String>,
    /// The mechanism under load; null if it was not measured.
    #[schema(required = true)]
    pub mechanism: Option<String>,
    /// Mechanisms that explain the measurement as well.
    pub alternatives: Vec<String>,
    /// The keys of the link.
    pub keys: Vec<ProbedKey>,
    /// Other things to know, in sentences.
    pub notes: Vec<String>,
}

/// A key of a learned link.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProbedKey {
    /// The key.
    pub key: String,
    /// The value as in the profile.
    pub value: String,
    /// Lower end of the 90 % interval of its number; null if there is none.
    #[schema(required = true)]
    pub low: Option<f64>,
    /// Upper end of it; null if there is none.
    #[schema(required = true)]
    pub high: Option<f64>,
    /// The reason in a sentence.
    #[schema(required = true)]
    pub evidence: Option<String>,
}

/// A figure that was predicted, then measured.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProbedFigure {
    /// The traffic. The name of video that was scaled down to a slow path has its rate.
    pub workload: String,
    /// The figure.
    pub figure: String,
    /// The mean prediction of the ensemble.
    pub predicted: f64,
    /// The smallest prediction.
    pub low: f64,
    /// The largest prediction.
    pub high: f64,
    /// The measurement.
    pub measured: f64,
    /// The error of the mean prediction relative to the measurement, or to 1 ms or 0.2 % of loss where less was measured.
    pub error: f64,
    /// True if the summary counts it: not the medians of the delay, nor losses of which none was predicted or measured.
    pub counted: bool,
}

/// A path that was watched: what `trunkline learn --watch --json` prints.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WatchedPath {
    /// The other end, as given.
    pub host: String,
    /// Looks that were taken.
    pub looks: usize,
    /// Looks that failed.
    pub failed: usize,
    /// Changes, in their order.
    pub changes: Vec<WatchedChange>,
}

/// A change of a direction of a path.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WatchedChange {
    /// `forward` or `backward`.
    pub direction: String,
    /// `rate`, `delay`, `loss`, or `silence` if no packet arrives any more or some do again.
    pub figure: String,
    /// The first look that differed, in seconds since the first look.
    pub since_s: f64,
    /// The figure before.
    pub before: f64,
    /// The figure after.
    pub after: f64,
    /// The same in a sentence.
    pub sentence: String,
}

impl WatchedPath {
    /// The JSON of a watch.
    pub fn of(host: &str, watch: &Watch) -> WatchedPath {
        let change = |change: &Change| WatchedChange {
            direction: change.way.name().to_owned(),
            figure: change.figure.name().to_owned(),
            since_s: change.since.as_secs_f64(),
            before: change.before,
            after: change.after,
            sentence: change.sentence(),
        };
        let Watch { looks, failed, ref changes } = *watch;
        WatchedPath { host: host.to_owned(), looks, failed, changes: changes.iter().map(change).collect() }
    }
}

impl ProbedPath {
    /// The JSON of a path that was written to these files.
    pub fn of(
        host: &str,
        path: &Path,
        verified: &[Verified],
        file: String,
        ensemble: Vec<String>,
    ) -> ProbedPath {
        let direction = |way: Way| match &path.ways[way as usize] {
            Err(problem) => ProbedDirection {
                direction: way.name().to_owned(),
                problem: Some(problem.clone()),
                mechanism: None,
                alternatives: Vec::new(),
                keys: Vec::new(),
                notes: Vec::new(),
            },
            Ok(learned) => ProbedDirection {
                direction: way.name().to_owned(),
                problem: None,
                mechanism: learned.is_loaded.then(|| learned.link.mechanism().to_owned()),
                alternatives: learned.alternatives.iter().map(|link| link.mechanism().to_owned()).collect(),
                keys: learned
                    .link
                    .keys()
                    .into_iter()
                    .map(|(key, value)| {
                        let interval = learned.interval(key);
                        let evidence = learned.evidence.iter().rfind(|(known, _)| *known == key);
                        ProbedKey {
                            key: key.to_owned(),
                            value,
                            low: interval.map(|interval| interval.low).filter(|end| end.is_finite()),
                            high: interval.map(|interval| interval.high).filter(|end| end.is_finite()),
                            evidence: evidence.map(|(_, reason)| reason.clone()),
                        }
                    })
                    .collect(),
                notes: learned.notes.clone(),
            },
        };
        let figure = |one: &Verified| ProbedFigure {
            workload: one.workload.clone(),
            figure: one.figure.to_owned(),
            predicted: one.predicted.value,
            low: one.predicted.low,
            high: one.predicted.high,
            measured: one.measured,
            error: one.error(),
            counted: one.is_counted(),
        };
        ProbedPath {
            host: host.to_owned(),
            summary: sentence(path, verified),
            file,
            ensemble,
            directions: Way::ALL.into_iter().map(direction).collect(),
            verified: verified.iter().map(figure).collect(),
            notes: path.notes.clone(),
            partial: path.is_partial,
        }
    }
}
