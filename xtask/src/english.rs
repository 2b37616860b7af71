//! Plain English: refuses idioms that a reader of the field has to translate.
//!
//! Documents, doc comments and string literals are searched. `xtask/english.txt` has the number of finds per part of the
//! repository that are still allowed. It may only go down: `cargo xtask english --lower` writes the smaller numbers.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Phrases to replace, each with a hint.
const PHRASES: &[(&str, &str)] = &[
    ("is told", "is sent, is reported, is distinguished"),
    ("are told", "are sent, are reported, are distinguished"),
    ("be told", "be sent, be reported, be distinguished"),
    ("tells of", "describes, reports"),
    ("is said of", "is documented, is reported"),
    ("are said to", "name the subject: the error says that"),
    ("it is said", "name the subject: the error says"),
    ("says so", "name what it reports"),
    ("of it is", "put the subject first"),
    ("of them is", "put the subject first"),
    ("of which is told", "put the subject first"),
    ("so-manieth", "every nth"),
    ("nobody turns", "undisciplined (a clock)"),
    ("is turned", "is polled, is slewed"),
    ("who looks", "name the program that polls"),
    ("whoever", "name the program or the person"),
    ("what lacks", "what is missing"),
    ("which lacks", "without"),
    ("who lacks", "without"),
    ("became of", "the outcome of"),
    ("becomes of", "the outcome of"),
    ("what comes of", "the result of"),
    ("let out", "sent, released"),
    ("lets out", "sends, releases"),
    ("handed over", "passed, sent"),
    ("anew", "again, from the start"),
    ("has it not", "does not have it"),
    ("are called as", "are named after"),
    ("is no", "is not a"),
    ("are no", "are not"),
    ("has none", "has no ..., does not have one"),
    ("is found out", "is determined"),
    ("be found out", "be determined"),
    ("as it were", "delete it"),
    ("in silence", "without a message, silently"),
    ("without a word", "silently"),
    ("somebody", "name who"),
    ("a stretch of", "a part of, a period of"),
    ("so many", "state the number"),
    ("how often", "the number of times, the interval"),
];

/// First words of a doc comment that make it a clause instead of a name: "What waits" for "Bytes that wait".
const OPENINGS: &[&str] = &[
    "What ",
    "Whether ",
    "How ",
    "Where ",
    "Who ",
    "Whose ",
    "Whoever ",
    "Of ",
    "That ",
    "In which ",
    "In how many ",
    "From which ",
    "Until when ",
    "Since when ",
    "By what ",
    "For how ",
    "As many ",
];

/// The committed numbers.
const COMMITTED: &str = "xtask/english.txt";

/// A text of a file: a paragraph, a doc comment or a string literal.
#[derive(Debug, PartialEq)]
struct Text {
    line: usize,
    is_doc_comment: bool,
    text: String,
}

/// What to do with the finds.
#[derive(Default, clap::Args)]
pub(crate) struct English {
    /// Print every find
    #[arg(long)]
    list: bool,
    /// Write the numbers of today into xtask/english.txt where they are smaller
    #[arg(long)]
    lower: bool,
    /// Only files whose path contains one of these
    paths: Vec<String>,
}

pub(crate) fn run(english: &English) -> Result<(), String> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for path in files()? {
        if !english.paths.is_empty() && !english.paths.iter().any(|part| path.contains(part)) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(crate::root().join(&path)) else { continue };
        let texts = if path.ends_with(".rs") { of_rust(&text) } else { of_markdown(&text) };
        let count = found.entry(part(&path)).or_default();
        for text in texts {
            for (find, hint) in finds(&text) {
                *count += 1;
                if english.list {
                    anstream::println!("{path}:{}: \"{find}\": {hint}", text.line);
                }
            }
        }
    }
    if !english.paths.is_empty() {
        anstream::println!("{} finds", found.values().sum::<usize>());
        return Ok(());
    }
    judge(&found, english.lower)
}

fn judge(found: &BTreeMap<String, usize>, lower: bool) -> Result<(), String> {
    let path = crate::root().join(COMMITTED);
    let allowed = std::fs::read_to_string(&path).map_err(|e| format!("{COMMITTED}: {e}"))?;
    let allowed = parse(&allowed)?;
    let smaller: Vec<_> =
        allowed.iter().filter(|(part, allowed)| found.get(*part).unwrap_or(&0) < allowed).collect();
    let more = above(found, &allowed);
    if !more.is_empty() {
        return Err(format!(
            "idioms instead of plain English, more than {COMMITTED} allows: {}. `cargo xtask english --list PATH` shows them",
            more.join(", ")
        ));
    }
    if lower {
        let text: String = found
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(part, count)| format!("{part} {count}\n"))
            .collect();
        std::fs::write(&path, text).map_err(|e| format!("{COMMITTED}: {e}"))?;
    } else if !smaller.is_empty() {
        anstream::println!(
            "fewer idioms than {COMMITTED} allows: run `cargo xtask english --lower` and commit it"
        );
    }
    Ok(())
}

