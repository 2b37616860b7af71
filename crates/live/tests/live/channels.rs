//! Sessions over a connection to a far end with a clock of its own, begun by somebody outside.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use trunkline_core::{Bytes, Duration, FlowId, Rate, Seed, Time};
use trunkline_experiment::{Progress, Scenario, Supervisor};
use trunkline_live::far_end::serve_far;
use trunkline_live::part::{FarLimits, Gate, NearPart, only};
use trunkline_live::{Ceiling, Channel, FarEnd, HELD_THERE, Limited, LiveError, LiveOptions, run_near};
use trunkline_metrics::{DriverOutcome, Observation, Recorder};
use trunkline_peer::PeerError;
use trunkline_peer::clock::TimeReply;
use trunkline_peer::frames::{FrameSource, PipeReader, PipeWriter};
use trunkline_peer::wire::{Frame, Message as _};
use trunkline_testkit::real_time::in_real_time;

use crate::support::{GoOn, Memory, scenario, scenario_with};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const FLOWS: &str = "[flow.there]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                     source = { kind = \"voice\", samples = 80 }\n\
                     [flow.back]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nreflect = true\n\
                     source = { kind = \"voice\", samples = 80 }\n\
                     [flow.stream]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\n\
                     source = { kind = \"bulk\", message = \"1 KB\", interval = \"10 ms\" }\n\
                     [flow.rate]\nfrom = \"a\"\nto = \"b\"\n\
                     transport = { kind = \"dccp\", encapsulation = \"udp\" }\n\
                     source = { kind = \"voice\", samples = 80 }\nreflect = true\n";

/// Lets a part begin at once, or not at all; remembers what it is told.
#[derive(Default)]
struct Open {
    refuses: bool,
    ends_sending: AtomicBool,
    ready: AtomicU32,
    over: AtomicU32,
}

impl Gate for Open {
    fn ready(&self) {
        self.ready.fetch_add(1, Ordering::Relaxed);
    }
    fn begin(&self) -> Option<u64> {
        (!self.refuses).then(|| trunkline_io::clock::raw_now() + 50_000_000)
    }
    fn sources_over(&self) {
        self.over.fetch_add(1, Ordering::Relaxed);
    }
    fn end_sending(&self) -> bool {
        self.ends_sending.load(Ordering::Relaxed)
    }
}

/// A connection to a far end that serves one session here.
fn far_end(members: u32) -> (TcpStream, JoinHandle<Result<(), LiveError>>) {
    far_end_that_sends(members, None, Vec::new())
}

/// The same, which sends back no more than this.
fn far_end_that_sends(
    members: u32,
    rate: Option<Rate>,
    ceilings: Vec<Arc<Ceiling>>,
) -> (TcpStream, JoinHandle<Result<(), LiveError>>) {
    let listener = TcpListener::bind((LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, peer) = listener.accept().unwrap();
    for end in [&near, &far] {
        end.set_nodelay(true).unwrap();
    }
    let allowed =
        FarLimits { peer: peer.ip(), address: LOCALHOST, members, buffers: Bytes(64 << 20), rate, ceilings };
    let (from, to) = frames(far);
    let serve = move || serve_far(from, to, allowed);
    (near, std::thread::spawn(serve))
}

fn frames(end: TcpStream) -> (PipeReader<TcpStream>, PipeWriter<Closing>) {
    (
        PipeReader::new(end.try_clone().unwrap(), "the other end"),
        PipeWriter::new(Closing(end), "the other end"),
    )
}

/// Ends the other side's reading when it is dropped.
struct Closing(TcpStream);

impl Write for Closing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

fn run(
    scenario: &Scenario,
    channel: Channel,
    gate: &Open,
    supervisor: &mut dyn Supervisor,
) -> (Memory, Result<DriverOutcome, LiveError>) {
    let mut memory = Memory::default();
    let options = LiveOptions::new(FarEnd::Channel(channel));
    let part = NearPart { scenario, seed: Seed::new(7, 0), options: &options, gate };
    let result = run_near(part, &mut memory, supervisor);
    (memory, result)
}

fn channel(near: TcpStream) -> Channel {
    let (from, to) = frames(near);
    Channel::new(from, to)
}

#[test]
fn all_arrives_and_one_way_times_have_a_bound() {
    in_real_time(|| {
        let scenario = scenario("500 ms", FLOWS);
        let (near, far) = far_end(8);
        let gate = Open::default();
        let (memory, outcome) = run(&scenario, channel(near), &gate, &mut GoOn);
        let outcome = outcome.unwrap();
        assert!(!outcome.partial);
        assert_eq!(memory.all_arrived(), 200);
        let bounds: Vec<bool> = outcome.flows.iter().map(|flow| flow.clock_error.is_some()).collect();
        assert_eq!(bounds, [true, false, true, false]);
        assert_eq!((gate.ready.into_inner(), gate.over.into_inner()), (1, 0));
        far.join().unwrap().unwrap();
    });
}

/// Remembers when the first message of each flow left.
#[derive(Default)]
struct First(BTreeMap<u32, Time>);

impl Recorder for First {
    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        if let Observation::Sent { .. } = what {
            self.0.entry(flow.0).or_insert(at);
        }
    }
}

