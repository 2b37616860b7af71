//! Text for terminals, pipes and files: paragraphs and tables, with or without colour. All commands print through this.

mod table;

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::Style as Ansi;
use textwrap::core::display_width;

pub use table::{Cell, Column, Table};

/// Headings and names.
pub const BOLD: Ansi = Ansi::new().bold();
/// Notes and the headings of tables.
pub const QUIET: Ansi = Ansi::new().dimmed();
/// Everything else.
pub const PLAIN: Ansi = Ansi::new();

/// Whether text has colours. Colour never carries meaning of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Text only.
    #[default]
    Plain,
    /// With ANSI colours.
    Colour,
}

/// Where text is shown. The default is a pipe or a file: no colours, lines of any length, every row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// Whether it shows colours.
    pub style: Style,
    /// Columns of the terminal; `None` for a pipe or a file, where no line is broken and no row is left out.
    pub width: Option<usize>,
}

impl Screen {
    /// A terminal with this many columns, without colours.
    pub fn of_width(columns: usize) -> Screen {
        Screen { style: Style::Plain, width: Some(columns) }
    }
}

/// Text that is being laid out for a screen. Control characters in what it is given become U+FFFD: a name from a file
/// cannot move the cursor.
#[derive(Clone, Debug)]
pub struct Text {
    text: String,
    screen: Screen,
}

impl Text {
    /// No text yet.
    pub fn new(screen: Screen) -> Text {
        Text { text: String::new(), screen }
    }

    /// The screen that it is laid out for.
    pub fn screen(&self) -> Screen {
        self.screen
    }

    /// Whether there is no text yet.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Adds a paragraph, broken at spaces where the screen has a width.
    pub fn paragraph(&mut self, text: &str, ansi: Ansi) {
        self.hanging(0, 0, text, ansi);
    }

    /// Adds a paragraph that is indented by so many columns.
    pub fn indented(&mut self, indent: usize, text: &str, ansi: Ansi) {
        self.hanging(indent, indent, text, ansi);
    }

    /// Adds a paragraph behind a label; its further lines begin at column `indent`.
    pub fn labelled(&mut self, label: &str, label_ansi: Ansi, indent: usize, text: &str, ansi: Ansi) {
        let label = clean(label);
        let gap = table::GAP.max(indent.saturating_sub(display_width(&label)));
        let first = display_width(&label) + gap;
        let lines = self.wrapped(text, first, indent);
        self.paint(&label, label_ansi);
        if lines.iter().any(|line| !line.is_empty()) {
            self.spaces(gap);
        }
        self.lines(&lines, indent, ansi);
    }

    /// Adds a line that is never broken: a command to be copied.
    pub fn verbatim(&mut self, indent: usize, text: &str, ansi: Ansi) {
        self.spaces(indent);
        self.paint(&clean(text), ansi);
        self.blank();
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) {
        table::lay_out(table, self);
    }

    /// Adds text that is laid out already, and a line's end.
    pub fn block(&mut self, text: &str) {
        self.text.push_str(text);
        self.blank();
    }

    fn hanging(&mut self, first: usize, indent: usize, text: &str, ansi: Ansi) {
        let lines = self.wrapped(text, first, indent);
        self.spaces(first);
        self.lines(&lines, indent, ansi);
    }

    /// The lines of a paragraph whose first line begins at column `first` and the others at `indent`.
    fn wrapped(&self, text: &str, first: usize, indent: usize) -> Vec<String> {
        let words = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
        let Some(width) = self.screen.width else { return vec![words] };
        // textwrap counts the indentation of the first line and of the others as text.
        let (first, indent) = (" ".repeat(first), " ".repeat(indent));
        let options = textwrap::Options::new(width.max(1)).initial_indent(&first).subsequent_indent(&indent);
        let lines = textwrap::wrap(&words, options).into_iter().enumerate();
        lines
            .map(|(place, line)| line[if place == 0 { first.len() } else { indent.len() }..].to_owned())
            .collect()
    }

    fn lines(&mut self, lines: &[String], indent: usize, ansi: Ansi) {
        for (place, line) in lines.iter().enumerate() {
            if place > 0 {
                self.spaces(indent);
            }
            self.paint(line, ansi);
            self.blank();
        }
    }

    fn spaces(&mut self, count: usize) {
        self.text.extend(std::iter::repeat_n(' ', count));
    }

    fn paint(&mut self, text: &str, ansi: Ansi) {
        match self.screen.style {
            Style::Colour if ansi != PLAIN && !text.is_empty() => {
                // Writing to a String cannot fail.
                let _ = write!(self.text, "{ansi}{text}{ansi:#}");
            }
            _ => self.text.push_str(text),
        }
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.text
    }
}

/// Text for a terminal of this width, with lines that are longer broken at spaces and indented as they begin. Lines of a file
/// that are quoted, behind their number and a `|`, stay.
pub fn broken(text: &str, width: Option<usize>) -> Cow<'_, str> {
    let Some(width) = width else { return Cow::Borrowed(text) };
    let is_quoted =
        |line: &str| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').starts_with('|');
    let broken = |line| {
        if is_quoted(line) || display_width(line) <= width {
            return Cow::Borrowed(line);
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let options = textwrap::Options::new(width)
            .subsequent_indent(indent)
            .break_words(false)
            .word_separator(textwrap::WordSeparator::AsciiSpace)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        Cow::Owned(textwrap::fill(line, options))
    };
    Cow::Owned(text.split('\n').map(broken).collect::<Vec<_>>().join("\n"))
}

/// The text with U+FFFD in place of control characters.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: Option<usize>, add: impl FnOnce(&mut Text)) -> String {
        let mut text = Text::new(Screen { style: Style::Plain, width });
        add(&mut text);
        text.into()
    }

    #[test]
    fn a_paragraph_is_broken_at_spaces_on_a_screen_and_nowhere_in_a_pipe() {
        let long = "one two three four";
        assert_eq!(shown(Some(9), |text| text.paragraph(long, PLAIN)), "one two\nthree\nfour\n");
        assert_eq!(shown(None, |text| text.paragraph(long, PLAIN)), "one two three four\n");
        let indented = shown(Some(10), |text| text.indented(2, long, PLAIN));
        assert_eq!(indented, "  one two\n  three\n  four\n");
        let labelled = shown(Some(14), |text| text.labelled("label", BOLD, 2, long, PLAIN));
        assert_eq!(labelled, "label  one two\n  three four\n");
    }

    #[test]
    fn long_lines_are_broken_and_quoted_ones_are_not() {
        let text = "one two-three four\n  five six seven\n12 | a = 1 # and so on\n   |     ^\n";
        let shown = "one\ntwo-three\nfour\n  five six\n  seven\n12 | a = 1 # and so on\n   |     ^\n";
        assert_eq!(broken(text, Some(11)), shown);
        assert_eq!(broken(text, None), text);
        let red = "\u{1b}[31merror:\u{1b}[0m one two three";
        assert_eq!(broken(red, Some(14)), "\u{1b}[31merror:\u{1b}[0m one two\nthree");
        assert_eq!(broken("an-unbreakable-word", Some(5)), "an-unbreakable-word");
    }

    #[test]
    fn control_characters_do_not_get_through() {
        let text = shown(None, |text| text.paragraph("a\u{1b}[2Jb", PLAIN));
        assert_eq!(text, "a\u{fffd}[2Jb\n");
    }
}
