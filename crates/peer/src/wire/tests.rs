use proptest::prelude::*;

use super::*;
use crate::error::{Refusal, RefusalKind};
use crate::fuzz::fuzz_frames;
use crate::message::{Hello, Purpose, Reply, Welcome};
use crate::{Fingerprint, Identity};

/// Gives these bytes to a deframer in pieces of so many bytes at most.
fn deframe(deframer: &mut Deframer, mut bytes: &[u8], piece: usize) -> Result<Vec<Frame>, WireError> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let space = deframer.space();
        let length = space.len().min(bytes.len()).min(piece);
        let (now, later) = bytes.split_at(length);
        space[..length].copy_from_slice(now);
        bytes = later;
        frames.extend(deframer.advance(length)?);
    }
    Ok(frames)
}

fn bytes_of(frame: &Frame) -> Vec<u8> {
    [&head(frame.tag, frame.body.len()).unwrap()[..], &frame.body].concat()
}

fn any_frame() -> impl Strategy<Value = Frame> {
    (any::<u8>(), prop::collection::vec(any::<u8>(), 0..60_000)).prop_map(|(tag, body)| Frame { tag, body })
}

fn fingerprint() -> Fingerprint {
    Identity::generate().unwrap().fingerprint()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn frames_come_out_as_they_went_in(
        frames in prop::collection::vec(any_frame(), 0..5),
        piece in 1..20_000usize,
    ) {
        let stream: Vec<u8> = frames.iter().flat_map(bytes_of).collect();
        let mut deframer = Deframer::new(MAX_FRAME);
        prop_assert_eq!(deframe(&mut deframer, &stream, piece), Ok(frames));
        prop_assert!(deframer.is_between_frames());
    }

    #[test]
    fn a_frame_that_lacks_a_byte_is_none(frame in any_frame()) {
        let stream = bytes_of(&frame);
        let mut deframer = Deframer::new(MAX_FRAME);
        prop_assert_eq!(deframe(&mut deframer, &stream[..stream.len() - 1], 10_000), Ok(Vec::new()));
        prop_assert!(!deframer.is_between_frames());
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>) {
        fuzz_frames(&bytes, |_| ());
    }

    #[test]
    fn no_body_panics(tag in prop::sample::select(vec![b'H', b'W', b'M', b'C', b'R', b'P', 0]), body: Vec<u8>) {
        fuzz_frames(&bytes_of(&Frame { tag, body }), |_| ());
    }
}

#[test]
fn a_large_length_takes_no_memory() {
    let mut deframer = Deframer::new(MAX_FRAME);
    deframe(&mut deframer, &[0x04, 0, 0, 0, b'M'], 5).unwrap();
    assert_eq!(deframer.space().len(), Deframer::STEP);
    assert!(deframer.body.capacity() <= 2 * Deframer::STEP);
}

#[test]
fn who_is_not_known_sends_small_frames_only() {
    let mut deframer = Deframer::new(STRANGER_FRAME);
    let small = Frame { tag: b'M', body: vec![0; STRANGER_FRAME - 1] };
    assert_eq!(deframe(&mut deframer, &bytes_of(&small), 9_999), Ok(vec![small]));
    let large = bytes_of(&Frame { tag: b'M', body: vec![0; STRANGER_FRAME] });
    let refused = WireError::TooLarge { length: STRANGER_FRAME as u64 + 1, limit: STRANGER_FRAME };
    // Its head is enough.
    assert_eq!(deframe(&mut deframer, &large[..HEAD], 9_999), Err(refused));
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let whole = |bytes: &[u8]| deframe(&mut Deframer::new(MAX_FRAME), bytes, 5);
    assert_eq!(whole(&[0, 0, 0, 0, b'M']), Err(WireError::Empty));
    let limit = MAX_FRAME;
    let length = u64::from(u32::MAX);
    assert_eq!(whole(&[255; 5]), Err(WireError::TooLarge { length, limit }));
    assert_eq!(head(b'M', MAX_FRAME), Err(WireError::TooLarge { length: limit as u64 + 1, limit }));
}

#[test]
fn a_terminal_obeys_nothing_of_what_a_stranger_says() {
    let evil = r"\u001b[2J\u0007\n\u009b31m\u202e".to_owned() + &"x".repeat(3_000);
    let hello = format!(r#"{{"version":1,"program":"0.1.0","purpose":"{evil}"}}"#);
    let error =
        Hello::from_frame(Frame { tag: tag::HELLO, body: hello.into_bytes() }).unwrap_err().to_string();
    assert!(error.contains("[2J31mxxx"), "{error:?}");
    assert!(error.len() < 500 && !error.chars().any(|c| c.is_control() || c == '\u{202e}'), "{error:?}");
    let welcome = format!(r#"{{"version":1,"program":"{evil}","name":"{evil}"}}"#);
    let Welcome { program, name, .. } =
        Welcome::from_frame(Frame { tag: tag::WELCOME, body: welcome.into_bytes() }).unwrap();
    assert!(!(program + &name).chars().any(char::is_control));
}

#[test]
fn greetings_keep_their_form() {
    // Older and newer versions read exactly this.
    let hello = Hello { version: 1, program: "0.1.0".into(), purpose: Purpose::Join { token: "t".into() } };
    let frame = hello.to_frame().unwrap();
    let text = r#"{"version":1,"program":"0.1.0","purpose":{"join":{"token":"t"}}}"#;
    assert_eq!((frame.tag, str::from_utf8(&frame.body).unwrap()), (b'H', text));
    let welcome = Welcome { version: 1, program: "0.1.0".into(), name: "ottawa".into() };
    let frame = welcome.to_frame().unwrap();
    let text = r#"{"version":1,"program":"0.1.0","name":"ottawa"}"#;
    assert_eq!((frame.tag, str::from_utf8(&frame.body).unwrap()), (b'W', text));
}

#[test]
fn what_a_later_version_adds_is_skipped() {
    let body = br#"{"refused":{"refusal":{"kind":"moon-phase","why":"it is new"},"more":1}}"#;
    let frame = Frame { tag: tag::MESSAGE, body: body.to_vec() };
    let refusal = Refusal::new(RefusalKind::Other, "it is new");
    assert_eq!(Reply::from_frame(frame), Ok(Reply::Refused { refusal }));
}

/// A frame for which its sender has no memory is skipped: it is reported once, holds nothing, and the next is read.
#[test]
fn a_frame_beyond_its_senders_memory_is_skipped() {
    let memory = crate::Memory::new(trunkline_core::Bytes(200 << 10));
    let share = memory.share(fingerprint());
    let mut deframer = Deframer::new(MAX_FRAME);
    deframer.set_share(share.clone());
    let frame = |length: usize| Frame { tag: tag::MESSAGE, body: vec![7; length] };
    let error = deframe(&mut deframer, &bytes_of(&frame(300 << 10)), 5000).unwrap_err();
    let WireError::Memory { length, why } = error else { panic!("{error}") };
    assert_eq!((length, why.most), ((300 << 10) + 1, trunkline_core::Bytes(100 << 10)));
    assert_eq!(memory.held(), trunkline_core::Bytes::ZERO);
    assert!(deframer.is_between_frames());

    let next = frame(50 << 10);
    assert_eq!(deframe(&mut deframer, &bytes_of(&next), 5000), Ok(vec![next]));
    // The frame is in use until its holder is dropped.
    let held = deframer.take_held().unwrap();
    assert_eq!(share.held(), held.bytes());
    assert!(held.bytes() >= trunkline_core::Bytes(50 << 10));
    drop(held);
    assert_eq!(memory.held(), trunkline_core::Bytes::ZERO);
}
