//! Finds constants again from the cells that they were taken from, and compares them with the files'.

use std::sync::atomic::Ordering;

use crate::goals::{Outcome, share, signed};
use crate::measure;
use crate::results::{Cell, Doubt, Row};
use crate::run::{How, Observer, PaperError, Prepared, chosen, prepare, tasks};
use crate::study::{Calibration, Rule, Study};
use crate::value::{Keys, Value};

/// A constant that was found again.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalibrated {
    /// The constant, as the study's classes name it.
    pub constant: String,
    /// The cells that it is found from.
    pub cells: String,
    /// Its value in the files.
    pub value: Value,
    /// The value that the cells give; nothing if none near that of the files fits.
    pub found: Option<Value>,
    /// The unit of both, empty for a number or a word.
    pub unit: String,
    /// The largest difference, as a share of the value.
    pub within: f64,
}

impl Recalibrated {
    /// The difference of what was found from the value, as a share of it.
    pub fn error(&self) -> Option<f64> {
        match (self.found.as_ref()?, &self.value) {
            (found, value) if found == value => Some(0.0),
            (Value::Number(found), Value::Number(value)) => Some(found / value - 1.0),
            _ => None,
        }
    }

    /// The comparison of both: met if they are near enough.
    pub fn outcome(&self) -> Outcome {
        match self.error() {
            Some(error) if error.abs() <= self.within => Outcome::Met,
            _ if self.found.is_some() => Outcome::Missed,
            _ => Outcome::NotJudged,
        }
    }

    /// In a sentence.
    pub fn sentence(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let near = match self.error() {
            Some(error) if self.within > 0.0 => {
                format!(" ({}, at most {})", signed(error), share(self.within))
            }
            _ => String::new(),
        };
        let (value, cells) = (&self.value, &self.cells);
        match &self.found {
            Some(Value::Number(found)) => {
                format!("{value}{unit} in the files, {}{unit} from {cells}{near}", significant(*found))
            }
            Some(Value::Word(found)) => format!("{value} in the files, {found} from {cells}"),
            None => format!("{value}{unit} in the files, nothing near from {cells}"),
        }
    }
}

