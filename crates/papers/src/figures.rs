//! The figures of a study as charts: simulated as lines, published as hollow markers of the same colour and shape.

use trunkline_report::chart::{Axis, Chart, Datum, Entry, Frame, Kind, Look, Panel, Scale, Series, Theme};

use crate::results::{Doubt, Results, Row, Scattered, TableResults};
use crate::study::{self, Figure, Scatter};

/// A figure whose tables were run.
pub(crate) struct Drawn {
    /// Its name in files and links: `figure-04`.
    pub(crate) id: String,
    pub(crate) chart: Chart,
    /// What a reader should know beside it; may be empty.
    pub(crate) note: String,
}

/// Height of a plot on a page.
const HEIGHT: f64 = 260.0;

impl Drawn {
    /// The layout for a screen or a wide page.
    pub(crate) fn screen_frame(&self) -> Frame {
        Frame { width: 540.0, plot_height: HEIGHT, columns: 1, theme: Theme::Page, labels: true }
    }

    /// The layout for a phone.
    pub(crate) fn phone_frame(&self) -> Frame {
        Frame { width: 350.0, plot_height: 210.0, columns: 1, theme: Theme::Page, labels: false }
    }

    /// The layout of a file of its own.
    pub(crate) fn file_frame(&self) -> Frame {
        Frame { width: 680.0, plot_height: 320.0, columns: 1, theme: Theme::Print, labels: true }
    }
}

/// The figures of which at least one table was run.
pub(crate) fn figures(results: &Results) -> Vec<Drawn> {
    let figures = results.study.figures.iter().filter_map(|figure| drawn(figure, results));
    figures.chain(results.scatters.iter().filter_map(scatter)).collect()
}

/// Every message as a dot.
fn scatter(scattered: &Scattered) -> Option<Drawn> {
    let Scatter { name, title, halved, .. } = scattered.scatter;
    let latencies = || scattered.latencies.iter().map(|latency| latency * 1e3);
    let datum = |(place, y): (usize, f64)| Datum {
        x: (place + 1) as f64,
        y,
        half_width: None,
        label: format!("message {}: {y:.3} ms", place + 1),
    };
    let data: Vec<Datum> = latencies().enumerate().map(datum).collect();
    let look = Look { hue: Some(0), dashed: false, marked: true, lined: false };
    let (x_scale, y_label) = (
        Scale::linear(0.0, data.len() as f64, 5),
        if *halved { "half round trip, ms" } else { "latency, ms" },
    );
    let chart = Chart {
        title: title.clone(),
        description: format!("{y_label} of {} messages in the order of sending.", data.len()),
        x: Axis { label: "message".to_owned(), scale: x_scale, ticks: None },
        y: Axis {
            label: y_label.to_owned(),
            scale: Scale::linear(0.0, latencies().fold(0.0, f64::max), 5),
            ticks: None,
        },
        legend: Vec::new(),
        panels: vec![Panel { series: vec![Series { look, kind: Kind::Dots, data }], ..Panel::default() }],
    };
    let is_drawn = !scattered.latencies.is_empty();
    is_drawn.then(|| Drawn { id: name.clone(), chart, note: String::new() })
}

fn drawn(figure: &Figure, results: &Results) -> Option<Drawn> {
    let mut words: Vec<String> = Vec::new();
    let mut legend = Vec::new();
    let (mut simulated, mut published) = (Vec::new(), Vec::new());
    let mut without = Vec::new();
    for (hue, series) in figure.series.iter().enumerate() {
        let Some(table) = results.table(&series.table) else { continue };
        let points = points(figure, series, table, &mut words);
        legend.push(Entry { label: series.label.clone(), look: simulated_look(Some(hue)) });
        if points.published.is_empty() {
            without.push(series.label.as_str());
        }
        let (of_simulation, of_paper) = (simulated_look(Some(hue)), published_look(Some(hue)));
        simulated.push(Series { look: of_simulation, kind: Kind::Markers, data: points.simulated });
        published.push(Series { look: of_paper, kind: Kind::Points, data: points.published });
    }
    let any = |series: &[Series]| series.iter().any(|series| !series.data.is_empty());
    if !any(&simulated) {
        return None;
    }
    legend.push(Entry { label: "simulated".to_owned(), look: simulated_look(None) });
    if any(&published) {
        legend.push(Entry { label: "published".to_owned(), look: published_look(None) });
    }
    let note = match without.as_slice() {
        [] => String::new(),
        labels => format!("Nothing published to show for {}.", labels.join(", ")),
    };
    // Hollow markers on top: where both agree, the line is still seen to run through them.
    simulated.append(&mut published);
    Some(Drawn {
        id: format!("figure-{:02}", figure.number),
        chart: chart(figure, simulated, words, legend),
        note,
    })
}

/// Filled markers on a solid line.
fn simulated_look(hue: Option<usize>) -> Look {
    Look { hue, dashed: false, marked: true, lined: true }
}

/// Hollow markers.
fn published_look(hue: Option<usize>) -> Look {
    Look { hue, dashed: true, marked: true, lined: false }
}

fn chart(figure: &Figure, series: Vec<Series>, words: Vec<String>, legend: Vec<Entry>) -> Chart {
    let values = series.iter().flat_map(|series| &series.data).map(|datum| datum.y);
    let scale = match figure.factors {
        true => Scale::log(values),
        false => Scale::linear(0.0, values.fold(0.0, f64::max), 5),
    };
    Chart {
        title: format!("Figure {}: {}", figure.number, figure.title),
        description: format!(
            "{} against {}: simulated figures as lines, published ones as hollow markers.",
            figure.y_label, figure.x_label
        ),
        x: Axis { label: figure.x_label.clone(), scale: Scale::Words(words), ticks: None },
        y: Axis { label: figure.y_label.clone(), scale, ticks: None },
        legend,
        panels: vec![Panel { series, ..Panel::default() }],
    }
}

#[derive(Default)]
struct Points {
    simulated: Vec<Datum>,
    published: Vec<Datum>,
}

/// The data of one series.
fn points(figure: &Figure, series: &study::Series, table: &TableResults, words: &mut Vec<String>) -> Points {
    let mut points = Points::default();
    let Some(metric) = table.place(&figure.metric) else { return points };
    for row in table.rows.iter().filter(|row| row.keys.are(&series.only)) {
        let (Some(x), Some(cell)) = (place(&figure.x, row, words), row.cells.get(metric)) else { continue };
        let datum = |y: f64, what: &str| Datum {
            x,
            y,
            half_width: None,
            label: format!(
                "{}, {}, {what}: {y:.*}",
                series.label, row.keys, table.table.metrics[metric].decimals
            ),
        };
        // An axis of factors has no place for nothing.
        let is_shown = |y: f64| y > 0.0 || !figure.factors;
        points.simulated.extend(cell.simulated.filter(|y| is_shown(*y)).map(|y| datum(y, "simulated")));
        let published = cell.published.as_ref().filter(|_| cell.doubt != Doubt::Doubtful);
        let published = published.filter(|published| is_shown(published.number));
        points.published.extend(published.map(|published| datum(published.number, "published")));
    }
    points.simulated.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

/// The place of a row; one that is new lies behind those known.
fn place(columns: &[String], row: &Row, words: &mut Vec<String>) -> Option<f64> {
    let parts: Option<Vec<String>> =
        columns.iter().map(|column| Some(row.keys.get(column)?.to_string())).collect();
    let word = parts?.join(" × ");
    let place = words.iter().position(|known| *known == word).unwrap_or_else(|| {
        words.push(word);
        words.len() - 1
    });
    Some(place as f64)
}
