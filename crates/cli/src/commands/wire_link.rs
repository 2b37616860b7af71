//! Links described on the command line: `--link "20 Mbit/s, 30 ms, fq-codel"`.
//!
//! A description becomes an experiment file of two hosts and one link, and settings of its keys, so that values are checked
//! like those of any file and problems are reported at the text that the user typed.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use trunkline_core::{Bytes, Duration, Rate, Ratio};
use trunkline_experiment::{Experiment, Setting};
use trunkline_runner::DirectoryFiles;

use crate::args::wire::LinkWords;
use crate::output::Failure;

/// The host on which COMMAND runs.
pub(super) const CLIENT: &str = "client";
/// The host at the other end.
pub(super) const SERVER: &str = "server";
/// The link's name.
const LINK: &str = "link";

/// One word: the value of a key.
#[derive(Clone, Copy)]
struct Word<'w> {
    option: &'static str,
    /// The table of a direction and a dot, or nothing.
    direction: &'static str,
    key: &'w str,
    value: &'w str,
    /// The word as typed.
    text: &'w str,
}

/// The experiment that the words describe.
pub(super) fn load(words: &LinkWords) -> Result<Experiment, Failure> {
    let all =
        [("--link", "", &words.link), ("--up", "forward.", &words.up), ("--down", "backward.", &words.down)];
    let mut read = Vec::new();
    for (option, direction, text) in all {
        let word = |text| {
            let (key, value) = key_and_value(option, text)?;
            Ok(Word { option, direction, key, value, text })
        };
        let mut words =
            text.iter().flat_map(|text| split(text)).map(word).collect::<Result<Vec<_>, Failure>>()?;
        refuse_repeated(&words)?;
        // The keys of a queue hold for the queue that another word names, in whatever order.
        words.sort_by_key(|word| word.key.contains('.'));
        read.extend(words);
    }
    experiment(&read)
}

