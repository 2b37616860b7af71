use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use trunkline_core::{Bytes, Destination, Duration, FlowId, Packet, PacketId, Port, Rate, Seed, Time};
use trunkline_experiment::Experiment;
use trunkline_network::{Medium, Outcome};

use super::*;
use crate::relay::{
    Change, FlowCounters, FlowDirection, FlowKey, PortCounters, RelayCounters, RelayEnded, Volume,
};

const FILE: &str = r#"name = "controlled"
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
"#;

/// A link that nobody drives but the test.
struct ByHand(Mutex<Hand>);

struct Hand {
    /// `None` once it has ended.
    medium: Option<Box<dyn Medium>>,
    out: Outcome,
    up: bool,
}

impl ByHand {
    fn end(&self) {
        self.0.lock().unwrap().medium = None;
    }

    /// Offers packets of 1000 B at once, at the beginning of time.
    fn burst(&self, packets: u64) {
        let Hand { medium, out, .. } = &mut *self.0.lock().unwrap();
        for id in 0..packets {
            let to = Destination::Port(Port(1));
            let packet = Packet { id: PacketId(id), size: Bytes(1000), to, ..Packet::default() };
            medium.as_mut().unwrap().offer(Time::ZERO, Port(0), packet, out);
        }
    }

    fn dropped(&self) -> usize {
        self.0.lock().unwrap().out.fates.0.len()
    }
}

impl Drive for ByHand {
    fn counters(&self) -> Result<RelayCounters, RelayEnded> {
        let Hand { medium, up, .. } = &*self.0.lock().unwrap();
        let medium = medium.as_ref().ok_or(RelayEnded)?;
        let volume = |packets| Volume { packets, bytes: Bytes(1000 * packets) };
        let port = |port| {
            let medium = medium.counters(Port(port));
            let (offered, delivered) = (volume(medium.offered), volume(medium.delivered));
            PortCounters { offered, delivered, medium, cut: 3 * u64::from(port), ..PortCounters::default() }
        };
        let addresses = ["198.18.0.1", "2001:2::2"].map(|address| address.parse().unwrap());
        let side = FlowDirection { offered: volume(4), delivered: volume(3), ..FlowDirection::default() };
        let flow = |number, key| FlowCounters {
            flow: FlowId(number),
            key,
            directions: [side, FlowDirection::default()],
        };
        let key = FlowKey { addresses, ports: [5004, 80], protocol: 17 };
        Ok(RelayCounters {
            at: Time::ZERO + Duration::from_secs(2),
            up: *up,
            ports: vec![port(0), port(1)],
            flows: vec![flow(0, None), flow(7, Some(key))],
            flows_forgotten: 0,
        })
    }

    fn change(&self, change: Change) -> Result<(), RelayEnded> {
        let Hand { medium, out, .. } = &mut *self.0.lock().unwrap();
        change(Time::ZERO, &mut **medium.as_mut().ok_or(RelayEnded)?, out);
        Ok(())
    }

    fn set_up(&self, up: bool) -> Result<(), RelayEnded> {
        self.0.lock().unwrap().up = up;
        Ok(())
    }
}

