//! A key as a line of whole numbers, for searches: what it may be, what it is, and how its values are written.

use core::fmt::Write as _;
use core::ops::RangeInclusive;

use trunkline_core::Distribution;
use trunkline_core::schema::{Kind, Limit, Value};

use crate::experiment::Experiment;
use crate::files::Shelf;
use crate::schema::Schema;
use crate::tree::Item;
use crate::{link_profile, quantity, sweep, tree};

/// Grains in a whole: of a share, of a plain number.
const SHARE_GRAINS: f64 = 1e9;
const NUMBER_GRAINS: f64 = 1e6;

/// A key that takes a count, a rate, a size, a duration, a share or a number, one of which can be searched for. Values are
/// counted in *grains*: nanoseconds, bits per second, bytes, packets, billionths of a share, millionths of a number.
#[derive(Clone, Debug)]
pub struct Searchable {
    key: String,
    kind: Kind,
    now: Option<u64>,
    unit: Unit,
}

/// The unit in which values are written, and how many grains it has.
#[derive(Clone, Debug, PartialEq)]
struct Unit {
    name: String,
    grains: u64,
}

impl Experiment {
    /// A key of this experiment as a line of numbers, or several with commas between them that have the same value; it need
    /// not be swept.
    ///
    /// # Errors
    /// In a sentence, if there is no such key, if it is one for all points, if it takes words, or if keys that are to have
    /// the same value are of two kinds.
    pub fn searchable(&self, key: &str) -> Result<Searchable, String> {
        let mut root =
            tree::parse(&self.text).map_err(|_| "the experiment's text cannot be read".to_owned())?;
        link_profile::fill_in_files(&mut root, &Shelf::new(&self.files), u64::MAX)
            .map_err(|remark| remark.message)?;
        let table = root.table().cloned().unwrap_or_default();
        let swept = self.axes.iter().map(|axis| axis.key.as_str()).chain([key]).flat_map(sweep::together);
        let known = sweep::sweepable(&Schema::default(), &table, &swept.collect::<Vec<_>>());
        let together: Vec<_> =
            sweep::together(key).map(|key| sweep::find(key, &known)).collect::<Result<_, _>>()?;
        let Some((found, others)) = together.split_first() else { return Err("name a key".to_owned()) };
        let kind = |key: &sweep::Sweepable| key.kind.map(|kind| core::mem::discriminant(plain(&kind)));
        if let Some(other) = others.iter().find(|other| kind(other) != kind(found)) {
            return Err(format!(
                "`{}` and `{}` do not take the same values; search for them one by one",
                found.key, other.key
            ));
        }
        let takes =
            |what: String| format!("`{key}` takes {what}: there is no largest or smallest to search for");
        let kind = found.kind.ok_or_else(|| takes("a name, a word or a table".to_owned()))?;
        let mut searchable = Searchable::of(key, kind).ok_or_else(|| takes(quantity::describe(&kind)))?;
        if let Some(now) = &found.now {
            searchable = searchable.in_unit_of(now);
            searchable.now = searchable.parse(now).ok();
        }
        Ok(searchable)
    }
}

/// The kind of one value.
fn plain(kind: &Kind) -> &Kind {
    if let Kind::OverTime(of) = kind { of } else { kind }
}

impl Searchable {
    /// A key of this kind; `None` if it takes no numbers.
    pub(crate) fn of(key: &str, kind: Kind) -> Option<Searchable> {
        match kind {
            Kind::OverTime(of) => Searchable::of(key, *of),
            Kind::Flag
            | Kind::Text
            | Kind::File
            | Kind::DeliveryTrace
            | Kind::Choice(_)
            | Kind::ChoiceOrFile(_) => None,
            _ => Some(Searchable { key: key.to_owned(), unit: default_unit(&kind), kind, now: None }),
        }
    }

    /// Whether it is a share, which may be written as a number from 0 to 1.
    pub(crate) fn is_share(&self) -> bool {
        matches!(self.kind, Kind::Ratio)
    }

    /// A value as it stands in the tree of a file.
    pub(crate) fn item(&self, value: u64) -> Item {
        match self.kind {
            Kind::Integer { .. } => Item::Integer(value.into()),
            Kind::Number { .. } => Item::Number(value as f64 / NUMBER_GRAINS),
            _ => Item::Text(self.written(value).into()),
        }
    }

    /// `flow.voice.count`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What the file says, or what holds if it says nothing; `None` if that is not one value of the range.
    pub fn now(&self) -> Option<u64> {
        self.now
    }

    /// Whether it counts things, so that a search should find it to the last one.
    pub fn is_count(&self) -> bool {
        self.unit.grains == 1 && matches!(self.kind, Kind::Integer { .. } | Kind::Limit)
    }

    /// The unit in which values are written: `kbit/s`; empty for plain numbers.
    pub fn unit(&self) -> &str {
        &self.unit.name
    }

    /// How many grains a unit has.
    pub fn unit_grains(&self) -> u64 {
        self.unit.grains
    }

    /// What the file may say.
    pub fn range(&self) -> RangeInclusive<u64> {
        match self.kind {
            Kind::Duration { min, max } | Kind::Durations { min, max } => min.as_nanos()..=max.as_nanos(),
            Kind::Rate { min, max } => min.bits_per_second()..=max.bits_per_second(),
            Kind::Bytes { min, max } | Kind::Sizes { min, max } => min.count()..=max.count(),
            Kind::Integer { min, max } => min..=max,
            Kind::Number { min, max } => grains(min, NUMBER_GRAINS)..=grains(max, NUMBER_GRAINS),
            Kind::Limit => 1..=u64::MAX,
            _ => 0..=SHARE_GRAINS as u64,
        }
    }

