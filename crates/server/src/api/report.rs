//! The figures of a run, as `trunkline run --json` prints them.

pub use trunkline_report::output::{
    Estimate, FigureDefinition, FigureQuantity, LimitDraws, LimitOutcome, LimitPoint, Report, ReportBundle,
    ReportFlow, ReportHeard, ReportLimit, ReportLink, ReportMedium, ReportPart, ReportPoint, ReportRun,
    ReportSide, ReportSink, RunLimit,
};
