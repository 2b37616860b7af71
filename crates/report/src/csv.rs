//! Tidy tables for spreadsheets, R and pandas: one row per observation, base units, names as in the glossary.

use std::fs;
use std::path::{Path, PathBuf};

use ::csv::Writer;
use trunkline_core::{Bytes, Duration, Rate};
use trunkline_metrics::figures::{FigureKind, of_bundles, of_flows, of_links};
use trunkline_metrics::{ConnectionSample, Estimate, FlowSummary, Measured, RepetitionSummary};
use trunkline_store::{StoredPoint, StoredRun};

use crate::Error;
use crate::bundles::all_rows;
use crate::json::key;
use crate::units::Quantity;
use crate::verdict::{Outcome, Verdict};
use crate::view::{Subject, View, value_on};

/// Writes the run's tables into the directory, which is made if it is missing, and says which files those are. Figures have their
/// names in JSON; a column of one appends the base unit: `_s`, `_bit_per_s`, `_bytes`. All times are seconds, rates bits per second, shares from 0 to 1; what was not measured is empty. `outside_e_model` says for which
/// R and MOS the E-model's inputs are outside its range: then they are extrapolated.
///
/// | file | one row per |
/// | --- | --- |
/// | `repetitions.csv` | point, repetition and flow; a column per figure |
/// | `sinks.csv` | point, repetition, flow and one of its several sinks, or of the flows that it is made as; a column per figure |
/// | `sweep.csv` | point, flow and figure: mean, standard deviation and 95 % confidence interval |
/// | `sweep-sinks.csv` | the same of each of these, those that fare worst first |
/// | `bundles.csv` | point, repetition and bundle, or transport in it; a column per figure |
/// | `sweep-bundles.csv` | the same without repetition, and figure |
/// | `limits.csv` | limit and point |
/// | `links.csv` | point, repetition and direction of a link |
/// | `causes.csv` | the same and cause of a drop or mark |
/// | `media.csv` | point, repetition, medium or station of a medium, and figure |
/// | `counters.csv` | point, repetition, flow and counter of the transport |
/// | `loss-bursts.csv` | point, repetition, flow and length of a burst |
/// | `latency-over-time.csv` | message of the sample that the figure shows |
/// | `tcp-over-time.csv` | point, repetition, flow and sample of its first TCP connection |
/// | `latency-distribution.csv` | step of the distribution that the figure shows |
/// | `stalls.csv` | point, repetition and threshold |
///
/// # Errors
/// If the directory or a file cannot be written.
pub fn csv(run: &StoredRun, directory: &Path) -> Result<Vec<PathBuf>, Error> {
    fs::create_dir_all(directory).map_err(|source| Error::write(directory, source))?;
    let view = View::new(run, None);
    let mut files = Files { run, directory, written: Vec::new() };
    files.write("repetitions", &repetition_columns(), |table| repetitions(run, table))?;
    files.write("sinks", &sink_columns(), |table| sinks(run, table))?;
    files.write(
        "sweep",
        &["flow", "figure", "unit", "mean", "sd", "ci95", "repetitions", "outside_e_model"],
        |table| sweep(&view, table),
    )?;
    files.write(
        "sweep-sinks",
        &["flow", "sink", "figure", "unit", "mean", "sd", "ci95", "repetitions", "outside_e_model"],
        |table| sweep_sinks(&view, table),
    )?;
    let columns = bundle_columns();
    files.write("bundles", &columns.iter().map(String::as_str).collect::<Vec<_>>(), |table| {
        bundles(run, table)
    })?;
    files.write(
        "sweep-bundles",
        &["bundle", "transport", "figure", "unit", "mean", "sd", "ci95", "repetitions"],
        |table| sweep_bundles(&view, table),
    )?;
    files.write("limits", &["limit", "condition", "outcome", "uncertain", "mean", "ci95"], |table| {
        limits(&view, table)
    })?;
    let columns = link_columns();
    files
        .write("links", &columns.iter().map(String::as_str).collect::<Vec<_>>(), |table| links(run, table))?;
    files.write("causes", &["repetition", "link", "fate", "cause", "packets"], |table| causes(run, table))?;
    files.write("media", &["repetition", "medium", "station", "figure", "unit", "value"], |table| {
        media(run, table)
    })?;
    files.write("counters", &["repetition", "flow", "counter", "value"], |table| {
        per_flow(run, table, |flow| {
            flow.transport_counters.iter().map(|(k, v)| vec![k.clone(), v.to_string()]).collect()
        })
    })?;
    files.write("loss-bursts", &["repetition", "flow", "length", "bursts"], |table| {
        per_flow(run, table, |flow| {
            flow.loss_bursts.iter().map(|(k, v)| vec![k.to_string(), v.to_string()]).collect()
        })
    })?;
    files.write("latency-over-time", &["repetition", "flow", "sent_s", "latency_s"], |table| {
        per_flow(run, table, |flow| {
            let sample = flow.latency_over_time.iter();
            sample.map(|(sent, l)| vec![number(sent.as_secs_f64()), number(l.as_secs_f64())]).collect()
        })
    })?;
    files.write("tcp-over-time", &TCP_COLUMNS, |table| {
        per_flow(run, table, |flow| flow.connection.iter().map(tcp_row).collect())
    })?;
    files.write("latency-distribution", &["repetition", "flow", "latency_s", "share"], |table| {
        per_flow(run, table, |flow| {
            flow.latency_cdf.iter().map(|(l, share)| vec![number(l.as_secs_f64()), number(*share)]).collect()
        })
    })?;
    files.write("stalls", &["repetition", "probe", "watched_s", "longer_than_s", "gaps"], |table| {
        stalls(run, table)
    })?;
    Ok(files.written)
}