/// Parts with more finds than are allowed there.
fn above(found: &BTreeMap<String, usize>, allowed: &BTreeMap<String, usize>) -> Vec<String> {
    let more = found.iter().filter_map(|(part, count)| {
        let allowed = allowed.get(part).copied().unwrap_or(0);
        (*count > allowed).then(|| format!("{part} has {count} of {allowed}"))
    });
    more.collect()
}

fn parse(committed: &str) -> Result<BTreeMap<String, usize>, String> {
    let lines = committed.lines().map(|line| {
        let (part, count) =
            line.split_once(' ').ok_or_else(|| format!("{COMMITTED}: no number in `{line}`"))?;
        Ok((part.to_owned(), count.parse().map_err(|e| format!("{COMMITTED}: `{line}`: {e}"))?))
    });
    lines.collect()
}

/// Files that are searched: of Git, without those that are written by programs, and without this one.
fn files() -> Result<Vec<String>, String> {
    let patterns = ["*.rs", "README.md", "CHANGELOG.md", "docs/*.md"];
    let listed = Command::new("git").arg("ls-files").args(patterns).current_dir(crate::root()).output();
    let listed = listed.map_err(|e| format!("git does not run: {e}"))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let is_ours = |path: &&str| !path.starts_with("docs/reference/") && *path != "xtask/src/english.rs";
    Ok(listed.lines().filter(is_ours).map(str::to_owned).collect())
}

/// The part of the repository whose finds are counted together: a crate, a document.
fn part(path: &str) -> String {
    if path.ends_with(".md") {
        return path.to_owned();
    }
    let mut folders = Path::new(path).iter().map(|folder| folder.to_string_lossy());
    let first = folders.next().unwrap_or_default();
    match (first.as_ref(), folders.next()) {
        ("crates", Some(name)) => format!("crates/{name}"),
        _ => first.into_owned(),
    }
}

/// Phrases and openings in a text, each with its hint.
fn finds(text: &Text) -> Vec<(&'static str, &'static str)> {
    let lower = text.text.to_lowercase();
    let mut finds = Vec::new();
    for &(phrase, hint) in PHRASES {
        // "There is no host `d`" is plain, "`d` is no host" is not.
        let is_there = |found: usize| phrase.ends_with(" no") && lower[..found].ends_with("there ");
        let is_word = |found: usize| {
            let is_outside = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_');
            is_outside(lower[..found].chars().next_back())
                && is_outside(lower[found + phrase.len()..].chars().next())
        };
        let count = lower.match_indices(phrase).filter(|(at, _)| is_word(*at) && !is_there(*at)).count();
        finds.extend(std::iter::repeat_n((phrase, hint), count));
    }
    let opening = OPENINGS.iter().find(|opening| text.is_doc_comment && text.text.starts_with(**opening));
    finds
        .extend(opening.map(|opening| {
            (*opening, "begin with the thing: \"Bytes that wait\", \"Returns the deadline\"")
        }));
    finds
}

/// Paragraphs outside blocks of code.
fn of_markdown(text: &str) -> Vec<Text> {
    let mut texts = Vec::new();
    let (mut paragraph, mut is_code) = (None::<Text>, false);
    for (line, content) in (1..).zip(text.lines()) {
        let trimmed = content.trim_start();
        let is_fence = trimmed.starts_with("```");
        is_code ^= is_fence;
        if is_fence || is_code || trimmed.is_empty() || content.starts_with("    ") {
            texts.extend(paragraph.take());
            continue;
        }
        let paragraph =
            paragraph.get_or_insert_with(|| Text { line, is_doc_comment: false, text: String::new() });
        append(&mut paragraph.text, trimmed);
    }
    texts.extend(paragraph);
    texts
}

fn append(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(line);
}

