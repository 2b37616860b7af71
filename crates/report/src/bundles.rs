//! Figures of bundles, and of the connections of each transport in them, over the repetitions of a point.

use trunkline_metrics::figures::{FigureKind, of_bundles};
use trunkline_metrics::{BundleSummary, ClassSummary, Estimate, Measured};
use trunkline_store::StoredPoint;

use crate::units::Scale;
use crate::view::{Side, View, counted, over_repetitions};

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
    /// A figure over repetitions, if the row has it.
    pub(crate) fn estimate(&self, figure: &FigureKind) -> Option<Estimate> {
        let place = of_bundles().position(|known| known == figure)?;
        *self.estimates.get(place)?
    }

    /// Every figure that the row has.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (&'static FigureKind, Estimate)> {
        of_bundles().zip(&self.estimates).filter_map(|(figure, estimate)| Some((figure, (*estimate)?)))
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

/// The bundles of a point in the order of the file, each before its connections by transport.
pub(crate) fn rows<'a>(side: &Side<'a>, point: u32) -> Vec<Row<'a>> {
    let repetitions: Vec<&'a [BundleSummary]> =
        side.point(point).into_iter().flat_map(counted).map(|summary| summary.bundles.as_slice()).collect();
    let mut rows = Vec::new();
    // The same file gives the same bundles with the same transports in every repetition.
    for (place, first) in repetitions.first().copied().unwrap_or_default().iter().enumerate() {
        let all = || repetitions.iter().filter_map(|bundles| bundles.get(place));
        let whole =
            |figure: &FigureKind| over_repetitions(all().map(|bundle| figure.value_of_bundle(bundle)));
        let (bundle, flows, members) = (first.bundle.as_str(), first.flows.as_slice(), first.members);
        rows.push(Row { bundle, flows, class: None, members, estimates: of_bundles().map(whole).collect() });
        for (number, class) in first.classes.iter().enumerate() {
            let all = || all().filter_map(|bundle| bundle.classes.get(number));
            let figure =
                |figure: &FigureKind| over_repetitions(all().map(|class| figure.value_of_connections(class)));
            let estimates = of_bundles().map(figure).collect();
            rows.push(Row { bundle, flows, class: Some(class), members: class.members, estimates });
        }
    }
    rows
}

/// The same of all points.
pub(crate) fn all_rows<'a>(view: &View<'a>, side: &Side<'a>) -> Vec<(&'a StoredPoint, Row<'a>)> {
    let of_point = |point: &'a StoredPoint| rows(side, point.index).into_iter().map(move |row| (point, row));
    view.points().iter().copied().flat_map(of_point).collect()
}

/// How these figures are written when they are shown together.
pub(crate) fn scale<'r, 'a: 'r>(
    rows: impl Iterator<Item = &'r Row<'a>> + Clone,
    figures: &[&FigureKind],
) -> Scale {
    let of_row = |row: &'r Row<'a>| {
        figures.iter().filter_map(|figure| Some(row.estimate(figure)?.mean)).collect::<Vec<_>>()
    };
    Scale::of(figures[0].quantity, rows.flat_map(of_row))
}

#[cfg(test)]
mod tests {
    use trunkline_metrics::figures::{bundle, flow};

    use super::*;
    use crate::{Screen, csv, fixtures, html, json, terminal};

    #[test]
    fn a_bundle_stands_before_its_connections_by_transport() {
        let run = fixtures::bundles();
        let side = &View::new(&run, None).sides[0];
        let rows = rows(side, 3);
        let names: Vec<String> = rows.iter().map(Row::carried_by).collect();
        assert_eq!(names, ["", "udp × 3", "tcp × 4"]);
        let voice = side.estimate(3, "voice", flow("throughput_user")).unwrap();
        let connection = rows[1].estimate(bundle("connection_throughput")).unwrap();
        assert_eq!(connection.repetitions, 3);
        assert!((connection.mean * 3.0 - voice.mean).abs() < 3.0, "{}", connection.mean);
        assert!(connection.confidence95.is_some_and(|half| half > 0.0));
        assert_eq!(
            (rows[0].estimate(bundle("connection_loss")), rows[1].estimate(bundle("throughput_user"))),
            (None, None)
        );
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
