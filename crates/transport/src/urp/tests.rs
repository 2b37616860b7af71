use proptest::prelude::*;
use trunkline_core::Duration;
use trunkline_testkit::cases::cases;

use super::*;

const NEAR: Address = Address { host: 0, port: 40_001 };
const FAR: Address = Address { host: 1, port: 7_001 };

/// A config whose block is `block` bytes and whose window is `window` blocks.
fn config(block: usize, window: u8) -> UrpConfig {
    UrpConfig { block, window, ..UrpConfig::default() }
}

/// Bytes of which no two blocks are alike.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn options_out_of_range_are_refused() {
    let refused = |config| UrpEndpoint::connect(NEAR, FAR, config).map(|_| ()).unwrap_err().to_string();
    assert_eq!(refused(config(15, 3)), "URP's block is 15 bytes; expected 16 to 1024");
    assert_eq!(refused(config(1025, 3)), "URP's block is 1025 bytes; expected 16 to 1024");
    assert_eq!(refused(config(256, 0)), "URP's window is 0 blocks; expected 1 to 7");
    assert_eq!(refused(config(256, 8)), "URP's window is 8 blocks; expected 1 to 7");
    let timeout = UrpConfig { timeout: Duration::ZERO, ..UrpConfig::default() };
    assert_eq!(refused(timeout), "URP's timeout is zero; expected more");
}

#[test]
fn the_window_is_never_exceeded() {
    for window in WINDOW {
        let config = UrpConfig { block: 16, window, patience: None, ..UrpConfig::default() };
        let mut ends = ends(config);
        let mut packet = Vec::new();
        let mut now = Time::ZERO;
        exchange(&mut ends, now);
        ends[0].send(now, Message::new(&pattern(1000))).unwrap();
        // Nobody answers, so it goes back again and again; what it has under way stays within the window.
        let mut blocks = 0;
        for _ in 0..20 {
            while ends[0].poll_transmit(now, &mut packet).is_some() {
                blocks += u64::from(packet.len() > 20);
                assert!(ends[0].sender.outstanding() <= u64::from(window));
            }
            now = ends[0].next_timeout().expect("it waits for ECHOs");
            ends[0].handle_timeout(now);
        }
        assert_eq!(blocks, u64::from(window), "no retransmission without an answer");
    }
}

/// Sizes of the packets that the near end sends for these pieces of one message.
fn packets(block: usize, pieces: &[usize]) -> Vec<u64> {
    let mut ends = ends(config(block, 7));
    exchange(&mut ends, Time::ZERO);
    let mut sizes = Vec::new();
    let mut packet = Vec::new();
    for (index, &length) in pieces.iter().enumerate() {
        let bytes = pattern(length);
        let last = index + 1 == pieces.len();
        let message = if last { Message::new(&bytes) } else { Message::piece(&bytes) };
        ends[0].send(Time::ZERO, message).unwrap();
        while let Some(transmit) = ends[0].poll_transmit(Time::ZERO, &mut packet) {
            sizes.push(transmit.size.count());
            ends[1].handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
        }
    }
    let mut received = Vec::new();
    ends[1].receive(&mut received);
    assert_eq!(received, pieces.iter().flat_map(|&length| pattern(length)).collect::<Vec<u8>>());
    sizes
}

#[test]
fn a_piece_leaves_at_once_and_the_trailer_rides_on_the_last() {
    assert_eq!(packets(256, &[64, 64, 64, 8]), [64, 64, 64, 8 + 6]);
}

#[test]
fn a_full_block_ends_amid_a_message() {
    assert_eq!(packets(256, &[64, 64, 64, 64, 64]), [64, 64, 64, 64 + 6, 64 + 6]);
    assert_eq!(packets(100, &[64, 64, 72]), [64, 36 + 6, 28, 72 + 6]);
    assert_eq!(packets(100, &[250]), [106, 106, 56]);
}

#[test]
fn an_empty_last_piece_ends_the_block() {
    assert_eq!(packets(256, &[64, 0]), [64, 6]);
    // The block was full: it has ended already.
    assert_eq!(packets(64, &[64, 0]), [70]);
}

#[test]
fn other_pieces_that_make_up_the_length_are_not_taken_for_the_block() {
    // Block 1 is there. Block 2 comes in three equal pieces; the sender goes back after the first, and of what it sends
    // then the circuit loses the second: three pieces have arrived, the first of them twice.
    let mut receiver = Receiver::new();
    let [a, b, c] = [[1; 8], [2; 8], [3; 8]];
    let trailer = Some(wire::Trailer { more: false, length: 24, sequence: 1 });
    receiver.data(Ecn::NotCapable, &a, None);
    receiver.data(Ecn::NotCapable, &a, None);
    receiver.lost();
    assert!(!receiver.data(Ecn::NotCapable, &c, trailer));
    assert_eq!(receiver.poll(), Some(Control::Reject(0)));
    // Without a loss, the block is the end of what has come since the last trailer.
    receiver.data(Ecn::NotCapable, &a, None);
    receiver.data(Ecn::NotCapable, &a, None);
    receiver.data(Ecn::NotCapable, &b, None);
    assert!(receiver.data(Ecn::NotCapable, &c, trailer));
    let mut received = Vec::new();
    receiver.read(&mut received);
    assert_eq!(received, [a, b, c].concat());
}

