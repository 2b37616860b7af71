//! Runs a script against a host.

use core::fmt;
use std::collections::BTreeMap;

use trunkline_core::{Duration, Ecn, Time};

use super::segment::{Segment, flag};
use super::{FigureName, HOST_AND_PEER, Host, Pattern, Script, Step, What, byte, bytes};

/// The peer's initial sequence number: it wraps soon.
const PEER_INITIAL: u32 = u32::MAX - 2500;
/// The peer's clock of milliseconds at time zero.
const PEER_STAMP: u32 = 1_000_000;
/// How far the time of what is sent may differ, where the script does not say: two ticks of Linux's timers and a little.
const TOLERANCE: Duration = Duration::from_millis(10);

/// Why a host fails a script.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The script's name.
    pub script: String,
    /// The line of the script.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// Everything that was sent either way, in the script's language.
    pub transcript: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} line {}: {}", self.script, self.line, self.problem)?;
        self.transcript.iter().try_for_each(|line| writeln!(f, "    {line}"))
    }
}

/// Runs a script against a host, which has the script's settings and no connection yet. Returns a transcript.
///
/// # Errors
/// The first difference, with a transcript of the whole exchange: after a difference the peer and the application go on as
/// the script has it.
pub fn play(script: &Script, host: &mut dyn Host) -> Result<Vec<String>, Failure> {
    let mut player = Player::new(host);
    let mut failure: Option<(usize, String)> = None;
    for step in &script.steps {
        let result = match failure {
            None => player.take(step),
            Some(_) => player.go_on(step),
        };
        if let (Err(problem), None) = (result, &failure) {
            player.transcript.push(format!("--- line {}: {problem}", step.line));
            failure = Some((step.line, problem));
        }
    }
    let Some((line, problem)) = failure else { return Ok(player.transcript) };
    let last = script.steps.last().map_or(Time::ZERO, |step| player.time_of(step));
    while player.next_sent(last + Duration::from_millis(300)).is_some() {}
    Err(Failure { script: script.name.clone(), line, problem, transcript: player.transcript })
}

struct Player<'h> {
    host: &'h mut dyn Host,
    transcript: Vec<String>,
    host_initial: Option<u32>,
    /// Options of the SYNs: the shift, and whether there were time stamps.
    host_scale: Option<u8>,
    peer_scale: Option<u8>,
    host_stamps: bool,
    peer_stamps: bool,
    host_mss: u16,
    peer_mss: u16,
    /// The last stamp of the host.
    host_stamp: u32,
    /// Stamps of segments with labels.
    labels: BTreeMap<String, u32>,
    /// What the peer sends next.
    peer_next: i64,
    peer_window: u64,
    written: u64,
    read: u64,
    /// How late the host has been so far: what follows is as much later.
    lateness: Duration,
}

