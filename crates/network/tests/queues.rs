//! What every queue of the registry must do, and what every registry must say.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use trunkline_core::schema::{Default as Preset, Kind, Limit, Parameter};
use trunkline_core::{Bytes, Duration, Ecn, FlowId, Packet, PacketId, Seed, Time};
use trunkline_network::impairment::{self, LOSS_KINDS, Loss};
use trunkline_network::queue::{self, Backlog, Counted, Dequeued, QueueKind};
use trunkline_network::{Fate, Fates, medium};
use trunkline_testkit::values::{share, values};

/// One step of a driver.
#[derive(Clone, Debug)]
enum Step {
    Enqueue { flow: u32, size: u64 },
    Dequeue,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u32..9, 28u64..1600).prop_map(|(flow, size)| Step::Enqueue { flow, size }),
        3 => Just(Step::Dequeue),
        1 => (0u64..50_000_000).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..400)
}

/// Packets of a flow are alike in all that a queue may sort by.
fn packet(id: u64, flow: u32, size: u64) -> Packet {
    let ecn = [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1][flow as usize % 3];
    let priority = (flow / 3) as u16;
    Packet { id: PacketId(id), flow: FlowId(flow), size: Bytes(size), ecn, priority, ..Packet::default() }
}

/// What a queue handed out, in order.
#[derive(Debug, PartialEq)]
enum Event {
    Left(Packet),
    NotBefore(Time),
    Fate(Fate),
}

/// Takes the steps with a queue of this kind, and looks after every one whether the laws of all queues hold.
fn drive(kind: &QueueKind, limit: &str, steps: &[Step], seed: u64) -> Result<Vec<Event>, TestCaseError> {
    let most: Limit = limit.parse().expect("a limit");
    let stream = Seed::new(seed, 0).stream("queue");
    let mut queue = Counted::new((kind.build)(&values(kind.parameters, &[("limit", limit)]), stream));
    let mut waiting: BTreeMap<PacketId, Packet> = BTreeMap::new();
    let (mut now, mut fates, mut next, mut events) = (Time::ZERO, Fates::default(), 0, Vec::new());
    for step in steps {
        match *step {
            Step::Enqueue { flow, size } => {
                let packet = packet(next, flow, size);
                next += 1;
                waiting.insert(packet.id, packet.clone());
                queue.enqueue(now, packet, &mut fates);
            }
            Step::Dequeue => match queue.dequeue(now, &mut fates) {
                Dequeued::Packet(packet) => {
                    let given = waiting.remove(&packet.id);
                    prop_assert_eq!(given.map(|p| (p.flow, p.size)), Some((packet.flow, packet.size)));
                    // What is dropped in the same call may have been before it.
                    let dropped = |id| {
                        fates.0.iter().any(|f| matches!(f, Fate::Dropped { packet, .. } if packet.id == id))
                    };
                    let overtaken = waiting
                        .values()
                        .find(|p| p.flow == packet.flow && p.id < packet.id && !dropped(p.id));
                    prop_assert!(
                        overtaken.is_none(),
                        "{}: packet {} overtook {:?} of its flow",
                        kind.name,
                        packet.id.0,
                        overtaken
                    );
                    prop_assert!(packet.enqueued <= now);
                    events.push(Event::Left(packet));
                }
                Dequeued::Empty => {
                    prop_assert_eq!(queue.waiting(), Backlog::default(), "{} is idle", kind.name)
                }
                Dequeued::NotBefore(time) => {
                    prop_assert!(time > now);
                    events.push(Event::NotBefore(time));
                }
            },
            Step::Wait(nanos) => now += Duration::from_nanos(nanos),
        }
        for fate in fates.0.drain(..) {
            match &fate {
                Fate::Dropped { at, packet, .. } => {
                    prop_assert!(waiting.remove(&packet.id).is_some(), "{} dropped twice", packet.id.0);
                    prop_assert_eq!(*at, now);
                }
                Fate::Marked { id, .. } => {
                    prop_assert!(waiting.get(id).is_none_or(|p| p.ecn != Ecn::NotCapable));
                }
            }
            events.push(Event::Fate(fate));
        }
        let bytes = waiting.values().map(|packet| packet.size.count()).sum();
        let backlog = Backlog { packets: waiting.len() as u64, bytes: Bytes(bytes) };
        prop_assert_eq!(queue.waiting(), backlog);
        let within = match most {
            Limit::Packets(most) => backlog.packets <= most,
            Limit::Bytes(most) => backlog.bytes <= most,
        };
        prop_assert!(within, "{} holds {:?} with a limit of {}", kind.name, backlog, limit);
        let counted = queue.counters();
        let dropped: u64 = counted.dropped.iter().sum();
        prop_assert_eq!(counted.received, counted.dequeued + dropped + backlog.packets);
        prop_assert_eq!(counted.sojourns.count(), counted.dequeued);
    }
    Ok(events)
}

