//! Whatever the options and the path: a connection opens or ends with a reason, nothing arrives twice or was not sent,
//! and every message has a fate. `PROPTEST_CASES` says how many cases are tried.

use std::collections::BTreeSet;

use proptest::prelude::*;
use trunkline_core::schema::Limit;
use trunkline_core::{Bytes, Duration, Rate, Seed, Time};
use trunkline_testkit::cases::cases;
use trunkline_testkit::pair::{Pair, Path, Side};
use trunkline_transport::dccp::{Ccid, DccpConfig, Encapsulation, WhenFull};
use trunkline_transport::{Close, CloseReason, Event, SendError};

use super::ends;

fn config() -> impl Strategy<Value = DccpConfig> {
    let ccid = prop::sample::select(Ccid::ALL.to_vec());
    let when_full = prop::sample::select(WhenFull::ALL.to_vec());
    let encapsulation = prop::sample::select(vec![Encapsulation::Ip, Encapsulation::Udp]);
    let send_queue = prop_oneof![
        (1..20u64).prop_map(Limit::Packets),
        (1..20_000u64).prop_map(|bytes| Limit::Bytes(Bytes(bytes)))
    ];
    let lifetime = prop::option::of((1..500u64).prop_map(Duration::from_millis));
    // Eight bytes or more are covered: the number of a message.
    let coverage = prop_oneof![Just(0u8), 3..8u8];
    let flags = any::<[bool; 4]>();
    let window = prop_oneof![Just(32u64), 32..3000u64];
    (ccid, when_full, encapsulation, send_queue, lifetime, coverage, flags, window).prop_map(
        |(ccid, when_full, encapsulation, send_queue, lifetime, coverage, flags, sequence_window)| {
            let [short_sequence_numbers, data_checksum, ecn, ndp_count] = flags;
            DccpConfig {
                ccid,
                when_full,
                encapsulation,
                send_queue,
                lifetime,
                checksum_coverage: coverage,
                min_checksum_coverage: coverage.min(3),
                short_sequence_numbers,
                data_checksum,
                ecn,
                ndp_count,
                sequence_window,
                receive_buffer: 20_000,
                ..DccpConfig::default()
            }
        },
    )
}

fn path() -> impl Strategy<Value = Path> {
    let chance = |most: f64| prop_oneof![Just(0.0), 0.0..most];
    let rate = prop::option::of(100_000..10_000_000u64);
    (0..200u64, rate, chance(0.5), chance(0.3), chance(0.3), chance(0.3)).prop_map(
        |(latency, rate, loss, duplicate, reorder, corrupt)| Path {
            rate: rate.map(Rate::from_bits_per_second),
            loss,
            duplicate,
            reorder,
            corrupt,
            ..Path::with_latency(Duration::from_millis(latency))
        },
    )
}

fn closings(events: &[Event]) -> Vec<CloseReason> {
    events
        .iter()
        .filter_map(|event| if let Event::Closed(reason) = event { Some(*reason) } else { None })
        .collect()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_message_arrives_once_or_not_at_all(
        near in config(), far in config(), out in path(), back in path(), seed: u64,
        gaps in prop::collection::vec(0..200u64, 1..60), length in 8..1400usize,
    ) {
        let far = DccpConfig { encapsulation: near.encapsulation, ..far };
        let (near, _) = ends(&near, seed);
        let (_, far) = ends(&far, seed);
        let bad = out.corrupt + out.loss > 0.0 || back.corrupt + back.loss > 0.0;
        let mut pair = Pair::new(near, far, [out, back], Seed::new(seed, 0));
        // It opens or ends with a reason, however long that takes.
        let mut opened = false;
        let mut ended = Vec::new();
        while !opened && ended.is_empty() {
            let goes_on = pair.step_until(Time::MAX);
            let events = pair.events(Side::Near);
            opened = events.contains(&Event::Connected);
            ended = closings(&events);
            prop_assert!(goes_on || opened || !ended.is_empty(), "neither open nor closed");
        }
        prop_assert!(bad || opened, "a good path, and it ended by {:?}", ended);

        let (mut taken, mut received) = (BTreeSet::new(), BTreeSet::new());
        let mut read = |pair: &mut Pair, taken: &BTreeSet<u64>| {
            for message in pair.receive_all(Side::Far) {
                let number = u64::from_be_bytes(message[..8].try_into().expect("eight bytes"));
                assert!(message.len() == length && taken.contains(&number), "{number} was never sent");
                assert!(received.insert(number), "{number} arrived twice");
            }
        };
        for (number, gap) in (0..).zip(&gaps) {
            let mut message = vec![number as u8; length];
            message[..8].copy_from_slice(&u64::to_be_bytes(number));
            match pair.send(Side::Near, &message) {
                Ok(()) => drop(taken.insert(number)),
                Err(SendError::Full | SendError::Closed(_)) => {}
                Err(error @ SendError::TooLarge { .. }) => prop_assert!(false, "{}", error),
            }
            pair.drive_for(Duration::from_millis(*gap));
            read(&mut pair, &taken);
        }
        pair.drive_for(Duration::from_secs(5));
        read(&mut pair, &taken);
        pair.close(Side::Near, Close::Graceful);
        while pair.step_until(Time::MAX) {
            read(&mut pair, &taken);
        }
        ended.extend(closings(&pair.events(Side::Near)));
        prop_assert_eq!(ended.len(), 1, "the near end closed by {:?}", ended);

        let dropped: u64 = ["dropped-newest", "dropped-oldest", "expired", "unsent"]
            .iter()
            .map(|name| pair.counter(Side::Near, name))
            .sum();
        let refused: u64 = ["receive-buffer-full", "coverage-refused", "data-checksum-errors", "not-listening"]
            .iter()
            .map(|name| pair.counter(Side::Far, name))
            .sum();
        let settled = received.len() as u64 + dropped + refused;
        prop_assert!(settled <= taken.len() as u64, "{} fates of {} messages", settled, taken.len());
        if !bad {
            // Not read: what more packets overtook than the window has room for behind it (RFC 4340 section 7.5.1), and
            // what the Close overtook.
            let overtaken = pair.counter(Side::Far, "sequence-invalid") + pair.counter(Side::Far, "strays");
            prop_assert!(settled + overtaken >= taken.len() as u64, "nothing was lost, and some have no fate");
            prop_assert_eq!(ended, [CloseReason::Local]);
        }
    }
}

