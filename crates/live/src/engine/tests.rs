use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use trunkline_core::{Address, Bytes, Duration, Ecn, FlowId, Seed, Time};
use trunkline_experiment::{Experiment, Scenario};
use trunkline_flows::{Carrier, FlowSpec, ListenerSpec, Talker, TalkerSpec};
use trunkline_io::{MonotonicClock, clock};
use trunkline_metrics::Observation;
use trunkline_transport::framing::{Cover, Header, Key};
use trunkline_transport::{
    Close, CloseReason, Conversation, Endpoint, Event, Features, Message, Received, SendError, Transmit,
    features,
};

use super::*;
use crate::events::{Input, Pool};
use crate::near::engine::{EngineFlow, Speaker, converse};
use crate::near::{Common, Stage};
use crate::options::Receive;
use crate::start::Start;

const KEY: Key = Key(7);
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);

/// Two sockets on the loopback interface, the first connected to the second.
fn sockets() -> (UdpSocket, UdpSocket) {
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let far = open(Carrier::Udp, any, None, 1 << 16).unwrap();
    (open(Carrier::Udp, any, Some(far.local_addr().unwrap()), 1 << 16).unwrap(), far)
}

fn scenario(transport: &str) -> Arc<Scenario> {
    let text = format!(
        "name = \"test\"\nduration = \"1 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.wire]\n\
         between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
         transport = {transport}\nsource = {{ kind = \"voice\", samples = 80 }}\n"
    );
    let experiment =
        Experiment::parse(&text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    experiment.points.first().scenario.clone()
}

fn spec(transport: &str) -> FlowSpec {
    FlowSpec::of(&scenario(transport), 0).over_sockets([Ipv4Addr::LOCALHOST.into(); 2]).unwrap()
}

fn near<'s>(transport: &str, socket: &'s UdpSocket) -> Engines<'s> {
    let pair = spec(transport).pair(0, Seed::new(1, 0)).unwrap();
    let way = (socket, Route::Fixed, Intake::Whole);
    let engine =
        Engine::new(pair.near.endpoint, pair.far.address, way, (KEY, 0..1), Loss::default()).unwrap();
    Engines::new(vec![engine], core::slice::from_ref(socket), Receive::Blocking)
}

/// Hears the host with this address only.
fn far<'s>(transport: &str, socket: &'s UdpSocket, host: &str) -> Engines<'s> {
    let host: IpAddr = host.parse().unwrap();
    let pair = spec(transport).pair(0, Seed::new(1, 0)).unwrap();
    let way = (socket, Route::Follows(host, None), Intake::Whole);
    let engine =
        Engine::new(pair.far.endpoint, pair.near.address, way, (KEY, 0..1), Loss::default()).unwrap();
    Engines::new(vec![engine], core::slice::from_ref(socket), Receive::Blocking)
}

struct Nobody;

impl Application for Nobody {
    fn reads(&self, _: usize) -> bool {
        true
    }
    fn message(&mut self, _: usize, _: Header, _: &mut [u8]) {}
    fn unmatched(&mut self, _: usize, _: usize) {}
    fn pour(&mut self, _: usize, _: &mut Line<'_>) {}
}

/// Turns the engines in a thread of their own while `work` is done.
fn beside<R>(mut engines: Engines<'_>, work: impl FnOnce() -> R) -> (R, Counters) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let turning = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                engines.turn(clock::raw_now() + 1_000_000, &mut Nobody);
            }
            // What has arrived until then still counts.
            engines.turn(0, &mut Nobody);
            engines.close()
        });
        let result = work();
        over.store(true, Ordering::Relaxed);
        (result, turning.join().unwrap())
    })
}

#[test]
fn where_nobody_listens_nobody_answers() {
    // The kernel answers with ICMP, which is an error of the socket at every second packet.
    let (near_socket, far_socket) = sockets();
    drop(far_socket);
    let mut engines = near("{ kind = \"urp\", timeout = \"1 ms\" }", &near_socket);
    let refused = engines.connect(SHORT).err().unwrap();
    assert!(refused.to == near_socket.peer_addr().ok() && refused.reason.is_none());
}

#[test]
fn strangers_are_not_heard() {
    let (near_socket, far_socket) = sockets();
    let far = far("\"urp\"", &far_socket, "127.0.0.2");
    let (connected, counters) = beside(far, || near("\"urp\"", &near_socket).connect(SHORT).is_ok());
    assert!(!connected);
    assert!(counters["packets-of-strangers"] > 0, "{counters:?}");
}

