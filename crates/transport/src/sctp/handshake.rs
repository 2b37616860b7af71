//! How an association begins (RFC 9260 section 5): INIT and INIT ACK, and the cookie that keeps a listening end from having
//! to remember whoever asks.

use siphasher::sip::SipHasher24;
use trunkline_core::{Address, Duration, Time};

use super::wire::{self, kind};

/// Valid.Cookie.Life (RFC 9260 section 16).
pub(super) const COOKIE_LIFE: Duration = Duration::from_secs(60);

/// Parameters (RFC 9260 section 3.3.2, RFC 3758 section 3.1, RFC 5061 section 4.2.7).
const COOKIE: u16 = 7;
const UNRECOGNIZED: u16 = 8;
const EXTENSIONS: u16 = 0x8008;
const CAN_FORWARD: u16 = 0xC000;
/// Those that say what is of no account here: addresses and their kinds, how long a cookie should live, and what the
/// other end could do besides.
const IGNORED: [u16; 8] = [5, 6, UNRECOGNIZED, 9, 12, 0x8002, 0x8003, 0x8004];

/// As many streams as there can be are accepted.
const STREAMS: u16 = u16::MAX;

/// What INIT and INIT ACK say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Init<'p> {
    pub(super) tag: u32,
    pub(super) window: u32,
    /// How many streams its sender sends on, and how many it accepts.
    pub(super) sends_on: u16,
    pub(super) streams: u16,
    pub(super) tsn: u32,
    /// Whether its sender knows FORWARD TSN.
    pub(super) can_forward: bool,
    pub(super) cookie: Option<&'p [u8]>,
    /// Parameters that its sender wants to be told were not understood.
    unrecognized: Vec<&'p [u8]>,
}

impl<'p> Init<'p> {
    /// Reads the value of the chunk; `None` if it cannot be meant so.
    pub(super) fn parse(value: &'p [u8]) -> Option<Init<'p>> {
        let mut init = Init {
            tag: wire::u32_at(value, 0)?,
            window: wire::u32_at(value, 4)?,
            sends_on: wire::u16_at(value, 8)?,
            streams: wire::u16_at(value, 10)?,
            tsn: wire::u32_at(value, 12)?,
            can_forward: false,
            cookie: None,
            unrecognized: Vec::new(),
        };
        if init.tag == 0 || init.streams == 0 || init.sends_on == 0 {
            return None;
        }
        for (kind, whole) in wire::parameters(&value[16..]) {
            match kind {
                COOKIE => init.cookie = Some(&whole[4..]),
                CAN_FORWARD => init.can_forward = true,
                EXTENSIONS => init.can_forward |= whole[4..].contains(&kind::FORWARD_TSN),
                _ if IGNORED.contains(&kind) => {}
                // The highest bit says to go on, the next to report (RFC 9260 section 3.2.1).
                _ => {
                    if kind & 0x4000 != 0 {
                        init.unrecognized.push(whole);
                    }
                    if kind & 0x8000 == 0 {
                        break;
                    }
                }
            }
        }
        Some(init)
    }

    /// The value of the chunk of an end that sends on so many streams; the cookie and what was not understood follow for
    /// an answer to `asked`.
    pub(super) fn value(
        (tag, tsn): (u32, u32),
        window: usize,
        streams: u16,
        answer: Option<(&[u8], &Init<'_>)>,
    ) -> Vec<u8> {
        let mut value = tag.to_be_bytes().to_vec();
        value.extend_from_slice(&u32::try_from(window).unwrap_or(u32::MAX).to_be_bytes());
        value.extend_from_slice(&streams.to_be_bytes());
        value.extend_from_slice(&STREAMS.to_be_bytes());
        value.extend_from_slice(&tsn.to_be_bytes());
        wire::put_parameter(&mut value, CAN_FORWARD, &[]);
        wire::put_parameter(&mut value, EXTENSIONS, &[kind::FORWARD_TSN]);
        if let Some((cookie, asked)) = answer {
            wire::put_parameter(&mut value, COOKIE, cookie);
            for whole in asked.unrecognized.iter().take_while(|whole| whole.len() <= 64).take(8) {
                wire::put_parameter(&mut value, UNRECOGNIZED, whole);
            }
        }
        value
    }
}

/// All that an association needs to begin, as the listening end gives it away and gets it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    pub(super) tag: u32,
    pub(super) tsn: u32,
    pub(super) peer_tag: u32,
    pub(super) peer_tsn: u32,
    pub(super) peer_window: u32,
    pub(super) peer_sends_on: u16,
    pub(super) streams: u16,
    pub(super) can_forward: bool,
    pub(super) made: Time,
}

const LENGTH: usize = 33;

impl Cookie {
    /// As bytes that nobody can make without the key, for the peer at this address.
    pub(super) fn seal(&self, key: [u64; 2], peer: Address) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LENGTH + 8);
        for word in [self.tag, self.tsn, self.peer_tag, self.peer_tsn, self.peer_window] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        bytes.extend_from_slice(&self.peer_sends_on.to_be_bytes());
        bytes.extend_from_slice(&self.streams.to_be_bytes());
        bytes.push(self.can_forward.into());
        bytes.extend_from_slice(&self.made.as_nanos().to_be_bytes());
        let mac = mac(key, peer, &bytes);
        bytes.extend_from_slice(&mac.to_be_bytes());
        bytes
    }

    /// Reads what this end has sealed for this peer.
    pub(super) fn open(key: [u64; 2], peer: Address, bytes: &[u8]) -> Option<Cookie> {
        let (body, tail) = bytes.split_last_chunk::<8>()?;
        if body.len() != LENGTH || u64::from_be_bytes(*tail) != mac(key, peer, body) {
            return None;
        }
        let word = |at| wire::u32_at(body, at);
        Some(Cookie {
            tag: word(0)?,
            tsn: word(4)?,
            peer_tag: word(8)?,
            peer_tsn: word(12)?,
            peer_window: word(16)?,
            peer_sends_on: wire::u16_at(body, 20)?,
            streams: wire::u16_at(body, 22)?,
            can_forward: body[24] != 0,
            made: Time::from_nanos(u64::from_be_bytes(*body.last_chunk()?)),
        })
    }
}

