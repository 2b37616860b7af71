//! The class of each cell in every output: terminal, HTML, CSV and JSON. The page takes it from the server, whose tests have it.

use serde_json::Value as Json;
use trunkline_report::Screen;

use super::two_percent_above;
use crate::csv_table::csv;
use crate::results::{Cell, Results, TableResults};
use crate::studies;
use crate::study::Class;

/// The class of a cell, in brackets if it repeats another.
fn word(cell: &Cell) -> String {
    in_brackets(cell.class.map_or("", Class::name), cell.repeats)
}

fn in_brackets(class: &str, repeats: bool) -> String {
    if repeats { format!("({class})") } else { class.to_owned() }
}

fn in_csv(table: &TableResults) -> Vec<String> {
    let text = csv(table).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_slice());
    let head = reader.headers().unwrap().clone();
    let mut classes = Vec::new();
    for record in reader.records().map(Result::unwrap) {
        let of_class = head.iter().zip(&record).filter(|(head, _)| head.starts_with("class "));
        classes.extend(of_class.map(|(_, class)| class.to_owned()));
    }
    classes
}

fn in_html(page: &str, name: &str) -> Vec<String> {
    let (_, table) = page.split_once(&format!("data-name=\"{name}\"")).unwrap();
    let (_, body) = table.split_once("<tbody>").unwrap();
    let (body, _) = body.split_once("</tbody>").unwrap();
    // Cells of numbers have a style.
    body.split("<td>").skip(1).map(|rest| rest.split_once("</td>").unwrap().0.to_owned()).collect()
}

fn in_json(results: &Results) -> Vec<String> {
    let of_line = |line: &str| {
        let line: Json = serde_json::from_str(line).unwrap();
        in_brackets(line["class"].as_str().unwrap_or_default(), line["repeats"] == true)
    };
    crate::json(results).lines().map(of_line).collect()
}

/// Each row of the table has a line with the letters of its classes, between numbers.
fn assert_in_terminal(results: &Results) {
    let table = &results.tables[0];
    let text = crate::tables(results, Screen { width: None, ..Screen::of_width(80) });
    let letter = |cell: &Cell| match cell.class.map_or("", Class::name) {
        "formula" => "=".to_owned(),
        class => class[..1].to_owned(),
    };
    for row in &table.rows {
        let expected: Vec<String> = row.cells.iter().map(letter).collect();
        let first = row.keys.0.first().map(|(_, key)| key.to_string()).unwrap_or_default();
        let is_its_line = |line: &str| {
            let words = line.split_whitespace().map(|word| word.trim_matches(['(', ')']));
            let letters: Vec<&str> = words.filter(|word| ["f", "s", "p", "b", "="].contains(word)).collect();
            line.trim_start().starts_with(&first) && letters == expected
        };
        assert!(text.lines().any(is_its_line), "{}: {first}\n{text}", table.table.name);
    }
}

#[test]
fn terminal_html_csv_and_json_say_the_class_of_each_cell() {
    let mut count = 0;
    for study in studies() {
        let all = two_percent_above(study);
        let page = crate::html(&all);
        for table in all.tables.iter().filter(|table| table.table.reference.published().is_some()) {
            let name = &table.table.name;
            let expected: Vec<String> = table.rows.iter().flat_map(|row| &row.cells).map(word).collect();
            assert!(expected.iter().all(|class| !class.trim_matches(['(', ')']).is_empty()), "{name}");
            count += expected.len();
            assert_eq!(in_csv(table), expected, "{name}");
            assert_eq!(in_html(&page, name), expected, "{name}");
            let alone = Results { tables: vec![table.clone()], ..all.clone() };
            assert_eq!(in_json(&alone), expected, "{name}");
            assert_in_terminal(&alone);
        }
    }
    assert!(count > 2000, "{count} cells");
}
