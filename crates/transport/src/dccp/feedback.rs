//! The options of a packet that acknowledges, collected.

use super::options::Opt;
use super::seq::Seq;

/// How many options of one kind are taken from a packet: the header has room for four of full length.
const MOST: usize = 4;

/// What a packet of the peer says of ours. Options are those for which congestion control has a use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback<'p> {
    pub(super) ack: Seq,
    ack_vectors: Few<'p>,
    data_dropped: Few<'p>,
    loss_intervals: Few<'p>,
    dropped_packets: Few<'p>,
    pub(super) receive_rate: Option<u32>,
    pub(super) loss_event_rate: Option<u32>,
    /// Since the acknowledged packet arrived, in units of 10 us.
    pub(super) elapsed: Option<u32>,
    pub(super) slow_receiver: bool,
}

impl<'p> Feedback<'p> {
    pub(super) fn new(ack: Seq) -> Feedback<'p> {
        Feedback {
            ack,
            ack_vectors: Few::default(),
            data_dropped: Few::default(),
            loss_intervals: Few::default(),
            dropped_packets: Few::default(),
            receive_rate: None,
            loss_event_rate: None,
            elapsed: None,
            slow_receiver: false,
        }
    }

    /// Keeps an option if it is of use.
    pub(super) fn take(&mut self, option: &Opt<'p>) {
        match *option {
            Opt::AckVector { vector, .. } => self.ack_vectors.push(vector),
            Opt::DataDropped(data) => self.data_dropped.push(data),
            Opt::LossIntervals(data) => self.loss_intervals.push(data),
            Opt::DroppedPackets(data) => self.dropped_packets.push(data),
            Opt::ReceiveRate(rate) => self.receive_rate = Some(rate),
            Opt::LossEventRate(rate) => self.loss_event_rate = Some(rate),
            Opt::ElapsedTime(elapsed) => self.elapsed = Some(elapsed),
            Opt::SlowReceiver => self.slow_receiver = true,
            _ => {}
        }
    }

    pub(super) fn ack_vectors(&self) -> impl Iterator<Item = &'p [u8]> {
        self.ack_vectors.iter()
    }

    pub(super) fn data_dropped(&self) -> impl Iterator<Item = &'p [u8]> {
        self.data_dropped.iter()
    }

    pub(super) fn loss_intervals(&self) -> impl Iterator<Item = &'p [u8]> {
        self.loss_intervals.iter()
    }

    pub(super) fn dropped_packets(&self) -> impl Iterator<Item = &'p [u8]> {
        self.dropped_packets.iter()
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Few<'p> {
    options: [&'p [u8]; MOST],
    count: usize,
}

impl<'p> Few<'p> {
    fn push(&mut self, option: &'p [u8]) {
        if let Some(slot) = self.options.get_mut(self.count) {
            *slot = option;
            self.count += 1;
        }
    }

    fn iter(&self) -> impl Iterator<Item = &'p [u8]> {
        self.options.into_iter().take(self.count)
    }
}
