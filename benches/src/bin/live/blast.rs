//! Packets a second that can be sent, received and accounted for: a sender without a pace, and a sink that knows of
//! every packet whether it came, in which order, and after how long.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};

use hdrhistogram::Histogram;
use trunkline_core::{Duration, FlowId, Time};
use trunkline_io::MonotonicClock;
use trunkline_io::udp::{MAX_SEGMENTS, ReceiveBatch, SendBatch, Wait, set_segment_size};
use trunkline_live::Receive;
use trunkline_transport::framing::{HEADER_LENGTH, Header, Key, MessageKind, decode_message};

/// The packets that are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blast {
    /// Bytes of a datagram, the header included: at least [`HEADER_LENGTH`].
    pub(super) datagram: usize,
    /// Datagrams per system call; with offload at most [`MAX_SEGMENTS`].
    pub(super) batch: usize,
    /// True if the kernel cuts each batch into datagrams (UDP_SEGMENT).
    pub(super) offload: bool,
    /// Duration of sending.
    pub(super) duration: Duration,
}

/// The result of a [`sender`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Datagrams that the kernel took.
    pub(super) packets: u64,
    /// Duration of sending.
    pub(super) elapsed: Duration,
}

/// Sends measured datagrams through a connected socket as fast as the kernel takes them.
///
/// # Errors
/// If offload is not to be had, or the socket fails. A kernel without room, and an answer that nobody listens, are
/// not errors: what was not taken is sent again.
pub(super) fn sender(socket: &UdpSocket, key: Key, clock: MonotonicClock, blast: &Blast) -> io::Result<Sent> {
    let size = blast.datagram.max(HEADER_LENGTH);
    let batch = if blast.offload { blast.batch.clamp(1, MAX_SEGMENTS) } else { blast.batch.max(1) };
    let segment =
        if blast.offload { u16::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)? } else { 0 };
    set_segment_size(socket, segment)?;
    let mut send = SendBatch::with_capacity(batch);
    let mut bytes = vec![0u8; size * batch];
    let mut sent = Sent::default();
    let start = clock.now();
    let end = start + blast.duration;
    loop {
        let now = clock.now();
        if now >= end {
            sent.elapsed = now.since(start);
            return Ok(sent);
        }
        for (place, datagram) in bytes.chunks_exact_mut(size).enumerate() {
            let header = Header {
                key,
                length: (size - HEADER_LENGTH) as u32,
                place: trunkline_transport::framing::Place::Before,
                flow: FlowId(0),
                sequence: sent.packets.wrapping_add(place as u64) as u32,
                channel: 0,
                kind: MessageKind::Forward,
                late: Duration::ZERO,
                sent: now,
                reflected: Time::ZERO,
            };
            header.encode(datagram);
        }
        let taken = if blast.offload {
            send.send(socket, [bytes.as_slice()]).map(|calls| calls * batch)
        } else {
            send.send(socket, bytes.chunks_exact(size))
        };
        match taken {
            Ok(taken) => sent.packets += taken as u64,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused)
        || error.raw_os_error() == Some(nix::libc::ENOBUFS)
}

/// The result of a [`receiver`].
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// Distinct datagrams that arrived.
    pub(super) received: u64,
    /// Sequence numbers below the highest that did not arrive.
    pub(super) missing: u64,
    /// Arrived after a datagram with a larger sequence number (RFC 4737 section 3).
    pub(super) reordered: u64,
    /// Further copies, as far as they came within [`WINDOW`] datagrams of the first.
    pub(super) duplicate: u64,
    /// Datagrams that were not the sender's.
    pub(super) stray: u64,
    /// From sending to receiving, in nanoseconds, right within 0.8 %.
    pub(super) latency: Histogram<u64>,
    /// From the first to the last arrival.
    pub(super) elapsed: Duration,
    order: Order,
}

/// Sequence numbers before the newest that the sink remembers.
pub(super) const WINDOW: u64 = 1 << 16;

/// Receives and accounts for what one [`sender`] sends, until `over` is set and nothing more comes. The socket's
/// receive timeout decides how soon that is seen, and must not be endless.
///
/// # Errors
/// If the socket fails.
pub(super) fn receiver(
    socket: &UdpSocket,
    key: Key,
    clock: MonotonicClock,
    datagram: usize,
    receive: Receive,
    over: &AtomicBool,
) -> io::Result<Account> {
    let mut batch = ReceiveBatch::new(64, datagram);
    // A receiver that sleeps whenever it has caught up makes the sender wake it for every datagram.
    let wait = match receive {
        Receive::Blocking => Wait::Block,
        Receive::Polling => Wait::Poll,
    };
    let mut account = Account::new();
    let (mut first, mut last) = (None, Time::ZERO);
    loop {
        let count = batch.receive(socket, wait)?;
        if count == 0 {
            if over.load(Ordering::Relaxed) {
                account.elapsed = last.since(first.unwrap_or(last));
                return Ok(account);
            }
            continue;
        }
        let now = clock.now();
        first.get_or_insert(now);
        last = now;
        for place in 0..count {
            match decode_message(batch.datagram(place), key) {
                Ok((header, _)) => account.take(&header, now),
                Err(_) => account.stray += 1,
            }
        }
    }
}

impl Account {
    fn new() -> Account {
        Account {
            received: 0,
            missing: 0,
            reordered: 0,
            duplicate: 0,
            stray: 0,
            // From 1 ns to 17 s with two digits: 3,000 counters, which stay in the cache.
            latency: Histogram::new_with_bounds(1, 1 << 34, 2)
                .expect("the bounds are in order and two digits allowed"),
            elapsed: Duration::ZERO,
            order: Order::default(),
        }
    }

