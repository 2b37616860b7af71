//! Packets in a stream of bytes.
//!
//! A frame is the length of the packet (two bytes, big-endian) and the packet, which begins with the session's key. Where
//! bytes are missing, as in a stream of XTP without error control, the next key leads back to a frame; a key within a
//! packet means that the packet was cut.

use memchr::memmem::Finder;

use crate::request::Key;

/// The largest packet.
pub(crate) const LARGEST: usize = u16::MAX as usize;
/// Bytes before a packet.
pub(super) const LENGTH: usize = 2;

/// Appends a frame.
pub(crate) fn write(packet: &[u8], into: &mut Vec<u8>) {
    debug_assert!(packet.len() <= LARGEST, "the line refuses larger packets");
    into.extend_from_slice(&(packet.len() as u16).to_be_bytes());
    into.extend_from_slice(packet);
}

/// How long the frame of a packet is.
pub(crate) fn length(packet: &[u8]) -> usize {
    LENGTH + packet.len()
}

/// Finds the packets in what arrives. Memory is bounded by the largest packet and what is pushed at once.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    key: [u8; Key::LENGTH],
    finder: Finder<'static>,
    bytes: Vec<u8>,
    /// Between the last packet and here are bytes of none.
    is_lost: bool,
}

impl Frames {
    /// Of packets that begin with this key.
    pub(crate) fn new(key: Key) -> Frames {
        let key = key.bytes();
        Frames { key, finder: Finder::new(&key).into_owned(), bytes: Vec::new(), is_lost: false }
    }

    /// Takes the next bytes of the stream, hands on the packets that they complete, and says how often something was
    /// there instead of one.
    pub(crate) fn push(&mut self, bytes: &[u8], found: &mut dyn FnMut(&[u8])) -> u64 {
        self.bytes.extend_from_slice(bytes);
        let (mut at, mut gaps) = (0, 0);
        loop {
            let rest = &self.bytes[at..];
            let Some(start) = rest.get(..LENGTH + Key::LENGTH) else { break };
            let length = usize::from(u16::from_be_bytes([start[0], start[1]]));
            if start[LENGTH..] == self.key && length >= Key::LENGTH {
                let known = rest.len().min(LENGTH + length);
                let body = &rest[LENGTH + Key::LENGTH..known];
                if let Some(cut) = self.finder.find(body) {
                    // The next frame's length stands before its key, and may be cut too.
                    gaps += 1;
                    at += Key::LENGTH + cut;
                } else if known == LENGTH + length {
                    found(&rest[LENGTH..known]);
                    self.is_lost = false;
                    at += known;
                } else {
                    break;
                }
            } else {
                gaps += u64::from(!core::mem::replace(&mut self.is_lost, true));
                match self.finder.find(&rest[LENGTH + 1..]) {
                    Some(key) => at += 1 + key,
                    None => {
                        // The last bytes may be the beginning of a length and a key.
                        at += rest.len() - (LENGTH + Key::LENGTH - 1);
                        break;
                    }
                }
            }
        }
        self.bytes.drain(..at);
        gaps
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: Key = Key(0x0102_0304_0506_0708);

    fn packet(content: &[u8]) -> Vec<u8> {
        [&KEY.bytes(), content].concat()
    }

    fn stream(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        packets.iter().for_each(|packet| write(packet, &mut bytes));
        bytes
    }

    fn found(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, u64) {
        let (mut frames, mut packets) = (Frames::new(KEY), Vec::new());
        let gaps = pieces.iter().map(|piece| frames.push(piece, &mut |packet| packets.push(packet.to_vec())));
        let gaps = gaps.sum();
        (packets, gaps)
    }

    #[test]
    fn an_empty_packet_is_its_key() {
        assert_eq!(found(&[&stream(&[packet(&[])])]), (vec![packet(&[])], 0));
    }

    #[test]
    fn strangers_are_a_gap_however_much_they_send() {
        let noise = [7; 1000];
        let (packets, gaps) = found(&[&noise, &noise, &noise]);
        assert_eq!((packets.len(), gaps), (0, 1));
    }

    proptest! {
        #[test]
        fn packets_come_out_as_they_went_in(
            contents in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..10),
            piece in 1..50usize,
        ) {
            let sent: Vec<Vec<u8>> = contents.iter().map(|content| packet(content)).collect();
            let bytes = stream(&sent);
            let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
            prop_assert_eq!(found(&pieces), (sent, 0));
        }

        /// A cut takes the packets that it touches and the one behind them, no more; the rest come out whole and in order.
        #[test]
        fn a_cut_loses_what_it_touches(start in 0..400usize, length in 1..60usize, piece in 1..50usize) {
            let sent: Vec<Vec<u8>> = (0..20u8).map(|n| packet(&[n; 17])).collect();
            let bytes = stream(&sent);
            let cut = [&bytes[..start], &bytes[start + length..]].concat();
            let pieces: Vec<&[u8]> = cut.chunks(piece).collect();
            let (packets, _) = found(&pieces);
            let whole = |packet: &&Vec<u8>| sent.contains(packet);
            let kept: Vec<&Vec<u8>> = packets.iter().filter(whole).collect();
            prop_assert!(kept.is_sorted_by_key(|packet| packet[Key::LENGTH]));
            let touched = (start + length).div_ceil(27) - start / 27;
            prop_assert!(kept.len() + touched + 1 >= sent.len(), "{} of 20, {touched} touched", kept.len());
        }
    }
}
