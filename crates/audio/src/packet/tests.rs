use super::*;

fn header(sequence: u32) -> Header {
    Header {
        sequence,
        captured: Time::from_nanos(0x0102_0304_0506_0708),
        first_channel: 2,
        channels: 3,
        frames: 4,
        codec: 1,
    }
}

fn packet(sequence: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    header(sequence).append(&mut bytes, |bytes| bytes.extend_from_slice(data));
    bytes
}

#[test]
fn fields_are_where_the_table_says() {
    let bytes = packet(0xA0A1_A2A3, &[9, 8, 7]);
    let fields = [
        &KEY[..],
        &[0xA0, 0xA1, 0xA2, 0xA3],
        &[1, 2, 3, 4, 5, 6, 7, 8],
        &[0, 3],
        &[0, 2],
        &[0, 3],
        &[0, 4],
        &[1],
    ];
    assert_eq!(bytes[..CHECK], fields.concat());
    assert_eq!(bytes[Header::BYTES..], [9, 8, 7]);
    assert_eq!(Header::read_packet(&bytes), Some((header(0xA0A1_A2A3), &[9, 8, 7][..])));
}