    #[inline]
    fn take(&mut self, header: &Header, now: Time) {
        match self.order.judge(header.sequence) {
            Judged::Next => {}
            Judged::Earlier => self.reordered += 1,
            Judged::Again => {
                self.duplicate += 1;
                return;
            }
        }
        self.received += 1;
        self.missing = self.order.next - self.received;
        self.latency.saturating_record(now.since(header.sent).as_nanos());
    }
}

/// Which sequence numbers have been seen: all below `next`, but for the zeros among the last [`WINDOW`].
#[derive(Clone, Debug)]
struct Order {
    /// One more than the highest so far.
    next: u64,
    /// A bit for each of the last `WINDOW` numbers, at its place modulo that.
    seen: Vec<u64>,
}

enum Judged {
    /// Higher than all before.
    Next,
    /// Lower than one before, and new as far as is known.
    Earlier,
    /// A copy.
    Again,
}

impl Default for Order {
    fn default() -> Order {
        Order { next: 0, seen: vec![0; (WINDOW / 64) as usize] }
    }
}

impl Order {
    #[inline]
    fn judge(&mut self, sequence: u32) -> Judged {
        // The number of 32 bits stands for the one nearest to where we are.
        let ahead = sequence.wrapping_sub(self.next as u32).cast_signed();
        let Some(number) = self.next.checked_add_signed(i64::from(ahead)) else { return Judged::Again };
        let (word, bit) = ((number % WINDOW / 64) as usize, 1u64 << (number % 64));
        if number >= self.next {
            // Places between were left when the window last came by.
            if number == self.next {
                self.seen[word] |= bit;
            } else {
                for between in self.next.max(number.saturating_sub(WINDOW))..number {
                    self.seen[(between % WINDOW / 64) as usize] &= !(1 << (between % 64));
                }
                self.seen[word] |= bit;
            }
            self.next = number + 1;
            return Judged::Next;
        }
        if number + WINDOW < self.next {
            return Judged::Earlier;
        }
        if self.seen[word] & bit != 0 {
            return Judged::Again;
        }
        self.seen[word] |= bit;
        Judged::Earlier
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;
    use trunkline_io::udp::{SocketOptions, open, set_receive_timeout};

    use super::*;

    fn take_all(sequences: &[u32]) -> Account {
        let mut account = Account::new();
        for &sequence in sequences {
            let header = Header {
                place: trunkline_transport::framing::Place::Before,
                key: Key(1),
                length: 0,
                flow: FlowId(0),
                sequence,
                channel: 0,
                kind: MessageKind::Forward,
                late: Duration::ZERO,
                sent: Time::ZERO,
                reflected: Time::ZERO,
            };
            account.take(&header, Time::from_nanos(5));
        }
        account
    }

    #[test]
    fn every_sequence_number_is_accounted_for() {
        let account = take_all(&[0, 1, 3, 2, 2, 6, 3, 9]);
        assert_eq!(
            (account.received, account.missing, account.reordered, account.duplicate),
            (6, 4, 1, 2),
            "4, 5, 7 and 8 are missing"
        );
        assert_eq!(account.latency.len(), 6);
    }

    proptest! {
        #[test]
        fn the_account_agrees_with_a_plain_list(
            sequences in proptest::collection::vec(0u32..400, 0..600),
        ) {
            let account = take_all(&sequences);
            let mut seen = std::collections::BTreeSet::new();
            let (mut reordered, mut duplicate) = (0, 0);
            for &sequence in &sequences {
                let below = seen.last().is_some_and(|&highest| sequence < highest);
                if !seen.insert(sequence) {
                    duplicate += 1;
                } else if below {
                    reordered += 1;
                }
            }
            let highest = seen.last().map_or(0, |&highest| u64::from(highest) + 1);
            prop_assert_eq!(account.received, seen.len() as u64);
            prop_assert_eq!(account.missing, highest - seen.len() as u64);
            prop_assert_eq!(account.reordered, reordered);
            prop_assert_eq!(account.duplicate, duplicate);
        }
    }

    #[test]
    fn numbers_go_on_where_32_bits_end() {
        let mut order = Order { next: u64::from(u32::MAX), ..Order::default() };
        assert!(matches!(order.judge(u32::MAX), Judged::Next));
        assert!(matches!(order.judge(0), Judged::Next));
        assert_eq!(order.next, (1 << 32) + 1);
        assert!(matches!(order.judge(u32::MAX), Judged::Again));
    }

    #[test]
    fn what_is_sent_is_received() {
        for offload in [false, cfg!(target_os = "linux")] {
            let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
            let large = SocketOptions { receive_buffer: Some(4 << 20), ..SocketOptions::default() };
            let (sink, _) = open(any, None, large).unwrap();
            set_receive_timeout(&sink, Duration::from_millis(50)).unwrap();
            let (source, _) = open(any, Some(sink.local_addr().unwrap()), SocketOptions::default()).unwrap();
            let clock = MonotonicClock::starting_now();
            let over = AtomicBool::new(false);
            let blast = Blast { datagram: 80, batch: 16, offload, duration: Duration::from_millis(20) };
            let (sent, account) = std::thread::scope(|scope| {
                let receiving =
                    scope.spawn(|| receiver(&sink, Key(9), clock, 80, Receive::Blocking, &over).unwrap());
                let sent = sender(&source, Key(9), clock, &blast).unwrap();
                over.store(true, Ordering::Relaxed);
                (sent, receiving.join().unwrap())
            });
            assert!(sent.packets > 0 && account.received > 0);
            assert!(account.received + account.missing <= sent.packets);
            assert_eq!((account.duplicate, account.stray, account.reordered), (0, 0, 0));
        }
    }
}
