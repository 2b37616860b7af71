//! Crockford's base32: what people read to each other and type. It has no I, L, O or U; a reader takes I and L for 1, O for
//! 0, and skips hyphens and spaces.

/// How a symbol of five bits is written.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Bits in groups of five, the first bits first; the last group is filled with zeros.
pub(crate) fn symbols(bytes: &[u8]) -> Vec<u8> {
    let (mut symbols, mut held, mut bits) = (Vec::with_capacity(bytes.len() * 8 / 5 + 1), 0u32, 0);
    for byte in bytes {
        held = held << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            symbols.push((held >> bits) as u8 & 31);
        }
    }
    if bits > 0 {
        symbols.push((held << (5 - bits)) as u8 & 31);
    }
    symbols
}

/// The bytes of these symbols; bits that fill no byte are dropped.
pub(crate) fn bytes(symbols: &[u8]) -> Vec<u8> {
    let (mut bytes, mut held, mut bits) = (Vec::with_capacity(symbols.len() * 5 / 8), 0u32, 0);
    for symbol in symbols {
        held = held << 5 | u32::from(*symbol);
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    bytes
}

/// Symbols in groups of four, joined by hyphens. A symbol that would be left alone joins the group before it.
pub(crate) fn write(symbols: &[u8]) -> String {
    let mut text = String::new();
    for (at, symbol) in symbols.iter().enumerate() {
        if at > 0 && at % 4 == 0 && at + 1 < symbols.len() {
            text.push('-');
        }
        text.push(char::from(DIGITS[usize::from(symbol & 31)]));
    }
    text
}

/// The symbols of a text, or the character that cannot be one.
pub(crate) fn read(text: &str) -> Result<Vec<u8>, char> {
    let meant = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '-' | '\u{2010}'..='\u{2015}'));
    meant.map(|c| value(c).ok_or(c)).collect()
}

fn value(character: char) -> Option<u8> {
    let digit = match character.to_ascii_uppercase() {
        'O' => '0',
        'I' | 'L' => '1',
        other => other,
    };
    DIGITS.iter().position(|d| char::from(*d) == digit).map(|at| at as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn look_alikes_case_and_hyphens_do_not_matter() {
        assert_eq!(read("o1-iL 0O\n"), Ok(vec![0, 1, 1, 1, 0, 0]));
        assert_eq!(read("abcz"), read("ABCZ"));
        assert_eq!(read("ab–cz"), read("AB-CZ"));
        assert_eq!(read("abu"), Err('u'));
        assert_eq!(read("äb"), Err('ä'));
    }

    #[test]
    fn a_symbol_is_not_left_alone() {
        assert_eq!(write(&[0; 8]), "0000-0000");
        assert_eq!(write(&[31; 9]), "ZZZZ-ZZZZZ");
        assert_eq!(write(&[1; 6]), "1111-11");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(data: Vec<u8>) {
            let symbols = symbols(&data);
            prop_assert_eq!(&read(&write(&symbols)).unwrap(), &symbols);
            prop_assert_eq!(bytes(&symbols), data);
        }

        #[test]
        fn any_text_is_read_or_refused(text: String) {
            if let Ok(symbols) = read(&text) {
                prop_assert!(symbols.iter().all(|symbol| *symbol < 32));
            }
        }
    }
}
