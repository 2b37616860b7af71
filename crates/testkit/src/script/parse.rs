//! Reads the language of scripts.

use core::str::{FromStr, SplitWhitespace};

use trunkline_core::{Duration, Ecn, Time};

use super::segment::flag;
use super::{FigureName, Outcome, Pattern, SETTINGS, Script, Setting, Step, SynOptions, What};

/// The rest of a line, word by word.
type Words<'t> = core::iter::Peekable<SplitWhitespace<'t>>;

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Says which line is wrong, and what was expected there.
    pub fn parse(name: &str, text: &str) -> Result<Script, String> {
        let mut script = Script {
            name: name.to_owned(),
            holds: String::new(),
            settings: Vec::new(),
            engine_only: None,
            steps: Vec::new(),
        };
        let mut now = Time::ZERO;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                script
                    .read_line(number, line, &mut now)
                    .map_err(|problem| format!("line {number}: {problem}"))?;
            }
        }
        if script.holds.is_empty() {
            return Err(
                "a line `holds` is missing; name the section of an RFC or the kernel's behaviour".to_owned()
            );
        }
        if script.steps.is_empty() {
            return Err("it has no steps".to_owned());
        }
        Ok(script)
    }

    fn read_line(&mut self, line: usize, text: &str, now: &mut Time) -> Result<(), String> {
        let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        match first {
            "holds" => {
                self.holds += if self.holds.is_empty() { "" } else { " " };
                self.holds += rest;
            }
            "engine-only" => self.engine_only = Some(rest.to_owned()),
            "set" => {
                let (key, value) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                if SETTINGS.iter().all(|(known, _)| *known != key) {
                    let known: Vec<&str> = SETTINGS.iter().map(|(known, _)| *known).collect();
                    return Err(format!("unknown setting `{key}`; expected one of {}", known.join(", ")));
                }
                self.settings.push(Setting { key: key.to_owned(), value: value.trim().to_owned() });
            }
            "open" => self.open(line, &mut rest.split_whitespace().peekable(), now)?,
            time => {
                let (time, tolerance) = match time.split_once('~') {
                    Some((time, tolerance)) => (time, Some(duration(tolerance)?)),
                    None => (time, None),
                };
                *now = match time.strip_prefix('+') {
                    Some(later) => *now + duration(later)?,
                    None => Time::ZERO + duration(time)?,
                };
                let what = what(&mut rest.split_whitespace().peekable())?;
                self.steps.push(Step { line, at: *now, tolerance, what });
            }
        }
        Ok(())
    }

    /// The usual handshake: `open active` or `open passive`, with `rtt`, `mss`, `window`, `scale`, `no-sack`, `no-stamps`,
    /// `no-scale` and `ecn` of the peer.
    fn open(&mut self, line: usize, words: &mut Words<'_>, now: &mut Time) -> Result<(), String> {
        let passive = match words.next() {
            Some("active") => false,
            Some("passive") => true,
            _ => return Err("expected `open active` or `open passive`".to_owned()),
        };
        let mut options = SynOptions { mss: Some(1000), scale: Some(7), sack: true, stamps: true };
        let (mut rtt, mut window, mut ecn) = (Duration::from_millis(10), 65_535, 0);
        while let Some(word) = words.next() {
            match word {
                "rtt" => rtt = duration(words.next().unwrap_or(""))?,
                "mss" => options.mss = Some(next(words, "mss")?),
                "window" => window = next(words, "window")?,
                "scale" => options.scale = Some(next(words, "scale")?),
                "no-sack" => options.sack = false,
                "no-stamps" => options.stamps = false,
                "no-scale" => options.scale = None,
                "ecn" => ecn = flag::ECE,
                other => return Err(format!("unknown word `{other}` after `open`")),
            }
        }
        let syn = |flags| Pattern { flags, first: Some(0), ..Pattern::default() };
        let host = |ack: Option<i64>| Pattern { ack, ..syn(flag::SYN) };
        let peer = |ack: Option<i64>, flags| Pattern {
            ack,
            window: Some(window.min(65_535)),
            options: Some(options),
            ..syn(flag::SYN | flags)
        };
        let third = Pattern { first: Some(1), ack: Some(1), ..Pattern::default() };
        let after = *now + rtt;
        let steps = if passive {
            let (ask, answer) = if ecn == 0 { (0, 0) } else { (flag::ECE | flag::CWR, flag::ECE) };
            vec![
                (*now, What::Open { passive }),
                (*now, What::In(peer(None, ask))),
                (*now, What::Out(Pattern { flags: flag::SYN | answer, ..host(Some(1)) })),
                (after, What::In(Pattern { window: Some(window), ..third })),
                (after, What::Expect(Outcome::Connected)),
            ]
        } else {
            let asked = if ecn == 0 { 0 } else { flag::ECE | flag::CWR };
            vec![
                (*now, What::Open { passive }),
                (*now, What::Out(Pattern { flags: flag::SYN | asked, ..host(None) })),
                (after, What::In(peer(Some(1), ecn))),
                (after, What::Out(third)),
                (after, What::Expect(Outcome::Connected)),
            ]
        };
        *now = after;
        self.steps.extend(steps.into_iter().map(|(at, what)| Step { line, at, tolerance: None, what }));
        Ok(())
    }
}

