mod damage;

use super::handshake::Cookie;
use super::wire::{Chunk, kind};
use super::*;

const NEAR: Address = Address { host: 0, port: 40_001 };
const FAR: Address = Address { host: 1, port: 40_002 };

/// Gives each end what the other sends, until neither has anything to say; loses what `keep` does not want.
fn exchange(now: Time, ends: &mut [SctpEndpoint; 2], mut keep: impl FnMut(usize, &[u8]) -> bool) {
    let mut packet = Vec::new();
    let mut is_idle = false;
    while !core::mem::replace(&mut is_idle, true) {
        for side in 0..2 {
            ends[side].handle_timeout(now);
            while ends[side].poll_transmit(now, &mut packet).is_some() {
                is_idle = false;
                if keep(side, &packet) {
                    ends[1 - side].handle_packet(now, [NEAR, FAR][side], Ecn::NotCapable, &packet);
                }
            }
        }
    }
}

fn ends(config: &SctpConfig) -> [SctpEndpoint; 2] {
    [SctpEndpoint::connect(NEAR, FAR, config, 1), SctpEndpoint::listen(FAR, config, 2)].map(Result::unwrap)
}

fn events(end: &mut SctpEndpoint) -> Vec<Event> {
    core::iter::from_fn(|| end.poll_event()).collect()
}

fn first_kind(packet: &[u8]) -> u8 {
    Header::verify(packet).unwrap().1.next().unwrap().kind
}

#[test]
fn who_connect_to_each_other_at_once_share_one_association() {
    let config = SctpConfig::default();
    let mut ends =
        [SctpEndpoint::connect(NEAR, FAR, &config, 1), SctpEndpoint::connect(FAR, NEAR, &config, 2)]
            .map(Result::unwrap);
    exchange(Time::ZERO, &mut ends, |_, _| true);
    assert_eq!((ends[0].tag, ends[0].peer_tag), (ends[1].peer_tag, ends[1].tag));
    for end in &mut ends {
        assert_eq!(events(end), [Event::Connected]);
    }
    for side in 0..2 {
        ends[side].send(Time::ZERO, Message::new(b"hello")).unwrap();
        exchange(Time::ZERO, &mut ends, |_, _| true);
        let mut received = Vec::new();
        assert!(ends[1 - side].receive(&mut received).is_some() && received == b"hello");
    }
}

#[test]
fn a_peer_that_begins_anew_ends_what_was_there_and_is_told_so() {
    let config = SctpConfig::default();
    let [near, far] = ends(&config);
    let mut ends = [near, far];
    exchange(Time::ZERO, &mut ends, |_, _| true);
    let [_, far] = ends;
    let mut ends = [SctpEndpoint::connect(NEAR, FAR, &config, 3).unwrap(), far];
    exchange(Time::ZERO, &mut ends, |_, _| true);
    assert_eq!(events(&mut ends[1]), [Event::Connected, Event::Closed(CloseReason::Reset)]);
    assert_eq!(events(&mut ends[0]), [Event::Closed(CloseReason::Reset)]);
}

#[test]
fn a_cookie_that_has_become_stale_is_asked_for_again() {
    let mut ends = ends(&SctpConfig { timeout: None, ..SctpConfig::default() });
    exchange(Time::ZERO, &mut ends, |_, packet| first_kind(packet) != kind::COOKIE_ECHO);
    let mut kinds = Vec::new();
    exchange(Time::ZERO + Duration::from_secs(62), &mut ends, |_, packet| {
        kinds.push(first_kind(packet));
        true
    });
    use kind::*;
    assert_eq!(kinds, [COOKIE_ECHO, ERROR, INIT, INIT_ACK, COOKIE_ECHO, COOKIE_ACK]);
    assert_eq!(events(&mut ends[0]), [Event::Connected]);
}

#[test]
fn more_may_be_given_up_at_once_than_one_packet_can_tell() {
    let reliability = Reliability::Retransmissions(0);
    let config = SctpConfig { streams: 700, reliability, max_packet: 576, ..SctpConfig::default() };
    let mut ends = ends(&config);
    let mut now = Time::ZERO;
    exchange(now, &mut ends, |_, _| true);
    // On every stream one message that is lost, then one that arrives.
    for (count, arrives) in [(700, false), (700, true)] {
        let mut sent = 0;
        while sent < count || !ends[0].sender.is_empty() {
            // The timer of acknowledgements comes first.
            now += Duration::from_millis(500);
            while sent < count && ends[0].send(now, Message::new(&[1; 3])).is_ok() {
                sent += 1;
            }
            exchange(now, &mut ends, |_, packet| arrives || first_kind(packet) != kind::DATA);
        }
    }
    let mut received = Vec::new();
    // What goes along with word of that arrives.
    let (received, given_up) =
        (core::iter::from_fn(|| ends[1].receive(&mut received)).count(), ends[0].sender.given_up);
    assert_eq!(received as u64 + given_up, 1400);
    assert!(given_up > 300, "{given_up}");
}

