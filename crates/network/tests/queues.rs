//! What every queue of the registry must do, and what every registry must say.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use trunkline_core::schema::{Default as Preset, Parameter};
use trunkline_core::{Bytes, Duration, Ecn, FlowId, Packet, PacketId, Seed, Time};
use trunkline_network::impairment::{self, LOSS_KINDS, Loss};
use trunkline_network::queue::{self, Backlog, Counted, Dequeued};
use trunkline_network::{Fate, Fates, medium};
use trunkline_testkit::values::{share, values};

/// One step of a driver.
#[derive(Clone, Debug)]
enum Step {
    Enqueue { flow: u32, size: u64, capable: bool },
    Dequeue,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u32..6, 28u64..1600, any::<bool>())
            .prop_map(|(flow, size, capable)| Step::Enqueue { flow, size, capable }),
        3 => Just(Step::Dequeue),
        1 => (0u64..50_000_000).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..400)
}

proptest! {
    #[test]
    fn every_packet_leaves_once_or_is_dropped_once(steps in steps(), seed: u64) {
        for kind in queue::KINDS {
            let stream = Seed::new(seed, 0).stream("queue");
            let mut queue = Counted::new((kind.build)(&values(kind.parameters, &[("limit", "20 packets")]), stream));
            let mut waiting: BTreeMap<PacketId, Packet> = BTreeMap::new();
            let (mut now, mut fates, mut next) = (Time::ZERO, Fates::default(), 0);
            for step in &steps {
                match *step {
                    Step::Enqueue { flow, size, capable } => {
                        let id = PacketId(next);
                        next += 1;
                        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotCapable };
                        let packet = Packet { id, flow: FlowId(flow), size: Bytes(size), ecn, ..Packet::default() };
                        waiting.insert(id, packet.clone());
                        queue.enqueue(now, packet, &mut fates);
                    }
                    Step::Dequeue => match queue.dequeue(now, &mut fates) {
                        Dequeued::Packet(packet) => {
                            let given = waiting.remove(&packet.id);
                            prop_assert_eq!(given.map(|p| (p.flow, p.size)), Some((packet.flow, packet.size)));
                            prop_assert!(packet.enqueued <= now);
                        }
                        Dequeued::Empty => {}
                        Dequeued::NotBefore(time) => prop_assert!(time > now),
                    },
                    Step::Wait(nanos) => now += Duration::from_nanos(nanos),
                }
                for fate in fates.0.drain(..) {
                    match fate {
                        Fate::Dropped { at, packet, .. } => {
                            prop_assert!(waiting.remove(&packet.id).is_some(), "{} dropped twice", packet.id.0);
                            prop_assert_eq!(at, now);
                        }
                        Fate::Marked { id, .. } => {
                            prop_assert!(waiting.get(&id).is_none_or(|p| p.ecn != Ecn::NotCapable));
                        }
                    }
                }
                let bytes = waiting.values().map(|packet| packet.size.count()).sum();
                let backlog = Backlog { packets: waiting.len() as u64, bytes: Bytes(bytes) };
                prop_assert_eq!(queue.waiting(), backlog);
                let counted = queue.counters();
                let dropped: u64 = counted.dropped.iter().sum();
                prop_assert_eq!(counted.received, counted.dequeued + dropped + backlog.packets);
            }
        }
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
        sound(kind.name, kind.doc, &[kind.parameters, impairment::PARAMETERS]);
    }
    for kind in LOSS_KINDS {
        sound(kind.name, kind.doc, &[kind.parameters]);
    }
}

fn sound(name: &str, doc: &str, tables: &[&[Parameter]]) {
    let mut names = BTreeSet::from(["kind", "between", "queue", "loss"]);
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
        let required = kind.parameters.iter().filter(|p| p.default == Preset::Required).map(|p| p.name);
        assert_eq!(required.collect::<Vec<_>>(), ["rate"], "{}", kind.name);
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
