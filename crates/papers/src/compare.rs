//! How far simulated figures are from published ones.

use crate::results::{Cell, Doubt, Results};
use crate::study::Kind;

/// Relative errors of several cells, as shares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors {
    /// How many cells were compared: published, not doubtful, simulated.
    pub compared: usize,
    /// How many published cells were left out because they are doubtful.
    pub doubtful: usize,
    /// How many could not be compared: nothing was simulated, or zero was published and something else simulated.
    pub incomparable: usize,
    /// The median size of the errors; `None` if nothing was compared.
    pub median: Option<f64>,
    /// The largest error with its sign, and the values of its row's key columns.
    pub worst: Option<(f64, String)>,
}

/// The cells of one class of a study: published, and no repeats of others.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassErrors {
    /// The class.
    pub class: Kind,
    /// Its cells.
    pub cells: usize,
    /// Those of them that were published as zero and so have no relative error.
    pub zeros: usize,
    /// Those that are zero here too, with as many digits as are printed.
    pub zeros_alike: usize,
    /// Errors of the others.
    pub errors: Errors,
    /// The same of the predictions from before the published values were seen; of blind cells.
    pub then: Errors,
}

/// The errors of every class that has published cells in these results.
pub fn classes(results: &Results) -> Vec<ClassErrors> {
    let cells: Vec<_> = results
        .tables
        .iter()
        .flat_map(|table| {
            let of_row = |row: &'_ crate::results::Row| {
                let name = format!("{}: {}", table.table.name, row.keys.values());
                let cells = table.table.metrics.iter().zip(&row.cells);
                let counted = cells.filter(|(_, cell)| cell.published.is_some() && !cell.repeats);
                counted
                    .map(|(metric, cell)| (name.clone(), metric.decimals, cell.clone()))
                    .collect::<Vec<_>>()
            };
            table.rows.iter().flat_map(of_row)
        })
        .collect();
    let of_class = |class: Kind| {
        let mine: Vec<_> = cells.iter().filter(|(_, _, cell)| cell.class == class).collect();
        let is_zero = |cell: &Cell| cell.published.as_ref().is_some_and(|published| published.number == 0.0);
        let zeros: Vec<_> = mine.iter().filter(|(_, _, cell)| is_zero(cell)).collect();
        let is_alike =
            |simulated: f64, decimals: usize| format!("{:.decimals$}", simulated.abs()).parse() == Ok(0.0);
        let alike = zeros.iter().filter(|(_, decimals, cell)| {
            cell.simulated.is_some_and(|simulated| is_alike(simulated, *decimals))
        });
        let others = || mine.iter().filter(|(_, _, cell)| !is_zero(cell));
        let errors = Errors::of(others().map(|(row, _, cell)| (row.clone(), cell)));
        let before: Vec<(String, Cell)> = others()
            .filter(|_| class == Kind::Blind)
            .map(|(row, _, cell)| (row.clone(), cell.then()))
            .collect();
        ClassErrors {
            class,
            cells: mine.len(),
            zeros: zeros.len(),
            zeros_alike: alike.count(),
            errors,
            then: Errors::of(before.iter().map(|(row, cell)| (row.clone(), cell))),
        }
    };
    Kind::ALL.map(of_class).into_iter().filter(|of_class| of_class.cells > 0).collect()
}

/// How far `simulated` is from `published`, as a share of it; `None` if that is zero and the other is not.
pub fn relative_error(published: f64, simulated: f64) -> Option<f64> {
    if published == simulated {
        return Some(0.0);
    }
    let error = (simulated - published) / published.abs();
    error.is_finite().then_some(error)
}

impl Cell {
    /// The relative error, if there is one; also of doubtful cells.
    pub fn error(&self) -> Option<f64> {
        relative_error(self.published.as_ref()?.number, self.simulated?)
    }

    /// The cell with the prediction from before its published value was seen.
    pub(crate) fn then(&self) -> Cell {
        Cell { simulated: self.blind, ..self.clone() }
    }

    /// True if a goal may count it.
    pub(crate) fn is_prediction(&self) -> bool {
        self.class.is_prediction() && !self.repeats
    }
}

impl Errors {
    /// Over cells, each with the name of its row.
    pub(crate) fn of<'c>(cells: impl Iterator<Item = (String, &'c Cell)>) -> Errors {
        let mut errors = Errors::default();
        let mut sizes = Vec::new();
        for (row, cell) in cells.filter(|(_, cell)| cell.published.is_some()) {
            match cell.error() {
                _ if cell.doubt == Doubt::Doubtful => errors.doubtful += 1,
                None => errors.incomparable += 1,
                Some(error) => {
                    sizes.push(error.abs());
                    if errors.worst.as_ref().is_none_or(|(worst, _)| error.abs() > worst.abs()) {
                        errors.worst = Some((error, row));
                    }
                }
            }
        }
        errors.compared = sizes.len();
        errors.median = median(sizes);
        errors
    }
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Printed;

    fn cell(published: Option<f64>, simulated: Option<f64>, doubt: Doubt) -> Cell {
        let published = published.map(|number| Printed { text: number.to_string(), number });
        Cell { published, doubt, simulated, ..Cell::default() }
    }

    #[test]
    fn errors_are_shares_of_what_was_published() {
        assert_eq!(relative_error(200.0, 210.0), Some(0.05));
        assert_eq!(relative_error(200.0, 150.0), Some(-0.25));
        assert_eq!(relative_error(-2.0, -1.0), Some(0.5));
        assert_eq!(relative_error(0.0, 0.0), Some(0.0));
        assert_eq!(relative_error(0.0, 1.0), None);
    }

    #[test]
    fn median_and_worst_leave_out_what_cannot_be_compared() {
        let cells = [
            ("a", cell(Some(100.0), Some(101.0), Doubt::None)),
            ("b", cell(Some(100.0), Some(94.0), Doubt::Suspect)),
            ("doubtful", cell(Some(100.0), Some(500.0), Doubt::Doubtful)),
            ("not published", cell(None, Some(3.0), Doubt::None)),
            ("not simulated", cell(Some(100.0), None, Doubt::None)),
            ("zero", cell(Some(0.0), Some(1.0), Doubt::None)),
            ("c", cell(Some(100.0), Some(103.0), Doubt::None)),
            ("d", cell(Some(100.0), Some(100.0), Doubt::None)),
        ];
        let errors = Errors::of(cells.iter().map(|(row, cell)| ((*row).to_owned(), cell)));
        assert_eq!((errors.compared, errors.doubtful, errors.incomparable), (4, 1, 2));
        assert!((errors.median.unwrap() - 0.02).abs() < 1e-12, "{errors:?}");
        assert_eq!(errors.worst, Some((-0.06, "b".to_owned())));
    }

    #[test]
    fn the_median_of_an_odd_number_is_one_of_them() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![]), None);
    }
}
