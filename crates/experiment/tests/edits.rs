//! Edits of whole files: whatever is edited, nothing else changes, and what is drawn can be drawn again from nothing.

mod common;

use proptest::prelude::*;
use serde_json::Value;
use trunkline_experiment::edit::{Edit, EditError, Outline, Section, apply, outline};
use trunkline_experiment::{Experiment, Files, FilesError};

/// A folder with experiment files: `examples`, `papers/NAME`.
struct Folder(String);

impl Folder {
    fn path(&self) -> String {
        format!("{}/../../{}", env!("CARGO_MANIFEST_DIR"), self.0)
    }

    #[allow(clippy::disallowed_methods, reason = "a test may read the repository")]
    fn texts(&self) -> Vec<(String, String)> {
        let mut texts: Vec<_> = std::fs::read_dir(self.path())
            .expect("the folder is part of the repository")
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.extension().is_some_and(|end| end == "toml"))
            // A study's own file describes tables, not a network.
            .filter(|path| path.file_name().is_some_and(|name| name != "study.toml"))
            .map(|path| (path.display().to_string(), std::fs::read_to_string(path).expect("text")))
            .collect();
        texts.sort();
        texts
    }
}

impl Files for Folder {
    #[allow(clippy::disallowed_methods, reason = "a test may read the repository")]
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        std::fs::read(format!("{}/{path}", self.path())).map_err(|_| FilesError::new("does not exist"))
    }
}

const FOLDERS: [&str; 5] =
    ["examples", "papers/hawley1989", "papers/lamont1998", "papers/schiavoni2013", "papers/weaver1992"];

fn path(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

fn set(parts: &[&str], value: Value) -> Edit {
    Edit::Set { path: path(parts), value }
}

/// The edits that make a drawing from nothing.
fn edits(outline: &Outline) -> Vec<Edit> {
    let named = |section: &str, name: &str, keys: &serde_json::Map<String, Value>| {
        set(&[section, name], keys.clone().into())
    };
    let experiment = outline.experiment.iter().map(|(key, value)| set(&[key], value.clone()));
    let mut edits: Vec<Edit> = experiment.collect();
    edits.extend(outline.hosts.iter().map(|host| named("hosts", &host.name, &host.keys)));
    edits.extend(outline.links.iter().map(|link| named("link", &link.name, &link.keys)));
    edits.extend(outline.flows.iter().map(|flow| named("flow", &flow.name, &flow.keys)));
    edits.extend(outline.bundles.iter().map(|bundle| named("bundle", &bundle.name, &bundle.keys)));
    edits.extend(outline.sweep.iter().map(|swept| set(&["sweep", &swept.key], swept.values.clone().into())));
    edits.extend(outline.limits.iter().map(|limit| set(&["limits", &limit.key], limit.limit.clone().into())));
    edits
}

/// All that an experiment says but its text.
fn said(text: &str, files: &dyn Files) -> String {
    let experiment =
        Experiment::parse(text, "x.toml", files).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let Experiment { name, repetitions, seed, axes, points, limits, .. } = experiment;
    let axes: Vec<_> = axes.into_iter().map(|axis| (axis.key, axis.numbers, axis.unit)).collect();
    format!("{name} {repetitions} {seed} {axes:?} {points:?} {limits:?}")
}

/// Without the texts of swept values: the keys of tables may stand in another order.
fn without_layout(mut outline: Outline) -> Outline {
    outline.sweep.iter_mut().for_each(|swept| swept.written.clear());
    outline
}

#[test]
fn every_file_is_drawn_and_built_again_from_its_drawing_alone() {
    let mut files = 0;
    for folder in FOLDERS.map(|folder| Folder(folder.to_owned())) {
        for (name, text) in folder.texts() {
            let drawn = without_layout(outline(&text).expect(&name));
            let built = apply("", &edits(&drawn)).expect(&name);
            let again = without_layout(outline(&built).expect(&name));
            let lines =
                |outline: &Outline| format!("{outline:#?}").lines().map(str::to_owned).collect::<Vec<_>>();
            for (again, drawn) in lines(&again).into_iter().zip(lines(&drawn)) {
                assert_eq!(again, drawn, "{name}:\n{built}");
            }
            assert_eq!(again, drawn, "{name}");
            assert_eq!(said(&built, &folder), said(&text, &folder), "{name}:\n{built}");
            files += 1;
        }
    }
    assert!(files >= 30, "{files}");
}

#[test]
fn what_is_set_to_what_it_is_stays_as_it_is_written() {
    for folder in FOLDERS.map(|folder| Folder(folder.to_owned())) {
        for (name, text) in folder.texts() {
            let drawn = outline(&text).expect(&name);
            assert_eq!(apply(&text, &edits(&drawn)).expect(&name), text, "{name}");
        }
    }
}

#[test]
fn every_name_of_every_file_can_be_another_and_itself_again() {
    for folder in FOLDERS.map(|folder| Folder(folder.to_owned())) {
        for (name, text) in folder.texts() {
            for (section, old) in names(&outline(&text).expect(&name)) {
                let there = Edit::Rename { section, from: old.clone(), to: "quite-another".into() };
                let back = Edit::Rename { section, from: "quite-another".into(), to: old.clone() };
                let renamed = apply(&text, &[there]).expect(&name);
                // Nothing is left that names the old one, or the file would not be valid.
                Experiment::parse(&renamed, "x.toml", &folder)
                    .unwrap_or_else(|problems| panic!("{name}: {section:?} {old}: {problems}"));
                assert_eq!(apply(&renamed, &[back]).expect(&name), text, "{name}: {section:?} {old}");
            }
        }
    }
}

fn names(outline: &Outline) -> Vec<(Section, String)> {
    let hosts = outline.hosts.iter().map(|host| (Section::Hosts, host.name.clone()));
    let links = outline.links.iter().map(|link| (Section::Link, link.name.clone()));
    let flows = outline.flows.iter().map(|flow| (Section::Flow, flow.name.clone()));
    let bundles = outline.bundles.iter().map(|bundle| (Section::Bundle, bundle.name.clone()));
    hosts.chain(links).chain(flows).chain(bundles).collect()
}

/// The comments of a text, in their order.
fn comments(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once('#').map(|(_, comment)| comment)).collect()
}

