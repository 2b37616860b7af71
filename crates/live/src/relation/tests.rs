//! Clocks that drift and step, behind networks of the simulator whose ways there and back are unequal: the bound holds.
//!
//! The simulator tells when messages were sent, reflected and received in one true time. Here these become what two
//! clocks would have shown: exchanges from a reflected flow, arrivals from one that runs beside it, in reports as the far
//! end sends them. The relation sees nothing else, and what it makes of the arrivals is held against the truth.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use trunkline_core::{Bytes, FlowId, Seed};
use trunkline_experiment::{Experiment, Progress, Supervisor};
use trunkline_metrics::Recorder;
use trunkline_metrics::clocks::Turning;

use super::*;

const SECOND: u64 = 1_000_000_000;
/// How long it is measured, and when the exchanges begin before it.
const LENGTH: u64 = 12 * SECOND;
/// Rounding of the models of two clocks, twice.
const ROUNDING: u64 = 8;

/// Messages by their true times.
#[derive(Clone, Debug, Default)]
struct Path {
    /// Asked, reflected, returned.
    exchanges: Vec<[u64; 3]>,
    /// Sent, arrived.
    arrivals: Vec<[u64; 2]>,
}

impl Recorder for Path {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        let Observation::Received { sent, reflected, .. } = what else { return };
        match flow.0 {
            0 => self.exchanges.push([sent.as_nanos(), reflected.as_nanos(), at.as_nanos()]),
            1 => self.arrivals.push([sent.as_nanos(), at.as_nanos()]),
            _ => {}
        }
    }
}

struct GoOn;

impl Supervisor for GoOn {
    fn progress(&mut self, _: Duration) -> Progress {
        Progress::Continue
    }
}

