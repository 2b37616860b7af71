//! How wide text is, without a font at hand: widths of a common sans serif, a little on the wide side.

/// The width of a text in a font of this size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// The text, cut to a width with an ellipsis.
pub(super) fn fit(text: &str, size: f64, available: f64) -> String {
    if width(text, size) <= available {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = advance('…') * size;
    for c in text.chars() {
        used += advance(c) * size;
        if used > available {
            break;
        }
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// The text in lines of this width, broken at spaces, or within words that are longer than a line.
pub(super) fn lines(text: &str, size: f64, available: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').flat_map(|word| pieces(word, size, available)) {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer.filter(|longer| width(longer, size) <= available) {
            Some(longer) => *lines.last_mut().expect("there is a line that is longer now") = longer,
            None => lines.push(word),
        }
    }
    lines
}

/// A word in pieces that are no wider than a line.
fn pieces(word: &str, size: f64, available: f64) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut used = 0.0;
    for c in word.chars() {
        let wide = advance(c) * size;
        if used + wide > available && used > 0.0 {
            pieces.push(String::new());
            used = 0.0;
        }
        used += wide;
        pieces.last_mut().expect("there is a piece").push(c);
    }
    pieces
}

/// Advance widths in shares of the font size.
fn advance(c: char) -> f64 {
    match c {
        '\u{202f}' => 0.2,
        'i' | 'j' | 'l' | '\'' | '`' | '|' | '.' | ',' | ':' | ';' | '!' | ' ' => 0.28,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | '/' | '-' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 0.9,
        '<' | '>' | '=' | '+' | '~' | '^' | '&' | '#' => 0.82,
        '0'..='9' => 0.62,
        'A'..='Z' => 0.68,
        _ if c.is_ascii() => 0.6,
        // Wide scripts, and whatever else there is: rather too much room than too little.
        _ if u32::from(c) >= 0x2e80 => 1.05,
        _ => 0.62,
    }
}
