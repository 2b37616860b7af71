//! The JSON of runs: what `trunkline run --json` and the API's `figures` hold. The JSON Schema and the description of the API
//! are made from these types.
//!
//! Numbers are in base units: seconds, bits per second, bytes, shares from 0 to 1, counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, OneOfBuilder, Ref, Schema, Type};

/// Every figure of a run, beside those of its counterpart on another backend.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The name of this layout: `run`.
    pub kind: String,
    /// The version of this layout.
    pub format: u32,
    /// The experiment's name.
    pub name: String,
    /// The experiment file.
    pub text: String,
    /// The requested run, and its counterpart if there is one.
    pub runs: Vec<ReportRun>,
    /// Notes on reading the figures: a sentence or more each.
    #[serde(default)]
    #[schema(required = true)]
    pub notes: Vec<String>,
    /// The swept keys, in the order of the file.
    pub axes: Vec<Axis>,
    /// The limits of the file, and whether they hold.
    pub limits: Vec<ReportLimit>,
    /// The figures of every point.
    pub points: Vec<ReportPoint>,
    /// Name, unit and definition of each figure of a flow, by the key under which it stands.
    pub figures: BTreeMap<String, FigureDefinition>,
    /// Name, unit and definition of each figure of a bundle, by the key under which it stands.
    pub bundle_figures: BTreeMap<String, FigureDefinition>,
    /// Name, unit and definition of each figure of a direction of a link, by the key under which it stands.
    #[serde(default)]
    #[schema(required = true)]
    pub link_figures: BTreeMap<String, FigureDefinition>,
    /// Name, unit and definition of each figure of a medium in these runs, by the key under which it stands.
    #[serde(default)]
    #[schema(required = true)]
    pub medium_figures: BTreeMap<String, FigureDefinition>,
    /// Audio files that `--hear` has written in this command; missing if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heard: Vec<ReportHeard>,
    /// The HTML report that this command has written; missing if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
}

/// A file with the audio that the listener of a flow heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReportHeard {
    /// The flow, or the channel of it: `flow.voice.1`.
    pub key: String,
    /// The point, from 0.
    pub point: u32,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The file.
    pub file: String,
    /// Frames in it, each with a sample of every channel.
    pub frames: u64,
    /// Frames per second.
    pub sample_rate: u32,
    /// Share of the audio that is concealment, because it did not arrive in time.
    pub concealed: f64,
}

/// The means by which a run is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Backend {
    /// Simulated, in virtual time, over the links that the file describes.
    Sim,
    /// In real time, over the same links, between network namespaces of one machine.
    Wire,
    /// On real sockets over the network as it is.
    Live,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Being executed.
    Running,
    /// Every repetition of every point was measured; of a part of a run, those that belong to it.
    Complete,
    /// Interrupted: what was measured is kept, and it can be resumed.
    Partial,
}

/// The answer of a run in a list: its verdict and its most important figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunAnswer {
    /// The outcome of all limits; missing if the file sets no limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<LimitOutcome>,
    /// The worst figure of the limit that is broken most, or the largest latency: `voice latency p99 is 302 ms at bulk.count = 4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// The headline of the run.
    pub headline: String,
}