/// Doc comments, consecutive lines as one text, and string literals.
fn of_rust(source: &str) -> Vec<Text> {
    let mut texts = Vec::new();
    let mut comment = None::<Text>;
    let mut rest = source;
    let mut line = 1;
    while let Some(next) = rest.chars().next() {
        let taken = match next {
            '/' if rest.starts_with("//") => {
                let end = rest.find('\n').unwrap_or(rest.len());
                let content = rest[..end].strip_prefix("///").or_else(|| rest[..end].strip_prefix("//!"));
                if let Some(content) = content.filter(|content| !content.starts_with('/')) {
                    let text = comment.get_or_insert_with(|| Text {
                        line,
                        is_doc_comment: true,
                        text: String::new(),
                    });
                    append(&mut text.text, content.trim());
                }
                // The line's end belongs to it: a comment goes on where the next line begins with one.
                (end + 1).min(rest.len())
            }
            '"' => {
                let length = string(rest);
                texts.extend(comment.take());
                let text = rest[1..length].trim_end_matches('"').replace("\\n", " ");
                let text = text.split_whitespace().filter(|word| *word != "\\").collect::<Vec<_>>().join(" ");
                texts.push(Text { line, is_doc_comment: false, text });
                length
            }
            'r' if is_raw(rest) => {
                let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
                let (begin, end) = (hashes + 2, format!("\"{}", "#".repeat(hashes)));
                let length = rest[begin..].find(&end).map_or(rest.len(), |found| begin + found + end.len());
                texts.extend(comment.take());
                let inner = rest[begin..length].trim_end_matches(end.as_str());
                texts.push(Text {
                    line,
                    is_doc_comment: false,
                    text: inner.split_whitespace().collect::<Vec<_>>().join(" "),
                });
                length
            }
            // A character, and not a lifetime.
            '\'' => match rest[1..].chars().next() {
                Some('\\') => rest[3..].find('\'').map_or(1, |found| found + 4),
                Some(c) if rest[1 + c.len_utf8()..].starts_with('\'') => c.len_utf8() + 2,
                _ => 1,
            },
            _ if next.is_alphanumeric() || next == '_' => {
                texts.extend(comment.take());
                let end = |c: char| !c.is_alphanumeric() && c != '_';
                rest.find(end).unwrap_or(rest.len())
            }
            _ => {
                if !next.is_whitespace() {
                    texts.extend(comment.take());
                }
                next.len_utf8()
            }
        };
        line += rest[..taken].matches('\n').count();
        rest = &rest[taken..];
    }
    texts.extend(comment);
    texts
}

fn is_raw(rest: &str) -> bool {
    rest[1..].trim_start_matches('#').starts_with('"')
}

/// The length of the string literal with which this begins.
fn string(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<&'static str> {
        of_rust(source).iter().flat_map(finds).map(|(phrase, _)| phrase).collect()
    }

    #[test]
    fn idioms_are_found_in_doc_comments_and_strings_only() {
        assert_eq!(found("/// What waits.\nfn a() {}"), ["What "]);
        assert_eq!(found("/// The queue, whose end is\n/// told.\nstruct A;"), ["is told"]);
        assert_eq!(found("let a = \"`{x}` is told\"; // is told"), ["is told"]);
        assert_eq!(
            found("let a = r#\"a \" is told\"#; let b = 'x'; let c: &'static str = \"so-manieth\";"),
            ["is told", "so-manieth"]
        );
        assert_eq!(found("let quote = '\"'; let is_told = 1; // What\n/* is told */"), Vec::<&str>::new());
        assert_eq!(found("let a = \"there is no host, and `d` is no host\";"), ["is no"]);
        assert_eq!(found("let a = \"it \\\n   is \\\n   told\";"), ["is told"]);
        assert_eq!(
            found("/// Bytes that wait. What waits longer is dropped: this_is told.\nfn a() {}"),
            ["What "; 0]
        );
    }

    #[test]
    fn lines_are_counted() {
        let texts = of_rust("fn a() {\n    let b = \"x\\\n  y\";\n    /// c\n    let d = 'e';\n}");
        let lines: Vec<_> = texts.iter().map(|text| (text.line, text.text.as_str())).collect();
        assert_eq!(lines, [(2, "x\\ y"), (4, "c")]);
    }

    #[test]
    fn code_in_documents_is_left_alone() {
        let text = "Nobody\nis told.\n\n```\nis told\n```\n\n    is told\n\nWhat is shown\n";
        let finds: Vec<_> = of_markdown(text).iter().flat_map(finds).map(|(phrase, _)| phrase).collect();
        assert_eq!(finds, ["is told"]);
    }

    #[test]
    fn numbers_may_only_go_down() {
        let counts = |text| parse(text).unwrap();
        let allowed = counts("README.md 2\ncrates/io 3\n");
        assert!(above(&counts("README.md 2\ncrates/io 1\n"), &allowed).is_empty());
        assert_eq!(
            above(&counts("README.md 3\ncrates/new 1\n"), &allowed),
            ["README.md has 3 of 2", "crates/new has 1 of 0"]
        );
        assert!(parse("README.md\n").is_err());
        assert_eq!(part("crates/io/src/a/b.rs"), "crates/io");
        assert_eq!(
            (part("interop/tests/a.rs"), part("docs/checks.md")),
            ("interop".into(), "docs/checks.md".into())
        );
    }
}
