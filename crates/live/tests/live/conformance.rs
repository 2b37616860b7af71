//! One flow, three drivers: what is observed of every message is the same in virtual time, over the kernel's sockets
//! and over engines of ours, whatever the transport. Times are each driver's own; all else is compared message by
//! message.

use std::collections::{BTreeMap, BTreeSet};

use trunkline_core::{Duration, FlowId, Seed, Time};
use trunkline_experiment::Scenario;
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_metrics::{DriverOutcome, Observation, Recorder};
use trunkline_testkit::real_time::in_real_time;

use crate::support::{GoOn, scenario, scenario_with};

/// The kernel's, and ours over UDP.
const UNRELIABLE: [&str; 4] = [
    "\"udp\"",
    "{ kind = \"dccp\", encapsulation = \"udp\" }",
    "{ kind = \"quic\", mode = \"datagrams\" }",
    "\"rtp\"",
];
const RELIABLE: [&str; 6] = [
    "\"tcp\"",
    "\"urp\"",
    "{ kind = \"xtp\", encapsulation = \"udp\" }",
    "{ kind = \"sctp\", encapsulation = \"udp\" }",
    "{ kind = \"sctp\", encapsulation = \"udp\", style = \"one-to-many\", streams = 4 }",
    "\"quic\"",
];

/// What was observed of a message, but for when.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    /// When its source wanted it sent, and its payload, each time it was sent.
    sent: Vec<(Time, u64)>,
    /// The same, each time it was refused.
    refused: Vec<(Time, u64)>,
    /// Its payload each time it arrived, and whether a reflector had had it.
    received: Vec<(u64, bool)>,
    kept: Option<Vec<u8>>,
}

#[derive(Default)]
struct Observed {
    /// By flow, channel and sequence number.
    messages: BTreeMap<(u32, u16, u32), Seen>,
    /// By flow and channel, the bytes of each.
    transfers: BTreeMap<(u32, u16), Vec<u64>>,
    /// By flow, in bytes.
    unmatched: BTreeMap<u32, u64>,
    samples_lost: u64,
}

impl Recorder for Observed {
    fn record(&mut self, _: Time, FlowId(flow): FlowId, what: Observation) {
        match what {
            Observation::Sent { channel, sequence, due, payload } => {
                self.message(flow, channel, sequence).sent.push((due, payload.0));
            }
            Observation::Refused { channel, sequence, due, payload } => {
                self.message(flow, channel, sequence).refused.push((due, payload.0));
            }
            Observation::Received { channel, sequence, reflected, payload, .. } => {
                let was_reflected = reflected > Time::ZERO;
                self.message(flow, channel, sequence).received.push((payload.0, was_reflected));
            }
            Observation::Transferred { channel, bytes, .. } => {
                self.transfers.entry((flow, channel)).or_default().push(bytes.0);
            }
            Observation::Overflowed { samples, .. } => self.samples_lost += u64::from(samples),
            Observation::Stray { bytes } => *self.unmatched.entry(flow).or_default() += bytes.0,
            Observation::SendCall { .. } => {}
        }
    }

    fn payload(&mut self, FlowId(flow): FlowId, channel: u16, sequence: u32, payload: &[u8]) {
        self.message(flow, channel, sequence).kept = Some(payload.to_vec());
    }
}

impl Observed {
    fn message(&mut self, flow: u32, channel: u16, sequence: u32) -> &mut Seen {
        self.messages.entry((flow, channel, sequence)).or_default()
    }

    /// When a flow's first message was due.
    fn begin(&self, flow: u32) -> Time {
        let of_flow = self.messages.iter().filter(|((other, ..), _)| *other == flow);
        let due = of_flow.flat_map(|(_, seen)| seen.sent.iter().chain(&seen.refused)).map(|(due, _)| *due);
        due.min().unwrap_or(Time::ZERO)
    }

    /// Moves due times to when they would be without connecting first: on sockets a flow connects before the measured time,
    /// in virtual time within it, which takes less than 1 ms here.
    fn without_connecting(&mut self, live: &Observed) {
        let flows: BTreeSet<u32> = self.messages.keys().map(|(flow, ..)| *flow).collect();
        for flow in flows {
            let took = self.begin(flow).since(live.begin(flow));
            assert!(took < Duration::from_millis(1), "flow {flow} took {took} to connect");
            for (_, seen) in self.messages.iter_mut().filter(|((other, ..), _)| *other == flow) {
                seen.sent
                    .iter_mut()
                    .chain(&mut seen.refused)
                    .for_each(|(due, _)| *due = Time::ZERO + due.since(Time::ZERO + took));
            }
        }
    }
}

/// How many messages of each flow were refused for their size, as counted.
fn oversize(outcome: &DriverOutcome) -> Vec<u64> {
    let of_flow = |flow: &trunkline_metrics::FlowOutcome| {
        let counters = flow.transport_counters.iter();
        counters.filter(|(name, _)| name.starts_with("refused-larger-than-")).map(|(_, count)| count).sum()
    };
    outcome.flows.iter().map(of_flow).collect()
}

