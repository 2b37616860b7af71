//! Packet-delivery traces of mahimahi, and the logs of mahimahi's `mm-link` and of Pantheon's tunnel.

use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};

use trunkline_core::delivery_trace::DeliveryTrace;
use trunkline_core::{Bytes, Duration, Rate, Time};

use super::description::{Attachment, Known, Learned, Side, Written};
use super::estimate::{self, Clocks};
use super::{ImportError, MAX_PACKETS};
use crate::{Observations, ObservedFlow, Packet, Way};

/// Bytes of an opportunity.
const OPPORTUNITY: u64 = 1504;

/// The longest line of a log.
const MAX_LINE: u64 = 4096;

/// The longest trace that is read.
pub const MAX_TRACE: usize = 256 << 20;

const SUFFIXES: [&str; 2] = ["forward.trace", "backward.trace"];

/// A link that replays one trace in both directions, or one in each. `names` are those of the files.
///
/// # Errors
/// If a text is not a trace: which, from 0, and the line.
pub fn read_traces(names: &[&str], texts: &[&str]) -> Result<Learned, (usize, ImportError)> {
    let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let noun = if listed.len() == 1 { "the delivery trace" } else { "the delivery traces" };
    let mut learned = Learned { from: format!("{noun} {}", listed.join(" and ")), ..Learned::default() };
    for (place, text) in texts.iter().enumerate().take(2) {
        let trace: DeliveryTrace =
            text.parse().map_err(|error| (place, ImportError::new(format!("{error}"))))?;
        let suffix = SUFFIXES[place];
        let evidence = about(&trace);
        let known = Known { key: "file".into(), value: Written::File(suffix.into()), evidence };
        match (texts.len(), place) {
            (1, _) => learned.both.known.push(known),
            (_, 0) => learned.forward.known.push(known),
            _ => learned.backward.known.push(known),
        }
        learned.attachments.push(Attachment { suffix: suffix.into(), text: (*text).to_owned() });
    }
    learned.both.known.insert(0, medium());
    if texts.len() == 1 {
        learned.warnings.push(
            "One trace describes one direction: it stands for both here. Name a second one for the other direction.".to_owned(),
        );
    }
    unknown_to_traces(&mut learned.both);
    learned.both.unknown(
        "queue",
        "not in a trace; mahimahi's own default is an unlimited FIFO, ours holds 100 packets",
    );
    Ok(learned)
}

fn medium() -> Known {
    let evidence = "delivery opportunities of 1504 B at recorded times; the trace repeats".to_owned();
    Known { key: "medium".into(), value: Written::Text("trace".to_owned()), evidence }
}

fn unknown_to_traces(side: &mut Side) {
    side.unknown("delay", "not in a trace: a saturated queue hides the propagation delay; set it, for example to half of a ping");
    side.unknown("loss, jitter, reorder", "not in a trace");
}

/// Rate and length of a trace in a sentence.
fn about(trace: &DeliveryTrace) -> String {
    let moments = trace.moments();
    let opportunities: u64 = moments.iter().map(|moment| moment.opportunities).sum();
    let mean = Rate::of(Bytes(opportunities.saturating_mul(OPPORTUNITY)), trace.period());
    let starts = core::iter::once(Duration::ZERO).chain(moments.iter().map(|moment| moment.at));
    let longest = starts.zip(moments).map(|(before, moment)| moment.at - before).max().unwrap_or_default();
    format!("{mean} on average over {}; the longest pause has {longest}", trace.period())
}

/// A log while it is read.
#[derive(Default)]
struct Log {
    /// Microseconds since the log's start, and bytes, of what was sent and is not yet delivered.
    waiting: BTreeMap<(i64, u32), Vec<usize>>,
    packets: Vec<Packet>,
    /// Milliseconds of opportunities.
    opportunities: Vec<i64>,
    base: Option<i64>,
    /// Bytes and packets in the queue, and the most of them when a packet was dropped.
    backlog: (i64, i64),
    full: Option<(i64, i64)>,
    drops: u64,
    is_cut: bool,
}

/// Reads the log of one direction. `name` is the file's, `way` its direction.
///
/// # Errors
/// If a line is none of a log, with its number; or nothing was delivered.
pub fn read_log(name: &str, way: Way, from: impl BufRead) -> Result<Learned, ImportError> {
    let log = Log::read(from)?;
    if !log.packets.iter().any(|packet| packet.delay.is_some()) {
        return Err(ImportError::new(
            "is a log in which no packet was delivered: nothing can be learned from it",
        ));
    }
    let mut learned = match log.opportunities.is_empty() {
        true => log.pantheon(name, way),
        false => log.mahimahi(name, way),
    };
    if log.is_cut {
        learned
            .warnings
            .push(format!("The log has more than {MAX_PACKETS} packets; those behind them were not read."));
    }
    Ok(learned)
}

