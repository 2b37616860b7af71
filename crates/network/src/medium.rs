//! What moves packets.

use core::ops::RangeInclusive;

use trunkline_core::schema::{Parameter, Values};
use trunkline_core::{Amount, Bytes, Duration, Packet, PacketId, Port, Seed, Time};

use crate::busy::BusyTime;
use crate::fate::Fates;
use crate::impairment::Impairments;
use crate::queue::{Backlog, Queue, QueueCounters, Sojourns};
use crate::{atm, ethernet, fddi, serial, t1, trace, wifi};

/// Every medium that an experiment file can name; the first is the default.
pub const KINDS: &[MediumKind] =
    &[serial::KIND, trace::KIND, t1::KIND, fddi::KIND, ethernet::KIND, wifi::KIND, atm::KIND];

/// The medium of that name.
pub fn find(name: &str) -> Option<&'static MediumKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Moves packets between its ports. A link is a medium with two ports, 0 and 1; a ring, a cell, a switch have more, and
/// deliver a packet where its [destination](trunkline_core::Destination) says: to everyone as one delivery per station.
///
/// `offer` first does all that is due up to and including its time (departures before arrivals at equal times), then
/// accepts the packet. `advance` handles internal events one at a time, each at its own logical time. A delivery may
/// lie in the future of the call that produced it: once a packet's transmission has begun, its arrival is known.
pub trait Medium: Send {
    /// Accepts `packet` at port `from` at the time `at`.
    fn offer(&mut self, at: Time, from: Port, packet: Packet, out: &mut Outcome);

    /// Does everything that is due up to and including `to`.
    fn advance(&mut self, to: Time, out: &mut Outcome);

    /// When `advance` next has something to do, given that nothing is offered until then; later than the last call's
    /// time.
    fn next_event(&self) -> Option<Time>;

    /// Changes what holds for packets that enter at port `from`, after all that is due up to and including `at`. What waits
    /// goes on waiting, and what has begun to be transmitted arrives as if nothing had changed.
    ///
    /// # Errors
    /// If this kind of medium stays as it was built.
    fn change(&mut self, at: Time, from: Port, change: Change<'_>, out: &mut Outcome) -> Result<(), Fixed> {
        let _ = (at, from, change, out);
        Err(Fixed)
    }

    /// What has been counted so far for packets that entered at port `from`.
    fn counters(&self, from: Port) -> MediumCounters;

    /// What waits now in the queue of port `from`: that of which [`MediumCounters::backlog_max`] is the most there ever was.
    /// Cheap enough to be asked many times a second.
    fn backlog(&self, from: Port) -> Backlog;

    /// Visits the packets that the line where they entered has transmitted in part or whole, and that are neither delivered nor
    /// dropped: those in a switch, or between two of their parts. Most media know a packet's fate when its transmission
    /// begins, and so have none.
    fn behind_the_line(&self, visit: &mut dyn FnMut(&Packet)) {
        let _ = visit;
    }

    /// The packet that the line of port `from` transmits at `at`, and the share of its
    /// [`Packet::on_line`] that is still to come.
    fn under_way(&self, from: Port, at: Time) -> Option<(PacketId, f64)> {
        let _ = (from, at);
        None
    }

    /// The measurement ends at `at`, up to which everything has been done. What is busy from now on counts neither in
    /// [`MediumCounters::busy`]'s shares nor in those of [`figures`](Self::figures).
    fn end_measurement(&mut self, at: Time);

    /// What this kind of medium alone has to tell of a measurement that lasted `over`, of which shares are: of itself and
    /// then of each station, always the same figures in the same order.
    fn figures(&self, over: Duration) -> Vec<Figure> {
        let _ = over;
        Vec::new()
    }
}

/// What is to hold from now on for packets that enter a medium at one port: all of it, as in a [`PortConfig`].
pub struct Change<'v> {
    /// The values of the kind's parameters.
    pub values: &'v Values,
    /// Another queue, empty; without one the queue stays.
    pub queue: Option<Box<dyn Queue>>,
    /// What else happens to packets.
    pub impairments: Impairments,
}

/// A medium of this kind cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed;

/// A figure that only some kinds of media have: the rotation time of a token, collisions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The station whose figure it is; `None` for that of the medium as a whole.
    pub station: Option<Port>,
    /// Its id in the table of figures (`trunkline_metrics::figures`): `token-rotation-mean`.
    pub name: &'static str,
    /// The amount that was counted or measured; `None` if there was nothing to measure: no cell that arrived, no packet that waited.
    pub amount: Option<Amount>,
}

/// What a medium hands out; kept by the driver between calls so that nothing is allocated per packet.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Packets that arrive, in the order in which they were committed (not sorted by time).
    pub deliveries: Vec<Delivery>,
    /// What else happened to packets.
    pub fates: Fates,
    /// Packets, without their bytes, that the line has carried and that no delivery or drop counts: what was transmitted of a packet
    /// after it was dropped (on T1 trunks and ATM with a channel for each flow), and what a Wi-Fi station has sent to an access point
    /// that passes it on. [`Packet::on_line`] is what they took.
    pub carried: Vec<Packet>,
}