#[test]
fn nothing_leaves_before_the_start() {
    let source = "source = { kind = \"bulk\", message = \"1 KB\", interval = \"10 ms\" }";
    let flows: String = ["\"udp\"", "\"tcp\"", "{ kind = \"dccp\", encapsulation = \"udp\" }"]
        .iter()
        .zip(0..)
        .map(|(transport, n)| {
            format!("[flow.f{n}]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\n{source}\n")
        })
        .collect();
    let scenario = scenario("200 ms", &flows);
    let (near, far) = far_end(8);
    let options = LiveOptions::new(FarEnd::Channel(channel(near)));
    let gate = Open::default();
    let part = NearPart { scenario: &scenario, seed: Seed::new(7, 0), options: &options, gate: &gate };
    let mut first = First::default();
    run_near(part, &mut first, &mut GoOn).unwrap();
    assert_eq!(first.0.len(), 3);
    // All are due at zero. A clock that has not begun shows zero, one that has does not.
    for (flow, at) in first.0 {
        assert!(at > Time::ZERO, "flow {flow}");
    }
    far.join().unwrap().unwrap();
}

#[test]
fn the_end_of_the_sources_is_told_outward_and_comes_inward() {
    let flows = "[flow.volume]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\n\
                 source = { kind = \"bulk\", message = \"1 KB\", bytes = \"20 KB\" }\n\
                 [flow.beside]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                 source = { kind = \"voice\", samples = 80 }\n";
    let scenario = scenario_with("until = \"volume\"\n", "60 s", flows);
    let (near, far) = far_end(8);
    let gate = Open::default();
    let (_, outcome) = run(&only(&scenario, &[0]), channel(near), &gate, &mut GoOn);
    assert!(outcome.unwrap().duration < Duration::from_secs(60));
    assert_eq!(gate.over.into_inner(), 1);
    far.join().unwrap().unwrap();

    let (near, far) = far_end(8);
    let gate = Open { ends_sending: AtomicBool::new(true), ..Open::default() };
    let part = only(&scenario, &[1]);
    assert_eq!(part.until, None);
    let (_, outcome) = run(&part, channel(near), &gate, &mut GoOn);
    let outcome = outcome.unwrap();
    assert!(!outcome.partial && outcome.duration < Duration::from_secs(60));
    far.join().unwrap().unwrap();
}

#[test]
fn a_part_that_may_not_begin_does_not() {
    let (near, far) = far_end(8);
    let gate = Open { refuses: true, ..Open::default() };
    let (memory, outcome) = run(&scenario("500 ms", FLOWS), channel(near), &gate, &mut GoOn);
    assert!(matches!(outcome, Err(LiveError::Abandoned)), "{outcome:?}");
    assert!(memory.messages.is_empty());
    far.join().unwrap().unwrap();
}

#[test]
fn a_far_end_serves_no_more_than_it_allows() {
    let (near, far) = far_end(3);
    let (_, outcome) = run(&scenario("500 ms", FLOWS), channel(near), &Open::default(), &mut GoOn);
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("4 simultaneous conversations are more than the 3"), "{error}");
    assert!(far.join().unwrap().is_err());
}

#[test]
fn larger_buffers_than_were_offered_are_refused() {
    let quic = "[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = { kind = \"quic\", window = \"1 GiB\" }\n\
                source = { kind = \"voice\", samples = 80 }\n";
    let (near, far) = far_end(8);
    let (_, outcome) = run(&scenario("500 ms", quic), channel(near), &Open::default(), &mut GoOn);
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("may hold 2 GiB in buffers, more than the 64 MiB"), "{error}");
    assert!(far.join().unwrap().is_err());
}

/// Cuts a connection once so much has passed.
struct Cut(TcpStream, Duration);

impl Supervisor for Cut {
    fn progress(&mut self, done: Duration) -> Progress {
        if done >= self.1 {
            let _ = self.0.shutdown(Shutdown::Both);
        }
        Progress::Continue
    }
}

#[test]
fn a_connection_that_is_cut_keeps_what_was_measured() {
    in_real_time(|| {
        let (near, far) = far_end(8);
        let mut cut = Cut(near.try_clone().unwrap(), Duration::from_millis(400));
        let (memory, outcome) = run(&scenario("60 s", FLOWS), channel(near), &Open::default(), &mut cut);
        let error = outcome.unwrap_err();
        let outcome = error.outcome().unwrap_or_else(|| panic!("{error}"));
        assert!(outcome.partial && outcome.flows[0].clock_error.is_some(), "{outcome:?}");
        let received = memory.of_flow(0).iter().filter(|seen| seen.received == 1).count();
        assert!(received > 10, "{received}");
        // It may find that nobody listens to its last report.
        let _ = far.join().unwrap();
    });
}

