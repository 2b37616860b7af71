//! The far end's UDP socket: the reflector and the sink. No locks and no allocation per datagram.

use std::net::UdpSocket;
use std::sync::atomic::Ordering;

use trunkline_core::Duration;
use trunkline_flows::{Delivery, Listener, Reply};
use trunkline_io::clock::Stamps;
use trunkline_io::pace;
use trunkline_io::udp::{ReceiveBatch, Wait};
use trunkline_transport::framing::{decode_message, reflect_in_place};

use super::{Reporter, Session};
use crate::ceiling::Turn;
use crate::options::Receive;

/// As many datagrams are taken from the kernel at once; one bit of a word each.
const BATCH: usize = 64;

/// How it receives.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) receive: Receive,
    pub(super) kernel_stamps: bool,
    /// How long to rest after each batch.
    pub(super) rest: Duration,
}

/// Receives until the session is over.
pub(super) fn run(socket: &UdpSocket, how: How, session: &Session, mut reporter: Reporter) {
    let mut batch = ReceiveBatch::new(BATCH, session.largest.min(65_507));
    let mut stamps = how.kernel_stamps.then(Stamps::new);
    let wait = match how.receive {
        Receive::Blocking => Wait::Block,
        Receive::Polling => Wait::Poll,
    };
    pace::reduce_timer_slack();
    let mut idle = 0u32;
    let turns = (0..session.flows.len()).map(|flow| session.turn(flow)).collect();
    let mut back = Back { listener: session.listener(), answered: Vec::new(), turns };
    while !session.is_over() {
        // An error here is of an answer that nobody wanted, or of the moment.
        let count = batch.receive(socket, wait).unwrap_or(0);
        if count > 0 {
            idle = 0;
            take(&mut batch, count, socket, stamps.as_mut(), session, &mut reporter, &mut back);
            // A full batch means that more is waiting.
            if !how.rest.is_zero() && count < BATCH {
                pace::sleep(how.rest);
            }
        } else {
            idle = idle.wrapping_add(1);
            let looks = wait == Wait::Block || idle.is_multiple_of(1 << 12);
            if looks && let Some(clock) = session.clock() {
                reporter.tick(clock.now());
            }
        }
    }
    // What the kernel had before the end still counts.
    for _ in 0..1024 {
        let Ok(count @ 1..) = batch.receive(socket, Wait::Poll) else { return };
        take(&mut batch, count, socket, stamps.as_mut(), session, &mut reporter, &mut back);
    }
}

/// What is sent back.
struct Back {
    listener: Listener,
    answered: Vec<u8>,
    /// By flow: what its owner allows. One socket serves all flows, so nothing can wait here.
    turns: Vec<Option<Turn>>,
}

impl Back {
    /// Whether so much may be sent back to a member of this flow.
    #[inline]
    fn passes(&mut self, flow: usize, bytes: usize) -> bool {
        self.turns[flow].as_mut().is_none_or(|turn| turn.passes(bytes))
    }
}

/// Reflects, answers or notes every datagram of a batch.
#[inline]
fn take(
    batch: &mut ReceiveBatch,
    count: usize,
    socket: &UdpSocket,
    mut stamps: Option<&mut Stamps>,
    session: &Session,
    reporter: &mut Reporter,
    back: &mut Back,
) {
    // Before the run has a time, nothing can be of this run.
    let Some(clock) = session.clock() else { return };
    if let Some(stamps) = &mut stamps {
        stamps.look(count < BATCH);
    }
    let now = clock.now();
    let mut reflected = 0u64;
    for place in 0..count {
        let from_peer = batch.source(place).is_some_and(|source| source.ip() == session.peer);
        let datagram = batch.datagram(place);
        let message = decode_message(datagram, session.key).ok().filter(|_| from_peer);
        let Some((header, _)) = message else {
            // Never answered.
            back.listener.unmatched(now, datagram.len(), reporter);
            continue;
        };
        let stamped = stamps.as_ref().and_then(|stamps| stamps.bring(batch.stamp(place)?));
        let at = stamped.map_or(now, |raw| clock.from_raw(raw).min(now));
        let Delivery::Reply(flow, reply) = back.listener.deliver(at, &header, datagram, reporter) else {
            continue;
        };
        if !back.passes(session.place_of(flow.0).unwrap_or(0), reply.length(&header)) {
            session.unreflected.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        match (reply, batch.source(place)) {
            (Reply::Whole, _) => {
                reflected |= 1 << place;
                reflect_in_place(&header, at, batch.datagram_mut(place));
            }
            (Reply::Bytes(..), Some(source)) => {
                // A source waits for each, so there are few at once: they leave one by one.
                back.answered.clear();
                Listener::reply(at, &header, (flow, reply), &[], &mut back.answered);
                if socket.send_to(&back.answered, source).is_err() {
                    session.unreflected.fetch_add(1, Ordering::Relaxed);
                }
            }
            (Reply::Bytes(..), None) => {}
        }
    }
    if reflected != 0 {
        let sent = batch.reply(socket, |place| reflected & (1 << place) != 0).unwrap_or(0);
        let missing = u64::from(reflected.count_ones()) - sent as u64;
        if missing > 0 {
            session.unreflected.fetch_add(missing, Ordering::Relaxed);
        }
    }
    reporter.tick(now);
}