/// Four digits.
fn significant(value: f64) -> f64 {
    if value == 0.0 {
        return value;
    }
    let scale = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// Repeats the calibrations of a study, one after the other: those from cells of `tables`, or all if none are named. `told` learns of
/// each at once.
///
/// # Errors
/// If there is no such table, an experiment cannot be simulated, or a calibration is wrong, which is a defect of the study.
pub fn calibrate(
    study: &'static Study,
    tables: &[&str],
    how: How<'_>,
    observer: &dyn Observer,
    told: &mut dyn FnMut(&Recalibrated),
) -> Result<Vec<Recalibrated>, PaperError> {
    let tables: Vec<&str> = chosen(study, tables)?.iter().map(|table| table.name.as_str()).collect();
    let mut all = Vec::new();
    for calibration in &study.calibrations {
        if !calibration.tables.iter().all(|table| tables.contains(&table.as_str())) {
            continue;
        }
        if how.stop.load(Ordering::Relaxed) {
            break;
        }
        let found = match calibration.rule {
            Rule::Formula => formulas(study, calibration)?,
            Rule::Quantum => vec![quantum(study, calibration)?],
            _ => vec![Search { study, calibration, how, observer }.found()?],
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
    let mut found = Vec::new();
    for table in &calibration.tables {
        for (keys, given, texts) in given(study, calibration, table)? {
            let written = texts.iter().find_map(|text| number_of(text, &calibration.value));
            let written = written.ok_or_else(|| PaperError::Study {
                study: &study.name,
                problem: format!("no point sweeps `{}`", calibration.value),
            })?;
            found.push(Recalibrated {
                constant: calibration.constant.clone(),
                cells: format!("{table} at {}", keys.values()),
                value: Value::Number(written),
                found: Some(Value::Number(given)),
                unit: String::new(),
                within: calibration.within,
            });
        }
    }
    Ok(found)
}

/// The value that a calibration's formula gives for each of its published cells in a table, with the keys and swept texts of the row.
fn given(
    study: &'static Study,
    calibration: &'static Calibration,
    table: &str,
) -> Result<Vec<(Keys, f64, Vec<String>)>, PaperError> {
    let rows = prepare(study, &[table])?.swept(&calibration.column, &calibration.only);
    let of_row = |(keys, cell, texts): (Keys, f64, Vec<String>)| {
        let value = |name: &String| if name == "cell" { Some(cell) } else { keys.number(name) };
        let given = calibration.formula.as_ref().and_then(|formula| formula.value(&value));
        let problem = || format!("the formula of `{}` gives no number", calibration.constant);
        let given = given.ok_or_else(|| PaperError::Study { study: &study.name, problem: problem() })?;
        Ok((keys, given, texts))
    };
    rows.into_iter().map(of_row).collect()
}

/// The constant whose whole multiples lie nearest to what the formula makes of the cells, by the squares of the distances as shares
/// of the constant.
fn quantum(study: &'static Study, calibration: &'static Calibration) -> Result<Recalibrated, PaperError> {
    const STEPS: u32 = 8000;
    let (value, unit) = number_and_unit(study, calibration)?;
    let mut all = Vec::new();
    for table in &calibration.tables {
        all.extend(given(study, calibration, table)?.into_iter().map(|(_, given, _)| given));
    }
    let distances = |constant: f64| -> f64 {
        all.iter().map(|given| (given / constant - (given / constant).round()).powi(2)).sum()
    };
    let constants = (0..=STEPS).map(|step| value * (0.6 + 0.8 * f64::from(step) / f64::from(STEPS)));
    let found = constants.min_by(|a, b| distances(*a).total_cmp(&distances(*b)));
    Ok(recalibrated(calibration, Value::Number(value), found.map(Value::Number), unit))
}

/// The value of a calibration in the files.
fn number_and_unit(
    study: &'static Study,
    calibration: &'static Calibration,
) -> Result<(f64, String), PaperError> {
    let (number, unit) = calibration.value.split_once(' ').unwrap_or((&calibration.value, ""));
    let value = number.parse().map_err(|_| PaperError::Study {
        study: &study.name,
        problem: format!("`{}` is not a number with a unit", calibration.value),
    })?;
    Ok((value, unit.to_owned()))
}

fn recalibrated(calibration: &Calibration, value: Value, found: Option<Value>, unit: String) -> Recalibrated {
    let Calibration { constant, tables, column, only, growth, within, .. } = calibration;
    let only = only.iter().map(|(key, cell)| format!(", {key} {cell}"));
    let growth = if growth.is_some() { "growth of " } else { "" };
    Recalibrated {
        constant: constant.clone(),
        cells: format!("{growth}{} {column}{}", tables.join(", "), only.collect::<String>()),
        value,
        found,
        unit,
        within: *within,
    }
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
}

impl Search<'_> {
    fn found(&self) -> Result<Recalibrated, PaperError> {
        let calibration = self.calibration;
        if calibration.rule == Rule::Choice {
            let found = self.chosen()?.map(|text| Value::read(text));
            return Ok(recalibrated(calibration, Value::read(&calibration.value), found, String::new()));
        }
        let (value, unit) = number_and_unit(self.study, calibration)?;
        let share = if calibration.rule == Rule::Match { self.root()? } else { self.lowest()? };
        let found = share.map(|share| Value::Number(share * value));
        Ok(recalibrated(calibration, Value::Number(value), found, unit))
    }

    /// The choice with the smallest sum of squares.
    fn chosen(&self) -> Result<Option<&'static String>, PaperError> {
        let mut best: Option<(f64, &String)> = None;
        for choice in &self.calibration.choices {
            let Some(errors) = self.errors(choice)? else { return Ok(None) };
            let sum = squares(&errors);
            if best.is_none_or(|(least, _)| sum < least) {
                best = Some((sum, choice));
            }
        }
        Ok(best.map(|(_, choice)| choice))
    }

    /// The share of the value, between half and twice, with a mean error of zero, by halving.
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
        Ok(Some((low + high) / 2.0))
    }

    /// The share of the value, near 1, with the smallest largest error, or sum of squares, by golden sections.
    fn lowest(&self) -> Result<Option<f64>, PaperError> {
        const GOLDEN: f64 = 0.618_033_988_749_895;
        let height = |share: f64| -> Result<Option<f64>, PaperError> {
            let errors = self.at(share)?;
            Ok(errors.map(|errors| match self.calibration.rule {
                Rule::LeastSquares => squares(&errors),
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
        Ok(Some((low + high) / 2.0))
    }

    fn mean(&self, share: f64) -> Result<Option<f64>, PaperError> {
        let errors = self.at(share)?;
        Ok(errors.map(|errors| errors.iter().sum::<f64>() / errors.len() as f64))
    }

    /// The relative error of every cell with this share of the value; nothing if it was stopped.
    fn at(&self, share: f64) -> Result<Option<Vec<f64>>, PaperError> {
        let (value, unit) = number_and_unit(self.study, self.calibration)?;
        let unit = if unit.is_empty() { unit } else { format!(" {unit}") };
        self.errors(&format!("{:.6}{unit}", value * share))
    }

    /// The relative error of every cell with this text as the value; nothing if it was stopped.
    fn errors(&self, text: &str) -> Result<Option<Vec<f64>>, PaperError> {
        let wrong = |problem: String| PaperError::Study { study: &self.study.name, problem };
        let Calibration { tables, column, only, keys, template, .. } = self.calibration;
        let names: Vec<&str> = tables.iter().map(String::as_str).collect();
        let mut prepared: Prepared = prepare(self.study, &names)?;
        prepared.keep_rows(only);
        let text =
            template.as_ref().map_or_else(|| text.to_owned(), |template| template.replace("VALUE", text));
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

fn squares(errors: &[f64]) -> f64 {
    errors.iter().map(|error| error * error).sum()
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
        assert_eq!((significant(1995.3), significant(0.242_96), significant(0.0)), (1995.0, 0.243, 0.0));
    }

    /// 44.34 KB/s for three minutes are 1995 units of 4 KB.
    #[test]
    fn volumes_follow_from_published_rates() {
        let study = crate::find("lamont1998").unwrap();
        let found = formulas(study, &study.calibrations[0]).unwrap();
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
        let found = calibrate(study, &[], how, &impatient, &mut |constant| panic!("{constant:?}")).unwrap();
        assert!(found.is_empty() && impatient.0.load(Ordering::Relaxed), "{found:?}");
    }

    /// 33 to 48 periods of the clock, in halves of round trips.
    #[test]
    fn a_clock_follows_from_its_multiples() {
        let study = crate::find("weaver1992").unwrap();
        let calibration = study.calibrations.iter().find(|of| of.rule == Rule::Quantum).unwrap();
        let found = quantum(study, calibration).unwrap();
        assert_eq!(found.outcome(), Outcome::Met, "{found:?}");
        let other = Calibration { value: "150 us".to_owned(), ..calibration.clone() };
        let found = quantum(study, Box::leak(Box::new(other))).unwrap();
        assert_eq!(found.outcome(), Outcome::Missed, "{found:?}");
    }

    #[test]
    fn of_several_choices_the_nearest_is_found() {
        let study = crate::find("hawley1989").unwrap();
        let calibration = study.calibrations.iter().find(|of| of.constant.starts_with("chunks")).unwrap();
        let search = Search { study, calibration, how: How::simulated(2), observer: &() };
        let found = search.found().unwrap();
        assert_eq!(found.outcome(), Outcome::Met, "{found:?}");
        assert!(found.sentence().starts_with("48 B in the files, 48 B from throughput"), "{found:?}");
    }

    /// 77 us of 540, there and back.
    #[test]
    fn errors_follow_the_constant() {
        let study = crate::find("schiavoni2013").unwrap();
        let calibration = study.calibrations.iter().find(|of| of.constant == "crossover-100: 77 us each way");
        let search =
            Search { study, calibration: calibration.unwrap(), how: How::simulated(2), observer: &() };
        let (short, long) = (search.mean(0.5).unwrap().unwrap(), search.mean(1.5).unwrap().unwrap());
        assert!((long - short - 0.285).abs() < 0.01, "{short} {long}");
    }
}
