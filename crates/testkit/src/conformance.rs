//! What every transport must do, as checks that run over any pair of endpoints. Which promises are checked follows from
//! the transport's own [`Features`]: a transport that claims more is tested for more.
//!
//! [`conformance_tests!`](crate::conformance_tests) makes one test of each check.

use trunkline_core::{Duration, Seed, Time};
use trunkline_transport::{
    Close, CloseReason, Conversation as _, Endpoint, Event, Features, Message, SendError,
};

use crate::pair::{Pair, Path, Side};

/// Makes two endpoints with the addresses [`NEAR`](crate::pair::NEAR) and [`FAR`](crate::pair::FAR), of which the near
/// one connects. All that they draw derives from the number. A transport that notices a lost peer must be given a
/// patience of about an hour: on the worst paths here, retransmissions are minutes apart.
pub type Make = fn(u64) -> (Box<dyn Endpoint>, Box<dyn Endpoint>);

/// Makes one `#[test]` of each conformance check, over the endpoints that a [`Make`] function makes.
#[macro_export]
macro_rules! conformance_tests {
    ($make:expr) => {
        $crate::conformance_tests!($make;
            a_clean_path_delivers_everything_in_order
            borders_of_messages_are_as_declared
            damage_never_reaches_the_application
            sending_needs_a_connection_where_there_is_one
            the_largest_message_is_as_declared
            a_full_buffer_holds_back_and_says_when_there_is_room
            a_slow_reader_loses_nothing_that_flow_control_protects
            a_graceful_close_delivers_what_was_taken
            an_abort_reaches_the_peer
            a_lost_peer_is_noticed
            late_timers_break_nothing
            garbage_breaks_nothing
            an_idle_conversation_is_silent
            the_same_seed_gives_the_same_packets
        );
    };
    ($make:expr; $($check:ident)*) => {
        $(#[test] fn $check() { $crate::conformance::$check($make); })*
    };
}

/// In order where messages cannot overtake each other, exactly once, unchanged, with room in the buffers and nothing lost
/// on the way.
pub fn a_clean_path_delivers_everything_in_order(make: Make) {
    for from in Side::BOTH {
        let mut pair = connected(make, 1, clean());
        let messages = messages(300);
        let received = transfer(&mut pair, from, &messages);
        assert_same(pair.features(), &received, &messages, "");
    }
}

/// Messages keep their borders if and only if the transport is message-oriented.
pub fn borders_of_messages_are_as_declared(make: Make) {
    let mut pair = connected(make, 1, clean());
    let messages: [&[u8]; 3] = [b"one", b"", b"three"];
    for message in messages {
        assert_eq!(pair.send(Side::Near, message), Ok(()));
    }
    pair.drive_for(Duration::from_secs(5));
    let expected = if pair.features().message_oriented {
        messages.map(<[u8]>::to_vec).to_vec()
    } else {
        vec![messages.concat()]
    };
    assert_eq!(pair.receive_all(Side::Far), expected);
}

/// Over a path that loses, duplicates, reorders and corrupts: a reliable transport delivers everything once, and in
/// order if it says so; any transport with a checksum delivers nothing but what was sent, and its counters add up.
pub fn damage_never_reaches_the_application(make: Make) {
    for (seed, loss) in [(1, 0.01), (2, 0.05), (3, 0.2)] {
        let bad = Path { loss, duplicate: 0.05, reorder: 0.05, corrupt: 0.05, ..clean() };
        let mut pair = connected(make, seed, clean());
        for side in Side::BOTH {
            *pair.path(side) = bad.clone();
        }
        let before = pair.path_counters(Side::Near);
        let messages = messages(200);
        let received = transfer(&mut pair, Side::Near, &messages);
        let path = pair.path_counters(Side::Near);
        assert!(
            path.lost > before.lost && path.corrupted > 0 && path.duplicated > 0,
            "the path did no damage"
        );
        let Features { reliable, checksum, connection_oriented, .. } = *pair.features();
        if reliable {
            let ends = closings(&mut pair, Side::Near);
            assert_same(
                pair.features(),
                &received,
                &messages,
                &format!("seed {seed}, {} later, ended by {ends:?}", pair.now()),
            );
            continue;
        }
        if checksum {
            let strange = received.iter().find(|message| !messages.contains(message));
            assert_eq!(strange, None, "seed {seed}: was never sent");
            if connection_oriented {
                // It sends packets of its own, for which no message is received, and knows a duplicate.
                let distinct: std::collections::BTreeSet<_> = received.iter().collect();
                assert_eq!(distinct.len(), received.len(), "seed {seed}: something was received twice");
                continue;
            }
            let bad = ["checksum-errors", "malformed", "strays", "duplicates"]
                .map(|name| pair.counter(Side::Far, name));
            // Packets of its own, as RTP's reports are.
            let control = pair.counter(Side::Far, "control-received");
            let arrived = path.sent - path.lost + path.duplicated - control;
            assert_eq!(
                received.len() as u64 + bad.iter().sum::<u64>(),
                arrived,
                "seed {seed}: packets by fate"
            );
            assert!(bad.iter().sum::<u64>() >= path.corrupted, "seed {seed}: {bad:?}");
        }
    }
}

/// Before a connection stands, `send` refuses; both ends learn when it stands. Without connections `send` works at
/// once.
pub fn sending_needs_a_connection_where_there_is_one(make: Make) {
    let (near, far) = make(1);
    let mut pair = Pair::new(near, far, [clean(), clean()], Seed::new(1, 0));
    let sent = pair.send(Side::Near, b"early");
    if pair.features().connection_oriented {
        assert_eq!(sent, Err(SendError::Closed(CloseReason::NotConnected)));
        pair.drive();
        for side in Side::BOTH {
            assert_eq!(pair.events(side), [Event::Connected], "{side:?}");
        }
    } else {
        assert_eq!(sent, Ok(()));
        pair.drive();
        assert_eq!(pair.receive_all(Side::Far), [b"early"]);
        assert_eq!(pair.events(Side::Far), [Event::Readable]);
    }
}

/// A message-oriented transport takes messages up to its stated limit; a byte stream takes any.
pub fn the_largest_message_is_as_declared(make: Make) {
    let mut pair = connected(make, 1, clean());
    let huge = vec![7; 1 << 20];
    let message = match pair.send(Side::Near, &huge) {
        Ok(()) => huge,
        Err(SendError::TooLarge { limit }) => {
            assert!(pair.features().message_oriented && limit < huge.len());
            assert_eq!(pair.send(Side::Near, &huge[..limit + 1]), Err(SendError::TooLarge { limit }));
            assert_eq!(pair.send(Side::Near, &huge[..limit]), Ok(()));
            huge[..limit].to_vec()
        }
        Err(other) => panic!("a message of {} bytes: {other}", huge.len()),
    };
    let received = transfer(&mut pair, Side::Near, &[]);
    assert!(received.concat() == message, "{} of {} bytes", received.concat().len(), message.len());
}

/// `send` answers "full" at some point, takes nothing then, and `Writable` comes once when there is room.
pub fn a_full_buffer_holds_back_and_says_when_there_is_room(make: Make) {
    let mut pair = connected(make, 1, clean());
    if pair.features().flow_control || pair.features().congestion_control {
        let taken = fill(&mut pair);
        assert!(pair.events(Side::Near).is_empty());
        let received = transfer_with(&mut pair, Side::Near, &[], |pair| {
            let told = pair.events(Side::Near);
            assert!(told.iter().all(|&event| event == Event::Writable) && told.len() <= 1, "{told:?}");
        });
        assert_same(pair.features(), &received, &taken, "");
        assert_eq!(pair.send(Side::Near, b"more"), Ok(()));
    } else {
        // Nothing holds it back but a driver that does not drain.
        let (mut endpoint, _) = make(1);
        let mut taken = 0;
        while endpoint.send(Time::ZERO, Message::new(&[0; 1000])) == Ok(()) {
            taken += 1;
            assert!(taken < 100_000, "takes messages without end");
        }
        assert_eq!(endpoint.send(Time::ZERO, Message::new(&[0; 1000])), Err(SendError::Full));
        assert_eq!(endpoint.poll_event(), None);
        let mut buffer = Vec::new();
        assert!(endpoint.poll_transmit(Time::ZERO, &mut buffer).is_some());
        assert_eq!([endpoint.poll_event(), endpoint.poll_event()], [Some(Event::Writable), None]);
        while endpoint.poll_transmit(Time::ZERO, &mut buffer).is_some() {
            taken -= 1;
        }
        assert_eq!(taken, 1, "a refused message was sent, or a taken one was not");
    }
}

/// A receiver that does not read for a minute, on a path that loses packets meanwhile.
pub fn a_slow_reader_loses_nothing_that_flow_control_protects(make: Make) {
    let mut pair = connected(make, 1, clean());
    let Features { flow_control, reliable, .. } = *pair.features();
    if !flow_control || !reliable {
        return; // what is not repaired for as long as it takes may be given up meanwhile
    }
    for side in Side::BOTH {
        pair.path(side).loss = 0.1;
    }
    let taken = fill(&mut pair);
    pair.drive_for(Duration::from_secs(60));
    let received = transfer(&mut pair, Side::Near, &[]);
    assert_same(pair.features(), &received, &taken, "");
}

/// What was taken before a graceful close arrives; both ends learn of the end; nothing more is taken.
pub fn a_graceful_close_delivers_what_was_taken(make: Make) {
    let mut pair = connected(make, 1, clean());
    let Features { reliable, connection_oriented, message_oriented, .. } = *pair.features();
    // Byte streams end each direction by itself.
    let half_closes = connection_oriented && reliable && !message_oriented;
    if reliable {
        for side in Side::BOTH {
            pair.path(side).loss = 0.05;
        }
    }
    let sent = messages(30).concat();
    assert_eq!(pair.send(Side::Near, &sent), Ok(()));
    pair.close(Side::Near, Close::Graceful);
    assert_eq!(pair.send(Side::Near, b"more"), Err(SendError::Closed(CloseReason::Local)));
    let mut received = Vec::new();
    let mut ends = [Vec::new(), Vec::new()];
    let mut answered = false;
    while pair.step_until(Time::MAX) {
        received.extend(pair.receive_all(Side::Far).concat());
        for side in Side::BOTH {
            ends[side as usize].extend(closings(&mut pair, side));
        }
        if connection_oriented && !answered && !ends[Side::Far as usize].is_empty() {
            answered = true;
            // The peer has closed; where each direction ends by itself, this end may still answer.
            let closed = Err(SendError::Closed(CloseReason::Peer));
            assert_eq!(pair.send(Side::Far, b"thanks"), if half_closes { Ok(()) } else { closed });
            pair.close(Side::Far, Close::Graceful);
        }
    }
    for side in Side::BOTH {
        ends[side as usize].extend(closings(&mut pair, side));
    }
    assert_same(pair.features(), &[received], &[sent], "");
    let far = if connection_oriented { vec![CloseReason::Peer] } else { Vec::new() };
    assert_eq!(ends, [vec![CloseReason::Local], far]);
    let answer = if half_closes { b"thanks".to_vec() } else { Vec::new() };
    assert_eq!(pair.receive_all(Side::Near).concat(), answer);
}

/// An abort ends the conversation at once, and a connected peer learns of it.
pub fn an_abort_reaches_the_peer(make: Make) {
    let mut pair = connected(make, 1, clean());
    assert_eq!(pair.send(Side::Near, &[1; 10_000]), Ok(()));
    pair.close(Side::Near, Close::Abort);
    assert_eq!(closings(&mut pair, Side::Near), [CloseReason::Local]);
    assert_eq!(pair.send(Side::Near, b"more"), Err(SendError::Closed(CloseReason::Local)));
    pair.drive();
    if pair.features().connection_oriented {
        assert_eq!(closings(&mut pair, Side::Far), [CloseReason::Reset]);
        assert_eq!(pair.send(Side::Far, b"x"), Err(SendError::Closed(CloseReason::Reset)));
    }
}

/// A transport that repairs loss gives up when nobody answers: on connecting, and with data under way.
pub fn a_lost_peer_is_noticed(make: Make) {
    let (near, far) = make(1);
    let gone = Path { cut: Some(Time::ZERO), ..clean() };
    let mut pair = Pair::new(near, far, [gone, clean()], Seed::new(1, 0));
    if !pair.features().reliable {
        return;
    }
    pair.drive();
    assert!(matches!(closings(&mut pair, Side::Near)[..], [CloseReason::TimedOut(_)]), "connecting");

    let mut pair = connected(make, 1, clean());
    pair.path(Side::Far).cut = Some(Time::ZERO);
    assert_eq!(pair.send(Side::Near, b"anybody there?"), Ok(()));
    pair.drive();
    let reasons = closings(&mut pair, Side::Near);
    assert!(matches!(reasons[..], [CloseReason::TimedOut(_)]), "with data under way: {reasons:?}");
    assert!(matches!(pair.send(Side::Near, b"?"), Err(SendError::Closed(CloseReason::TimedOut(_)))));
}

/// A driver that wakes up late: everything takes longer, and nothing else changes.
pub fn late_timers_break_nothing(make: Make) {
    let mut pair = connected(make, 1, clean());
    if pair.features().reliable {
        for side in Side::BOTH {
            pair.path(side).loss = 0.05;
        }
    }
    pair.wake_late_by(Duration::from_millis(37));
    let messages = messages(100);
    let received = transfer(&mut pair, Side::Near, &messages);
    assert_same(pair.features(), &received, &messages, "");
}

/// Packets of random bytes are dropped: nothing reaches the application, and the conversation goes on.
pub fn garbage_breaks_nothing(make: Make) {
    let mut pair = connected(make, 1, clean());
    let mut stream = Seed::new(5, 0).stream("garbage");
    for _ in 0..500 {
        let length = 1 + stream.below(100) as usize;
        let mut packet: Vec<u8> = (0..length).map(|_| stream.bits() as u8).collect();
        if stream.chance(0.5) {
            packet[0] = 0x45; // the beginning of an IPv4 header
        }
        pair.inject(if stream.chance(0.5) { Side::Near } else { Side::Far }, &packet);
    }
    pair.inject(Side::Far, &[]);
    for side in Side::BOTH {
        assert!(pair.receive_all(side).is_empty() && pair.events(side).is_empty(), "{side:?}");
    }
    let messages = messages(50);
    let received = transfer(&mut pair, Side::Near, &messages);
    assert_same(pair.features(), &received, &messages, "");
}

/// With nothing to say, no timer runs and no packet is sent.
pub fn an_idle_conversation_is_silent(make: Make) {
    let mut pair = connected(make, 1, clean());
    transfer(&mut pair, Side::Near, &messages(10));
    let at_rest = [pair.trace_hash(), pair.path_counters(Side::Near).sent];
    pair.drive_for(Duration::from_secs(3600));
    assert_eq!(at_rest, [pair.trace_hash(), pair.path_counters(Side::Near).sent]);
    assert!(Side::BOTH.iter().all(|&side| closings(&mut pair, side).is_empty()));
}

/// What the endpoints send follows from their seed and what happens to their packets. That it does so in another
/// process too is for [`assert_same_in_another_process`](crate::two_process::assert_same_in_another_process) with
/// [`trace`].
pub fn the_same_seed_gives_the_same_packets(make: Make) {
    assert_eq!(trace(make, 1), trace(make, 1));
    let (near, _) = make(1);
    if near.features().reliable {
        // It reacts to what happens to its packets.
        assert_ne!(trace(make, 1), trace(make, 2));
    }
}

/// As [`the_same_seed_gives_the_same_packets`], for transports whose packets are encrypted: times, sizes and order of
/// packets follow from the seed, and their bytes do not. [`shapes`] is for another process.
pub fn the_same_seed_gives_packets_of_the_same_sizes_at_the_same_times(make: Make) {
    assert_eq!(shapes(make, 1), shapes(make, 1));
    assert_ne!(shapes(make, 1), shapes(make, 2));
}

/// A fingerprint of all packets of a transfer over a bad path.
pub fn trace(make: Make, seed: u64) -> u64 {
    transfer_badly(make, seed).trace_hash()
}

/// A fingerprint of times, sizes and order of all packets of that transfer.
pub fn shapes(make: Make, seed: u64) -> u64 {
    transfer_badly(make, seed).shape_hash()
}

fn transfer_badly(make: Make, seed: u64) -> Pair {
    let mut pair =
        connected(make, seed, Path { loss: 0.05, duplicate: 0.01, reorder: 0.02, corrupt: 0.02, ..clean() });
    transfer(&mut pair, Side::Near, &messages(100));
    pair
}

/// Sends messages from one end as fast as the transport takes them, reads at the other, and runs until all is at rest.
/// Returns what `receive` gave, piece by piece.
///
/// # Panics
/// If the transport never takes all of them.
pub fn transfer(pair: &mut Pair, from: Side, messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
    transfer_with(pair, from, messages, |_| {})
}

fn transfer_with(
    pair: &mut Pair,
    from: Side,
    messages: &[Vec<u8>],
    mut look: impl FnMut(&mut Pair),
) -> Vec<Vec<u8>> {
    let mut waiting = messages.iter().peekable();
    let mut received = Vec::new();
    let mut full = false;
    loop {
        while !full && let Some(message) = waiting.peek() {
            match pair.send(from, message) {
                Ok(()) => drop(waiting.next()),
                Err(SendError::Full) => full = true,
                Err(error) => panic!("a message was refused at {}: {error}", pair.now()),
            }
        }
        received.extend(pair.receive_all(from.other()));
        if !messages.is_empty() && pair.take_event(from, Event::Writable) {
            full = false;
            continue;
        }
        look(pair);
        if !pair.step_until(Time::MAX) {
            break;
        }
    }
    assert_eq!(waiting.count(), 0, "messages that were never taken, by {}", pair.now());
    received
}

/// Sends until the near end is full; what was taken.
fn fill(pair: &mut Pair) -> Vec<Vec<u8>> {
    let mut taken = Vec::new();
    loop {
        let message = vec![taken.len() as u8; 5000];
        match pair.send(Side::Near, &message) {
            Ok(()) => taken.push(message),
            Err(error) => {
                assert_eq!(error, SendError::Full);
                return taken;
            }
        }
        assert!(taken.len() < 100_000, "takes messages without end");
    }
}

/// That the same bytes came as were sent, whatever the borders; says where they first differ. Where messages may overtake
/// each other, that the same messages came.
#[track_caller]
fn assert_same(features: &Features, received: &[Vec<u8>], sent: &[Vec<u8>], when: &str) {
    // A message in one packet overtakes no other, unless the path lets it.
    if features.message_oriented && features.fragmentation && !features.ordered {
        let [received, sent] = [received, sent].map(|messages| {
            let mut messages = messages.to_vec();
            messages.sort();
            messages
        });
        let counts = format!("{} messages received, {} sent", received.len(), sent.len());
        assert!(received == sent, "{counts}, and not the same; {when}");
        return;
    }
    let (received, sent) = (received.concat(), sent.concat());
    let differs = received.iter().zip(&sent).position(|(a, b)| a != b);
    let lengths = format!("{} bytes received, {} sent", received.len(), sent.len());
    assert!(received == sent, "{lengths}, the first difference in what both have at {differs:?}; {when}");
}

fn clean() -> Path {
    Path::with_latency(Duration::from_millis(10))
}

/// A pair that is ready to talk, its first events taken. Nothing goes wrong before that unless the path says so.
fn connected(make: Make, seed: u64, path: Path) -> Pair {
    let (near, far) = make(seed);
    let mut pair = Pair::new(near, far, [path.clone(), path], Seed::new(seed, 0));
    pair.drive();
    for side in Side::BOTH {
        let expected: &[Event] = if pair.features().connection_oriented { &[Event::Connected] } else { &[] };
        assert_eq!(pair.events(side), expected, "{side:?}");
    }
    pair
}

fn closings(pair: &mut Pair, side: Side) -> Vec<CloseReason> {
    let closed = |event| if let Event::Closed(reason) = event { Some(reason) } else { None };
    pair.events(side).into_iter().filter_map(closed).collect()
}

/// Messages of many sizes, none of them like another.
fn messages(count: u32) -> Vec<Vec<u8>> {
    (0..count)
        .map(|n| {
            let mut message = vec![n as u8; 4 + (n * n % 1400) as usize];
            message[..4].copy_from_slice(&n.to_be_bytes());
            message
        })
        .collect()
}
