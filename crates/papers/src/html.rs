//! A study's results as one HTML page that needs nothing else.

use maud::{Markup, PreEscaped, html as markup};
use trunkline_report::chart::render;

use crate::figures::{Drawn, figures};
use crate::goals::{Outcome, judge, signed};
use crate::results::{Results, Row, TableResults};
use crate::study::Study;
use crate::terminal::{
    CLASS_HEADINGS, class, class_lines, constants, error_lines, marks, printed, simulated,
};

/// Tables longer than this scroll within the page.
const LONG: usize = 24;

/// Goals, figures and tables, published against simulated, as one self-contained page.
pub fn html(results: &Results) -> String {
    let study = results.study;
    let header = markup! {
        p.product { "Trunkline: published against simulated" }
        h1 { (study.title) }
        ul.runs { li { (study.authors) ", " (study.year) } }
        nav aria-label="Parts of this page" {
            a href="#goals" { "Goals" } " "
            a href="#figures" { "Figures" } " "
            a href="#tables" { "Tables" } " "
            a href="#classes" { "Classes" } " "
            a href="#errors" { "Errors" }
        }
    };
    let figures = figures(results);
    let main = markup! {
        p.aside { (study.reproduced) }
        (goals(results))
        @if !figures.is_empty() {
            section aria-labelledby="figures" {
                h2 id="figures" { "Figures" }
                p.aside { "Lines are simulated; hollow markers are published values." }
                div.figures { @for figure in &figures { (drawn(figure)) } }
            }
        }
        section aria-labelledby="tables" {
            h2 id="tables" { "Tables" }
            @for table in &results.tables { (table_of(study, table)) }
        }
        (errors(results))
    };
    trunkline_report::page(&study.title, env!("CARGO_PKG_VERSION"), &header, &main)
}

fn goals(results: &Results) -> Markup {
    markup! {
        section aria-labelledby="goals" {
            h2 id="goals" { "Goals" }
            div.scroll tabindex="0" role="region" aria-label="Goals" {
                table {
                    thead { tr { th scope="col" { "goal" } th scope="col" { "verdict" } th scope="col" { "found" } } }
                    tbody {
                        @for judged in judge(results) {
                            @let class = match judged.outcome {
                                Outcome::Met => "holds",
                                Outcome::Missed => "broken",
                                Outcome::NotJudged => "open",
                            };
                            tr {
                                td { (judged.goal) }
                                td class=(class) { (judged.outcome.sign()) " " (judged.outcome.word()) }
                                td { (judged.found) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A figure twice: laid out for wide pages and for phones. Styles show one of them.
fn drawn(figure: &Drawn) -> Markup {
    markup! {
        figure id=(figure.id) class="half" {
            figcaption { (figure.chart.title) }
            div.on-screen { (PreEscaped(render(&figure.chart, figure.screen_frame(), &format!("{}-screen", figure.id)))) }
            div.on-phone { (PreEscaped(render(&figure.chart, figure.phone_frame(), &format!("{}-phone", figure.id)))) }
            @if !figure.note.is_empty() { p.aside { (figure.note) } }
        }
    }
}

fn table_of(study: &Study, results: &TableResults) -> Markup {
    let table = results.table;
    let published = table.reference.published().is_some();
    markup! {
        h3 id={ "table-" (table.name) } { (table.name) }
        div.scroll.long[results.rows.len() > LONG] tabindex="0" role="region" aria-label=(table.title) {
            table.data.stacked data-name=(table.name) {
                caption { span {
                    (table.title) "."
                    @for mark in marks(results).lines() { " " (mark) "." }
                } }
                thead {
                    @if published {
                        tr {
                            td colspan=(table.keys.len()) {}
                            @for metric in &table.metrics { th.group scope="colgroup" colspan="4" { (metric.column) } }
                        }
                    }
                    tr {
                        @for key in &table.keys { th scope="col" { (key) } }
                        @for metric in &table.metrics {
                            @if published {
                                @for figure in ["published", results.word(metric), "error"] {
                                    // Read aloud and downloaded with the metric's name.
                                    th.number scope="col" { (figure) span hidden { " " (metric.column) } }
                                }
                                th scope="col" { "class" span hidden { " of " (metric.column) } }
                            } @else {
                                th.number scope="col" { (metric.column) }
                            }
                        }
                    }
                }
                tbody { @for row in &results.rows { (row_of(results, row, published)) } }
            }
        }
        @for note in study.notes(&table.name) { p.aside { (note.text) } }
    }
}

fn row_of(results: &TableResults, row: &Row, published: bool) -> Markup {
    markup! {
        tr {
            @for (_, key) in &row.keys.0 { td.value data-v=[key.number().filter(|number| number.is_finite())] { (key) } }
            @for (metric, cell) in results.table.metrics.iter().zip(&row.cells) {
                @if published {
                    td.number data-v=[cell.published.as_ref().map(|published| published.number)] { (printed(cell)) }
                }
                td.number data-v=[cell.simulated] { (simulated(cell, metric)) }
                @if published {
                    @let error = cell.error();
                    td.number data-v=[error] { (error.map_or_else(|| "–".to_owned(), signed)) }
                    td { (class(cell)) }
                }
            }
        }
    }
}

fn errors(results: &Results) -> Markup {
    markup! {
        section aria-labelledby="classes" {
            h2 id="classes" { "Classes" }
            p.aside { (constants(results.study)) " Goals count predicted and blind cells only." }
            div.scroll tabindex="0" role="region" aria-label="Classes" {
                table.data data-name="classes" {
                    caption { span { "Each published cell once, over all columns." } }
                    thead { tr {
                        th scope="col" { "class" }
                        @for heading in CLASS_HEADINGS { th.number scope="col" { (heading) } }
                    } }
                    tbody {
                        @for line in class_lines(results) {
                            tr { @for (i, cell) in line.iter().enumerate() { td.number[i > 0] { (cell) } } }
                        }
                    }
                }
            }
        }
        section aria-labelledby="errors" {
            h2 id="errors" { "Relative errors" }
            div.scroll tabindex="0" role="region" aria-label="Relative errors" {
                table.data data-name="errors" {
                    caption { span { "Of cells that were published and are not doubtful." } }
                    thead { tr {
                        th scope="col" { "table" } th scope="col" { "metric" } th scope="col" { "class" }
                        th.number scope="col" { "cells" }
                        th.number scope="col" { "when blind" } th.number scope="col" { "median" } th.number scope="col" { "worst" } th scope="col" { "at" }
                    } }
                    tbody {
                        @for line in error_lines(results) {
                            tr { @for (i, cell) in line.iter().enumerate() { td.number[(3..7).contains(&i)] { (cell) } } }
                        }
                    }
                }
            }
        }
    }
}