/// Rows without what all tables begin with.
type Table<'t> = dyn FnMut(&StoredPoint, Vec<String>) -> Result<(), ::csv::Error> + 't;
type Written = Result<(), ::csv::Error>;

struct Files<'a> {
    run: &'a StoredRun,
    directory: &'a Path,
    written: Vec<PathBuf>,
}

impl Files<'_> {
    /// One file; every row begins with the run, the backend, the point and its swept values.
    fn write(
        &mut self,
        name: &str,
        columns: &[&str],
        rows: impl FnOnce(&mut Table) -> Written,
    ) -> Result<(), Error> {
        let file = self.directory.join(format!("{name}.csv"));
        self.fill(&file, columns, rows).map_err(|error| Error::write(&file, std::io::Error::other(error)))?;
        self.written.push(file);
        Ok(())
    }

    fn fill(&self, file: &Path, columns: &[&str], rows: impl FnOnce(&mut Table) -> Written) -> Written {
        let run = self.run;
        let mut writer = Writer::from_path(file)?;
        let mut head = vec!["run".to_owned(), "backend".to_owned(), "point".to_owned()];
        for axis in &run.axes {
            head.push(axis.key.clone());
            if axis.numbers.is_some() && !axis.unit.is_empty() {
                head.push(format!("{} [{}]", axis.key, axis.unit));
            }
        }
        head.extend(columns.iter().map(|c| (*c).to_owned()));
        writer.write_record(&head)?;
        rows(&mut |point, rest| {
            let mut row =
                vec![run.info.id.to_string(), run.info.backend.name().to_owned(), point.index.to_string()];
            for (i, axis) in run.axes.iter().enumerate() {
                row.push(value_on(point, &run.axes, i).to_owned());
                if let Some(numbers) = axis.numbers.as_ref().filter(|_| !axis.unit.is_empty()) {
                    let value = point.choice.get(i).and_then(|c| numbers.get(*c));
                    row.push(value.map_or(String::new(), |n| number(*n)));
                }
            }
            row.extend(rest);
            writer.write_record(&row)
        })?;
        writer.flush()?;
        Ok(())
    }
}

const TCP_COLUMNS: [&str; 14] = [
    "repetition",
    "flow",
    "at_s",
    "congestion_window_bytes",
    "slow_start_threshold_bytes",
    "in_flight_bytes",
    "smoothed_round_trip_s",
    "pacing_rate_bit_per_s",
    "retransmissions",
    "fast",
    "rack",
    "tail_probe",
    "timeout",
    "spurious",
];

fn tcp_row(sample: &ConnectionSample) -> Vec<String> {
    let known = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let of = &sample.retransmissions;
    vec![
        number(sample.at.as_secs_f64()),
        sample.congestion_window.count().to_string(),
        known(sample.slow_start_threshold.map(Bytes::count)),
        sample.in_flight.count().to_string(),
        if_any(sample.smoothed_round_trip.map(Duration::as_secs_f64)),
        known(sample.pacing_rate.map(Rate::bits_per_second)),
        of.all.to_string(),
        known(of.fast),
        known(of.rack),
        known(of.tail_probe),
        known(of.timeout),
        known(of.spurious),
    ]
}

/// Shortest text that reads back as the same number.
fn number(value: f64) -> String {
    format!("{value}")
}

fn if_any(value: Option<f64>) -> String {
    value.map_or(String::new(), number)
}

fn summaries(run: &StoredRun) -> impl Iterator<Item = (&StoredPoint, u32, &RepetitionSummary)> {
    let all = run.points.iter().flat_map(|p| p.repetitions.iter().map(move |r| (p, r)));
    all.filter_map(|(p, r)| Some((p, r.index, r.summary.as_ref()?)))
}