/// The experiment of these words.
fn experiment(words: &[Word<'_>]) -> Result<Experiment, Failure> {
    let text = format!(
        "name = \"{LINK}\"\nduration = \"1 s\"\n\n[hosts]\n{CLIENT} = {{}}\n{SERVER} = {{}}\n\n[link.{LINK}]\n\
         between = [\"{CLIENT}\", \"{SERVER}\"]\n{}",
        medium(words)?
    );
    let settings: Vec<Setting> = words.iter().map(Word::setting).collect();
    let files = DirectoryFiles::beside(Path::new(LINK));
    trunkline_runner::load_from(text.as_bytes(), Path::new("--link"), &files, &settings)
        .map_err(|error| Failure::load(&error))
}

/// Refuses two words for the same key, one of which would be ignored.
fn refuse_repeated(words: &[Word<'_>]) -> Result<(), Failure> {
    for (place, word) in words.iter().enumerate() {
        if let Some(before) = words[..place].iter().find(|before| before.key == word.key) {
            // A word without a number is read as a queue, and may be none.
            for word in [before, word].into_iter().filter(|word| word.key == "queue") {
                experiment(&[*word])?;
            }
            return Err(Failure::input(format_args!(
                "{}: `{}` and `{}` both set `{}`; leave one out",
                word.option, before.text, word.text, word.key
            )));
        }
    }
    Ok(())
}

impl Word<'_> {
    fn setting(&self) -> Setting {
        // A word that is more than its value is shown with its key.
        let before = self.text.strip_suffix(self.value).unwrap_or_default().trim_end();
        let shown = match before.strip_suffix('=') {
            Some(key) => format!("{} {}=", self.option, key.trim_end()),
            None => format!("{} {before}", self.option),
        };
        Setting::of_option(
            shown.trim_end(),
            &format!("link.{LINK}.{}{}", self.direction, self.key),
            self.value,
        )
    }
}

/// The keys that the link's medium requires; settings replace them.
fn medium(words: &[Word<'_>]) -> Result<String, Failure> {
    let rate = words.iter().find(|word| word.key == RATE);
    let Some(trace) = words.iter().find(|word| word.key == TRACE) else {
        // Other media have a rate of their own, and so has a profile.
        let is_named = words.iter().any(|word| [MEDIUM, PROFILE].contains(&word.key));
        if is_named {
            return Ok(String::new());
        }
        // What comes at once to a link without a limit passes.
        let has_queue = words.iter().any(|word| word.key == "queue" || word.key.starts_with("queue."));
        let queue = if rate.is_some() || has_queue {
            ""
        } else {
            "queue = { kind = \"fifo\", limit = \"100000 packets\" }\n"
        };
        return Ok(format!("rate = \"{FASTEST}\"\n{queue}"));
    };
    if let Some(rate) = rate {
        return Err(Failure::input(format_args!(
            "{} {}: a trace replaces the rate in both directions; omit the rate, or give `trace=FILE` for \
            that direction too",
            rate.option, rate.text
        )));
    }
    let has = |direction: &str| words.iter().any(|word| word.key == TRACE && word.direction == direction);
    let has_both = has("") || (has("forward.") && has("backward."));
    if !has_both {
        return Err(Failure::input(format_args!(
            "{} {}: the other direction needs a trace too; give one each in `--up` and `--down`, or one in `--link`",
            trace.option, trace.text
        )));
    }
    Ok(format!("medium = \"trace\"\nfile = {}\n", serde_json::Value::from(trace.value)))
}

const RATE: &str = "rate";
const MEDIUM: &str = "medium";
const PROFILE: &str = "profile";
/// The key of a trace link's file.
const TRACE: &str = "file";
/// The rate of a link for which none is given: the highest that a file takes.
const FASTEST: &str = "1000 Gbit/s";

/// Above this rate a relay may be the limit: it forwards some hundred thousand packets per second, and more segments of TCP.
const FORWARDED: Rate = Rate::from_bits_per_second(2_000_000_000);
/// Below this delay the time that a relay takes to wake up matters.
const EXACT: Duration = Duration::from_micros(100);
/// Packets in flight are kept in memory; more bytes than this are mentioned.
const IN_MEMORY: f64 = 1e9;

/// A sentence for each property of a link that is beyond the emulator. A direction whose rate nobody named is as fast as can be.
pub(super) fn beyond(link: &trunkline_experiment::Link, names_rate: [bool; 2]) -> Vec<String> {
    let mut sentences = Vec::new();
    let name = &link.name;
    let named = || {
        link.directions
            .iter()
            .zip(names_rate)
            .filter_map(|(direction, is_named)| is_named.then_some(direction))
    };
    let fastest = named().map(|direction| direction.rate).max();
    if let Some(rate) = fastest.filter(|rate| *rate > FORWARDED) {
        sentences.push(format!(
            "link `{name}`: {rate} may be more than this machine can forward, some hundred thousand packets per second, or several \
             Gbit/s of TCP: packets beyond that are lost before the link; `trunkline wire` reports them when it ends"
        ));
    }
    let delays = || link.directions.iter().map(|direction| direction.delay);
    if let Some(delay) = delays().filter(|delay| !delay.is_zero() && *delay < EXACT).min() {
        sentences.push(format!(
            "link `{name}`: a delay of {delay} is shorter than the time to wake a relay, up to {EXACT}; `--spin` \
             makes it more exact"
        ));
    }
    let on_its_way = |direction: &trunkline_experiment::Direction| {
        direction.rate.bits_per_second() as f64 / 8.0 * (direction.delay + direction.wander).as_secs_f64()
    };
    let most = named().map(on_its_way).fold(0.0, f64::max);
    if most > IN_MEMORY {
        sentences.push(format!(
            "link `{name}`: up to {:.0} GB are in flight at its rate and delay, and the relay keeps them in memory",
            most / 1e9
        ));
    }
    sentences
}

/// True for each direction, up and down, for which the words name a rate.
pub(super) fn names_rate(words: &LinkWords) -> [bool; 2] {
    let names = |text: &Option<String>| {
        let words = text.iter().flat_map(|text| split(text));
        words.filter_map(|word| key_and_value("", word).ok()).any(|(key, _)| key == RATE)
    };
    [&words.up, &words.down].map(|direction| names(&words.link) || names(direction))
}

/// The options as typed, for `status`.
pub(super) fn shown(words: &LinkWords) -> PathBuf {
    let all = [("--link", &words.link), ("--up", &words.up), ("--down", &words.down)];
    let shown = all.iter().filter_map(|(option, text)| Some(format!("{option} \"{}\"", text.as_ref()?)));
    shown.collect::<Vec<_>>().join(" ").into()
}

/// The words between commas, but for commas within brackets or quotation marks.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut quote) = (0_i32, None);
    let words = text.split(move |c: char| {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') => return depth <= 0,
            _ => {}
        }
        false
    });
    words.map(str::trim).filter(|word| !word.is_empty())
}