proptest! {
    /// Every packet leaves once or is dropped once, those of a flow in order; the limit holds; the queue is never idle
    /// while something waits; and the same packets at the same times meet the same fates.
    #[test]
    fn laws_of_all_queues(steps in steps(), in_bytes: bool, seed: u64) {
        let limit = if in_bytes { "15 KB" } else { "20 packets" };
        for kind in queue::KINDS {
            let events = drive(kind, limit, &steps, seed)?;
            prop_assert_eq!(&events, &drive(kind, limit, &steps, seed)?, "{}", kind.name);
        }
    }
}

#[test]
fn every_queue_has_a_limit() {
    for kind in queue::KINDS {
        let limit = kind.parameters.iter().find(|parameter| parameter.name == "limit");
        assert!(limit.is_some_and(|limit| matches!(limit.kind, Kind::Limit)), "{}", kind.name);
    }
}

#[test]
fn names_in_registries_are_found_and_their_own() {
    assert!(queue::KINDS.iter().all(|kind| queue::find(kind.name).is_some_and(|k| k.doc == kind.doc)));
    assert!(medium::KINDS.iter().all(|kind| medium::find(kind.name).is_some_and(|k| k.doc == kind.doc)));
    assert!(
        LOSS_KINDS.iter().all(|kind| impairment::find_loss(kind.name).is_some_and(|k| k.doc == kind.doc))
    );
    assert!(queue::find("lifo").is_none() && medium::find("pigeon").is_none());
    for kind in queue::KINDS {
        sound(kind.name, kind.doc, &[kind.parameters]);
    }
    for kind in medium::KINDS {
        // Both tables' keys stand side by side in the file, with those of the link itself.
        sound(kind.name, kind.doc, &[kind.shared, kind.parameters, impairment::PARAMETERS]);
    }
    for kind in LOSS_KINDS {
        sound(kind.name, kind.doc, &[kind.parameters]);
    }
}

fn sound(name: &str, doc: &str, tables: &[&[Parameter]]) {
    let mut names = BTreeSet::from(["kind", "between", "medium", "station", "queue", "loss"]);
    assert!(!doc.is_empty(), "{name}");
    for parameter in tables.iter().flat_map(|table| table.iter()) {
        assert!(
            names.insert(parameter.name),
            "{name}: `{}` is declared twice or means something else",
            parameter.name
        );
        assert!(parameter.doc.ends_with('.'), "{name}: `{}` has no sentence to explain it", parameter.name);
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(parameter.name.chars().all(kebab), "{name}: `{}`", parameter.name);
    }
}

