//! Descriptions from text. Tolerant as RFC 8866 section 5 allows and as others write: lines and attributes of kinds that
//! are not known here are passed over, as are media that nobody here can play; lines end with or without a carriage
//! return, and before the first there may be another, such as the `SDP:` that ffmpeg prints.

use core::str::FromStr;
use std::net::IpAddr;

use trunkline_core::Duration;

use super::{
    Encoding, FIXED, Format, MOST_CHANNELS, MOST_CLOCK, Media, MediaClock, Origin, SdpError, Session,
    rest_of_line,
};

impl FromStr for Session {
    type Err = SdpError;

    /// # Errors
    /// The first thing in the text that cannot be understood, or that none of its media is audio that can be played.
    fn from_str(text: &str) -> Result<Session, SdpError> {
        let lines = lines(text)?;
        // What stands before the first medium holds for all.
        let first = lines.iter().position(|line| line.kind == 'm').unwrap_or(lines.len());
        let (common, others) = (Part(&lines[..first]), &lines[first..]);
        let parts = others.chunk_by(|_, next| next.kind != 'm').map(Part);
        let media = parts.filter_map(|part| one_of_media(part, common).transpose());
        let media = media.collect::<Result<Vec<Media>, SdpError>>()?;
        if media.is_empty() {
            let from = others.first().map_or_else(Piece::default, |line| line.value);
            let names = Encoding::ALL.map(Encoding::name).join(", ");
            return Err(from.fail(&format!("nothing is audio over RTP/AVP in one of {names}")));
        }
        Ok(Session {
            name: common.line('s').map_or("-", |line| line.text.trim()).to_owned(),
            origin: common.line('o').map_or_else(|| Ok(Origin::default()), origin)?,
            media,
        })
    }
}

/// A part as one of the media, if it is audio that can be played.
fn one_of_media(part: Part<'_>, common: Part<'_>) -> Result<Option<Media>, SdpError> {
    let Some(line) = part.line('m') else { return Ok(None) };
    let mut words = line.words();
    let kind = line.expect(words.next(), "the kind of media")?;
    let port = line.expect(words.next(), "a port")?;
    // Behind a slash, how many ports there are: the first is ours.
    let port = port.split('/').0.number("a port, 0 to 65535")?;
    let protocol = line.expect(words.next(), "a protocol such as `RTP/AVP`")?;
    if kind.text != "audio" || port == 0 || !["RTP/AVP", "RTP/AVPF"].contains(&protocol.text) {
        return Ok(None);
    }
    let mut formats = words.filter_map(|word| format(word, part).transpose());
    let Some((payload_type, (encoding, clock, mut channels))) = formats.next().transpose()? else {
        return Ok(None);
    };
    if encoding == Encoding::Opus {
        let parameters = part.of_format("fmtp", payload_type).map_or("", |line| line.text);
        let is_stereo = parameters.split([' ', ';']).any(|parameter| parameter == "sprop-stereo=1");
        channels = if is_stereo { 2 } else { 1 };
    }
    let connection = part.line('c').or_else(|| common.line('c'));
    let connection = connection.ok_or_else(|| line.fail("there is no `c=` line with the address"))?;
    let (address, ttl) = address(connection)?;
    let attribute = |name| part.attributes(name).chain(common.attributes(name)).next();
    Ok(Some(Media {
        address,
        ttl,
        port,
        sources: match attribute("source-filter") {
            Some(filter) => sources(filter, address)?,
            None => Vec::new(),
        },
        payload_type,
        encoding,
        clock,
        channels,
        packet_time: attribute("ptime").map(packet_time).transpose()?,
        reference_clock: attribute("ts-refclk").and_then(|clock| rest_of_line(clock.text)),
        media_clock: attribute("mediaclk").map_or(Ok(None), media_clock)?,
    }))
}

