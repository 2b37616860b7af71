//! The description as text: a profile that experiments read, with the interval and the reason of each value.

use std::fmt::Write as _;

use crate::direction::Learned;
use crate::estimate::statistics::Interval;
use crate::link::{Link, Queue, bytes, percent, rate, time};
use crate::observations::Way;
use crate::placeholder::PLACEHOLDER;
use crate::probing::Path;
use crate::verify::{FLOORS, Verified};

/// The line before the figures that were predicted and then measured.
pub(crate) const VERIFIED: &str = "Predicted, and then measured, for traffic that was not learned from:";

/// The rate of a direction that was not learned.
const UNKNOWN_RATE: &str = "1 Gbit/s";

/// The first sentence of the result: how well the description predicts what it was not learned from.
pub fn sentence(path: &Path, verified: &[Verified]) -> String {
    let ways = path.ways.iter().filter_map(|way| way.as_ref().ok());
    let mechanisms: Vec<String> = ways
        .map(|learned| {
            let mechanism = if learned.is_loaded { learned.said() } else { "queue not measured".to_owned() };
            format!("{} {}, {mechanism}", learned.way.name(), rate(learned.slowest()))
        })
        .collect();
    let found = mechanisms.join("; ");
    let (counted, others): (Vec<&Verified>, Vec<&Verified>) =
        verified.iter().partition(|one| one.is_counted());
    let mut errors: Vec<f64> = counted.iter().map(|one| one.error()).collect();
    errors.sort_by(f64::total_cmp);
    // The smallest error that so many do not exceed.
    let within = |share: f64| errors[((errors.len() as f64 * share).ceil() as usize).max(1) - 1] * 100.0;
    if errors.is_empty() {
        return found;
    }
    let mut workloads: Vec<&str> = verified.iter().map(|one| &*one.workload).collect();
    workloads.dedup();
    format!(
        "{found}. Predicted, then measured once, backward (to this host): p95 and p99 of the delay, loss and goodput of {}. Half of {} \
         figures were off by at most {:.0} %, 90 % of them by at most {:.0} %, of the measurement, or of {} or {} of loss where \
         less was measured. Not counted are {}",
        listed(&workloads),
        errors.len(),
        within(0.5),
        within(0.9),
        time(FLOORS.0),
        percent(FLOORS.1),
        left_out(&others)
    )
}

/// `a, b and c`
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The figures that the sentence does not count.
fn left_out(others: &[&Verified]) -> String {
    let losses = others.iter().filter(|one| one.figure == "loss").count();
    format!(
        "medians of the delay ({}), which depend on chance beside transfers, and losses of which none was predicted or measured \
         ({losses})",
        others.len() - losses
    )
}

impl Learned {
    /// The rate that it carries in the long run.
    pub fn slowest(&self) -> f64 {
        self.link.bucket.map_or(self.link.rate, |bucket| bucket.rate.min(self.link.rate))
    }

    /// Its mechanism, with those that explain the measurement as well.
    pub fn said(&self) -> String {
        let mut names = vec![self.link.mechanism()];
        names.extend(self.alternatives.iter().map(Link::mechanism));
        names.join(" or ")
    }

    /// An interval in the unit of its key.
    pub(crate) fn shown(&self, key: &str, interval: Interval) -> String {
        let value: fn(f64) -> String = match (key, self.link.queue) {
            ("rate" | "shape-rate" | "committed-rate", _) => rate,
            ("loss" | "reorder", _) => percent,
            ("shape-burst" | "committed-burst" | "overhead", _) => bytes,
            ("queue", Queue::FifoBytes(_) | Queue::Drr(_)) => bytes,
            ("queue", Queue::FifoPackets(_)) => |packets| format!("{packets:.0} packets"),
            _ => time,
        };
        match (
            interval.low.is_finite() && interval.low > 0.0,
            interval.high.is_finite() && interval.high < 1e11,
        ) {
            (_, true) => format!("{} to {}", value(interval.low), value(interval.high)),
            (true, false) => format!("at least {}", value(interval.low)),
            (false, false) => "not bounded".to_owned(),
        }
    }
}

