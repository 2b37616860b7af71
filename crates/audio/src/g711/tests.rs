use super::*;

type Encode = fn(i16) -> u8;
type Decode = fn(u8) -> i16;
const LAWS: [(Encode, Decode); 2] = [(encode_mu_law, decode_mu_law), (encode_a_law, decode_a_law)];

fn samples() -> impl Iterator<Item = i16> {
    i16::MIN..=i16::MAX
}

#[test]
fn coding_a_decoded_sample_again_changes_nothing() {
    for (encode, decode) in LAWS {
        for sample in samples() {
            let once = decode(encode(sample));
            assert_eq!(decode(encode(once)), once, "{sample}");
        }
    }
}

#[test]
fn every_code_survives_decoding_but_the_second_zero_of_mu_law() {
    for code in 0..=255u8 {
        let expected = if code == 0x7F { MU_LAW_SILENCE } else { code };
        assert_eq!(encode_mu_law(decode_mu_law(code)), expected, "mu-law {code:#04x}");
        assert_eq!(encode_a_law(decode_a_law(code)), code, "A-law {code:#04x}");
    }
}

#[test]
fn a_code_stands_for_the_middle_of_its_interval() {
    for (law, (encode, decode)) in LAWS.into_iter().enumerate() {
        let mut intervals = [None; 256];
        // Above the clip, mu-law's last interval is longer than its step.
        for sample in samples().filter(|s| law == 1 || s.unsigned_abs() <= MU_LAW_CLIP) {
            let (_, last) = intervals[usize::from(encode(sample))].get_or_insert((sample, sample));
            *last = sample;
        }
        for (code, interval) in (0..=255).zip(intervals) {
            let (first, last): (i16, i16) = interval.unwrap();
            let middle = (i32::from(first) + i32::from(last)) as f64 / 2.0;
            // The smallest interval of mu-law is one around zero, shared by its two zeros.
            let middle = if law == 0 && middle.abs() < 4.0 { 0.0 } else { middle };
            assert!((f64::from(decode(code)) - middle).abs() <= 0.5, "{code:#04x}: {first} to {last}");
        }
    }
}

#[test]
fn louder_samples_never_get_quieter_codes() {
    for (encode, decode) in LAWS {
        for sample in i16::MIN..i16::MAX {
            assert!(decode(encode(sample)) <= decode(encode(sample + 1)), "{sample}");
        }
    }
}

/// Table 2a of G.711: values at the decoder output in 14-bit units at the ends of the segments.
#[test]
fn mu_law_values_are_those_of_the_recommendation() {
    let table: [(u8, i16); 10] = [
        (0b1000_0000, 8031),
        (0b1000_1111, 4191),
        (0b1001_1111, 2079),
        (0b1010_1111, 1023),
        (0b1011_1111, 495),
        (0b1100_1111, 231),
        (0b1101_1111, 99),
        (0b1110_1111, 33),
        (0b1111_1110, 2),
        (0b1111_1111, 0),
    ];
    for (code, value) in table {
        assert_eq!(decode_mu_law(code), value * 4, "{code:08b}");
        assert_eq!(decode_mu_law(code & 0x7F), value * -4, "{code:08b}, negative");
    }
}

/// Table 1a of G.711: values at the decoder output in 13-bit units at the ends of the segments, before the even bits
/// are inverted.
#[test]
fn a_law_values_are_those_of_the_recommendation() {
    let table: [(u8, i16); 9] = [
        (0b1111_1111, 4032),
        (0b1111_0000, 2112),
        (0b1110_0000, 1056),
        (0b1101_0000, 528),
        (0b1100_0000, 264),
        (0b1011_0000, 132),
        (0b1010_0000, 66),
        (0b1000_0001, 3),
        (0b1000_0000, 1),
    ];
    for (code, value) in table {
        assert_eq!(decode_a_law(code ^ 0x55), value * 8, "{code:08b}");
        assert_eq!(decode_a_law((code ^ 0x55) ^ 0x80), value * -8, "{code:08b}, negative");
    }
}

/// What SoX 14.4.2 makes of these samples. It rounds to 14 or 13 bits first, so only multiples of 4 and 8 can be
/// compared: on all of those, and on decoding all 256 codes, both programs agree.
#[test]
fn another_program_gives_the_same_codes() {
    let samples = [-32_768, -20_000, -1000, -136, -8, 0, 8, 136, 1000, 20_000, 32_760];
    let mu_law = [0x00, 0x0C, 0x4E, 0x6F, 0x7E, 0xFF, 0xFE, 0xEF, 0xCE, 0x8C, 0x80];
    let a_law = [0x2A, 0x26, 0x7A, 0x5D, 0x55, 0xD5, 0xD5, 0xDD, 0xFA, 0xA6, 0xAA];
    assert_eq!(samples.map(encode_mu_law), mu_law);
    assert_eq!(samples.map(encode_a_law), a_law);
}
