//! Multicast streams: one sender, many receivers, and a network that loses packets for each of them by itself.

use std::collections::BTreeMap;

use proptest::prelude::*;
use trunkline_core::{Address, Duration, Ecn, Seed, Stream, Time};
use trunkline_testkit::cases::cases;
use trunkline_testkit::checked::Checked;
use trunkline_transport::xtp::wire::{Body, Format, Options, Packet};
use trunkline_transport::xtp::{Acknowledge, XtpConfig, XtpGroupConfig, XtpGroupReceiver, XtpGroupSender};
use trunkline_transport::{
    Close, CloseReason, Conversation as _, Endpoint, Event, Membership, Message, SendError,
};

const SENDER: Address = Address { host: 0, port: 40_000 };
const GROUP: Address = Address { host: 999, port: 5_000 };
const LATENCY: Duration = Duration::from_millis(2);
const MS: fn(u64) -> Duration = Duration::from_millis;

fn receiver_address(index: usize) -> Address {
    Address { host: 1 + index as u16, port: 5_000 }
}

/// A sender, receivers, and a network between them.
struct Network {
    sender: Checked<XtpGroupSender>,
    receivers: Vec<Receiver>,
    /// Of the sender.
    events: Vec<Event>,
    now: Time,
    flying: BTreeMap<(Time, u64), Flying>,
    count: u64,
    losses: Stream,
    /// Formats, options and destinations of all that was sent.
    log: Vec<(Address, Format, Options, Address)>,
}

struct Receiver {
    endpoint: Checked<XtpGroupReceiver>,
    loss: f64,
    deaf: bool,
    reads: bool,
    read: Vec<u8>,
    events: Vec<Event>,
}

struct Flying {
    /// `None` is the sender.
    to: Option<usize>,
    from: Address,
    bytes: Vec<u8>,
}

impl Network {
    fn new(config: &XtpGroupConfig, receivers: usize, loss: f64, seed: u64) -> Network {
        let mut network = Network {
            sender: Checked::new(XtpGroupSender::new(SENDER, config, seed).unwrap()),
            receivers: Vec::new(),
            events: Vec::new(),
            now: Time::ZERO,
            flying: BTreeMap::new(),
            count: 0,
            losses: Seed::new(seed, 0).stream("losses"),
            log: Vec::new(),
        };
        for _ in 0..receivers {
            network.add(config, loss, seed);
        }
        network.drain(None);
        network
    }

    fn add(&mut self, config: &XtpGroupConfig, loss: f64, seed: u64) {
        let index = self.receivers.len();
        let endpoint =
            XtpGroupReceiver::new(receiver_address(index), config, seed ^ (index as u64 + 1)).unwrap();
        let endpoint = Checked::new(endpoint);
        self.receivers.push(Receiver {
            endpoint,
            loss,
            deaf: false,
            reads: true,
            read: Vec::new(),
            events: Vec::new(),
        });
        self.drain(Some(index));
    }

    fn send(&mut self, message: &[u8]) -> Result<(), SendError> {
        let result = self.sender.send(self.now, Message::new(message));
        self.drain(None);
        result
    }

    fn close(&mut self, how: Close) {
        self.sender.close(self.now, how);
        self.drain(None);
    }

    fn drain(&mut self, who: Option<usize>) {
        let mut bytes = Vec::new();
        let from = who.map_or(SENDER, receiver_address);
        loop {
            let transmit = match who {
                None => self.sender.poll_transmit(self.now, &mut bytes),
                Some(index) => self.receivers[index].endpoint.poll_transmit(self.now, &mut bytes),
            };
            let Some(transmit) = transmit else { break };
            let packet = Packet::parse(&bytes).unwrap();
            self.log.push((from, packet.body.format(), packet.header.options, transmit.to));
            let everybody = transmit.to == GROUP;
            if (everybody || transmit.to == SENDER) && who.is_some() {
                self.carry(None, from, &bytes);
            }
            for index in 0..self.receivers.len() {
                if (everybody || transmit.to == receiver_address(index)) && who != Some(index) {
                    self.carry(Some(index), from, &bytes);
                }
            }
        }
        match who {
            None => self.events.extend(core::iter::from_fn(|| self.sender.poll_event())),
            Some(index) => {
                let receiver = &mut self.receivers[index];
                while let Some(event) = receiver.endpoint.poll_event() {
                    receiver.events.push(event);
                }
                let now_read = receiver.read.len();
                while receiver.reads && receiver.endpoint.receive(&mut receiver.read).is_some() {}
                if receiver.read.len() > now_read {
                    self.drain(who);
                }
            }
        }
    }

