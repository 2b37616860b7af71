//! The two half-connections' congestion control, whichever was agreed on.

use trunkline_core::{Duration, Time};

use super::config::Ccid;
use super::feedback::Feedback;
use super::loss::Arrival;
use super::rtt::RoundTrip;
use super::sent::Sent;
use super::seq::Seq;
use super::{ccid2, tfrc_receiver, tfrc_sender};

/// The sender of the half-connection that begins here.
#[derive(Clone, Debug)]
pub(super) enum Sender {
    TcpLike(ccid2::Sender),
    Tfrc(Box<tfrc_sender::Sender>),
}

/// The receiver of the half-connection that ends here.
#[derive(Clone, Debug)]
pub(super) enum Receiver {
    TcpLike(ccid2::Receiver),
    Tfrc(Box<tfrc_receiver::Receiver>),
}

/// When a data packet may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    Now,
    At(Time),
    /// After some acknowledgement or timeout.
    Later,
}

impl Sender {
    /// `max_message` is the most that a data packet carries.
    pub(super) fn new(ccid: Ccid, max_message: usize, rtt: Option<Duration>) -> Sender {
        match ccid {
            Ccid::TcpLike => Sender::TcpLike(ccid2::Sender::new(max_message)),
            Ccid::Tfrc | Ccid::TfrcSmallPackets => {
                Sender::Tfrc(Box::new(tfrc_sender::Sender::new(ccid == Ccid::TfrcSmallPackets, rtt)))
            }
        }
    }

    pub(super) fn release(&self, now: Time) -> Release {
        match self {
            Sender::TcpLike(sender) if sender.may_send() => Release::Now,
            Sender::TcpLike(_) => Release::Later,
            Sender::Tfrc(sender) => match sender.allowed_at() {
                at if at <= now => Release::Now,
                at => Release::At(at),
            },
        }
    }

    /// CCVal of a data packet that goes now.
    pub(super) fn ccval(&mut self, now: Time) -> u8 {
        match self {
            Sender::TcpLike(_) => 0,
            Sender::Tfrc(sender) => sender.counter(now),
        }
    }

    pub(super) fn on_sent(&mut self, now: Time, number: Seq, length: usize, rtt: &RoundTrip) {
        match self {
            Sender::TcpLike(sender) => sender.on_sent(now, rtt),
            Sender::Tfrc(sender) => sender.on_sent(now, number, length),
        }
    }

    pub(super) fn on_forgotten(&mut self) {
        if let Sender::TcpLike(sender) = self {
            sender.on_forgotten();
        }
    }

    pub(super) fn on_feedback(
        &mut self,
        now: Time,
        feedback: &Feedback<'_>,
        sent: &mut Sent,
        newest_sent: Seq,
        rtt: &RoundTrip,
    ) {
        match self {
            Sender::TcpLike(sender) => sender.on_feedback(now, feedback, sent, newest_sent, rtt),
            Sender::Tfrc(sender) => sender.on_feedback(now, feedback, sent),
        }
    }

    /// A packet without data of the peer was lost or marked.
    pub(super) fn on_ack_congestion(&mut self) {
        if let Sender::TcpLike(sender) = self {
            sender.on_ack_congestion();
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        match self {
            Sender::TcpLike(sender) => sender.next_timeout(),
            Sender::Tfrc(sender) => sender.next_timeout(),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time, sent: &mut Sent, newest_sent: Seq) {
        match self {
            Sender::TcpLike(sender) => sender.handle_timeout(now, sent, newest_sent),
            Sender::Tfrc(sender) => sender.handle_timeout(now),
        }
    }

    /// How many packets may be under way in a round-trip time.
    pub(super) fn packets_per_round_trip(&self) -> u64 {
        match self {
            Sender::TcpLike(sender) => sender.window(),
            Sender::Tfrc(sender) => sender.packets_per_round_trip() as u64,
        }
    }

    /// The Ack Ratio that the receiver should keep, if it has to do with one.
    pub(super) fn ack_ratio(&self) -> Option<u64> {
        match self {
            Sender::TcpLike(sender) => Some(sender.ack_ratio()),
            Sender::Tfrc(_) => None,
        }
    }
}

impl Receiver {
    pub(super) fn new(ccid: Ccid, rtt: Option<Duration>) -> Receiver {
        match ccid {
            Ccid::TcpLike => Receiver::TcpLike(ccid2::Receiver::default()),
            Ccid::Tfrc | Ccid::TfrcSmallPackets => {
                Receiver::Tfrc(Box::new(tfrc_receiver::Receiver::new(ccid == Ccid::TfrcSmallPackets, rtt)))
            }
        }
    }

    /// Takes a packet; true if it is to be acknowledged at once.
    pub(super) fn on_packet(
        &mut self,
        now: Time,
        arrival: Arrival,
        size: usize,
        in_order: bool,
        ack_ratio: u64,
    ) -> bool {
        match self {
            Receiver::TcpLike(receiver) => {
                receiver.on_packet(now, arrival.is_data, !in_order || arrival.marked, ack_ratio)
            }
            Receiver::Tfrc(receiver) => receiver.on_packet(now, arrival, size),
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        match self {
            Receiver::TcpLike(receiver) => receiver.next_timeout(),
            Receiver::Tfrc(receiver) => receiver.next_timeout(),
        }
    }
}
