//! When the relay is woken changes nothing about what it does.

use proptest::prelude::*;
use trunkline_core::{Duration, Port, Time};
use trunkline_network::queue;

use super::{Log, Seen, ipv4, leaving, relay};
use crate::device::Frame;
use crate::relay::PortCounters;

/// A frame on its way to a port.
#[derive(Clone, Debug)]
struct Arrival {
    port: u16,
    frame: Frame,
}

/// What a link did.
#[derive(Debug, PartialEq)]
struct Deeds {
    /// By port, with bytes: marks, errors, duplicates.
    left: [Vec<Frame>; 2],
    arrived: Vec<Seen>,
    dropped: Vec<Seen>,
    counters: Vec<PortCounters>,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (any::<bool>(), 0u64..300_000, 32usize..1600, 0u8..5, 0u8..4, any::<bool>());
    prop::collection::vec(arrival, 1..120).prop_map(|arrivals| {
        let mut at = Time::from_nanos(1);
        let arrival =
            |(number, (back, gap, size, flow, class, together)): (u32, (bool, u64, usize, u8, u8, bool))| {
                if !together {
                    at += Duration::from_nanos(gap);
                }
                Arrival { port: u16::from(back), frame: Frame { at, bytes: ipv4(flow, class, number, size) } }
            };
        (0..).zip(arrivals).map(arrival).collect()
    })
}

/// Lets a relay work that wakes after each of these pauses and takes at most `most` frames per port then.
fn drive(keys: &str, arrivals: &[Arrival], pauses: &[u64], most: usize) -> Deeds {
    let mut relay = relay(keys);
    let log = Log::default();
    relay.set_capture(Some(Box::new(log.clone())));
    let mut waiting: [Vec<Frame>; 2] = Default::default();
    for arrival in arrivals.iter().rev() {
        waiting[usize::from(arrival.port)].push(arrival.frame.clone());
    }
    let mut left: [Vec<Frame>; 2] = Default::default();
    let mut now = Time::ZERO;
    let mut pauses = pauses.iter().cycle();
    while now < Time::from_nanos(120_000_000_000) {
        // At last it is called when it asks for it, and with pauses beyond the end.
        let due = relay.next_event().unwrap_or(Time::MAX);
        now = match waiting.iter().all(Vec::is_empty) {
            true if due == Time::MAX => break,
            true => due.max(now),
            false => now + Duration::from_nanos(*pauses.next().unwrap()),
        };
        for (port, waiting) in (0..).map(Port).zip(&mut waiting) {
            let mut taken = 0;
            while taken < most && waiting.last().is_some_and(|frame| frame.at <= now) {
                relay.take(port, waiting.pop().unwrap());
                taken += 1;
            }
            relay.set_more(port, taken == most);
        }
        relay.run(now);
        for (port, left) in (0..).zip(&mut left) {
            left.extend(leaving(&mut relay, port));
        }
    }
    let seen = log.take();
    let (dropped, others): (Vec<_>, Vec<_>) =
        seen.into_iter().partition(|seen| matches!(seen, Seen::Dropped(..)));
    let arrived = others.into_iter().filter(|seen| matches!(seen, Seen::Arrived(..))).collect();
    Deeds { left, arrived, dropped, counters: relay.counters().ports }
}

/// A slow link with everything that can happen to a packet on it.
fn keys(queue: &str) -> String {
    format!(
        "rate = \"20 Mbit/s\"\ndelay = \"1 ms\"\nloss = \"3 %\"\njitter = {{ kind = \"uniform\", min = \"0 us\", max = \"200 us\" }}\nreorder = \"10 %\"\n\
         reorder-by = \"700 us\"\nduplicate = \"5 %\"\ncorrupt = \"5 %\"\nqueue = {{ kind = \"{queue}\" }}"
    )
}

proptest! {
    #[test]
    fn any_schedule_of_wake_ups_gives_the_same_drops_and_order(
        arrivals in arrivals(),
        pauses in prop::collection::vec(1u64..5_000_000, 1..20),
        most in 1usize..20,
        kind in 0..queue::KINDS.len(),
    ) {
        let keys = keys(queue::KINDS[kind].name);
        let prompt = drive(&keys, &arrivals, &[10_000], usize::MAX);
        let sluggish = drive(&keys, &arrivals, &pauses, most);
        prop_assert_eq!(prompt, sluggish);
    }

    #[test]
    fn a_full_queue_drops_the_same_packets_whenever_it_is_looked_at(
        arrivals in arrivals(),
        pauses in prop::collection::vec(1u64..50_000_000, 1..20),
        most in 1usize..200,
    ) {
        let keys = "rate = \"1 Mbit/s\"\nqueue = { kind = \"fifo\", limit = \"4 KiB\" }";
        let prompt = drive(keys, &arrivals, &[10_000], usize::MAX);
        prop_assert_eq!(&prompt, &drive(keys, &arrivals, &pauses, most));
        let lost: u64 = prompt.counters.iter().flat_map(|port| port.medium.dropped).sum();
        prop_assert_eq!(prompt.dropped.len() as u64, lost);
    }
}
