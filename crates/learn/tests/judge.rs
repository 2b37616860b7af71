//! Links that the learner does not see, in virtual time: it names their mechanism, or says that it cannot, and finds their
//! values within these tolerances. The seeds are none with which anything was developed.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use trunkline_learn::{Bucket, JitterShape, Learned, Loss, Question, Queue, Simulated, probe};

/// Learns the way forward. The way back is too fast to be loaded, so it costs little.
fn learned(forward: &str, seed: u64) -> Learned {
    let keys = format!("delay = \"12 ms\"\n[forward]\n{forward}[backward]\nrate = \"800 Mbit/s\"\n");
    let question = Question { seed, ..Question::default() };
    let path = probe(question, &mut Simulated::new(&keys, seed + 4_000), &()).unwrap();
    let [forward, backward] = path.ways;
    assert!(backward.is_ok(), "{backward:?}");
    forward.unwrap()
}

/// Asserts that a value is within a share of the truth.
fn assert_near(found: f64, truth: f64, share: f64, what: &str) {
    assert!((found / truth - 1.0).abs() <= share, "{what}: {found} instead of {truth}");
}

fn rate_and_delay(learned: &Learned, rate: f64) {
    assert_near(learned.link.rate, rate, 0.03, "rate");
    assert_near(learned.link.delay, 0.012, 0.05, "delay");
}

/// Returns true if the mechanism is the only answer, or among those that the learner calls equally likely.
fn says(learned: &Learned, mechanism: &str) -> bool {
    learned.is_loaded && learned.said().contains(mechanism)
}

#[test]
fn fifo_with_a_limit_in_bytes() {
    let found = learned("rate = \"3 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"45 KB\" }\n", 1);
    rate_and_delay(&found, 3e6);
    let Queue::FifoBytes(limit) = found.link.queue else { panic!("{}", found.said()) };
    assert_near(limit, 45e3, 0.05, "limit");
}

#[test]
fn fifo_with_a_limit_in_packets() {
    let found = learned("rate = \"3 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"40 packets\" }\n", 2);
    rate_and_delay(&found, 3e6);
    let Queue::FifoPackets(limit) = found.link.queue else { panic!("{}", found.said()) };
    assert_near(limit, 40.0, 0.05, "limit");
}

#[test]
fn framing_is_told_from_rate() {
    let found = learned(
        "rate = \"4 Mbit/s\"\noverhead = \"38 B\"\nqueue = { kind = \"fifo\", limit = \"45 KB\" }\n",
        3,
    );
    rate_and_delay(&found, 4e6);
    assert_near(found.link.overhead, 38.0, 0.2, "overhead");
}

#[test]
fn codel() {
    let found = learned("rate = \"3 Mbit/s\"\nqueue = \"codel\"\n", 4);
    rate_and_delay(&found, 3e6);
    assert!(says(&found, "CoDel"), "{}", found.said());
    let fair = Queue::FqCodel(0.005).name();
    assert!(found.link.queue.name() != fair, "a thin flow waits");
}

#[test]
fn fq_codel() {
    let found = learned("rate = \"3 Mbit/s\"\nqueue = \"fq-codel\"\n", 5);
    rate_and_delay(&found, 3e6);
    assert!(says(&found, "FQ-CoDel"), "{}", found.said());
}

#[test]
fn fair_queue_without_codel() {
    let found = learned("rate = \"3 Mbit/s\"\nqueue = { kind = \"drr\", limit = \"45 KB\" }\n", 6);
    rate_and_delay(&found, 3e6);
    let Queue::Drr(limit) = found.link.queue else { panic!("{}", found.said()) };
    assert_near(limit, 45e3, 0.05, "limit");
}

#[test]
fn pie() {
    let found = learned("rate = \"4 Mbit/s\"\nqueue = \"pie\"\n", 7);
    rate_and_delay(&found, 4e6);
    assert!(says(&found, "PIE"), "{}", found.said());
}

#[test]
fn policer() {
    let found =
        learned("rate = \"40 Mbit/s\"\ncommitted-rate = \"3 Mbit/s\"\ncommitted-burst = \"50 KB\"\n", 8);
    let Some(Bucket { shapes: false, rate, burst }) = found.link.bucket else { panic!("{}", found.said()) };
    assert_near(rate, 3e6, 0.03, "committed-rate");
    assert_near(burst, 50e3, 0.15, "committed-burst");
    assert_near(found.link.rate, 40e6, 0.05, "rate");
}

#[test]
fn shaper() {
    let keys = "rate = \"40 Mbit/s\"\nshape-rate = \"4 Mbit/s\"\nshape-burst = \"120 KB\"\n\
                queue = { kind = \"fifo\", limit = \"40 KB\" }\n";
    let found = learned(keys, 9);
    let Some(Bucket { shapes: true, rate, burst }) = found.link.bucket else { panic!("{}", found.said()) };
    assert_near(rate, 4e6, 0.03, "shape-rate");
    assert_near(burst, 120e3, 0.2, "shape-burst");
}

