//! Whether the simulation reaches what it is to reach.

use trunkline_store::Backend;

use crate::compare::{Errors, median};
use crate::results::{Cell, Doubt, Results, TableResults};
use crate::study::{Cells, Goal, Metric};
use crate::value::Keys;

/// How a goal fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was reached.
    Met,
    /// It was not.
    Missed,
    /// There is nothing to judge it by.
    NotJudged,
}

/// A goal and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The goals.
    pub goal: String,
    /// The finding.
    pub found: String,
    /// How it fared.
    pub outcome: Outcome,
    /// True if it is not a prediction but a formula of the paper.
    pub formula: bool,
}

impl Judged {
    fn new(goal: String, found: String, outcome: Outcome) -> Judged {
        Judged { goal, found, outcome, formula: false }
    }
}

impl Outcome {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Met => "met",
            Outcome::Missed => "missed",
            Outcome::NotJudged => "not judged",
        }
    }

    /// As a sign that needs no colour.
    pub fn sign(self) -> &'static str {
        match self {
            Outcome::Met => "✓",
            Outcome::Missed => "✗",
            Outcome::NotJudged => "–",
        }
    }
}

/// Judges the goals whose tables were run.
pub fn judge(results: &Results) -> Vec<Judged> {
    results.study.goals.iter().filter_map(|goal| one(goal, results)).collect()
}

fn one(goal: &Goal, results: &Results) -> Option<Judged> {
    match goal {
        Goal::Error { tables, columns, only, median, worst } => {
            let tables: Vec<&TableResults> =
                tables.iter().map(|table| results.table(table)).collect::<Option<_>>()?;
            Some(error(&tables, columns, only, *median, *worst))
        }
        Goal::Count { table, column, within, share } => count(results.table(table)?, column, *within, *share),
        Goal::Exact { table, column } => exact(results.table(table)?, column),
        Goal::Conclusion { question, published, given, find } => {
            let found = find.found(results)?;
            let mut tables = find.tables().into_iter().filter_map(|table| results.table(table));
            let given = given.as_deref().filter(|_| tables.all(|table| table.on == Backend::Sim));
            Some(conclusion(question, published.as_deref(), given, found))
        }
        Goal::Factor { title, over, under, only, column, within } => {
            let ratios = Ratios::of(results.table(over)?, results.table(under)?, only, column);
            Some(ratios.judged(title, *within))
        }
    }
}

/// Why a goal is not judged.
const NO_PREDICTION: &str = "no prediction of a published value";

fn conclusion(question: &str, published: Option<&str>, given: Option<&str>, found: String) -> Judged {
    let goal = published.map_or_else(|| question.to_owned(), |published| format!("{question}: {published}"));
    match (published, given) {
        (_, Some(given)) => Judged::new(goal, format!("{found}; {given}"), Outcome::NotJudged),
        (Some(published), None) if found == published => Judged::new(goal, found, Outcome::Met),
        (Some(_), None) => Judged::new(goal, found, Outcome::Missed),
        (None, None) => Judged::new(goal, found, Outcome::NotJudged),
    }
}

fn error(
    tables: &[&TableResults],
    metrics: &[String],
    only: &Cells,
    median: f64,
    worst: Option<f64>,
) -> Judged {
    let cells = tables.iter().flat_map(|table| {
        // Of several tables, which one stands before the row.
        let name = if tables.len() > 1 { format!("{}: ", table.table.name) } else { String::new() };
        let predicted = table.cells(metrics, only).filter(|(_, cell)| cell.is_prediction());
        predicted.map(move |(row, cell)| (format!("{name}{}", row.keys.values()), cell))
    });
    let errors = Errors::of(cells);
    let names: Vec<&str> = tables.iter().map(|table| table.table.name.as_str()).collect();
    let mut goal = format!("{} {}", names.join(", "), metrics.join(", "));
    for (column, cells) in only {
        goal += &format!(", {column} {cells}");
    }
    goal += &format!(": median error at most {}", share(median));
    if let Some(worst) = worst {
        goal += &format!(", worst at most {}", share(worst));
    }
    // A zero that is one here too is no error, and one that is not has none.
    let lacking = errors.incomparable + errors.zeros - errors.zeros_alike;
    let (Some(found), Some((far, row))) = (errors.median, &errors.worst) else {
        return match lacking {
            0 if errors.zeros > 0 => {
                Judged::new(goal, format!("all {} zeros are zero here", errors.zeros), Outcome::Met)
            }
            0 => Judged::new(goal, NO_PREDICTION.to_owned(), Outcome::NotJudged),
            _ => Judged::new(goal, format!("{lacking} cells cannot be compared"), Outcome::Missed),
        };
    };
    let reached = found <= median && worst.is_none_or(|worst| far.abs() <= worst) && lacking == 0;
    let cells = match errors.compared {
        1 => "1 cell".to_owned(),
        cells => format!("{cells} cells"),
    };
    let mut text = format!("median {} of {cells}, worst {} at {row}", share(found), signed(*far));
    if lacking > 0 {
        text += &format!("; {lacking} cells cannot be compared");
    }
    Judged::new(goal, text, if reached { Outcome::Met } else { Outcome::Missed })
}