/// The value at the end of a way, as the drawing has it.
fn read(outline: &Outline, path: &[String]) -> Option<Value> {
    let tables = match path.first()?.as_str() {
        "hosts" => &outline.hosts.iter().find(|host| host.name == path[1])?.keys,
        "link" => &outline.links.iter().find(|link| link.name == path[1])?.keys,
        "flow" => &outline.flows.iter().find(|flow| flow.name == path[1])?.keys,
        _ => return outline.experiment.get(path.first()?).cloned(),
    };
    let rest = &path[2..];
    rest.iter().skip(1).try_fold(tables.get(rest.first()?)?.clone(), |value, part| value.get(part).cloned())
}

const TEXTS: [&str; 3] = [
    include_str!("../../../examples/voice-beside-bulk.toml"),
    include_str!("../../../examples/switched-lan.toml"),
    include_str!("../../../examples/multicast.toml"),
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\\x00-\\x7f]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z-]{1,6}", inner, 0..4)
                .prop_map(|table| Value::Object(table.into_iter().collect())),
        ]
    })
}

fn place_in(text: &'static str) -> impl Strategy<Value = Vec<String>> {
    let names: Vec<_> = names(&outline(text).expect("an example"))
        .into_iter()
        .filter(|(section, _)| *section != Section::Bundle)
        .collect();
    prop_oneof![
        1 => "[a-z]{4,8}".prop_map(|key| vec![key]),
        4 => (prop::sample::select(names), "[a-z]{2,6}", prop::option::of("[a-z]{2,6}")).prop_map(
            |((section, name), key, inner)| {
                let path = [section.key().to_owned(), name, key];
                path.into_iter().chain(inner).collect()
            }
        ),
    ]
}

fn text_and_place() -> impl Strategy<Value = (&'static str, Vec<String>)> {
    prop::sample::select(&TEXTS[..]).prop_flat_map(|text| (Just(text), place_in(text)))
}

/// Edits that may make no sense at all.
fn edit() -> impl Strategy<Value = Edit> {
    let word = || {
        prop_oneof!["hosts", "link", "flow", "bundle", "sweep", "limits", "a", "b", "from", "to", "\\PC{0,3}"]
    };
    let path = || prop::collection::vec(word(), 0..5);
    let section = || prop::sample::select(&Section::ALL[..]);
    prop_oneof![
        (path(), value()).prop_map(|(path, value)| Edit::Set { path, value }),
        path().prop_map(|path| Edit::Remove { path }),
        (section(), word(), word()).prop_map(|(section, from, to)| Edit::Rename { section, from, to }),
        (section(), prop::option::of(word())).prop_map(|(section, name)| Edit::Add {
            section,
            name,
            values: Default::default()
        }),
        (word(), any::<f64>(), any::<f64>()).prop_map(|(host, x, y)| Edit::Place { host, x, y }),
    ]
}

