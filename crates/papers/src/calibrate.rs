//! Finds constants again from the cells that they were taken from, and compares them with the files'.

use std::sync::atomic::Ordering;

use crate::goals::{Outcome, share, signed};
use crate::measure;
use crate::results::{Cell, Doubt, Row};
use crate::run::{How, Observer, PaperError, Prepared, prepare, tasks};
use crate::study::{Calibration, Rule, Study};

/// A constant that was found again.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalibrated {
    /// The constant, as the study's classes name it.
    pub constant: String,
    /// The cells that it is found from.
    pub cells: String,
    /// Its value in the files.
    pub value: f64,
    /// The value that the cells give; nothing if none near that of the files fits.
    pub found: Option<f64>,
    /// The unit of both, empty for a number.
    pub unit: String,
    /// The largest difference, as a share of the value.
    pub within: f64,
}

impl Recalibrated {
    /// The difference of what was found from the value, as a share of it.
    pub fn error(&self) -> Option<f64> {
        Some(self.found? / self.value - 1.0)
    }

    /// The comparison of both: met if they are near enough.
    pub fn outcome(&self) -> Outcome {
        match self.error() {
            Some(error) if error.abs() <= self.within => Outcome::Met,
            Some(_) => Outcome::Missed,
            None => Outcome::NotJudged,
        }
    }

    /// In a sentence.
    pub fn sentence(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let (value, within) = (self.value, share(self.within));
        match (self.found, self.error()) {
            (Some(found), Some(error)) => format!(
                "{value}{unit} in the files, {}{unit} from {} ({}, at most {within})",
                significant(found),
                self.cells,
                signed(error)
            ),
            _ => format!("{value}{unit} in the files, nothing near from {}", self.cells),
        }
    }
}

/// Four digits.
fn significant(value: f64) -> f64 {
    let scale = 10_f64.powi(3 - value.abs().max(f64::MIN_POSITIVE).log10().floor() as i32);
    (value * scale).round() / scale
}

/// Repeats the calibrations of a study whose method is written down, one after the other. `told` learns of each at once.
///
/// # Errors
/// If an experiment cannot be simulated, or a calibration is wrong, which is a defect of the study.
pub fn calibrate(
    study: &'static Study,
    how: How<'_>,
    observer: &dyn Observer,
    told: &mut dyn FnMut(&Recalibrated),
) -> Result<Vec<Recalibrated>, PaperError> {
    let mut all = Vec::new();
    for calibration in &study.calibrations {
        if how.stop.load(Ordering::Relaxed) {
            break;
        }
        let found = match calibration.rule {
            Rule::Formula => formulas(study, calibration)?,
            _ => vec![Search::new(study, calibration, how, observer)?.found()?],
        };
        // A search that was stopped says nothing of its constant.
        if how.stop.load(Ordering::Relaxed) && found.iter().any(|constant| constant.found.is_none()) {
            break;
        }
        found.iter().for_each(&mut *told);
        all.extend(found);
    }
    Ok(all)
}

/// A constant for every cell, each by a formula of the cell and the keys of its row; the experiment sweeps them.
fn formulas(
    study: &'static Study,
    calibration: &'static Calibration,
) -> Result<Vec<Recalibrated>, PaperError> {
    let wrong = |problem: String| PaperError::Study { study: &study.name, problem };
    let mut found = Vec::new();
    for table in &calibration.tables {
        let prepared = prepare(study, &[table])?;
        for (keys, cell, texts) in prepared.swept(&calibration.column, &calibration.only) {
            let formula =
                calibration.formula.as_ref().ok_or_else(|| wrong("a formula is missing".to_owned()))?;
            let value = |name: &String| if name == "cell" { Some(cell) } else { keys.number(name) };
            let written = texts.iter().find_map(|text| number_of(text, &calibration.value));
            let written = written.ok_or_else(|| wrong(format!("no point sweeps `{}`", calibration.value)))?;
            found.push(Recalibrated {
                constant: calibration.constant.clone(),
                cells: format!("{table} at {}", keys.values()),
                value: written,
                found: formula.value(&value),
                unit: String::new(),
                within: calibration.within,
            });
        }
    }
    Ok(found)
}

/// The number that a swept text gives a key: `{ kind = "bulk", messages = 1995 }`.
fn number_of(text: &str, key: &str) -> Option<f64> {
    let (_, behind) = text.split_once(&format!("{key} = "))?;
    let digits: String = behind.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().ok()
}