fn ends(config: UrpConfig) -> [UrpEndpoint; 2] {
    [UrpEndpoint::connect(NEAR, FAR, config).unwrap(), UrpEndpoint::listen(FAR, NEAR, config).unwrap()]
}

/// Carries packets between two ends at one moment until neither has more to say.
fn exchange(ends: &mut [UrpEndpoint; 2], now: Time) {
    let mut packet = Vec::new();
    loop {
        let mut quiet = true;
        for (side, from) in [(0, NEAR), (1, FAR)] {
            while ends[side].poll_transmit(now, &mut packet).is_some() {
                quiet = false;
                ends[1 - side].handle_packet(now, from, Ecn::NotCapable, &packet);
            }
            while ends[side].poll_event().is_some() {}
        }
        if quiet {
            return;
        }
    }
}

fn body() -> impl Strategy<Value = (Vec<u8>, u8, u8, u16)> {
    (prop::collection::vec(any::<u8>(), 0..wire::MAX_BLOCK), 0..12u8, 0..8u8, 0..=wire::MAX_BLOCK as u16)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn what_is_written_is_read_again((data, kind, sequence, length) in body(), number in 1..u64::MAX, cut: usize) {
        let (front, back) = data.split_at(cut % (data.len() + 1));
        let trailer = |more| Some(wire::Trailer { more, length: length.max(1), sequence });
        let controls = [
            Control::Echo(sequence), Control::Reject(sequence), Control::Acknowledge(sequence),
            Control::Enquire, Control::Initialise, Control::Initialised,
        ];
        let data_body = |pieces, trailer| Body::Data { pieces, trailer };
        let (written, read) = match kind {
            0 => (Body::HangUp, Body::HangUp),
            1 => (data_body([front, back], trailer(true)), data_body([&data, &[]], trailer(true))),
            2 => (data_body([front, back], trailer(false)), data_body([&data, &[]], trailer(false))),
            3 if !data.is_empty() => (data_body([front, back], None), data_body([&data, &[]], None)),
            _ => [controls[usize::from(kind) % 6]].map(|c| (Body::Control(c), Body::Control(c)))[0],
        };
        let mut packet = vec![9; 5];
        Packet { number, body: written }.encode(&mut packet);
        prop_assert_eq!(Packet::decode(&packet), Ok(Packet { number, body: read }));
    }

    #[test]
    fn up_to_three_flipped_bits_are_always_found(
        (data, _, sequence, _) in body(), bits in prop::collection::btree_set(0..10_000usize, 1..4),
    ) {
        let trailer = Some(wire::Trailer { more: false, length: data.len() as u16, sequence });
        let mut packet = Vec::new();
        Packet { number: 7, body: Body::Data { pieces: [&data, &[]], trailer } }.encode(&mut packet);
        let total = packet.len() * 8;
        let places: std::collections::BTreeSet<usize> = bits.iter().map(|bit| bit % total).collect();
        for bit in places {
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        prop_assert!(Packet::decode(&packet).is_err());
    }

    #[test]
    fn no_bytes_break_it(data in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzz_urp(&data);
    }

    #[test]
    fn no_packets_break_it(packets in prop::collection::vec((body(), 1..40u64), 0..20)) {
        let mut bytes = Vec::new();
        let mut packet = Vec::new();
        for ((data, kind, sequence, length), number) in packets {
            let data = &data[..data.len().min(40)];
            let body = match kind {
                0 => Body::HangUp,
                1 => Body::Control(Control::Echo(sequence)),
                2 => Body::Control(Control::Reject(sequence)),
                3 => Body::Control(Control::Acknowledge(sequence)),
                4 => Body::Control(Control::Enquire),
                5 => Body::Control(Control::Initialise),
                6 | 7 => Body::Control(Control::Initialised),
                8 => Body::Data { pieces: [data, &[]], trailer: None },
                _ => {
                    let length = if kind == 9 { length } else { data.len() as u16 };
                    Body::Data { pieces: [data, &[]], trailer: Some(wire::Trailer { more: false, length, sequence }) }
                }
            };
            Packet { number, body }.encode(&mut packet);
            bytes.push(packet.len() as u8);
            bytes.extend_from_slice(&packet);
        }
        fuzz_urp(&bytes);
    }
}
