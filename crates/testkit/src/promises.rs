//! What each promise of a transport means: a behaviour that shows where it is declared, and is missing where it is not.
//!
//! The conformance suite asks whether a transport keeps its promises under every hardship. This asks whether the feature
//! table tells the truth, in both directions.

use trunkline_core::{Address, Bytes, Duration, Ecn, Seed, Time};
use trunkline_transport::features::FEATURES;
use trunkline_transport::{
    CloseReason, Conversation as _, Endpoint, Event, Features, Message, SendError, drain,
};

use crate::pair::{Pair, Path, Side};

/// An endpoint and its address.
pub type Placed = (Address, Box<dyn Endpoint>);

/// A transport in one of its modes.
#[derive(Clone, Copy)]
pub struct Subject<'s> {
    /// Makes two ends, of which the first connects.
    pub pair: &'s dyn Fn() -> [Placed; 2],
    /// Makes a group of several receivers, if the transport has groups.
    pub group: Option<&'s dyn Fn() -> Group>,
}

/// One that sends to several.
pub struct Group {
    /// Where packets for all receivers go.
    pub address: Address,
    /// Who sends.
    pub sender: Placed,
    /// Who receives.
    pub receivers: Vec<Placed>,
}

const SECOND: Duration = Duration::from_secs(1);

