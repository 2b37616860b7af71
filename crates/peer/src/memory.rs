//! Memory that peers may take of this process, counted before it is allocated.
//!
//! A process that serves several peers sets aside so much for all of them. Each may hold at most half of what the others
//! leave: whoever asks for everything leaves something for everybody, and whoever holds nothing finds something. What does
//! not fit is refused.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trunkline_core::Bytes;

use crate::fingerprint::Fingerprint;

/// Memory for peers.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Books>);

#[derive(Debug)]
struct Books {
    capacity: u64,
    held: Mutex<BTreeMap<Fingerprint, u64>>,
}

/// What one peer may take of it.
#[derive(Clone, Debug)]
pub struct Share {
    memory: Memory,
    of: Fingerprint,
}

/// Memory that a peer holds; dropping it gives it back.
#[derive(Debug)]
pub struct Held {
    share: Share,
    bytes: u64,
}

/// There is not so much memory for this peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{asked} of memory in addition to the {held} already in use, although at most {most} are allowed")]
pub struct NoMemory {
    /// What was asked for.
    pub asked: Bytes,
    /// What the peer holds.
    pub held: Bytes,
    /// What it may hold at present.
    pub most: Bytes,
}

impl Memory {
    /// So much for all peers together.
    pub fn new(capacity: Bytes) -> Memory {
        Memory(Arc::new(Books { capacity: capacity.count(), held: Mutex::default() }))
    }

    /// The share of the peer with this key.
    pub fn share(&self, of: Fingerprint) -> Share {
        Share { memory: self.clone(), of }
    }

    /// What all peers hold.
    pub fn held(&self) -> Bytes {
        Bytes(self.books().values().sum())
    }

    fn books(&self) -> MutexGuard<'_, BTreeMap<Fingerprint, u64>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Takes memory.
    ///
    /// # Errors
    /// If the peer may not hold so much.
    pub fn take(&self, bytes: Bytes) -> Result<Held, NoMemory> {
        let mut books = self.memory.books();
        let own = books.get(&self.of).copied().unwrap_or_default();
        let others = books.values().sum::<u64>() - own;
        let most = self.memory.0.capacity.saturating_sub(others) / 2;
        match own.checked_add(bytes.count()).filter(|sum| *sum <= most) {
            Some(sum) => {
                if sum > 0 {
                    books.insert(self.of, sum);
                }
                Ok(Held { share: self.clone(), bytes: bytes.count() })
            }
            None => Err(NoMemory { asked: bytes, held: Bytes(own), most: Bytes(most) }),
        }
    }

    /// What the peer holds.
    pub fn held(&self) -> Bytes {
        Bytes(self.memory.books().get(&self.of).copied().unwrap_or_default())
    }
}

impl Held {
    /// How much it is.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut books = self.share.memory.books();
        if let Some(own) = books.get_mut(&self.share.of) {
            *own = own.saturating_sub(self.bytes);
            if *own == 0 {
                books.remove(&self.share.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> Fingerprint {
        let digit = char::from(b'1' + number);
        format!("{}0", digit.to_string().repeat(51)).parse().unwrap()
    }

    #[test]
    fn whoever_asks_for_everything_leaves_something() {
        let memory = Memory::new(Bytes(100));
        let [greedy, modest] = [0, 1].map(|number| memory.share(key(number)));
        let most = greedy.take(Bytes(50)).unwrap();
        assert_eq!(
            greedy.take(Bytes(1)).unwrap_err(),
            NoMemory { asked: Bytes(1), held: Bytes(50), most: Bytes(50) }
        );
        assert!(modest.take(Bytes(26)).is_err());
        let own = modest.take(Bytes(25)).unwrap();
        drop(most);
        assert_eq!((greedy.held(), memory.held()), (Bytes(0), Bytes(25)));
        drop(own);
        assert_eq!(memory.held(), Bytes::ZERO);
        assert!(greedy.take(Bytes(u64::MAX)).is_err());
    }

    proptest! {
        /// Never more than there is, and what is given back is there again.
        #[test]
        fn the_books_are_right(steps in proptest::collection::vec((0..4u8, 0..60u64, any::<bool>()), 0..100)) {
            let memory = Memory::new(Bytes(100));
            let mut held: Vec<Held> = Vec::new();
            for (peer, bytes, gives) in steps {
                if gives && !held.is_empty() {
                    held.remove(usize::from(peer) % held.len());
                } else {
                    held.extend(memory.share(key(peer)).take(Bytes(bytes)));
                }
                let sum: u64 = held.iter().map(|held| held.bytes).sum();
                prop_assert_eq!(memory.held(), Bytes(sum));
                prop_assert!(sum < 100);
            }
        }
    }
}
