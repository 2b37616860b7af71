//! The output of programs: its end is kept or quoted.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Lines that an error quotes.
const QUOTED: usize = 12;
/// The end of a text in which those lines are looked for, in bytes.
const QUOTED_BYTES: u64 = 64 << 10;

/// The text of a file, as [`end_of`]; empty if it cannot be read.
pub(crate) fn end(path: &Path, max: u64) -> String {
    File::open(path).and_then(|file| end_of(file, max)).unwrap_or_default()
}

/// The last lines of a file, for an error.
pub(crate) fn last_lines(path: &Path) -> String {
    let text = end(path, QUOTED_BYTES);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(QUOTED)..].join("\n")
}

/// The text of a file, without carriage returns; if it is longer than `max` bytes, its end, after a line with the
/// number of bytes left out.
fn end_of(mut file: File, max: u64) -> io::Result<String> {
    let before = file.metadata()?.len().saturating_sub(max);
    let mut bytes = match before {
        0 => Vec::new(),
        _ => format!("[{before} bytes before this are left out]\n").into_bytes(),
    };
    file.seek(SeekFrom::Start(before))?;
    file.take(max).read_to_end(&mut bytes)?;
    let mut text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    text.retain(|c| c != '\r');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn of_a_long_console_the_end_is_kept() {
        let end = |text: &str, max| {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(text.as_bytes()).expect("room for it");
            end_of(file, max).expect("it can be read")
        };
        assert_eq!(end("one\r\ntwo\r\n", 10), "one\ntwo\n");
        assert_eq!(end("one\r\ntwo\r\n", 9), "[1 bytes before this are left out]\nne\ntwo\n");
        // The first byte that is kept is the second of a letter.
        assert_eq!(end("é!", 2), "[1 bytes before this are left out]\n\u{fffd}!");
    }
}
