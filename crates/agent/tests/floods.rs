//! Many connections: strangers keep nobody out who is known, and one controller no other. A program of its own, because its tests
//! in real time run while no other program does.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
#![allow(clippy::print_stderr, reason = "the agent logs to standard error")]

#[allow(dead_code, reason = "the other program uses all of it")]
#[path = "agent/support.rs"]
mod support;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration as StdDuration, Instant};

use socket2::{Domain, Socket, Type};
use trunkline_control::message::Purpose;
use trunkline_control::{Identity, PeerError, RefusalKind, ToAgent, connect};
use trunkline_testkit::real_time::in_real_time;

use support::{Desk, Ground, Host, PATIENCE, VOICE, experiment, part};

/// Strangers, each at an address of its own, who keep many connections open and say nothing. What is cut is opened again.
struct Flood {
    is_over: Arc<AtomicBool>,
    open: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

impl Flood {
    /// So many connections from so many addresses; returns when each has been tried once.
    fn start(to: &str, connections: usize, addresses: u8) -> Flood {
        let to: SocketAddr = to.parse().unwrap();
        let (is_over, open) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let all_tried = Arc::new(Barrier::new(usize::from(addresses) + 1));
        let each = connections / usize::from(addresses);
        let one = |number: u8| {
            let (is_over, open, all_tried) =
                (Arc::clone(&is_over), Arc::clone(&open), Arc::clone(&all_tried));
            std::thread::spawn(move || {
                let from = IpAddr::from([127, 0, 66, number]);
                let mut held: Vec<TcpStream> = (0..each).filter_map(|_| silent(from, to)).collect();
                all_tried.wait();
                while !is_over.load(Ordering::Relaxed) {
                    held.retain(is_open);
                    open.fetch_add(held.len(), Ordering::Relaxed);
                    std::thread::sleep(StdDuration::from_millis(50));
                    open.fetch_sub(held.len(), Ordering::Relaxed);
                    // A thousand a second of all together.
                    let lacks = held.len() < each;
                    held.extend(lacks.then(|| silent(from, to)).flatten());
                }
            })
        };
        let threads = (1..=addresses).map(one).collect();
        all_tried.wait();
        Flood { is_over, open, threads }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn silent(from: IpAddr, to: SocketAddr) -> Option<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).ok()?;
    socket.bind(&SocketAddr::new(from, 0).into()).ok()?;
    socket.connect_timeout(&to.into(), StdDuration::from_secs(1)).ok()?;
    socket.set_nonblocking(true).ok()?;
    Some(socket.into())
}

fn is_open(stream: &TcpStream) -> bool {
    match stream.peek(&mut [0]) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

/// Connects and is welcomed; says how long that took.
fn welcomed(agent: &Host, identity: &Identity) -> Result<StdDuration, PeerError> {
    let began = Instant::now();
    let mut connection = connect(&agent.address, identity, &agent.fingerprint, PATIENCE)?;
    connection.introduce(Purpose::Control, PATIENCE)?;
    Ok(began.elapsed())
}

#[test]
fn five_thousand_silent_connections_keep_no_controller_out() {
    trunkline_agent::raise_open_files().unwrap();
    in_real_time(|| {
        let ground = Ground::new();
        let agent = ground.agent("ottawa", "127.0.0.1", "");
        let desk = ground.controller("studio", &[&agent]);
        let flood = Flood::start(&agent.address, 5_000, 50);
        let owner = Identity::open(&agent.state.join("identity")).unwrap();
        for attempt in 0..20 {
            for (who, identity) in [("the controller", &desk.identity), ("the owner", &owner)] {
                let took = welcomed(&agent, identity)
                    .unwrap_or_else(|error| panic!("{who} is kept out at attempt {attempt}: {error}"));
                assert!(took < StdDuration::from_secs(1), "{who} was let in after {took:?}");
            }
            std::thread::sleep(StdDuration::from_millis(100));
        }
        assert!(flood.open.load(Ordering::Relaxed) < 1_000, "strangers keep few connections");
    });
}

#[test]
fn strangers_from_the_same_address_do_not_keep_a_controller_out() {
    in_real_time(|| {
        let ground = Ground::new();
        let agent = ground.agent("ottawa", "127.0.0.1", "");
        let desk = ground.controller("studio", &[&agent]);
        let to = agent.address.parse().unwrap();
        let _silent: Vec<_> = (0..100).filter_map(|_| silent([127, 0, 0, 1].into(), to)).collect();
        let took = welcomed(&agent, &desk.identity).unwrap();
        assert!(took < StdDuration::from_secs(1), "after {took:?}");
    });
}

#[test]
fn a_flood_of_the_far_end_ends_no_part_and_keeps_no_part_from_beginning() {
    trunkline_agent::raise_open_files().unwrap();
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", "127.0.0.3", ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let _flood = Flood::start(&far.address, 1_000, 20);
    let mut line = desk.connect(&near);
    let endpoint = desk.connect(&far).offer(&far, &part(0), &near);
    line.prepare(&part(0), &experiment("1 s", VOICE), endpoint);
    line.attach(&part(0), 0);
    line.start(&part(0));
    assert!(matches!(line.hear(), trunkline_control::FromAgent::Finished(_)));
}

#[test]
fn one_controller_cannot_take_all_connections() {
    let ground = Ground::new();
    let agent = ground.agent("ottawa", "127.0.0.1", "");
    let (greedy, desk) = (ground.controller("greedy", &[&agent]), ground.controller("studio", &[&agent]));
    let mut lines = Vec::new();
    let refusal = loop {
        match greedy.try_connect(&agent.address, &agent.fingerprint) {
            Ok(line) => lines.push(line),
            Err(PeerError::Refused { refusal, .. }) => break refusal,
            Err(error) => panic!("{error}"),
        }
        assert!(lines.len() < 100, "there is no limit");
    };
    assert_eq!(refusal.kind, RefusalKind::Limit);
    assert!(
        refusal.why.contains("greedy already has the maximum of 32 connections to ottawa"),
        "{}",
        refusal.why
    );
    // Nobody else notices, and those that there are work on.
    lines[0].say(ToAgent::Facts);
    lines[0].hear();
    let mut other: Vec<_> = (0..5).map(|_| desk.connect(&agent)).collect();
    other[4].say(ToAgent::Facts);
    other[4].hear();
    let owner = Desk { identity: Identity::open(&agent.state.join("identity")).unwrap() };
    owner.connect(&agent);
    // Who leaves makes room.
    lines.pop();
    let again = (0..100).find_map(|_| {
        std::thread::sleep(StdDuration::from_millis(20));
        greedy.try_connect(&agent.address, &agent.fingerprint).ok()
    });
    assert!(again.is_some());
}