fn mac(key: [u64; 2], peer: Address, bytes: &[u8]) -> u64 {
    let [host, port] = [peer.host, peer.port].map(u64::from);
    SipHasher24::new_with_keys(key[0], key[1] ^ (host << 16 | port)).hash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COOKIE: Cookie = Cookie {
        tag: 1,
        tsn: 2,
        peer_tag: 3,
        peer_tsn: 4,
        peer_window: 5,
        peer_sends_on: 8,
        streams: 6,
        can_forward: true,
        made: Time::from_nanos(7),
    };

    #[test]
    fn a_cookie_is_good_for_its_end_and_its_peer_only() {
        let (key, peer) = ([1, 2], Address { host: 3, port: 4 });
        let sealed = COOKIE.seal(key, peer);
        assert_eq!(Cookie::open(key, peer, &sealed), Some(COOKIE));
        assert_eq!(Cookie::open([1, 3], peer, &sealed), None);
        assert_eq!(Cookie::open(key, Address { port: 5, ..peer }, &sealed), None);
        assert_eq!(Cookie::open(key, peer, &sealed[1..]), None);
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert_eq!(Cookie::open(key, peer, &damaged), None);
        }
    }

    #[test]
    fn an_answer_quotes_what_was_not_understood() {
        let mut asking = Init::value((1, 2), 3, 4, None);
        for unknown in [0x8888, 0xC888, 0x4888, 0xC889] {
            wire::put_parameter(&mut asking, unknown, &[9]);
        }
        let asked = Init::parse(&asking).unwrap();
        assert_eq!((asked.tag, asked.tsn, asked.window), (1, 2, 3));
        assert_eq!((asked.sends_on, asked.streams), (4, STREAMS));
        assert!(asked.can_forward && asked.cookie.is_none());
        // Behind the third nothing is read.
        assert_eq!(asked.unrecognized.len(), 2);
        let answer = Init::value((5, 6), 7, 8, Some((b"cookie", &asked)));
        let answered = Init::parse(&answer).unwrap();
        assert_eq!(answered.cookie, Some(&b"cookie"[..]));
        let quoted = wire::parameters(&answer[16..]).filter(|(kind, _)| *kind == UNRECOGNIZED).count();
        assert_eq!(quoted, 2);
    }

    #[test]
    fn what_cannot_be_meant_so_is_nothing() {
        let good = Init::value((1, 2), 3, 4, None);
        for at in [0..4, 8..10, 10..12] {
            let mut bad = good.clone();
            bad[at].fill(0);
            assert_eq!(Init::parse(&bad), None);
        }
        assert_eq!(Init::parse(&good[..15]), None);
        assert!(Init::parse(&good[..16]).is_some());
    }
}