impl Path {
    /// A path from `a` to `b` over a link with these keys, beside these flows.
    fn over(link: &str, flows: &str, seed: u64) -> Path {
        let text = format!(
            "name = \"clocks\"\nduration = \"12 s\"\ndrain = \"2 s\"\nseed = {seed}\n[hosts]\na = {{}}\nb = {{}}\n\
             [link.l]\nbetween = [\"a\", \"b\"]\n{link}\n\
             [flow.clock]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nreflect = true\n\
             source = {{ kind = \"voice\", samples = 160 }}\n\
             [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
             source = {{ kind = \"voice\", samples = 80 }}\n{flows}"
        );
        let experiment =
            Experiment::parse(&text, "clocks.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
        let mut path = Path::default();
        let seed = Seed::new(experiment.seed, 0);
        trunkline_simulator::run(&experiment.points.first().scenario, seed, &mut path, &mut GoOn).unwrap();
        path.exchanges.sort_by_key(|exchange| exchange[2]);
        path
    }

    /// What is sent from then until then takes the other path.
    fn with(mut self, other: &Path, from: u64, until: u64) -> Path {
        let is_other = |sent: u64| (from..until).contains(&sent);
        self.exchanges.retain(|exchange| !is_other(exchange[0]));
        self.arrivals.retain(|arrival| !is_other(arrival[0]));
        self.exchanges.extend(other.exchanges.iter().filter(|exchange| is_other(exchange[0])));
        self.arrivals.extend(other.arrivals.iter().filter(|arrival| is_other(arrival[0])));
        self.exchanges.sort_by_key(|exchange| exchange[2]);
        self
    }
}

const BULK: &str = "transport = \"tcp\"\nsource = { kind = \"bulk\" }\n";
const NARROW: &str =
    "rate = \"2 Mbit/s\"\ndelay = \"10 ms\"\nqueue = { kind = \"fifo\", limit = \"64 KiB\" }";

/// Paths by name; they are simulated once.
fn paths() -> &'static BTreeMap<&'static str, Path> {
    static PATHS: OnceLock<BTreeMap<&'static str, Path>> = OnceLock::new();
    PATHS.get_or_init(|| {
        let idle = "rate = \"100 Mbit/s\"\ndelay = \"100 us\"";
        let unequal =
            "rate = \"100 Mbit/s\"\n[link.l.forward]\ndelay = \"45 ms\"\n[link.l.backward]\ndelay = \"5 ms\"";
        let there = format!("[flow.bulk]\nfrom = \"a\"\nto = \"b\"\n{BULK}");
        let back = format!("[flow.bulk]\nfrom = \"b\"\nto = \"a\"\n{BULK}");
        let calm = Path::over(NARROW, "", 10);
        // Packets that are lost are not sent again, and the ways differ by 60 ms.
        let lossy =
            "rate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n[link.l.forward]\ndelay = \"65 ms\"\nloss = \"5 %\"";
        BTreeMap::from([
            ("idle", Path::over(idle, "", 1)),
            ("unequal ways", Path::over(unequal, "", 2)),
            ("queue there", Path::over(NARROW, &there, 3)),
            ("queue back", Path::over(NARROW, &back, 4)),
            // As in a session: its exchanges begin before the load, and go on until it has left the queues.
            ("load there", calm.clone().with(&Path::over(NARROW, &there, 8), SECOND, 11 * SECOND)),
            ("load back", calm.with(&Path::over(NARROW, &back, 9), SECOND, 11 * SECOND)),
            ("lossy", Path::over(lossy, "", 5)),
            ("route change", Path::over(idle, "", 6).with(&Path::over(unequal, "", 7), LENGTH / 2, LENGTH)),
        ])
    })
}

/// The true time, how far a clock is ahead then, and from then on its rate in nanoseconds per second.
type Course = Vec<(u64, i64, i64)>;

/// The clocks of both ends.
#[derive(Clone, Debug)]
struct Clocks {
    ours: u64,
    near: Course,
    far: Course,
    /// Discipline of the near and of the far clock.
    turning: [Turning; 2],
}

impl Clocks {
    /// Rates change at random, and at one moment the clock steps.
    fn drawn(seed: u64, most: i64, step: Option<(u64, i64)>) -> Clocks {
        let mut stream = Seed::new(seed, 0).stream("clocks");
        let mut draw = |width: i64| (stream.bits() % (2 * width as u64 + 1)) as i64 - width;
        let mut offset = 5_000 * SECOND as i64 + draw(1_000 * SECOND as i64);
        let mut course = vec![(0, offset, 0)];
        let mut moments: Vec<u64> = (0..40).map(|n| n * SECOND / 2).collect();
        moments.extend(step.map(|(at, _)| at));
        moments.sort_unstable();
        for at in moments {
            let (since, before, rate) = course[course.len() - 1];
            offset = before + ahead(rate, at - since);
            if let Some((_, by)) = step.filter(|(moment, _)| *moment == at) {
                offset += by;
            }
            course.push((at, offset, draw(most)));
        }
        Clocks { ours: 7_000 * SECOND, near: vec![(0, 0, 0)], far: course, turning: [Turning::Never; 2] }
    }

    /// Either end's clock, or both, drifts with its crystal, and a time server turns it by up to a tenth for 10 ms to 10 s at a
    /// time; the far end's is set once besides.
    fn turned(seed: u64, step: Option<(u64, i64)>) -> Clocks {
        let mut stream = Seed::new(seed, 0).stream("turned clocks");
        let which = seed % 3;
        let mut course = |is_turned: bool, first: i64, step: Option<(u64, i64)>| {
            let mut draw = |most: u64| stream.bits() % (most + 1);
            let mut changes = vec![(0, 0, 0)];
            let mut at = 0;
            while at < LENGTH + 3 * SECOND {
                at += draw(2 * SECOND);
                // Short ones as often as long ones.
                let length = 10_000_000 * 10_u64.pow(draw(2) as u32) * (1 + draw(9));
                let most = if is_turned { 100_000_000 } else { 0 };
                let slew = if draw(1) == 0 { most } else { draw(most) } as i64 * [1, -1][draw(1) as usize];
                changes.extend([(at, slew, 0), (at + length, -slew, 0)]);
                at += length;
            }
            let mut drift = 0;
            for half in 0..2 * (LENGTH + 3 * SECOND) / SECOND {
                let next = draw(1_180_000) as i64 - 590_000;
                changes.push((half * SECOND / 2, next - drift, 0));
                drift = next;
            }
            changes.extend(step.map(|(at, by)| (at, 0, by)));
            changes.sort_unstable();
            let mut course = vec![(0, first, 0)];
            for (at, more, step) in changes {
                let (since, before, rate) = course[course.len() - 1];
                course.push((at, before + ahead(rate, at - since) + step, rate + more));
            }
            course
        };
        let near = course(which != 0, 0, None);
        let far = course(which != 1, 5_000 * SECOND as i64, step);
        let turning = [which != 0, which != 1].map(|turned| Turning::of(!turned));
        Clocks { ours: 7_000 * SECOND, near, far, turning }
    }

    /// The far end's reply to a request, by true times.
    fn reply(&self, sent: u64, received: u64, replied: u64) -> TimeReply {
        let [sent, received, replied] =
            [self.near(sent), self.far(received), self.far(replied)].map(Time::from_nanos);
        TimeReply { sent, received, replied, clock: self.turning[1] }
    }

    fn near(&self, time: u64) -> u64 {
        self.shows(&self.near, time)
    }

    fn far(&self, time: u64) -> u64 {
        self.shows(&self.far, time)
    }

    fn shows(&self, course: &Course, time: u64) -> u64 {
        let place = course.partition_point(|(from, ..)| *from <= time) - 1;
        let (from, offset, rate) = course[place];
        (self.ours + time).saturating_add_signed(offset + ahead(rate, time - from))
    }
}

fn ahead(rate: i64, elapsed: u64) -> i64 {
    (i128::from(rate) * i128::from(elapsed) / i128::from(SECOND)) as i64
}

/// What came of a path and clocks.
#[derive(Debug)]
struct Held {
    bound: u64,
    worst: u64,
    arrivals: usize,
    jumped: bool,
}

/// Plays a path to a relation, and holds every corrected arrival against the truth.
fn play(path: &Path, clocks: &Clocks, lost_at: Option<u64>) -> Held {
    // Exchanges in the order of their return; the first second only relates the clocks.
    let begin = SECOND;
    let mut relation = Relation::new(clocks.turning[0]);
    let epoch = clocks.near(begin);
    let mut exchanges = path.exchanges.iter().peekable();
    let mut jumped = false;
    let mut exchange = |relation: &mut Relation, [asked, reflected, returned]: [u64; 3]| {
        let reply = clocks.reply(asked, reflected, reflected + 2_000);
        jumped |= relation.exchanged(reply, clocks.near(returned + 2_000)).is_err();
        jumped
    };
    while let Some(first) = exchanges.next_if(|exchange| exchange[2] < begin) {
        exchange(&mut relation, *first);
    }
    assert!(relation.is_known());
    let far_epoch = relation.begin(epoch);

    // Reports: what arrived within 50 ms, heard with the first exchange that was reflected after that.
    let mut truth = BTreeMap::new();
    let mut reports: BTreeMap<u64, Batch> = BTreeMap::new();
    for (sequence, &[sent, arrived]) in (0..).zip(&path.arrivals) {
        if sent < begin {
            continue;
        }
        let full = arrived / 50_000_000 * 50_000_000 + 50_000_000;
        let heard =
            path.exchanges.iter().filter(|exchange| exchange[1] >= full).map(|exchange| exchange[2]).min();
        let far = Time::from_nanos(clocks.far(arrived).saturating_sub(far_epoch));
        let sent = Time::from_nanos(clocks.near(sent) - epoch);
        let (reflected, payload) = (Time::ZERO, Bytes(1));
        let what = Observation::Received { channel: 0, sequence, sent, reflected, payload };
        let heard = heard.unwrap_or(full + 300_000_000) + 1_000;
        reports.entry(heard).or_default().push(far, FlowId(0), what, None);
        truth.insert(sequence, clocks.near(arrived) - epoch);
    }

    let mut corrected = Vec::new();
    let mut reports = reports.into_iter().peekable();
    loop {
        let next = exchanges.peek().map(|exchange| exchange[2]);
        let report = reports.peek().map(|(heard, _)| *heard);
        let now = next.into_iter().chain(report).min();
        if now.is_none() || now > lost_at.or(Some(u64::MAX)) {
            break;
        }
        if report.is_some_and(|report| next.is_none_or(|next| report < next)) {
            let Some((heard, batch)) = reports.next() else { break };
            relation.reported(clocks.near(heard), batch);
        } else if let Some(one) = exchanges.next()
            && exchange(&mut relation, *one)
        {
            break;
        }
        while let Some(batch) = relation.settled(false) {
            corrected.push(batch);
        }
    }
    while let Some(batch) = relation.settled(true) {
        corrected.push(batch);
    }
    let bound = relation.bound().map_or(0, Duration::as_nanos);
    let mut worst = 0;
    let mut arrivals = 0;
    for event in corrected.iter().flat_map(|batch| &batch.events) {
        let Observation::Received { sequence, .. } = event.what else { continue };
        worst = worst.max(event.at.as_nanos().abs_diff(truth[&sequence]));
        arrivals += 1;
    }
    Held { bound, worst, arrivals, jumped }
}

fn milliseconds(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[test]
fn the_bound_holds_for_clocks_that_drift() {
    for (name, path) in paths() {
        for seed in 0..12 {
            let clocks = Clocks::drawn(seed, 1_190_000, None);
            let held = play(path, &clocks, None);
            assert!(!held.jumped, "{name}, seed {seed}: no clock has stepped");
            assert!(held.arrivals > 900, "{name}, seed {seed}: {held:?}");
            assert!(held.worst <= held.bound + ROUNDING, "{name}, seed {seed}: {held:?}");
        }
    }
}

#[test]
fn the_bound_holds_for_clocks_that_step() {
    let sizes = [5_000, 80_000, 900_000, 12_000_000, 70_000_000, 3_000_000_000_i64];
    let mut seen = 0;
    for (name, path) in paths() {
        for (place, size) in sizes.iter().flat_map(|size| [*size, -size]).enumerate() {
            for round in 0..4 {
                let seed = 1000 + place as u64 * 10 + round;
                let at = SECOND + Seed::new(seed, 1).stream("step").bits() % (LENGTH - SECOND);
                let clocks = Clocks::drawn(seed, 300_000, Some((at, size)));
                let held = play(path, &clocks, None);
                assert!(
                    held.worst <= held.bound + ROUNDING,
                    "{name}, seed {seed}: a step of {size} ns at {at} ns: {held:?}"
                );
                seen += usize::from(held.jumped);
            }
        }
    }
    // Those that are larger than a round trip, and end early enough for another exchange.
    assert!(seen > 60, "{seen} steps were seen");
}

#[test]
fn the_bound_holds_for_clocks_that_time_servers_turn() {
    for (name, path) in paths() {
        for seed in 0..9 {
            let held = play(path, &Clocks::turned(seed, None), None);
            assert!(!held.jumped, "{name}, seed {seed}: no clock has stepped");
            assert!(held.arrivals > 900, "{name}, seed {seed}: {held:?}");
            assert!(held.worst <= held.bound + ROUNDING, "{name}, seed {seed}: {held:?}");
            let at = SECOND + Seed::new(seed, 2).stream("step").bits() % (LENGTH - SECOND);
            let by = [80_000, -900_000, 12_000_000, -70_000_000][seed as usize % 4];
            let held = play(path, &Clocks::turned(seed, Some((at, by))), None);
            let holds = held.worst <= held.bound + ROUNDING;
            assert!(holds, "{name}, seed {seed}: a step of {by} ns at {at} ns: {held:?}");
        }
    }
}

#[test]
fn the_bound_holds_for_what_was_heard_before_the_far_end_was_lost() {
    for (name, path) in paths() {
        for seed in 0..4 {
            let clocks = Clocks::drawn(seed, 1_000_000, None);
            let held = play(path, &clocks, Some((3 + seed) * SECOND));
            assert!(held.arrivals > 100, "{name}, seed {seed}: {held:?}");
            assert!(held.worst <= held.bound + ROUNDING, "{name}, seed {seed}: {held:?}");
        }
    }
}

/// What the bounds are good for: half the round trip, and behind a queue what the exchanges before and after it leave open.
#[test]
fn the_bound_is_narrow() {
    let most = BTreeMap::from([
        ("idle", 0.3),
        ("unequal ways", 26.0),
        ("queue there", 300.0),
        ("queue back", 300.0),
        ("load there", 25.0),
        ("load back", 25.0),
        ("lossy", 40.0),
        ("route change", 50.0),
    ]);
    for (name, path) in paths() {
        let held = play(path, &Clocks::drawn(1, 100_000, None), None);
        let (bound, worst) = (milliseconds(held.bound), milliseconds(held.worst));
        eprintln!("{name}: off by {worst} ms at most, bound {bound} ms");
        assert!(bound <= most[name], "{name}: off by {worst} ms at most, bound {bound} ms");
    }
}

#[test]
fn a_reflection_lies_between_sending_and_return() {
    let clocks = Clocks::drawn(3, 100_000, None);
    let path = &paths()["idle"];
    let mut relation = Relation::new(Turning::Never);
    for &[asked, reflected, returned] in &path.exchanges {
        relation.exchanged(clocks.reply(asked, reflected, reflected), clocks.near(returned)).unwrap();
    }
    let far_epoch = relation.begin(clocks.near(SECOND));
    for &[asked, reflected, returned] in path.exchanges.iter().filter(|exchange| exchange[0] > SECOND) {
        let far = Time::from_nanos(clocks.far(reflected) - far_epoch);
        let time = |at: u64| Time::from_nanos(at - SECOND);
        let what = Observation::Received {
            channel: 0,
            sequence: 0,
            sent: time(asked),
            reflected: far,
            payload: Bytes(1),
        };
        let mut batch = Batch::default();
        batch.push(time(returned), FlowId(0), what, None);
        relation.correct_reflected(&mut batch);
        let Observation::Received { reflected: brought, .. } = batch.events[0].what else { unreachable!() };
        assert!(time(asked) <= brought && brought <= time(returned));
        assert!(brought.as_nanos().abs_diff(reflected - SECOND) < 200_000, "within half the round trip");
    }
}
