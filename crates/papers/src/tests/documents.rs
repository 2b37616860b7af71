//! The figures of docs/papers.md and of the studies' READMEs are those of the accepted summaries.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::folder;
use super::golden::golden;
use crate::studies;
use crate::study::Study;

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The words, with single spaces.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The summary of a study: its number of constants, and of a class the number of cells, the median, and the median when blind.
struct Accepted(String);

impl Accepted {
    fn of(study: &Study) -> Accepted {
        Accepted(text(&golden(&study.name)))
    }

    fn constants(&self) -> &str {
        let line = self.0.lines().find(|line| line.contains(" constants taken from"));
        line.and_then(|line| line.split(' ').next()).expect("a number of constants")
    }

    fn class(&self, name: &str) -> Option<[&str; 3]> {
        let (_, classes) = self.0.split_once("\nClasses")?;
        let line = classes.lines().find(|line| line.starts_with(name))?;
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        Some([cells[1], cells[2], cells[4]])
    }

    /// Every share in it, without signs.
    fn shares(&self) -> BTreeSet<String> {
        shares(&self.0)
    }
}

/// The numbers before a per cent sign or in a list that ends with one, such as `2.3 %, 6.3 %` or `14.3, 1.1 %`; `10.0` is `10`.
fn shares(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_share = false;
    for word in text.split(|letter: char| letter.is_whitespace() || "()|+-".contains(letter)).rev() {
        match word.trim_end_matches([',', ';', '.']) {
            "%" => is_share = true,
            "" | "and" => {}
            number => match number.parse::<f64>() {
                Ok(number) if is_share => drop(found.insert(number.to_string())),
                _ => is_share = false,
            },
        }
    }
    found
}

#[test]
fn the_table_of_classes_has_the_accepted_medians() {
    let page = text(&folder(&studies()[0]).join("../../docs/papers.md"));
    for study in studies() {
        let accepted = Accepted::of(study);
        let of = |name| accepted.class(name);
        let cell =
            |name| of(name).map_or(String::new(), |[cells, median, _]| format!("{cells} cells, {median}"));
        let blind = of("blind").map_or([String::new(), String::new()], |[cells, today, then]| {
            [format!("{cells} cells, {then}"), today.to_owned()]
        });
        let cells = [
            format!("`{}`", study.name),
            accepted.constants().to_owned(),
            cell("fitted"),
            cell("structural"),
            cell("predicted"),
        ];
        let row = format!("| {} |", [&cells[..], &blind[..]].concat().join(" | ")).replace("|  |", "| |");
        assert!(page.lines().any(|line| line == row), "docs/papers.md lacks `{row}`");
    }
}

#[test]
fn the_readmes_have_the_accepted_medians() {
    for study in studies() {
        let accepted = Accepted::of(study);
        let readme = text(&folder(study).join("README.md"));
        let (_, rest) = readme.split_once("\n## Agreement").expect("a part about the agreement");
        let (agreement, _) = rest.split_once("\n## ").unwrap_or((rest, ""));
        let median = |name: &str| Some(format!("{name} {}", accepted.class(name)?[1]));
        let [_, today, then] = accepted.class("blind").expect("blind cells");
        let classes =
            ["fitted", "structural", "predicted"].into_iter().filter_map(median).collect::<Vec<_>>();
        let sentence = format!("{}, blind {then} when they were blind and {today} today", classes.join(", "));
        assert!(joined(agreement).contains(&sentence), "{}: `{sentence}` is not in it", study.name);
        // The first table has what was reached in its last column.
        let known = accepted.shares();
        let table = agreement
            .lines()
            .skip_while(|line| !line.starts_with("| "))
            .take_while(|line| line.starts_with('|'));
        for row in table.skip(2) {
            let reached = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
            let unknown: Vec<String> = shares(reached).difference(&known).cloned().collect();
            assert!(
                unknown.is_empty(),
                "{}: {unknown:?} % are not in the accepted summary: {row}",
                study.name
            );
        }
    }
}

/// Medians and worst errors of the stories are those of the summaries too, where they say so.
#[test]
fn the_stories_have_the_accepted_medians() {
    for study in studies() {
        let known = Accepted::of(study).shares();
        let story =
            joined(&text(&folder(study).join("../../docs/studies").join(format!("{}.md", study.name))));
        let about = ["Median errors", "The median errors"]
            .iter()
            .filter_map(|start| Some(story.split_once(start)?.1));
        for rest in about {
            let sentence = rest.split(". ").next().unwrap_or_default();
            let unknown: Vec<String> = shares(sentence).difference(&known).cloned().collect();
            assert!(
                unknown.is_empty(),
                "{}: {unknown:?} % are not in the accepted summary: {sentence}",
                study.name
            );
        }
    }
}

/// All numbers of the tables of a study: published, ours and blind.
fn values(study: &Study) -> Vec<f64> {
    let folders = ["reference", "ours", "blind"].map(|name| folder(study).join(name));
    let files = folders.iter().filter_map(|path| fs::read_dir(path).ok()).flatten();
    let texts = files.map(|entry| text(&entry.expect("an entry").path()));
    texts
        .flat_map(|text| text.split([',', '\n']).filter_map(|cell| cell.parse().ok()).collect::<Vec<f64>>())
        .collect()
}

/// The numbers of a cell of a table, as they are written: `14,150`, `160.68 (fitted)`, `122.4 ms`.
fn numbers(cell: &str) -> Vec<String> {
    let is_part = |letter: char| letter.is_ascii_digit() || [',', '.'].contains(&letter);
    let words = cell.split(|letter| !is_part(letter)).map(|word| word.replace(',', ""));
    words.filter(|word| word.parse::<f64>().is_ok()).collect()
}

/// Values that a story prints beside the published ones are those of the study: the tables of today are of other experiments.
#[test]
fn the_tables_of_the_stories_have_published_and_accepted_values() {
    for study in studies() {
        let known = values(study);
        let is_known = |number: &str| {
            let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let value: f64 = number.parse().expect("a number");
            // Ours are kept with six digits.
            let allowed = 0.500_1 * 10_f64.powi(-(decimals as i32)) + 1e-5 * value.abs();
            known.iter().any(|known| (known - value).abs() <= allowed)
        };
        let story = text(&folder(study).join("../../docs/studies").join(format!("{}.md", study.name)));
        let (_, rest) = story.split_once("\n## Then, and here").expect("a part about then and here");
        let (parts, _) = rest.split_once("\n## The same question today").expect("a part about today");
        let mut count = 0;
        let rows: Vec<&str> = parts.lines().filter(|line| line.starts_with('|')).collect();
        for (index, row) in rows.iter().enumerate() {
            // Headings stand before a line of dashes.
            let is_heading = rows.get(index + 1).is_some_and(|next| next.starts_with("| ---"));
            for cell in row.trim_matches('|').split('|').skip(1).filter(|_| !is_heading) {
                for number in numbers(cell) {
                    assert!(is_known(&number), "{}: the study does not have {number}: {row}", study.name);
                    count += 1;
                }
            }
        }
        assert!(count > 15, "{}: {count} values", study.name);
    }
}

#[test]
fn shares_are_found_in_lists() {
    assert_eq!(
        shares("14.3, 1.1 % of 18 cells, worst -7.30 %"),
        ["1.1", "14.3", "7.3"].map(String::from).into()
    );
}