fn column(id: &str, quantity: Quantity) -> String {
    let suffix = match quantity {
        Quantity::Time => "_s",
        Quantity::Rate => "_bit_per_s",
        Quantity::Bytes => "_bytes",
        Quantity::Share | Quantity::Count | Quantity::Number => "",
    };
    // `stray` and `active` carry their unit like the rest.
    format!("{id}{suffix}")
}

fn repetition_columns() -> Vec<&'static str> {
    let fixed = [
        "repetition",
        "partial",
        "flow",
        "transport",
        "members",
        "channels",
        "measured",
        "percentiles",
        "codec",
        "outside_e_model",
    ];
    fixed.into_iter().chain(names()).collect()
}

fn sink_columns() -> Vec<&'static str> {
    let of_sinks = of_flows().zip(names()).filter(|(metric, _)| metric.is_of_sinks());
    ["repetition", "flow", "sink"].into_iter().chain(of_sinks.map(|(_, name)| name)).collect()
}

/// The column of each metric. They live as long as the program: there is one list of metrics.
fn names() -> impl Iterator<Item = &'static str> {
    static NAMES: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
    NAMES.get_or_init(|| of_flows().map(|m| column(m.id, m.quantity)).collect()).iter().map(String::as_str)
}

fn repetitions(run: &StoredRun, table: &mut Table) -> Written {
    for (point, repetition, summary) in summaries(run) {
        for flow in &summary.flows {
            let mut row = vec![
                repetition.to_string(),
                summary.partial.to_string(),
                flow.flow.clone(),
                flow.transport.clone(),
                flow.members.to_string(),
                flow.channels.to_string(),
                measured(flow).to_owned(),
                percentiles(flow).to_owned(),
                flow.quality.as_ref().map_or("", |quality| &quality.codec).to_owned(),
                flow.quality.as_ref().map_or(String::new(), |quality| quality.outside_model().join("; ")),
            ];
            row.extend(of_flows().map(|metric| if_any(metric.value(flow))));
            table(point, row)?;
        }
    }
    Ok(())
}

fn sinks(run: &StoredRun, table: &mut Table) -> Written {
    per_flow(run, table, |flow| {
        let row = |name: &String| {
            let of_sinks = of_flows().filter(|metric| metric.is_of_sinks());
            let figures = of_sinks.map(|metric| if_any(metric.value_at(flow, name)));
            std::iter::once(name.clone()).chain(figures).collect()
        };
        let names = flow.sinks.iter().map(|sink| &sink.sink);
        names.chain(flow.each.iter().map(|single| &single.flow)).map(row).collect()
    })
}

/// Origin of the row's percentiles.
fn percentiles(flow: &FlowSummary) -> &'static str {
    match (flow.latency, of_flows().any(|figure| figure.is_from_histogram(flow, None))) {
        (None, _) => "",
        (_, true) => "histogram",
        (_, false) => "exact",
    }
}

fn measured(flow: &FlowSummary) -> &'static str {
    match flow.measured {
        Measured::OneWay => "one-way",
        Measured::RoundTrip => "round-trip",
        Measured::Nothing => "nothing",
    }
}

fn sweep(view: &View, table: &mut Table) -> Written {
    for point in view.points() {
        for flow in &view.flows {
            estimates(view, point, Subject::flow(flow), table)?;
        }
    }
    Ok(())
}

fn sweep_sinks(view: &View, table: &mut Table) -> Written {
    for point in view.points() {
        for flow in &view.flows {
            for sink in view.sides[0].sinks(point.index, flow) {
                estimates(view, point, sink, table)?;
            }
        }
    }
    Ok(())
}

/// A row per figure of a flow, or of one of its sinks.
fn estimates(view: &View, point: &StoredPoint, subject: Subject, table: &mut Table) -> Written {
    for metric in of_flows() {
        let Some(estimate) = view.sides[0].estimate_of(point.index, subject, metric) else { continue };
        let mut row = vec![subject.flow.to_owned()];
        row.extend(subject.sink.map(str::to_owned));
        row.extend(over_repetitions(metric.id, metric.quantity, &estimate));
        row.push(view.sides[0].is_outside_model(point.index, subject.flow, metric).to_string());
        table(point, row)?;
    }
    Ok(())
}

/// A figure with its unit, mean, standard deviation, confidence interval and number of repetitions.
fn over_repetitions(id: &str, quantity: Quantity, estimate: &Estimate) -> [String; 6] {
    [
        id.to_owned(),
        quantity.base_unit().to_owned(),
        number(estimate.mean),
        if_any(estimate.standard_deviation),
        if_any(estimate.confidence95),
        estimate.repetitions.to_string(),
    ]
}