/// A run, without its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    /// Its number in this store, from 1.
    pub id: u64,
    /// The experiment's name.
    pub name: String,
    /// Its backend.
    pub backend: Backend,
    /// Its progress.
    pub status: Status,
    /// Start, in UTC.
    pub started: jiff::Timestamp,
    /// End, in UTC; null if it has not ended.
    #[schema(required = true)]
    pub finished: Option<jiff::Timestamp>,
    /// The version of Trunkline that made it.
    pub version: String,
    /// The machine: kernel, processor, number of cores, host name.
    pub machine: String,
    /// The seed, in decimal digits: it may be larger than the integers that JavaScript and jq keep exactly.
    pub seed: String,
    /// Repetitions of every point.
    pub repetitions: u32,
    /// Number of points.
    pub points: u32,
    /// Repetitions that were measured to the end, over all points.
    pub repetitions_done: u32,
    /// Length of one repetition (duration and drain), in seconds.
    pub repetition_length_s: f64,
    /// The folder with its traces, audio and report, on the host that measured it.
    pub directory: String,
    /// The experiment file's path when it was run; `-` in its folder if it came from standard input.
    pub file: String,
    /// A hash of the experiment file: runs with the same one ran the same file.
    pub experiment_hash: String,
    /// Tags that users have put on it, in alphabetical order.
    pub tags: Vec<String>,
    /// A unique key of 32 hexadecimal digits.
    pub key: String,
    /// Settings of the command line, `link.trunk.rate=5 Mbit/s`; the stored file has them.
    pub settings: Vec<String>,
    /// The part of a run that it is, made by `run --shard`; missing for a whole run. Its points are those of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<RunShard>,
}

/// A part of a run, to be joined with the others by `runs merge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunShard {
    /// Its number, from 1.
    pub index: u32,
    /// The number of parts.
    pub of: u32,
    /// Repetitions that belong to it, over all points.
    pub repetitions: u64,
}

/// A run in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReportRun {
    /// The run.
    #[serde(flatten)]
    pub info: RunSummary,
    /// Its result in a sentence.
    pub headline: String,
    /// Settings that limited its flows, with values that would not, one sentence each.
    pub hints: Vec<String>,
    /// Limits of the machine, its clocks and the backend that a reader of its figures has to know: a sentence each.
    #[serde(default)]
    #[schema(required = true)]
    pub cautions: Vec<String>,
    /// Whether its limits hold; null without limits.
    #[schema(required = true)]
    pub outcome: Option<LimitOutcome>,
    /// The command that measures the same again.
    #[serde(default)]
    #[schema(required = true)]
    pub command: String,
    /// Stalls of the machine in each repetition that was measured in real time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<ReportStalls>,
}

/// Periods of a repetition in which the machine did not run a probe that was ready to run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReportStalls {
    /// The point, from 0.
    pub point: u32,
    /// The repetition, from 0.
    pub repetition: u32,
    /// `sleeping` (woken every millisecond) or `spinning`.
    pub probe: String,
    /// The observed time, in seconds.
    pub watched: f64,
    /// Its stalls by length, shorter thresholds first.
    pub gaps: Vec<ReportGap>,
    /// The longest stall, in seconds.
    pub longest: f64,
    /// Share of the observed time.
    pub share: f64,
}

/// Stalls longer than a threshold.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct ReportGap {
    /// The threshold, in seconds.
    pub longer_than: f64,
    /// The number of stalls.
    pub count: u64,
}

/// A swept key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Axis {
    /// `flow.voice.count`
    pub key: String,
    /// The values as written: `16 KiB`.
    pub values: Vec<String>,
    /// The values as numbers in `unit`; null if they are words.
    #[schema(required = true)]
    pub numbers: Option<Vec<f64>>,
    /// The unit of `numbers`: `KiB`, `ms`, `kbit/s`, or empty for counts.
    pub unit: String,
}

/// Whether a limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitOutcome {
    /// It holds.
    Holds,
    /// It is broken.
    Broken,
    /// Its figure was not measured, or not to the end.
    NotMeasured,
    /// No members are subject to it.
    NotApplicable,
}

/// A limit in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportLimit {
    /// As written in the file.
    pub key: String,
    /// As written in the file.
    pub condition: String,
    /// The name of the figure that it is about.
    pub figure: String,
    /// The bound, in the base unit of the figure.
    pub bound: f64,
    /// The outcome in each run.
    pub runs: Vec<RunLimit>,
}