impl Log {
    fn read(mut from: impl BufRead) -> Result<Log, ImportError> {
        let mut log = Log::default();
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let read = (&mut from).take(MAX_LINE).read_until(b'\n', &mut line);
            let read = read.map_err(|error| ImportError::new(format!("cannot be read: {error}")))?;
            if read == 0 {
                break;
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim();
            if let Some(comment) = text.strip_prefix('#') {
                let base = comment.trim().strip_prefix("base timestamp:");
                log.base = log.base.or_else(|| base?.trim().parse().ok());
                continue;
            }
            if text.is_empty() {
                continue;
            }
            if log.packets.len() >= MAX_PACKETS || log.opportunities.len() >= MAX_PACKETS {
                log.is_cut = true;
                break;
            }
            log.take(text).ok_or_else(|| {
                let text: String = text.chars().take(40).collect();
                ImportError::new(format!(
                    "has an error in line {number}: expected `TIME + BYTES`, `TIME - BYTES DELAY`, `TIME # BYTES` or `TIME d \
                     PACKETS BYTES`, not `{text}`"
                ))
            })?;
        }
        log.packets.sort_by_key(|packet| packet.sent);
        Ok(log)
    }

    /// Takes a line.
    fn take(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let at: f64 = words.next()?.parse().ok().filter(|at: &f64| (0.0..1e15).contains(at))?;
        let base = *self.base.get_or_insert(at as i64);
        // Milliseconds to microseconds.
        let at = Some(at - base as f64).filter(|at| at.abs() < 1e12)?;
        let at = (at * 1e3).round() as i64;
        let kind = words.next()?;
        let first: u32 = words.next()?.parse().ok()?;
        match kind {
            "+" => {
                self.waiting.entry((at, first)).or_default().push(self.packets.len());
                let sent = Time::from_nanos(at.max(0) as u64 * 1_000);
                self.packets.push(Packet { sent, bytes: first, delay: None });
                self.backlog = (self.backlog.0 + i64::from(first), self.backlog.1 + 1);
            }
            "-" => {
                let delay: f64 = words.next()?.parse().ok().filter(|delay: &f64| delay.abs() < 1e9)?;
                let delay = (delay * 1e3).round() as i64;
                self.backlog = (self.backlog.0 - i64::from(first), self.backlog.1 - 1);
                // Both times of a line of Pantheon's are rounded.
                let index = [0, -1, 1].iter().find_map(|off| {
                    let place = (at - delay + off, first);
                    let index = self.waiting.get_mut(&place)?.pop();
                    self.waiting.retain_if_empty(&place);
                    index
                });
                if let Some(packet) = index.and_then(|index| self.packets.get_mut(index)) {
                    packet.delay = Some(delay * 1_000);
                }
            }
            "#" => self.opportunities.push(at / 1_000),
            "d" => {
                let bytes: i64 = words.next()?.parse().ok().filter(|bytes| (0..1 << 40).contains(bytes))?;
                // The packets that are dropped have arrived already.
                self.backlog = (self.backlog.0 - bytes, self.backlog.1 - i64::from(first));
                let full = self.full.get_or_insert(self.backlog);
                *full = (full.0.max(self.backlog.0), full.1.max(self.backlog.1));
                self.drops += u64::from(first);
            }
            _ => return None,
        }
        Some(())
    }

    fn observations(&self, way: Way) -> Observations {
        let flow = ObservedFlow { name: "log".to_owned(), way, packets: self.packets.clone() };
        Observations { flows: vec![flow], clock_error: None }
    }

    /// A log of `mm-link`: the opportunities are known exactly.
    fn mahimahi(&self, name: &str, way: Way) -> Learned {
        let mut learned = Learned { from: format!("the mm-link log `{name}`"), ..Learned::default() };
        // A trace begins one millisecond after its start at the earliest.
        let mut times: Vec<i64> = self.opportunities.iter().map(|at| (*at).max(1)).collect();
        // The lines of a log that was put together from several may be out of order.
        times.sort_unstable();
        let text: String = times.iter().map(|at| format!("{at}\n")).collect();
        let suffix = SUFFIXES[usize::from(way == Way::Backward)];
        let evidence = match text.parse::<DeliveryTrace>() {
            Ok(trace) => about(&trace),
            Err(error) => {
                learned.warnings.push(format!("The opportunities of the log are not a trace: it {error}."));
                return learned;
            }
        };
        learned.both.known.push(medium());
        learned.both.known.push(Known { key: "file".into(), value: Written::File(suffix.into()), evidence });
        learned.attachments.push(Attachment { suffix: suffix.into(), text });
        let delivered = self.packets.iter().filter(|packet| packet.delay.is_some()).count();
        learned.remarks.push(format!(
            "{} packets arrived, {delivered} left and {} were dropped. The log has one direction: its trace stands for both.",
            self.packets.len(),
            self.drops
        ));
        let side = learned.side(way);
        match self.full {
            Some((bytes, packets)) if bytes > 0 => side.toml(
                "queue",
                format!("{{ kind = \"fifo\", limit = \"{bytes} B\" }}"),
                format!("{packets} packets waited when packets were dropped; whether packets or bytes are limited, and at which end packets are dropped, is not in a log"),
            ),
            _ => {
                let most = self.packets.iter().filter_map(|packet| packet.delay).max().unwrap_or_default();
                let most = Duration::from_nanos(most.max(0) as u64);
                side.unknown("queue", format!("nothing was dropped: the limit is larger than what waits for {most}"));
            }
        }
        unknown_to_traces(&mut learned.both);
        learned
    }

