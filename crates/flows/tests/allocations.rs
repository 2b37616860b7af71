//! A message costs no allocation on its way from a source to a sink and back, waiting or not.

use std::sync::Arc;

use trunkline_core::{Duration, Ecn, FlowId, Seed, Time};
use trunkline_experiment::Experiment;
use trunkline_flows::{
    Buffers, Delivery, Found, Lane, Listener, ListenerSpec, Observer, Progress, Reader, Side, Talker,
    TalkerSpec,
};
use trunkline_metrics::Observation;
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_transport::framing::Key;
use trunkline_transport::{Close, Conversation, Event, Features, Message, Received, SendError, features};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const KEY: Key = Key(7);

/// Holds one message at a time.
#[derive(Default)]
struct Slot(Option<usize>, Vec<u8>);

impl Conversation for Slot {
    fn send(&mut self, _: Time, message: Message<'_>) -> Result<(), SendError> {
        if self.0.is_some() {
            return Err(SendError::Full);
        }
        self.1.clear();
        self.1.extend_from_slice(message.bytes);
        self.0 = Some(message.bytes.len());
        Ok(())
    }
    fn receive(&mut self, into: &mut Vec<u8>) -> Option<Received> {
        let length = self.0.take()?;
        into.extend_from_slice(&self.1);
        Some(Received { length, ecn: Ecn::NotCapable })
    }
    fn poll_event(&mut self) -> Option<Event> {
        None
    }
    fn close(&mut self, _: Time, _: Close) {}
    fn features(&self) -> &'static Features {
        &features::UDP
    }
}

#[derive(Default)]
struct Count(u64);

impl Observer for Count {
    fn observe(&mut self, _: Time, _: FlowId, _: Observation, _: Option<&[u8]>) {
        self.0 += 1;
    }
    fn oversize(&mut self, _: usize) {}
}

#[test]
fn messages_there_and_back_allocate_nothing() {
    let text = "name = \"test\"\nduration = \"20 s\"\n[hosts]\na = {}\nb = {}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
                rate = \"1 Mbit/s\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nreflect = true\n\
                channels = 3\nsource = { kind = \"voice\", samples = 80, phase = \"together\" }\n";
    let experiment =
        Experiment::parse(text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    let scenario = &experiment.points.first().scenario;
    let flow = &scenario.flows[0];
    let source = scenario.build_source(0, 0, Seed::new(1, 0)).unwrap_or_else(|reason| panic!("{reason}"));
    let mut talker = Talker::new(source, FlowId(0), 3);
    let spec = TalkerSpec::on_sockets(flow, KEY);
    let (mut lane, mut buffers) = (Lane::default(), Buffers::new(8));
    let flows: Arc<[ListenerSpec]> = Arc::new([ListenerSpec::of(flow)]);
    let mut sink = Listener::new(Side::Sink(0), Arc::clone(&flows), 0..1);
    let origin = Listener::new(Side::Source, flows, 0..1);
    let mut readers = [Reader::new(&features::UDP, KEY, 0..1), Reader::new(&features::UDP, KEY, 0..1)];
    let [mut there, mut back] = [Slot::default(), Slot::default()];
    let (mut scratch, mut out) = (Vec::new(), Count::default());

    let mut carry = |now: Time, out: &mut Count, talker: &mut Talker, buffers: &mut Buffers| {
        let [far, near] = &mut readers;
        if far.receive(&mut there, &mut scratch) {
            far.messages(&mut scratch, |found| {
                let Found::Message(header, bytes) = found else { return };
                if let Delivery::Reply(flow, reply) = sink.deliver(now, &header, bytes, out) {
                    let mut whole = buffers.take();
                    Listener::reply(now, &header, (flow, reply), bytes, &mut whole);
                    sink.keep_reply(whole);
                }
            });
        }
        sink.send_reply(now, buffers, &mut back);
        if near.receive(&mut back, &mut scratch) {
            near.messages(&mut scratch, |found| {
                let Found::Message(header, bytes) = found else { return };
                if let Delivery::Answered(answer) = origin.deliver(now, &header, bytes, out) {
                    talker.answered(now, answer, out);
                }
            });
        }
        talker.send_waiting(now, (&spec, buffers), &mut there, out)
    };
    let mut run = |from: u64, to: u64, out: &mut Count| {
        for tick in from..to {
            let now = Time::ZERO + Duration::from_millis(10) * tick;
            talker.produce(now, &mut lane, out);
            // Of three messages at once two wait, as the conversation holds one.
            for _ in 0..=lane.len() {
                let mut nowhere = Slot(Some(0), Vec::new());
                talker.send_next(now, (&spec, &mut lane, &mut buffers), &mut nowhere, out);
            }
            while carry(now, out, &mut talker, &mut buffers) != Progress::Nothing {}
            carry(now, out, &mut talker, &mut buffers);
        }
    };
    run(0, 100, &mut out);
    let before = out.0;
    let (allocations, ()) = allocations_during(|| run(100, 1100, &mut out));
    // Each of three channels sends a message every 10 ms; it is sent and comes back.
    assert_eq!(out.0 - before, 2 * 3 * 1000);
    assert_eq!(allocations, 0);
}
