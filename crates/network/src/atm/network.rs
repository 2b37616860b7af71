//! The network: the policer, the switch with its buffer and output line, and the reassembly at the other end.

use trunkline_core::{Amount, Bytes, Duration, FlowId, Time};

use super::config::{AtmConfig, Discard, Policing};
use super::record::{CellRecord, Interarrival};
use crate::busy::BusyTime;
use crate::fate::DropCause;
use crate::gcra::{CELL, Contract, Gcra, TheoreticalArrival, Usage};

#[derive(Debug)]
pub(super) struct Network {
    contract: Contract,
    policing: Policing,
    discard: Discard,
    output: Gcra,
    free: TheoreticalArrival,
    limits: Limits,
    delay: Duration,
    transmitted: u64,
    busy: BusyTime,
    /// The most that the output line was behind.
    behind_most: Duration,
    all: CellRecord,
    observe: FlowId,
    observed: CellRecord,
    interarrival: Interarrival,
}

/// How far behind the output line may be for a cell to be taken: in cells, what is being transmitted and what waits.
#[derive(Debug)]
struct Limits {
    buffer: Duration,
    tagged: Duration,
    early: Duration,
}

/// What the network and the receiver keep for a virtual channel.
#[derive(Clone, Debug, Default)]
pub(super) struct Channel {
    usage: Usage,
    /// The cells to come belong to a packet that has begun.
    inside: bool,
    /// The policer discarded a cell of this packet; the switch did; it discards all of them.
    policed: bool,
    crowded_out: bool,
    early: bool,
    /// Cells of this packet have arrived.
    arrived: bool,
    /// Cells of an earlier packet have arrived whose last one did not: the receiver takes what comes for its rest.
    unfinished: bool,
    /// Why this packet is lost.
    lost: Option<DropCause>,
}

/// A cell at the end of the host's line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// When it began to leave the host.
    pub(super) sent: Time,
    /// When it is through the line.
    pub(super) at: Time,
    pub(super) flow: FlowId,
    /// Whether it is the last of its packet.
    pub(super) last: bool,
    /// True if it was sent together with the one before it, of the same packet.
    pub(super) follows: bool,
}

impl Network {
    pub(super) fn new(config: &AtmConfig) -> Network {
        let output = Gcra::new(config.rate, Duration::ZERO);
        Network {
            contract: config.contract,
            policing: config.policing,
            discard: config.discard,
            output,
            free: TheoreticalArrival::default(),
            limits: Limits {
                buffer: output.time_for(config.buffer),
                tagged: output.time_for(config.clp_threshold),
                early: config.discard.early.map_or(Duration::MAX, |cells| output.time_for(cells)),
            },
            delay: config.delay,
            transmitted: 0,
            busy: BusyTime::default(),
            behind_most: Duration::ZERO,
            all: CellRecord::default(),
            observe: config.observe,
            observed: CellRecord::default(),
            interarrival: Interarrival::default(),
        }
    }

    /// Takes the next cell of a channel and returns when it arrives, if it does. Cells come in the order of their times.
    #[inline]
    pub(super) fn carry(&mut self, channel: &mut Channel, cell: Cell) -> Option<Time> {
        let begins = !channel.inside;
        if begins {
            channel.begin();
        }
        channel.inside = !cell.last;
        let (conforms, tagged, outcome) = self.pass(channel, cell, begins);
        let arrival = match outcome {
            Ok(arrival) => {
                channel.arrived = true;
                channel.unfinished &= !cell.last;
                Some(arrival)
            }
            Err(cause) => {
                channel.lost.get_or_insert(cause);
                channel.unfinished |= cell.last && channel.arrived;
                None
            }
        };
        let delay = arrival.map(|arrival| arrival.since(cell.sent));
        self.all.count(conforms, tagged, delay);
        if cell.flow == self.observe {
            self.observed.count(conforms, tagged, delay);
            if let Some(arrival) = arrival {
                self.interarrival.count(arrival);
            }
        }
        arrival
    }