    /// A merged log of Pantheon's tunnel: packets with one-way delays.
    fn pantheon(&self, name: &str, way: Way) -> Learned {
        let from = format!("the tunnel log `{name}`");
        let mut learned = estimate::describe(from, &self.observations(way), Clocks::Same);
        learned.warnings.push(
            "Delays in Pantheon's logs depend on NTP at both ends: the propagation delay may be wrong by milliseconds.".to_owned(),
        );
        learned
    }
}

/// A map whose lists are removed when they are empty, so that it holds no more than what waits.
trait RetainIfEmpty {
    fn retain_if_empty(&mut self, place: &(i64, u32));
}

impl RetainIfEmpty for BTreeMap<(i64, u32), Vec<usize>> {
    fn retain_if_empty(&mut self, place: &(i64, u32)) {
        if self.get(place).is_some_and(Vec::is_empty) {
            self.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trace_stands_for_both_directions_and_two_for_one_each() {
        let one = read_traces(&["a.up"], &["1\n3\n"]).unwrap();
        assert!(one.to_toml("a", "today").contains("\nfile = \"a-forward.trace\"\n"));
        assert_eq!(one.warnings.len(), 1);
        let two = read_traces(&["a.up", "a.down"], &["1\n3\n", "2\n"]).unwrap();
        let text = two.to_toml("a", "today");
        assert!(text.contains("[backward]\n# 6016 kbit/s on average over 2 ms"), "{text}");
        assert!(two.warnings.is_empty());
        let (place, error) = read_traces(&["a.up", "a.down"], &["1\n3\n", "2\n1\n"]).unwrap_err();
        assert_eq!((place, error.to_string().contains("line 2")), (1, true));
    }

    #[test]
    fn a_log_of_mm_link_has_its_trace_and_its_queue() {
        let log = "# mahimahi mm-link\n# base timestamp: 1000\n1000 + 1500\n1000 + 1500\n1000 + 1500\n1000 d 1 1500\n\
                   1002 # 1504\n1002 - 1500 2\n1005 # 1504\n1005 - 1500 5\n1009 # 1504\n";
        let learned = read_log("x.log", Way::Forward, log.as_bytes()).unwrap();
        assert_eq!(learned.attachments[0].text, "2\n5\n9\n");
        let text = learned.to_toml("x", "today");
        assert!(text.contains("limit = \"3000 B\"") && text.contains("2 packets waited"), "{text}");
        assert!(text.contains("3 packets arrived, 2 left and 1 were dropped"), "{text}");
    }

    #[test]
    fn a_log_of_pantheon_has_delays_and_losses() {
        let mut log = String::from("# init timestamp: 5000.000\n");
        for n in 0..2000 {
            let at = f64::from(n) * 10.0;
            log += &format!("{at:.3} + 1400\n");
            if n % 100 != 50 {
                log += &format!("{:.3} - 1400 30.125\n", at + 30.125);
            }
        }
        let learned = read_log("x.log", Way::Forward, log.as_bytes()).unwrap();
        let text = learned.to_toml("x", "today");
        assert!(text.contains("delay = \"30.12 ms\"") || text.contains("delay = \"30.13 ms\""), "{text}");
        assert!(text.contains("loss = \"1 %\"") && text.contains("20 of 2000 packets"), "{text}");
    }

    #[test]
    fn a_wrong_line_is_named() {
        let problem = |text: &str| read_log("x", Way::Forward, text.as_bytes()).unwrap_err().to_string();
        assert!(problem("# base timestamp: 1\n1 + 5\n2 * 5\n").starts_with("has an error in line 3: "));
        assert!(problem("# base timestamp: 1\n").contains("no packet was delivered"));
        assert!(problem("0 + 1500\n").contains("no packet was delivered"));
        let far = "# base timestamp: 9000000000000000000\n1 + 1500\n1 - 1500 5\n";
        assert!(problem(far).starts_with("has an error in line 2: "));
        assert!(problem("1 + -5\n").contains("line 1"));
    }
}
