//! The judge of the ring in tests: a token that is carried from station to station, hop by hop, with the timers and
//! counters of the standard written out. Slow, simple, and without a line of the ring's own code.

use std::collections::VecDeque;

/// A ring; times are nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) stations: Vec<Walker>,
    pub(super) ttrt: u64,
    pub(super) nanos_per_byte: u64,
}

/// A station.
#[derive(Clone, Debug)]
pub(super) struct Walker {
    pub(super) is_synchronous: bool,
    pub(super) allocation: Option<u64>,
    pub(super) frames_per_token: Option<u64>,
    /// To the next station.
    pub(super) hop: u64,
}

/// A packet that joins its station's queue.
#[derive(Clone, Debug)]
pub(super) struct Joining {
    pub(super) at: u64,
    pub(super) from: usize,
    /// `None`: all others.
    pub(super) to: Option<usize>,
    /// Bytes of the whole frame on the ring.
    pub(super) frame: u64,
}

/// What happened.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Walk {
    /// Packet, station and time, in the order of sending.
    pub(super) deliveries: Vec<(usize, usize, u64)>,
    /// Times at which the token came to the first station.
    pub(super) rounds: Vec<u64>,
    pub(super) late_max: u64,
}

#[derive(Clone, Default)]
struct State {
    queue: VecDeque<usize>,
    trt_expires: u64,
    late_counter: u64,
}

/// Carries the token round until `until`.
pub(super) fn walk(plan: &Plan, joining: &[Joining], until: u64) -> Walk {
    let stations = plan.stations.len();
    let whole: u64 = plan.stations.iter().map(|station| station.hop).sum();
    let mut states = vec![State::default(); stations];
    let mut distance = 0;
    for (state, station) in states.iter_mut().zip(&plan.stations) {
        // Seen last on the idle rotation before time zero, by the first station at zero itself.
        state.trt_expires = plan.ttrt + distance - if distance > 0 { whole } else { 0 };
        distance += station.hop;
    }
    let (mut walk, mut at, mut now, mut joined) = (Walk::default(), 0, 0, 0);
    loop {
        now += plan.stations[at].hop;
        at = (at + 1) % stations;
        if now > until {
            return walk;
        }
        if at == 0 {
            walk.rounds.push(now);
        }
        let mut join = |states: &mut Vec<State>, now: u64| {
            // The token leaves before a packet of the same moment joins.
            while joined < joining.len() && joining[joined].at < now {
                states[joining[joined].from].queue.push_back(joined);
                joined += 1;
            }
        };
        let state = &mut states[at];
        while state.trt_expires <= now {
            state.trt_expires += plan.ttrt;
            state.late_counter += 1;
        }
        walk.late_max = walk.late_max.max(state.late_counter);
        let mut tht = 0;
        if state.late_counter == 0 {
            tht = state.trt_expires - now;
            state.trt_expires = now + plan.ttrt;
        }
        state.late_counter = 0;
        let (mut frames, mut sending) = (0, 0);
        loop {
            join(&mut states, now);
            let Some(&packet) = states[at].queue.front() else { break };
            let (station, frame) = (&plan.stations[at], joining[packet].frame * plan.nanos_per_byte);
            let may = match station.is_synchronous {
                true => station.allocation.is_none_or(|allocation| sending + frame <= allocation),
                false => sending < tht,
            };
            if !may || Some(frames) == station.frames_per_token {
                break;
            }
            states[at].queue.pop_front();
            frames += 1;
            sending += frame;
            now += frame;
            let receivers = match joining[packet].to {
                Some(to) => to..to + 1,
                None => 0..stations,
            };
            // In the order of the ring.
            for hops in 1..stations {
                let to = (at + hops) % stations;
                if receivers.contains(&to) {
                    let way: u64 = (0..hops).map(|hop| plan.stations[(at + hop) % stations].hop).sum();
                    walk.deliveries.push((packet, to, now + way));
                }
            }
        }
        if frames > 0 {
            now += 11 * plan.nanos_per_byte;
        }
    }
}
