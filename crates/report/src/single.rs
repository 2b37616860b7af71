//! Figures one by one, for those who show a run piece by piece.

use trunkline_metrics::FlowSummary;
use trunkline_metrics::figures::of_flows;
use trunkline_store::StoredRun;

use crate::chart::render;
use crate::figures::figures;
use crate::view::View;

/// The figures of a run's report, beside its counterpart: the name of each, which is its file's, and what it shows.
pub fn figure_names(run: &StoredRun, counterpart: Option<&StoredRun>) -> Vec<(String, String)> {
    let view = View::new(run, counterpart);
    figures(&view).into_iter().map(|figure| (figure.id, figure.chart.title)).collect()
}

/// One of them as an SVG file of its own, which [`chart::png`](crate::chart::png) makes a PNG file of; `None` if there is none of
/// that name.
pub fn figure_svg(run: &StoredRun, counterpart: Option<&StoredRun>, name: &str) -> Option<String> {
    let view = View::new(run, counterpart);
    let figure = figures(&view).into_iter().find(|figure| figure.id == name)?;
    Some(render(&figure.chart, figure.file_frame(), &figure.id))
}

/// Every figure of a flow in one repetition, by name and in base units, where there was something to measure.
pub fn flow_figures(flow: &FlowSummary) -> impl Iterator<Item = (&'static str, f64)> {
    of_flows().filter_map(|metric| Some((metric.id, metric.value(flow)?)))
}