/// The outcome of a limit in a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunLimit {
    /// The run's number.
    pub run: u64,
    /// The outcome over all points.
    pub outcome: LimitOutcome,
    /// In how many draws of learned paths it holds; missing if the file has no `draws`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draws: Option<LimitDraws>,
    /// The index of the worst point; null if nothing was measured.
    #[schema(required = true)]
    pub worst: Option<u32>,
    /// The points at which it holds, in words: `bulk.count = 0, 1`; `none` without any.
    #[serde(default)]
    #[schema(required = true)]
    pub holds_at: String,
    /// The points at which it is broken, in words; `none` without any.
    #[serde(default)]
    #[schema(required = true)]
    pub broken_at: String,
    /// The outcome at every point.
    pub points: Vec<LimitPoint>,
}

/// The draws of learned paths in which a limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitDraws {
    /// Draws in which it holds at all other values of the sweep.
    pub holds: usize,
    /// All draws.
    pub of: usize,
}

/// The outcome of a limit at a point.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitPoint {
    /// The point's index, from 0.
    pub point: u32,
    /// Whether it holds.
    pub outcome: LimitOutcome,
    /// Whether the confidence interval crosses the bound, or a repetition did not measure the figure.
    pub uncertain: bool,
    /// The figure's mean, in its base unit.
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
    /// The swept values by key, as written.
    pub values: BTreeMap<String, String>,
    /// The figures of each run.
    pub runs: Vec<ReportSide>,
}

/// The figures of a run at a point.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportSide {
    /// The run's number.
    pub run: u64,
    /// Its backend.
    pub backend: Backend,
    /// Number of repetitions behind the figures.
    pub repetitions: usize,
    /// Whether the figures are of an interrupted repetition.
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

/// A figure over repetitions, in its base unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation; null for a single repetition.
    #[schema(required = true)]
    pub sd: Option<f64>,
    /// Half the width of the 95 % confidence interval; null for a single repetition.
    #[schema(required = true)]
    pub ci95: Option<f64>,
    /// Number of repetitions.
    pub repetitions: usize,
}

/// A flow in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportFlow {
    /// Its name.
    pub flow: String,
    /// Its transport.
    pub transport: String,
    /// The transport with codec, members and channels, as the report shows it.
    #[serde(default)]
    #[schema(required = true)]
    pub carried_by: String,
    /// Number of members.
    pub members: u32,
    /// Channels of each member.
    pub channels: u32,
    /// The latency that is measured: `one-way`, `round-trip` or `nothing`.
    pub measured: String,
    /// The codec by which its quality is judged; null without one.
    #[schema(required = true)]
    pub codec: Option<String>,
    /// Parameters outside the E-model's range in the first repetition that has any, each in a few words: then `r` and
    /// `mos` are extrapolated.
    pub outside_e_model: Vec<String>,
    /// Whether percentiles are exact; otherwise they are within 0.1 %.
    pub percentiles_exact: bool,
    /// Its figures by name; `figures` of the report says what they are, with their units.
    pub figures: BTreeMap<String, Estimate>,
    /// Marks of figures by name: `≈` for a percentile from a histogram, within 0.1 %; `?` for a value outside the E-model's range.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, String>,
    /// Its sinks, if there are several, the worst first.
    pub sinks: Vec<ReportSink>,
    /// The flows to which it expands for several hosts, the worst first.
    pub each: Vec<ReportPart>,
}

/// A sink in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportSink {
    /// Its host.
    pub sink: String,
    /// Its figures by name.
    pub figures: BTreeMap<String, Estimate>,
    /// Marks of figures by name, as those of a flow.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, String>,
}

/// One of the flows to which a flow expands for several hosts.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportPart {
    /// Its name: `voice.phone.3`.
    pub flow: String,
    /// Its figures by name.
    pub figures: BTreeMap<String, Estimate>,
    /// Marks of figures by name, as those of a flow.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, String>,
}

/// A bundle in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportBundle {
    /// Its name.
    pub bundle: String,
    /// Its flows.
    pub flows: Vec<String>,
    /// The transport whose connections these are; null for the bundle as a whole.
    #[schema(required = true)]
    pub transport: Option<String>,
    /// The latency that is measured: `one-way`, `round-trip` or `nothing`; null for the bundle as a whole.
    #[schema(required = true)]
    pub measured: Option<String>,
    /// Number of members.
    pub members: u32,
    /// Its figures by name; `bundle_figures` of the report says what they are, with their units.
    pub figures: BTreeMap<String, Estimate>,
}

