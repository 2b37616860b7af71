//! Figures of bundles, and of the connections of each transport in them, over the repetitions of a point.

use trunkline_core::{Duration, Rate};
use trunkline_metrics::{BundleSummary, ClassSummary, Estimate, Measured, Spread};
use trunkline_store::StoredPoint;

use crate::metric::{DEFINITIONS, Definition};
use crate::units::{Quantity, Scale};
use crate::view::{Side, View, counted, over_repetitions};

/// A figure of a bundle, of its connections by transport, or of both.
pub(crate) struct BundleFigure {
    /// What it is called in CSV and JSON: stable.
    pub(crate) id: &'static str,
    /// What it is called in text.
    pub(crate) name: &'static str,
    pub(crate) quantity: Quantity,
    definition: &'static str,
    of_bundle: fn(&BundleSummary) -> Option<f64>,
    of_class: fn(&ClassSummary) -> Option<f64>,
}

impl BundleFigure {
    pub(crate) fn definition(&self) -> &'static Definition {
        DEFINITIONS.iter().find(|d| d.id == self.definition).unwrap_or(&DEFINITIONS[0])
    }

    /// Of a bundle in one repetition.
    pub(crate) fn of_bundle(&self, bundle: &BundleSummary) -> Option<f64> {
        (self.of_bundle)(bundle).filter(|_| bundle.members > 0)
    }

    /// Of the connections of one transport in one repetition.
    pub(crate) fn of_class(&self, class: &ClassSummary) -> Option<f64> {
        (self.of_class)(class)
    }
}

macro_rules! figures {
    ($($id:literal, $name:literal, $quantity:ident, $definition:literal, $of_bundle:expr, $of_class:expr;)*) => {
        /// Every figure, in the order of tables.
        pub(crate) const FIGURES: &[BundleFigure] = &[$(BundleFigure {
            id: $id, name: $name, quantity: Quantity::$quantity, definition: $definition, of_bundle: $of_bundle,
            of_class: $of_class,
        }),*];
    };
}

figures! {
    "throughput_user", "user throughput, all flows", Rate, "bundle",
        |b| Some(b.user.bits_per_second() as f64), |_| None;
    "throughput_network", "network throughput, all flows", Rate, "bundle",
        |b| Some(b.network?.bits_per_second() as f64), |_| None;
    "active", "active time", Time, "bundle", |b| Some(b.active.as_secs_f64()), |_| None;
    "fairness", "fairness (Jain)", Number, "fairness", |b| b.fairness, |c| c.fairness;
    "connection_throughput", "user throughput of a connection, mean", Rate, "connection",
        |_| None, |c| throughput(c, |s| s.mean);
    "connection_throughput_min", "user throughput of a connection, smallest", Rate, "connection",
        |_| None, |c| throughput(c, |s| s.min);
    "connection_throughput_max", "user throughput of a connection, largest", Rate, "connection",
        |_| None, |c| throughput(c, |s| s.max);
    "connection_loss", "loss of a connection, mean", Share, "connection", |_| None, |c| Some(c.loss?.mean.value());
    "connection_loss_min", "loss of a connection, smallest", Share, "connection",
        |_| None, |c| Some(c.loss?.min.value());
    "connection_loss_max", "loss of a connection, largest", Share, "connection",
        |_| None, |c| Some(c.loss?.max.value());
    "connection_unfinished", "unfinished of a connection, mean", Share, "unfinished",
        |_| None, |c| Some(c.unfinished?.mean.value());
    "connection_unfinished_min", "unfinished of a connection, smallest", Share, "unfinished",
        |_| None, |c| Some(c.unfinished?.min.value());
    "connection_unfinished_max", "unfinished of a connection, largest", Share, "unfinished",
        |_| None, |c| Some(c.unfinished?.max.value());
    "connection_refused", "refused of a connection, mean", Share, "refused",
        |_| None, |c| Some(c.refused?.mean.value());
    "connection_refused_min", "refused of a connection, smallest", Share, "refused",
        |_| None, |c| Some(c.refused?.min.value());
    "connection_refused_max", "refused of a connection, largest", Share, "refused",
        |_| None, |c| Some(c.refused?.max.value());
    "connection_latency_mean", "latency mean of a connection, mean", Time, "connection",
        |_| None, |c| time(c.latency_mean, |s| s.mean);
    "connection_latency_mean_min", "latency mean of a connection, smallest", Time, "connection",
        |_| None, |c| time(c.latency_mean, |s| s.min);
    "connection_latency_mean_max", "latency mean of a connection, largest", Time, "connection",
        |_| None, |c| time(c.latency_mean, |s| s.max);
    "connection_latency_p999", "latency p99.9 of a connection, mean", Time, "connection",
        |_| None, |c| time(c.latency_p999, |s| s.mean);
    "connection_latency_p999_min", "latency p99.9 of a connection, smallest", Time, "connection",
        |_| None, |c| time(c.latency_p999, |s| s.min);
    "connection_latency_p999_max", "latency p99.9 of a connection, largest", Time, "connection",
        |_| None, |c| time(c.latency_p999, |s| s.max);
}