/// Sets the far end's clock, as it shows in what is read, by this many nanoseconds once so many exchanges have passed.
struct Stepping {
    from: PipeReader<TcpStream>,
    exchanges: u32,
    step: Duration,
}

impl FrameSource for Stepping {
    fn next_frame(&mut self) -> Result<Option<Frame>, PeerError> {
        let Some(frame) = self.from.next_frame()? else { return Ok(None) };
        let Ok(mut reply) = TimeReply::from_frame(frame.clone()) else { return Ok(Some(frame)) };
        self.exchanges += 1;
        if self.exchanges > 40 {
            (reply.received, reply.replied) = (reply.received + self.step, reply.replied + self.step);
        }
        Ok(Some(reply.to_frame().unwrap()))
    }

    fn who(&self) -> &str {
        self.from.who()
    }
}

#[test]
fn a_clock_that_jumps_ends_the_part_and_says_by_how_much() {
    let (near, far) = far_end(8);
    let step = Duration::from_secs(3_600);
    let (from, to) = frames(near);
    let channel = Channel::new(Stepping { from, exchanges: 0, step }, to);
    let (memory, outcome) = run(&scenario("60 s", FLOWS), channel, &Open::default(), &mut GoOn);
    let error = outcome.unwrap_err();
    let LiveError::ClockJumped { by, outcome } = &error else { panic!("{error}") };
    assert!(by.as_nanos().abs_diff(step.as_nanos()) < 60_000_000_000, "{by}");
    assert!(outcome.partial && outcome.duration < Duration::from_secs(60));
    assert!(outcome.flows[0].clock_error.is_some());
    assert!(memory.of_flow(0).iter().any(|seen| seen.received == 1));
    let _ = far.join().unwrap();
}

#[test]
fn what_comes_back_keeps_to_what_the_far_ends_owner_allows() {
    in_real_time(|| {
        let flows = "[flow.stream]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\nreflect = true\n\
                     source = { kind = \"bulk\", message = \"4 KB\" }\n\
                     [flow.engine]\nfrom = \"a\"\nto = \"b\"\ntransport = \"quic\"\nreflect = true\n\
                     source = { kind = \"bulk\", message = \"4 KB\" }\n\
                     [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nreflect = true\n\
                     source = { kind = \"voice\", samples = 80 }\n";
        let scenario = scenario("1 s", flows);
        let ceiling = Arc::new(Ceiling::new(Rate::from_bits_per_second(4_000_000)));
        let (near, far) = far_end_that_sends(8, Some(Rate::from_bits_per_second(4_000_000)), vec![ceiling]);
        let mut memory = Memory::default();
        let limited = Limited::new(vec![0, 1], Vec::new());
        let options = LiveOptions { limited, ..LiveOptions::new(FarEnd::Channel(channel(near))) };
        let gate = Open::default();
        let part = NearPart { scenario: &scenario, seed: Seed::new(7, 0), options: &options, gate: &gate };
        let outcome = run_near(part, &mut memory, &mut GoOn).unwrap();
        far.join().unwrap().unwrap();
        assert!(memory.of_flow(2).iter().all(|seen| seen.received == 1), "voice is within its own rate");
        let back = |flow| memory.of_flow(flow).iter().filter(|seen| seen.received == 1).count();
        // A second, and the drain time of two, are 1.5 MB.
        let (stream, engine) = (back(0), back(1));
        assert!(stream > 10 && engine > 10 && (stream + engine) * 4100 < 1_600_000, "{stream} and {engine}");
        assert!(outcome.flows[0].transport_counters[HELD_THERE] > 0);
    });
}

#[test]
fn a_near_end_that_brings_more_than_was_said_gets_no_more_back() {
    in_real_time(|| {
        let flows = "[flow.much]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nreflect = true\n\
                     source = { kind = \"load\", message = \"1 KB\", interval = \"1 ms\" }\n";
        let scenario = scenario("1 s", flows);
        let (near, far) = far_end_that_sends(8, Some(Rate::from_bits_per_second(100_000)), Vec::new());
        let gate = Open::default();
        let (memory, outcome) = run(&scenario, channel(near), &gate, &mut GoOn);
        far.join().unwrap().unwrap();
        let counters = &outcome.unwrap().flows[0].transport_counters;
        // 256 KiB, and two seconds and the one that is measured of 100 kbit/s.
        let back = memory.of_flow(0).iter().filter(|seen| seen.received == 1).count();
        assert!(back < 310 && counters["not-reflected"] > 300, "{back} {counters:?}");
    });
}