/// A link in a report.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportLink {
    /// Its name, with the direction.
    pub link: String,
    /// Share of the measured time in which it was busy.
    #[schema(required = true)]
    pub utilisation: Option<Estimate>,
    /// Packets offered to it.
    #[schema(required = true)]
    pub offered: Option<Estimate>,
    /// Packets that it has transmitted, or begun to, and does not lose; they may arrive after the end of the run.
    #[schema(required = true)]
    pub delivered: Option<Estimate>,
    /// Mean time in its queue, in seconds.
    #[schema(required = true)]
    pub sojourn_mean: Option<Estimate>,
    /// The median time in its queue, in seconds.
    #[schema(required = true)]
    pub sojourn_p50: Option<Estimate>,
    /// The 99th percentile, in seconds.
    #[schema(required = true)]
    pub sojourn_p99: Option<Estimate>,
    /// The 99.9th percentile, in seconds.
    #[schema(required = true)]
    pub sojourn_p999: Option<Estimate>,
    /// The longest, in seconds.
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
    /// Packets marked "congestion experienced", by cause, for each repetition.
    pub marked: Vec<BTreeMap<String, u64>>,
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
    /// Its figures by name, in base units; null if there was nothing to measure.
    #[schema(schema_with = estimates_or_null)]
    pub figures: BTreeMap<String, Option<Estimate>>,
}

/// The macro knows no map of what may be null.
fn estimates_or_null() -> Object {
    let null = ObjectBuilder::new().schema_type(Type::Null);
    let estimate = OneOfBuilder::new().item(null).item(Ref::from_schema_name("Estimate")).build();
    let all = ObjectBuilder::new().additional_properties(Some(Schema::OneOf(estimate)));
    let description = "Its figures by name, in base units; null if there was nothing to measure.";
    all.description(Some(description)).build()
}

/// The definition of a figure.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FigureDefinition {
    /// The name that reports show.
    pub name: String,
    /// Its base unit: `s`, `bit/s`, `B`, `count`, or `1` for shares and other numbers.
    pub unit: String,
    /// Its quantity.
    pub quantity: FigureQuantity,
    /// The definition; empty if the name is definition enough.
    pub definition: String,
    /// Standard or paper; empty if the definition says it all.
    pub source: String,
    /// Its rank among the figures that the page shows first, from 1; missing for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u8>,
}

/// The quantity of a figure, in its base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FigureQuantity {
    /// Seconds.
    Time,
    /// Bits per second.
    Rate,
    /// From 0 to 1.
    Share,
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// A number without a unit.
    Number,
}

/// Two runs, compared.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ComparedRuns {
    /// The run that was named first.
    pub run: RunSummary,
    /// The run that it is compared with.
    pub with: RunSummary,
    /// True if both ran the same experiment file with the same settings and seed.
    pub same_experiment: bool,
    /// A row for each point, flow and figure that both have.
    pub rows: Vec<ComparedFigure>,
    /// Points that only one of them has, by name.
    pub unmatched: Vec<String>,
}

/// One figure in both runs, in its base unit.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ComparedFigure {
    /// The point: `bulk.count = 2`; empty where nothing is swept.
    pub point: String,
    /// The flow.
    pub flow: String,
    /// The figure's name.
    pub figure: String,
    /// Its base unit: `s`, `bit/s`, `B`, `count`, or `1` for shares and other numbers.
    pub unit: String,
    /// The figure in the first run.
    pub run: Estimate,
    /// The figure in the second run.
    pub with: Estimate,
    /// The mean of the second minus that of the first.
    pub difference: f64,
    /// The difference as a share of the first; null if that is zero.
    #[schema(required = true)]
    pub relative: Option<f64>,
    /// Half the width of the difference's 95 % confidence interval (Welch's t-interval); null unless both were repeated.
    #[schema(required = true)]
    pub ci95: Option<f64>,
}
