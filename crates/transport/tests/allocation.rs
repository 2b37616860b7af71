//! In the steady state neither UDP nor URP nor message framing allocates.

use trunkline_core::{Address, Duration, Ecn, FlowId, Time};
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_transport::framing::{Deframer, HEADER_LENGTH, Header, Key, MessageKind};
use trunkline_transport::{
    Conversation as _, Endpoint as _, Message, UdpConfig, UdpEndpoint, UrpConfig, UrpEndpoint,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn udp_allocates_nothing_per_message() {
    let [near, far] = [0, 1].map(|host| Address { host, port: 9 });
    let mut source = UdpEndpoint::new(near, far, UdpConfig::default());
    let mut sink = UdpEndpoint::new(far, near, UdpConfig::default());
    let (mut packet, mut received, mut count) = (Vec::new(), Vec::new(), 0);
    let mut exchange = |rounds: u32| {
        for _ in 0..rounds {
            for length in [80, 160, 1200] {
                source.send(Time::ZERO, Message::new(&[1; 1200][..length])).unwrap();
            }
            while source.poll_transmit(Time::ZERO, &mut packet).is_some() {
                sink.handle_packet(Time::ZERO, near, Ecn::NotCapable, &packet);
            }
            received.clear();
            while sink.receive(&mut received).is_some() {
                count += 1;
            }
        }
    };
    exchange(10);
    assert_eq!(allocations_during(|| exchange(1000)).0, 0);
    assert_eq!(count, 3030);
}

#[test]
fn urp_allocates_nothing_per_message() {
    let [near, far] = [0, 1].map(|host| Address { host, port: 9 });
    let config = UrpConfig { window: 7, ..UrpConfig::default() };
    let mut ends =
        [UrpEndpoint::connect(near, far, config).unwrap(), UrpEndpoint::listen(far, near, config).unwrap()];
    let (mut packet, mut received, mut now) = (Vec::new(), Vec::new(), Time::ZERO);
    let mut numbers = 0u64;
    let mut exchange = |rounds: u32| {
        for _ in 0..rounds {
            now += Duration::from_secs(2);
            for end in &mut ends {
                end.handle_timeout(now);
                // Refused until the circuit is open.
                let _ = end.send(now, Message::piece(&[1; 100]));
                let _ = end.send(now, Message::new(&[2; 1900]));
            }
            let mut quiet = false;
            while !quiet {
                quiet = true;
                for (side, from) in [(0, near), (1, far)] {
                    while ends[side].poll_transmit(now, &mut packet).is_some() {
                        quiet = false;
                        numbers += 1;
                        if !numbers.is_multiple_of(23) {
                            ends[1 - side].handle_packet(now, from, Ecn::NotCapable, &packet);
                        }
                        while ends[1 - side].receive(&mut received).is_some() {}
                        received.clear();
                    }
                    while ends[side].poll_event().is_some() {}
                }
            }
        }
    };
    exchange(100);
    assert_eq!(allocations_during(|| exchange(1000)).0, 0);
    let mut counters = [0; 2];
    ends[0].counters(&mut |name, count| match name {
        "blocks-sent" => counters[0] = count,
        "retransmissions" => counters[1] = count,
        _ => {}
    });
    assert!(counters[0] > 8000 && counters[1] > 200, "{counters:?}");
}

#[test]
fn framing_allocates_nothing_per_message() {
    let key = Key(0xABCD_1234);
    let mut message = [7; HEADER_LENGTH + 160];
    let header = Header {
        place: trunkline_transport::framing::Place::Before,
        key,
        length: 160,
        flow: FlowId(0),
        sequence: 0,
        channel: 0,
        kind: MessageKind::Forward,
        late: Duration::ZERO,
        sent: Time::ZERO,
        reflected: Time::ZERO,
    };
    let mut deframer = Deframer::new(key, 0..1);
    let (mut sequence, mut count) = (0, 0);
    let mut exchange = |rounds: u32| {
        for _ in 0..rounds {
            Header { sequence, ..header }.encode(&mut message);
            sequence += 1;
            // Cut at a place that moves through the message.
            let (front, back) = message.split_at(sequence as usize % message.len());
            for piece in [front, back] {
                deframer.push(piece);
                while deframer.next().is_some() {
                    count += 1;
                }
            }
        }
    };
    exchange(500);
    assert_eq!(allocations_during(|| exchange(2000)).0, 0);
    assert_eq!(count, 2500);
}
