//! Damage: messages of an enrolled controller, for which the agent refuses the message or ends the connection, and packets between two agents.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use trunkline_control::message::FarEndpoint;
use trunkline_control::wire::{Frame, Message, WireError};
use trunkline_control::{FromAgent, ToAgent};
use trunkline_core::{FlowId, Time};
use trunkline_experiment::{Experiment, NamedFiles};
use trunkline_metrics::{DriverOutcome, FlowMeta, Meter, Observation, Recorder};
use trunkline_testkit::middle::Middle;
use trunkline_testkit::mutation::{Mutator, panics_of, seed};

use crate::support::{Desk, Ground, Host, PATIENCE, VOICE, experiment, offer, part, prepare};

/// A frame as it comes.
struct Raw(Frame);

impl Message for Raw {
    fn to_frame(&self) -> Result<Frame, WireError> {
        Ok(self.0.clone())
    }
    fn from_frame(_: Frame) -> Result<Raw, WireError> {
        Err(WireError::Empty)
    }
}

#[test]
fn damaged_messages_of_a_controller_end_its_connection_and_not_the_agent() {
    let panics = panics_of(&["connection", "part", "stream"]);
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let (studio, other) =
        (ground.controller("studio", &[&near, &far]), ground.controller("other", &[&near, &far]));
    let mut running = studio.connect(&near);
    let endpoint = studio.connect(&far).offer(&far, &part(0), &near);
    running.prepare(&part(0), &experiment("3 s", VOICE), endpoint.clone());
    running.attach(&part(0), 0);
    running.start(&part(0));

    let messages: Vec<Frame> = [
        prepare(&part(1), &experiment("1 s", VOICE), endpoint),
        ToAgent::Offer(offer(&part(2), &far)),
        ToAgent::Discard { part: part(0) },
        ToAgent::Facts,
    ]
    .iter()
    .map(|message| message.to_frame().unwrap())
    .collect();
    let mut mutator = Mutator::new(seed());
    let mut understood = 0;
    for round in 0..120 {
        let mut line = other.connect(&near);
        let mut frame = messages[round % messages.len()].clone();
        for _ in 0..=mutator.below(3) {
            mutator.damage(&mut frame.body);
        }
        if mutator.below(10) == 0 {
            frame.tag = mutator.below(256) as u8;
        }
        line.say_raw(&Raw(frame));
        // The agent may have closed already.
        if line.try_say_raw(&Raw(messages[3].clone())).is_err() {
            continue;
        }
        while let Some(answer) = line.next_within(PATIENCE) {
            if matches!(answer, FromAgent::Facts(_)) {
                understood += 1;
                break;
            }
        }
    }
    assert!(understood > 5, "{understood} connections went on");
    let finished = running.hear();
    assert!(matches!(finished, FromAgent::Finished(_)), "{finished:?}");
    assert_eq!(panics(), 0, "with {} the same happens", seed());
}

/// Transports, and whether they detect every change (`Some`), up to what a checksum of 16 bits lets through by chance, of the
/// packets of one test; `None` if they carry bytes as they come.
const TRANSPORTS: [(&str, Option<usize>); 16] = [
    ("\"udp\"", None),
    ("\"tcp\"", None),
    ("\"rtp\"", None),
    // In UDP, its checksum is UDP's (RFC 6773), which the path makes right.
    ("{ kind = \"dccp\", encapsulation = \"udp\" }", None),
    ("{ kind = \"dccp\", encapsulation = \"udp\", congestion-control = \"ccid-3\" }", None),
    ("{ kind = \"dccp\", encapsulation = \"udp\", data-checksum = true }", Some(0)),
    ("{ kind = \"sctp\", encapsulation = \"udp\" }", Some(0)),
    ("{ kind = \"sctp\", encapsulation = \"udp\", style = \"one-to-many\" }", Some(0)),
    (
        "{ kind = \"sctp\", encapsulation = \"udp\", ordered = false, streams = 4, retransmissions = 0 }",
        Some(0),
    ),
    ("{ kind = \"xtp\", encapsulation = \"udp\" }", Some(2)),
    ("{ kind = \"xtp\", encapsulation = \"udp\", error-control = \"none\" }", Some(2)),
    ("{ kind = \"xtp\", encapsulation = \"udp\", service = \"datagram\" }", Some(2)),
    ("\"quic\"", Some(0)),
    ("{ kind = \"quic\", mode = \"streams\" }", Some(0)),
    ("{ kind = \"quic\", mode = \"datagrams\" }", Some(0)),
    ("\"urp\"", Some(0)),
];

/// Speech that is kept, and speech that comes back.
fn speech(transport: &str) -> String {
    let flow = |name: &str, source: &str, keys: &str| {
        format!(
            "[flow.{name}]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\n{keys}\n\
             source = {{ kind = \"voice\", samples = 80{source} }}\n"
        )
    };
    let hosts = "[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\nrate = \"1 Gbit/s\"\n";
    let flows = [
        flow("there", ", file = \"speech.wav\"", "audio = true"),
        flow("back", "", "reflect = true\nchannels = 3"),
    ];
    format!("name = \"test\"\nduration = \"1 s\"\ndrain = \"300 ms\"\n{hosts}{}", flows.concat())
}

