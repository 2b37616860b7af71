//! Which messages of a channel are not settled yet: the join of `Sent` with `Received`.
//!
//! A channel's latest sequence numbers stand in a window without gaps, so that a message is found by subtraction. The
//! settled ones leave at its front. A message that is still unsettled while most of those behind it are settled has
//! been overtaken, and is probably lost: it moves to a second, sparse list, so that the window stays as short as the
//! number of messages on their way. What is in neither is settled, which makes every later copy a duplicate.

use std::collections::VecDeque;

use trunkline_core::Time;

use crate::meter::window::Window;

/// What is known of a message that is not settled, or was settled a moment ago. Kept at 32 bytes: there may be a
/// million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A later message of the channel is known, this one is not.
    Unknown,
    /// Sent.
    Sent { due: Time, sent: Time, payload: u32 },
    /// Sent, and dropped by the network.
    Dropped { due: Time, sent: Time, payload: u32 },
    /// Received, and not yet reported as sent.
    Early { received: Time, sent: Time, reflected: Time, payload: u32 },
    /// Refused, and so settled.
    Refused,
    /// Settled.
    Settled,
}

/// A message's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) received: Time,
    pub(super) sent: Time,
    pub(super) reflected: Time,
    pub(super) payload: u32,
}

/// The period, in nanoseconds, of the times of an answer in short headers; those of a message in a stream have a multiple of it.
const PERIOD: i128 = 1 << 36;
/// The largest difference between the clocks of two ends, in nanoseconds.
const APART: i128 = 8_000_000_000;

impl Arrival {
    /// The arrival of a message that was reported as sent at `sent`, with whole times. What read a short header took its times
    /// for the latest possible ones, and after a minute on the way others were meant. If it then cannot be known when the
    /// message was reflected, it is not.
    #[inline]
    pub(super) fn of_message_sent(self, sent: Time) -> Arrival {
        let nanos = |time: Time| i128::from(time.as_nanos());
        let periods = (nanos(sent) - nanos(self.sent) + PERIOD / 2).div_euclid(PERIOD);
        if periods == 0 {
            return self;
        }
        let time = |nanos: i128| Time::from_nanos(u64::try_from(nanos).unwrap_or_default());
        let sent = nanos(self.sent) + periods * PERIOD;
        let reflected = if self.reflected == Time::ZERO {
            Time::ZERO
        } else {
            // The earliest possible one, if no later one is.
            let before = (nanos(self.reflected) - (sent - APART)).div_euclid(PERIOD);
            let earliest = nanos(self.reflected) - before * PERIOD;
            let is_only = earliest + PERIOD > nanos(self.received) + APART;
            if is_only { time(earliest) } else { Time::ZERO }
        };
        Arrival { sent: time(sent), reflected, ..self }
    }
}

/// What the report of a message as sent or refused meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnSent {
    /// It is on its way (or refused).
    New,
    /// It has arrived already.
    Arrived(Arrival),
    /// It has been reported before, or its number is absurd.
    Ignored,
}

/// What an arrival meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnArrival {
    /// The first of its message.
    First { due: Time, sent: Time, payload: u32 },
    /// The first of its message, whose `Sent` has not been reported yet.
    Early,
    /// The message had been given up as lost.
    GivenUp { due: Time, sent: Time, payload: u32 },
    /// A further one.
    Duplicate,
    /// No message of this run can have this number.
    Stranger,
}

/// The unsettled messages of one channel. Sequence numbers are counted in 64 bits inside.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Outstanding {
    /// Entry `i` is of the message with the number `base + i`. The front is never settled.
    window: Window,
    base: u64,
    /// Most channels lose nothing.
    behind: Option<Box<Behind>>,
}

/// What is known of messages before the window.
#[derive(Debug, Default)]
struct Behind {
    /// Increasing; the front is never settled.
    overtaken: VecDeque<(u64, Entry)>,
    /// The last messages that were given up as lost, increasing.
    given_up: VecDeque<GivenUp>,
}

/// A message that was sent and has been given up as lost.
#[derive(Clone, Copy, Debug)]
struct GivenUp {
    number: u64,
    due: Time,
    sent: Time,
    payload: u32,
}

/// What the channels of a recorder share: the bounds of their memory.
#[derive(Debug)]
pub(super) struct Bounds {
    /// How many entries all windows have.
    entries: usize,
    /// Every overtaken message, by channel and number, in the order of being overtaken.
    overtaken: VecDeque<(u32, u64)>,
    limits: Limits,
}

/// The bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Windows grow freely while they have no more entries than this together.
    pub(super) entries: usize,
    /// Most overtaken messages that are remembered.
    pub(super) overtaken: usize,
}

impl Limits {
    /// 32 MiB of window entries, 14 MiB of overtaken messages.
    pub(super) const DEFAULT: Limits = Limits { entries: 1 << 20, overtaken: 1 << 18 };
}

