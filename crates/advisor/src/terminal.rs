//! The advice, for a terminal.

use anstyle::{AnsiColor, Style as Ansi};
use trunkline_report::Screen;
use trunkline_report::text::{BOLD, Column, PLAIN, Table, Text};

use crate::advice::{Advice, Recommendation};
use crate::units::{ms, percent, rate};
use crate::words::way;

/// The advice as text.
pub fn terminal(advice: &Advice, screen: Screen) -> String {
    let coloured = |colour: AnsiColor| Ansi::new().fg_color(Some(colour.into()));
    let mut out = Text::new(screen);
    out.paragraph(&title(advice), BOLD);
    out.blank();
    for recommendation in &advice.recommendations {
        let choice = &recommendation.choice;
        out.labelled(&choice.purpose.to_string(), BOLD, INDENT, &way(&choice.best), BOLD);
        for line in body(recommendation) {
            out.indented(INDENT, &line, PLAIN);
        }
        for command in [&recommendation.answer, &recommendation.send] {
            // Never broken: it is there to be copied.
            out.verbatim(INDENT, command, coloured(AnsiColor::Cyan));
        }
        out.blank();
    }
    for warning in &advice.warnings {
        out.labelled("warning:", coloured(AnsiColor::Yellow).bold(), 2, warning, PLAIN);
    }
    for (transport, why) in &advice.failed {
        out.paragraph(&format!("{transport} was not measured: {why}"), PLAIN);
    }
    if !advice.warnings.is_empty() || !advice.failed.is_empty() {
        out.blank();
    }
    out.table(&table(advice));
    out.into()
}

/// Where text begins beside the name of a use.
const INDENT: usize = 11;

/// `Advice for studio.example.org, measured for 9.98 s`.
pub(crate) fn title(advice: &Advice) -> String {
    format!("Advice for {}, measured for {}", advice.host, advice.took)
}

fn body(recommendation: &Recommendation) -> Vec<String> {
    let best = &recommendation.choice.best;
    let mut lines = vec![
        format!(
            "{} from mouth to ear · {} concealed · MOS {:.2} · {}",
            ms(best.mouth_to_ear),
            percent(best.concealed),
            best.mos,
            rate(best.rate)
        ),
        recommendation.why.clone(),
    ];
    lines.extend(recommendation.runner_up_costs.iter().map(|costs| format!("Next: {costs}")));
    lines
}

/// The heads of the table of all that was measured, and its rows.
pub(crate) fn rows(advice: &Advice) -> ([&'static str; 7], Vec<[String; 7]>) {
    let row = |row: &crate::advice::Row| {
        let found = row.round_trips;
        let lost =
            trunkline_core::Ratio::new(found.lost as f64 / found.blocks.max(1) as f64).unwrap_or_default();
        [
            row.configuration.to_string(),
            found.blocks.to_string(),
            percent(lost),
            ms(found.fastest),
            ms(found.median),
            ms(found.p99),
            ms(found.deviation),
        ]
    };
    (
        ["round trips of", "blocks", "not back", "fastest", "median", "p99", "jitter"],
        advice.measured.iter().map(row).collect(),
    )
}

fn table(advice: &Advice) -> Table {
    let (heads, rows) = rows(advice);
    let column = |(place, head)| if place == 0 { Column::words(head).key() } else { Column::numbers(head) };
    let mut table = Table::new(heads.into_iter().enumerate().map(column));
    rows.into_iter().for_each(|row| table.row(row));
    table
}
