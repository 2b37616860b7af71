//! Experiments of peers: whatever they contain, reading takes little time and memory, or is refused.

use core::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use trunkline_experiment::{Bounds, Experiment, Problems};
use trunkline_testkit::alloc::{CountingAllocator, peak_during};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// So many bytes of memory for each byte of a text: what an agent sets aside.
const MEMORY: u64 = 128;
/// The longest text that is looked at.
const LONGEST: usize = Bounds::FOREIGN.text;

const HEAD: &str = "name = \"x\"\nduration = \"1 s\"\n";
const PATH: &str = "[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n";
const FLOW: &str =
    "from = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }\n";

/// A text of about this length: the beginning, and as often as it fits what `part` gives for a number.
fn filled(head: &str, length: usize, part: impl Fn(usize) -> String, tail: &str) -> String {
    let mut text = head.to_owned();
    for number in 0.. {
        let part = part(number);
        if text.len() + part.len() + tail.len() > length {
            break;
        }
        text.push_str(&part);
    }
    text + tail
}

/// Texts that ask for much, by what they ask for.
fn greedy(length: usize) -> Vec<(&'static str, String)> {
    let head = format!("{HEAD}{PATH}");
    let whole = format!("{head}[flow.f]\n{FLOW}");
    let sweep = format!("{whole}[sweep]\n");
    let axis = |values: usize| (1..=values).map(|n| format!("\"{n} ms\"")).collect::<Vec<_>>().join(",");
    vec![
        ("a long name", filled("name = \"", length, |_| "a".to_owned(), "\"\n")),
        ("a name of escapes", filled("name = \"", length, |_| "\\u0007".to_owned(), "\"\n")),
        ("a long key", filled("", length, |_| "a".to_owned(), " = 1\n")),
        ("unknown keys", filled("", length, |n| format!("k{n}=1\n"), "")),
        ("the same key", filled("", length, |_| "a=1\n".to_owned(), "")),
        ("broken lines", filled("", length, |_| "=\n".to_owned(), "")),
        ("open brackets", filled("a = ", length, |_| "[".to_owned(), "")),
        ("nested tables", filled("a = ", length, |_| "{a=".to_owned(), "")),
        ("dotted keys", filled("a", length, |_| ".a".to_owned(), " = 1\n")),
        ("empty lists", filled("a = [", length, |_| "[],".to_owned(), "]\n")),
        ("empty tables", filled("a = [", length, |_| "{},".to_owned(), "]\n")),
        ("numbers", filled("a = [", length, |_| "1,".to_owned(), "]\n")),
        ("headings", filled("", length, |n| format!("[a{n}]\n"), "")),
        ("arrays of tables", filled("", length, |_| "[[a]]\n".to_owned(), "")),
        ("hosts", filled(&format!("{HEAD}[hosts]\n"), length, |n| format!("h{n}={{}}\n"), "")),
        ("flows", filled(&head, length, |n| format!("[flow.f{n}]\n{FLOW}"), "")),
        ("flows that are wrong", filled(&head, length, |n| format!("[flow.f{n}]\nfrom=\"{n}\"\n"), "")),
        (
            "links",
            filled(&head, length, |n| format!("[link.l{n}]\nbetween=[\"a\",\"b\"]\nrate=\"1 Mbit/s\"\n"), ""),
        ),
        (
            "hosts, links and flows",
            filled(
                HEAD,
                length,
                |n| {
                    let before = n.saturating_sub(1);
                    format!(
                        "[hosts.h{n}]\n[link.l{n}]\nbetween=[\"h{before}\",\"h{n}\"]\nrate=\"1 Mbit/s\"\n[flow.f{n}]\n\
                         from=\"h0\"\nto=\"h{n}\"\ntransport=\"udp\"\nsource={{kind=\"voice\",samples=80}}\n"
                    )
                },
                "",
            ),
        ),
        (
            "hosts that are alike",
            format!(
                "{HEAD}[hosts]\na = {{}}\np = {{ count = 10000 }}\n[link.l]\nbetween = [\"p\", \"a\"]\nrate = \"1 Mbit/s\"\n\
                 [flow.f]\n{}",
                FLOW.replace("\"b\"", "\"p\"")
            ),
        ),
        (
            "hosts that are alike, many times",
            filled(&format!("{HEAD}[hosts]\n"), length, |n| format!("h{n}={{count=10000}}\n"), ""),
        ),
        (
            "flows among hosts that are alike",
            filled(
                &format!(
                    "{HEAD}[hosts]\na = {{}}\np = {{ count = 1000 }}\n[link.l]\nbetween = [\"p\", \"a\"]\nrate = \"1 Mbit/s\"\n"
                ),
                length,
                |n| format!("[flow.f{n}]\n{}", FLOW.replace("\"b\"", "[\"p\",\"p\"]")),
                "",
            ),
        ),
        (
            "a swept number of hosts that are alike",
            format!(
                "{HEAD}[hosts]\na = {{}}\np = {{ count = 1 }}\n[link.l]\nbetween = [\"p\", \"a\"]\nrate = \"1 Mbit/s\"\n\
                 [sweep]\n\"hosts.p.count\" = [10000, 9999, 9998]\n"
            ),
        ),
        (
            "a range",
            format!("{sweep}\"link.l.delay\" = {{ from = \"1 us\", to = \"100 ms\", step = \"1 us\" }}\n"),
        ),
        ("members", format!("{whole}count = 1000000\nchannels = 65535\n")),
        (
            "a long axis",
            filled(&format!("{sweep}\"link.l.delay\" = ["), length, |n| format!("\"{n} us\","), "]\n"),
        ),
        (
            "a product of axes",
            format!(
                "{sweep}\"link.l.delay\" = [{}]\n\"flow.f.count\" = [1]\n\"duration\" = [{}]\n",
                axis(300),
                axis(330)
            ),
        ),
        (
            "a product of many flows",
            filled(
                &head,
                length,
                |n| format!("[flow.f{n}]\n{FLOW}"),
                &format!("[sweep]\n\"link.l.delay\" = [{}]\n\"duration\" = [{}]\n", axis(30), axis(30)),
            ),
        ),
        (
            "as many points as there may be",
            format!("{sweep}\"link.l.delay\" = [{}]\n\"duration\" = [{}]\n", axis(80), axis(80)),
        ),
        ("as many flows as there may be", filled(&head, 130_000, |n| format!("[flow.f{n}]\n{FLOW}"), "")),
        ("unknown axes", filled(&sweep, length, |n| format!("\"flow.f{n}.x\" = [1]\n"), "")),
        (
            "axes together",
            filled(&format!("{sweep}\""), length, |_| "flow.f.count, ".to_owned(), "duration\" = [1]\n"),
        ),
        (
            "limits",
            filled(
                &format!("{whole}[limits]\n"),
                length,
                |n| format!("\"flow.f{n}.loss\" = \"< 1 %\"\n"),
                "",
            ),
        ),
        (
            "a bundle of all",
            filled(&format!("{head}[bundle.b]\nflows=["), length / 2, |n| format!("\"f{n}\","), "]\n")
                + &filled("", length / 3, |n| format!("[flow.f{n}]\n{FLOW}"), ""),
        ),
        (
            "large texts",
            filled(&head, length, |n| format!("[flow.f{n}]\nfrom = {}\n", "[1]"), &"\"".repeat(9)),
        ),
    ]
}