#[test]
fn a_shutdown_acknowledges_what_it_says() {
    let (now, ecn, config) = (Time::ZERO, Ecn::NotCapable, SctpConfig::default());
    let [mut near, mut far] = ends(&config);
    let (mut packet, mut tag) = (Vec::new(), 0);
    while near.poll_transmit(now, &mut packet).is_some() {
        far.handle_packet(now, NEAR, ecn, &packet);
        while far.poll_transmit(now, &mut packet).is_some() {
            tag = Header::verify(&packet).unwrap().0.tag;
            near.handle_packet(now, FAR, ecn, &packet);
        }
    }
    near.send(now, Message::new(b"the last one")).unwrap();
    near.poll_transmit(now, &mut packet).unwrap();
    let last = Header::verify(&packet).unwrap().1.last().unwrap();
    assert_eq!(last.kind, kind::DATA);
    let shutdown = wire::Chunk { kind: kind::SHUTDOWN, flags: 0, value: &last.value[..4] };
    near.handle_packet(now, FAR, ecn, &wire::packet(FAR.port, NEAR.port, tag, shutdown));
    near.poll_transmit(now, &mut packet).unwrap();
    assert_eq!(Header::verify(&packet).unwrap().1.next().unwrap().kind, kind::SHUTDOWN_ACK);
}

