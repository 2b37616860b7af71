//! Packet-delivery traces: what a link could carry, moment by moment, in the format of mahimahi's `mm-link` (Netravali et
//! al. 2015).

use core::str::FromStr;

use crate::time::Duration;

/// The moments of a round at which a link could deliver something, over and over: the end of a round is the beginning of
/// the next.
///
/// Read from text with one line per opportunity: the milliseconds from the beginning of the round, never fewer than in
/// the line above, the last more than 0. Empty lines and what follows a `#`, which mahimahi does not know, do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTrace(Vec<Moment>);

/// A moment, and how often something can be delivered then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// From the beginning of the round; more than 0, and more than that of the moment before.
    pub at: Duration,
    /// At least 1.
    pub opportunities: u64,
}

impl DeliveryTrace {
    /// The moments of a round, at least one.
    pub fn moments(&self) -> &[Moment] {
        &self.0
    }

    /// How long a round lasts, more than 0: until its last moment.
    pub fn period(&self) -> Duration {
        self.0.last().map_or(Duration::MAX, |last| last.at)
    }
}

/// Why a text is no packet-delivery trace; continues the sentence "`cell.down` ...".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryTraceError {
    /// A line is not a number.
    #[error("has an error in line {line}: expected a whole number of milliseconds, not `{text}`")]
    NotANumber {
        /// Which, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// The lines are not in the order of time.
    #[error("has an error in line {line}: {at} ms is before the {before} ms above it; sort the lines")]
    OutOfOrder {
        /// Which, from 1.
        line: usize,
        /// What it says.
        at: u64,
        /// What the line above says.
        before: u64,
    },
    /// There is no line.
    #[error("holds no delivery opportunities; expected one per line, in milliseconds")]
    Empty,
    /// All opportunities are at 0 ms.
    #[error("lasts 0 ms; its last line must be the time at which the trace repeats")]
    Endless,
}

impl FromStr for DeliveryTrace {
    type Err = DeliveryTraceError;

    fn from_str(text: &str) -> Result<DeliveryTrace, DeliveryTraceError> {
        let (mut at_start, mut before) = (0, 0);
        let mut moments: Vec<Moment> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            // A year is enough, and no sum of times overflows.
            let at = text.parse().ok().filter(|at| *at <= 366 * 86_400_000);
            let at: u64 = at.ok_or_else(|| DeliveryTraceError::NotANumber {
                line,
                text: text.chars().take(40).collect(),
            })?;
            if at < before {
                return Err(DeliveryTraceError::OutOfOrder { line, at, before });
            }
            match moments.last_mut() {
                _ if at == 0 => at_start += 1,
                Some(last) if at == before => last.opportunities += 1,
                _ => moments.push(Moment { at: Duration::from_millis(at), opportunities: 1 }),
            }
            before = at;
        }
        match moments.last_mut() {
            // Nothing can be waiting at the beginning of the first round, and all others begin where one ends.
            Some(last) => last.opportunities += at_start,
            None if at_start > 0 => return Err(DeliveryTraceError::Endless),
            None => return Err(DeliveryTraceError::Empty),
        }
        Ok(DeliveryTrace(moments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_same_moment_are_counted() {
        let trace: DeliveryTrace = "0\n0\n3\n3\n 3 \n\n7 # the last\n".parse().unwrap();
        let moment = |ms, opportunities| Moment { at: Duration::from_millis(ms), opportunities };
        assert_eq!(trace.moments(), [moment(3, 3), moment(7, 3)], "those at 0 belong to the end of a round");
        assert_eq!(trace.period(), Duration::from_millis(7));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let problem = |text: &str| text.parse::<DeliveryTrace>().unwrap_err().to_string();
        assert!(
            problem("1\n2.5\n")
                .starts_with("has an error in line 2: expected a whole number of milliseconds")
        );
        assert!(problem("99999999999").contains("line 1"), "more than a year");
        assert!(problem("-1").contains("line 1"));
        assert_eq!(
            problem("5\n\n4\n"),
            "has an error in line 3: 4 ms is before the 5 ms above it; sort the lines"
        );
        assert!(problem("# nothing\n").starts_with("holds no delivery opportunities"));
        assert!(problem("0\n0\n").starts_with("lasts 0 ms"));
    }
}
