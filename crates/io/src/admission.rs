//! Who may stay connected before they have shown who they are.
//!
//! Everybody who reaches a port can connect to it and say nothing. [`Admission`] bounds how many of such connections there
//! are, and shares them among sources: when there is no room, the newcomer takes the place of the oldest connection of the
//! source that has the most. So whoever has few connections, and shows soon who they are, always gets in, whatever others do.
//! Sources from which somebody has shown it before come last among those that lose a place.
//!
//! A connection that is cut to make room is cut by the closure that came with it. Whoever has shown who they are gives the
//! [`Ticket`] back, and is counted elsewhere.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many connections of strangers there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// All together.
    pub total: usize,
    /// Of one source: an IPv4 address, or the first 64 bits of an IPv6 address.
    pub of_source: usize,
}

/// Connections of strangers, and who of them has to go when there are too many.
#[derive(Debug)]
pub struct Admission {
    places: Places,
    table: Mutex<Table>,
}

/// A place of a connection; dropping it frees the place.
#[derive(Debug)]
pub struct Ticket {
    admission: Arc<Admission>,
    source: IpAddr,
    number: u64,
}

/// So many sources from which somebody has shown who they are keep their precedence.
const FAMILIAR: usize = 1024;

type Cut = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Table {
    /// By source, the oldest first.
    sources: BTreeMap<IpAddr, VecDeque<(u64, Cut)>>,
    count: usize,
    next: u64,
    /// The latest last.
    familiar: VecDeque<IpAddr>,
}

impl Admission {
    /// Room for so many, and at least one.
    pub fn new(places: Places) -> Arc<Admission> {
        let places = Places { total: places.total.max(1), of_source: places.of_source.max(1) };
        Arc::new(Admission { places, table: Mutex::default() })
    }