/// A packet's arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When its last bit is there; may lie in the future.
    pub at: Time,
    /// Where it comes out.
    pub to: Port,
    /// The packet.
    pub packet: Packet,
}

/// Counters of one direction of a medium. `offered = delivered + dropped + waiting` at every moment between calls,
/// duplicates apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MediumCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets handed out as deliveries, without duplicates made here.
    pub delivered: u64,
    /// Bytes on the line of everything transmitted, with the link's framing.
    pub transmitted: Bytes,
    /// The same of everything offered that fits the line, even if it was dropped; only of links between two hosts.
    pub load: Bytes,
    /// Packets dropped, by [`DropCause`](crate::DropCause) index.
    pub dropped: [u64; crate::DropCause::COUNT],
    /// Packets marked, by [`MarkCause`](crate::MarkCause) index.
    pub marked: [u64; crate::MarkCause::COUNT],
    /// Copies made of packets that are for several stations, where each copy has a fate of its own: then
    /// `offered + copied = delivered + dropped + waiting`.
    pub copied: u64,
    /// Duplicates made.
    pub duplicated: u64,
    /// Packets whose bits were changed.
    pub corrupted: u64,
    /// Packets that overtook an earlier one.
    pub reordered: u64,
    /// How long the line was busy; its share of the measurement is the utilisation.
    pub busy: BusyTime,
    /// Sum over packets of their time in the queue; divided by those dequeued it is the mean sojourn time.
    pub sojourn_total: Duration,
    /// The times that packets spent in the queue, by length.
    pub sojourns: Sojourns,
    /// Packets that left the queue for transmission.
    pub dequeued: u64,
    /// The most bytes that ever waited.
    pub backlog_max: Bytes,
    /// The most packets that ever waited.
    pub backlog_packets_max: u64,
}

impl MediumCounters {
    /// The time that the line needs for all that was offered; `None` where that is unknown.
    pub fn offered_time(&self) -> Option<Duration> {
        let (load, transmitted) = (self.load.count() as f64, self.transmitted.count() as f64);
        let seconds = self.busy.total().as_secs_f64() * load / transmitted;
        (load > 0.0 && transmitted > 0.0).then(|| Duration::from_secs_f64(seconds))
    }

    /// Adds what the queue in front of the line counted.
    pub(crate) fn with_queue(mut self, queue: &QueueCounters) -> MediumCounters {
        for (sum, of_queue) in self.dropped.iter_mut().zip(queue.dropped) {
            *sum += of_queue;
        }
        for (sum, of_queue) in self.marked.iter_mut().zip(queue.marked) {
            *sum += of_queue;
        }
        self.dequeued = queue.dequeued;
        self.sojourn_total = queue.sojourn_total;
        self.sojourns = queue.sojourns.clone();
        self
    }
}

/// A medium that an experiment file can name: `[link.trunk]` with `medium = "serial"`.
///
/// Beside its own parameters every direction of it has a `queue`, one of [`queue::KINDS`](crate::queue::KINDS), a
/// `loss`, one of [`LOSS_KINDS`](crate::impairment::LOSS_KINDS), and the
/// [parameters of the other impairments](crate::impairment::PARAMETERS).
pub struct MediumKind {
    /// The word in the file.
    pub name: &'static str,
    /// One paragraph: what it models and where that is defined.
    pub doc: &'static str,
    /// Its parameters, per direction of a link, or per station of a medium that has more than two.
    pub parameters: &'static [Parameter],
    /// Parameters that do nothing without another: each with that one.
    pub needs: &'static [(&'static str, &'static str)],
    /// Parameters of the medium as a whole: the length of a ring.
    pub shared: &'static [Parameter],
    /// How many stations it may have.
    pub stations: RangeInclusive<usize>,
    /// Builds one from the values of `shared` and from what holds for packets that enter at each of its ports.
    pub build: fn(&Values, Vec<PortConfig<'_>>, Seed) -> Box<dyn Medium>,
}

/// How many stations a link has.
pub(crate) const TWO: RangeInclusive<usize> = 2..=2;

/// The ports of a link.
///
/// # Panics
/// If there are not two: whoever builds a medium asks [`MediumKind::stations`] first.
pub(crate) fn two(ports: Vec<PortConfig<'_>>) -> [PortConfig<'_>; 2] {
    let count = ports.len();
    ports.try_into().unwrap_or_else(|_| panic!("a link has two ports, not {count}"))
}

/// What holds for packets that enter a medium at one port.
pub struct PortConfig<'v> {
    /// The place in the experiment, from which random streams are named: `link.trunk/berlin-ottawa` for the direction of a
    /// link, `link.ring/berlin` for a station of a medium that has more than two.
    pub place: String,
    /// The values of the kind's parameters.
    pub values: &'v Values,
    /// The queue in front of the line, empty.
    pub queue: Box<dyn Queue>,
    /// What else happens to packets.
    pub impairments: Impairments,
}
