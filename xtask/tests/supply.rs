//! The rules of `deny.toml` about licences, duplicates and sources, held against what Cargo resolves; the optimisation of what
//! is given to others; and the exposure of the systemd units. `cargo deny check` applies the same rules and asks for advisories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand, Package};
use toml::{Table, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rules() -> Table {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml can be read");
    text.parse().expect("deny.toml is TOML")
}

fn metadata() -> Metadata {
    let mut command = MetadataCommand::new();
    command
        .manifest_path(root().join("Cargo.toml"))
        .other_options(vec!["--locked".into(), "--all-features".into()]);
    command.exec().expect("cargo metadata runs")
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The packages that are not of this workspace.
fn foreign(metadata: &Metadata) -> impl Iterator<Item = &Package> {
    metadata.packages.iter().filter(|package| package.source.is_some())
}

/// `dist` takes over what `release` says of single packages.
#[test]
fn what_a_first_build_does_not_optimise_is_optimised_in_dist() {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml can be read");
    let profiles: Table = text.parse().expect("Cargo.toml is TOML");
    let of = |profile: &str| profiles["profile"][profile]["package"].as_table().expect("packages").clone();
    let names: BTreeSet<String> =
        metadata().packages.iter().map(|package| package.name.to_string()).collect();
    let expected = Value::Table(Table::from_iter([("opt-level".to_owned(), Value::Integer(3))]));
    let (release, dist) = (of("release"), of("dist"));
    assert!(release.keys().eq(dist.keys()), "one of the lists has more packages than the other");
    for (name, profile) in &dist {
        assert_eq!(profile, &expected, "{name}");
        assert!(names.contains(name), "there is no package {name}");
    }
}

#[test]
fn every_licence_is_allowed() {
    let (rules, metadata) = (rules(), metadata());
    let allowed: BTreeSet<&str> = texts(&rules["licenses"]["allow"]).into_iter().collect();
    let mut exceptions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for exception in rules["licenses"]["exceptions"].as_array().expect("a list") {
        exceptions.insert(exception["crate"].as_str().expect("a name"), texts(&exception["allow"]));
    }
    let mut unused: BTreeSet<&str> = exceptions.keys().copied().collect();
    let mut refused = Vec::new();
    for package in foreign(&metadata) {
        let licence = package.license.clone().unwrap_or_default().replace('/', " OR ");
        let ordinary = satisfies(&licence, &|name| allowed.contains(name));
        let special = exceptions.get(package.name.as_str()).cloned().unwrap_or_default();
        if !ordinary && satisfies(&licence, &|name| allowed.contains(name) || special.contains(&name)) {
            unused.remove(package.name.as_str());
        } else if !ordinary {
            refused.push(format!("{} {}: {licence}", package.name, package.version));
        }
    }
    assert!(refused.is_empty(), "not allowed by deny.toml: {refused:#?}");
    assert!(unused.is_empty(), "exceptions of deny.toml that nothing needs: {unused:?}");
}

#[test]
fn every_duplicate_has_a_reason() {
    let (rules, metadata) = (rules(), metadata());
    let mut versions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for package in foreign(&metadata) {
        versions.entry(package.name.as_str()).or_default().push(package.version.to_string());
    }
    let skipped: BTreeSet<String> = rules["bans"]["skip"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|skip| {
            assert!(skip["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{skip}");
            skip["crate"].as_str().expect("a name").to_owned()
        })
        .collect();
    let all = |name: &str| versions.get(name).cloned().unwrap_or_default();
    for skip in &skipped {
        let (name, version) = skip.split_once('@').expect("NAME@VERSION");
        assert!(
            all(name).len() > 1 && all(name).contains(&version.to_owned()),
            "{skip} is not a duplicate (any more)"
        );
    }
    for name in versions.keys() {
        let left = all(name).into_iter().filter(|version| !skipped.contains(&format!("{name}@{version}")));
        let left: Vec<String> = left.collect();
        assert_eq!(left.len(), 1, "{name} {left:?}: use one version, or give a reason in deny.toml");
    }
}

#[test]
fn everything_comes_from_the_registry_and_nothing_is_banned() {
    let (rules, metadata) = (rules(), metadata());
    let banned: Vec<&str> = rules["bans"]["deny"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|ban| ban["crate"].as_str())
        .collect();
    assert!(!banned.is_empty());
    for package in foreign(&metadata) {
        let source = package.source.as_ref().expect("it is foreign");
        assert!(source.is_crates_io(), "{} comes from {source}", package.name);
        assert!(!banned.contains(&package.name.as_str()), "{} is banned by deny.toml", package.name);
    }
}

/// `systemd-analyze` is part of systemd, which need not run.
#[test]
fn systemd_units_are_exposed_by_2_0_at_most() {
    let folder = root().join("packaging/systemd");
    let units =
        std::fs::read_dir(folder).expect("there are units").map(|entry| entry.expect("an entry").path());
    let units: Vec<PathBuf> =
        units.filter(|path| path.extension().is_some_and(|kind| kind == "service")).collect();
    assert!(!units.is_empty());
    for unit in units {
        let mut analyse = Command::new("systemd-analyze");
        let Ok(output) = analyse.args(["security", "--offline=true", "--threshold=20"]).arg(&unit).output()
        else {
            println!("skipped: systemd-analyze is not installed");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {}", unit.display(), said.lines().last().unwrap_or_default());
    }
}

/// True if an SPDX expression holds. `OR` binds less than `AND`, `AND` less than `WITH`.
fn satisfies(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let holds = any(&words, &mut at, is_allowed);
    holds && at == words.len()
}

fn any(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut holds = all(words, at, is_allowed);
    while words.get(*at).is_some_and(|word| word.eq_ignore_ascii_case("or")) {
        *at += 1;
        holds |= all(words, at, is_allowed);
    }
    holds
}

fn all(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let mut holds = one(words, at, is_allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        holds &= one(words, at, is_allowed);
    }
    holds
}

fn one(words: &[&str], at: &mut usize, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let holds = any(words, at, is_allowed);
        let is_closed = words.get(*at) == Some(&")");
        *at += 1;
        return holds && is_closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return is_allowed(&format!("{word} WITH {exception}"));
    }
    is_allowed(word)
}

#[test]
fn licences_are_read_as_spdx_says() {
    let holds = |text: &str| satisfies(text, &|name| ["MIT", "ISC", "X WITH Y"].contains(&name));
    for yes in [
        "MIT",
        "GPL OR MIT",
        "MIT or GPL",
        "MIT AND ISC",
        "(GPL OR MIT) AND ISC",
        "X WITH Y",
        "GPL AND X OR MIT",
    ] {
        assert!(holds(yes), "{yes}");
    }
    for no in ["", "GPL", "MIT AND GPL", "(GPL OR MIT) AND GPL", "X", "MIT WITH Y", "(MIT", "MIT MIT"] {
        assert!(!holds(no), "{no}");
    }
}