/// The format that a line `m=` gives by its payload type, if it is known.
fn format(word: Piece<'_>, part: Part<'_>) -> Result<Option<(u8, Format)>, SdpError> {
    let payload_type = word.in_range(0..=127, "a payload type")?;
    let Some(map) = part.of_format("rtpmap", payload_type) else {
        return Ok(FIXED.iter().find(|fixed| fixed.0 == payload_type).copied());
    };
    let (name, rest) = map.split('/');
    let Some(encoding) = Encoding::ALL.into_iter().find(|e| e.name().eq_ignore_ascii_case(name.text)) else {
        return Ok(None);
    };
    let (clock, channels) = map.expect(rest, "`/` and the clock's rate")?.split('/');
    let rate = clock.in_range(1..=MOST_CLOCK, "the clock's rate in Hz")?;
    if encoding == Encoding::Opus && rate != 48_000 {
        return Err(clock.fail(&format!("`{rate}` is not 48000, the clock of Opus (RFC 7587)")));
    }
    let channels =
        channels.map_or(Ok(1), |channels| channels.in_range(1..=MOST_CHANNELS, "a number of channels"))?;
    Ok(Some((payload_type, (encoding, rate, channels))))
}

/// `<user> <session> <version> IN IP4 <host>`
fn origin(line: Piece<'_>) -> Result<Origin, SdpError> {
    let mut words = line.words();
    let mut word = |what| line.expect(words.next(), what);
    let username = word("a user or `-`")?.text.to_owned();
    let session = word("the session's number")?.number("the session's number")?;
    let version = word("its version")?.number("its version")?;
    word("`IN`")?;
    word("`IP4` or `IP6`")?;
    Ok(Origin { username, session, version, host: word("a host")?.text.to_owned() })
}

/// `IN IP4 <address>[/<ttl>[/<count>]]` or `IN IP6 <address>[/<count>]`: of several groups in a row, the first.
fn address(line: Piece<'_>) -> Result<(IpAddr, Option<u8>), SdpError> {
    let (address, rest) = line.expect(line.words().nth(2), "`IN IP4` or `IN IP6` and an address")?.split('/');
    let address: IpAddr = address.number("an address")?;
    let ttl = match rest {
        Some(ttl) if address.is_ipv4() => Some(ttl.split('/').0.number("a time to live, 0 to 255")?),
        _ => None,
    };
    Ok((address, ttl))
}

/// `incl IN IP4 <destination> <source>...` (RFC 4570 section 3), if it is about this destination.
fn sources(filter: Piece<'_>, address: IpAddr) -> Result<Vec<IpAddr>, SdpError> {
    let mut words = filter.words();
    let mode = filter.expect(words.next(), "`incl` or `excl`")?;
    let destination = filter.expect(words.nth(2), "`IN IP4` and a destination")?;
    let is_ours = destination.text == "*" || destination.text.parse() == Ok(address);
    if mode.text != "incl" || !is_ours {
        return Ok(Vec::new());
    }
    words.map(|source| source.number("a source's address")).collect()
}

/// Milliseconds.
fn packet_time(value: Piece<'_>) -> Result<Duration, SdpError> {
    let millis: f64 = value.trimmed().number("milliseconds")?;
    if !(0.000_001..=1000.0).contains(&millis) {
        return Err(value.fail("a packet's time is above 0 and at most 1000 milliseconds"));
    }
    Ok(Duration::from_nanos((millis * 1e6).round() as u64))
}

/// `direct=<offset>` or `sender`, with more behind it; others are of no use here.
fn media_clock(value: Piece<'_>) -> Result<Option<MediaClock>, SdpError> {
    match value.words().next().map(|word| word.split('=')) {
        Some((Piece { text: "sender", .. }, None)) => Ok(Some(MediaClock::Sender)),
        Some((Piece { text: "direct", .. }, None)) => Ok(Some(MediaClock::Direct(0))),
        Some((Piece { text: "direct", .. }, Some(offset))) => {
            offset.number("an offset of 32 bits").map(|offset| Some(MediaClock::Direct(offset)))
        }
        _ => Ok(None),
    }
}

impl Default for Origin {
    fn default() -> Origin {
        Origin { username: "-".to_owned(), session: 0, version: 0, host: "0.0.0.0".to_owned() }
    }
}

/// `<kind>=<value>`
#[derive(Clone, Copy)]
struct Line<'t> {
    kind: char,
    value: Piece<'t>,
}

