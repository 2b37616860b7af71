//! Text on its way to a terminal. Peers, files and archives of others contain names and reasons that a terminal would obey:
//! everything that is printed comes through here, and keeps nothing that does more than colour.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text without what a terminal would obey: control characters and those that change the direction of what follows are
/// escaped as `\u{1b}`. Line ends, tabs, and the colours and weights of this program's own styles stay.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| c != '\n' && c != '\t' && is_obeyed(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = style(rest).unwrap_or(c.len_utf8());
        let (now, later) = rest.split_at(length);
        match c {
            '\r' if later.starts_with('\n') => {}
            c if length == c.len_utf8() && c != '\n' && c != '\t' && is_obeyed(c) => {
                out.extend(c.escape_unicode());
            }
            _ => out.push_str(now),
        }
        rest = later;
    }
    Cow::Owned(out)
}

/// The same of one line: without line ends, tabs or styles.
pub(crate) fn escaped_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_obeyed(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// JSON with the same characters in its strings as `\u009b`. JSON itself escapes only those below U+0020.
pub(crate) fn escaped_json(json: &str) -> Cow<'_, str> {
    let is_left = |c: char| c > '\u{1f}' && is_obeyed(c);
    if !json.contains(is_left) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_left(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether a terminal does something else than to show it: controls (C0, DEL and C1) and Unicode's bidirectional ones.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The length of the style with which the text begins (ECMA-48 SGR): weights and colours of letters only, so that nothing
/// can be hidden.
fn style(text: &str) -> Option<usize> {
    let codes = text.strip_prefix("\x1b[")?;
    let length = codes.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let is_own = |code: &str| {
        matches!(code, "" | "0" | "1" | "2" | "3" | "4" | "22" | "23" | "24" | "39")
            || matches!(code.parse(), Ok(31..=37 | 90..=97))
    };
    (codes[length..].starts_with('m') && codes[..length].split(';').all(is_own))
        .then_some("\x1b[m".len() + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        for (hostile, shown) in [
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("\x1b[2J", "\\u{1b}[2J"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("one\rtwo\r\nthree\t", "one\\u{d}two\nthree\t"),
            // Hidden, black, and on a background.
            ("\x1b[8m", "\\u{1b}[8m"),
            ("\x1b[30m", "\\u{1b}[30m"),
            ("\x1b[1;41m", "\\u{1b}[1;41m"),
            ("\x1b[1", "\\u{1b}[1"),
            ("\x1b", "\\u{1b}"),
        ] {
            assert_eq!(escaped(hostile), shown);
        }
        assert_eq!(escaped_line("a\nb\x1b[1m"), "a\\u{a}b\\u{1b}[1m");
    }

    #[test]
    fn own_styles_and_all_scripts_stay() {
        for text in ["\x1b[1m\x1b[31merror:\x1b[0m é 漢 \u{1f3b5}", "\x1b[1;93mwarning:\x1b[m", "a\n\tb"] {
            assert_eq!(escaped(text), text);
        }
    }

    #[test]
    fn json_means_the_same() {
        let text = "\u{9b}2J\u{7f}\u{202e}\x1b";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let shown = escaped_json(&json);
        assert!(!shown.contains(|c| c != '\n' && is_obeyed(c)), "{shown}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [text]);
    }
}
