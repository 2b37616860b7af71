//! The promises of `docs/security.md`: each names the test that holds it, and this test exists where the page says.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

/// A file or a test that the page names.
#[derive(Debug, PartialEq)]
enum Named {
    /// A source, as the page writes it.
    File(String),
    Test(String),
}

/// Files and tests that a text names in back quotes, in its order. Tests are sentences: three words or more.
fn named(text: &str) -> Vec<Named> {
    let quoted = text.split('`').skip(1).step_by(2);
    let of_quote = |quote: &str| {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if [".rs", ".ts"].iter().any(|ending| quote.ends_with(ending)) {
            Some(Named::File(quote.to_owned()))
        } else if quote.split('_').count() > 2 && quote.split('_').all(is_word) || quote.contains(", and ") {
            Some(Named::Test(quote.to_owned()))
        } else {
            None
        }
    };
    quoted.filter_map(of_quote).collect()
}

/// Checks that a source has this test: a function of Rust right after its attributes, or a text of Playwright.
fn has_test(source: &str, test: &str) -> bool {
    let is_attribute = |line: &&str| line.starts_with("#[") || line.starts_with("//");
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let of_rust = |(index, line): (usize, &&str)| {
        let is_function =
            line.split_once("fn ").is_some_and(|(_, rest)| rest.starts_with(&format!("{test}(")));
        let attributes = lines[..index].iter().rev().take_while(|line| is_attribute(line));
        is_function && attributes.into_iter().any(|line| *line == "#[test]")
    };
    lines.iter().enumerate().any(of_rust) || source.contains(&format!("test('{test}'"))
}

#[test]
fn every_test_that_the_security_page_names_is_in_its_file() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (mut last, mut folder, mut source) = (String::new(), PathBuf::new(), String::new());
    let mut count = 0;
    for name in named(&page) {
        match name {
            Named::File(file) => {
                // The page names the folder once.
                let path = if file.contains('/') { root().join(&file) } else { folder.join(&file) };
                source = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                folder = path.parent().expect("the workspace").to_path_buf();
                last = file;
            }
            Named::Test(test) => {
                assert!(has_test(&source, &test), "{last} has no test `{test}`");
                count += 1;
            }
        }
    }
    assert!(count > 60, "the page names {count} tests");
}

#[test]
fn every_promise_of_a_table_names_a_test() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (mut has_tests, mut rows) = (false, 0);
    let mut before = "";
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches(['|', ' ']).split(" | ").collect();
        if line.starts_with("| ---") {
            let headers: Vec<&str> = before.trim_matches(['|', ' ']).split(" | ").collect();
            has_tests = headers.last().is_some_and(|last| last.starts_with("test"));
            // Tables of what to do, and of where things are, promise nothing by themselves.
            let is_promise = headers.iter().any(|header| ["cannot", "limit"].contains(header));
            assert_eq!(is_promise, has_tests, "{before}");
        } else if has_tests && line.starts_with('|') {
            let tests = cells.last().copied().unwrap_or_default();
            let is_named = named(tests).iter().any(|name| matches!(name, Named::Test(_)));
            assert!(is_named, "a promise without a test: {line}");
            rows += 1;
        } else if !line.starts_with('|') {
            has_tests = false;
        }
        before = line;
    }
    assert!(rows > 30, "{rows} promises");
}

#[test]
fn a_function_that_is_no_test_holds_nothing() {
    let source = "#[test]\n#[cfg(unix)]\n/// Why.\nfn a_door_is_shut() {}\n\nfn helps_a_little_bit() {}\n";
    assert!(has_test(source, "a_door_is_shut") && !has_test(source, "helps_a_little_bit"));
    assert!(!has_test(source, "a_door_is"));
    let text = "see `a/b.rs`: `a_door_is_shut`, `key.pem`, `two_words`";
    assert_eq!(named(text), [Named::File("a/b.rs".into()), Named::Test("a_door_is_shut".into())]);
}
