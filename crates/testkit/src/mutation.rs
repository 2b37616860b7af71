//! Damaged bytes: random changes, a TCP proxy that makes them, and a count of the panics that they cause.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread;

/// The variable with the seed of the changes. `cargo xtask attack` gives each run another one.
pub const SEED: &str = "TRUNKLINE_ATTACK_SEED";

/// Returns the seed of this run: the variable's number, or else always the same one.
pub fn seed() -> u64 {
    std::env::var(SEED).ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Changes bytes at random.
#[derive(Clone, Debug)]
pub struct Mutator(u64);

impl Mutator {
    /// The changes of this seed.
    pub fn new(seed: u64) -> Mutator {
        Mutator(seed)
    }

    /// Returns a number below `end`, or zero if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % (end.max(1) as u64)).unwrap_or(0)
    }

    /// Changes one place: bits, a digit, or a range that goes, comes twice, or comes from nowhere.
    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let length = self.below(16).min(bytes.len() - at);
        match self.below(6) {
            0 | 1 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
            2 => {
                let digits = bytes.iter_mut().filter(|byte| byte.is_ascii_digit());
                let digits: Vec<&mut u8> = digits.collect();
                let chosen = self.below(digits.len());
                if let Some(digit) = digits.into_iter().nth(chosen) {
                    *digit = b"0123456789-.e"[self.below(13)];
                }
            }
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let again = bytes[at..at + length].to_vec();
                bytes.splice(at..at, again);
            }
            _ => {
                let noise: Vec<u8> = (0..length).map(|_| self.below(256) as u8).collect();
                bytes.splice(at..at, noise);
            }
        }
    }
}

/// A TCP proxy that changes half of all pieces in both directions. It ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl Proxy {
    /// Starts a proxy in front of a server on this host.
    ///
    /// # Errors
    /// If the system gives it no port.
    pub fn start(to: SocketAddr, seed: u64) -> std::io::Result<Proxy> {
        let listener = TcpListener::bind((to.ip(), 0))?;
        let (address, is_over) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let of_thread = Arc::clone(&is_over);
        thread::spawn(move || {
            let mut mutator = Mutator::new(seed);
            for client in listener.incoming() {
                if of_thread.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(to)) else { continue };
                let (Ok(back), Ok(forth)) = (client.try_clone(), server.try_clone()) else { continue };
                let [one, other] = [(); 2].map(|()| Mutator::new(mutator.below(usize::MAX) as u64));
                thread::spawn(move || pass(client, forth, one));
                thread::spawn(move || pass(server, back, other));
            }
        });
        Ok(Proxy { address, is_over })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // It waits for a connection.
        drop(TcpStream::connect(self.address));
    }
}

/// Passes bytes on until either end closes.
fn pass(mut from: TcpStream, mut to: TcpStream, mut mutator: Mutator) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let mut piece = buffer[..length].to_vec();
        if mutator.below(2) == 0 {
            mutator.damage(&mut piece);
        }
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    // Ends that have closed already cannot be shut down.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

static PANICS: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());

/// Counts the panics of threads with these names from now on: a server that goes on after one hides it.
pub fn panics_of(names: &'static [&'static str]) -> impl Fn() -> usize {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let name = thread::current().name().unwrap_or_default().to_owned();
            *PANICS.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
            usual(panic);
        }));
    });
    let count = move || {
        let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().filter_map(|name| panics.get(*name)).sum::<usize>()
    };
    let before = count();
    move || count() - before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_changes_and_each_kind_of_them() {
        let text = b"{\"say\":\"hello\",\"version\":1}\n";
        let changed = |seed| {
            let mut bytes = text.to_vec();
            Mutator::new(seed).damage(&mut bytes);
            bytes
        };
        let all: Vec<Vec<u8>> = (0..200).map(changed).collect();
        assert_eq!(all, (0..200).map(changed).collect::<Vec<_>>());
        assert!(all.iter().filter(|bytes| bytes != &text).count() > 150);
        for (what, is_there) in [
            ("shorter", all.iter().any(|bytes| bytes.len() < text.len())),
            ("longer", all.iter().any(|bytes| bytes.len() > text.len())),
            ("as long", all.iter().any(|bytes| bytes.len() == text.len() && bytes != text)),
        ] {
            assert!(is_there, "none is {what}");
        }
        // Nothing can be changed in nothing, except by noise.
        (0..50).for_each(|seed| Mutator::new(seed).damage(&mut Vec::new()));
    }

    #[test]
    fn a_panic_is_counted_for_its_thread() {
        let (ours, others) = (panics_of(&["one that panics"]), panics_of(&["one that does not"]));
        let thread = thread::Builder::new().name("one that panics".into());
        assert!(thread.spawn(|| panic!("as the test wants")).unwrap().join().is_err());
        assert_eq!((ours(), others()), (1, 0));
    }
}