fn bundle_columns() -> Vec<String> {
    let fixed = ["repetition", "bundle", "transport", "members"].map(str::to_owned);
    fixed.into_iter().chain(of_bundles().map(|figure| column(figure.id, figure.quantity))).collect()
}

fn bundles(run: &StoredRun, table: &mut Table) -> Written {
    for (point, repetition, summary) in summaries(run) {
        for bundle in &summary.bundles {
            let mut row = |transport: &str, members: u32, value: &dyn Fn(&FigureKind) -> Option<f64>| {
                let fixed = [&repetition.to_string(), &bundle.bundle, transport, &members.to_string()];
                let figures = of_bundles().map(|figure| if_any(value(figure)));
                table(point, fixed.into_iter().map(str::to_owned).chain(figures).collect())
            };
            row("", bundle.members, &|figure| figure.value_of_bundle(bundle))?;
            for class in &bundle.classes {
                row(&class.transport, class.members, &|figure| figure.value_of_connections(class))?;
            }
        }
    }
    Ok(())
}

fn sweep_bundles(view: &View, table: &mut Table) -> Written {
    for (point, bundle) in all_rows(view, &view.sides[0]) {
        for (figure, estimate) in bundle.figures() {
            let transport = bundle.class.map_or("", |class| &class.transport);
            let mut row = vec![bundle.bundle.to_owned(), transport.to_owned()];
            row.extend(over_repetitions(figure.id, figure.quantity, &estimate));
            table(point, row)?;
        }
    }
    Ok(())
}

fn limits(view: &View, table: &mut Table) -> Written {
    for limit in view.limits() {
        let verdict = Verdict::of(limit, view, &view.sides[0]);
        for (point, judged) in view.points().iter().zip(&verdict.points) {
            let row = vec![
                limit.key.clone(),
                limit.condition.clone(),
                judged.outcome.word().to_owned(),
                (judged.uncertain && judged.outcome != Outcome::NotMeasured).to_string(),
                if_any(judged.estimate.map(|e| e.mean)),
                if_any(judged.estimate.and_then(|e| e.confidence95)),
            ];
            table(point, row)?;
        }
    }
    Ok(())
}

fn link_columns() -> Vec<String> {
    let figures = of_links().map(|figure| column(figure.id, figure.quantity));
    ["repetition", "link"].map(str::to_owned).into_iter().chain(figures).collect()
}

fn links(run: &StoredRun, table: &mut Table) -> Written {
    for (point, repetition, summary) in summaries(run) {
        for link in &summary.links {
            let figures = of_links().map(|figure| if_any(figure.value_of_link(link)));
            table(point, [repetition.to_string(), link.link.clone()].into_iter().chain(figures).collect())?;
        }
    }
    Ok(())
}

fn causes(run: &StoredRun, table: &mut Table) -> Written {
    for (point, repetition, summary) in summaries(run) {
        for link in &summary.links {
            for (fate, causes) in [("dropped", &link.dropped), ("marked", &link.marked)] {
                for (cause, packets) in causes {
                    let row = vec![
                        repetition.to_string(),
                        link.link.clone(),
                        fate.to_owned(),
                        cause.clone(),
                        packets.to_string(),
                    ];
                    table(point, row)?;
                }
            }
        }
    }
    Ok(())
}

fn media(run: &StoredRun, table: &mut Table) -> Written {
    for (point, repetition, summary) in summaries(run) {
        for medium in &summary.media {
            for (figure, amount) in &medium.figures {
                let row = vec![
                    repetition.to_string(),
                    medium.medium.clone(),
                    medium.station.clone().unwrap_or_default(),
                    key(figure),
                    Quantity::of_medium(figure, *amount).base_unit().to_owned(),
                    if_any(amount.map(|amount| Quantity::of(amount).1)),
                ];
                table(point, row)?;
            }
        }
    }
    Ok(())
}

fn per_flow(run: &StoredRun, table: &mut Table, rows: impl Fn(&FlowSummary) -> Vec<Vec<String>>) -> Written {
    for (point, repetition, summary) in summaries(run) {
        for flow in &summary.flows {
            for rest in rows(flow) {
                let mut row = vec![repetition.to_string(), flow.flow.clone()];
                row.extend(rest);
                table(point, row)?;
            }
        }
    }
    Ok(())
}

fn stalls(run: &StoredRun, table: &mut Table) -> Written {
    for (point, repetition, summary) in summaries(run) {
        let Some(stalls) = &summary.stalls else { continue };
        for (threshold, gaps) in &stalls.gaps {
            let row = vec![
                repetition.to_string(),
                stalls.probe.clone(),
                number(stalls.watched.as_secs_f64()),
                number(threshold.as_secs_f64()),
                gaps.to_string(),
            ];
            table(point, row)?;
        }
    }
    Ok(())
}