/// Reads the first point.
fn read(text: &str) -> Result<Experiment, Problems> {
    let (_, sweep) = text.rsplit_once("[sweep]").unwrap_or_default();
    let choice = vec![0; sweep.matches("\" = ").count()];
    Experiment::parse_point(text, "x.toml", &(), &Bounds::FOREIGN, &choice)
}

/// Time of the processor, not of a clock: others may use the machine.
#[test]
fn no_text_takes_a_second_or_more_memory_than_is_set_aside_for_it() {
    let mut wrong = Vec::new();
    for (what, text) in greedy(LONGEST) {
        let began = of_this_thread();
        let (peak, read) = peak_during(|| read(&text).map_err(|problems| problems.to_string()));
        let took = of_this_thread() - began;
        println!("{what}: {took:?}, {peak} bytes for {}, read: {}", text.len(), read.is_ok());
        if peak > MEMORY * text.len() as u64 + (16 << 20) {
            wrong.push(format!("{what}: {peak} bytes for a text of {}", text.len()));
        }
        let told = read.err().map_or(0, |told| told.len());
        if told > 512 << 10 {
            wrong.push(format!("{what}: {told} bytes are told"));
        }
        // Without optimisation everything takes some times as long.
        if took > Duration::from_secs(if cfg!(debug_assertions) { 4 } else { 1 }) {
            wrong.push(format!("{what}: {took:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn of_this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_text_that_is_too_long_is_refused_at_once() {
    let text = filled("", 4 << 20, |n| format!("k{n}=1\n"), "");
    let (peak, refused) = peak_during(|| read(&text).unwrap_err().to_string());
    assert!(refused.contains("bytes; the limit here is 1048576"), "{refused}");
    assert!(peak < 1 << 20, "{peak}");
}

#[test]
fn one_point_is_read_without_the_others() {
    let text = format!(
        "{HEAD}{PATH}[flow.f]\n{FLOW}[sweep]\n\"link.l.delay\" = [\"1 ms\", \"2 ms\"]\n\"flow.f.count\" = [3, 4, 5]\n"
    );
    let whole = Experiment::parse(&text, "x.toml", &()).unwrap();
    assert_eq!(whole.points.len(), 6);
    for point in whole.points.iter() {
        let one = Experiment::parse_point(&text, "x.toml", &(), &Bounds::FOREIGN, &point.choice).unwrap();
        assert_eq!(one.points.len(), 1);
        assert_eq!(one.points.first().choice, point.choice);
        assert_eq!(one.points.first().scenario.flows[0].meta.members, point.scenario.flows[0].meta.members);
        assert_eq!((one.name, one.axes.len()), ("x".to_owned(), 2));
    }
    for none in [&[0][..], &[0, 3], &[2, 0], &[0, 0, 0]] {
        let refused = Experiment::parse_point(&text, "x.toml", &(), &Bounds::FOREIGN, none);
        assert!(refused.unwrap_err().to_string().contains("no such point"));
    }
}

#[test]
fn an_experiment_has_a_short_name() {
    let named = |length: usize| format!("name = \"{}\"\nduration = \"1 s\"\n{PATH}", "n".repeat(length));
    assert!(Experiment::parse(&named(200), "x.toml", &()).is_ok());
    let refused = Experiment::parse(&named(201), "x.toml", &()).unwrap_err().to_string();
    assert!(
        refused.starts_with("x.toml:1:8: `name` has 201 characters; a name has at most 200"),
        "{refused}"
    );
}