    /// Whether a cell conforms and is tagged, and when it arrives.
    fn pass(
        &mut self,
        channel: &mut Channel,
        cell: Cell,
        begins: bool,
    ) -> (bool, bool, Result<Time, DropCause>) {
        let is_rest = self.discard.partial && !cell.last;
        if is_rest && channel.policed {
            return (true, false, Err(DropCause::Policed));
        }
        let conforms = self.contract.admit(&mut channel.usage, cell.at);
        if !conforms && self.policing == Policing::Discard {
            channel.policed = true;
            return (false, false, Err(DropCause::Policed));
        }
        let tagged = !conforms && self.policing == Policing::Tag;
        (conforms, tagged, self.switch(channel, cell, begins, is_rest, tagged))
    }

    /// Puts a cell into the buffer, and so on its way.
    fn switch(
        &mut self,
        channel: &mut Channel,
        Cell { at, follows, .. }: Cell,
        begins: bool,
        is_rest: bool,
        tagged: bool,
    ) -> Result<Time, DropCause> {
        let behind = self.output.ahead(&self.free, at);
        channel.early |= begins && behind > self.limits.early;
        if channel.early {
            return Err(DropCause::EarlyDiscard);
        }
        let limit = if tagged { self.limits.tagged } else { self.limits.buffer };
        if behind > limit || is_rest && channel.crowded_out {
            channel.crowded_out = true;
            return Err(DropCause::CellLost);
        }
        let before = self.output.due(&self.free);
        self.output.count(&mut self.free, at);
        self.behind_most = self.behind_most.max(self.output.ahead(&self.free, at));
        self.transmitted += 1;
        let end = self.output.due(&self.free);
        // Times are rounded up, so that cells behind each other are some of them a nanosecond shorter.
        let busy = end.since(before).min(self.output.increment());
        match follows && channel.arrived {
            true => self.busy.add_part(end, busy),
            false => self.busy.add(end, busy),
        }
        Ok(end + self.delay)
    }

    /// How long the output line was busy.
    pub(super) fn busy(&self) -> BusyTime {
        self.busy.with_total(self.output.time_for(self.transmitted))
    }

    /// What is transmitted from `at` on does not count as busy time.
    pub(super) fn end_measurement(&mut self, at: Time) {
        self.busy = self.busy();
        self.busy.end(at);
    }

    /// What has been transmitted on the output line.
    pub(super) fn transmitted(&self) -> Bytes {
        Bytes(self.transmitted * CELL.count())
    }

    pub(super) fn figures(&self) -> impl Iterator<Item = (&'static str, Option<Amount>)> {
        let waiting = self.output.cells_in(self.behind_most).saturating_sub(1);
        let all = self.all.figures([
            "cells",
            "cells-nonconforming",
            "cells-tagged",
            "cells-lost",
            "cell-loss-ratio",
            "cell-transfer-delay-mean",
            "cell-transfer-delay-max",
            "cell-delay-variation",
        ]);
        let observed = self.observed.figures([
            "observed-cells",
            "observed-cells-nonconforming",
            "observed-cells-tagged",
            "observed-cells-lost",
            "observed-cell-loss-ratio",
            "observed-cell-transfer-delay-mean",
            "observed-cell-transfer-delay-max",
            "observed-cell-delay-variation",
        ]);
        let buffer = [("cell-backlog-max", Some(Amount::Count(waiting)))];
        all.into_iter().chain(buffer).chain(observed).chain(self.interarrival.figures())
    }
}

impl Channel {
    /// Why the packet whose cells come is lost, if that is known already.
    #[inline]
    pub(super) fn lost(&self) -> Option<DropCause> {
        self.lost
    }

    fn begin(&mut self) {
        *self = Channel {
            usage: self.usage,
            unfinished: self.unfinished,
            lost: self.unfinished.then_some(DropCause::Misassembled),
            ..Channel::default()
        };
    }
}
