//! The error on paths that the learner does not see. Draws links from families, learns them in virtual time, and compares
//! values, mechanisms and predictions with the truth and with simple baselines.
//!
//! `cargo run --release -p trunkline-learn --example judge -- [PATHS] [SEED]`. The published table has seed 2026; nothing was tuned
//! with it.

#![allow(clippy::print_stdout, reason = "it prints a table")]

use trunkline_core::{Seed, Stream};
use trunkline_learn::{
    Bucket, Interval, Jitter, JitterShape, Learned, Link, Loss, Path, Question, Queue, Simulated, Verified,
    probe, verify,
};

const FAMILIES: [&str; 12] = [
    "FIFO, bytes",
    "FIFO, packets",
    "CoDel",
    "FQ-CoDel",
    "PIE",
    "DRR",
    "policer",
    "shaper",
    "random loss",
    "bursts of loss",
    "jitter",
    "deep buffer",
];

/// Between two values, evenly on a logarithmic scale.
fn between(stream: &mut Stream, low: f64, high: f64) -> f64 {
    low * (high / low).powf(stream.unit())
}

fn draw(family: usize, stream: &mut Stream) -> Link {
    let rate = between(stream, 2e6, 12e6);
    let seconds = between(stream, 0.04, 0.2);
    let mut link = Link::line(rate, between(stream, 0.003, 0.05), Queue::FifoBytes(rate / 8.0 * seconds));
    match FAMILIES[family] {
        "FIFO, packets" => link.queue = Queue::FifoPackets(between(stream, 20.0, 150.0).round()),
        "CoDel" => link.queue = Queue::Codel(0.005),
        "FQ-CoDel" => link.queue = Queue::FqCodel(0.005),
        "PIE" => link.queue = Queue::Pie(0.015),
        "DRR" => link.queue = Queue::Drr(rate / 8.0 * seconds),
        "policer" => {
            let burst = between(stream, 20e3, 150e3);
            link.bucket = Some(Bucket { shapes: false, rate, burst });
            link.rate = 50e6;
            link.queue = Queue::FifoBytes(1e6);
        }
        "shaper" => {
            let burst = between(stream, 0.1, 0.3) * rate / 8.0;
            link.bucket = Some(Bucket { shapes: true, rate, burst });
            link.rate = 50e6;
        }
        "random loss" => link.loss = Loss::Random(between(stream, 0.003, 0.03)),
        "bursts of loss" => {
            link.loss = Loss::Bursts { good: between(stream, 1.0, 4.0), bad: between(stream, 0.02, 0.08) };
        }
        "jitter" => {
            let memory = (stream.unit() < 0.5).then(|| between(stream, 0.05, 0.3));
            let shape = JitterShape::Exponential(between(stream, 1e-3, 5e-3));
            link.jitter = Some(Jitter { shape, memory });
        }
        "deep buffer" => link.queue = Queue::FifoBytes(rate / 8.0 * between(stream, 0.4, 1.0)),
        _ => {}
    }
    if stream.unit() < 0.3 {
        link.overhead = 38.0;
    }
    link
}

/// The true values of the keys that have intervals.
fn truths(link: &Link) -> Vec<(&'static str, f64)> {
    let mut truths = vec![("rate", link.rate), ("delay", link.delay)];
    match link.queue {
        Queue::FifoBytes(x)
        | Queue::FifoPackets(x)
        | Queue::Drr(x)
        | Queue::Codel(x)
        | Queue::FqCodel(x)
        | Queue::Pie(x) => truths.push(("queue", x)),
    }
    if let Some(bucket) = link.bucket {
        let keys =
            if bucket.shapes { ["shape-rate", "shape-burst"] } else { ["committed-rate", "committed-burst"] };
        truths.extend([(keys[0], bucket.rate), (keys[1], bucket.burst)]);
    }
    match link.loss {
        // An interval that begins at 0 contains 0 always.
        Loss::None => {}
        Loss::Random(share) => truths.push(("loss", share)),
        Loss::Bursts { good, bad } => truths.extend([("loss", bad / (good + bad)), ("loss.bad", bad)]),
    }
    if let Some(Jitter { shape: JitterShape::Exponential(mean), .. }) = link.jitter {
        truths.push(("jitter", mean));
    }
    truths
}