    fn carry(&mut self, to: Option<usize>, from: Address, bytes: &[u8]) {
        let deaf = to.is_some_and(|index| self.receivers[index].deaf);
        let loss = to.map_or(self.receivers.first().map_or(0.0, |receiver| receiver.loss), |index| {
            self.receivers[index].loss
        });
        if self.losses.chance(loss) || deaf {
            return;
        }
        self.count += 1;
        let arrives = self.now + LATENCY + Duration::from_micros(self.losses.below(100));
        self.flying.insert((arrives, self.count), Flying { to, from, bytes: bytes.to_vec() });
    }

    fn step(&mut self, until: Time) -> bool {
        let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
        let timers = self.receivers.iter().enumerate().map(|(n, r)| (r.endpoint.next_timeout(), Some(n)));
        let timer = timers
            .chain([(self.sender.next_timeout(), None)])
            .filter_map(|(at, who)| Some((at?, who)))
            .min_by_key(|&(at, _)| at);
        let next = [arrival, timer.map(|(at, _)| at)].into_iter().flatten().min();
        let Some(at) = next.filter(|&at| at <= until) else { return false };
        self.now = at;
        match timer {
            Some((due, who)) if arrival.is_none_or(|arrival| due < arrival) => {
                match who {
                    None => self.sender.handle_timeout(at),
                    Some(index) => self.receivers[index].endpoint.handle_timeout(at),
                }
                self.drain(who);
            }
            _ => {
                if let Some((_, Flying { to, from, bytes })) = self.flying.pop_first() {
                    match to {
                        None => self.sender.handle_packet(at, from, Ecn::NotCapable, &bytes),
                        Some(index) => {
                            self.receivers[index].endpoint.handle_packet(at, from, Ecn::NotCapable, &bytes);
                        }
                    }
                    self.drain(to);
                }
            }
        }
        true
    }