/// Gives an end a packet with these chunks, as its peer would send it; says what it answers.
fn inject(now: Time, end: &mut SctpEndpoint, chunks: &[Chunk<'_>]) -> Vec<Vec<u8>> {
    let (from, to) = if end.local == FAR { (NEAR, FAR) } else { (FAR, NEAR) };
    let mut packet = Vec::new();
    wire::begin(&mut packet, from.port, to.port, end.tag);
    for chunk in chunks {
        wire::put(&mut packet, chunk.kind, chunk.flags, chunk.value, &[]);
    }
    wire::seal(&mut packet);
    end.handle_packet(now, from, Ecn::NotCapable, &packet);
    core::iter::from_fn(|| end.poll_transmit(now, &mut packet).map(|_| packet.clone())).collect()
}

/// The value of a DATA chunk that comes so many after the last one received.
fn data(end: &SctpEndpoint, ahead: u32, stream: u16, bytes: &[u8]) -> Vec<u8> {
    let tsn = end.receiver.cumulative().wrapping_add(ahead);
    [&tsn.to_be_bytes()[..], &stream.to_be_bytes(), &[0; 6], bytes].concat()
}

#[test]
fn a_stream_that_was_not_agreed_on_is_acknowledged_and_thrown_away() {
    let (now, mut ends) = (Time::ZERO, ends(&SctpConfig { streams: 2, ..SctpConfig::default() }));
    exchange(now, &mut ends, |_, _| true);
    let far = &mut ends[1];
    for (stream, is_agreed) in [(1, true), (2, false), (u16::MAX, false)] {
        let (value, before) = (data(far, 1, stream, b"data"), far.receiver.cumulative());
        let answers = inject(now, far, &[Chunk { kind: kind::DATA, flags: 3, value: &value }]);
        assert_eq!(far.receiver.cumulative(), before.wrapping_add(1));
        assert_eq!(answers.iter().any(|answer| first_kind(answer) == kind::ERROR), !is_agreed);
        assert_eq!(far.receive(&mut Vec::new()).is_some(), is_agreed, "stream {stream}");
    }
}

/// RFC 9260 sections 3.3.4 and 6.2: each copy is reported once, behind the gap blocks.
#[test]
fn a_sack_reports_what_came_again() {
    let (now, mut ends) = (Time::ZERO, ends(&SctpConfig::default()));
    exchange(now, &mut ends, |_, _| true);
    let far = &mut ends[1];
    let (first, third) = (data(far, 1, 0, b"first"), data(far, 3, 0, b"third"));
    let chunk = |value| Chunk { kind: kind::DATA, flags: 7, value };
    let tsn = |value: &[u8]| wire::u32_at(value, 0).unwrap();
    let answers =
        inject(now, far, &[chunk(&first), chunk(&third), chunk(&third), chunk(&first), chunk(&third)]);
    let sack = Header::verify(&answers[0]).unwrap().1.next().unwrap();
    assert_eq!(sack.value[8..16], [0, 1, 0, 3, 0, 2, 0, 2], "one gap block, three duplicates");
    let duplicates: Vec<_> = sack.value[16..].chunks(4).map(tsn).collect();
    assert_eq!(duplicates, [tsn(&third), tsn(&first), tsn(&third)]);
    let answers = inject(now, far, &[chunk(&first)]);
    let sack = Header::verify(&answers[0]).unwrap().1.next().unwrap();
    assert_eq!((sack.value[8..12].to_vec(), tsn(&sack.value[16..])), (vec![0, 1, 0, 1], tsn(&first)));
    let second = data(far, 1, 0, b"second");
    let answers = inject(now, far, &[Chunk { flags: 15, ..chunk(&second) }]);
    let sack = Header::verify(&answers[0]).unwrap().1.next().unwrap();
    assert_eq!(sack.value.len(), 12, "nothing is reported twice");
}

#[test]
fn empty_messages_fill_buffers_as_others_do() {
    let config = SctpConfig { window: 8 << 10, send_buffer: 100, ..SctpConfig::default() };
    let mut ends = ends(&config);
    let mut now = Time::ZERO;
    exchange(now, &mut ends, |_, _| true);
    for _ in 0..100 {
        ends[0].send(now, Message::new(&[])).unwrap();
    }
    assert_eq!(ends[0].send(now, Message::new(&[])), Err(SendError::Full));
    // Nobody reads.
    for _ in 0..200 {
        while ends[0].send(now, Message::new(&[])).is_ok() {}
        now += Duration::from_millis(300);
        exchange(now, &mut ends, |_, _| true);
    }
    assert!((8192..8400).contains(&ends[1].receiver.readable()), "{}", ends[1].receiver.readable());
    let mut received = Vec::new();
    assert_eq!(ends[1].receive(&mut received).map(|received| received.length), Some(0));
}

#[test]
fn headers_count_in_the_congestion_window() {
    let mut ends = ends(&SctpConfig::default());
    exchange(Time::ZERO, &mut ends, |_, _| true);
    for _ in 0..10_000 {
        ends[0].send(Time::ZERO, Message::new(&[1])).unwrap();
    }
    let (mut bytes, mut packet) = (0, Vec::new());
    while ends[0].poll_transmit(Time::ZERO, &mut packet).is_some() {
        bytes += packet.len();
    }
    assert!((4404..4404 + 1472).contains(&bytes), "{bytes}");
}

#[test]
fn no_message_is_larger_than_the_peer_can_put_together() {
    let mut ends = [
        SctpEndpoint::connect(NEAR, FAR, &SctpConfig::default(), 1).unwrap(),
        SctpEndpoint::listen(FAR, &SctpConfig { window: 8 << 10, ..SctpConfig::default() }, 2).unwrap(),
    ];
    exchange(Time::ZERO, &mut ends, |_, _| true);
    let refused = ends[0].send(Time::ZERO, Message::new(&[0; 4097]));
    assert_eq!(refused, Err(SendError::TooLarge { limit: 4096 }));
    ends[0].send(Time::ZERO, Message::new(&[0; 4096])).unwrap();
}

#[test]
fn what_was_given_up_leaves_the_window_though_nothing_of_it_is_missing() {
    let (now, config) = (Time::ZERO, SctpConfig::default());
    let mut ends = ends(&config);
    exchange(now, &mut ends, |_, _| true);
    let far = &mut ends[1];
    let beginning = data(far, 1, 0, &[0; 1000]);
    inject(now, far, &[Chunk { kind: kind::DATA, flags: 2, value: &beginning }]);
    let to = far.receiver.cumulative().to_be_bytes();
    let answers = inject(now, far, &[Chunk { kind: kind::FORWARD_TSN, flags: 0, value: &to }]);
    let sack = Header::verify(&answers[0]).unwrap().1.next().unwrap();
    assert_eq!((sack.kind, wire::u32_at(sack.value, 4)), (kind::SACK, Some(config.window as u32)));
}

#[test]
fn numbers_may_wrap() {
    let config = SctpConfig { streams: 1, ..SctpConfig::default() };
    let mut ends = ends(&config);
    let mut now = Time::ZERO;
    exchange(now, &mut ends, |_, _| true);
    let first = u32::MAX - 30_000;
    ends[0].sender = Sender::new(&config, first);
    ends[0].sender.agree(256 << 10, 1, true);
    ends[1].receiver = Receiver::new(config.window, first, 1);
    let (mut sent, mut received, mut packets) = (0u32, Vec::new(), 0);
    while sent < 70_000 || !ends[0].sender.is_empty() {
        while sent < 70_000 && ends[0].send(now, Message::new(&sent.to_be_bytes())).is_ok() {
            sent += 1;
        }
        now += Duration::from_millis(10);
        exchange(now, &mut ends, |_, _| {
            packets += 1;
            packets % 100 != 0
        });
        while ends[1].receive(&mut received).is_some() {}
    }
    assert!(received.chunks(4).map(|n| u32::from_be_bytes(n.try_into().unwrap())).eq(0..70_000));
}

/// RFC 9260 section 7.2.4, step 5: if the repetition is lost too, the timer is waited for.
#[test]
fn a_chunk_is_fast_retransmitted_once() {
    let mut ends = ends(&SctpConfig::default());
    let mut now = Time::ZERO;
    exchange(now, &mut ends, |_, _| true);
    let (lost, mut losses) = (ends[1].receiver.cumulative().wrapping_add(5), 0);
    let mut receive = |now, ends: &mut [SctpEndpoint; 2], most| {
        exchange(now, ends, |_, packet| {
            let is_lost =
                |chunk: Chunk<'_>| chunk.kind == kind::DATA && wire::u32_at(chunk.value, 0) == Some(lost);
            let is_here = Header::verify(packet).unwrap().1.any(is_lost);
            losses += i32::from(is_here);
            !is_here || losses > most
        });
        losses
    };
    for n in 0..100 {
        now += Duration::from_millis(1);
        ends[0].send(now, Message::new(&[n; 1000])).unwrap();
        receive(now, &mut ends, 2);
    }
    assert_eq!(receive(now + Duration::from_millis(800), &mut ends, 2), 2);
    assert_eq!(receive(now + Duration::from_secs(1), &mut ends, 2), 3);
    let mut received = Vec::new();
    while ends[1].receive(&mut received).is_some() {}
    assert!(received.iter().step_by(1000).copied().eq(0..100));
}

#[test]
fn an_association_begun_from_both_ends_may_begin_with_the_others_request() {
    let config = SctpConfig::default();
    let mut ends =
        [SctpEndpoint::connect(NEAR, FAR, &config, 1), SctpEndpoint::connect(FAR, NEAR, &config, 2)]
            .map(Result::unwrap);
    let mut packet = Vec::new();
    ends[0].poll_transmit(Time::ZERO, &mut packet).unwrap();
    ends[1].handle_packet(Time::ZERO, NEAR, Ecn::NotCapable, &packet);
    // The answer that it makes with the tag of its own request.
    let mut tags = Vec::new();
    while ends[1].poll_transmit(Time::ZERO, &mut packet).is_some() {
        let (_, mut chunks) = Header::verify(&packet).unwrap();
        tags.push(wire::u32_at(chunks.next().unwrap().value, 0));
    }
    assert_eq!(tags, [Some(ends[1].tag); 2]);
}

#[test]
fn a_stale_cookie_ends_nothing() {
    let mut ends = ends(&SctpConfig::default());
    exchange(Time::ZERO, &mut ends, |_, _| true);
    let far = &mut ends[1];
    events(far);
    let cookie = Cookie {
        tag: 8,
        tsn: 1,
        peer_tag: 9,
        peer_tsn: 1,
        peer_window: 9000,
        peer_sends_on: 1,
        streams: 1,
        can_forward: true,
        made: Time::ZERO,
    };
    let value = cookie.seal(far.key, NEAR);
    let echo = Chunk { kind: kind::COOKIE_ECHO, flags: 0, value: &value };
    let now = Time::ZERO + Duration::from_secs(61);
    far.handle_packet(now, NEAR, Ecn::NotCapable, &wire::packet(NEAR.port, FAR.port, 8, echo));
    let mut packet = Vec::new();
    far.poll_transmit(now, &mut packet).unwrap();
    assert_eq!((first_kind(&packet), events(far)), (kind::ERROR, vec![]));
}

#[test]
fn a_peer_that_still_ends_an_earlier_association_is_helped_to() {
    let mut near = SctpEndpoint::connect(NEAR, FAR, &SctpConfig::default(), 1).unwrap();
    let mut packet = Vec::new();
    near.poll_transmit(Time::ZERO, &mut packet).unwrap();
    let chunk = Chunk { kind: kind::SHUTDOWN_ACK, flags: 0, value: &[] };
    near.handle_packet(Time::ZERO, FAR, Ecn::NotCapable, &wire::packet(FAR.port, NEAR.port, 77, chunk));
    near.poll_transmit(Time::ZERO, &mut packet).unwrap();
    let (header, mut chunks) = Header::verify(&packet).unwrap();
    let complete = Chunk { kind: kind::SHUTDOWN_COMPLETE, flags: wire::TAG_REFLECTED, value: &[] };
    assert_eq!((header.tag, chunks.next()), (77, Some(complete)));
}

#[test]
fn one_packet_has_few_answers() {
    let mut ends = ends(&SctpConfig::default());
    exchange(Time::ZERO, &mut ends, |_, _| true);
    for kind in [kind::HEARTBEAT, 0xC1] {
        let chunks = [Chunk { kind, flags: 0, value: &[] }; 300];
        let answers = inject(Time::ZERO, &mut ends[1], &chunks).len();
        assert!((1..=16).contains(&answers), "{answers}");
    }
}
