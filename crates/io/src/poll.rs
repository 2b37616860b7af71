//! Waiting for several sockets and for other threads at once.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use trunkline_core::Duration;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Something to read, or the end.
    Read,
    /// Room to write.
    Write,
}

/// A fixed set of descriptors, waited for together (`poll`).
///
/// For the few dozen sockets of one thread; waiting costs time in proportion to the set.
#[derive(Debug)]
pub struct Poller<'f> {
    entries: Vec<libc::pollfd>,
    /// The descriptors stay open as long as they are waited for.
    _descriptors: core::marker::PhantomData<BorrowedFd<'f>>,
}

impl<'f> Poller<'f> {
    /// Waits for these, each with its interest.
    pub fn new(descriptors: impl IntoIterator<Item = (BorrowedFd<'f>, Interest)>) -> Poller<'f> {
        Poller {
            entries: descriptors.into_iter().map(entry).collect(),
            _descriptors: core::marker::PhantomData,
        }
    }

    /// Waits until at least one is ready or `timeout` has passed, and says how many are ready. An interrupting signal
    /// counts as a timeout.
    pub fn wait(&mut self, timeout: Duration) -> io::Result<usize> {
        let ready = wait(&mut self.entries, timeout);
        ready.or_else(|error| {
            self.entries.iter_mut().for_each(|entry| entry.revents = 0);
            uninterrupted(error)
        })
    }

    /// The places, in the order of [`Poller::new`], of those that were ready in the last wait.
    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        self.entries.iter().enumerate().filter(|(_, entry)| entry.revents != 0).map(|(place, _)| place)
    }
}

/// A set of descriptors that differs from wait to wait; its memory is used again.
#[derive(Debug, Default)]
pub struct PollSet {
    entries: Vec<libc::pollfd>,
}

impl PollSet {
    /// Waits until at least one of these is ready or `timeout` has passed, and says how many are ready. An interrupting
    /// signal counts as a timeout.
    ///
    /// # Errors
    /// If the system lacks memory.
    pub fn wait<'f>(
        &mut self,
        descriptors: impl IntoIterator<Item = (BorrowedFd<'f>, Interest)>,
        timeout: Duration,
    ) -> io::Result<usize> {
        self.entries.clear();
        self.entries.extend(descriptors.into_iter().map(entry));
        wait(&mut self.entries, timeout).or_else(uninterrupted)
    }
}

fn entry((descriptor, interest): (BorrowedFd<'_>, Interest)) -> libc::pollfd {
    let events = match interest {
        Interest::Read => libc::POLLIN,
        Interest::Write => libc::POLLOUT,
    };
    libc::pollfd { fd: descriptor.as_raw_fd(), events, revents: 0 }
}

fn uninterrupted(error: io::Error) -> io::Result<usize> {
    if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) }
}

#[cfg(target_os = "linux")]
fn wait(entries: &mut [libc::pollfd], timeout: Duration) -> io::Result<usize> {
    let timeout = libc::timespec {
        tv_sec: (timeout.as_nanos() / 1_000_000_000) as libc::time_t,
        tv_nsec: (timeout.as_nanos() % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: pointer and length are those of one slice; the timeout is valid; a null mask leaves signals alone.
    let ready = unsafe {
        libc::ppoll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, &timeout, core::ptr::null())
    };
    usize::try_from(ready).map_err(|_| io::Error::last_os_error())
}

#[cfg(not(target_os = "linux"))]
fn wait(entries: &mut [libc::pollfd], timeout: Duration) -> io::Result<usize> {
    let millis = libc::c_int::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX);
    // SAFETY: pointer and length are those of one slice.
    let ready = unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, millis) };
    usize::try_from(ready).map_err(|_| io::Error::last_os_error())
}

/// Wakes a thread that waits in a [`Poller`]: a pipe to oneself.
#[derive(Debug)]
pub struct Wakeup {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Wakeup {
    /// A new one, not set.
    pub fn new() -> io::Result<Wakeup> {
        let (reader, writer) = io::pipe()?;
        let wakeup = Wakeup { reader: reader.into(), writer: writer.into() };
        set_nonblocking(wakeup.reader.as_fd())?;
        set_nonblocking(wakeup.writer.as_fd())?;
        Ok(wakeup)
    }

    /// Sets it: the next wait for it returns at once.
    pub fn set(&self) {
        // SAFETY: one byte is read from a valid place. A full pipe is as good as set; nothing else can go wrong
        // while both ends are owned here.
        unsafe { libc::write(self.writer.as_raw_fd(), [1u8].as_ptr().cast(), 1) };
    }

    /// Takes it back, after a wait.
    pub fn clear(&self) {
        let mut bytes = [0u8; 64];
        loop {
            // SAFETY: at most 64 bytes are written into 64 that are ours.
            let got = unsafe { libc::read(self.reader.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
            if got < bytes.len() as isize {
                return;
            }
        }
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

fn set_nonblocking(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both calls take and give integers only, on a descriptor that is open.
    let result = unsafe {
        let flags = libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL);
        if flags < 0 {
            flags
        } else {
            libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
        }
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_waits_for_other_descriptors_each_time() {
        let [one, other] = [(); 2].map(|()| Wakeup::new().unwrap());
        let mut set = PollSet::default();
        one.set();
        assert_eq!(set.wait([(other.as_fd(), Interest::Read)], Duration::ZERO).unwrap(), 0);
        let both = [(one.as_fd(), Interest::Read), (other.as_fd(), Interest::Read)];
        assert_eq!(set.wait(both, Duration::from_secs(10)).unwrap(), 1);
    }

    #[test]
    fn a_wakeup_is_seen_once() {
        let wakeup = Wakeup::new().unwrap();
        let mut poller = Poller::new([(wakeup.as_fd(), Interest::Read)]);
        assert_eq!(poller.wait(Duration::ZERO).unwrap(), 0);
        wakeup.set();
        wakeup.set();
        assert_eq!(poller.wait(Duration::from_secs(10)).unwrap(), 1);
        assert_eq!(poller.ready().collect::<Vec<_>>(), [0]);
        wakeup.clear();
        assert_eq!(poller.wait(Duration::ZERO).unwrap(), 0);
        assert_eq!(poller.ready().count(), 0);
    }
}
