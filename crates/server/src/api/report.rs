//! The figures of a run, as `trunkline run --json` prints them.

pub use trunkline_report::output::{
    Estimate, FigureDefinition, FigureQuantity, LimitDraws, LimitOutcome, LimitPoint, Report, ReportBundle,
    ReportFlow, ReportGap, ReportHeard, ReportLimit, ReportLink, ReportMedium, ReportPart, ReportPoint,
    ReportRun, ReportSide, ReportSink, ReportStalls, RunLimit,
};