/// A window up to this long is left alone.
const SHORT: usize = 16;
/// How far an arrival may be ahead of the last message reported as sent.
const AHEAD: u64 = 1 << 16;
/// How many given up messages a channel remembers.
const GIVEN_UP: usize = 256;

impl Outstanding {
    /// Takes the report of a message as sent.
    #[inline]
    pub(super) fn sent(&mut self, sequence: u32, entry: Entry, channel: u32, bounds: &mut Bounds) -> OnSent {
        match self.place(sequence) {
            Place::Ahead(number) => {
                let is_untouched = self.base == 0 && self.window.len() == 0;
                if is_untouched && number > AHEAD {
                    self.base = number; // the sink has joined late
                }
                if !self.reach(number, bounds) {
                    return OnSent::Ignored;
                }
                self.push(entry, bounds);
                self.shorten(channel, bounds);
                OnSent::New
            }
            Place::Window(index) => match self.window.get(index) {
                Entry::Unknown => {
                    self.window.set(index, entry);
                    OnSent::New
                }
                Entry::Early { received, sent, reflected, payload } => {
                    self.settle_in_window(index, bounds);
                    OnSent::Arrived(Arrival { received, sent, reflected, payload })
                }
                Entry::Sent { .. } | Entry::Dropped { .. } | Entry::Refused | Entry::Settled => {
                    OnSent::Ignored
                }
            },
            Place::Behind(number) => {
                self.behind.as_mut().map_or(OnSent::Ignored, |behind| behind.sent(number, entry))
            }
            Place::Impossible => OnSent::Ignored,
        }
    }

    /// Takes an arrival.
    #[inline]
    pub(super) fn arrived(
        &mut self,
        sequence: u32,
        arrival: Arrival,
        channel: u32,
        bounds: &mut Bounds,
    ) -> OnArrival {
        let Arrival { received, sent, reflected, payload } = arrival;
        let early = Entry::Early { received, sent, reflected, payload };
        match self.place(sequence) {
            Place::Window(index) => match self.window.get(index) {
                Entry::Sent { due, sent, payload } | Entry::Dropped { due, sent, payload } => {
                    self.settle_in_window(index, bounds);
                    OnArrival::First { due, sent, payload }
                }
                Entry::Unknown => {
                    self.window.set(index, early);
                    OnArrival::Early
                }
                Entry::Early { .. } | Entry::Refused | Entry::Settled => OnArrival::Duplicate,
            },
            Place::Ahead(number) => {
                if !self.reach(number, bounds) {
                    return OnArrival::Stranger;
                }
                self.push(early, bounds);
                self.shorten(channel, bounds);
                OnArrival::Early
            }
            Place::Behind(number) => {
                self.behind.as_mut().map_or(OnArrival::Duplicate, |behind| behind.arrived(number, early))
            }
            Place::Impossible => OnArrival::Stranger,
        }
    }

    /// Takes the report that the network dropped a message.
    pub(super) fn dropped(&mut self, sequence: u32) {
        match self.place(sequence) {
            Place::Window(index) => self.window.set(index, self.window.get(index).dropped()),
            Place::Behind(number) => {
                if let Some(behind) = &mut self.behind {
                    behind.dropped(number);
                }
            }
            Place::Ahead(_) | Place::Impossible => {}
        }
    }

    /// Forgets the overtaken message `number` if it is still unsettled, and returns what is known of it.
    pub(super) fn give_up(&mut self, number: u64) -> Option<Entry> {
        self.behind.as_mut()?.give_up(number)
    }

    /// What is unsettled, in the order of sequence numbers.
    pub(super) fn into_unsettled(self) -> impl Iterator<Item = (u64, Entry)> {
        let overtaken = self.behind.map(|behind| behind.overtaken).unwrap_or_default();
        let window = (self.base..).zip(self.window.into_entries());
        overtaken.into_iter().chain(window).filter(|(_, entry)| *entry != Entry::Settled)
    }

    #[inline]
    fn place(&self, sequence: u32) -> Place {
        // The number nearest to the window that has these 32 bits.
        let distance = i64::from(sequence.wrapping_sub(self.base as u32) as i32);
        if let Ok(index) = usize::try_from(distance) {
            return if index < self.window.len() {
                Place::Window(index)
            } else {
                Place::Ahead(self.base + index as u64)
            };
        }
        self.base.checked_add_signed(distance).map_or(Place::Impossible, Place::Behind)
    }

    /// Makes the window end right before `number`, unless that is absurdly far away.
    #[inline]
    fn reach(&mut self, number: u64, bounds: &mut Bounds) -> bool {
        let missing = number - (self.base + self.window.len() as u64);
        if missing > AHEAD {
            return false;
        }
        for _ in 0..missing {
            self.push(Entry::Unknown, bounds);
        }
        true
    }

    #[inline]
    fn push(&mut self, entry: Entry, bounds: &mut Bounds) {
        self.window.push(entry);
        bounds.entries += 1;
    }

