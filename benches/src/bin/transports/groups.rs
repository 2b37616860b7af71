//! A reliable multicast to many receivers, in virtual time: how many control packets it takes.

use std::collections::BTreeMap;

use anstream::println;
use trunkline_core::{Address, Duration, Ecn, Seed, Stream, Time};
use trunkline_transport::xtp::{XtpConfig, XtpGroupConfig, XtpGroupReceiver, XtpGroupSender};
use trunkline_transport::{Conversation as _, Endpoint, Event, Message, drain};

const SENDER: Address = Address { host: 0, port: 40_000 };
const GROUP: Address = Address { host: u16::MAX, port: 5_000 };
const LATENCY: Duration = Duration::from_millis(2);
const MESSAGE: usize = 200;
const MESSAGES: u64 = 10_000;
const LOSS: f64 = 0.01;

/// Control packets for each data packet, by the number of receivers.
pub(crate) fn control_traffic() {
    println!(
        "Reliable XTP multicast, {MESSAGES} messages of {MESSAGE} bytes, 2 ms apart, {} % loss for each receiver; \
         control packets of all receivers for each message",
        LOSS * 100.0
    );
    let mut before: Option<f64> = None;
    for receivers in [10, 100, 1_000] {
        let control = control_per_message(receivers);
        let growth =
            before.map(|before| format!("   x {:.2}   goal: below {:.2}", control / before, 10f64.sqrt()));
        println!("  {receivers:5} receivers   {control:.2}{}", growth.unwrap_or_default());
        before = Some(control);
    }
    println!();
}

fn control_per_message(receivers: usize) -> f64 {
    let mut network = Network::new(receivers);
    while !network.connected {
        network.run_until(network.now + Duration::from_secs(1));
    }
    network.run_until(network.now + Duration::from_secs(10));
    let joining = network.control;
    for number in 0..MESSAGES {
        let now = network.now;
        network.sender.send(now, Message::new(&[number as u8; MESSAGE])).expect("the buffer holds all");
        network.drain(0);
        network.run_until(now + Duration::from_millis(2));
    }
    // Without what the end of the stream takes, which is once.
    let control = network.control - joining;
    network.run_until(network.now + Duration::from_secs(10));
    for read in &network.read {
        assert_eq!(*read, MESSAGES as usize * MESSAGE, "bytes that one of {receivers} receivers has read");
    }
    control as f64 / MESSAGES as f64
}

/// A sender, which is the first, receivers, and what flies between them.
struct Network {
    sender: XtpGroupSender,
    receivers: Vec<XtpGroupReceiver>,
    /// How much each receiver has read.
    read: Vec<usize>,
    flying: BTreeMap<(Time, u64), Flying>,
    count: u64,
    /// All receivers have joined.
    connected: bool,
    /// Packets that receivers have sent.
    control: u64,
    losses: Stream,
    now: Time,
    packet: Vec<u8>,
    received: Vec<u8>,
}

struct Flying {
    from: usize,
    to: Address,
    bytes: Vec<u8>,
}

impl Network {
    fn new(receivers: usize) -> Network {
        let defaults = XtpGroupConfig::reliable(GROUP);
        let stream = XtpConfig { send_buffer: 4 << 20, receive_buffer: 4 << 20, ..defaults.stream };
        let config = XtpGroupConfig { quorum: receivers, slots: 100, stream, ..defaults };
        let possible = "the configuration is possible";
        let receiver = |index| XtpGroupReceiver::new(address(index), &config, index as u64).expect(possible);
        let mut network = Network {
            sender: XtpGroupSender::new(SENDER, &config, 0).expect(possible),
            receivers: (1..=receivers).map(receiver).collect(),
            read: vec![0; receivers],
            flying: BTreeMap::new(),
            count: 0,
            connected: false,
            control: 0,
            losses: Seed::new(7, 0).stream("losses"),
            now: Time::ZERO,
            packet: Vec::new(),
            received: Vec::new(),
        };
        for end in 0..=receivers {
            network.drain(end);
        }
        network
    }

    fn end(&mut self, end: usize) -> &mut dyn Endpoint {
        if end == 0 { &mut self.sender } else { &mut self.receivers[end - 1] }
    }

    fn drain(&mut self, from: usize) {
        let (now, mut packet) = (self.now, core::mem::take(&mut self.packet));
        let Network { sender, receivers, flying, count, connected, .. } = self;
        let endpoint: &mut dyn Endpoint = if from == 0 { sender } else { &mut receivers[from - 1] };
        let before = *count;
        drain(endpoint, now, &mut packet, |transmit, bytes| {
            *count += 1;
            flying.insert((now + LATENCY, *count), Flying { from, to: transmit.to, bytes: bytes.clone() });
        });
        while let Some(event) = endpoint.poll_event() {
            *connected |= event == Event::Connected && from == 0;
        }
        if from > 0 {
            self.control += self.count - before;
        }
        self.packet = packet;
    }

    /// Does what is due, at its time, until then.
    fn run_until(&mut self, until: Time) {
        loop {
            let timers = self.receivers.iter().map(XtpGroupReceiver::next_timeout).enumerate();
            let timers = timers.filter_map(|(index, at)| Some((at?, index + 1)));
            let timer = timers.chain(self.sender.next_timeout().map(|at| (at, 0))).min();
            let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
            let Some(at) = arrival.into_iter().chain(timer.map(|(at, _)| at)).min().filter(|at| *at <= until)
            else {
                self.now = until;
                return;
            };
            self.now = at;
            if arrival == Some(at)
                && let Some((_, flying)) = self.flying.pop_first()
            {
                self.arrive(&flying);
            } else if let Some((_, end)) = timer {
                self.end(end).handle_timeout(at);
                self.drain(end);
            }
        }
    }

    fn arrive(&mut self, Flying { from, to, bytes }: &Flying) {
        let now = self.now;
        let ends =
            if *to == GROUP { 0..=self.receivers.len() } else { usize::from(to.host)..=usize::from(to.host) };
        for end in ends.filter(|end| end != from) {
            if self.losses.chance(LOSS) {
                continue;
            }
            self.end(end).handle_packet(now, address(*from), Ecn::NotCapable, bytes);
            self.drain(end);
            if end > 0 {
                let received = &mut self.received;
                while self.receivers[end - 1].receive(received).is_some() {}
                if !received.is_empty() {
                    self.read[end - 1] += received.len();
                    received.clear();
                    self.drain(end);
                }
            }
        }
    }
}

/// Of the sender, or of a receiver.
fn address(end: usize) -> Address {
    if end == 0 { SENDER } else { Address { host: end as u16, port: GROUP.port } }
}