fn count(table: &TableResults, metric: &str, within: f64, portion: f64) -> Option<Judged> {
    let place = table.place(metric)?;
    let (mut good, mut all, mut far) = (0, 0, Vec::new());
    for row in &table.rows {
        let cell = &row.cells[place];
        let is_counted = cell.doubt != Doubt::Doubtful && cell.is_prediction();
        let Some(published) = cell.published.as_ref().filter(|_| is_counted) else {
            continue;
        };
        let error = cell.simulated.map(|simulated| simulated - published.number);
        let is_good = error.is_some_and(|error| error.abs() <= within.max(portion * published.number));
        all += 1;
        good += usize::from(is_good);
        if !is_good {
            far.push(match error {
                Some(error) => format!("{error:+.0} at {}", row.keys.values()),
                None => format!("none at {}", row.keys.values()),
            });
        }
    }
    let goal = format!("{} {metric}: within {within} or {}", table.table.name, share(portion));
    if all == 0 {
        return Some(Judged::new(goal, NO_PREDICTION.to_owned(), Outcome::NotJudged));
    }
    let mut found = format!("{good} of {all} cells");
    if !far.is_empty() {
        found += &format!("; {}", far.join("; "));
    }
    Some(Judged::new(goal, found, if good == all { Outcome::Met } else { Outcome::Missed }))
}

fn exact(table: &TableResults, metric: &str) -> Option<Judged> {
    let place = table.place(metric)?;
    let printed = &table.table.metrics[place];
    let (mut alike, mut sound, mut suspect_alike, mut differ) = (0, 0, 0, Vec::new());
    let mut suspect = 0;
    for row in &table.rows {
        let cell = &row.cells[place];
        if cell.published.is_none() || cell.doubt == Doubt::Doubtful {
            continue;
        }
        let is_alike = is_printed_alike(cell, printed);
        let counts = match cell.doubt {
            Doubt::Suspect => (&mut suspect_alike, &mut suspect),
            _ => (&mut alike, &mut sound),
        };
        *counts.0 += usize::from(is_alike);
        *counts.1 += 1;
        if !is_alike {
            differ.push(row.keys.values());
        }
    }
    let goal = format!("{} {metric}, a formula of the paper: as printed, digit by digit", table.table.name);
    let mut found = format!("{alike} of {sound} cells");
    if suspect > 0 {
        found += &format!("; {suspect_alike} of {suspect} that the paper itself contradicts (*)");
    }
    if !differ.is_empty() {
        found += &format!("; not at {}", differ.join("; "));
    }
    let outcome = match sound {
        0 => Outcome::NotJudged,
        _ if alike == sound => Outcome::Met,
        _ => Outcome::Missed,
    };
    Some(Judged { formula: true, ..Judged::new(goal, found, outcome) })
}

/// Whether a simulated figure, with as many digits as the paper prints, is the printed one.
pub(crate) fn is_printed_alike(cell: &Cell, metric: &Metric) -> bool {
    match (&cell.published, cell.simulated) {
        (Some(published), Some(simulated)) => format!("{simulated:.*}", metric.decimals) == published.text,
        _ => false,
    }
}

/// A figure of one table over that of another, in rows that agree in all other keys.
struct Ratios {
    simulated: Vec<f64>,
    /// Of rows that both tables have published beyond doubt.
    published: Vec<f64>,
}

impl Ratios {
    fn of(over: &TableResults, under: &TableResults, only: &Cells, metric: &str) -> Ratios {
        let mut ratios = Ratios { simulated: Vec::new(), published: Vec::new() };
        for row in over.rows.iter().filter(|row| row.keys.are(only)) {
            let Some((above, below)) = cell(over, &row.keys, metric).zip(cell(under, &row.keys, metric))
            else {
                continue;
            };
            if !(above.is_prediction() && below.is_prediction()) {
                continue;
            }
            let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?).filter(|ratio| ratio.is_finite());
            ratios.simulated.extend(ratio(above.simulated, below.simulated));
            let printed = |cell: &Cell| {
                let published = cell.published.as_ref().filter(|_| cell.doubt != Doubt::Doubtful);
                published.map(|published| published.number)
            };
            ratios.published.extend(ratio(printed(above), printed(below)));
        }
        ratios
    }

    fn judged(self, title: &str, within: f64) -> Judged {
        let range = |ratios: &[f64]| {
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            format!("{least:.1} to {most:.1}")
        };
        let goal = format!("{title}: within {} of the published median", share(within));
        let Some(simulated) = median(self.simulated.clone()) else {
            return Judged::new(goal, "nothing to compare".to_owned(), Outcome::NotJudged);
        };
        let rows = self.simulated.len();
        let found =
            format!("simulated {simulated:.1} in the median of {rows} rows, {}", range(&self.simulated));
        let Some(published) = median(self.published.clone()) else {
            let found = format!("{found}; there is no published value to compare with");
            return Judged::new(goal, found, Outcome::NotJudged);
        };
        let reached = (simulated / published - 1.0).abs() <= within;
        let found = format!("{found}; published {published:.1}, {}", range(&self.published));
        Judged::new(goal, found, if reached { Outcome::Met } else { Outcome::Missed })
    }
}

fn cell<'r>(table: &'r TableResults, keys: &Keys, metric: &str) -> Option<&'r Cell> {
    let place = table.place(metric)?;
    table.rows.iter().find(|row| row.keys == *keys)?.cells.get(place)
}

/// `2.5 %`
pub(crate) fn share(share: f64) -> String {
    let percent = share * 100.0;
    let text = if percent >= 100.0 { format!("{percent:.0}") } else { format!("{percent:.1}") };
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// `+2.5 %`
pub(crate) fn signed(error: f64) -> String {
    let percent = error * 100.0;
    let decimals = usize::from(percent.abs() < 99.95);
    let text = format!("{percent:+.decimals$}");
    // No error and one that rounds to none are the same to a reader.
    if text == "-0.0" || text == "+0.0" { "0.0 %".to_owned() } else { format!("{text} %") }
}
