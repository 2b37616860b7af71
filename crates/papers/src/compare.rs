//! How far simulated figures are from published ones.

use crate::results::{Cell, Doubt, Results};
use crate::study::Class;

/// Relative errors of several cells, as shares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors {
    /// Cells that were compared: published, not doubtful and not as zero, simulated.
    pub compared: usize,
    /// Published cells that were left out because they are doubtful.
    pub doubtful: usize,
    /// Cells that could not be compared because nothing was simulated.
    pub incomparable: usize,
    /// Cells that were published as zero: they have no relative error.
    pub zeros: usize,
    /// Of these, cells that are zero here too, with as many digits as are printed.
    pub zeros_alike: usize,
    /// The median size of the errors; `None` if nothing was compared.
    pub median: Option<f64>,
    /// The largest error with its sign, and the values of its row's key columns.
    pub worst: Option<(f64, String)>,
}

/// The cells of one class of a study: published, and no repeats of others.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassErrors {
    /// The class.
    pub class: Class,
    /// Its cells.
    pub cells: usize,
    /// Their errors.
    pub errors: Errors,
    /// The same of the predictions from before the published values were seen; of blind cells.
    pub when_blind: Errors,
}

/// The errors of every class that has published cells in these results.
pub fn classes(results: &Results) -> Vec<ClassErrors> {
    let of_class = |class: Class| {
        let cells = || {
            let rows = results.tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
            rows.flat_map(move |(table, row)| {
                let mine = row.cells.iter().filter(move |cell| cell.class == Some(class) && !cell.repeats);
                let published = mine.filter(|cell| cell.published.is_some());
                published.map(move |cell| (format!("{}: {}", table.table.name, row.keys.values()), cell))
            })
        };
        let when_blind: Vec<Cell> = cells().map(|(_, cell)| cell.when_blind()).collect();
        ClassErrors {
            class,
            cells: when_blind.len(),
            errors: Errors::of(cells()),
            when_blind: Errors::of(when_blind.iter().map(|cell| (String::new(), cell))),
        }
    };
    Class::ALL.map(of_class).into_iter().filter(|of_class| of_class.cells > 0).collect()
}

/// Error of `simulated` as a share of `published`; `None` if that is zero.
pub fn relative_error(published: f64, simulated: f64) -> Option<f64> {
    let error = (simulated - published) / published.abs();
    error.is_finite().then_some(error)
}

impl Cell {
    /// The relative error, if there is one; also of doubtful cells.
    pub fn error(&self) -> Option<f64> {
        relative_error(self.published.as_ref()?.number, self.simulated?)
    }

    /// The cell with the prediction from before its published value was seen.
    pub(crate) fn when_blind(&self) -> Cell {
        Cell { simulated: self.blind, ..self.clone() }
    }

    /// True if a goal may count it.
    pub(crate) fn is_prediction(&self) -> bool {
        self.class.is_some_and(Class::is_prediction) && !self.repeats
    }

    fn is_published_as_zero(&self) -> bool {
        self.published.as_ref().is_some_and(|published| published.number == 0.0)
    }

    /// True if ours is zero with as many digits as are printed.
    fn is_zero(&self) -> bool {
        let decimals = self.decimals;
        self.simulated.is_some_and(|ours| format!("{:.decimals$}", ours.abs()).parse() == Ok(0.0))
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
                _ if cell.is_published_as_zero() => {
                    errors.zeros += 1;
                    errors.zeros_alike += usize::from(cell.is_zero());
                }
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
        assert_eq!(relative_error(0.0, 0.0), None);
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
            ("zero, not simulated", cell(Some(0.0), None, Doubt::None)),
            ("zero too", cell(Some(0.0), Some(0.4), Doubt::None)),
            ("doubtful zero", cell(Some(0.0), Some(0.0), Doubt::Doubtful)),
            ("c", cell(Some(100.0), Some(103.0), Doubt::None)),
            ("d", cell(Some(100.0), Some(100.0), Doubt::None)),
        ];
        let errors = Errors::of(cells.iter().map(|(row, cell)| ((*row).to_owned(), cell)));
        assert_eq!((errors.compared, errors.doubtful, errors.incomparable), (4, 2, 1));
        assert_eq!((errors.zeros, errors.zeros_alike), (3, 1));
        assert!((errors.median.unwrap() - 0.02).abs() < 1e-12, "{errors:?}");
        assert_eq!(errors.worst, Some((-0.06, "b".to_owned())));
    }

    #[test]
    fn the_median_of_an_odd_number_is_one_of_them() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![]), None);
    }
}
