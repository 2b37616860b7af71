use proptest::prelude::*;
use trunkline_testkit::cases::cases;

use super::options::SackBlocks;
use super::*;

const FROM: Address = Address { host: 0, port: 40_001 };
const TO: Address = Address { host: 1, port: 7_001 };

fn options() -> impl Strategy<Value = Options> {
    let blocks = prop::collection::vec(any::<SackBlock>(), 0..=2);
    (any::<Option<u16>>(), prop::option::of(0..=14u8), any::<bool>(), any::<Option<(u32, u32)>>(), blocks)
        .prop_map(|(mss, window_scale, sack_permitted, timestamps, blocks)| {
            let mut sacks = SackBlocks::default();
            // Blocks do not fit beside everything else, and never stand in a SYN.
            if mss.is_none() && window_scale.is_none() {
                blocks.into_iter().for_each(|block| sacks.push(block));
            }
            Options { mss, window_scale, sack_permitted, timestamps, sacks }
        })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn reading_inverts_writing(
        sequence: u32, acknowledgement: u32, flags in 0..512u16, window: u16, options in options(),
        data: Vec<u8>, cut: prop::sample::Index,
    ) {
        let header = Header { sequence, acknowledgement, flags, window, options };
        let mut packet = Vec::new();
        let (front, back) = data.split_at(cut.index(data.len() + 1));
        header.write(FROM, TO, [front, back], &mut packet);
        prop_assert_eq!(Header::read(FROM, TO, &packet), Ok((header, &data[..])));
        packet[4] ^= 1;
        prop_assert_eq!(Header::read(FROM, TO, &packet), Err(Fault::Checksum));
    }

    #[test]
    fn no_option_area_makes_reading_panic(area: Vec<u8>) {
        Options::read(&area);
    }
}

#[test]
fn the_options_of_a_linux_syn_are_read_and_written() {
    // From a capture: mss 1460, sackOK, TS val 1 ecr 0, nop, wscale 7.
    let area = [2, 4, 0x05, 0xB4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
    let expected = Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some((1, 0)),
        sacks: SackBlocks::default(),
    };
    assert_eq!(Options::read(&area), expected);
    let mut written = [0; MAX_OPTIONS];
    assert_eq!(expected.write(&mut written), area.len());
    assert_eq!(written[..area.len()], area);
}

#[test]
fn unknown_and_damaged_options_hide_nothing_before_them() {
    let mss = |area: &[u8]| Options::read(area).mss;
    assert_eq!(mss(&[1, 1, 30, 4, 0, 0, 2, 4, 0x05, 0xB4]), Some(1460), "after an unknown option");
    assert_eq!(mss(&[0, 2, 4, 5, 0xB4]), None, "after the end of the list");
    assert_eq!(mss(&[2, 4, 5, 0xB4, 3, 1, 7]), Some(1460), "before an option of an impossible length");
    assert_eq!(mss(&[3, 1, 2, 4, 5, 0xB4]), None, "after an option of an impossible length");
    assert_eq!(mss(&[2, 4, 5]), None, "cut off");
    assert_eq!(Options::read(&[5, 9, 0, 0, 0, 1, 0, 0, 0]).sacks.as_slice(), [], "not a whole block");
}

#[test]
fn at_most_four_blocks_are_kept() {
    let mut blocks = SackBlocks::default();
    (0..6).for_each(|n| blocks.push((n, n + 1)));
    assert_eq!(blocks.as_slice(), [(0, 1), (1, 2), (2, 3), (3, 4)]);
    assert_eq!(Options::sacks_length(3) + Options::TIMESTAMPS_LENGTH, MAX_OPTIONS);
}