/// A wire of two links, and these.
fn wire() -> (Arc<Controller>, Vec<Arc<ByHand>>) {
    let experiment = Experiment::parse(FILE, "x.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let seed = Seed::new(1, 0);
    let media = experiment.points.first().scenario.build_links(seed);
    let hand = |medium| {
        Arc::new(ByHand(Mutex::new(Hand { medium: Some(medium), out: Outcome::default(), up: true })))
    };
    let hands: Vec<Arc<ByHand>> = media.into_iter().map(hand).collect();
    let link = |(name, hand): (&str, &Arc<ByHand>)| ControlledLink {
        name: name.to_owned(),
        stations: vec!["a".to_owned(), "b".to_owned()],
        drive: Arc::clone(hand) as Arc<dyn Drive>,
    };
    let links = ["trunk", "ring"].into_iter().zip(&hands).map(link).collect();
    (Arc::new(Controller::new("lab", experiment, Box::new(()), seed, links)), hands)
}

#[test]
fn keys_are_set_as_the_file_would() {
    let (controller, hands) = wire();
    hands[0].burst(11);
    assert_eq!(hands[0].dropped(), 0, "one on the line and ten in the queue");
    assert_eq!(controller.set("trunk.queue.limit", "4 packets"), Ok(()));
    assert_eq!(hands[0].dropped(), 6);
    assert_eq!(controller.set("trunk.forward.rate", "5mbit"), Ok(()));
    // The limit still holds: keys stay set.
    hands[0].burst(1);
    assert_eq!(hands[0].dropped(), 7);
    assert_eq!(controller.set("trunk.up", "false"), Ok(()));
    assert!(!controller.counters().links[0].up);
}

#[test]
fn what_cannot_be_set_is_refused_in_a_sentence_and_changes_nothing() {
    let (controller, hands) = wire();
    for (key, value, expected) in [
        ("trunk", "5mbit", "`trunk` is not a key of a link; expected LINK.KEY such as `trunk.rate`"),
        ("trank.rate", "5mbit", "there is no link `trank`; the wire has `trunk`, `ring`"),
        ("trunk.rats", "5mbit", "unknown key `trunk.rats`; did you mean `trunk.rate`?"),
        ("trunk.up", "maybe", "`trunk.up` must be `true` or `false`, not `maybe`"),
        ("trunk.mtu", "1000 B", "the MTU of link `trunk` is that of the hosts' interfaces"),
        ("trunk.medium", "t1", "cannot change the medium of the link `trunk` while it runs"),
        ("ring.loss", "1%", "link `ring` is of medium `fddi`, which cannot be changed while it runs"),
    ] {
        let problem = controller.set(key, value).unwrap_err();
        assert!(problem.starts_with(expected), "{key} = {value}: {problem}");
    }
    assert_eq!(controller.set("trunk.rate", "4mbit"), Ok(()), "nothing of all that was kept");
    hands[0].end();
    let problem = controller.set("trunk.rate", "5mbit").unwrap_err();
    assert_eq!(problem, "link `trunk`: the link's relay has ended");
    assert!(controller.counters().links[0].ended && !controller.counters().links[1].ended);
}

#[test]
fn a_client_asks_and_sets_over_the_socket_as_often_as_it_likes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control");
    let (controller, hands) = wire();
    let server = ControlServer::start(&path, Arc::clone(&controller)).unwrap();
    let mut client = Client::connect(&path).unwrap();
    hands[0].burst(3);
    for _ in 0..2 {
        assert_eq!(client.counters().unwrap(), controller.counters());
    }
    let mut other = Client::connect(&path).unwrap();
    other.set("trunk.queue.limit", "1 packet").unwrap();
    assert_eq!(client.counters().unwrap().links[0].directions[0].dropped["queue-full"], 1);
    let refused = client.set("trunk.rate", "fast").unwrap_err();
    assert!(refused.is_bad_input() && refused.to_string().contains("`fast`"), "{refused}");
    drop(server);
    assert!(!path.exists() && Client::connect(&path).is_err());
    assert!(client.counters().is_err(), "connections are closed");
}