/// The lines from `v=0` on, without those that are empty.
fn lines(text: &str) -> Result<Vec<Line<'_>>, SdpError> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let numbered = (1..).zip(text.split('\n').map(|text| text.strip_suffix('\r').unwrap_or(text)));
    let mut pieces = numbered
        .map(|(line, text)| Piece { text, line, column: 1 })
        .skip_while(|piece| piece.text != "v=0")
        .filter(|piece| !piece.text.trim().is_empty())
        .peekable();
    if pieces.peek().is_none() {
        return Err(Piece::default().fail("the line `v=0`, with which a description starts, is missing"));
    }
    pieces
        .map(|piece| {
            let (kind, value) = piece.split('=');
            let mut letters = kind.text.chars();
            match (letters.next(), letters.next(), value) {
                (Some(kind), None, Some(value)) => Ok(Line { kind, value }),
                _ => Err(piece.fail("a line is a letter, `=` and a value")),
            }
        })
        .collect()
}

/// The lines of one of the media, or those before the first.
#[derive(Clone, Copy)]
struct Part<'t>(&'t [Line<'t>]);

impl<'t> Part<'t> {
    /// The first line of this kind.
    fn line(self, kind: char) -> Option<Piece<'t>> {
        self.0.iter().find(|line| line.kind == kind).map(|line| line.value)
    }

    /// The values of the attributes with this name.
    fn attributes(self, name: &'static str) -> impl Iterator<Item = Piece<'t>> {
        self.0.iter().filter(|line| line.kind == 'a').filter_map(move |line| match line.value.split(':') {
            (key, value) if key.text == name => value,
            _ => None,
        })
    }

    /// What an attribute says of this payload type: `<name>:<payload type> <value>`.
    fn of_format(self, name: &'static str, payload_type: u8) -> Option<Piece<'t>> {
        self.attributes(name).find_map(|attribute| match attribute.split(' ') {
            (of, Some(value)) if of.text.parse() == Ok(payload_type) => Some(value.trimmed()),
            _ => None,
        })
    }
}

/// A piece of a line, and where it stands.
#[derive(Clone, Copy)]
struct Piece<'t> {
    text: &'t str,
    line: usize,
    column: usize,
}

impl Default for Piece<'_> {
    fn default() -> Self {
        Piece { text: "", line: 1, column: 1 }
    }
}

impl<'t> Piece<'t> {
    /// What stands before the first `separator`, and what behind it.
    fn split(self, separator: char) -> (Piece<'t>, Option<Piece<'t>>) {
        let Some((head, tail)) = self.text.split_once(separator) else { return (self, None) };
        let column = self.column + head.chars().count() + 1;
        (Piece { text: head, ..self }, Some(Piece { text: tail, column, ..self }))
    }

    fn trimmed(self) -> Piece<'t> {
        let text = self.text.trim_start();
        let column = self.column + self.text[..self.text.len() - text.len()].chars().count();
        Piece { text: text.trim_end(), column, ..self }
    }

    fn words(self) -> impl Iterator<Item = Piece<'t>> {
        let mut rest = Some(self);
        core::iter::from_fn(move || {
            let (word, behind) = rest?.split(' ');
            rest = behind;
            Some(word)
        })
        .filter(|word| !word.text.is_empty())
    }

    /// A part of this piece, or that it is missing at the end.
    fn expect(self, part: Option<Piece<'t>>, what: &str) -> Result<Piece<'t>, SdpError> {
        let end = Piece { text: "", column: self.column + self.text.chars().count(), ..self };
        part.ok_or_else(|| end.fail(&format!("{what} is missing")))
    }

    /// What is written there: a number or an address.
    fn number<T: FromStr>(self, what: &str) -> Result<T, SdpError> {
        self.text.parse().map_err(|_| {
            let found: String = self.text.chars().take(40).flat_map(char::escape_debug).collect();
            self.fail(&format!("`{found}` is not {what}"))
        })
    }

    fn in_range<T>(self, range: core::ops::RangeInclusive<T>, what: &str) -> Result<T, SdpError>
    where
        T: FromStr + PartialOrd + core::fmt::Display,
    {
        let (least, most) = (range.start(), range.end());
        let what = format!("{what}, {least} to {most}");
        let value = self.number(&what)?;
        if range.contains(&value) { Ok(value) } else { Err(self.fail(&format!("`{value}` is not {what}"))) }
    }

    fn fail(self, problem: &str) -> SdpError {
        SdpError { line: self.line, column: self.column, problem: problem.to_owned() }
    }
}