#[test]
fn garbage_keeps_nobody_from_connecting() {
    for transport in ["\"urp\"", "{ kind = \"dccp\", encapsulation = \"udp\" }"] {
        let (near_socket, far_socket) = sockets();
        let other = open(
            Carrier::Udp,
            "127.0.0.1:0".parse().unwrap(),
            Some(far_socket.local_addr().unwrap()),
            1 << 16,
        )
        .unwrap();
        for length in 0..50u8 {
            let garbage: Vec<u8> = (0..length).map(|at| at.wrapping_mul(length)).collect();
            other.send(&garbage).unwrap();
        }
        let far = far(transport, &far_socket, "127.0.0.1");
        let (connected, _) = beside(far, || near(transport, &near_socket).connect(LONG).is_ok());
        assert!(connected, "{transport}");
    }
}

#[test]
fn a_peer_that_closes_is_noticed_once() {
    for transport in ["\"urp\"", "{ kind = \"dccp\", encapsulation = \"udp\" }"] {
        let (near_socket, far_socket) = sockets();
        let mut near = near(transport, &near_socket);
        let far = far(transport, &far_socket, "127.0.0.1");
        // Its thread ends with closing.
        let (connected, _) = beside(far, || near.connect(LONG).is_ok());
        assert!(connected && near.take_ended().is_empty());
        let deadline = clock::raw_now() + LONG.as_nanos();
        let mut ended = Vec::new();
        while ended.is_empty() && clock::raw_now() < deadline {
            near.turn(deadline, &mut Nobody);
            ended = near.take_ended();
        }
        assert_eq!(ended, [CloseReason::Peer], "{transport}");
        near.turn(0, &mut Nobody);
        assert!(near.take_ended().is_empty());
    }
}

#[test]
fn a_peer_that_falls_silent_is_given_up_and_named() {
    struct Speaks;
    impl Application for Speaks {
        fn reads(&self, _: usize) -> bool {
            true
        }
        fn message(&mut self, _: usize, _: Header, _: &mut [u8]) {}
        fn unmatched(&mut self, _: usize, _: usize) {}
        fn pour(&mut self, _: usize, line: &mut Line<'_>) {
            // Whether it is taken or not: nobody will hear it.
            let _ = line.send(Time::ZERO, Message::new(b"is anybody there?"));
        }
    }
    let transport = "{ kind = \"xtp\", encapsulation = \"udp\", wait = \"10 ms\", patience = \"100 ms\" }";
    let (near_socket, far_socket) = sockets();
    let (mut near, mut far) = (near(transport, &near_socket), far(transport, &far_socket, "127.0.0.1"));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let turning = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                far.turn(clock::raw_now() + 1_000_000, &mut Nobody);
            }
        });
        let connected = near.connect(LONG).is_ok();
        over.store(true, Ordering::Relaxed);
        turning.join().unwrap();
        assert!(connected);
    });
    near.pour(0, &mut Speaks);
    let deadline = clock::raw_now() + LONG.as_nanos();
    let mut ended = Vec::new();
    while ended.is_empty() && clock::raw_now() < deadline {
        near.turn(deadline, &mut Speaks);
        ended = near.take_ended();
    }
    assert_eq!(ended, [CloseReason::TimedOut(Duration::from_millis(100))]);
}

#[test]
fn what_cannot_be_sent_any_more_is_refused_and_the_reason_counted() {
    for members in [1, 3] {
        refuse_all(members);
    }
}

