//! Descriptions as text: the lines and their order as in RFC 8866 section 5, ended as it asks for, with what AES67
//! section 8 adds.

use core::fmt::{self, Display, Formatter, Write as _};
use std::net::IpAddr;

use super::{Encoding, Media, MediaClock, Origin, Session, rest_of_line};

impl Display for Session {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Origin { username, session, version, host } = &self.origin;
        let family = match host.parse() {
            Ok(IpAddr::V6(_)) => "IP6",
            _ => "IP4",
        };
        write!(f, "v=0\r\no=")?;
        word(f, username)?;
        write!(f, " {session} {version} IN {family} ")?;
        word(f, host)?;
        // The line must not be empty (section 5.3).
        let name = rest_of_line(&self.name).unwrap_or_else(|| "-".to_owned());
        write!(f, "\r\ns={name}\r\nt=0 0\r\n")?;
        self.media.iter().try_for_each(|media| media.fmt(f))
    }
}

impl Display for Media {
    /// The part of a description that is about this.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Media { address, port, payload_type, encoding, clock, channels, .. } = self;
        write!(f, "m=audio {port} RTP/AVP {payload_type}\r\n")?;
        let family = if address.is_ipv4() { "IP4" } else { "IP6" };
        write!(f, "c=IN {family} {address}")?;
        // A group in IPv4 has one, nothing else does (section 5.7).
        if address.is_ipv4() && address.is_multicast() {
            write!(f, "/{}", self.ttl.unwrap_or(1))?;
        }
        write!(f, "\r\na=rtpmap:{payload_type} {}/", encoding.name())?;
        match encoding {
            // Always two, whatever is in it (RFC 7587 section 7).
            Encoding::Opus => {
                write!(f, "48000/2\r\na=fmtp:{payload_type} sprop-stereo={}\r\n", u8::from(*channels > 1))?
            }
            _ => write!(f, "{clock}/{channels}\r\n")?,
        }
        if let Some(time) = self.packet_time {
            let millis = format!("{}.{:06}", time.as_nanos() / 1_000_000, time.as_nanos() % 1_000_000);
            write!(f, "a=ptime:{}\r\n", millis.trim_end_matches('0').trim_end_matches('.'))?;
        }
        if !self.sources.is_empty() {
            write!(f, "a=source-filter: incl IN {family} {address}")?;
            self.sources.iter().try_for_each(|source| write!(f, " {source}"))?;
            write!(f, "\r\n")?;
        }
        if let Some(clock) = self.reference_clock.as_deref().and_then(rest_of_line) {
            write!(f, "a=ts-refclk:{clock}\r\n")?;
        }
        match self.media_clock {
            Some(MediaClock::Direct(offset)) => write!(f, "a=mediaclk:direct={offset}\r\n"),
            Some(MediaClock::Sender) => write!(f, "a=mediaclk:sender\r\n"),
            None => Ok(()),
        }
    }
}

/// A word of a line: what would end it is left out.
fn word(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    if text.chars().all(|c| c.is_whitespace() || c.is_control()) {
        return f.write_char('-');
    }
    text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).try_for_each(|c| f.write_char(c))
}
