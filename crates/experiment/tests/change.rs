//! Links changed while they run: what a key written otherwise means, and what it does to a medium.

mod common;

use common::Beside;
use trunkline_core::{Bytes, Destination, Packet, PacketId, Port, Seed, Time};
use trunkline_experiment::Experiment;
use trunkline_network::{Fixed, Outcome};

const FILE: &str = r#"name = "changes"
duration = "1 s"

[hosts]
a = {}
b = {}

[link.trunk]
between = ["a", "b"]
rate = "8 Mbit/s"
queue = { kind = "fifo", limit = "10 packets" }

[link.ring]
medium = "fddi"
between = ["a", "b"]

[flow.bulk]
from = "a"
to = "b"
path = ["trunk"]
transport = "tcp"
source = "bulk"

[sweep]
"link.trunk.delay" = ["1 ms", "5 ms"]
"#;

fn experiment() -> Experiment {
    Experiment::parse(FILE, "x.toml", &Beside).unwrap_or_else(|problems| panic!("{problems}"))
}

fn keys(keys: &[(&str, &str)]) -> Vec<(String, String)> {
    keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn keys_are_those_of_the_file_and_its_sweep() {
    let experiment = experiment();
    let read = |written: &[(&str, &str)]| experiment.rewritten(1, &keys(written), &Beside);
    let [forward, backward] =
        &read(&[("link.trunk.rate", "5mbit"), ("link.trunk.backward.loss", "1%")]).unwrap().links[0]
            .directions[..]
    else {
        panic!("two directions")
    };
    assert_eq!((forward.rate, forward.delay), ("5 Mbit/s".parse().unwrap(), "5 ms".parse().unwrap()));
    assert_ne!(forward.impairments, backward.impairments);
    let twice = read(&[("link.trunk.rate", "5mbit"), ("link.trunk.rate", "6mbit")]).unwrap();
    assert_eq!(twice.links[0].directions[0].rate, "6 Mbit/s".parse().unwrap(), "the later holds");
    assert!(read(&[("link.trunk.queue", r#"{ kind = "codel", limit = "9 packets" }"#)]).is_ok());
    for (key, value, expected) in [
        ("link.trunk.rate", "fast", "`rate`: `fast`"),
        ("link.trunk.rate", "0 bit/s", "`rate` must be a rate from 1 bit/s"),
        ("link.trunk.rats", "5mbit", "unknown key `link.trunk.rats`; did you mean `link.trunk.rate`?"),
        ("link.trunk.loss", "2", "`loss`: `2` is out of range"),
        ("link.ring.stations", "1", "unknown key"),
    ] {
        let problem = read(&[(key, value)]).unwrap_err();
        assert!(problem.starts_with(expected), "{key} = {value}: {problem}");
    }
}

#[test]
fn a_change_goes_to_the_directions_that_differ() {
    let experiment = experiment();
    let (seed, now) = (Seed::new(1, 0), &experiment.points.first().scenario);
    let mut links = now.build_links(seed);
    let mut out = Outcome::default();
    for id in 0..9 {
        let to = Destination::Port(Port(1));
        links[0].offer(
            Time::ZERO,
            Port(0),
            Packet { id: PacketId(id), size: Bytes(1000), to, ..Packet::default() },
            &mut out,
        );
    }
    let change = |link: usize, written: &[(&str, &str)]| {
        now.link_change(link, &experiment.rewritten(0, &keys(written), &Beside).unwrap(), seed)
    };
    assert!(change(0, &[("link.trunk.rate", "8000kbit")]).unwrap().is_empty(), "the same in other words");
    let smaller = change(0, &[("link.trunk.forward.queue.limit", "5 packets")]).unwrap();
    assert_eq!(smaller.apply(Time::ZERO, &mut *links[0], &mut out), Ok(()));
    assert_eq!((out.deliveries.len(), out.fates.0.len()), (1, 3), "5 of the 8 that wait stay");
    let ring = change(1, &[("link.ring.loss", "1%")]).unwrap();
    assert_eq!(ring.apply(Time::ZERO, &mut *links[1], &mut out), Err(Fixed));
}