fn throughput(class: &ClassSummary, of: fn(Spread<Rate>) -> Rate) -> Option<f64> {
    Some(of(class.throughput?).bits_per_second() as f64)
}

fn time(spread: Option<Spread<Duration>>, of: fn(Spread<Duration>) -> Duration) -> Option<f64> {
    Some(of(spread?).as_secs_f64())
}

/// A bundle at a point of a side, or its connections of one transport.
pub(crate) struct Row<'a> {
    pub(crate) bundle: &'a str,
    /// The flows of the bundle.
    pub(crate) flows: &'a [String],
    /// `None` for the bundle as a whole.
    pub(crate) class: Option<&'a ClassSummary>,
    pub(crate) members: u32,
    estimates: Vec<Option<Estimate>>,
}

impl Row<'_> {
    /// The figure of that id over repetitions, if the row has it.
    pub(crate) fn estimate(&self, id: &str) -> Option<Estimate> {
        let place = FIGURES.iter().position(|figure| figure.id == id)?;
        *self.estimates.get(place)?
    }

    /// Every figure that the row has.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (&'static BundleFigure, Estimate)> {
        FIGURES.iter().zip(&self.estimates).filter_map(|(figure, estimate)| Some((figure, (*estimate)?)))
    }

    /// `tcp`, or `udp × 8`; empty for the bundle as a whole.
    pub(crate) fn carried_by(&self) -> String {
        match self.class {
            Some(class) if class.members == 1 => class.transport.clone(),
            Some(class) => format!("{} × {}", class.transport, class.members),
            None => String::new(),
        }
    }

    /// Whether its latencies are there and back.
    pub(crate) fn is_round_trip(&self) -> bool {
        self.class.is_some_and(|class| class.measured == Measured::RoundTrip)
    }
}

/// The figure with this id. Ids are written in this crate only, and tests look them all up.
pub(crate) fn figure(id: &str) -> &'static BundleFigure {
    FIGURES.iter().find(|figure| figure.id == id).unwrap_or(&FIGURES[0])
}

/// The bundles of a point in the order of the file, each before its connections by transport.
pub(crate) fn rows<'a>(side: &Side<'a>, point: u32) -> Vec<Row<'a>> {
    let repetitions: Vec<&'a [BundleSummary]> =
        side.point(point).into_iter().flat_map(counted).map(|summary| summary.bundles.as_slice()).collect();
    let mut rows = Vec::new();
    // The same file gives the same bundles with the same transports in every repetition.
    for (place, first) in repetitions.first().copied().unwrap_or_default().iter().enumerate() {
        let all = || repetitions.iter().filter_map(|bundles| bundles.get(place));
        let whole = |figure: &BundleFigure| over_repetitions(all().map(|bundle| figure.of_bundle(bundle)));
        let (bundle, flows, members) = (first.bundle.as_str(), first.flows.as_slice(), first.members);
        rows.push(Row {
            bundle,
            flows,
            class: None,
            members,
            estimates: FIGURES.iter().map(whole).collect(),
        });
        for (number, class) in first.classes.iter().enumerate() {
            let all = || all().filter_map(|bundle| bundle.classes.get(number));
            let figure = |figure: &BundleFigure| over_repetitions(all().map(|class| figure.of_class(class)));
            let estimates = FIGURES.iter().map(figure).collect();
            rows.push(Row { bundle, flows, class: Some(class), members: class.members, estimates });
        }
    }
    rows
}