    /// The same, with values written in the unit of this one, as far as that has one.
    pub fn in_unit_of(mut self, text: &str) -> Searchable {
        let unit = text.trim().trim_start_matches(|c: char| !c.is_alphabetic() && c != '%');
        // The exponent of `1e3 us` is no unit.
        let unit =
            unit.trim_start_matches(['e', 'E']).trim_start_matches(|c: char| !c.is_alphabetic() && c != '%');
        let unit = match (&self.kind, unit) {
            (Kind::Rate { .. }, unit) if !unit.ends_with("/s") => format!("{unit}/s"),
            (Kind::Limit, "packet") => "packets".to_owned(),
            (_, unit) => unit.to_owned(),
        };
        // Which of packets and bytes a limit counts hangs on the unit itself.
        let named = Searchable { unit: Unit { name: unit.clone(), grains: 1 }, ..self.clone() };
        if let Some(grains) =
            named.read(&format!("1 {unit}")).filter(|grains| *grains > 0 && !unit.is_empty())
        {
            self.unit = Unit { name: unit, grains };
        }
        self
    }

    /// Reads a value, which must be of the range.
    ///
    /// # Errors
    /// In a sentence that says what was expected.
    pub fn parse(&self, text: &str) -> Result<u64, String> {
        let value = self.read(text).filter(|value| self.range().contains(value));
        value.ok_or_else(|| {
            let one = match self.kind {
                Kind::Limit => format!("a limit in {}", self.unit.name),
                Kind::Durations { min, max } => quantity::describe(&Kind::Duration { min, max }),
                Kind::Sizes { min, max } => quantity::describe(&Kind::Bytes { min, max }),
                kind => quantity::describe(&kind),
            };
            format!("`{}` must be {one}, not `{text}`", self.key)
        })
    }

    /// Reads an amount of the key's unit, which need not be a value of the range: how far apart two values are.
    pub fn read(&self, text: &str) -> Option<u64> {
        match quantity::default_value(text.trim(), &self.kind).ok()? {
            Value::Duration(time) => Some(time.as_nanos()),
            Value::Rate(rate) => Some(rate.bits_per_second()),
            Value::Bytes(size) => Some(size.count()),
            Value::Integer(count) | Value::Distribution(Distribution::Constant(count)) => Some(count),
            Value::Number(number) => Some(grains(number, NUMBER_GRAINS)),
            Value::Ratio(share) => Some(grains(share.value(), SHARE_GRAINS)),
            // Packets and bytes are not on one line.
            Value::Limit(Limit::Packets(count)) if self.unit.name == "packets" => Some(count),
            Value::Limit(Limit::Bytes(size)) if self.unit.name != "packets" => Some(size.count()),
            _ => None,
        }
    }

    /// A value as a person writes it, without loss: `1594 kbit/s`.
    pub fn written(&self, value: u64) -> String {
        let Unit { name, grains } = &self.unit;
        match decimal(value, *grains) {
            Some(number) if name.is_empty() => number,
            Some(number) => format!("{number} {name}"),
            None => format!("{value} {}", self.grain()),
        }
    }

    /// The unit of which values are whole numbers.
    fn grain(&self) -> &'static str {
        match self.kind {
            Kind::Duration { .. } | Kind::Durations { .. } => "ns",
            Kind::Rate { .. } => "bit/s",
            _ => "B",
        }
    }

    /// Two values in the same unit: `1594 kbit/s to 1600 kbit/s`.
    pub fn written_range(&self, first: u64, last: u64) -> String {
        let has_decimals = |value| decimal(value, self.unit.grains).is_some();
        match [first, last].map(has_decimals) {
            [true, true] | [false, false] => format!("{} to {}", self.written(first), self.written(last)),
            _ => format!("{first} to {last} {}", self.grain()),
        }
    }

    /// A value as it stands in a file: `12`, `"1594 kbit/s"`.
    pub fn literal(&self, value: u64) -> String {
        match self.kind {
            Kind::Integer { .. } | Kind::Number { .. } => self.written(value),
            _ => format!("\"{}\"", self.written(value)),
        }
    }

    /// A value in its unit, for an axis.
    pub fn number(&self, value: u64) -> f64 {
        value as f64 / self.unit.grains as f64
    }
}

fn default_unit(kind: &Kind) -> Unit {
    let (name, grains) = match kind {
        Kind::Duration { .. } | Kind::Durations { .. } => ("ms", 1_000_000),
        Kind::Rate { .. } => ("kbit/s", 1_000),
        Kind::Bytes { .. } | Kind::Sizes { .. } => ("B", 1),
        Kind::Limit => ("packets", 1),
        Kind::Number { .. } => ("", NUMBER_GRAINS as u64),
        Kind::Integer { .. } => ("", 1),
        _ => ("%", SHARE_GRAINS as u64 / 100),
    };
    Unit { name: name.to_owned(), grains }
}

fn grains(number: f64, of_one: f64) -> u64 {
    (number * of_one).round() as u64
}

/// `value / of` as a decimal number without loss; `None` if it has too many digits.
fn decimal(value: u64, of: u64) -> Option<String> {
    const MOST_DIGITS: usize = 12;
    let mut text = (value / of).to_string();
    let mut rest = u128::from(value % of);
    if rest > 0 {
        text.push('.');
    }
    for _ in 0..MOST_DIGITS {
        if rest == 0 {
            return Some(text);
        }
        rest *= 10;
        let _ = write!(text, "{}", rest / u128::from(of)); // writing to a String cannot fail
        rest %= u128::from(of);
    }
    (rest == 0).then_some(text)
}
