//! Values of a description that were not learned: a link needs some value, and the comment of the key says that it is none of
//! the path.

/// The words in the comment of such a key, on its line or on the one above.
pub(crate) const PLACEHOLDER: &str = "a placeholder";

/// The keys of a description that are placeholders, each behind the name of its table: `("forward", "rate")`.
pub fn placeholders(description: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut table, mut above) = ("", "");
    for line in description.lines() {
        if let Some(name) = line.strip_prefix('[') {
            table = name.split(']').next().unwrap_or_default();
        }
        let comment = line.split_once('#').map_or("", |(_, comment)| comment);
        let key = line.split_once('=').map(|(key, _)| key.trim()).filter(|key| !key.starts_with('#'));
        if let Some(key) = key.filter(|_| comment.contains(PLACEHOLDER) || above.contains(PLACEHOLDER)) {
            found.push((table.to_owned(), key.to_owned()));
        }
        above = if line.starts_with('#') { line } else { "" };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_say_which_keys_are_placeholders() {
        let text = "# Learned today.\nrate = \"1 Gbit/s\"\n# delay: not a placeholder = no key\n\n[forward]\n\
                    # a placeholder: never busy\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\n\n[backward]\n\
                    delay = \"2 ms\"   # smallest delay\nqueue = { kind = \"fifo\" }   # a placeholder, not measured\n";
        let expected = [("forward", "rate"), ("backward", "queue")];
        assert_eq!(placeholders(text), expected.map(|(table, key)| (table.to_owned(), key.to_owned())));
    }
}