/// A search for the value with which the simulation fits the cells best, all other constants as they are.
struct Search<'h> {
    study: &'static Study,
    calibration: &'static Calibration,
    how: How<'h>,
    observer: &'h dyn Observer,
    value: f64,
    unit: String,
}

impl<'h> Search<'h> {
    fn new(
        study: &'static Study,
        calibration: &'static Calibration,
        how: How<'h>,
        observer: &'h dyn Observer,
    ) -> Result<Search<'h>, PaperError> {
        let (number, unit) = calibration.value.split_once(' ').unwrap_or((&calibration.value, ""));
        let value = number.parse().map_err(|_| PaperError::Study {
            study: &study.name,
            problem: format!("`{}` is not a number with a unit", calibration.value),
        })?;
        Ok(Search { study, calibration, how, observer, value, unit: unit.to_owned() })
    }

    fn found(&self) -> Result<Recalibrated, PaperError> {
        let found = match self.calibration.rule {
            Rule::Match => self.root()?,
            _ => self.lowest()?,
        };
        let only = self.calibration.only.iter().map(|(key, cell)| format!(", {key} {cell}"));
        let growth = if self.calibration.growth.is_some() { "growth of " } else { "" };
        Ok(Recalibrated {
            constant: self.calibration.constant.clone(),
            cells: format!(
                "{growth}{} {}{}",
                self.calibration.tables.join(", "),
                self.calibration.column,
                only.collect::<String>()
            ),
            value: self.value,
            found,
            unit: self.unit.clone(),
            within: self.calibration.within,
        })
    }

    /// The zero of the mean error between half and twice the value, by halving.
    fn root(&self) -> Result<Option<f64>, PaperError> {
        let (mut low, mut high) = (0.5, 2.0);
        let (Some(at_low), Some(at_high)) = (self.mean(low)?, self.mean(high)?) else { return Ok(None) };
        if at_low.signum() == at_high.signum() {
            return Ok(None);
        }
        while high - low > self.calibration.within / 10.0 {
            let middle = (low + high) / 2.0;
            let Some(at_middle) = self.mean(middle)? else { return Ok(None) };
            if at_middle.signum() == at_low.signum() { low = middle } else { high = middle }
        }
        Ok(Some((low + high) / 2.0 * self.value))
    }

    /// The value with the smallest largest error, or sum of squares, near that of the files, by golden sections.
    fn lowest(&self) -> Result<Option<f64>, PaperError> {
        const GOLDEN: f64 = 0.618_033_988_749_895;
        let height = |share: f64| -> Result<Option<f64>, PaperError> {
            let errors = self.errors(share)?;
            Ok(errors.map(|errors| match self.calibration.rule {
                Rule::LeastSquares => errors.iter().map(|error| error * error).sum(),
                _ => errors.iter().fold(0.0, |worst: f64, error| worst.max(error.abs())),
            }))
        };
        let (mut low, mut high) = (0.6, 1.4);
        let inner = |low: f64, high: f64| (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut left, mut right) = inner(low, high);
        let (mut at_left, mut at_right) = (height(left)?, height(right)?);
        while high - low > self.calibration.within / 5.0 {
            let (Some(a), Some(b)) = (at_left, at_right) else { return Ok(None) };
            if a <= b {
                (high, right, at_right) = (right, left, at_left);
                left = inner(low, high).0;
                at_left = height(left)?;
            } else {
                (low, left, at_left) = (left, right, at_right);
                right = inner(low, high).1;
                at_right = height(right)?;
            }
        }
        Ok(Some((low + high) / 2.0 * self.value))
    }

    fn mean(&self, share: f64) -> Result<Option<f64>, PaperError> {
        let errors = self.errors(share)?;
        Ok(errors.map(|errors| errors.iter().sum::<f64>() / errors.len() as f64))
    }

    /// The relative error of every cell with this share of the value; nothing if it was stopped.
    fn errors(&self, share: f64) -> Result<Option<Vec<f64>>, PaperError> {
        let wrong = |problem: String| PaperError::Study { study: &self.study.name, problem };
        let Calibration { tables, column, only, keys, template, .. } = self.calibration;
        let names: Vec<&str> = tables.iter().map(String::as_str).collect();
        let mut prepared: Prepared = prepare(self.study, &names)?;
        prepared.keep_rows(only);
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let text = format!("{:.6}{unit}", self.value * share);
        let text =
            template.as_ref().map_or_else(|| text.clone(), |template| template.replace("VALUE", &text));
        let keys: Vec<(String, String)> = keys.iter().map(|key| (key.clone(), text.clone())).collect();
        prepared.rewrite(&keys).map_err(wrong)?;
        let tasks = tasks(&prepared, self.how);
        let outcomes = measure::all(&tasks, &prepared, self.how, self.observer)?;
        if self.how.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let results = prepared.results(&tasks, &outcomes);
        let cells: Vec<(&Row, &Cell)> = results
            .tables
            .iter()
            .flat_map(|table| table.cells(core::slice::from_ref(column), only))
            .filter(|(_, cell)| cell.published.is_some() && cell.doubt != Doubt::Doubtful)
            .collect();
        let errors = match &self.calibration.growth {
            None => cells.iter().map(|(_, cell)| cell.error()).collect::<Option<Vec<f64>>>(),
            Some(key) => growth(&cells, key).map(|error| vec![error]),
        };
        let errors = errors.ok_or_else(|| wrong(format!("`{column}` has no errors")))?;
        if errors.is_empty() { Err(wrong("a calibration has no cells".to_owned())) } else { Ok(Some(errors)) }
    }
}

