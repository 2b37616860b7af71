//! The version of the protocol between hosts covers the header of measured messages, which hosts write to each other too.

use trunkline_core::{Duration, FlowId, Time};
use trunkline_peer::message::VERSION;
use trunkline_transport::framing::{HEADER_LENGTH, Header, Key, MessageKind, Place};

/// The version, and a header as that version writes it. If the header changes, the version rises: an older end would otherwise
/// take each message for a damaged one, and report that all are lost.
const WRITTEN: (u32, &str) =
    (4, "74726b2c000000500000000200010baa0102030400000bb80000011f71fb04cb0000000000000009");

#[test]
fn a_header_that_changes_raises_the_version() {
    let header = Header {
        key: Key(0x7472_6B6C),
        length: 80,
        place: Place::Before,
        flow: FlowId(2),
        sequence: 0x0102_0304,
        channel: 1,
        kind: MessageKind::End,
        late: Duration::from_micros(3),
        sent: Time::from_nanos(1_234_567_890_123),
        reflected: Time::from_nanos(9),
    };
    let mut bytes = [0; HEADER_LENGTH];
    header.encode(&mut bytes);
    let written: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((VERSION, &*written), WRITTEN);
}
