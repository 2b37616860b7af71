//! What must hold of the deframer for any bytes: run by the fuzzer, by its corpus in the tests, and by proptest.

use trunkline_core::{Duration, FlowId, Time};

use super::{Cover, Deframer, HEADER_LENGTH, Header, Key, MessageKind, Short};

const RUN: Key = Key(0x5EED_CAFE);
const LIMIT: usize = 4096;

/// Checks the deframer on arbitrary bytes and panics where it breaks its word:
/// 1. however the stream is split, the same messages come out and the same number of bytes is skipped;
/// 2. every byte is delivered or skipped or still waits (unless a message began inside the damaged end of another);
/// 3. the buffer never grows beyond one message and one push;
/// 4. with the bytes put between two intact messages, both intact messages come out.
#[doc(hidden)]
pub fn fuzz_deframer(data: &[u8]) {
    let whole = read(data, &[usize::MAX]);
    let splits: Vec<usize> = data.iter().take(16).map(|&b| 1 + usize::from(b)).collect();
    assert_eq!(whole, read(data, &[1]), "split into single bytes");
    assert_eq!(whole, read(data, &splits), "split into {splits:?}");
    assert!(whole.accounted >= data.len(), "{} of {} bytes accounted for", whole.accounted, data.len());

    for short in [Short::No, Short::Stream] {
        let (first, last) = (message(1, b"before", short), message(2, b"after", short));
        let stream = [&first[..], data, &last[..]].concat();
        let found = read(&stream, &splits).messages;
        assert!(found.contains(&first), "the message before the damage is lost");
        // Damage that holds the key may announce a message, of which the one behind it is then a part or not.
        if !data.windows(3).any(|window| window == &RUN.0.to_be_bytes()[..3]) {
            assert!(found.contains(&last), "the message behind the damage is lost");
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Read {
    messages: Vec<Vec<u8>>,
    accounted: usize,
}

/// Reads a stream in pieces of these sizes, over and over.
fn read(stream: &[u8], pieces: &[usize]) -> Read {
    let mut deframer = Deframer::new(RUN, 0..1 << 16).with_limit(LIMIT);
    let mut pieces = pieces.iter().copied().cycle();
    let (mut rest, mut messages, mut accounted) = (stream, Vec::new(), 0);
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(pieces.next().unwrap_or(1).min(rest.len()));
        rest = behind;
        deframer.push(piece);
        while let Some(found) = deframer.next() {
            accounted += found.skipped + found.bytes.len();
            messages.push(found.bytes.to_vec());
        }
        assert!(deframer.waiting() <= HEADER_LENGTH + LIMIT, "waits for more than a message");
    }
    accounted += deframer.finish();
    Read { messages, accounted }
}

fn message(sequence: u32, payload: &[u8], short: Short) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LENGTH];
    bytes.extend_from_slice(payload);
    let header = Header {
        key: RUN,
        length: payload.len() as u32,
        place: super::Place::Before,
        flow: FlowId(3),
        sequence,
        channel: 0,
        kind: MessageKind::Forward,
        late: Duration::ZERO,
        sent: Time::ZERO,
        reflected: Time::ZERO,
    };
    header.stamp(&mut bytes, Cover { message: false, short }).to_vec()
}
