//! What is wrong with an experiment file: one clear sentence each, with the place.

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use crate::setting::{Setting, Sources};

/// Bytes of the longest message.
const LONGEST_MESSAGE: usize = 2000;
/// The most problems of a file that are shown.
const MOST_PROBLEMS: usize = 200;

/// Everything that is wrong with a file, in the order of its lines, then with those that it names; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as its reader called it; of a setting, its text on the command line.
    pub file: Arc<str>,
    /// Whether that is a setting, which has one line.
    is_setting: bool,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, what was expected and what to do.
    pub message: String,
    /// The source line, with tabs as single spaces; of a long line the part around the place.
    excerpt: String,
    /// How many characters of the excerpt stand before the place.
    indent: usize,
    /// How many characters of the line are meant, at least 1.
    width: usize,
}

/// Of a line so many characters are shown at most.
const MOST_SHOWN: usize = 160;
/// Of a longer line so many before the place.
const SHOWN_BEFORE: usize = 60;
/// What a message quotes is shortened if it has more characters than this.
const MOST_QUOTED: usize = 200;
/// Of what is shortened so many characters are quoted.
const QUOTED: usize = 80;

/// A remark on a range of bytes of a text; becomes a [`Problem`] when the text is at hand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Remark {
    /// The file that the experiment file names and that the remark is about, as written there; `None` for the experiment
    /// file itself.
    pub(crate) file: Option<Arc<str>>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) message: String,
}

impl Problems {
    /// Places remarks on the text they are about: the experiment file's, or what `other` gives for a file that it names.
    /// Equal ones are told once.
    pub(crate) fn place(
        remarks: Vec<Remark>,
        file: &str,
        text: &str,
        other: impl Fn(&str) -> Arc<str>,
    ) -> Problems {
        Problems::place_in(remarks, file, &Sources::new(text, &[]), other)
    }

    /// The same of a file with settings.
    pub(crate) fn place_in(
        mut remarks: Vec<Remark>,
        file: &str,
        sources: &Sources<'_>,
        other: impl Fn(&str) -> Arc<str>,
    ) -> Problems {
        remarks.sort();
        remarks.dedup();
        remarks.truncate(MOST_PROBLEMS);
        let main: Arc<str> = file.into();
        let placed = remarks.into_iter().map(|mut remark| match remark.file.take() {
            None => {
                let (text, setting, begin) = sources.of(&remark);
                remark.start = remark.start.saturating_sub(begin);
                remark.end = remark.end.saturating_sub(begin);
                match setting {
                    None => Problem::place(remark, &main, text),
                    Some(shown) => {
                        Problem { is_setting: true, ..Problem::place(remark, &shown.into(), text) }
                    }
                }
            }
            Some(named) => {
                let (file, text) = (beside(file, &named).into(), other(&named));
                Problem::place(remark, &file, &text)
            }
        });
        Problems(placed.collect())
    }

    /// A problem with these bytes of a setting's text.
    pub(crate) fn of_setting(setting: &Setting, at: Range<usize>, message: &str) -> Problems {
        let shown = setting.shown();
        let placed = Problem::place(Remark::new(at, message), &shown.as_str().into(), &shown);
        Problems(vec![Problem { is_setting: true, ..placed }])
    }

    /// What is wrong with another text that is read like an experiment file, an agent's configuration for one: the bytes
    /// that each remark is about, and what is wrong there. `None` if there are no remarks.
    pub fn of(
        file: &str,
        text: &str,
        remarks: impl IntoIterator<Item = (Range<usize>, String)>,
    ) -> Option<Problems> {
        let remarks: Vec<Remark> =
            remarks.into_iter().map(|(at, message)| Remark::new(at, message)).collect();
        let no_other = |_: &str| Arc::from("");
        (!remarks.is_empty()).then(|| Problems::place(remarks, file, text, no_other))
    }

    /// Each of them.
    pub fn iter(&self) -> core::slice::Iter<'_, Problem> {
        self.0.iter()
    }
}

impl<'p> IntoIterator for &'p Problems {
    type Item = &'p Problem;
    type IntoIter = core::slice::Iter<'p, Problem>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Remark {
    pub(crate) fn new(at: Range<usize>, message: impl Into<String>) -> Remark {
        let mut message = message.into();
        if message.len() > LONGEST_MESSAGE {
            // A name or a value that fills pages.
            message.truncate(floor_to_character(&message, LONGEST_MESSAGE));
            message.push('…');
            message.shrink_to_fit();
        }
        Remark { file: None, start: at.start, end: at.end, message }
    }
}

impl Problem {
    fn place(remark: Remark, file: &Arc<str>, text: &str) -> Problem {
        let start = floor_to_character(text, remark.start);
        let end = floor_to_character(text, remark.end).max(start);
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let meant = text[start..end.min(line_end)].trim_end();
        let column = text[line_start..start].chars().count();
        let (excerpt, indent) = part_around(text[line_start..line_end].trim_end(), column);
        Problem {
            file: Arc::clone(file),
            is_setting: false,
            line: before.matches('\n').count() + 1,
            column: column + 1,
            message: with_short_quotes(&remark.message),
            excerpt,
            indent,
            width: meant.chars().count().max(1),
        }
    }