    fn run(&mut self) {
        let mut steps = 0;
        while self.step(Time::MAX) {
            steps += 1;
            assert!(steps < 5_000_000, "never comes to rest");
        }
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    /// But for those about receivers.
    fn sender_events(&mut self) -> Vec<Event> {
        self.events.retain(|event| !matches!(event, Event::Member(_)));
        core::mem::take(&mut self.events)
    }

    fn sender_counter(&self, name: &str) -> u64 {
        let mut value = None;
        self.sender.counters(&mut |counter, count| {
            if counter == name {
                value = Some(count);
            }
        });
        value.unwrap_or_else(|| panic!("no counter `{name}`"))
    }

    /// Sends all messages as the sender takes them, then closes, and runs until all is at rest.
    fn transfer(&mut self, messages: &[Vec<u8>]) {
        for message in messages {
            loop {
                match self.send(message) {
                    Ok(()) => break,
                    Err(SendError::Full | SendError::Closed(CloseReason::NotConnected)) => {
                        assert!(self.step(Time::MAX), "the sender is never writable again");
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        self.close(Close::Graceful);
        self.run();
    }
}

fn messages(count: usize, size: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| vec![n as u8; size]).collect()
}

fn reliable() -> XtpGroupConfig {
    let config = XtpGroupConfig::reliable(GROUP);
    XtpGroupConfig {
        stream: XtpConfig { patience: Some(Duration::from_secs(60)), ..config.stream },
        ..config
    }
}

#[test]
fn everything_reaches_every_receiver_and_the_sender_knows_it() {
    let config = XtpGroupConfig { quorum: 5, ..reliable() };
    let mut network = Network::new(&config, 5, 0.0, 1);
    let sent = messages(200, 500);
    network.transfer(&sent);
    for receiver in &network.receivers {
        assert!(receiver.read == sent.concat(), "{} bytes", receiver.read.len());
        assert_eq!(receiver.events.first(), Some(&Event::Connected));
        assert_eq!(receiver.events.last(), Some(&Event::Closed(CloseReason::Peer)));
    }
    assert_eq!(network.sender_events(), [Event::Connected, Event::Closed(CloseReason::Local)]);
    assert_eq!(network.sender_counter("receivers-joined"), 5);
    assert_eq!(network.sender_counter("retransmissions"), 0);
    let data =
        network.log.iter().filter(|(_, format, _, to)| *format == Format::Data && *to == GROUP).count();
    assert!(data <= 200, "one transmission for all: {data} packets");
}

#[test]
fn a_repair_goes_to_the_group_and_once() {
    let config = XtpGroupConfig { quorum: 8, ..reliable() };
    let mut network = Network::new(&config, 8, 0.0, 1);
    network.run_for(MS(100));
    for n in 0..10u8 {
        for receiver in &mut network.receivers {
            receiver.deaf = n == 4;
        }
        network.send(&[n; 500]).unwrap();
    }
    network.run_for(MS(300));
    assert_eq!(network.sender_counter("retransmissions"), 1, "all eight missed it");
    let reports =
        network.log.iter().filter(|(_, format, _, to)| *format == Format::ErrorControl && *to == GROUP);
    assert!(reports.count() < 8, "some heard their gap in another's report");
    network.transfer(&[]);
    assert!(network.receivers.iter().all(|receiver| receiver.read == messages(10, 500).concat()));
}

#[test]
fn who_joins_late_gets_everything_from_there_on() {
    let mut network = Network::new(&reliable(), 2, 0.0, 1);
    network.run_for(MS(100));
    for n in 0..20u8 {
        network.send(&[n; 500]).unwrap();
        network.run_for(MS(10));
        if n == 9 {
            network.add(&reliable(), 0.0, 1);
        }
    }
    network.transfer(&[]);
    let sent = messages(20, 500);
    assert!(network.receivers[0].read == sent.concat());
    assert!(network.receivers[2].read == sent[10..].concat(), "{} bytes", network.receivers[2].read.len());
    assert_eq!(network.sender_counter("receivers-joined"), 3);
}

#[test]
fn the_slowest_receiver_holds_the_sender_back() {
    let config = XtpGroupConfig { quorum: 3, ..reliable() };
    let window = 10_000;
    let config = XtpGroupConfig { stream: XtpConfig { receive_buffer: window, ..config.stream }, ..config };
    let mut network = Network::new(&config, 3, 0.0, 1);
    network.run_for(MS(100));
    network.receivers[1].reads = false;
    for n in 0..40u8 {
        network.send(&[n; 500]).unwrap();
    }
    network.run_for(MS(500));
    assert_eq!(network.receivers[0].read.len(), window, "not further than the slowest");
    network.receivers[1].reads = true;
    network.drain(Some(1));
    network.transfer(&[]);
    assert!(network.receivers.iter().all(|receiver| receiver.read == messages(40, 500).concat()));
}

#[test]
fn a_silent_receiver_is_asked_then_dropped_and_the_user_is_told() {
    let config = XtpGroupConfig { quorum: 3, ..reliable() };
    let config = XtpGroupConfig {
        stream: XtpConfig { patience: Some(Duration::from_secs(5)), ..config.stream },
        ..config
    };
    let mut network = Network::new(&config, 3, 0.0, 1);
    network.run_for(MS(100));
    network.receivers[2].deaf = true;
    let mut sent = 0;
    while network.sender.inner().receivers() == 3 {
        sent += usize::from(network.send(&[7; 500]).is_ok());
        network.run_for(MS(20));
        assert!(network.now < Time::from_nanos(30_000_000_000), "is never dropped");
    }
    let asked = network.log.iter().filter(|(_, format, options, to)| {
        *format == Format::Control && options.has(Options::SREQ) && *to == receiver_address(2)
    });
    assert!(asked.count() >= 2, "asked by itself first");
    network.transfer(&[]);
    assert!(network.receivers[..2].iter().all(|receiver| receiver.read.len() == sent * 500));
    assert_eq!(network.sender_counter("receivers-dropped"), 1);
}

#[test]
fn an_idle_receiver_that_is_gone_is_noticed_if_the_sender_keeps_asking() {
    let config = XtpGroupConfig { quorum: 2, ..reliable() };
    let stream = XtpConfig {
        keep_alive: Some(Duration::from_secs(3)),
        patience: Some(Duration::from_secs(5)),
        ..config.stream
    };
    let mut network = Network::new(&XtpGroupConfig { stream, ..config }, 2, 0.0, 1);
    network.run_for(Duration::from_secs(20));
    assert_eq!(network.sender.inner().receivers(), 2, "both answer");
    network.receivers[0].deaf = true;
    network.run_for(Duration::from_secs(20));
    assert_eq!((network.sender.inner().receivers(), network.sender_counter("receivers-dropped")), (1, 1));
}

#[test]
fn the_user_learns_who_joins_leaves_and_is_dropped() {
    let mut sender = XtpGroupSender::new(SENDER, &reliable(), 1).unwrap();
    let mut receiver = XtpGroupReceiver::new(receiver_address(0), &reliable(), 2).unwrap();
    let mut bytes = Vec::new();
    let mut now = Time::ZERO;
    assert_eq!(sender.poll_transmit(now, &mut bytes).unwrap().to, GROUP);
    receiver.handle_packet(now, SENDER, Ecn::NotCapable, &bytes);
    now = receiver.next_timeout().unwrap();
    receiver.handle_timeout(now);
    assert_eq!(receiver.poll_transmit(now, &mut bytes).unwrap().to, SENDER);
    assert_eq!(Packet::parse(&bytes).unwrap().body.format(), Format::JoinControl);
    sender.handle_packet(now, receiver_address(0), Ecn::NotCapable, &bytes);
    assert_eq!(sender.poll_event(), Some(Event::Member(Membership::Joined(receiver_address(0)))));
    assert_eq!(sender.poll_event(), Some(Event::Connected));
    assert_eq!(sender.poll_transmit(now, &mut bytes).unwrap().to, receiver_address(0));
    receiver.handle_packet(now, SENDER, Ecn::NotCapable, &bytes);
    assert_eq!(receiver.poll_event(), Some(Event::Connected));
    receiver.close(now, Close::Graceful);
    receiver.poll_transmit(now, &mut bytes).unwrap();
    sender.handle_packet(now, receiver_address(0), Ecn::NotCapable, &bytes);
    assert_eq!(sender.poll_event(), Some(Event::Member(Membership::Left(receiver_address(0)))));
    assert_eq!((sender.poll_event(), sender.receivers()), (None, 0));
}

#[test]
fn without_receivers_the_sender_waits_and_gives_up() {
    let mut network = Network::new(&reliable(), 0, 0.0, 1);
    assert_eq!(network.send(b"anybody?"), Err(SendError::Closed(CloseReason::NotConnected)));
    network.run();
    assert_eq!(network.sender_events(), [Event::Closed(CloseReason::TimedOut(Duration::from_secs(60)))]);
}

#[test]
fn an_unacknowledged_group_sends_nothing_back() {
    let config = XtpGroupConfig::unacknowledged(GROUP);
    let mut network = Network::new(&config, 4, 0.05, 1);
    for message in messages(200, 100) {
        network.send(&message).unwrap();
        network.run_for(MS(1));
    }
    network.transfer(&[]);
    assert!(network.log.iter().all(|(from, ..)| *from == SENDER));
    for receiver in &network.receivers {
        assert!(receiver.read.len() > 17_000 && receiver.read.len() < 20_000, "{}", receiver.read.len());
        let order: Vec<u8> = receiver.read.chunks(100).map(|message| message[0]).collect();
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

#[test]
fn strangers_and_noise_change_nothing() {
    let mut network = Network::new(&reliable(), 2, 0.0, 1);
    network.run_for(MS(100));
    let mut noise = Seed::new(3, 0).stream("noise");
    for _ in 0..300 {
        let length = noise.below(80) as usize;
        let bytes: Vec<u8> = (0..length).map(|_| noise.bits() as u8).collect();
        network.sender.handle_packet(network.now, receiver_address(0), Ecn::NotCapable, &bytes);
        network.drain(None);
        network.receivers[0].endpoint.handle_packet(network.now, SENDER, Ecn::NotCapable, &bytes);
        network.drain(Some(0));
    }
    // A report from somebody who never joined.
    let report = Body::Control(Default::default());
    let mut bytes = Vec::new();
    Packet { header: Default::default(), body: report }.emit(&mut bytes);
    network.sender.handle_packet(network.now, receiver_address(7), Ecn::NotCapable, &bytes);
    network.drain(None);
    let sent = messages(20, 300);
    network.transfer(&sent);
    assert!(network.receivers.iter().all(|receiver| receiver.read == sent.concat()));
}

/// Control packets of receivers for each data packet, at 1 % loss for each receiver.
fn control_per_data(receivers: usize) -> f64 {
    let config = XtpGroupConfig::reliable(GROUP);
    let stream = XtpConfig {
        send_buffer: 1 << 20,
        receive_buffer: 1 << 20,
        patience: None,
        acknowledge: Acknowledge::Every(8),
        ..config.stream
    };
    let config = XtpGroupConfig { quorum: receivers, slots: 100, stream, ..config };
    let mut network = Network::new(&config, receivers, 0.01, 5);
    network.run_for(Duration::from_secs(2));
    network.log.clear();
    let count = 300;
    for n in 0..count {
        network.send(&[n as u8; 200]).unwrap();
        network.run_for(MS(2));
    }
    // Without what closing takes, which is once.
    let control = network.log.iter().filter(|(from, ..)| *from != SENDER).count();
    network.transfer(&[]);
    assert!(network.receivers.iter().all(|receiver| receiver.read.len() == count * 200));
    control as f64 / count as f64
}

#[test]
fn control_traffic_grows_slower_than_the_square_root_of_the_receivers() {
    let (few, many) = (control_per_data(10), control_per_data(100));
    assert!(
        many / few < 10f64.sqrt(),
        "{few} control packets per data packet for 10, {many} for 100 receivers"
    );
}

#[test]
fn while_data_flow_receivers_are_asked_with_data_only() {
    let mut network = Network::new(&reliable(), 3, 0.0, 1);
    network.run_for(Duration::from_secs(2));
    let before = network.sender_counter("requests");
    for n in 0..240 {
        network.send(&[n as u8; 100]).unwrap();
        network.run_for(MS(25));
    }
    // With every twelfth packet: four for each receiver.
    assert_eq!(network.sender_counter("requests") - before, 20);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_receiver_gets_everything_over_lossy_paths(
        seed: u64, receivers in 1..6usize, loss in 0.0..0.4, count in 1..60usize, size in 1..3000usize,
        every in 1..20u32,
    ) {
        let config = XtpGroupConfig { quorum: receivers, ..reliable() };
        let stream = XtpConfig { patience: None, acknowledge: Acknowledge::Every(every), ..config.stream };
        let mut network = Network::new(&XtpGroupConfig { stream, ..config }, receivers, loss, seed);
        let sent = messages(count, size);
        network.transfer(&sent);
        for receiver in &network.receivers {
            prop_assert!(receiver.read == sent.concat(), "{} of {} bytes", receiver.read.len(), count * size);
        }
        let events = network.sender_events();
        prop_assert_eq!(events.last(), Some(&Event::Closed(CloseReason::Local)));
    }
}

/// By hand: `cargo test --profile soak -p trunkline-transport --test xtp -- --ignored thousand`.
#[test]
#[ignore = "takes minutes without optimisation"]
fn control_traffic_grows_slower_than_the_square_root_up_to_a_thousand_receivers() {
    let (few, many) = (control_per_data(10), control_per_data(1000));
    println!("{few} control packets per data packet for 10, {many} for 1000 receivers");
    assert!(many / few < 10.0, "{few} control packets per data packet for 10, {many} for 1000 receivers");
}
