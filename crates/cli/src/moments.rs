//! Dates, times and how long ago, as they are typed.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A date, a time, or how long ago.
pub fn parse(text: &str) -> Result<Timestamp, String> {
    parse_at(Timestamp::now(), text)
}

fn parse_at(now: Timestamp, text: &str) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    if let Ok(date) = text.parse::<Date>() {
        let midnight = date.to_zoned(TimeZone::system()).map_err(|error| error.to_string())?;
        return Ok(midnight.timestamp());
    }
    let ago = span(text)
        .map_err(|_| "expected a date (2026-11-22), a time (2026-11-22T09:30:00Z) or an age (`30 days`)")?;
    now.checked_sub(ago).map_err(|error| error.to_string())
}

/// A length of time: `30 days`, `12h`, `1 week`.
pub fn span(text: &str) -> Result<SignedDuration, String> {
    let expected = || "expected a length of time such as `30 days` or `12 hours`".to_owned();
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(expected)?;
    let (number, unit) = text.split_at(digits);
    let number: i64 = number.parse().map_err(|_| expected())?;
    let seconds = match unit.trim() {
        "s" | "second" | "seconds" => 1,
        "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 604_800,
        _ => return Err(expected()),
    };
    number.checked_mul(seconds).map(SignedDuration::from_secs).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_moments_are_read() {
        assert_eq!(span("30 days"), Ok(SignedDuration::from_hours(720)));
        assert_eq!(span("12h"), Ok(SignedDuration::from_hours(12)));
        for wrong in ["", "days", "30", "30 moons", "-1 day", "99999999999999999 weeks"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
        let now: Timestamp = "2026-11-22T09:30:00Z".parse().unwrap();
        assert_eq!(parse("2026-11-22T09:30:00Z"), Ok(now));
        assert!(parse("2026-11-22").is_ok());
        assert_eq!(parse_at(now, "2 hours").unwrap().to_string(), "2026-11-22T07:30:00Z");
        assert!(parse("yesterday").unwrap_err().contains("an age (`30 days`)"));
    }
}
