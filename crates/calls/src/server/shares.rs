//! The sessions, rate and memory that a server gives, shared among sources so that none takes everything.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trunkline_core::Bytes;
use trunkline_io::admission::source_of;
use trunkline_peer::Fingerprint;

/// The most that a server gives, to all sources together or to one: an IPv4 address, or an IPv6 network of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Sessions at once.
    pub sessions: usize,
    /// Bits per second that it sends for [`Role::Source`](crate::Role::Source).
    pub rate: u64,
    /// Buffers of transports.
    pub memory: Bytes,
}

/// The shares of all sources.
#[derive(Debug)]
pub(super) struct Shares {
    all: Bounds,
    each: Bounds,
    held: Mutex<HashMap<Source, Held>>,
}

/// Whose share it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// A stranger's: an IPv4 address, or an IPv6 network of 64 bits.
    Address(IpAddr),
    /// A known client's, wherever it connects from.
    Key(Fingerprint),
}

impl Source {
    /// A stranger at this address.
    pub(super) fn stranger(from: IpAddr) -> Source {
        Source::Address(source_of(from))
    }
}

/// Sessions, rate and memory that one session needs, or a source holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) sessions: usize,
    pub(super) rate: u64,
    pub(super) memory: u64,
}

/// The share of a session, until it is dropped.
#[derive(Debug)]
pub(super) struct Share<'s> {
    shares: &'s Shares,
    source: Source,
    held: Held,
}

impl Shares {
    pub(super) fn new(all: Bounds, each: Bounds) -> Shares {
        Shares { all, each, held: Mutex::default() }
    }

    /// The sessions of all sources.
    pub(super) fn sessions(&self) -> usize {
        self.table().values().map(|held| held.sessions).sum()
    }

    /// Reserves what a session needs.
    ///
    /// # Errors
    /// The bound that it would exceed, in a sentence for the client.
    pub(super) fn reserve(&self, source: Source, want: Held) -> Result<Share<'_>, String> {
        let mut table = self.table();
        let total = table.values().fold(Held::default(), |sum, held| sum.and(*held));
        let own = table.get(&source).copied().unwrap_or_default();
        let Bounds { sessions, rate, memory } = self.all;
        if total.sessions + want.sessions > sessions {
            return Err("it has reached its maximum number of clients; try again later".to_owned());
        }
        if own.sessions + want.sessions > self.each.sessions {
            let most = self.each.sessions;
            return Err(format!("one address may have {most} sessions at once; end another one first"));
        }
        let left = rate.saturating_sub(total.rate);
        if want.rate > left {
            return Err(format!(
                "it sends at most {rate} bit/s to all clients together, of which {} bit/s are in use; request at most \
                 {left} bit/s, or try again later",
                total.rate
            ));
        }
        let left = self.each.rate.saturating_sub(own.rate);
        if want.rate > left {
            return Err(format!(
                "it sends at most {} bit/s to one address; request at most {left} bit/s, or try again later",
                self.each.rate
            ));
        }
        for (bound, held, whom) in
            [(memory, total.memory, "all clients"), (self.each.memory, own.memory, "one address")]
        {
            if held.saturating_add(want.memory) > bound.count() {
                return Err(format!(
                    "the buffers of transports have at most {bound} for {whom}; make the window or send buffer smaller, or \
                     try again later"
                ));
            }
        }
        table.insert(source, own.and(want));
        Ok(Share { shares: self, source, held: want })
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Source, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn and(self, other: Held) -> Held {
        Held {
            sessions: self.sessions + other.sessions,
            rate: self.rate.saturating_add(other.rate),
            memory: self.memory.saturating_add(other.memory),
        }
    }

    fn without(self, other: Held) -> Held {
        Held {
            sessions: self.sessions.saturating_sub(other.sessions),
            rate: self.rate.saturating_sub(other.rate),
            memory: self.memory.saturating_sub(other.memory),
        }
    }
}

impl Share<'_> {
    /// Gives the rate back: everything has been sent.
    pub(super) fn release_rate(&mut self) {
        let rate = core::mem::take(&mut self.held.rate);
        self.give_back(Held { rate, ..Held::default() });
    }

    fn give_back(&self, what: Held) {
        let mut table = self.shares.table();
        let Some(own) = table.get_mut(&self.source) else { return };
        *own = own.without(what);
        if *own == Held::default() {
            table.remove(&self.source);
        }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.give_back(self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_source_takes_everything() {
        let all = Bounds { sessions: 4, rate: 100, memory: Bytes(1000) };
        let each = Bounds { sessions: 2, rate: 80, memory: Bytes(500) };
        let shares = Shares::new(all, each);
        let [first, second, third] = [1, 2, 3].map(|n| Source::stranger([192, 0, 2, n].into()));
        let want = |rate, memory| Held { sessions: 1, rate, memory };

        let mut one = shares.reserve(first, want(60, 400)).unwrap();
        assert!(shares.reserve(first, want(21, 0)).unwrap_err().contains("80 bit/s to one address"));
        assert!(shares.reserve(first, want(0, 101)).unwrap_err().contains("for one address"));
        let _two = shares.reserve(first, want(20, 100)).unwrap();
        assert!(shares.reserve(first, want(0, 0)).unwrap_err().contains("may have 2 sessions"));
        // Others find room.
        assert!(shares.reserve(second, want(21, 0)).unwrap_err().contains("request at most 20 bit/s"));
        let three = shares.reserve(second, want(20, 500)).unwrap();
        assert!(shares.reserve(third, want(0, 1)).unwrap_err().contains("for all clients"));
        let _four = shares.reserve(third, want(0, 0)).unwrap();
        assert!(shares.reserve(third, want(0, 0)).unwrap_err().contains("maximum number of clients"));
        assert_eq!(shares.sessions(), 4);

        one.release_rate();
        drop(three);
        let five = shares.reserve(second, want(80, 500)).unwrap();
        drop((one, _two, _four, five));
        assert!(shares.table().is_empty(), "everything is given back");
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let bounds = |sessions| Bounds { sessions, rate: 0, memory: Bytes(0) };
        let shares = Shares::new(bounds(9), bounds(1));
        let want = Held { sessions: 1, ..Held::default() };
        let stranger = |address: &str| Source::stranger(address.parse().unwrap());
        let [one, neighbour, other] = ["2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:2::1"];
        let _held = shares.reserve(stranger(one), want).unwrap();
        assert!(shares.reserve(stranger(neighbour), want).is_err());
        shares.reserve(stranger(other), want).unwrap();
    }
}