    /// Moves unsettled messages from the front out of a window that is mostly settled, or too long for all of them
    /// together.
    #[inline]
    fn shorten(&mut self, channel: u32, bounds: &mut Bounds) {
        while self.window.len() > SHORT
            && (2 * self.window.settled() > self.window.len() || bounds.entries > bounds.limits.entries)
        {
            if let Some(entry) = self.window.pop() {
                self.behind.get_or_insert_default().overtaken.push_back((self.base, entry));
                bounds.overtaken.push_back((channel, self.base));
                bounds.entries -= 1;
                self.base += 1;
            }
            self.drop_settled(bounds);
        }
    }

    #[inline]
    fn settle_in_window(&mut self, index: usize, bounds: &mut Bounds) {
        self.window.settle(index);
        self.drop_settled(bounds);
    }

    #[inline]
    fn drop_settled(&mut self, bounds: &mut Bounds) {
        while self.window.pop_settled() {
            self.base += 1;
            bounds.entries -= 1;
        }
    }
}

impl Entry {
    /// The entry after a drop: only a message that is under way changes.
    fn dropped(self) -> Entry {
        match self {
            Entry::Sent { due, sent, payload } => Entry::Dropped { due, sent, payload },
            other => other,
        }
    }
}

impl Behind {
    fn sent(&mut self, number: u64, entry: Entry) -> OnSent {
        let Some(index) = self.overtaken(number) else { return OnSent::Ignored };
        match self.overtaken[index].1 {
            Entry::Unknown => {
                self.overtaken[index].1 = entry;
                OnSent::New
            }
            Entry::Early { received, sent, reflected, payload } => {
                self.settle(index);
                OnSent::Arrived(Arrival { received, sent, reflected, payload })
            }
            Entry::Sent { .. } | Entry::Dropped { .. } | Entry::Refused | Entry::Settled => OnSent::Ignored,
        }
    }

    fn dropped(&mut self, number: u64) {
        if let Some(index) = self.overtaken(number) {
            let entry = &mut self.overtaken[index].1;
            *entry = entry.dropped();
        }
    }

    fn arrived(&mut self, number: u64, early: Entry) -> OnArrival {
        let Some(index) = self.overtaken(number) else { return self.arrived_after_all(number) };
        match self.overtaken[index].1 {
            Entry::Sent { due, sent, payload } | Entry::Dropped { due, sent, payload } => {
                self.settle(index);
                OnArrival::First { due, sent, payload }
            }
            Entry::Unknown => {
                self.overtaken[index].1 = early;
                OnArrival::Early
            }
            Entry::Early { .. } | Entry::Refused | Entry::Settled => OnArrival::Duplicate,
        }
    }

    fn arrived_after_all(&mut self, number: u64) -> OnArrival {
        let index = self.given_up.iter().rposition(|other| other.number == number);
        match index.and_then(|index| self.given_up.remove(index)) {
            Some(GivenUp { due, sent, payload, .. }) => OnArrival::GivenUp { due, sent, payload },
            None => OnArrival::Duplicate,
        }
    }

    fn give_up(&mut self, number: u64) -> Option<Entry> {
        let &(front, entry) = self.overtaken.front()?;
        if front != number {
            return None; // It was settled and has left.
        }
        self.settle(0);
        if let Entry::Sent { due, sent, payload } | Entry::Dropped { due, sent, payload } = entry {
            if self.given_up.len() == GIVEN_UP {
                self.given_up.pop_front();
            }
            self.given_up.push_back(GivenUp { number, due, sent, payload });
        }
        Some(entry)
    }

    fn overtaken(&self, number: u64) -> Option<usize> {
        self.overtaken.binary_search_by_key(&number, |&(number, _)| number).ok()
    }

    fn settle(&mut self, index: usize) {
        self.overtaken[index].1 = Entry::Settled;
        while self.overtaken.pop_front_if(|(_, entry)| *entry == Entry::Settled).is_some() {}
    }
}

impl Bounds {
    pub(super) fn new(limits: Limits) -> Bounds {
        Bounds { entries: 0, overtaken: VecDeque::new(), limits }
    }

    /// The next message to give up, if there are too many: its channel and number.
    #[inline]
    pub(super) fn excess(&mut self) -> Option<(u32, u64)> {
        if self.overtaken.len() > self.limits.overtaken { self.overtaken.pop_front() } else { None }
    }

    /// How many messages are remembered: entries of windows, and overtaken ones.
    pub(super) fn remembered(&self) -> (usize, usize) {
        (self.entries, self.overtaken.len())
    }
}

/// Where a sequence number stands.
enum Place {
    Window(usize),
    /// Ahead of the window's end.
    Ahead(u64),
    /// Before the window: overtaken, or settled and forgotten.
    Behind(u64),
    /// Before the first message of the channel.
    Impossible,
}

#[cfg(test)]
impl Outstanding {
    /// Begins with another number than 0.
    pub(super) fn begin_at(&mut self, number: u64) {
        self.base = number;
    }

    /// How many entries there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.window.capacity() + self.behind.as_ref().map_or(0, |behind| behind.overtaken.capacity())
    }
}
