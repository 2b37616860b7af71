//! What the API says: every type that goes over it. The document of the API, and the page's own types, are made from these.
//!
//! Values of the experiment file are strings with units, as in the file. Figures are numbers in base units: seconds, bits
//! per second, bytes, shares from 0 to 1.

mod advice;
mod agents;
mod check;
mod compare;
mod drafts;
mod drawing;
mod error;
mod events;
mod jobs;
mod papers;
mod paths;
mod plan;
mod predict;
mod report;
mod rewind;
mod runs;
mod server;

pub use advice::{
    Advice, AdviceBlocks, AdviceFailed, AdviceResult, AdviceRow, AdviceStages, Judgement, NewProbe,
    Protection, Recommendation, Use,
};
pub use agents::{Agent, NewAgent};
pub use check::{BackendReasons, Checked, ExperimentSummary, Problem, Text};
pub use compare::{CompareEstimate, Comparison, ComparisonRow, Definition};
pub use drafts::{Draft, DraftInfo, DraftVersion, NewDraft};
pub use drawing::{Drawn, Edited, Edits, Example};
pub use error::{ApiError, ErrorBody, ErrorInfo, ErrorKind};
pub use events::{End, FlowSoFar, FlowThroughput, LimitSoFar, QueueLength, Records, RepetitionDone, Warning};
pub use jobs::{Job, JobKind, JobProgress, JobResult, JobStarted, JobState};
pub use papers::{
    NewStudy, Paper, PaperCell, PaperClass, PaperClassErrors, PaperColumn, PaperFigure, PaperGoal,
    PaperRealTime, PaperRow, PaperTable, PaperTableName, Study, StudyBackend, StudyResult,
};
pub use paths::Paths;
pub use plan::{
    NewPlan, PlanAnswer, PlanDraws, PlanDrawsKept, PlanEstimate, PlanFound, PlanGoal, PlanLimit,
    PlanLimitVerdict, PlanResult, PlanRising, PlanTrial, PlanUnfinished, PlanValue, PlanVerdict,
};
pub use predict::{NewPrediction, PredictedLatency, PredictedPoint, Prediction};
pub use report::{
    Estimate, FigureDefinition, FigureQuantity, LimitDraws, LimitOutcome, LimitPoint, Report, ReportBundle,
    ReportFlow, ReportGap, ReportHeard, ReportLimit, ReportLink, ReportMedium, ReportPart, ReportPoint,
    ReportRun, ReportSide, ReportSink, ReportStalls, RunLimit,
};
pub use rewind::{
    FlowInQueue, Remedies, Rewind, RewoundConnection, RewoundEvent, RewoundMessage, RewoundPart, RewoundQueue,
};
pub use runs::{
    Axis, Backend, Cdf, FigureName, FlowOverTime, FlowSound, Imported, Limit, Moment, NewRun, OverTime,
    Pieces, QueueOverTime, Run, RunAnswer, RunInfo, RunList, RunPoint, RunRepetition, RunStarted, RunSummary,
    Status, TraceName,
};
pub use server::{Login, ServerBackend, ServerInfo};

/// What the experiment file that a client sends is called in problems.
pub const MAIN_FILE: &str = "experiment.toml";