    /// Takes a connection in. Another may be cut for it, by the closure that was given with that one; closures must not wait.
    pub fn enter(self: &Arc<Admission>, from: IpAddr, cut: impl FnOnce() + Send + 'static) -> Ticket {
        let source = source_of(from);
        let mut table = self.table();
        let loser = match table.sources.get(&source).map_or(0, VecDeque::len) {
            own if own >= self.places.of_source => Some(source),
            _ if table.count >= self.places.total => table.heaviest(),
            _ => None,
        };
        let cuts = loser.and_then(|loser| table.remove_oldest(loser));
        let number = table.next;
        table.next += 1;
        table.count += 1;
        table.sources.entry(source).or_default().push_back((number, Box::new(cut)));
        drop(table);
        if let Some(cut) = cuts {
            cut();
        }
        Ticket { admission: Arc::clone(self), source, number }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.table().count
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Whether its place was taken by another.
    pub fn is_cut(&self) -> bool {
        let table = self.admission.table();
        let own = table.sources.get(&self.source);
        !own.is_some_and(|own| own.iter().any(|(number, _)| *number == self.number))
    }

    /// Somebody has shown who they are: frees the place, and gives their source precedence over those of strangers.
    pub fn known(self) {
        let mut table = self.admission.table();
        table.familiar.retain(|source| *source != self.source);
        table.familiar.push_back(self.source);
        if table.familiar.len() > FAMILIAR {
            table.familiar.pop_front();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut table = self.admission.table();
        let Some(own) = table.sources.get_mut(&self.source) else { return };
        let before = own.len();
        own.retain(|(number, _)| *number != self.number);
        // One that was cut has no place any more.
        let freed = before - own.len();
        if own.is_empty() {
            table.sources.remove(&self.source);
        }
        table.count -= freed;
    }
}

impl Table {
    /// The source that loses a place when there is none left: of those that are not familiar, if there are any, that with the
    /// most connections; of these the one whose oldest is the oldest.
    fn heaviest(&self) -> Option<IpAddr> {
        let weight = |(source, own): &(&IpAddr, &VecDeque<(u64, Cut)>)| {
            let oldest = own.front().map_or(u64::MAX, |(number, _)| *number);
            (!self.familiar.contains(source), own.len(), core::cmp::Reverse(oldest))
        };
        self.sources.iter().max_by_key(weight).map(|(source, _)| *source)
    }

    fn remove_oldest(&mut self, source: IpAddr) -> Option<Cut> {
        let own = self.sources.get_mut(&source)?;
        let (_, cut) = own.pop_front()?;
        if own.is_empty() {
            self.sources.remove(&source);
        }
        self.count -= 1;
        Some(cut)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources: BTreeMap<_, _> = self.sources.iter().map(|(source, own)| (source, own.len())).collect();
        f.debug_struct("Table").field("count", &self.count).field("sources", &sources).finish_non_exhaustive()
    }
}

/// Binds a TCP port at which strangers may call: a burst of them waits in the kernel's queue, instead of being let down.
///
/// # Errors
/// As [`TcpListener::bind`].
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    /// The kernel takes less where its own limit is lower.
    const QUEUE: i32 = 4096;
    let listener = TcpListener::bind(address)?;
    socket2::SockRef::from(&listener).listen(QUEUE)?;
    Ok(listener)
}

/// What counts as one source: a host or a network of IPv6 has 2^64 addresses to choose from.
pub fn source_of(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use proptest::prelude::*;

    use super::*;

    struct Held {
        ticket: Option<Ticket>,
        is_cut: Arc<AtomicBool>,
    }

    impl Held {
        fn enter(admission: &Arc<Admission>, from: [u8; 4]) -> Held {
            let is_cut = Arc::new(AtomicBool::new(false));
            let of_closure = Arc::clone(&is_cut);
            let ticket =
                admission.enter(IpAddr::from(from), move || of_closure.store(true, Ordering::Relaxed));
            Held { ticket: Some(ticket), is_cut }
        }

        fn is_cut(&self) -> bool {
            self.is_cut.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn whoever_has_few_connections_loses_none_to_whoever_has_many() {
        let admission = Admission::new(Places { total: 64, of_source: 8 });
        let flood: Vec<Held> =
            (0..5_000u32).map(|n| Held::enter(&admission, [10, 0, 0, (n % 50) as u8])).collect();
        assert_eq!(admission.count(), 64);
        let known = Held::enter(&admission, [10, 0, 1, 1]);
        let more: Vec<Held> =
            (0..5_000u32).map(|n| Held::enter(&admission, [10, 0, 0, (n % 50) as u8])).collect();
        assert!(!known.is_cut());
        assert_eq!(admission.count(), 64);
        let open = flood.iter().chain(&more).filter(|held| !held.is_cut()).count();
        assert_eq!(open, 63, "all others were cut");
    }

    #[test]
    fn a_source_keeps_its_newest_connections() {
        let admission = Admission::new(Places { total: 64, of_source: 3 });
        let held: Vec<Held> = (0..5).map(|_| Held::enter(&admission, [10, 0, 0, 1])).collect();
        let cut: Vec<bool> = held.iter().map(Held::is_cut).collect();
        assert_eq!(cut, [true, true, false, false, false]);
        drop(held);
        assert_eq!(admission.count(), 0);
    }

    #[test]
    fn where_somebody_known_came_from_others_go_first() {
        let admission = Admission::new(Places { total: 2, of_source: 2 });
        let first = Held::enter(&admission, [10, 0, 0, 1]).ticket.take().unwrap();
        assert!(!first.is_cut());
        first.known();
        let familiar = [Held::enter(&admission, [10, 0, 0, 1]), Held::enter(&admission, [10, 0, 0, 1])];
        let stranger = Held::enter(&admission, [10, 0, 0, 2]);
        assert!(familiar[0].is_cut(), "nobody else was there");
        assert!(familiar[0].ticket.as_ref().is_some_and(Ticket::is_cut));
        let another = Held::enter(&admission, [10, 0, 0, 3]);
        assert!(stranger.is_cut() && !familiar[1].is_cut() && !another.is_cut());
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let [a, b, c] = ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"]
            .map(|text| source_of(text.parse().unwrap()));
        assert_eq!(a, b);
        assert_ne!(a, c);
        assert_eq!(source_of("::ffff:192.0.2.7".parse().unwrap()), IpAddr::from([192, 0, 2, 7]));
    }

    proptest! {
        /// Whatever comes and goes, the counts are those of the tickets that are held and not cut, and never beyond the bounds.
        #[test]
        fn counts_are_those_of_the_open_connections(
            steps in proptest::collection::vec((0..6u8, any::<bool>(), any::<bool>()), 0..200),
            total in 1..12usize,
            of_source in 1..6usize,
        ) {
            let admission = Admission::new(Places { total, of_source });
            let mut held: Vec<(u8, Held)> = Vec::new();
            for (source, leaves, is_known) in steps {
                if leaves && !held.is_empty() {
                    let (_, mut gone) = held.remove(usize::from(source) % held.len());
                    match gone.ticket.take() {
                        Some(ticket) if is_known => ticket.known(),
                        ticket => drop(ticket),
                    }
                } else {
                    held.push((source, Held::enter(&admission, [10, 0, 0, source])));
                }
                let open: Vec<u8> = held.iter().filter(|(_, held)| !held.is_cut()).map(|(source, _)| *source).collect();
                prop_assert_eq!(admission.count(), open.len());
                prop_assert!(open.len() <= total);
                for source in 0..6 {
                    prop_assert!(open.iter().filter(|one| **one == source).count() <= of_source);
                }
            }
        }
    }
}
