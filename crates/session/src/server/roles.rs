//! What a server does in sessions by itself.

use trunkline_core::{Duration, Time};

use super::Stop;
use crate::line::{Line as _, Packets};
use crate::session::Session;
use crate::wait::Waiter;

/// Sends every packet back unopened.
pub(super) fn echo(session: &mut Session, stop: &Stop) {
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

pub(super) fn source(_session: &mut Session, _plan: Plan, _stop: &Stop) {}