/// Runs a scenario in virtual time and on this host, where every so many packets of our engines are lost, and compares;
/// says how many messages there were.
fn compare(name: &str, scenario: &Scenario, lose_every: u32) -> usize {
    let seed = Seed::new(7, 0);
    let mut simulated = Observed::default();
    let expected = trunkline_simulator::run(scenario, seed, &mut simulated, &mut GoOn).unwrap();
    let options = LiveOptions { lose_every, ..LiveOptions::new(FarEnd::Thread) };
    let mut live = Observed::default();
    let outcome = trunkline_live::run(scenario, seed, &options, &mut live, &mut GoOn).unwrap();
    simulated.without_connecting(&live);
    let names = simulated.messages.keys().chain(live.messages.keys());
    for message in names {
        assert_eq!(live.messages.get(message), simulated.messages.get(message), "{name}: {message:?}");
    }
    assert_eq!(live.transfers, simulated.transfers, "{name}");
    assert_eq!((live.unmatched, live.samples_lost), (simulated.unmatched, simulated.samples_lost), "{name}");
    assert_eq!(oversize(&outcome), oversize(&expected), "{name}");
    live.messages.len()
}

fn flow(transport: &str, source: &str, keys: &str) -> String {
    format!("[flow.it]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nsource = {source}\n{keys}")
}

#[test]
fn members_and_channels_that_start_late_are_observed_alike() {
    let source = "{ kind = \"voice\", samples = 80, phase = \"spread\" }";
    for transport in UNRELIABLE.iter().chain(&RELIABLE) {
        for keys in ["", "reflect = true\n"] {
            let shape = format!("count = 3\nchannels = 2\nstart = \"40 ms\"\nstagger = \"15 ms\"\n{keys}");
            let scenario = scenario("150 ms", &flow(transport, source, &shape));
            in_real_time(|| assert!(compare(transport, &scenario, 0) > 30));
        }
    }
}

#[test]
fn messages_that_are_too_large_are_refused_and_counted_alike() {
    let message = "message = { kind = \"uniform\", min = \"100 B\", max = \"3 KiB\" }";
    let source = format!("{{ kind = \"load\", {message}, interval = \"5 ms\" }}");
    for transport in [UNRELIABLE[1], UNRELIABLE[2]] {
        for keys in ["", "reflect = true\n"] {
            let scenario = scenario("150 ms", &flow(transport, &source, keys));
            in_real_time(|| assert!(compare(transport, &scenario, 0) > 10));
        }
    }
}

#[test]
fn transfers_and_their_answers_are_observed_alike() {
    let transfers = "{ kind = \"bulk\", message = \"1 KiB\", bytes = \"20 KiB\", transfers = 3 }";
    let requests = "{ kind = \"interactive\", message = \"700 B\", answer = \"4 B\", messages = 20 }";
    for transport in RELIABLE {
        for (source, messages) in [(transfers, 120), (requests, 40)] {
            let flow = flow(transport, source, "count = 2\n");
            let scenario = scenario_with("until = \"it\"\n", "20 s", &flow);
            in_real_time(|| assert_eq!(compare_sizes(transport, &scenario), messages));
        }
    }
}

/// As [`compare`], for sources whose messages become due when others are through: only due times differ.
fn compare_sizes(name: &str, scenario: &Scenario) -> usize {
    let seed = Seed::new(7, 0);
    let [mut simulated, mut live] = [Observed::default(), Observed::default()];
    trunkline_simulator::run(scenario, seed, &mut simulated, &mut GoOn).unwrap();
    let options = LiveOptions::new(FarEnd::Thread);
    trunkline_live::run(scenario, seed, &options, &mut live, &mut GoOn).unwrap();
    for seen in simulated.messages.values_mut().chain(live.messages.values_mut()) {
        seen.sent.iter_mut().chain(&mut seen.refused).for_each(|(due, _)| *due = Time::ZERO);
    }
    assert_eq!(live.messages, simulated.messages, "{name}");
    assert_eq!(live.transfers, simulated.transfers, "{name}");
    live.messages.len()
}

#[test]
fn packets_that_are_lost_lose_no_message_of_a_reliable_transport_in_either() {
    let source = "{ kind = \"load\", message = \"900 B\", interval = \"4 ms\" }";
    for transport in &RELIABLE[1..] {
        let scenario =
            scenario_with("drain = \"10 s\"\n", "200 ms", &flow(transport, source, "reflect = true\n"));
        in_real_time(|| assert_eq!(compare(transport, &scenario, 20), 50));
    }
}

#[test]
fn what_others_send_to_a_flow_is_unmatched_and_harms_nothing() {
    let source = "{ kind = \"voice\", samples = 80, phase = \"together\" }";
    let scenario = scenario("200 ms", &flow("\"udp\"", source, "reflect = true\n"));
    in_real_time(|| {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let options = LiveOptions { port, ..LiveOptions::new(FarEnd::Thread) };
        let mut live = Observed::default();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
                let wait = std::time::Duration::from_millis(2);
                while stopped.recv_timeout(wait) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    // Nobody listens before the run has begun.
                    let _ = other.send_to(&[7; 100], ("127.0.0.1", port));
                }
            });
            trunkline_live::run(&scenario, Seed::new(7, 0), &options, &mut live, &mut GoOn).unwrap();
            drop(stop);
        });
        assert_eq!(live.unmatched.keys().copied().collect::<Vec<_>>(), [0]);
        assert!(live.unmatched[&0] % 100 == 0 && live.unmatched[&0] > 1000, "{:?}", live.unmatched);
        let whole = |seen: &Seen| (seen.sent.len(), seen.received.len()) == (1, 1);
        assert!(live.messages.len() == 20 && live.messages.values().all(whole), "{:?}", live.messages);
    });
}