/// What the socket answers to bytes.
fn answer(request: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control");
    let _server = ControlServer::start(&path, wire().0).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(request).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    // A server that gives up on what it was sent may reset the connection.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn bad_requests_are_refused_and_do_no_harm() {
    assert!(answer(b"hello\n\"counters\"\n").starts_with("{\"refused\":\"invalid request:"));
    assert_eq!(answer(b"{\"set\":{\"key\":\"x\"}}\n").lines().count(), 1);
    assert_eq!(answer(b"\"counters\""), "", "without the end of the line it is not one");
    assert_eq!(answer(&vec![b'x'; 100_000]), "");
    assert_eq!(answer(b"\xff\xfe\n"), "");
    assert!(answer(b"GET / HTTP/1.1\r\nHost: wire\r\n\r\n").starts_with("HTTP/1.1 404 Not Found\r\n"));
    assert!(answer(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
}

/// What is set, and to what, of pieces that may be right.
fn assignment() -> impl Strategy<Value = Vec<u8>> {
    let key = prop::sample::select(vec![
        "rate",
        "delay",
        "loss",
        "jitter",
        "duplicate",
        "reorder",
        "mtu",
        "queue",
        "queue.limit",
        "queue.kind",
        "backward.rate",
        "forward.loss",
        "up",
        "between",
        "overhead",
        "shape-rate",
        "framing",
        "name",
        "",
    ]);
    let value = prop::sample::select(vec![
        "5mbit",
        "1 bit/s",
        "0 B",
        "10 ms",
        "100 %",
        "1e30",
        "-1",
        "true",
        "codel",
        "{ kind = \"fq-codel\" }",
        "{",
        "[1,2",
        "20 packets",
        "1 B",
        "unlimited",
        "99999999 s",
        "\\u0000",
        "x\\ny = 1",
    ]);
    let line =
        |(key, value)| format!("{{\"set\":{{\"key\":\"trunk.{key}\",\"value\":\"{}\"}}}}\n", escaped(value));
    (key, value).prop_map(line).prop_map(String::into_bytes)
}

fn escaped(text: &str) -> String {
    text.replace('"', "\\\"")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn any_bytes_are_requests(lines in prop::collection::vec(prop_oneof![
        8 => assignment(),
        1 => Just(b"\"counters\"\n".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ], 0..8), http in any::<bool>()) {
        let http: &[u8] = if http { b"GET /metrics HTTP/1.1\r\n\r\n" } else { b"" };
        fuzz_control(&[&lines.concat(), http].concat());
    }
}

/// What could bring down the thread that reads it.
#[test]
fn deep_values_are_refused() {
    for value in
        ["[".repeat(30_000), "{ a = ".repeat(8_000), "{ kind = ".repeat(8_000), "\\\"".repeat(10_000)]
    {
        fuzz_control(format!("{{\"set\":{{\"key\":\"trunk.queue\",\"value\":\"{value}\"}}}}\n").as_bytes());
    }
    fuzz_control(
        format!("{{\"set\":{{\"key\":\"trunk{}\",\"value\":\"1\"}}}}\n", ".a".repeat(30_000)).as_bytes(),
    );
    fuzz_control("[".repeat(60_000).as_bytes());
}

#[test]
fn prometheus_reads_the_same_counters() {
    let answer = answer(b"GET /metrics HTTP/1.1\r\nHost: wire\r\nAccept: */*\r\n\r\n");
    let (header, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(header.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{header}");
    assert!(header.contains(&format!("Content-Length: {}\r\n", body.len())), "{header}");
    for line in [
        "trunkline_link_up{wire=\"lab\",link=\"ring\"} 1",
        "trunkline_link_offered_packets_total{wire=\"lab\",link=\"trunk\",from=\"a\"} 0",
        "trunkline_link_dropped_packets_total{wire=\"lab\",link=\"trunk\",from=\"b\",cause=\"link-down\"} 3",
        "trunkline_link_sojourn_seconds{wire=\"lab\",link=\"trunk\",from=\"a\",quantile=\"0.99\"} 0",
    ] {
        assert!(body.lines().any(|found| found == line), "{line} is not in\n{body}");
    }
    // The rules of the format: every sample behind the head of its metric, and nothing twice.
    let (mut metric, mut seen) = (String::new(), std::collections::BTreeSet::new());
    for line in body.lines() {
        assert!(seen.insert(line.rsplit_once(' ').unwrap().0), "{line} stands there twice");
        if let Some(head) = line.strip_prefix("# TYPE ") {
            metric = head.split(' ').next().unwrap().to_owned();
        } else if !line.starts_with("# HELP ") {
            let name = line.split('{').next().unwrap();
            let base = name.strip_suffix("_sum").or(name.strip_suffix("_count")).unwrap_or(name);
            assert!(name == metric || base == metric, "{line} stands under {metric}");
            let value: f64 = line.rsplit_once(' ').unwrap().1.parse().unwrap();
            assert!(value >= 0.0);
        }
    }
}

#[test]
fn labels_are_escaped() {
    let link = LinkSnapshot { link: "a\"b\\c\nd".into(), ..LinkSnapshot::default() };
    let snapshot = WireSnapshot { links: vec![link], ..WireSnapshot::default() };
    assert!(prometheus::text(&snapshot).contains(r#"link="a\"b\\c\nd""#));
}

#[test]
fn rates_are_what_was_between_two_looks() {
    let packets = |packets, bytes| Packets { packets, bytes };
    let direction = |packets_out, busy_ns, dropped, total_ns, count| DirectionSnapshot {
        from: "a".into(),
        offered: packets(2 * packets_out, 2000 * packets_out),
        delivered: packets(packets_out, 1000 * packets_out),
        dropped: [("sojourn".to_owned(), dropped)].into(),
        sojourn: Sojourn { total_ns, count, ..Sojourn::default() },
        busy_ns,
        ..DirectionSnapshot::default()
    };
    let side = |out, waiting| FlowSide {
        offered: packets(out + waiting, 0),
        delivered: packets(out, 100 * out),
        waiting,
        transit_total_ns: 5_000_000 * out,
        ..FlowSide::default()
    };
    let flow = |flow, name: &str, side| FlowSnapshot {
        flow,
        name: name.into(),
        directions: [side, FlowSide::default()],
    };
    let look = |at_ns, directions, flows| WireSnapshot {
        links: vec![LinkSnapshot {
            link: "trunk".into(),
            at_ns,
            up: true,
            directions,
            flows,
            ..LinkSnapshot::default()
        }],
        ..WireSnapshot::default()
    };
    let before = look(
        1_000_000_000,
        vec![direction(10, 0, 1, 0, 0)],
        vec![flow(1, "idle", side(4, 0)), flow(2, "busy", side(100, 0)), flow(3, "old", side(70, 0))],
    );
    let now = look(
        1_500_000_000,
        vec![direction(60, 250_000_000, 3, 50_000_000, 50)],
        vec![flow(1, "idle", side(4, 0)), flow(2, "busy", side(110, 2)), flow(3, "new", side(20, 0))],
    );
    let Rates { directions, flows } = Rates::between(&before, &now);
    let [trunk] = &directions[..] else { panic!("one direction") };
    assert_eq!(
        (trunk.delivered, trunk.offered),
        (Rate::from_bits_per_second(800_000), Rate::from_bits_per_second(1_600_000))
    );
    assert_eq!((trunk.utilisation, trunk.drops, trunk.sojourn), (0.5, 4.0, Some(Duration::from_millis(1))));
    let flows: Vec<_> =
        flows.iter().map(|f| (f.name.as_str(), f.delivered.bits_per_second(), f.waiting)).collect();
    assert_eq!(flows, [("new", 32_000, 0), ("busy", 16_000, 2)], "a number's earlier flow does not count");
    assert_eq!(Rates::between(&now, &now).directions[0].drops, 0.0);
}
