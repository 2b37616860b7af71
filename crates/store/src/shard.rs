//! Parts of a run for several machines: every nth repetition, counted over the points.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of several parts of a run, `2/8`. The parts of all numbers together are the run, and none overlap. Neighbouring points
/// go to different parts, because they take similar times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shard {
    /// From 1.
    index: u32,
    of: u32,
}

impl Shard {
    /// Its number, from 1.
    pub fn index(self) -> u32 {
        self.index
    }

    /// The number of parts.
    pub fn of(self) -> u32 {
        self.of
    }

    /// True if a repetition of a point belongs to this part; both count from 0.
    pub fn has(self, points: u32, point: u32, repetition: u32) -> bool {
        let place = u64::from(repetition) * u64::from(points) + u64::from(point);
        place % u64::from(self.of) == u64::from(self.index - 1)
    }

    /// Returns true if any repetition of a point belongs to this part.
    pub(crate) fn has_any(self, points: u32, point: u32, repetitions: u32) -> bool {
        (0..repetitions).any(|repetition| self.has(points, point, repetition))
    }

    /// Repetitions of this part, of so many of the run.
    pub(crate) fn of_all(self, repetitions: u64) -> u64 {
        (repetitions + u64::from(self.of - self.index)) / u64::from(self.of)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Shard, String> {
        text.parse()
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let parts = text.split_once('/').and_then(|(index, of)| Some((number(index)?, number(of)?)));
        match parts {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Shard { index, of }),
            Some((index, of)) => Err(format!("there is no part {index} of {of}; parts count from 1")),
            None => Err(format!("expected I/N, such as `2/8`, not `{text}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_repetition_belongs_to_exactly_one_part() {
        for of in 1..=7 {
            let shards: Vec<Shard> = (1..=of).map(|i| format!("{i}/{of}").parse().unwrap()).collect();
            for (point, repetition) in (0..5).flat_map(|point| (0..3).map(move |r| (point, r))) {
                let owners = shards.iter().filter(|shard| shard.has(5, point, repetition)).count();
                assert_eq!(owners, 1, "point {point}, repetition {repetition} of {of} parts");
            }
        }
    }

    #[test]
    fn a_part_knows_its_size() {
        for of in 1..=20 {
            let shards = (1..=of).map(|i| format!("{i}/{of}").parse::<Shard>().unwrap());
            for shard in shards {
                let all = (0..5).flat_map(|point| (0..3).map(move |r| (point, r)));
                let own = all.filter(|(point, repetition)| shard.has(5, *point, *repetition));
                assert_eq!(own.count() as u64, shard.of_all(15), "{shard}");
            }
        }
        let part: Shard = "2/8".parse().unwrap();
        let has: Vec<u32> = (0..4).filter(|point| part.has_any(4, *point, 2)).collect();
        assert_eq!(has, [1], "repetition 0 of point 1");
    }

    #[test]
    fn a_part_is_written_as_a_fraction() {
        let shard: Shard = "2/8".parse().unwrap();
        assert_eq!(shard.to_string(), "2/8");
        for (wrong, expected) in [
            ("0/8", "no part 0 of 8"),
            ("9/8", "no part 9 of 8"),
            ("2", "I/N"),
            ("a/b", "I/N"),
            ("1/0", "no part 1 of 0"),
        ] {
            let error = wrong.parse::<Shard>().unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