#[derive(Default)]
struct Tally {
    claimed: usize,
    right: usize,
    unclear: usize,
    intervals: Vec<(&'static str, bool, f64)>,
}

fn judge(tally: &mut Tally, learned: &Learned, truth: &Link) -> String {
    let mechanism = truth.mechanism();
    let said = if learned.is_loaded { learned.said() } else { "not measured".to_owned() };
    if !learned.is_loaded || !learned.alternatives.is_empty() {
        tally.unclear += 1;
    } else {
        tally.claimed += 1;
        tally.right += usize::from(learned.link.mechanism() == mechanism);
    }
    let mut worst = String::new();
    for (key, value) in truths(truth) {
        // A limit of another mechanism is another quantity.
        if key == "queue"
            && (learned.link.mechanism() != mechanism || truth.bucket.is_some_and(|b| !b.shapes))
        {
            continue;
        }
        let Some(interval) = learned.interval(key) else { continue };
        let error = if value > 0.0 { interval.value / value - 1.0 } else { interval.value };
        tally.intervals.push((key, interval.contains(value), error.abs()));
        if !interval.contains(value) {
            worst += &format!(" {key} {:+.1} %", error * 100.0);
        }
    }
    format!("{mechanism:<28} {said:<48}{worst}")
}

/// A learned direction that claims this link without doubt.
fn exactly(way: trunkline_learn::Way, link: Link) -> Result<Learned, String> {
    Ok(Learned {
        way,
        link,
        alternatives: Vec::new(),
        is_loaded: true,
        intervals: Vec::new(),
        evidence: Vec::new(),
        notes: Vec::new(),
        ensemble: Vec::new(),
        packets: (0, 0),
    })
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(((values.len() as f64 - 1.0) * share).round() as usize).copied().unwrap_or(f64::NAN)
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let (paths, seed) = (arguments.next().unwrap_or(24), arguments.next().unwrap_or(1));
    let mut tally = Tally::default();
    let methods = ["true link", "learned", "rate, delay, 100 packets", "Pantheon's five by formula"];
    let mut errors: Vec<Vec<f64>> = vec![Vec::new(); methods.len()];
    let (mut covered, mut figures) = (0, 0);
    for number in 0..paths {
        let mut stream = Seed::new(seed, number as u32).stream("path");
        let families = [number as usize % FAMILIES.len(), stream.below(FAMILIES.len() as u64) as usize];
        let [forward, backward] = families.map(|family| draw(family, &mut stream));
        let keys = format!("[forward]\n{}[backward]\n{}", forward.toml(), backward.toml());
        let question = Question { seed: seed + number, ..Question::default() };
        let path = match probe(question, &mut Simulated::new(&keys, seed * 1_000 + number), &()) {
            Ok(path) => path,
            Err(error) => {
                println!("path {number}: {error}");
                continue;
            }
        };
        for (learned, truth) in path.ways.iter().zip([&forward, &backward]) {
            match learned {
                Ok(learned) => println!("{number:>3} {}", judge(&mut tally, learned, truth)),
                Err(error) => println!("{number:>3} {error}"),
            }
        }
        let [Ok(one), Ok(other)] = &path.ways else { continue };
        let with = |links: [Link; 2]| {
            let [forward, backward] = links;
            let ways = [exactly(one.way, forward), exactly(other.way, backward)];
            Path { ways, observations: trunkline_learn::Observations::default(), ..path.clone() }
        };
        let plain =
            |learned: &Learned| Link::line(learned.slowest(), learned.link.delay, Queue::FifoPackets(100.0));
        // Rate, delay, a tail-drop queue in packets as long as the longest delay, and loss: as its emulators have.
        let five = |learned: &Learned| {
            let longest = longest(&path, learned);
            let packets = (learned.slowest() / 8.0 * longest / 1_228.0).max(2.0).round();
            let lost = learned.interval("loss").map_or(0.0, |loss| loss.value);
            let loss = if lost > 0.0 { Loss::Random(lost) } else { Loss::None };
            Link { loss, ..Link::line(learned.slowest(), learned.link.delay, Queue::FifoPackets(packets)) }
        };
        let candidates = [
            with([forward.clone(), backward.clone()]),
            path.clone(),
            with([plain(one), plain(other)]),
            with([five(one), five(other)]),
        ];
        for (method, candidate) in candidates.iter().enumerate() {
            let mut truth = Simulated::new(&keys, seed * 77 + number);
            let (verified, _) = verify(candidate, &mut truth, &(), seed + number);
            let judged = |one: &&Verified| one.figure != "delay p50";
            errors[method].extend(verified.iter().filter(judged).map(Verified::error));
            if method == 1 {
                let inside = |one: &&Verified| {
                    let Interval { low, high, .. } = one.predicted;
                    (low..=high).contains(&one.measured)
                };
                covered += verified.iter().filter(inside).count();
                figures += verified.len();
            }
        }
    }
    println!("\nmechanism: {} claims, {} right; {} not claimed", tally.claimed, tally.right, tally.unclear);
    let mut keys: Vec<&str> = tally.intervals.iter().map(|(key, ..)| *key).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let of_key: Vec<_> = tally.intervals.iter().filter(|(other, ..)| *other == key).collect();
        let inside = of_key.iter().filter(|(_, inside, _)| *inside).count();
        let mut off: Vec<f64> = of_key.iter().map(|(.., error)| *error).collect();
        println!(
            "{key:<16} intervals {inside:>3} of {:>3} contain the truth; median error {:.2} %, 90th percentile {:.2} %",
            of_key.len(),
            quantile(&mut off, 0.5) * 100.0,
            quantile(&mut off, 0.9) * 100.0
        );
    }
    println!("held-out figures within the smallest and largest of 6 predictions: {covered} of {figures}");
    println!("\nerror of held-out p95, p99, loss and goodput:");
    for (method, errors) in methods.iter().zip(&mut errors) {
        println!(
            "{method:<28} median {:>6.1} %, 90th percentile {:>7.1} %, {} figures",
            quantile(errors, 0.5) * 100.0,
            quantile(errors, 0.9) * 100.0,
            errors.len()
        );
    }
}

/// The longest queueing delay that was seen in a direction.
fn longest(path: &Path, learned: &Learned) -> f64 {
    let delays = path.observations.packets(learned.way).into_iter().filter_map(|packet| packet.delay);
    (delays.max().unwrap_or(0) as f64 / 1e9 - learned.link.delay).max(1e-3)
}
