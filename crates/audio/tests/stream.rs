//! A stream in the words of the control protocol.

use trunkline_audio::pipeline::{Codec, Protection, Stream};

#[test]
fn a_stream_survives_being_written_down() {
    let codec = Codec::Opus { bitrate: 32_000, fec: true };
    let stream = Stream { codec, protection: Protection::Repeat(2), ..Stream::default() };
    let text = serde_json::to_string(&stream).unwrap();
    let expected = concat!(
        r#"{"channels":2,"sample_rate":44100,"block_frames":128,"codec":{"opus":{"bitrate":32000,"fec":true}},"#,
        r#""protection":{"repeat":2},"packing":{"per_channel":false,"most_packet":1400,"fragment":null}}"#
    );
    assert_eq!(text, expected);
    assert_eq!(serde_json::from_str::<Stream>(&text).unwrap(), stream);
}

#[test]
fn words_that_nobody_knows_are_refused() {
    let text = serde_json::to_string(&Stream::default()).unwrap();
    assert!(serde_json::from_str::<Stream>(&text.replace("channels", "chanels")).is_err());
    assert!(serde_json::from_str::<Stream>(&text.replace("i16", "i17")).is_err());
}