/// Sends from both ends, `count` messages each, and reads at both; what each end received.
fn talk(pair: &mut Pair, gaps: &[u64], length: usize) -> [BTreeSet<u64>; 2] {
    let mut received = [BTreeSet::new(), BTreeSet::new()];
    let read = |pair: &mut Pair, received: &mut [BTreeSet<u64>; 2]| {
        for side in Side::BOTH {
            for message in pair.receive_all(side) {
                let number = u64::from_be_bytes(message[..8].try_into().expect("eight bytes"));
                assert!(message[8..].iter().all(|&byte| byte == side.other() as u8), "from the wrong end");
                assert!(message.len() == length && received[side as usize].insert(number), "{number} twice");
            }
        }
    };
    for (number, gap) in (0u64..).zip(gaps) {
        for side in Side::BOTH {
            let mut message = vec![side as u8; length];
            message[..8].copy_from_slice(&number.to_be_bytes());
            let _ = pair.send(side, &message);
        }
        pair.drive_for(Duration::from_millis(*gap));
        read(pair, &mut received);
    }
    pair.drive_for(Duration::from_secs(20));
    read(pair, &mut received);
    received
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn both_ends_talk_at_once_and_either_closes(
        near in config(), far in config(), out in path(), back in path(), seed: u64,
        gaps in prop::collection::vec(0..100u64, 1..40), length in 8..1400usize, closer: bool, both: bool,
    ) {
        let far = DccpConfig { encapsulation: near.encapsulation, ..far };
        // Both wait as long as it takes, and drop nothing: on a good path everything arrives.
        let [near, far] = [near, far].map(|config| DccpConfig {
            lifetime: None,
            when_full: WhenFull::Refuse,
            send_queue: Limit::Packets(1000),
            receive_buffer: 1 << 20,
            checksum_coverage: 0,
            ..config
        });
        let bad = [&out, &back].iter().any(|path| path.loss + path.corrupt + path.reorder > 0.0);
        let (near, _) = ends(&near, seed);
        let (_, far) = ends(&far, seed);
        let mut pair = Pair::new(near, far, [out, back], Seed::new(seed, 0));
        pair.drive_for(Duration::from_secs(20));
        let received = talk(&mut pair, &gaps, length);
        if !bad {
            let all: BTreeSet<u64> = (0..gaps.len() as u64).collect();
            prop_assert_eq!(&received, &[all.clone(), all]);
        }
        let first = if closer { Side::Near } else { Side::Far };
        pair.close(first, Close::Graceful);
        if both {
            pair.close(first.other(), Close::Graceful);
        }
        pair.drive();
        let reasons = Side::BOTH.map(|side| closings(&pair.events(side)));
        if !bad {
            let other = if both { CloseReason::Local } else { CloseReason::Peer };
            let expected = if closer { [CloseReason::Local, other] } else { [other, CloseReason::Local] };
            prop_assert_eq!(reasons, expected.map(|reason| vec![reason]));
        } else {
            prop_assert!(reasons[first as usize].len() == 1, "{:?}", reasons);
            prop_assert!(reasons.iter().all(|reasons| reasons.len() <= 1), "{:?}", reasons);
        }
    }
}