/// The key of a direction that a word gives a value, and the value: `loss=1 %`, `loss 1%`, or a value that shows its key.
fn key_and_value<'w>(option: &str, word: &'w str) -> Result<(&'w str, &'w str), Failure> {
    let is_key =
        |key: &str| key.starts_with(|c: char| c.is_ascii_alphabetic()) && !key.contains(char::is_whitespace);
    let split = word.split_once('=').or_else(|| word.split_once(char::is_whitespace));
    if let Some((key, value)) =
        split.map(|(key, value)| (key.trim(), value.trim())).filter(|(key, _)| is_key(key))
    {
        let key = match key {
            "trace" => TRACE,
            "limit" => "queue.limit",
            key => key,
        };
        return Ok((key, value));
    }
    let key = match word {
        _ if is_key(word) => "queue",
        _ if Rate::from_str(word).is_ok() => RATE,
        _ if Duration::from_str(word).is_ok() => "delay",
        _ if word.ends_with('%') && Ratio::from_str(word).is_ok() => "loss",
        _ if word.ends_with("packets") || Bytes::from_str(word).is_ok() => "queue.limit",
        _ => {
            return Err(Failure::input(format_args!(
                "{option}: `{word}` is not a rate (`20 Mbit/s`), delay (`30 ms`), loss (`1 %`), queue (`fq-codel`) or its limit \
                 (`64 KiB`, `100 packets`), with a comma between two of them (units: bit/s, kbit/s, Mbit/s, Gbit/s; ns, us, ms, s, \
                 min, h; B, KB, MB, GB, KiB, MiB, GiB); write other keys of a link as KEY=VALUE, such as `mtu=1400 B`"
            )));
        }
    };
    Ok((key, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(link: &str, up: &str, down: &str) -> LinkWords {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        LinkWords { link: some(link), up: some(up), down: some(down) }
    }

    /// The table of the link in the file that the words stand for.
    fn table(words: &LinkWords) -> String {
        let text = load(words).unwrap_or_else(|failure| panic!("{}", failure.message)).text;
        text.split_once("[link.link]\n").expect("the link's table").1.to_owned()
    }

    #[test]
    fn a_word_that_is_wrong_alone_is_what_is_wrong() {
        let said =
            |text: &str| load(&words(text, "", "")).err().map(|failure| failure.message).unwrap_or_default();
        assert!(said("20 Mbit/s, fq-codel, frobnicate").contains("no queue `frobnicate`"));
        assert!(said("20 Mbit/s, frobnicate, fq-codel").contains("no queue `frobnicate`"));
        assert!(said("20 Mbit/s, fq-codel, fifo").contains("both set `queue`"));
        let up = load(&words("20 Mbit/s", "codel, frobnicate", "")).err().map(|failure| failure.message);
        assert!(up.is_some_and(|said| said.contains("--up")));
    }

    #[test]
    fn words_become_the_keys_of_a_link() {
        let text = table(&words("20 Mbit/s, 30 ms, fq-codel, 1 %, reorder=2 %, mtu 1400B", "", ""));
        for line in [
            "rate = \"20 Mbit/s\"",
            "delay = \"30 ms\"",
            "queue = \"fq-codel\"",
            "loss = \"1 %\"",
            "reorder = \"2 %\"",
            "mtu = \"1400B\"",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        assert!(!text.contains(FASTEST), "{text}");
    }

    #[test]
    fn each_direction_can_have_its_own() {
        let loaded = load(&words(
            "20 ms, 64 KiB",
            "1mbit",
            "5mbit, loss={ kind = \"bernoulli\", probability = \"1 %\" }",
        ))
        .unwrap_or_else(|failure| panic!("{}", failure.message));
        let link = &loaded.points.first().scenario.links[0];
        assert_eq!(link.directions.len(), 2);
        let text = table(&words("20 ms, 64 KiB", "1mbit", "5mbit"));
        assert!(
            text.contains("delay = \"20 ms\"") && text.contains("1mbit") && text.contains("5mbit"),
            "{text}"
        );
    }

    #[test]
    fn the_limit_may_stand_before_its_queue() {
        for text in ["20 Mbit/s, fq-codel, 64 KiB", "20 Mbit/s, limit=64 KiB, fq-codel"] {
            let text = table(&words(text, "", ""));
            assert!(text.contains("fq-codel") && text.contains("64 KiB"), "{text}");
        }
    }

    #[test]
    fn without_a_rate_the_link_is_as_fast_as_can_be() {
        let text = table(&words("30 ms", "", ""));
        assert!(text.contains(FASTEST) && text.contains("100000 packets"), "{text}");
        assert!(!table(&words("30 ms, fq-codel", "", "")).contains("100000"));
        assert!(!table(&words("30 ms", "1 Mbit/s", "")).contains("100000"));
        // Unless its medium has a rate of its own.
        for medium in ["medium=wifi", "medium=atm"] {
            let loaded = load(&words(medium, "", "")).unwrap_or_else(|failure| panic!("{}", failure.message));
            let rates =
                loaded.points.first().scenario.links[0].directions.iter().map(|direction| direction.rate);
            assert!(rates.into_iter().all(|rate| rate < Rate::from_bits_per_second(200_000_000)), "{medium}");
        }
    }

    #[test]
    fn a_link_beyond_the_emulator_is_said_in_a_sentence() {
        let said = |link: &str| {
            let words = words(link, "", "");
            let loaded = load(&words).unwrap_or_else(|failure| panic!("{}", failure.message));
            beyond(&loaded.points.first().scenario.links[0], names_rate(&words)).join("|")
        };
        assert_eq!(said("1 Gbit/s, 30 ms") + &said("30 ms") + &said("2 Gbit/s") + &said("20 Mbit/s"), "");
        assert!(
            said("1000 Gbit/s")
                .starts_with("link `link`: 1000 Gbit/s may be more than this machine can forward")
        );
        let asymmetric = words("20 ms", "loss=1 %", "5 Mbit/s");
        let loaded = load(&asymmetric).unwrap_or_else(|failure| panic!("{}", failure.message));
        let sentences = beyond(&loaded.points.first().scenario.links[0], names_rate(&asymmetric));
        assert!(sentences.is_empty(), "nobody named a rate for the way up: {sentences:?}");
        assert!(said("rate=3 Gbit/s").contains("3000 Mbit/s may be more"));
        assert!(said("20 us").contains("a delay of 20 us is shorter"), "{}", said("20 us"));
        assert!(said("20 Mbit/s, 1 h").contains("up to 9 GB are in flight"), "{}", said("20 Mbit/s, 1 h"));
    }

    /// The text behind an option in a line of a shell, with a trace that exists.
    fn value(line: &str, option: &str) -> Option<String> {
        let (_, rest) = line.split_once(&format!("{option} "))?;
        let quote = rest.chars().next().filter(|first| ['"', '\''].contains(first));
        let text = rest.trim_start_matches(['"', '\'']).split(quote.unwrap_or(' ')).next()?;
        let trace = concat!("trace=", env!("CARGO_MANIFEST_DIR"), "/../../examples/cellular.up");
        let words = text.split(',').map(|word| if word.starts_with("trace=") { trace } else { word });
        Some(words.collect::<Vec<_>>().join(","))
    }

    #[test]
    fn what_the_page_about_other_emulators_says_is_understood() {
        let page = include_str!("../../../../docs/emulators.md");
        let mut count = 0;
        for row in page.lines().filter(|line| line.starts_with('|')) {
            let ours = row.trim_matches('|').split(" | ").nth(1).unwrap_or_default();
            for line in ours.split('`').skip(1).step_by(2).filter(|line| !line.contains("...")) {
                let [link, up, down] = ["--link", "--up", "--down"].map(|option| value(line, option));
                // Some rows show one direction of two.
                let other = up.clone().filter(|up| up.starts_with("trace="));
                let words = LinkWords { link, up, down: down.or(other) };
                if words.is_given() {
                    assert!(load(&words).is_ok(), "{line}: {}", load(&words).unwrap_err().message);
                    count += 1;
                }
            }
        }
        assert!(count > 20, "{count} lines");
    }

    #[test]
    fn wrong_words_are_refused_where_they_stand() {
        let wrong = [
            (words("20 Mbitt/s", "", ""), "--link: `20 Mbitt/s` is not a rate"),
            (words("fq-kodel", "", ""), "fq-codel"),
            (words("los=1 %", "", ""), "did you mean `link.link.loss`"),
            (words("", "", "delay=x"), "--down delay=x"),
            (words("", "trace=up.txt", ""), "the other direction needs a trace too"),
            (words("", "trace=up.txt", "5mbit"), "--down 5mbit: a trace replaces the rate"),
            (words("trace=nothing.txt", "", ""), "nothing.txt"),
            (
                words("5mbit, 30 ms, 6 Mbit/s", "", ""),
                "--link: `5mbit` and `6 Mbit/s` both set `rate`; leave one out",
            ),
            (words("20 Mbit/s", "fifo, codel", ""), "--up: `fifo` and `codel` both set `queue`"),
            (
                words("30 ms, jitter=5 ms", "", ""),
                "--link jitter=5 ms: `jitter` is a delay that varies, and 5 ms",
            ),
            (words("5 Mbps", "", ""), "(units: bit/s, kbit/s, Mbit/s, Gbit/s;"),
        ];
        for (words, expected) in wrong {
            let failure = load(&words).expect_err(expected);
            assert_eq!(failure.code, crate::output::BAD_INPUT);
            assert!(failure.message.contains(expected), "{expected}: {}", failure.message);
        }
    }
}
