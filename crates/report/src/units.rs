//! Numbers as a person reads them: one unit per column or axis, as many digits as mean something.

use trunkline_metrics::Estimate;
pub(crate) use trunkline_metrics::figures::Quantity;

/// A unit with the factor from the base unit to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) factor: f64,
}

/// How the values of a column are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// All in one unit, which the heading names.
    Shared(Unit),
    /// Each in its own unit, because in a common one the smallest would begin with zeros.
    Own,
}

impl Scale {
    /// The scale of a column of these values, in the base unit.
    pub(crate) fn of(quantity: Quantity, values: impl Iterator<Item = f64>) -> Scale {
        let values: Vec<f64> = values.map(f64::abs).filter(|value| *value > 0.0).collect();
        let unit = quantity.unit(values.iter().copied().fold(0.0, f64::max));
        let reads_badly = |value: &f64| value * unit.factor < 0.1 && quantity.unit(*value) != unit;
        if values.iter().any(reads_badly) { Scale::Own } else { Scale::Shared(unit) }
    }

    /// The unit for the heading.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Scale::Shared(unit) => unit.name,
            Scale::Own => "",
        }
    }

    /// An estimate of the column: its mean, half the width of its confidence interval, and the unit unless the heading
    /// has it.
    pub(crate) fn estimate(
        self,
        quantity: Quantity,
        estimate: &Estimate,
    ) -> (String, Option<String>, &'static str) {
        let (unit, name) = match self {
            Scale::Shared(unit) => (unit, ""),
            Scale::Own => {
                let unit = quantity.unit(estimate.mean.abs());
                (unit, unit.name)
            }
        };
        let (mean, half_width) = quantity.estimate_in(estimate, unit);
        (mean, half_width, name)
    }

    /// A value of the column to four digits, with its unit unless the heading has it.
    pub(crate) fn show(self, quantity: Quantity, value: f64) -> String {
        match self {
            Scale::Shared(unit) => number(value * unit.factor, 4),
            Scale::Own if value == 0.0 => "0".to_owned(),
            Scale::Own => quantity.show(value),
        }
    }
}

/// A quantity as people read it.
pub(crate) trait Readable: Sized {
    /// The unit in which a column is read best whose largest value is `largest` (in the base unit).
    fn unit(self, largest: f64) -> Unit;

    /// A value with its own best unit: `51.5 ms`.
    fn show(self, value: f64) -> String;

    /// An estimate with its own best unit: `51.5 ± 0.3 ms`.
    fn show_estimate(self, estimate: &Estimate) -> String;

    /// The same in a unit that it shares with others.
    fn show_estimate_in(self, estimate: &Estimate, unit: Unit) -> String;

    /// Mean and half width of the confidence interval in a unit, with the digits that the interval allows.
    fn estimate_in(self, estimate: &Estimate, unit: Unit) -> (String, Option<String>);
}

impl Readable for Quantity {
    fn unit(self, largest: f64) -> Unit {
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

    fn show(self, value: f64) -> String {
        let unit = self.unit(value.abs());
        with_unit(&digits(self, value * unit.factor), unit.name)
    }

    fn show_estimate(self, estimate: &Estimate) -> String {
        self.show_estimate_in(estimate, self.unit(estimate.mean.abs()))
    }

    fn show_estimate_in(self, estimate: &Estimate, unit: Unit) -> String {
        let (mean, half_width) = self.estimate_in(estimate, unit);
        match half_width {
            Some(half_width) => with_unit(&format!("{mean} ± {half_width}"), unit.name),
            None => with_unit(&mean, unit.name),
        }
    }

    fn estimate_in(self, estimate: &Estimate, unit: Unit) -> (String, Option<String>) {
        let mean = estimate.mean * unit.factor;
        let Some(half_width) = estimate.confidence95.map(|c| c * unit.factor) else {
            return (digits(self, mean), None);
        };
        // Equal repetitions differ by rounding only.
        if half_width <= mean.abs() * 1e-9 || !half_width.is_finite() {
            return (digits(self, mean), Some("0".to_owned()));
        }
        // Two digits of the interval, and the mean to the same place, but no more digits than its five.
        let place = 1 - half_width.log10().floor() as i32;
        let magnitude = if mean == 0.0 { 0 } else { mean.abs().log10().floor() as i32 };
        let decimals = place.clamp(0, (4 - magnitude).max(0)) as usize;
        let decimals = decimals.min(9);
        (grouped(&format!("{mean:.decimals$}")), Some(half_width_to(half_width, decimals)))
    }
}

fn digits(quantity: Quantity, value: f64) -> String {
    match quantity {
        Quantity::Count if value.fract() == 0.0 => grouped(&format!("{value:.0}")),
        _ => number(value, 4),
    }
}

fn with_unit(number: &str, unit: &str) -> String {
    if unit.is_empty() { number.to_owned() } else { format!("{number} {unit}") }
}

/// Two digits of a half width, to the same place as its mean: `0.30`, and `<0.0001` where it has none there.
fn half_width_to(value: f64, decimals: usize) -> String {
    let last = 10f64.powi(-(decimals as i32));
    if value < 0.5 * last {
        return format!("<{last:.decimals$}");
    }
    let place = 1 - value.log10().floor() as i32;
    let rounding = 10f64.powi(place);
    format!("{:.decimals$}", (value * rounding).round() / rounding)
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
        Estimate { mean, standard_deviation: Some(0.0), confidence95, repetitions: 3 }
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
    fn a_half_width_ends_at_the_same_place_as_its_mean() {
        let shown = |half: f64| Quantity::Number.show_estimate(&estimate(4.364_612, Some(half)));
        assert_eq!(shown(2.9e-6), "4.3646 ± <0.0001");
        assert_eq!(shown(0.000_016), "4.3646 ± <0.0001");
        assert_eq!(shown(0.000_16), "4.3646 ± 0.0002");
        assert_eq!(shown(0.003), "4.3646 ± 0.0030");
        assert_eq!(shown(0.3), "4.36 ± 0.30");
        assert_eq!(Quantity::Number.show_estimate(&estimate(12_345.6, Some(0.23))), "12\u{202f}346 ± <1");
    }

    #[test]
    fn a_column_has_one_unit_unless_it_makes_small_values_unreadable() {
        let scale = |values: &[f64]| Scale::of(Quantity::Time, values.iter().copied());
        let ms = Scale::Shared(Unit { name: "ms", factor: 1e3 });
        assert_eq!(scale(&[0.0, 0.007_263, 0.051]), ms);
        assert_eq!(scale(&[0.007_263, 7.0]), ms);
        let voice_beside_bulk = scale(&[0.007_263, 70.0]);
        assert_eq!(voice_beside_bulk, Scale::Own);
        assert_eq!(voice_beside_bulk.show(Quantity::Time, 0.007_263), "7.263 ms");
        assert_eq!(voice_beside_bulk.show(Quantity::Time, 70.0), "70 s");
        assert_eq!(scale(&[0.0]).heading(), "ms");
        assert_eq!(Scale::of(Quantity::Share, [1e-6, 0.5].into_iter()).heading(), "%");
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
