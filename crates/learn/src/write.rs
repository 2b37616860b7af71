//! The description as text: a profile that experiments read, with the interval and the reason of each value.

use std::fmt::Write as _;

use crate::direction::Learned;
use crate::estimate::statistics::Interval;
use crate::link::{Link, Queue, bytes, percent, rate, time};
use crate::observations::Way;
use crate::placeholder::PLACEHOLDER;
use crate::probing::Path;
use crate::verify::Verified;

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
    // The median beside one transfer is chaotic: where in its sawtooth the transfer is.
    // No loss, predicted and measured, is no achievement.
    let says = |one: &&Verified| {
        let both_zero = one.figure == "loss" && one.predicted.value == 0.0 && one.measured == 0.0;
        one.figure != "delay p50" && !both_zero
    };
    let judged = verified.iter().filter(says);
    let mut errors: Vec<f64> = judged.map(Verified::error).collect();
    errors.sort_by(f64::total_cmp);
    match errors.len() {
        0 => found,
        count => {
            let median = errors[count / 2] * 100.0;
            let ninth = errors[(count * 9 / 10).min(count - 1)] * 100.0;
            format!(
                "{found}. Traffic to this host predicted within {median:.0} % (median of {count} figures; 90 % of them \
                 within {ninth:.0} %)"
            )
        }
    }
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
    text += "# Intervals contain the truth in 90 % of the cases, if the path is of a kind that this description can express.\n";
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
    format!(
        "{}, {}: predicted {} ({} to {}), measured {}, off by {:.0} %",
        one.workload,
        one.figure,
        value(one.predicted.value),
        value(one.predicted.low),
        value(one.predicted.high),
        value(one.measured),
        one.error() * 100.0
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