/// Texts that are nearly TOML.
fn scraps() -> impl Strategy<Value = String> {
    let scrap = prop_oneof![
        Just("[hosts]\n"),
        Just("[link.a]\n"),
        Just("[[flow]]\n"),
        Just("[[flow.a]]\n"),
        Just("[flow.a.b]\n"),
        Just("[sweep.flow.a]\n"),
        Just("a = {}\n"),
        Just("b = { x = 1, y.z = [1, { c = 'd' }] } # and\n"),
        Just("from = \"a\"\n"),
        Just("to = [ # sinks\n  'a',\n  { host = \"b\", },\n]\n"),
        Just("\"flow.a.count, flow.b.count\" = [[1, 2]]\n"),
        Just("link.a.rate = 1\n"),
        Just("\"\\u0061\" = \"\\u0061\"\n"),
        Just("until = '''\na'''\n"),
        Just("\r\n"),
        Just("# only a comment"),
        Just("\n"),
        Just("x = 1979-05-27T07:32:00Z\n"),
        Just("y = [[[[]]], inf, nan, 0x1F, 1e400, 99999999999999999999]\n"),
    ];
    prop::collection::vec(scrap, 0..8).prop_map(|scraps| scraps.concat())
}

proptest! {
    #[test]
    fn what_is_set_is_read_and_no_comment_is_lost((text, path) in text_and_place(), value in value()) {
        let edited = apply(text, &[Edit::Set { path: path.clone(), value: value.clone() }]);
        let Ok(edited) = edited else {
            // Only a word or a list in the way is a reason.
            prop_assert!(path.len() > 1, "{edited:?}");
            return Ok(());
        };
        prop_assert_eq!(read(&outline(&edited).expect("TOML"), &path), Some(value));
        // A value may hold a `#` itself; those of the file are all there, in their order.
        let mut after = comments(&edited).into_iter();
        for comment in comments(text) {
            prop_assert!(after.any(|other| other.ends_with(comment)), "{comment} is lost in\n{edited}");
        }
    }

    #[test]
    fn what_is_set_and_removed_leaves_the_file_as_it_was((text, path) in text_and_place(), value in value()) {
        let before = outline(text).expect("TOML");
        let top = path[..path.len().min(3)].to_vec();
        prop_assume!(read(&before, &top).is_none() && path.len() != 2);
        let Ok(edited) = apply(text, &[Edit::Set { path, value }]) else { return Ok(()) };
        // A table with an empty table within may be a word; what was made goes as a whole.
        let back = apply(&edited, &[Edit::Remove { path: top }]).expect("it is there");
        let after = outline(&back).expect("TOML");
        prop_assert_eq!(&after.flows, &before.flows);
        prop_assert_eq!(&after.links, &before.links);
        prop_assert_eq!(comments(&back), comments(text));
    }

    #[test]
    fn no_text_and_no_edit_makes_it_panic(text in scraps(), edits in prop::collection::vec(edit(), 1..6)) {
        let was_toml = outline(&text).is_ok();
        match apply(&text, &edits) {
            Ok(edited) => prop_assert!(outline(&edited).is_ok()),
            // What can be read can be read after every edit, too.
            Err(EditError::NotToml(problems)) => prop_assert!(!was_toml, "{problems}"),
            // No shape of a table is such that an edit does not know where to go.
            Err(error) => prop_assert!(!error.to_string().contains("does not fit"), "{error}"),
        }
    }

    #[test]
    fn neither_does_any_other_text(text in "\\PC{0,60}", edits in prop::collection::vec(edit(), 1..3)) {
        let _ = outline(&text);
        let _ = apply(&text, &edits);
    }

    #[test]
    fn a_name_there_and_back_gives_the_text_again(text in scraps(), section in prop::sample::select(&Section::ALL[..]), from in "[ab]") {
        let there = Edit::Rename { section, from: from.clone(), to: "other".into() };
        let back = Edit::Rename { section, from: "other".into(), to: from.clone() };
        // Escapes in a name are written out by the first of the two.
        prop_assume!(!text.contains("\\u"));
        if let Ok(renamed) = apply(&text, &[there]) {
            prop_assert_eq!(apply(&renamed, &[back]).expect("it has that name"), text);
        }
    }
}
