//! What only some kinds of media have to tell, over the repetitions of a point.

use trunkline_metrics::figures::{Definition, of_media};
use trunkline_metrics::{Estimate, MediumSummary};
use trunkline_store::StoredPoint;

use crate::units::{Quantity, Scale};
use crate::view::{Side, View, counted, over_repetitions};

/// A medium as a whole, or one of its stations.
pub(crate) struct Medium<'a> {
    pub(crate) name: &'a str,
    pub(crate) station: Option<&'a str>,
    pub(crate) figures: Vec<MediumFigure<'a>>,
}

/// One of its figures.
pub(crate) struct MediumFigure<'a> {
    /// As in the definitions: `token-rotation-mean`.
    pub(crate) name: &'a str,
    pub(crate) quantity: Quantity,
    pub(crate) estimate: Option<Estimate>,
}

impl MediumFigure<'_> {
    /// `token rotation mean`
    pub(crate) fn words(&self) -> String {
        self.name.replace('-', " ")
    }
}

impl Medium<'_> {
    /// Whether the figures of another one can stand in the same table.
    pub(crate) fn is_like(&self, other: &Medium) -> bool {
        let names = self.figures.iter().map(|figure| figure.name);
        self.station.is_some() == other.station.is_some()
            && names.eq(other.figures.iter().map(|figure| figure.name))
    }
}

/// The media of a point that have something to tell, each before its stations, in the order of the file.
pub(crate) fn media<'a>(side: &Side<'a>, point: u32) -> Vec<Medium<'a>> {
    let repetitions: Vec<&'a [MediumSummary]> =
        side.point(point).into_iter().flat_map(counted).map(|summary| summary.media.as_slice()).collect();
    let first = repetitions.first().copied().unwrap_or_default();
    let medium = |(place, summary): (usize, &'a MediumSummary)| {
        let figures = summary.figures.iter().enumerate().map(|(number, (name, amount))| {
            // The same file gives the same media with the same figures in every repetition.
            let values = repetitions
                .iter()
                .map(|media| Some(Quantity::of(media.get(place)?.figures.get(number)?.1?).1));
            let quantity = Quantity::of_medium(name, *amount);
            MediumFigure { name, quantity, estimate: over_repetitions(values) }
        });
        Medium { name: &summary.medium, station: summary.station.as_deref(), figures: figures.collect() }
    };
    first.iter().enumerate().map(medium).collect()
}

/// The media of all points, those together whose figures can stand in one table.
pub(crate) fn tables<'a>(view: &View<'a>, sides: &[Side<'a>]) -> Vec<Vec<(&'a StoredPoint, Medium<'a>)>> {
    let mut tables: Vec<Vec<(&StoredPoint, Medium)>> = Vec::new();
    for side in sides {
        for point in view.points() {
            for medium in media(side, point.index) {
                match tables.iter_mut().find(|rows| rows[0].1.is_like(&medium)) {
                    Some(rows) => rows.push((point, medium)),
                    None => tables.push(vec![(point, medium)]),
                }
            }
        }
    }
    tables
}

/// How each figure in such a table is written.
pub(crate) fn scales(rows: &[(&StoredPoint, Medium)]) -> Vec<Scale> {
    let means = |column: usize| {
        rows.iter().filter_map(move |(_, medium)| Some(medium.figures[column].estimate?.mean))
    };
    let figures = rows[0].1.figures.iter().enumerate();
    figures.map(|(column, figure)| Scale::of(figure.quantity, means(column))).collect()
}

/// The definition of a medium's figure; `None` of one that a run of another version has.
pub(crate) fn definition(figure: &str) -> Option<&'static Definition> {
    of_media().find(|known| known.id == figure).map(|known| known.definition)
}
