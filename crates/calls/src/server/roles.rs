//! What a server does in sessions by itself.

use trunkline_core::{Duration, Time};

use super::Stop;
use crate::line::{Line as _, Packets};
use crate::probe::Probe;
use crate::session::Session;
use crate::wait::Waiter;

/// Sends every packet back unopened.
pub(crate) fn echo(session: &mut Session, stop: &Stop) {
    // What it takes longer is measured as the network's; where it may not, it is as other programs.
    let _ = trunkline_io::process::run_in_real_time(crate::program::PRIORITY);
    let mut waiter = Waiter::default();
    let mut packets = Packets::default();
    while !stop.is_stopped() {
        waiter.wait(session, Some(stop.wakeup()), Time::MAX);
        packets.clear();
        let turned = session.turn(crate::now(), &mut |_, packet| packets.push(packet));
        if turned.is_err() || session.send_all(crate::now(), &packets).is_err() {
            return;
        }
    }
}

/// Takes packets; the line counts them.
pub(super) fn sink(session: &mut Session, stop: &Stop) {
    let mut waiter = Waiter::default();
    while !stop.is_stopped() {
        waiter.wait(session, Some(stop.wakeup()), Time::MAX);
        if session.turn(crate::now(), &mut |_, _| {}).is_err() {
            return;
        }
    }
}

/// What a source sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Bits per second.
    pub(super) rate: u64,
    /// Bytes of a packet.
    pub(super) packet: usize,
    pub(super) lasting: Duration,
}

/// Sends probes at the rate asked for, for as long as asked for. What the transport does not
/// take in time is lost: a source does not catch up on more than a burst.
pub(super) fn source(session: &mut Session, plan: Plan, stop: &Stop) {
    const BURST: u64 = 64;
    let interval = Duration::from_nanos(plan.interval());
    let start = crate::now();
    let (mut due, end) = (start, start + plan.lasting);
    let (mut sequence, mut waiter) = (0, Waiter::default());
    let (mut packet, mut packets) = (Vec::new(), Packets::default());
    while !stop.is_stopped() && due < end {
        waiter.wait(session, Some(stop.wakeup()), due);
        if session.turn(crate::now(), &mut |_, _| {}).is_err() {
            return;
        }
        let now = crate::now();
        let overdue = now.since(due).as_nanos() / interval.as_nanos();
        due += Duration::from_nanos(interval.as_nanos() * overdue.saturating_sub(BURST));
        packets.clear();
        while due <= now && due < end {
            Probe { sequence, sent: now }.write(plan.packet, &mut packet);
            packets.push(&packet);
            (sequence, due) = (sequence.wrapping_add(1), due + interval);
        }
        if session.send_all(now, &packets).is_err() {
            return;
        }
    }
}

impl Plan {
    /// Nanoseconds from packet to packet, at least one.
    fn interval(&self) -> u64 {
        let nanos = self.packet as u128 * 8 * 1_000_000_000 / u128::from(self.rate.max(1));
        u64::try_from(nanos).unwrap_or(u64::MAX).max(1)
    }
}