    /// Whether it is about a setting on the command line, and not about a file.
    pub fn is_setting(&self) -> bool {
        self.is_setting
    }

    /// How many characters of its line are meant, at least 1.
    pub fn width(&self) -> usize {
        self.width
    }

    /// `file:line:column: message`, without the excerpt; of a setting `--set key=value: message`.
    pub fn headline(&self) -> String {
        if self.is_setting {
            return format!("{}: {}", self.file, self.message);
        }
        format!("{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

/// The headline, and under it the source line with the place underlined.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        if self.excerpt.trim().is_empty() {
            return Ok(());
        }
        let number = if self.is_setting { String::from(" ") } else { self.line.to_string() };
        let gutter = " ".repeat(number.len());
        let indent = " ".repeat(self.indent);
        let shown = self.excerpt.chars().count().saturating_sub(self.indent).max(1);
        write!(f, "\n{number} | {}\n{gutter} | {indent}{}", self.excerpt, "^".repeat(self.width.min(shown)))
    }
}

/// All of them, each on lines of its own.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// What is shown of a line for a place behind so many characters, and how many of the shown ones stand before it. Dots stand
/// for what is left out.
fn part_around(line: &str, before: usize) -> (String, usize) {
    let line = line.replace('\t', " ");
    let count = line.chars().count();
    if count <= MOST_SHOWN {
        return (line, before);
    }
    let from = before.saturating_sub(SHOWN_BEFORE).min(count - MOST_SHOWN);
    let shown = line.chars().skip(from).take(MOST_SHOWN);
    let dots = |is_cut: bool| if is_cut { "..." } else { "" };
    let (start, end) = (dots(from > 0), dots(from + MOST_SHOWN < count));
    (format!("{start}{}{end}", shown.collect::<String>()), before - from + start.len())
}

/// The message with what it quotes shortened: a wrong value may be as long as a file.
fn with_short_quotes(message: &str) -> String {
    let short = |(index, part): (usize, &str)| {
        let count = part.chars().count();
        // Between the first and the second backtick, the third and the fourth, ...
        if index % 2 == 0 || count <= MOST_QUOTED {
            return part.to_owned();
        }
        format!("{}...", part.chars().take(QUOTED).collect::<String>())
    };
    message.split('`').enumerate().map(short).collect::<Vec<_>>().join("`")
}

/// What a file is called that `file` names by a path relative to itself.
fn beside(file: &str, named: &str) -> String {
    match file.rfind('/') {
        Some(slash) if !named.starts_with('/') => format!("{}{named}", &file[..=slash]),
        _ => named.to_owned(),
    }
}

/// The start of the character that holds byte `at`.
fn floor_to_character(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// How many candidates are compared with what was written at most.
const MOST_COMPARED: usize = 2000;
/// How many candidates are named at most.
const MOST_NAMED: usize = 20;

/// How many slips of the fingers a word of that length may hold before it is taken for another word.
pub(crate) fn slips(written: &str) -> usize {
    match written.chars().count() {
        0..=2 => 0,
        3..=7 => 1,
        _ => 2,
    }
}

/// The candidate that was meant, if what was written is a slip or two away from it.
pub fn nearest<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    // A word that is far too long for all of them is not compared.
    let longest = candidates.iter().map(|candidate| candidate.len()).max().unwrap_or(0);
    let is_comparable = written.len() <= longest + 8 && candidates.len() <= MOST_COMPARED;
    let compared = candidates.into_iter().filter(|_| is_comparable);
    let distances = compared.map(|candidate| (strsim::damerau_levenshtein(written, candidate), candidate));
    let (distance, candidate) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= slips(written)).then_some(candidate)
}

/// `; did you mean ...?` with the candidate that is nearest to what was written, or all of them if none is near.
pub fn suggestion<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    match nearest(written, candidates.iter().copied()) {
        Some(candidate) => format!("; did you mean `{candidate}`?"),
        _ if candidates.is_empty() => String::new(),
        _ => match candidates.split_at_checked(MOST_NAMED) {
            Some((some, others)) if others.len() > 1 => {
                format!("; known: {}, and {} others", enumerate(some.iter().copied()), others.len())
            }
            _ => format!("; known: {}", enumerate(candidates)),
        },
    }
}

/// `` `a`, `b` and `c` ``
pub fn enumerate<'c>(names: impl IntoIterator<Item = &'c str>) -> String {
    joined(names, "and")
}

/// `` `a`, `b` or `c` ``
pub(crate) fn either<'c>(names: impl IntoIterator<Item = &'c str>) -> String {
    joined(names, "or")
}

fn joined<'c>(names: impl IntoIterator<Item = &'c str>, word: &str) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "none".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} {word} {last}", others.join(", ")),
    }
}
