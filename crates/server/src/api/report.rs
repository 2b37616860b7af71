//! The figures of a run, as `trunkline run --json` prints them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Axis, Backend, Status};

/// Every figure of a run, beside those of its counterpart on another backend. Base units throughout.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The version of this layout.
    pub format: u32,
    /// The experiment's name.
    pub name: String,
    /// The experiment file.
    pub text: String,
    /// The run that was asked for, and its counterpart if there is one.
    pub runs: Vec<ReportRun>,
    /// What was swept.
    pub axes: Vec<Axis>,
    /// What counts as good enough, and whether it is.
    pub limits: Vec<ReportLimit>,
    /// The figures of every point.
    pub points: Vec<ReportPoint>,
    /// What the figures of flows are, by name.
    pub figures: BTreeMap<String, FigureDefinition>,
    /// What the figures of bundles are, by name.
    pub bundle_figures: BTreeMap<String, FigureDefinition>,
}

/// A run in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReportRun {
    /// Its number.
    pub id: u64,
    /// The experiment's name.
    pub name: String,
    /// On what it was executed.
    pub backend: Backend,
    /// How far it is.
    pub status: Status,
    /// What it found, in a sentence.
    pub headline: String,
    /// Whether its limits hold; null without limits.
    #[schema(required = true)]
    pub outcome: Option<LimitOutcome>,
}

/// Whether a limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitOutcome {
    /// It does.
    Holds,
    /// It does not.
    Broken,
    /// It is not known.
    NotMeasured,
    /// There is nobody whom it is about.
    NotApplicable,
}

/// A limit in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportLimit {
    /// As written.
    pub key: String,
    /// As written.
    pub condition: String,
    /// The name of the figure that it is about.
    pub figure: String,
    /// The bound in base units.
    pub bound: f64,
    /// What became of it in each run.
    pub runs: Vec<RunLimit>,
}

/// What became of a limit in a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunLimit {
    /// The run's number.
    pub run: u64,
    /// Over all points.
    pub outcome: LimitOutcome,
    /// The point that fares worst.
    #[schema(required = true)]
    pub worst: Option<u32>,
    /// At every point.
    pub points: Vec<LimitPoint>,
}

/// What became of a limit at a point.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitPoint {
    /// The point.
    pub point: u32,
    /// Whether it holds.
    pub outcome: LimitOutcome,
    /// Whether the confidence interval reaches across the bound.
    pub uncertain: bool,
    /// The figure's mean.
    #[schema(required = true)]
    pub mean: Option<f64>,
    /// Half the width of its 95 % confidence interval.
    #[schema(required = true)]
    pub ci95: Option<f64>,
}

/// A point in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportPoint {
    /// Counted from 0.
    pub index: u32,
    /// The swept values by key.
    pub values: BTreeMap<String, String>,
    /// What each run found there.
    pub runs: Vec<ReportSide>,
}

/// What a run found at a point.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportSide {
    /// The run's number.
    pub run: u64,
    /// Its backend.
    pub backend: Backend,
    /// From how many repetitions the figures are made.
    pub repetitions: usize,
    /// Whether they come from an interrupted repetition.
    pub cut_short: bool,
    /// Its flows.
    pub flows: Vec<ReportFlow>,
    /// Its bundles.
    pub bundles: Vec<ReportBundle>,
    /// Its links.
    pub links: Vec<ReportLink>,
    /// Its media.
    pub media: Vec<ReportMedium>,
}

/// A figure over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; null for a single repetition.
    #[schema(required = true)]
    pub sd: Option<f64>,
    /// Half the width of the 95 % confidence interval; null for a single repetition.
    #[schema(required = true)]
    pub ci95: Option<f64>,
    /// Over how many repetitions.
    pub repetitions: usize,
}

/// A flow in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReportFlow {
    /// Its name.
    pub flow: String,
    /// Its transport.
    pub transport: String,
    /// How many members.
    pub members: u32,
    /// How many channels each has.
    pub channels: u32,
    /// `one-way`, `round-trip` or `nothing`.
    pub measured: String,
    /// The codec by which its quality is judged.
    #[schema(required = true)]
    pub codec: Option<String>,
    /// Whether percentiles are exact.
    pub percentiles_exact: bool,
    /// Its figures by name.
    pub figures: BTreeMap<String, Estimate>,
    /// Its sinks, if there are several.
    pub sinks: Vec<ReportSink>,
}

/// A sink in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportSink {
    /// Its host.
    pub sink: String,
    /// Its figures by name.
    pub figures: BTreeMap<String, Estimate>,
}

/// A bundle in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportBundle {
    /// Its name.
    pub bundle: String,
    /// Its flows.
    pub flows: Vec<String>,
    /// Of these the transport; null for the bundle as a whole.
    #[schema(required = true)]
    pub transport: Option<String>,
    /// What latency is measured of them.
    #[schema(required = true)]
    pub measured: Option<String>,
    /// How many members.
    pub members: u32,
    /// Its figures by name.
    pub figures: BTreeMap<String, Estimate>,
}

/// A link in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReportLink {
    /// Its name, with the direction.
    pub link: String,
    /// Share of time in which it was busy.
    #[schema(required = true)]
    pub utilisation: Option<Estimate>,
    /// Packets offered to it.
    #[schema(required = true)]
    pub offered: Option<Estimate>,
    /// Packets that it delivered.
    #[schema(required = true)]
    pub delivered: Option<Estimate>,
    /// Mean time in its queue.
    #[schema(required = true)]
    pub sojourn_mean: Option<Estimate>,
    /// The median.
    #[schema(required = true)]
    pub sojourn_p50: Option<Estimate>,
    /// The 99th percentile.
    #[schema(required = true)]
    pub sojourn_p99: Option<Estimate>,
    /// The 99.9th percentile.
    #[schema(required = true)]
    pub sojourn_p999: Option<Estimate>,
    /// The longest.
    #[schema(required = true)]
    pub sojourn_max: Option<Estimate>,
    /// The most bytes in the queue.
    #[schema(required = true)]
    pub backlog_max: Option<Estimate>,
    /// The most packets in the queue.
    #[schema(required = true)]
    pub backlog_packets_max: Option<Estimate>,
    /// Dropped packets by cause, for each repetition.
    pub dropped: Vec<BTreeMap<String, u64>>,
    /// Packets marked as having met congestion, for each repetition.
    #[schema(value_type = Vec<Value>)]
    pub marked: Vec<serde_json::Value>,
}

/// A medium in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportMedium {
    /// Its name.
    pub medium: String,
    /// One of its stations; null for the medium as a whole.
    #[schema(required = true)]
    pub station: Option<String>,
    /// Its figures by name; null where there was nothing to measure.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub figures: BTreeMap<String, Option<Estimate>>,
}

/// What a figure is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FigureDefinition {
    /// For people.
    pub name: String,
    /// Its base unit; empty for counts.
    pub unit: String,
    /// What it means.
    pub definition: String,
    /// Standard or paper; empty if the definition says it all.
    pub source: String,
}
