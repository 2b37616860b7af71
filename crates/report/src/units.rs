//! Numbers as a person reads them: one unit per column or axis, as many digits as mean something.

use trunkline_metrics::Estimate;

/// What a number counts, in its base unit: seconds, bits per second, a share from 0 to 1, bytes, things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Time,
    Rate,
    Share,
    Bytes,
    Count,
    /// A number without a unit that need not be whole.
    Number,
}

/// A unit with the factor from the base unit to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) factor: f64,
}

impl Quantity {
    /// The unit in which a column is read best whose largest value is `largest` (in the base unit).
    pub(crate) fn unit(self, largest: f64) -> Unit {
        let (name, factor) = match self {
            Quantity::Time if largest >= 10.0 => ("s", 1.0),
            Quantity::Time if largest >= 1e-3 || largest == 0.0 => ("ms", 1e3),
            Quantity::Time if largest >= 1e-6 => ("µs", 1e6),
            Quantity::Time => ("ns", 1e9),
            Quantity::Rate if largest >= 1e10 => ("Gbit/s", 1e-9),
            Quantity::Rate if largest >= 1e7 => ("Mbit/s", 1e-6),
            Quantity::Rate if largest >= 1e3 || largest == 0.0 => ("kbit/s", 1e-3),
            Quantity::Rate => ("bit/s", 1.0),
            Quantity::Share => ("%", 100.0),
            Quantity::Bytes if largest >= f64::from(10 << 20) => ("MiB", 1.0 / f64::from(1 << 20)),
            Quantity::Bytes if largest >= f64::from(10 << 10) => ("KiB", 1.0 / f64::from(1 << 10)),
            Quantity::Bytes => ("B", 1.0),
            Quantity::Count | Quantity::Number => ("", 1.0),
        };
        Unit { name, factor }
    }

    /// The base unit's name, as CSV columns and JSON state it.
    pub(crate) fn base_unit(self) -> &'static str {
        match self {
            Quantity::Time => "s",
            Quantity::Rate => "bit/s",
            Quantity::Share | Quantity::Number => "1",
            Quantity::Bytes => "B",
            Quantity::Count => "count",
        }
    }

    /// A value with its own best unit: `51.5 ms`.
    pub(crate) fn show(self, value: f64) -> String {
        let unit = self.unit(value.abs());
        with_unit(&self.digits(value * unit.factor), unit.name)
    }

    /// An estimate with its own best unit: `51.5 ± 0.3 ms`.
    pub(crate) fn show_estimate(self, estimate: &Estimate) -> String {
        let unit = self.unit(estimate.mean.abs());
        let (mean, half_width) = self.estimate_in(estimate, unit);
        match half_width {
            Some(half_width) => with_unit(&format!("{mean} ± {half_width}"), unit.name),
            None => with_unit(&mean, unit.name),
        }
    }

    /// Mean and half width of the confidence interval in a unit, with the digits that the interval allows.
    pub(crate) fn estimate_in(self, estimate: &Estimate, unit: Unit) -> (String, Option<String>) {
        let mean = estimate.mean * unit.factor;
        let Some(half_width) = estimate.confidence95.map(|c| c * unit.factor) else {
            return (self.digits(mean), None);
        };
        // Equal repetitions differ by rounding only.
        if half_width <= mean.abs() * 1e-9 || !half_width.is_finite() {
            return (self.digits(mean), Some("0".to_owned()));
        }
        // Two digits of the interval, and the mean to the same place, but no more digits than its five.
        let place = 1 - half_width.log10().floor() as i32;
        let magnitude = if mean == 0.0 { 0 } else { mean.abs().log10().floor() as i32 };
        let decimals = place.clamp(0, (4 - magnitude).max(0)) as usize;
        let decimals = decimals.min(9);
        (grouped(&format!("{mean:.decimals$}")), Some(two_digits(half_width)))
    }

    fn digits(self, value: f64) -> String {
        match self {
            Quantity::Count if value.fract() == 0.0 => grouped(&format!("{value:.0}")),
            _ => number(value, 4),
        }
    }
}

fn with_unit(number: &str, unit: &str) -> String {
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

/// A half width keeps its trailing zero: `± 0.30`.
fn two_digits(value: f64) -> String {
    let place = 1 - value.log10().floor() as i32;
    match place {
        0..=6 => format!("{value:.*}", place as usize),
        _ => number(value, 2),
    }
}

/// A number to so many significant digits, without trailing zeros; all digits before the point are kept, and ten
/// thousand and more are grouped by narrow spaces.
pub(crate) fn number(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return "–".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    if !(-5..15).contains(&magnitude) {
        let decimals = (digits - 1).max(0) as usize;
        let text = format!("{value:.decimals$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trimmed(mantissa));
    }
    let decimals = (digits - 1 - magnitude).max(0) as usize;
    grouped(trimmed(&format!("{value:.decimals$}")))
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Groups the digits before the point by three if there are more than four.
pub(crate) fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = rest.split_once('.').map_or((rest, None), |(w, f)| (w, Some(f)));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 4 && (whole.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, confidence95: Option<f64>) -> Estimate {
        Estimate { mean, standard_deviation: 0.0, confidence95, repetitions: 3 }
    }

    #[test]
    fn numbers_keep_the_digits_that_mean_something() {
        for (value, text) in [
            (0.0, "0"),
            (51.5, "51.5"),
            (1_594.0, "1594"),
            (12_345_678.0, "12\u{202f}345\u{202f}678"),
            (0.001_234_56, "0.001235"),
            (1e-9, "1e-9"),
            (-0.25, "-0.25"),
            (9.999_96, "10"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value, 4), text);
        }
    }

    #[test]
    fn a_mean_has_the_digits_of_its_confidence_interval() {
        assert_eq!(Quantity::Time.show_estimate(&estimate(0.051_536, Some(0.000_43))), "51.54 ± 0.43 ms");
        assert_eq!(Quantity::Rate.show_estimate(&estimate(63_997.0, Some(150.0))), "64.00 ± 0.15 kbit/s");
        assert_eq!(Quantity::Time.show_estimate(&estimate(0.0515, None)), "51.5 ms");
        assert_eq!(Quantity::Share.show_estimate(&estimate(0.0, Some(0.0))), "0 ± 0 %");
        assert_eq!(Quantity::Time.show_estimate(&estimate(0.0123, Some(1.2))), "12 ± 1200 ms");
    }

    #[test]
    fn units_follow_the_largest_value() {
        assert_eq!(Quantity::Time.show(125e-6), "125 µs");
        assert_eq!(Quantity::Time.show(31.0), "31 s");
        assert_eq!(Quantity::Rate.show(1_594_000.0), "1594 kbit/s");
        assert_eq!(Quantity::Rate.show(2e8), "200 Mbit/s");
        assert_eq!(Quantity::Bytes.show(65_536.0), "64 KiB");
    }
}