/// So many members of a flow have a conversation that has ended.
fn refuse_all(members: u32) {
    let transport = "{ kind = \"dccp\", encapsulation = \"udp\" }";
    let (near_socket, far_socket) = sockets();
    let mut engines = near(transport, &near_socket);
    let far = far(transport, &far_socket, "127.0.0.1");
    // The far end closes when its thread ends, and with it both directions.
    let (connected, _) = beside(far, || engines.connect(LONG).is_ok());
    assert!(connected);
    let speaker = |member| {
        let source = scenario(transport).build_source(0, 0, Seed::new(1, 0)).unwrap();
        Speaker::new(Talker::new(source, FlowId(member), 1), false, None)
    };
    let flow = EngineFlow {
        engines,
        speakers: (0..members).map(speaker).collect(),
        is_shared: members > 1,
        spec: TalkerSpec {
            key: KEY,
            cover: Some(Cover::default()),
            send_timeout: None,
            is_saturating: false,
        },
        listens: ListenerSpec { members, ids: members, ..ListenerSpec::of(&scenario(transport).flows[0]) },
        sender: 1,
        spin: Duration::ZERO,
    };
    let stage = Stage::new(&Start::of(1, None).awaited);
    let (inbox, observed) = sync_channel(1024);
    let clock = MonotonicClock::starting_now();
    let stop = Time::ZERO + LONG;
    let common = Common { clock, stop, key: KEY, stage: &stage, inbox, pool: Pool::default() };
    let counters = std::thread::scope(|scope| {
        let conversing = scope.spawn(|| converse(flow, &common));
        let mut refused = std::collections::BTreeSet::new();
        while refused.len() < members as usize {
            if let Ok(Input::Departures { batch, .. }) = observed.recv_timeout(LONG.to_std()) {
                let events = batch.events.iter();
                let refusals = events.filter(|event| matches!(event.what, Observation::Refused { .. }));
                refused.extend(refusals.map(|event| event.flow));
            } else {
                break;
            }
        }
        stage.end();
        let counters = conversing.join().unwrap();
        assert_eq!(refused.len(), members as usize);
        counters
    });
    assert_eq!(counters["connections-broken"], 1, "{counters:?}");
    assert_eq!(counters["connections-broken-closed-by-peer"], 1, "{counters:?}");
}

/// Sends numbered packets, each not before a time of its own.
struct Paced(Vec<(u8, Time)>);

impl Conversation for Paced {
    fn send(&mut self, _: Time, _: Message<'_>) -> Result<(), SendError> {
        Err(SendError::Full)
    }
    fn receive(&mut self, _: &mut Vec<u8>) -> Option<Received> {
        None
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn close(&mut self, _: Time, _: Close) {}
    fn features(&self) -> &'static Features {
        &features::UDP
    }
}

impl Endpoint for Paced {
    fn handle_packet(&mut self, _: Time, _: Address, _: Ecn, _: &[u8]) {}
    fn handle_timeout(&mut self, _: Time) {}
    fn poll_transmit(&mut self, _: Time, into: &mut Vec<u8>) -> Option<Transmit> {
        let (number, earliest) = self.0.pop()?;
        into.clear();
        into.push(number);
        Some(Transmit { to: Address::default(), ecn: Ecn::Ect0, size: Bytes(29), earliest })
    }
    fn next_timeout(&self) -> Option<Time> {
        None
    }
    fn counters(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

#[test]
fn paced_packets_leave_in_their_order_and_not_before_their_time() {
    let (near, far) = sockets();
    let at = |millis| Time::ZERO + Duration::from_millis(millis);
    let packets = vec![(4, Time::ZERO), (3, at(20)), (2, at(10)), (1, Time::ZERO)];
    let route = (&near, Route::Fixed, Intake::Whole);
    let mut engine =
        Engine::new(Box::new(Paced(packets)), Address::default(), route, (KEY, 0..1), Loss::default())
            .unwrap();
    let arrived = || {
        let mut byte = [0];
        let mut all = Vec::new();
        while far.recv(&mut byte).is_ok() {
            all.push(byte[0]);
        }
        all
    };
    // Datagrams on the loopback interface are there when the call that sends them returns.
    for (now, expected, wake) in [
        (at(1), vec![1], at(10)),
        (at(9), vec![], at(10)),
        (at(10), vec![2], at(20)),
        (at(25), vec![3, 4], Time::MAX),
    ] {
        engine.carried.transmit(now, &near);
        assert_eq!((arrived(), engine.carried.wake()), (expected, wake), "at {now:?}");
    }
}

#[test]
fn a_lossy_path_loses_every_so_manieth_packet() {
    let (near, far) = sockets();
    let packets = (1..=9).rev().map(|number| (number, Time::ZERO)).collect();
    let loss = Loss::every(3);
    let mut engine = Engine::new(
        Box::new(Paced(packets)),
        Address::default(),
        (&near, Route::Fixed, Intake::Whole),
        (KEY, 0..1),
        loss,
    )
    .unwrap();
    engine.carried.transmit(Time::ZERO, &near);
    let mut byte = [0];
    let arrived: Vec<u8> = core::iter::from_fn(|| far.recv(&mut byte).ok().map(|_| byte[0])).collect();
    assert_eq!(arrived, [1, 2, 4, 5, 7, 8]);
}