#[test]
fn declared_defaults_are_readable_and_enough() {
    for kind in queue::KINDS {
        let queue = (kind.build)(&values(kind.parameters, &[]), Seed::new(1, 0).stream("queue"));
        assert_eq!(queue.backlog(), Backlog::default(), "{}", kind.name);
    }
    let none = impairment::Impairments::new(Loss::None, &values(impairment::PARAMETERS, &[]));
    let reorder_by = Duration::from_millis(10);
    assert_eq!(none, impairment::Impairments { reorder_by, ..impairment::Impairments::default() });
    for kind in medium::KINDS {
        let mut required = kind.parameters.iter().filter(|p| p.default == Preset::Required);
        let says_how_fast = |p: &Parameter| matches!(p.name, "rate" | "file");
        assert!(required.all(says_how_fast), "{}: nothing but a rate or a trace is required", kind.name);
    }
}

#[test]
fn loss_kinds_build_what_they_name() {
    let build = |name: &str, given: &[(&str, &str)]| {
        let kind = impairment::find_loss(name).expect("a kind of that name");
        (kind.build)(&values(kind.parameters, given))
    };
    assert_eq!(build("bernoulli", &[("probability", "1 %")]), Loss::Bernoulli(share(0.01)));
    assert_eq!(
        build("gilbert-elliott", &[("to-bad", "1 %"), ("to-good", "25 %")]),
        Loss::GilbertElliott {
            to_bad: share(0.01),
            to_good: share(0.25),
            loss_good: share(0.0),
            loss_bad: share(1.0)
        }
    );
}

/// The changelog promises the defaults of the RFCs, or of Linux where an RFC leaves a value open or Linux has another.
#[test]
fn defaults_of_queues_are_those_of_the_rfcs_or_of_linux() {
    let of = |queue: &str| -> BTreeMap<&str, &str> {
        let kind = queue::find(queue).unwrap_or_else(|| panic!("there is no queue {queue}"));
        let text = |parameter: &Parameter| match parameter.default {
            Preset::Text(text) => Some((parameter.name, text)),
            Preset::Required | Preset::Absent => None,
        };
        kind.parameters.iter().filter_map(text).collect()
    };
    let codel = [("target", "5 ms"), ("interval", "100 ms"), ("mtu", "1500 B")];
    // RFC 8289 sections 4.3, 4.4 and 5; Linux's limit, and no marks as in `sch_codel`.
    let expected = [&codel[..], &[("limit", "1000 packets"), ("ecn", "false")]].concat();
    assert_eq!(of("codel"), expected.into_iter().collect());
    // RFC 8290 sections 4.1 and 5.2; the quantum without Ethernet's header, which queues here do not count.
    let fq = [
        ("limit", "10240 packets"),
        ("flows", "1024"),
        ("quantum", "1500 B"),
        ("ecn", "true"),
        ("drop-batch", "64"),
    ];
    assert_eq!(of("fq-codel"), [&codel[..], &fq].concat().into_iter().collect());
    // RFC 8033 sections 4.2, 4.4 and 5.1; Linux's limit, and without the options that the RFC leaves open.
    let pie = [
        ("limit", "1000 packets"),
        ("target", "15 ms"),
        ("t-update", "15 ms"),
        ("alpha", "0.125"),
        ("beta", "1.25"),
        ("max-burst", "150 ms"),
        ("mtu", "1500 B"),
        ("ecn", "false"),
        ("ecn-threshold", "10 %"),
        ("derandomise", "false"),
        ("cap-increase", "false"),
        ("raise-above-250ms", "false"),
    ];
    assert_eq!(of("pie"), pie.into_iter().collect());
    // RFC 9332 appendix A.1; the limit, the interval, the proportional gain, the smallest backlog and the share of `sch_dualpi2`.
    let dualpi2 = [
        ("limit", "10000 packets"),
        ("target", "15 ms"),
        ("t-update", "16 ms"),
        ("alpha", "0.16"),
        ("beta", "3.2"),
        ("coupling", "2"),
        ("min-threshold", "800 us"),
        ("range", "400 us"),
        ("mtu", "1500 B"),
        ("classic-share", "10 %"),
    ];
    assert_eq!(of("dualpi2"), dualpi2.into_iter().collect());
}
