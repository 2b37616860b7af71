//! A text in TOML as its statements, each of which knows where it stands: what a reader of values forgets and an editor
//! needs.

use core::ops::Range;

use toml_parser::Source;
use toml_parser::parser::{Event, EventKind, RecursionGuard, parse_document};

/// Deepest nesting of values that is read: that of the parser of values.
const DEEPEST: u32 = 80;

/// A text and what stands in it.
pub(super) struct Document<'t> {
    pub(super) text: &'t str,
    pub(super) statements: Vec<Statement>,
}

/// A header or a key with its value.
pub(super) struct Statement {
    /// Its lines as a whole, with the end of the last one.
    pub(super) lines: Range<usize>,
    /// The table that it opens, or the one that it stands in.
    pub(super) header: Vec<Key>,
    /// What it says there; nothing if it is a header itself.
    pub(super) pair: Option<Pair>,
    /// Whether the table is one of a list, `[[...]]`; no experiment has any.
    pub(super) is_listed: bool,
}

/// One part of a dotted key.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) span: Range<usize>,
    pub(super) name: String,
}

/// `key = value`
pub(super) struct Pair {
    pub(super) keys: Vec<Key>,
    pub(super) value: Value,
}

/// What stands behind the equals sign.
pub(super) struct Value {
    pub(super) span: Range<usize>,
    pub(super) item: Item,
}

/// What can stand there.
pub(super) enum Item {
    Scalar,
    Array(Vec<Value>),
    Table(Vec<Pair>),
}

impl Pair {
    /// From its key to the end of its value.
    pub(super) fn span(&self) -> Range<usize> {
        self.keys.first().map_or(self.value.span.start, |key| key.span.start)..self.value.span.end
    }
}

impl<'t> Document<'t> {
    /// Takes a text apart that is TOML; of another one, what can be understood.
    pub(super) fn new(text: &'t str) -> Document<'t> {
        let source = Source::new(text);
        let tokens = source.lex().into_vec();
        let mut events: Vec<Event> = Vec::new();
        parse_document(&tokens, &mut RecursionGuard::new(&mut events, DEEPEST), &mut ());
        events.retain(|event| {
            !matches!(event.kind(), EventKind::Whitespace | EventKind::Comment | EventKind::Newline)
        });
        let mut parser = Parser { source, events: &events, next: 0 };
        let mut statements = Vec::new();
        let mut table: (Vec<Key>, bool) = Default::default();
        let mut lists: Vec<Vec<Key>> = Vec::new();
        while let Some(event) = parser.peek() {
            let start = event.span().start();
            let pair = match event.kind() {
                EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                    parser.next += 1;
                    let keys = parser.keys();
                    if event.kind() == EventKind::ArrayTableOpen {
                        lists.push(keys.clone());
                    }
                    // `[a.b]` behind `[[a]]` is in the last table of the list.
                    let is_of = |list: &Vec<Key>| {
                        list.len() <= keys.len() && list.iter().zip(&keys).all(|(a, b)| a.name == b.name)
                    };
                    table = (keys.clone(), lists.iter().any(is_of));
                    parser.next += 1;
                    None
                }
                EventKind::SimpleKey => match parser.pair() {
                    Some(pair) => Some(pair),
                    None => continue,
                },
                _ => {
                    parser.next += 1;
                    continue;
                }
            };
            let end = pair.as_ref().map_or_else(|| parser.end(), |pair| pair.value.span.end);
            statements.push(Statement {
                lines: lines(text, start..end),
                header: table.0.clone(),
                pair,
                is_listed: table.1,
            });
        }
        Document { text, statements }
    }

    /// The end of a line as this text writes it.
    pub(super) fn newline(&self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }

    /// The text of a range.
    pub(super) fn slice(&self, at: &Range<usize>) -> &'t str {
        self.text.get(at.clone()).unwrap_or_default()
    }
}

/// The whole lines on which a range lies.
fn lines(text: &str, at: Range<usize>) -> Range<usize> {
    let start = text.get(..at.start).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let end = text.get(at.end..).and_then(|behind| behind.find('\n'));
    start..end.map_or(text.len(), |newline| at.end + newline + 1)
}

/// Goes through the events of a text.
struct Parser<'t, 'e> {
    source: Source<'t>,
    events: &'e [Event],
    next: usize,
}

impl Parser<'_, '_> {
    fn peek(&self) -> Option<Event> {
        self.events.get(self.next).copied()
    }

    /// Where the last event ended.
    fn end(&self) -> usize {
        self.next.checked_sub(1).and_then(|last| self.events.get(last)).map_or(0, |event| event.span().end())
    }

    fn keys(&mut self) -> Vec<Key> {
        let mut keys = Vec::new();
        while let Some(event) = self.peek() {
            match event.kind() {
                EventKind::SimpleKey => keys
                    .push(Key { span: event.span().start()..event.span().end(), name: self.decoded(&event) }),
                EventKind::KeySep => {}
                _ => break,
            }
            self.next += 1;
        }
        keys
    }

    fn decoded(&self, event: &Event) -> String {
        let mut name = std::borrow::Cow::Borrowed("");
        if let Some(raw) = self.source.get(event) {
            raw.decode_key(&mut name, &mut ());
        }
        name.into_owned()
    }

    fn pair(&mut self) -> Option<Pair> {
        let keys = self.keys();
        if self.peek()?.kind() != EventKind::KeyValSep {
            return None;
        }
        self.next += 1;
        Some(Pair { keys, value: self.value()? })
    }

    fn value(&mut self) -> Option<Value> {
        let event = self.peek()?;
        let start = event.span().start();
        let item = match event.kind() {
            EventKind::Scalar => {
                self.next += 1;
                Item::Scalar
            }
            EventKind::ArrayOpen => {
                self.next += 1;
                let mut values = Vec::new();
                while self.peek()?.kind() != EventKind::ArrayClose {
                    match self.peek()?.kind() {
                        EventKind::ValueSep => self.next += 1,
                        _ => values.push(self.value()?),
                    }
                }
                self.next += 1;
                Item::Array(values)
            }
            EventKind::InlineTableOpen => {
                self.next += 1;
                let mut pairs = Vec::new();
                while self.peek()?.kind() != EventKind::InlineTableClose {
                    match self.peek()?.kind() {
                        EventKind::ValueSep => self.next += 1,
                        _ => pairs.push(self.pair()?),
                    }
                }
                self.next += 1;
                Item::Table(pairs)
            }
            _ => return None,
        };
        Some(Value { span: start..self.end(), item })
    }
}

/// The text of a value that is a text, and where it stands between its delimiters; `None` if it is none, or is written with
/// escapes or over several lines.
pub(super) fn plain_text<'t>(
    document: &Document<'t>,
    value: &Range<usize>,
) -> Option<(&'t str, Range<usize>)> {
    let written = document.slice(value);
    let quote = written.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let inner = written.strip_prefix(quote)?.strip_suffix(quote)?;
    let is_plain = !inner.contains(['\\', '"', '\'', '\n']);
    is_plain.then(|| (inner, value.start + 1..value.end - 1))
}