/// The profile of a path: a file for `profile` of a link between this host and the other.
pub fn profile(path: &Path, host: &str, date: &str, verified: &[Verified]) -> String {
    let host: String = host.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect();
    let mut text = format!("# The path to {host}, learned by `trunkline learn` on {date}.\n");
    for line in [sentence(path, verified)].iter().chain(&path.notes) {
        let _ = writeln!(text, "# {}", one_line(line));
    }
    text += "# Intervals are made to contain the truth in 90 % of the cases, if the path is of a kind that this description can express.\n";
    let _ = writeln!(text, "doc = \"The path to {host}, learned on {date}.\"");
    for (way, learned) in Way::ALL.into_iter().zip(&path.ways) {
        let _ = writeln!(text, "\n[{}]", way.name());
        match learned {
            Ok(learned) => text += &direction(learned),
            Err(why) => {
                let _ = writeln!(
                    text,
                    "rate = \"{UNKNOWN_RATE}\"   # {PLACEHOLDER}, not learned: {}",
                    one_line(why)
                );
            }
        }
    }
    if !verified.is_empty() {
        let _ = writeln!(text, "\n# {VERIFIED}");
        for one in verified {
            let _ = writeln!(text, "#   {}", line(one));
        }
    }
    text
}

/// A figure of the verification in a line.
pub fn line(one: &Verified) -> String {
    let value: fn(f64) -> String = match one.figure {
        "goodput" => rate,
        "loss" => percent,
        _ => time,
    };
    let floor = one.floor().filter(|floor| one.measured < *floor);
    format!(
        "{}, {}: predicted {} ({} to {}), measured {}, off by {:.0} %{}",
        one.workload,
        one.figure,
        value(one.predicted.value),
        value(one.predicted.low),
        value(one.predicted.high),
        value(one.measured),
        one.error() * 100.0,
        floor.map_or_else(String::new, |floor| format!(" of {}", value(floor)))
    )
}

/// The keys of a direction, each with its interval and reason.
fn direction(learned: &Learned) -> String {
    let mut text = String::new();
    if !learned.alternatives.is_empty() {
        let _ = writeln!(text, "# Cannot tell {}. The simpler one is used.", learned.said());
        for other in &learned.alternatives {
            let _ =
                writeln!(text, "#   as likely: {}", one_line(&other.toml().trim_end().replace('\n', ", ")));
        }
    }
    for note in &learned.notes {
        let _ = writeln!(text, "# {}", one_line(note));
    }
    for (key, value) in learned.link.keys() {
        let reason =
            learned.evidence.iter().rfind(|(known, _)| *known == key).map(|(_, reason)| reason.as_str());
        let interval = learned.interval(key).map(|interval| learned.shown(key, interval));
        let comment = match (interval, reason) {
            (Some(interval), Some(reason)) => format!("   # {interval}: {reason}"),
            (Some(interval), None) => format!("   # {interval}"),
            (None, Some(reason)) => format!("   # {reason}"),
            (None, None) => String::new(),
        };
        let _ = writeln!(text, "{key} = {value}{}", one_line(&comment));
    }
    text
}

/// The profiles of the ensemble: links that explain the measurement as well, both directions in each.
pub fn ensemble(path: &Path) -> Vec<String> {
    let members = path.ways.iter().filter_map(|way| way.as_ref().ok()).map(|learned| learned.ensemble.len());
    let keys = |way: &Result<Learned, String>, number: usize| match way {
        Ok(learned) => learned.ensemble.get(number).unwrap_or(&learned.link).toml(),
        Err(_) => format!("rate = \"{UNKNOWN_RATE}\"\n"),
    };
    (0..members.max().unwrap_or(0))
        .map(|number| {
            let [forward, backward] = &path.ways;
            format!("[forward]\n{}\n[backward]\n{}", keys(forward, number), keys(backward, number))
        })
        .collect()
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verified(figure: &'static str, predicted: f64, measured: f64) -> Verified {
        Verified {
            workload: "a download".to_owned(),
            figure,
            predicted: Interval::exact(predicted),
            measured,
        }
    }

    #[test]
    fn the_result_says_what_was_compared_and_what_was_not() {
        let path = Path {
            ways: [Err("no".to_owned()), Err("no".to_owned())],
            observations: crate::Observations::default(),
            notes: Vec::new(),
            is_partial: false,
        };
        let figures = [
            verified("delay p50", 0.9, 0.1),
            verified("delay p95", 0.0105, 0.01),
            verified("delay p99", 0.3e-3, 0.1e-3),
            verified("loss", 0.0, 0.0),
            verified("goodput", 0.7e6, 1e6),
        ];
        let text = sentence(&path, &figures);
        for part in [
            "loss and goodput of a download. Half of 3 figures were off by at most 20 %, 90 % of them by at most 30 %",
            "of 1 ms or 0.2 % of loss where less was measured",
            "medians of the delay (1)",
            "losses of which none was predicted or measured (1)",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(line(&figures[2]).ends_with("off by 20 % of 1 ms"), "{}", line(&figures[2]));
        assert!(line(&figures[1]).ends_with("off by 5 %"), "{}", line(&figures[1]));
    }
}
