//! A list that becomes another: values that stay keep their comments, and those that come stand as the others do.

use super::document::{Document, Value};

/// A list as it is written anew.
pub(super) struct List<'d> {
    /// What stands before the first value, and behind each.
    opening: &'d str,
    behind: Vec<&'d str>,
    /// What stands between two values that are new.
    usual: String,
    text: String,
    /// The value written last, by its place in the old list if it was there.
    last: Option<Option<usize>>,
}

impl<'d> List<'d> {
    /// A list that has values.
    pub(super) fn new(document: &Document<'d>, old: &Value, values: &[Value]) -> List<'d> {
        let first = values.first().map_or(old.span.end, |value| value.span.start);
        let next = values.iter().skip(1).map(|value| value.span.start).chain([old.span.end]);
        let behind: Vec<&str> =
            values.iter().zip(next).map(|(value, next)| document.slice(&(value.span.end..next))).collect();
        let opening = document.slice(&(old.span.start..first));
        let usual = match opening.rsplit_once('\n') {
            Some((_, indent)) => format!(",\n{}", if indent.trim().is_empty() { indent } else { "    " }),
            None => ", ".to_owned(),
        };
        List { opening, behind, usual, text: opening.to_owned(), last: None }
    }

    /// The next value, with its place in the old list if it was there.
    pub(super) fn push(&mut self, own: Option<usize>, value: &str) {
        if let Some(last) = self.last {
            let separator = self.between(last, own);
            self.text.push_str(&separator);
        }
        self.text.push_str(value);
        self.last = Some(own);
    }

    /// The text of the list.
    pub(super) fn finish(mut self) -> String {
        let end = self.behind.len().saturating_sub(1);
        let tail = self.behind.last().copied().unwrap_or("]");
        let tail = match self.last.flatten() {
            Some(last) if last == end => tail.to_owned(),
            last => match (last.map(|last| self.of_line(last)), tail.split_once('\n')) {
                (Some(line), Some((_, rest))) => line + rest,
                (None, Some((_, rest))) => format!(",\n{rest}"),
                // On one line there are no comments.
                (_, None) => tail.to_owned(),
            },
        };
        self.text.push_str(&tail);
        self.text
    }

    /// What goes between two values.
    fn between(&self, last: Option<usize>, next: Option<usize>) -> String {
        if let (Some(last), Some(next)) = (last, next)
            && next == last + 1
        {
            return self.behind[last].to_owned();
        }
        if !self.usual.contains('\n') {
            return self.usual.clone();
        }
        // The rest of the last value's line is its own, and so are comments above the next value.
        let line = last.map_or_else(|| ",\n".to_owned(), |last| self.of_line(last));
        let above = match next {
            Some(0) => self.opening.split_once('\n'),
            Some(next) => self.behind[next - 1].split_once('\n'),
            None => None,
        };
        let indent = self.usual.trim_start_matches([',', '\n']);
        line + above.map_or(indent, |(_, above)| above)
    }

    /// What stands behind a value on its line, with a comma and the line's end.
    fn of_line(&self, place: usize) -> String {
        let line = self.behind[place].split_once('\n').map_or("", |(line, _)| line.trim_end_matches('\r'));
        let comma = if line.trim_start().starts_with(',') { "" } else { "," };
        format!("{comma}{line}\n")
    }
}