impl<'h> Player<'h> {
    fn new(host: &'h mut dyn Host) -> Player<'h> {
        Player {
            host,
            transcript: Vec::new(),
            host_initial: None,
            host_scale: None,
            peer_scale: None,
            host_stamps: false,
            peer_stamps: false,
            host_mss: 1460,
            peer_mss: 536,
            host_stamp: 0,
            labels: BTreeMap::new(),
            peer_next: 0,
            peer_window: 65_535,
            written: 0,
            read: 0,
            lateness: Duration::ZERO,
        }
    }

    /// When a step is due: times count from what was sent before, not from when it should have been.
    fn time_of(&self, step: &Step) -> Time {
        step.at + self.lateness
    }

    /// Does what a step says, and holds the host to it.
    fn take(&mut self, step: &Step) -> Result<(), String> {
        match &step.what {
            What::Out(pattern) => {
                let count = pattern.by.map_or(1, |by| pattern.length.div_ceil(by));
                return (0..count).try_for_each(|part| self.expect_sent(step, &part_of(pattern, part)));
            }
            What::Drain => {
                while self.next_sent(self.time_of(step)).is_some() {}
                return Ok(());
            }
            _ => {}
        }
        let at = self.time_of(step);
        if self.next_sent(at).is_some() {
            return Err(format!("this was not to be sent before {}:\n        {}", millis(at), self.last()));
        }
        self.act(step)
    }

    /// Does what a step says, whatever the host sends.
    fn go_on(&mut self, step: &Step) -> Result<(), String> {
        while self.next_sent(self.time_of(step)).is_some() {}
        self.act(step)
    }

    fn act(&mut self, step: &Step) -> Result<(), String> {
        let at = self.time_of(step);
        match &step.what {
            What::In(pattern) => {
                let count = pattern.by.map_or(1, |by| pattern.length.div_ceil(by));
                (0..count).for_each(|part| self.deliver(at, &part_of(pattern, part)));
                Ok(())
            }
            What::Open { passive } => {
                self.host.open(at, *passive);
                Ok(())
            }
            What::Write { bytes: length, more } => {
                let taken = self.host.write(at, &bytes(self.written + 1, *length), *more);
                self.written += taken as u64;
                if taken == *length {
                    Ok(())
                } else {
                    Err(format!("only {taken} of {length} bytes were taken"))
                }
            }
            What::Refused => match self.host.write(at, &[0], false) {
                0 => Ok(()),
                _ => Err("a byte was taken".to_owned()),
            },
            What::Read(length) => {
                let got = self.host.read(at);
                let expected = bytes(self.read + 1, got.len());
                self.read += got.len() as u64;
                match got {
                    got if got.len() != *length => {
                        Err(format!("{} bytes were read, not {length}", got.len()))
                    }
                    got if got != expected => Err("other bytes were read than the peer has sent".to_owned()),
                    _ => Ok(()),
                }
            }
            What::Close => {
                self.host.close(at, false);
                Ok(())
            }
            What::Abort => {
                self.host.close(at, true);
                Ok(())
            }
            What::Expect(expected) => match self.host.outcome(at) {
                outcome if outcome == *expected => Ok(()),
                outcome => Err(format!("the connection is {outcome:?}, not {expected:?}")),
            },
            What::Figure { name, least, most } => self.hold_figure(*name, *least, *most),
            What::Out(_) | What::Quiet | What::Drain => Ok(()),
        }
    }

    fn hold_figure(&mut self, name: FigureName, least: u64, most: u64) -> Result<(), String> {
        let stamps = if self.host_stamps && self.peer_stamps { 12 } else { 0 };
        let figures = self.host.figures(u64::from(self.host_mss.min(self.peer_mss)) - stamps);
        let value = match name {
            FigureName::Window => Some(figures.window),
            FigureName::Threshold => figures.threshold,
            FigureName::InFlight => Some(figures.in_flight),
        };
        if value.is_some_and(|value| (least..=most).contains(&value)) {
            return Ok(());
        }
        let value = value.map_or_else(|| "not known".to_owned(), |value| value.to_string());
        Err(format!("{name:?} is {value}, not within {least}..{most}"))
    }

    /// Gives the host a segment of the peer.
    fn deliver(&mut self, at: Time, pattern: &Pattern) {
        let first = pattern.first.unwrap_or(self.peer_next);
        let is_syn = pattern.flags & flag::SYN != 0;
        let mut segment = Segment {
            sequence: PEER_INITIAL.wrapping_add(first as u32),
            flags: pattern.flags,
            data: bytes(first as u64, pattern.length),
            ..Segment::default()
        };
        if let Some(ack) = pattern.ack {
            segment.flags |= flag::ACK;
            segment.acknowledgement = self.host_number(ack);
        }
        if pattern.push.unwrap_or(pattern.length > 0) {
            segment.flags |= flag::PSH;
        }
        self.peer_window = pattern.window.unwrap_or(self.peer_window);
        if is_syn {
            let options = pattern.options.unwrap_or_default();
            (segment.mss, segment.scale, segment.sack_permitted) = (options.mss, options.scale, options.sack);
            (self.peer_scale, self.peer_stamps) = (options.scale, options.stamps);
            self.peer_mss = options.mss.unwrap_or(536);
        }
        let shift = self.peer_scale.filter(|_| !is_syn && self.host_scale.is_some()).unwrap_or(0);
        segment.window = (self.peer_window >> shift).min(65_535) as u16;
        let agreed = if is_syn { self.peer_stamps } else { self.host_stamps && self.peer_stamps };
        if agreed && !pattern.without_stamps {
            let age = pattern.aged.map_or(0, |aged| aged.as_nanos() / 1_000_000);
            let stamp =
                (PEER_STAMP.wrapping_add((at.as_nanos() / 1_000_000) as u32)).wrapping_sub(age as u32);
            let echo = pattern.echo.as_ref().and_then(|label| self.labels.get(label)).copied();
            segment.stamps =
                Some((stamp, if pattern.ack.is_some() { echo.unwrap_or(self.host_stamp) } else { 0 }));
            if let Some(label) = &pattern.label {
                self.labels.insert(label.clone(), stamp);
            }
        }
        segment.sacks = pattern
            .sacks
            .iter()
            .map(|block| (self.host_number(block.0), self.host_number(block.1)))
            .collect();
        self.peer_next = self.peer_next.max(first + i64::from(segment.length()));
        let ecn = pattern.ecn.unwrap_or(Ecn::NotCapable);
        self.transcript.push(format!("{:<10} in   {}", millis(at), self.describe(&segment, ecn, false)));
        let [host, peer] = HOST_AND_PEER;
        self.host.deliver(at, &segment.write(peer, host), ecn);
    }

    fn host_number(&self, place: i64) -> u32 {
        self.host_initial.unwrap_or(0).wrapping_add(place as u32)
    }

    /// The next segment that the host sends until a moment; what cannot be read stands in the transcript.
    fn next_sent(&mut self, until: Time) -> Option<(Time, Result<Segment, String>, Ecn)> {
        let (at, bytes, ecn) = self.host.next_sent(until)?;
        let [host, peer] = HOST_AND_PEER;
        let segment = Segment::read(host, peer, &bytes);
        match &segment {
            Err(problem) => self.transcript.push(format!("{:<10} out  {problem}: {bytes:02x?}", millis(at))),
            Ok(segment) => {
                if segment.has(flag::SYN) {
                    self.host_initial = Some(segment.sequence);
                    self.host_scale = segment.scale;
                    self.host_stamps = segment.stamps.is_some();
                    self.host_mss = segment.mss.unwrap_or(536);
                }
                if let Some((stamp, _)) = segment.stamps {
                    self.host_stamp = stamp;
                }
                let text = format!("{:<10} out  {}", millis(at), self.describe(segment, ecn, true));
                self.transcript.push(text);
            }
        }
        Some((at, segment, ecn))
    }

    fn last(&self) -> &str {
        self.transcript.last().map_or("", String::as_str)
    }

    /// Holds the host to a segment.
    fn expect_sent(&mut self, step: &Step, pattern: &Pattern) -> Result<(), String> {
        let tolerance = step.tolerance.unwrap_or(TOLERANCE) + self.host.slack();
        let due = self.time_of(step);
        let Some((at, segment, ecn)) = self.next_sent(due + tolerance) else {
            return Err(format!("nothing was sent until {}", millis(due + tolerance)));
        };
        let sent = segment?;
        let early = due.since(at);
        if early > tolerance {
            return Err(format!(
                "this was sent {:.3} ms early:\n        {}",
                early.as_millis_f64(),
                self.last()
            ));
        }
        self.lateness += at.since(due);
        let problem = self.difference(&sent, ecn, pattern);
        if let (Some(label), Some((stamp, _))) = (&pattern.label, sent.stamps) {
            self.labels.insert(label.clone(), stamp);
        }
        match problem {
            Some(problem) => Err(format!("{problem}; this was sent:\n        {}", self.last())),
            None => Ok(()),
        }
    }

    /// What of a segment is not as it should be.
    fn difference(&self, sent: &Segment, ecn: Ecn, pattern: &Pattern) -> Option<String> {
        let place = |number: u32| i64::from(number.wrapping_sub(self.host_number(0)) as i32);
        let peer_place = |number: u32| i64::from(number.wrapping_sub(PEER_INITIAL) as i32);
        let flags = pattern.flags | if pattern.ack.is_some() { flag::ACK } else { 0 };
        if sent.flags & !flag::PSH != flags {
            return Some(format!("the flags should be {}", flags_text(flags)));
        }
        if pattern.push.is_some_and(|push| sent.has(flag::PSH) != push) {
            return Some("PSH is wrong".to_owned());
        }
        let first = place(sent.sequence);
        if pattern.first.is_some_and(|expected| expected != first) {
            return Some(format!("the sequence number should be {}", pattern.first.unwrap_or(0)));
        }
        if sent.data.len() != pattern.length {
            return Some(format!("it should have {} bytes of data", pattern.length));
        }
        if (first..).zip(&sent.data).any(|(place, data)| byte(place as u64) != *data) {
            return Some("its data is not what was written".to_owned());
        }
        if let Some(ack) = pattern.ack.filter(|ack| peer_place(sent.acknowledgement) != *ack) {
            return Some(format!("it should acknowledge {ack}"));
        }
        if let Some(window) = pattern.window.filter(|window| self.host_window(sent) != *window) {
            return Some(format!("the window should be {window}"));
        }
        let sacks: Vec<(i64, i64)> =
            sent.sacks.iter().map(|block| (peer_place(block.0), peer_place(block.1))).collect();
        if sacks != pattern.sacks {
            return Some(format!("the selective acknowledgements should be {}", blocks(&pattern.sacks)));
        }
        if let Some(options) = pattern.options {
            let found = (sent.mss, sent.scale, sent.sack_permitted, sent.stamps.is_some());
            if found != (options.mss, options.scale, options.sack, options.stamps) {
                return Some(format!("the options should be {options:?}"));
            }
        }
        let has_stamps = self.host_stamps && self.peer_stamps;
        if !sent.has(flag::SYN | flag::RST) && sent.stamps.is_some() != has_stamps {
            return Some("time stamps are wrongly there, or missing".to_owned());
        }
        let echo = pattern.echo.as_ref().map(|label| self.labels.get(label).copied());
        if echo.is_some_and(|echo| sent.stamps.map(|stamps| stamps.1) != echo) {
            return Some(format!(
                "it should echo the time stamp of `{}`",
                pattern.echo.as_deref().unwrap_or("")
            ));
        }
        if pattern.ecn.is_some_and(|expected| expected != ecn) {
            return Some(format!("its ECN field should be {}", ecn_text(pattern.ecn.unwrap_or_default())));
        }
        None
    }

    fn host_window(&self, sent: &Segment) -> u64 {
        let is_scaled = !sent.has(flag::SYN) && self.peer_scale.is_some();
        u64::from(sent.window) << if is_scaled { self.host_scale.unwrap_or(0) } else { 0 }
    }

    /// A segment in the script's language.
    fn describe(&self, segment: &Segment, ecn: Ecn, is_host: bool) -> String {
        let host = |number: u32| i64::from(number.wrapping_sub(self.host_number(0)) as i32);
        let peer = |number: u32| i64::from(number.wrapping_sub(PEER_INITIAL) as i32);
        let (own, other): (&dyn Fn(u32) -> i64, &dyn Fn(u32) -> i64) =
            if is_host { (&host, &peer) } else { (&peer, &host) };
        let mut text = flags_text(segment.flags & !flag::ACK);
        let first = own(segment.sequence);
        text += &match segment.data.len() {
            0 => format!("{first}"),
            length => format!("{first}..{}", first + length as i64),
        };
        if segment.has(flag::ACK) {
            text += &format!(" ack {}", other(segment.acknowledgement));
        }
        let window = if is_host { self.host_window(segment) } else { self.peer_window };
        text += &format!(" win {window}");
        if !segment.sacks.is_empty() {
            let sacks: Vec<_> = segment.sacks.iter().map(|block| (other(block.0), other(block.1))).collect();
            text += &format!(" sack {}", blocks(&sacks));
        }
        if segment.has(flag::SYN) {
            text += &segment.mss.map_or(String::new(), |mss| format!(" options mss {mss}"));
            text += &segment.scale.map_or(String::new(), |scale| format!(" scale {scale}"));
            text += if segment.sack_permitted { " sack" } else { "" };
            text += if segment.stamps.is_some() { " stamps" } else { "" };
        }
        if ecn != Ecn::NotCapable {
            text += &format!(" {}", ecn_text(ecn));
        }
        if let Some((stamp, echo)) = segment.stamps {
            text += &format!("   # stamps {stamp} {echo}");
        }
        text
    }
}

/// One of the segments that a pattern with `by` stands for.
fn part_of(pattern: &Pattern, part: usize) -> Pattern {
    let Some(by) = pattern.by else { return pattern.clone() };
    let mut one = pattern.clone();
    one.first = pattern.first.map(|first| first + (part * by) as i64);
    one.length = by.min(pattern.length - part * by);
    one
}

fn flags_text(flags: u16) -> String {
    let names = [
        (flag::SYN, "SYN "),
        (flag::FIN, "FIN "),
        (flag::RST, "RST "),
        (flag::PSH, "PSH "),
        (flag::ACK, "ack "),
        (flag::ECE, "ECE "),
        (flag::CWR, "CWR "),
        (flag::AE, "AE "),
    ];
    names.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect()
}

fn blocks(blocks: &[(i64, i64)]) -> String {
    let all: Vec<String> = blocks.iter().map(|(first, after)| format!("{first}..{after}")).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(" ") }
}

fn ecn_text(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotCapable => "no-ect",
        Ecn::Ect0 => "ect0",
        Ecn::Ect1 => "ect1",
        Ecn::CongestionExperienced => "ce",
    }
}

fn millis(time: Time) -> String {
    format!("{:.3}ms", time.as_nanos() as f64 / 1e6)
}