fn what(words: &mut Words<'_>) -> Result<What, String> {
    let what = match words.next() {
        Some("in") => return pattern(words).map(What::In),
        Some("out") => return pattern(words).map(What::Out),
        Some("connect") => What::Open { passive: false },
        Some("listen") => What::Open { passive: true },
        Some("write") => {
            let bytes = next(words, "a number of bytes")?;
            What::Write { bytes, more: words.next_if_eq(&"more").is_some() }
        }
        Some("refused") => What::Refused,
        Some("read") => What::Read(next(words, "a number of bytes")?),
        Some("close") => What::Close,
        Some("abort") => What::Abort,
        Some("quiet") => What::Quiet,
        Some("drain") => What::Drain,
        Some("expect") => What::Expect(match words.next() {
            Some("pending") => Outcome::Pending,
            Some("connected") => Outcome::Connected,
            Some("end") => Outcome::Ended,
            Some("reset") => Outcome::Reset,
            Some("timeout") => Outcome::TimedOut,
            _ => return Err("expected `pending`, `connected`, `end`, `reset` or `timeout`".to_owned()),
        }),
        Some("figure") => {
            let name = match words.next() {
                Some("window") => FigureName::Window,
                Some("threshold") => FigureName::Threshold,
                Some("flight") => FigureName::InFlight,
                _ => return Err("expected `window`, `threshold` or `flight`".to_owned()),
            };
            let (least, most) = range(words.next().unwrap_or(""))?;
            What::Figure { name, least: least as u64, most: most as u64 }
        }
        other => return Err(format!("unknown action `{}`", other.unwrap_or(""))),
    };
    match words.next() {
        None => Ok(what),
        Some(word) => Err(format!("`{word}` is too much")),
    }
}

fn pattern(words: &mut Words<'_>) -> Result<Pattern, String> {
    let mut pattern = Pattern::default();
    while let Some(word) = words.next() {
        match word {
            "SYN" => pattern.flags |= flag::SYN,
            "FIN" => pattern.flags |= flag::FIN,
            "RST" => pattern.flags |= flag::RST,
            "ECE" => pattern.flags |= flag::ECE,
            "CWR" => pattern.flags |= flag::CWR,
            "AE" => pattern.flags |= flag::AE,
            "PSH" => pattern.push = Some(true),
            "no-PSH" => pattern.push = Some(false),
            "ack" => pattern.ack = Some(next(words, "an acknowledgement number")?),
            "win" => pattern.window = Some(next(words, "a window in bytes")?),
            "by" => pattern.by = Some(next(words, "a number of bytes")?),
            "sack" => {
                while let Some(block) = words.next_if(|word| word.contains("..")) {
                    pattern.sacks.push(range(block)?);
                }
            }
            "options" => pattern.options = Some(options(words)?),
            "no-stamps" => pattern.without_stamps = true,
            "aged" => pattern.aged = Some(duration(words.next().unwrap_or(""))?),
            "echo" => pattern.echo = Some(next(words, "a label")?),
            "as" => pattern.label = Some(next(words, "a label")?),
            "ce" => pattern.ecn = Some(Ecn::CongestionExperienced),
            "ect0" => pattern.ecn = Some(Ecn::Ect0),
            "ect1" => pattern.ecn = Some(Ecn::Ect1),
            "no-ect" => pattern.ecn = Some(Ecn::NotCapable),
            place if pattern.first.is_none() => {
                let (first, after) = range(place)?;
                pattern.first = Some(first);
                pattern.length =
                    usize::try_from(after - first).map_err(|_| format!("`{place}` goes backwards"))?;
            }
            other => return Err(format!("unknown word `{other}` of a segment")),
        }
    }
    Ok(pattern)
}

/// `all`, `none`, or some of `mss N`, `scale N`, `sack` and `stamps`.
fn options(words: &mut Words<'_>) -> Result<SynOptions, String> {
    let mut options = SynOptions::default();
    loop {
        match words.peek().copied() {
            Some("all") => options = SynOptions { mss: Some(1460), scale: Some(7), sack: true, stamps: true },
            Some("none") => {}
            Some("mss") => {
                words.next();
                options.mss = Some(next(words, "a number of bytes")?);
                continue;
            }
            Some("scale") => {
                words.next();
                options.scale = Some(next(words, "a shift")?);
                continue;
            }
            Some("sack") => options.sack = true,
            Some("stamps") => options.stamps = true,
            _ => return Ok(options),
        }
        words.next();
    }
}

fn next<T: FromStr>(words: &mut Words<'_>, what: &str) -> Result<T, String> {
    let word = words.next().ok_or_else(|| format!("{what} is missing"))?;
    word.parse().map_err(|_| format!("`{word}` is not {what}"))
}

/// `A..B`, or `A` for `A..A`.
fn range(word: &str) -> Result<(i64, i64), String> {
    let (first, after) = word.split_once("..").unwrap_or((word, word));
    let number = |text: &str| {
        text.parse().map_err(|_| format!("`{word}` is neither a number nor a range such as 1..1001"))
    };
    Ok((number(first)?, number(after)?))
}

pub(super) fn duration(word: &str) -> Result<Duration, String> {
    let digits = word.trim_end_matches(char::is_alphabetic);
    let number: f64 = digits.parse().map_err(|_| format!("`{word}` is not a time such as 10ms"))?;
    let unit = match &word[digits.len()..] {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "" if number == 0.0 => 1.0,
        _ => return Err(format!("`{word}` has no unit of time; expected us, ms or s")),
    };
    Ok(Duration::from_nanos((number * unit).round() as u64))
}