#[test]
fn random_loss() {
    let found =
        learned("rate = \"3 Mbit/s\"\nloss = \"2 %\"\nqueue = { kind = \"fifo\", limit = \"45 KB\" }\n", 10);
    rate_and_delay(&found, 3e6);
    let Loss::Random(share) = found.link.loss else { panic!("{:?}", found.link.loss) };
    assert_near(share, 0.02, 0.5, "loss");
    assert!(says(&found, "FIFO"), "{}", found.said());
}

#[test]
fn loss_in_bursts() {
    let keys = "rate = \"3 Mbit/s\"\nloss = { kind = \"bursts\", good = \"1.5 s\", bad = \"50 ms\" }\n\
                queue = { kind = \"fifo\", limit = \"45 KB\" }\n";
    let found = learned(keys, 11);
    let Loss::Bursts { bad, good } = found.link.loss else { panic!("{:?}", found.link.loss) };
    assert_near(bad, 0.05, 0.6, "bad");
    assert_near(good, 1.5, 0.6, "good");
    assert_near(found.link.rate, 3e6, 0.05, "rate");
}

#[test]
fn jitter_with_memory() {
    let keys = "rate = \"4 Mbit/s\"\njitter = { kind = \"exponential\", mean = \"4 ms\" }\njitter-memory = \"150 ms\"\n\
                queue = { kind = \"fifo\", limit = \"45 KB\" }\n";
    let found = learned(keys, 12);
    let jitter = found.link.jitter.unwrap();
    assert!(matches!(jitter.shape, JitterShape::Exponential(_)), "{jitter:?}");
    let mean = found.interval("jitter").unwrap().value;
    assert_near(mean, 4e-3, 0.4, "jitter");
    assert_near(jitter.memory.unwrap(), 0.15, 0.6, "jitter-memory");
    assert!(says(&found, "FIFO"), "{}", found.said());
}

#[test]
fn deep_buffer() {
    let found = learned("rate = \"2 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"220 KB\" }\n", 13);
    rate_and_delay(&found, 2e6);
    let Queue::FifoBytes(limit) = found.link.queue else { panic!("{}", found.said()) };
    assert_near(limit, 220e3, 0.05, "limit");
}

#[test]
fn a_gentle_measurement_does_not_claim_a_queue() {
    let keys = "rate = \"5 Mbit/s\"\ndelay = \"12 ms\"\nqueue = \"pie\"\n";
    let question = Question { gentle: true, ..Question::default() };
    let path = probe(question, &mut Simulated::new(keys, 14), &()).unwrap();
    let [Ok(forward), Ok(_)] = path.ways else { panic!("{:?}", path.ways) };
    assert!(!forward.is_loaded);
    assert_near(forward.link.rate, 5e6, 0.03, "rate");
}

#[test]
fn a_path_in_one_direction_only_is_learned_in_that_direction() {
    let keys = "delay = \"12 ms\"\n[forward]\nrate = \"3 Mbit/s\"\n[backward]\nrate = \"3 Mbit/s\"\nloss = \"100 %\"\n";
    let question = Question { gentle: true, ..Question::default() };
    let path = probe(question, &mut Simulated::new(keys, 15), &()).unwrap();
    let [forward, backward] = path.ways;
    assert_near(forward.unwrap().link.rate, 3e6, 0.03, "rate");
    assert_eq!(backward.unwrap_err(), "no packet arrived backward");
}

#[test]
fn the_profile_is_one_that_experiments_read() {
    let keys = "delay = \"12 ms\"\n[forward]\nrate = \"3 Mbit/s\"\nqueue = \"codel\"\n[backward]\nrate = \"800 Mbit/s\"\n";
    let path = probe(Question::default(), &mut Simulated::new(keys, 16), &()).unwrap();
    let mut profiles = trunkline_learn::ensemble(&path);
    assert_eq!(profiles.len(), 20);
    profiles.push(trunkline_learn::profile(&path, "a \"host\"", "today", &[]));
    for profile in profiles {
        let files =
            std::collections::BTreeMap::from([("path.toml".to_owned(), profile.clone().into_bytes())]);
        let text = "name = \"x\"\nduration = \"1 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
                    profile = \"path.toml\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = \"voice\"\n";
        let files: trunkline_experiment::NamedFiles = files.into();
        let read = trunkline_experiment::Experiment::parse(text, "x.toml", &files);
        assert!(read.is_ok(), "{}\n{profile}", read.unwrap_err());
    }
}
