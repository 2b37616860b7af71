//! Every study as a whole, simulated as `trunkline paper NAME` does, and what its summary says: medians by class, constants and
//! goals, as printed. A change of the simulator that moves a study fails here.

use std::path::Path;

use trunkline_report::Screen;

use crate::{How, find, run, summary};

/// Compares with the file of the study, or writes it.
fn is_as_accepted(study: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/golden").join(format!("{study}.txt"));
    let found = summary(&run(find(study).unwrap(), &[], How::simulated(2), &()).unwrap(), Screen::default());
    if std::env::var_os("TRUNKLINE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &found).unwrap();
        return;
    }
    let accepted = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = |of: &str, other: &str, sign: char| {
        let is_new = |line: &&str| !other.lines().any(|known| known == *line);
        of.lines().filter(is_new).map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    assert!(
        found == accepted,
        "figures of {study} have changed:\n{}{}if that is right, accept them with\n\
         TRUNKLINE_GOLDEN=1 cargo test -p trunkline-papers golden\n\
         and run `trunkline paper {study}` for the figures of its README",
        lines(&accepted, &found, '-'),
        lines(&found, &accepted, '+')
    );
}

#[test]
fn hawley1989_is_as_accepted() {
    is_as_accepted("hawley1989");
}

#[test]
fn weaver1992_is_as_accepted() {
    is_as_accepted("weaver1992");
}

#[test]
fn lamont1998_is_as_accepted() {
    is_as_accepted("lamont1998");
}

#[test]
fn schiavoni2013_is_as_accepted() {
    is_as_accepted("schiavoni2013");
}