/// The same of all points.
pub(crate) fn all_rows<'a>(view: &View<'a>, side: &Side<'a>) -> Vec<(&'a StoredPoint, Row<'a>)> {
    let of_point = |point: &'a StoredPoint| rows(side, point.index).into_iter().map(move |row| (point, row));
    view.points().iter().flat_map(of_point).collect()
}

/// How these figures are written when they are shown together.
pub(crate) fn scale<'r, 'a: 'r>(rows: impl Iterator<Item = &'r Row<'a>> + Clone, ids: &[&str]) -> Scale {
    let of_row =
        |row: &'r Row<'a>| ids.iter().filter_map(|id| Some(row.estimate(id)?.mean)).collect::<Vec<_>>();
    Scale::of(figure(ids[0]).quantity, rows.flat_map(of_row))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Screen, csv, fixtures, html, json, terminal};

    #[test]
    fn every_figure_has_a_definition_and_a_name_of_its_own() {
        let ids: BTreeSet<&str> = FIGURES.iter().map(|figure| figure.id).collect();
        assert_eq!(ids.len(), FIGURES.len());
        for figure in FIGURES {
            assert_eq!(figure.definition().id, figure.definition, "{}", figure.id);
        }
    }

    #[test]
    fn a_bundle_stands_before_its_connections_by_transport() {
        let run = fixtures::bundles();
        let side = &View::new(&run, None).sides[0];
        let rows = rows(side, 3);
        let names: Vec<String> = rows.iter().map(Row::carried_by).collect();
        assert_eq!(names, ["", "udp × 3", "tcp × 4"]);
        let voice = side.estimate(3, "voice", crate::metric::metric("throughput_user")).unwrap();
        let connection = rows[1].estimate("connection_throughput").unwrap();
        assert_eq!(connection.repetitions, 3);
        assert!((connection.mean * 3.0 - voice.mean).abs() < 3.0, "{}", connection.mean);
        assert!(connection.confidence95.is_some_and(|half| half > 0.0));
        assert_eq!((rows[0].estimate("connection_loss"), rows[1].estimate("throughput_user")), (None, None));
        // The sweep begins with no transfer.
        let none = &super::rows(side, 0)[2];
        assert_eq!((none.members, none.figures().count()), (0, 0));
    }

    #[test]
    fn bundles_are_shown_everywhere_and_only_if_there_are_any() {
        let (with, without) = (fixtures::bundles(), fixtures::sinks());
        assert!(!html(&without, None).contains("id=\"bundles\""));
        let text = terminal(&with, Screen::default());
        assert!(text.contains("atlantic") && text.contains("→ udp × 3 rtt"), "{text}");
        assert!(!terminal(&without, Screen::default()).contains("its connections"));

        let json = json(&with, None);
        let bundles = &json["points"][3]["runs"][0]["bundles"];
        assert_eq!(
            (&bundles[0]["transport"], &bundles[2]["transport"]),
            (&serde_json::Value::Null, &"tcp".into())
        );
        assert_eq!(bundles[1]["figures"]["connection_loss_max"]["mean"], 1.0);
        assert_eq!(json["bundle_figures"]["connection_loss_max"]["unit"], "1");

        let directory = tempfile::tempdir().unwrap();
        csv(&with, directory.path()).unwrap();
        let count = |file: &str| {
            ::csv::Reader::from_path(directory.path().join(file)).unwrap().into_records().count()
        };
        let figures: usize =
            (0..4).flat_map(|p| rows(&View::new(&with, None).sides[0], p)).map(|r| r.figures().count()).sum();
        assert_eq!((count("bundles.csv"), count("sweep-bundles.csv")), (4 * 3 * 3, figures));
    }
}