/// The features that a transport shows and does not declare, or the other way round.
pub fn untrue(subject: Subject<'_>) -> Vec<&'static str> {
    let [(_, near), _] = (subject.pair)();
    let features = *near.features();
    let all = FEATURES.iter().zip(PROOFS);
    let untrue = all.filter(|((_, declared), shows)| shows(subject) != declared(&features));
    untrue.map(|((name, _), _)| *name).collect()
}

/// Whether a feature shows, in the order of [`FEATURES`]: one without a proof does not compile.
const PROOFS: [fn(Subject<'_>) -> bool; FEATURES.len()] = [
    keeps_borders,
    needs_a_connection,
    talks_both_ways,
    repairs_loss,
    keeps_order,
    lets_a_slow_reader_hold_it_back,
    slows_down_under_loss,
    reaches_several_at_once,
    splits_what_exceeds_a_packet,
    learns_what_the_path_carries,
    finds_damage,
];

fn keeps_borders(subject: Subject<'_>) -> bool {
    let mut pair = connected(subject);
    let messages = [b"one".to_vec(), b"three".to_vec(), b"two".to_vec()];
    for message in &messages {
        assert_eq!(pair.send(Side::Near, message), Ok(()));
    }
    pair.drive_for(SECOND);
    let mut received = pair.receive_all(Side::Far);
    received.sort();
    received == messages
}

fn needs_a_connection(subject: Subject<'_>) -> bool {
    let mut pair = fresh(subject);
    let sent = pair.send(Side::Near, b"early");
    pair.drive_for(SECOND);
    let connected = pair.take_event(Side::Near, Event::Connected);
    sent == Err(SendError::Closed(CloseReason::NotConnected)) && connected
}

fn talks_both_ways(subject: Subject<'_>) -> bool {
    let mut pair = connected(subject);
    for number in 0..10 {
        if pair.send(Side::Far, &[number; 10]).is_err() {
            return false;
        }
        assert_eq!(pair.send(Side::Near, &[number; 20]), Ok(()));
    }
    pair.drive_for(SECOND);
    Side::BOTH.map(|side| pair.receive_all(side).concat().len()) == [100, 200]
}

fn repairs_loss(subject: Subject<'_>) -> bool {
    let mut pair = connected(subject);
    for side in Side::BOTH {
        pair.path(side).loss = 0.2;
    }
    let received = deliver(&mut pair, &numbered()).concat();
    assert!(pair.path_counters(Side::Near).lost > 5, "hardly anything was lost");
    let mut bytes = received;
    bytes.sort_unstable();
    bytes == numbered().concat()
}

fn keeps_order(subject: Subject<'_>) -> bool {
    let mut pair = connected(subject);
    pair.path(Side::Near).reorder = 0.3;
    let received = deliver(&mut pair, &numbered()).concat();
    assert!(received.len() > 1000, "hardly anything came: {}", received.len());
    received.is_sorted()
}

/// Whether nobody's reading holds it back, so that nothing is sent in vain.
fn lets_a_slow_reader_hold_it_back(subject: Subject<'_>) -> bool {
    let mut pair = connected(subject);
    let before = pair.path_counters(Side::Near).bytes;
    // Three megabytes at a time, ten seconds apart.
    let [first, second] = [(); 2].map(|()| {
        let mut taken = 0;
        for _ in 0..100 {
            while taken < 3000 && pair.send(Side::Near, &[1; 1000]) == Ok(()) {
                taken += 1;
            }
            pair.drive_for(SECOND / 10);
        }
        taken
    });
    let sent = pair.path_counters(Side::Near).bytes - before;
    second < 100 && sent < (first + second) * 1300
}

/// Whether it sends less at a time where three in ten packets are lost, however much there is to send. At a time means
/// in a round trip: a window that stands still until a gap is filled is no slower once it moves.
fn slows_down_under_loss(subject: Subject<'_>) -> bool {
    const ROUND_TRIP: u64 = 20;
    let most = |loss| {
        let mut pair = connected(subject);
        pair.path(Side::Near).loss = loss;
        let (mut most, mut before) = (0, 0);
        for ms in 0..6000 {
            // More than fits beside what waits already, or that nobody may send any more, changes nothing here.
            let _ = pair.send(Side::Near, &[2; 900]);
            pair.drive_for(Duration::from_millis(1));
            read(&mut pair);
            if ms % ROUND_TRIP == 0 {
                let sent = pair.path_counters(Side::Near).bytes;
                most = if ms > 3000 { most.max(sent - before) } else { 0 };
                before = sent;
            }
        }
        most
    };
    let [clean, lossy] = [0.0, 0.3].map(most);
    assert!(clean > 500, "it sends hardly anything: {clean} bytes in a round trip");
    lossy * 3 < clean * 2
}

/// Whether every receiver has all that was sent, by hardly more packets than there are messages.
fn reaches_several_at_once(subject: Subject<'_>) -> bool {
    const COUNT: u8 = 20;
    let Some(group) = subject.group else { return false };
    let Group { address: group, sender: (from, mut sender), mut receivers } = group();
    let mut received = vec![Vec::new(); receivers.len()];
    let (mut taken, mut packets, mut buffer) = (0, 0, Vec::new());
    for ms in 1..2000 {
        let now = Time::ZERO + Duration::from_millis(ms);
        sender.handle_timeout(now);
        // By then all have joined.
        if ms > 1000 && taken < COUNT && sender.send(now, Message::new(&[taken; 100])) == Ok(()) {
            taken += 1;
        }
        drain(&mut sender, now, &mut buffer, |transmit, packet| {
            packets += usize::from(packet.len() > 100);
            for (address, receiver) in &mut receivers {
                if transmit.to == group || transmit.to == *address {
                    receiver.handle_packet(now, from, Ecn::NotCapable, packet);
                }
            }
        });
        for ((address, receiver), received) in receivers.iter_mut().zip(&mut received) {
            receiver.handle_timeout(now);
            while receiver.receive(received).is_some() {}
            drain(receiver, now, &mut buffer, |_, packet| {
                sender.handle_packet(now, *address, Ecn::NotCapable, packet);
            });
        }
    }
    let expected: Vec<u8> = (0..COUNT).flat_map(|number| [number; 100]).collect();
    let complete = received.len() > 1 && received.iter().all(|bytes| *bytes == expected);
    complete && packets < 3 * usize::from(COUNT) / 2
}

fn splits_what_exceeds_a_packet(subject: Subject<'_>) -> bool {
    let mut pair = connected(subject);
    pair.path(Side::Near).mtu = Some(Bytes(1500));
    let message = vec![3; 5000];
    if pair.send(Side::Near, &message).is_err() {
        return false;
    }
    pair.drive_for(SECOND * 5);
    pair.receive_all(Side::Far).concat() == message
}

/// Whether it gets through where the path has come to carry smaller packets than before.
fn learns_what_the_path_carries(subject: Subject<'_>) -> bool {
    let mut pair = connected(subject);
    let message = vec![4; 1200];
    assert_eq!(deliver(&mut pair, core::slice::from_ref(&message)).concat(), message);
    let largest = pair.path_counters(Side::Near).largest.count();
    pair.path(Side::Near).mtu = Some(Bytes(1000.min(largest - 1)));
    assert_eq!(pair.send(Side::Near, &message), Ok(()));
    pair.drive_for(SECOND * 60);
    pair.receive_all(Side::Far).concat() == message
}

/// Whether nothing but what was sent is received where bits of packets are flipped.
fn finds_damage(subject: Subject<'_>) -> bool {
    let mut pair = connected(subject);
    pair.path(Side::Near).corrupt = 0.2;
    let messages_are_kept = pair.features().message_oriented;
    let received = deliver(&mut pair, &numbered());
    // A byte stream sends what waits in few large packets.
    assert!(pair.path_counters(Side::Near).corrupted > 2, "hardly anything was damaged");
    let whole = |message: &Vec<u8>| message.len() == 100 && (1..=100).contains(&message[0]);
    let even = |message: &Vec<u8>| message.iter().all(|byte| byte == &message[0]);
    if messages_are_kept {
        received.iter().all(|message| whole(message) && even(message))
    } else {
        // A changed byte is larger than the next, or smaller than the one before.
        received.concat().is_sorted()
    }
}

fn fresh(subject: Subject<'_>) -> Pair {
    let [near, far] = (subject.pair)();
    let clean = Path::with_latency(Duration::from_millis(10));
    Pair::between(near, far, [clean.clone(), clean], Seed::new(1, 0))
}

/// A pair that is ready to talk over a path on which nothing goes wrong yet.
fn connected(subject: Subject<'_>) -> Pair {
    let mut pair = fresh(subject);
    pair.drive_for(SECOND);
    pair
}

/// Sends messages as fast as they are taken, and gives what is received in five minutes.
fn deliver(pair: &mut Pair, messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let end = pair.now() + SECOND * 300;
    let mut waiting = messages.iter().peekable();
    let mut received = Vec::new();
    loop {
        while let Some(message) = waiting.peek()
            && pair.send(Side::Near, message) == Ok(())
        {
            waiting.next();
        }
        received.extend(read(pair));
        if !pair.step_until(end) {
            assert_eq!(waiting.count(), 0, "messages that were not taken");
            return received;
        }
    }
}

/// All that the far end has received. Where one end asks and the other answers, it does.
fn read(pair: &mut Pair) -> Vec<Vec<u8>> {
    let received = pair.receive_all(Side::Far);
    let Features { full_duplex, multicast, .. } = *pair.features();
    if !full_duplex && !multicast {
        for _ in &received {
            assert_eq!(pair.send(Side::Far, b"yes"), Ok(()));
        }
    }
    received
}

/// A hundred messages of a hundred bytes each, all bytes of the n-th being n.
fn numbered() -> Vec<Vec<u8>> {
    (1..=100).map(|number| vec![number; 100]).collect()
}
