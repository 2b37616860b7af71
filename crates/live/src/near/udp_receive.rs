//! One thread receives what the far end reflects of all UDP flows.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;

use trunkline_core::{Duration, Time};
use trunkline_flows::{Answer, Delivery, Listener, ListenerSpec, Side};
use trunkline_io::clock::Stamps;
use trunkline_io::poll::Interest;
use trunkline_io::udp::{ReceiveBatch, Wait};
use trunkline_io::{Poller, pace};
use trunkline_transport::framing::decode_message;

use super::udp_send::SENDER;
use super::{Answers, Common, LOOK};
use crate::events::Outbox;
use crate::options::Receive;
use crate::protocol::Open;

/// As many datagrams are taken from the kernel at once.
const BATCH: usize = 32;

/// Receives until the run is over, in the way that the terms say.
pub(crate) fn receive(
    sockets: &[UdpSocket],
    flows: &[ListenerSpec],
    terms: &Open,
    common: &Common<'_>,
    answers: &Answers,
) {
    let mut receiver = Receiver {
        common,
        listener: listener(flows),
        answers,
        back: Vec::new(),
        batch: ReceiveBatch::new(BATCH, terms.largest as usize),
        stamps: terms.kernel_stamps.then(Stamps::new),
        rest: terms.rest,
        outbox: common.arrivals(SENDER),
    };
    pace::reduce_timer_slack();
    match (sockets, terms.receive) {
        ([one], Receive::Blocking) => receiver.block(one),
        (_, Receive::Blocking) => receiver.wait_for_any(sockets),
        (_, Receive::Polling) => receiver.poll(sockets),
    }
}

struct Receiver<'r> {
    common: &'r Common<'r>,
    listener: Listener,
    answers: &'r Answers,
    back: Vec<Answer>,
    batch: ReceiveBatch,
    /// Brings the kernel's stamps to our clock, if they are to be used.
    stamps: Option<Stamps>,
    /// How long to rest after each batch.
    rest: Duration,
    outbox: Outbox,
}

impl Receiver<'_> {
    fn block(&mut self, socket: &UdpSocket) {
        while !self.common.stage.is_over() {
            self.take(socket, Wait::Block);
            self.outbox.tick(self.common.clock.now());
        }
    }

    fn wait_for_any(&mut self, sockets: &[UdpSocket]) {
        let mut poller = Poller::new(sockets.iter().map(|socket| (socket.as_fd(), Interest::Read)));
        while !self.common.stage.is_over() {
            if poller.wait(LOOK).is_ok() {
                for place in poller.ready() {
                    while self.take(&sockets[place], Wait::Poll) == BATCH {}
                }
            }
            if !self.rest.is_zero() {
                pace::sleep(self.rest);
            }
            self.outbox.tick(self.common.clock.now());
        }
    }

    fn poll(&mut self, sockets: &[UdpSocket]) {
        while !self.common.stage.is_over() {
            for _ in 0..256 {
                for socket in sockets {
                    self.take(socket, Wait::Poll);
                }
            }
            self.outbox.tick(self.common.clock.now());
        }
    }

    /// Takes one batch from a socket, and says how many datagrams it had.
    fn take(&mut self, socket: &UdpSocket, wait: Wait) -> usize {
        let count = match self.batch.receive(socket, wait) {
            Ok(0) => return 0,
            Ok(count) => count,
            // An earlier datagram of ours found nobody: the sender hears of it too, or nobody needs to.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return 0,
            Err(_) => {
                pace::sleep(LOOK);
                return 0;
            }
        };
        if let Some(stamps) = &mut self.stamps {
            stamps.look(count < BATCH);
        }
        let now = self.common.clock.now();
        for place in 0..count {
            let stamped = self.stamps.as_ref().and_then(|stamps| stamps.bring(self.batch.stamp(place)?));
            let at = stamped.map_or(now, |raw| self.common.clock.from_raw(raw).min(now));
            self.take_one(place, at);
        }
        self.answers.give(&mut self.back);
        self.outbox.tick(now);
        count
    }

    fn take_one(&mut self, place: usize, at: Time) {
        let datagram = self.batch.datagram(place);
        let Ok((header, _)) = decode_message(datagram, self.common.key) else {
            return self.listener.unmatched(at, datagram.len(), &mut self.outbox);
        };
        let delivery = self.listener.deliver(at, &header, datagram, &mut self.outbox);
        if let Delivery::Answered(answer) = delivery {
            self.back.push(answer);
        }
    }
}

/// A listener on sockets that may bring messages of any of these flows.
fn listener(flows: &[ListenerSpec]) -> Listener {
    let first = flows.iter().map(|flow| flow.first).min().unwrap_or(0);
    let end = flows.iter().map(|flow| flow.first + flow.members).max().unwrap_or(0);
    Listener::new(Side::Source, flows.into(), first..end)
}