/// The error of the growth from the rows with the smallest value of a key to those with the largest.
fn growth(cells: &[(&Row, &Cell)], key: &str) -> Option<f64> {
    let values = cells.iter().filter_map(|(row, _)| row.keys.number(key));
    let (least, most) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
    let mean = |at: f64, figure: &dyn Fn(&Cell) -> Option<f64>| {
        let there = cells.iter().filter(|(row, _)| row.keys.number(key) == Some(at));
        let figures = there.map(|(_, cell)| figure(cell)).collect::<Option<Vec<f64>>>()?;
        (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
    };
    let grown = |figure: &dyn Fn(&Cell) -> Option<f64>| Some(mean(most, figure)? - mean(least, figure)?);
    let published = grown(&|cell| Some(cell.published.as_ref()?.number))?;
    Some(grown(&|cell| cell.simulated)? / published - 1.0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use trunkline_core::Duration;

    use super::*;

    #[test]
    fn numbers_of_swept_texts_are_read() {
        let text = r#"["8 KiB", { kind = "bulk", message = "4 KiB", messages = 1995 }]"#;
        assert_eq!(number_of(text, "messages"), Some(1995.0));
        assert_eq!(number_of(text, "bytes"), None);
        assert_eq!((significant(1995.3), significant(0.242_96)), (1995.0, 0.243));
    }

    /// 44.34 KB/s for three minutes are 1995 units of 4 KB.
    #[test]
    fn volumes_follow_from_published_rates() {
        let study = crate::find("lamont1998").unwrap();
        let found = calibrate(study, How::simulated(1), &(), &mut |_| ()).unwrap();
        assert_eq!(found.len(), 16);
        assert!(found.iter().all(|constant| constant.outcome() == Outcome::Met), "{found:#?}");
        assert!(
            found[0].sentence().starts_with("1995 in the files, 1995 from table05 at 1, 4, 8"),
            "{found:?}"
        );
    }

    /// Stops at the first report.
    struct Impatient(AtomicBool);

    impl Observer for Impatient {
        fn planned(&self, _: &str, _: usize, _: Duration) {
            self.0.store(true, Ordering::Relaxed);
        }
        fn advanced(&self, _: Duration) {}
        fn simulation_done(&self) {}
    }

    #[test]
    fn a_search_that_was_stopped_is_not_told() {
        let study = crate::find("schiavoni2013").unwrap();
        let impatient = Impatient(AtomicBool::new(false));
        let how = How { stop: &impatient.0, ..How::simulated(1) };
        let found = calibrate(study, how, &impatient, &mut |constant| panic!("{constant:?}")).unwrap();
        assert!(found.is_empty() && impatient.0.load(Ordering::Relaxed), "{found:?}");
    }

    /// 77 us of 540, there and back.
    #[test]
    fn errors_follow_the_constant() {
        let study = crate::find("schiavoni2013").unwrap();
        let calibration = study.calibrations.iter().find(|of| of.constant == "crossover-100: 77 us each way");
        let search = Search::new(study, calibration.unwrap(), How::simulated(2), &()).unwrap();
        assert_eq!(search.value, 77.0);
        let (short, long) = (search.mean(0.5).unwrap().unwrap(), search.mean(1.5).unwrap().unwrap());
        assert!((long - short - 0.285).abs() < 0.01, "{short} {long}");
    }
}