/// The file that the experiment names.
fn files() -> BTreeMap<String, Vec<u8>> {
    let speech = include_bytes!("../../../../examples/speech.wav");
    BTreeMap::from([("speech.wav".to_owned(), speech.to_vec())])
}

/// The content of messages, by their numbers.
type Content = Vec<(u32, Vec<u8>)>;

/// A controller's data of a part.
struct Kept<'m> {
    meter: Meter<'m>,
    content: Content,
    received: usize,
}

impl Recorder for Kept<'_> {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        self.received += usize::from(matches!(what, Observation::Received { .. }));
        self.meter.record(at, flow, what);
    }
    fn payload(&mut self, _: FlowId, _: u16, sequence: u32, payload: &[u8]) {
        self.content.push((sequence, payload.to_vec()));
    }
}

/// Measures once; `None` if the path has prevented that. The number of messages that have arrived, and the content of those
/// whose content is kept.
fn measure(
    desk: &Desk,
    [near, far]: [&Host; 2],
    by: &str,
    number: u32,
    text: &str,
) -> Option<(usize, Content)> {
    let mut line = desk.connect(near);
    let endpoint = desk.connect(far).offer(far, &part(number), near);
    let endpoint = FarEndpoint { address: by.to_owned(), ..endpoint };
    let ToAgent::Prepare(mut message) = prepare(&part(number), text, endpoint) else { unreachable!() };
    (message.flows, message.files) = (vec![0, 1], files());
    line.say(ToAgent::Prepare(message));
    let FromAgent::Prepared { .. } = line.hear() else { return None };
    line.attach(&part(number), 0);
    line.start(&part(number));
    let outcome: DriverOutcome = match line.hear() {
        FromAgent::Finished(finished) => serde_json::from_str(&finished.outcome).unwrap(),
        _ => return None,
    };
    let experiment = Experiment::parse(text, "test.toml", &NamedFiles::from(files()))
        .unwrap_or_else(|errors| panic!("{errors}"));
    let flows: Vec<FlowMeta> =
        experiment.points.first().scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
    let mut trace = ();
    let mut kept = Kept { meter: Meter::new(&flows, &mut trace), content: Vec::new(), received: 0 };
    for chunk in &line.chunks {
        trunkline_live::packed::unpack(&chunk.data, &mut kept).unwrap();
    }
    let Kept { meter, content, received } = kept;
    let summary = meter.finish(outcome);
    let counted: u64 = summary.flows.iter().map(|flow| flow.counts.received).sum();
    assert!(counted > 0 && counted <= 4 * 100, "{counted} of 400 count as received");
    Some((received, content))
}

#[test]
fn a_path_that_changes_packets_between_agents_ends_neither_and_no_change_is_stored() {
    let panics = panics_of(&[
        "",
        "connection",
        "part",
        "stream",
        "hear-far-end",
        "ask-far-end",
        "udp-send",
        "udp-receive",
        "tcp-send",
        "tcp-receive",
        "engines",
        "far-udp",
        "far-tcp",
        "far-engine",
    ]);
    let ground = Ground::new();
    let far_ip = Ipv4Addr::new(127, 0, 0, 41);
    let (near, far) = (ground.agent("near", "127.0.0.40", ""), ground.agent("far", &far_ip.to_string(), ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let agents = [&near, &far];
    // What nobody changes.
    let (_, content) = measure(&desk, agents, &far.address, 0, &speech("\"tcp\"")).unwrap();
    let sent: BTreeMap<u32, Vec<u8>> = content.into_iter().collect();
    assert_eq!(sent.len(), 100);

    let Ok(SocketAddr::V4(address)) = far.address.parse() else { unreachable!() };
    let middle = Middle::to_agent(address, [127, 0, 0, 42].into(), 10, seed()).unwrap();
    let by = middle.address().to_string();
    let one = |number: u32, transport: &str, allowed: Option<usize>| {
        let (began, text) = (Instant::now(), speech(transport));
        let mut tries = (0..10).map(|again| number + 100 * again);
        let (received, content) =
            tries.find_map(|number| measure(&desk, agents, &by, number, &text)).unwrap();
        let is_changed = |(sequence, bytes): &&(u32, Vec<u8>)| sent.get(sequence) != Some(bytes);
        let changed = content.iter().filter(is_changed).count();
        println!(
            "{transport}: {received} of 400 arrived, {changed} of {} changed, {:?}",
            content.len(),
            began.elapsed()
        );
        assert!(
            allowed.is_none_or(|allowed| changed <= allowed),
            "{changed} changed messages were delivered"
        );
    };
    // As many at once as may knock from one address.
    for (round, some) in (0..).zip(TRANSPORTS.chunks(4)) {
        let one = &one;
        std::thread::scope(|scope| {
            let all = some.iter().zip(4 * round + 1..).map(|(&(transport, allowed), number)| {
                (transport, scope.spawn(move || one(number, transport, allowed)))
            });
            for (transport, thread) in all.collect::<Vec<_>>() {
                assert!(thread.join().is_ok(), "{transport}, with seed {}", seed());
            }
        });
    }
    println!("{} packets were changed on the way", middle.changed());
    assert!(middle.changed() > 200);
    drop(middle);
    measure(&desk, agents, &far.address, 99, &speech("\"udp\"")).unwrap();
    assert_eq!(panics(), 0, "with seed {} the same happens", seed());
}
