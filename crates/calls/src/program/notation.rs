//! Codecs, protection and playout as they are written on a command line, both ways: whoever recommends settings writes
//! what is read here.

use core::fmt;
use core::str::FromStr;

use trunkline_audio::format::Encoding;
use trunkline_audio::pipeline::{Codec, Protection};
use trunkline_audio::playout::Depth;
use trunkline_core::{Duration, Rate};

/// A codec: `i16`, `i24`, `f32`, `pcmu`, `pcma`, `opus`, `opus:128 kbit/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format(pub Codec);

/// Forward error correction: `xor:4`, `rs:8+2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction(pub Protection);

/// A playout buffer: `10ms`, `adaptive`, `adaptive:5ms..100ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playout(pub Depth);

/// Bits per second of a channel of Opus, if nothing else is said: for music.
const OPUS: u32 = 96_000;

/// Of an adaptive buffer, if nothing else is said.
const LEAST: Duration = Duration::from_millis(2);
const MOST: Duration = Duration::from_millis(200);
/// Accepted with every block of up to a second, which counts towards the limit of the playout itself.
const DEEPEST: Duration = Duration::from_secs(9);
const LATE: f64 = 0.001;

impl Playout {
    /// As deep as the network demands at any time.
    pub const ADAPTIVE: Playout = Playout(Depth::Adaptive { least: LEAST, most: MOST, late: LATE });
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        let (name, bitrate) = match text.split_once(':') {
            Some((name, bitrate)) => (name, Some(bitrate)),
            None => (text, None),
        };
        let codec = match (name, bitrate) {
            ("i16", None) => Codec::Pcm(Encoding::I16),
            ("i24", None) => Codec::Pcm(Encoding::I24),
            ("f32", None) => Codec::Pcm(Encoding::F32),
            ("pcmu", None) => Codec::Pcmu,
            ("pcma", None) => Codec::Pcma,
            ("opus", bitrate) => Codec::Opus { bitrate: bitrate.map_or(Ok(OPUS), bits)?, fec: false },
            _ => {
                return Err(format!(
                    "unknown format `{text}`; expected `i16`, `i24`, `f32`, `pcmu`, `pcma`, `opus` or \
                    `opus:128kbit/s`"
                ));
            }
        };
        Ok(Format(codec))
    }
}

fn bits(text: &str) -> Result<u32, String> {
    let rate: Rate = text.parse().map_err(|error| format!("{error}"))?;
    u32::try_from(rate.bits_per_second())
        .map_err(|_| format!("`{text}` exceeds the maximum bit rate of Opus"))
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Codec::Pcm(Encoding::I16) => f.write_str("i16"),
            Codec::Pcm(Encoding::I24) => f.write_str("i24"),
            Codec::Pcm(Encoding::F32) => f.write_str("f32"),
            Codec::Pcmu => f.write_str("pcmu"),
            Codec::Pcma => f.write_str("pcma"),
            Codec::Opus { bitrate: OPUS, .. } => f.write_str("opus"),
            Codec::Opus { bitrate, .. } => write!(f, "opus:{bitrate}bit/s"),
        }
    }
}

impl FromStr for Correction {
    type Err = String;

    fn from_str(text: &str) -> Result<Correction, String> {
        let wrong = || {
            format!(
                "unknown error correction `{text}`; expected `xor:N` (such as `xor:4`) or `rs:N+M` (such as `rs:8+2`)"
            )
        };
        let number = |text: &str| text.parse().ok().filter(|number: &usize| *number > 0).ok_or_else(wrong);
        let (code, group) = text.split_once(':').ok_or_else(wrong)?;
        let protection = match (code, group.split_once('+')) {
            ("xor", None) => Protection::Xor { data: number(group)? },
            ("rs", Some((data, parity))) => {
                Protection::ReedSolomon { data: number(data)?, parity: number(parity)? }
            }
            _ => return Err(wrong()),
        };
        Ok(Correction(protection))
    }
}

impl fmt::Display for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Protection::None => f.write_str("none"),
            Protection::Repeat(repeats) => write!(f, "repeat:{repeats}"),
            Protection::Xor { data } => write!(f, "xor:{data}"),
            Protection::ReedSolomon { data, parity } => write!(f, "rs:{data}+{parity}"),
        }
    }
}

impl FromStr for Playout {
    type Err = String;

    fn from_str(text: &str) -> Result<Playout, String> {
        let bounded = |depth: Duration| match depth > DEEPEST {
            true => Err(format!("`{text}`: a playout buffer is at most {DEEPEST} deep")),
            false => Ok(depth),
        };
        let time = |text: &str| text.parse::<Duration>().map_err(|error| error.to_string()).and_then(bounded);
        match text.split_once(':') {
            None if text == "adaptive" => Ok(Playout::ADAPTIVE),
            None => {
                let depth = text.parse::<Duration>().map_err(|error| format!("{error}, or `adaptive`"));
                depth.and_then(bounded).map(|depth| Playout(Depth::Fixed(depth)))
            }
            Some(("adaptive", range)) => {
                let wrong = || format!("`{text}` has no range; expected `adaptive:5ms..100ms`");
                let (least, most) = range.split_once("..").ok_or_else(wrong)?;
                let (least, most) = (time(least)?, time(most)?);
                if least > most {
                    return Err(format!(
                        "`{text}`: expected the least depth first, as in `adaptive:5ms..100ms`"
                    ));
                }
                Ok(Playout(Depth::Adaptive { least, most, late: LATE }))
            }
            Some(_) => Err(format!(
                "invalid playout buffer `{text}`; expected `10ms`, `adaptive` or `adaptive:5ms..100ms`"
            )),
        }
    }
}

impl fmt::Display for Playout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write =
            |f: &mut fmt::Formatter<'_>, time: Duration| f.write_str(&time.to_string().replace(' ', ""));
        match self.0 {
            Depth::Fixed(depth) => write(f, depth),
            Depth::Adaptive { least: LEAST, most: MOST, .. } => f.write_str("adaptive"),
            Depth::Adaptive { least, most, .. } => {
                f.write_str("adaptive:")?;
                write(f, least)?;
                f.write_str("..")?;
                write(f, most)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in ["i16", "i24", "f32", "pcmu", "pcma", "opus", "opus:64000bit/s"] {
            assert_eq!(text.parse::<Format>().unwrap().to_string(), text);
        }
        for text in ["xor:4", "rs:8+2"] {
            assert_eq!(text.parse::<Correction>().unwrap().to_string(), text);
        }
        for text in ["10ms", "1.5ms", "adaptive", "adaptive:5ms..100ms"] {
            assert_eq!(text.parse::<Playout>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_right() {
        for text in ["", "pcm", "i16:2", "opus:loud", "opus:9999 Gbit/s"] {
            let error = text.parse::<Format>().unwrap_err();
            assert!(error.contains(&format!("`{}`", text.trim_start_matches("opus:"))), "{error}");
        }
        for text in ["", "xor", "xor:0", "xor:4+1", "rs:8", "rs:a+b", "none"] {
            let error = text.parse::<Correction>().unwrap_err();
            assert!(error.contains("expected `xor:N` (such as `xor:4`) or `rs:N+M`"), "{error}");
        }
        for text in [
            "",
            "10",
            "adaptive:",
            "adaptive:5ms",
            "deep:5ms",
            "adaptive:5..9",
            "adaptive:50ms..10ms",
            "9999ms",
            "adaptive:5ms..20s",
        ] {
            let error = text.parse::<Playout>().unwrap_err();
            assert!(error.contains("expected") || error.contains("at most"), "{text}: {error}");
        }
    }
}
