//! Receiving many datagrams at once, and answering them in place.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use trunkline_core::Ecn;

/// Whether a receive waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// For the first datagram, at most for the socket's receive timeout.
    Block,
    /// Not at all.
    Poll,
}

/// Memory for a batch of datagrams as they arrive, made once and used for every batch.
///
/// A datagram that is longer than a slot is cut to it, and shows as one byte longer than the largest that was asked
/// for, so that nobody takes it for a whole one.
pub struct ReceiveBatch {
    slots: usize,
    size: usize,
    bytes: Vec<u8>,
    received: usize,
    system: System,
}

impl core::fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ReceiveBatch")
            .field("slots", &self.slots)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl ReceiveBatch {
    /// Room for at most `slots` datagrams per call, each of at most `largest` bytes.
    pub fn new(slots: usize, largest: usize) -> ReceiveBatch {
        let (slots, size) = (slots.max(1), largest.saturating_add(1));
        ReceiveBatch {
            slots,
            size,
            bytes: vec![0; slots * size],
            received: 0,
            system: System::new(slots, size),
        }
    }

    /// Receives what is there into the batch, in place of what it held, and says how many: 0 if the wait was over or a
    /// signal came. The call is one system call however many datagrams there are.
    ///
    /// # Errors
    /// What the socket reports; for a connected one also that an earlier datagram of ours found nobody
    /// ([`io::ErrorKind::ConnectionRefused`]).
    pub fn receive(&mut self, socket: &UdpSocket, wait: Wait) -> io::Result<usize> {
        self.received = 0;
        match self.system.receive(&mut self.bytes, self.size, socket, wait) {
            Ok(count) => self.received = count,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(self.received)
    }

    /// How many datagrams it holds.
    pub fn len(&self) -> usize {
        self.received
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.received == 0
    }

    /// A datagram of the last receive.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn datagram(&self, place: usize) -> &[u8] {
        assert!(place < self.received, "the batch holds {} datagrams", self.received);
        let start = place * self.size;
        &self.bytes[start..start + self.system.length(place).min(self.size)]
    }

    /// The same, to be changed in place before [`ReceiveBatch::reply`].
    ///
    /// # Panics
    /// If there are not so many.
    pub fn datagram_mut(&mut self, place: usize) -> &mut [u8] {
        assert!(place < self.received, "the batch holds {} datagrams", self.received);
        let start = place * self.size;
        let length = self.system.length(place).min(self.size);
        &mut self.bytes[start..start + length]
    }

    /// Who sent it.
    pub fn source(&self, place: usize) -> Option<SocketAddr> {
        if place < self.received { self.system.source(place) } else { None }
    }

    /// When the kernel had it, in nanoseconds of the calendar's clock, if the socket was told to stamp
    /// ([`stamp_received`](super::stamp_received)); [`Stamps`](crate::clock::Stamps) leads to the monotonic
    /// clock.
    pub fn stamp(&self, place: usize) -> Option<u64> {
        if place < self.received { self.system.stamp(place) } else { None }
    }

    /// Its ECN field, if the socket was told to tell ([`tell_ecn`](super::tell_ecn)); otherwise not capable.
    pub fn ecn(&self, place: usize) -> Ecn {
        if place < self.received { self.system.ecn(place) } else { Ecn::NotCapable }
    }

    /// Sends those datagrams for which `choose` is true back to where they came from, as they are now, without
    /// waiting; says how many the kernel took. A batch can be answered once.
    ///
    /// # Errors
    /// That of the first, when none was taken.
    pub fn reply(&mut self, socket: &UdpSocket, choose: impl FnMut(usize) -> bool) -> io::Result<usize> {
        let received = core::mem::take(&mut self.received);
        self.system.reply(&self.bytes, self.size, received, socket, choose)
    }
}

#[cfg(target_os = "linux")]
use linux::System;
#[cfg(not(target_os = "linux"))]
use portable::System;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::{SocketAddr, UdpSocket};
    use std::os::fd::AsRawFd as _;

    use trunkline_core::Ecn;

    use super::Wait;
    use crate::udp::system;

    /// Room for two control messages, with a time stamp and with the ECN field, aligned as the kernel wants it.
    const CONTROL: usize = 8;

    pub(super) struct System {
        iovecs: Vec<libc::iovec>,
        addresses: Vec<libc::sockaddr_storage>,
        control: Vec<[u64; CONTROL]>,
        headers: Vec<libc::mmsghdr>,
        /// So many headers do not stand as a receive wants them: at first none does, later those last used.
        used: usize,
    }

    // SAFETY: the raw pointers inside lead into the vectors here and into the batch's bytes, all of them on the heap,
    // never resized and owned together with this; they are followed during system calls only.
    unsafe impl Send for System {}

    impl System {
        pub(super) fn new(slots: usize, _: usize) -> System {
            let nothing = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
            System {
                iovecs: vec![nothing; slots],
                addresses: vec![system::empty_address(); slots],
                control: vec![[0; CONTROL]; slots],
                headers: vec![system::empty_header(); slots],
                used: slots,
            }
        }

        pub(super) fn receive(
            &mut self,
            bytes: &mut [u8],
            size: usize,
            socket: &UdpSocket,
            wait: Wait,
        ) -> io::Result<usize> {
            self.prepare(bytes, size);
            let flags = match wait {
                Wait::Block => libc::MSG_WAITFORONE,
                Wait::Poll => libc::MSG_DONTWAIT,
            };
            // SAFETY: every header points to an iovec, an address and a control buffer of ours with their lengths,
            // every iovec to a slot of `bytes`; all of them outlive the call. A null timeout means none.
            let received = unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    self.headers.as_mut_ptr(),
                    self.headers.len() as libc::c_uint,
                    flags as _,
                    core::ptr::null_mut(),
                )
            };
            let received = usize::try_from(received).map_err(|_| io::Error::last_os_error());
            self.used = received.as_ref().map_or(1, |&received| (received + 1).min(self.headers.len()));
            received
        }

        /// Points every used header to its slot of `bytes`, address and control buffer, with their whole lengths.
        fn prepare(&mut self, bytes: &mut [u8], size: usize) {
            let slots = bytes.chunks_exact_mut(size).zip(&mut self.iovecs).take(self.used);
            let books = self.addresses.iter_mut().zip(&mut self.control).zip(&mut self.headers);
            for ((slot, iovec), ((address, control), header)) in slots.zip(books) {
                *iovec = libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: size };
                header.msg_hdr.msg_name = (&raw mut *address).cast();
                header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
                header.msg_hdr.msg_iov = iovec;
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = (&raw mut *control).cast();
                header.msg_hdr.msg_controllen = size_of_val(control) as _;
            }
        }

        pub(super) fn length(&self, place: usize) -> usize {
            self.headers[place].msg_len as usize
        }

        pub(super) fn source(&self, place: usize) -> Option<SocketAddr> {
            system::address(&self.addresses[place])
        }

        pub(super) fn stamp(&self, place: usize) -> Option<u64> {
            self.find(place, |level, kind, data| {
                if (level, kind) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                    return None;
                }
                // SAFETY: the kernel has written a timespec; it may be unaligned, hence `read_unaligned`.
                let time = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
            })
        }

        pub(super) fn ecn(&self, place: usize) -> Ecn {
            let bits = self.find(place, |level, kind, data| match (level, kind) {
                // SAFETY: the kernel has written one byte.
                (libc::IPPROTO_IP, libc::IP_TOS) => Some(unsafe { data.read() }),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    // SAFETY: the kernel has written an int; it may be unaligned, hence `read_unaligned`.
                    let class = unsafe { data.cast::<libc::c_int>().read_unaligned() };
                    Some(class as u8)
                }
                _ => None,
            });
            Ecn::of_bits(bits.unwrap_or(0))
        }

        /// What `read` makes of the first control message that it wants, by level, kind and data.
        fn find<T>(
            &self,
            place: usize,
            read: impl Fn(libc::c_int, libc::c_int, *const u8) -> Option<T>,
        ) -> Option<T> {
            let mut header = self.headers[place].msg_hdr;
            // The control buffer may have moved with `self` since the call.
            header.msg_control = self.control[place].as_ptr().cast_mut().cast();
            // SAFETY: `header` describes our control buffer and how much of it the kernel has written; the macros
            // stay within that.
            unsafe {
                let mut message = libc::CMSG_FIRSTHDR(&header);
                while !message.is_null() {
                    let (level, kind) = ((*message).cmsg_level, (*message).cmsg_type);
                    if let Some(found) = read(level, kind, libc::CMSG_DATA(message)) {
                        return Some(found);
                    }
                    message = libc::CMSG_NXTHDR(&header, message);
                }
            }
            None
        }

        pub(super) fn reply(
            &mut self,
            bytes: &[u8],
            size: usize,
            received: usize,
            socket: &UdpSocket,
            mut choose: impl FnMut(usize) -> bool,
        ) -> io::Result<usize> {
            // The headers of the receive already name the senders: only lengths change, and the chosen move up.
            let mut chosen = 0;
            for place in 0..received {
                if !choose(place) {
                    continue;
                }
                let length = self.length(place).min(size);
                let slot = &bytes[place * size..][..length];
                self.iovecs[chosen] =
                    libc::iovec { iov_base: slot.as_ptr().cast_mut().cast(), iov_len: length };
                let namelen = self.headers[place].msg_hdr.msg_namelen;
                let header = &mut self.headers[chosen].msg_hdr;
                header.msg_name = (&raw mut self.addresses[place]).cast();
                header.msg_namelen = namelen;
                header.msg_iov = &raw mut self.iovecs[chosen];
                header.msg_iovlen = 1;
                header.msg_control = core::ptr::null_mut();
                header.msg_controllen = 0;
                header.msg_flags = 0;
                chosen += 1;
            }
            self.send(chosen, socket)
        }

        fn send(&mut self, count: usize, socket: &UdpSocket) -> io::Result<usize> {
            if count == 0 {
                return Ok(0);
            }
            let descriptor = socket.as_raw_fd();
            if count == 1 {
                let (header, iovec) = (&self.headers[0].msg_hdr, &self.iovecs[0]);
                // SAFETY: address and bytes are ours, with their lengths; the kernel only reads them.
                let sent = unsafe {
                    libc::sendto(
                        descriptor,
                        iovec.iov_base,
                        iovec.iov_len,
                        libc::MSG_DONTWAIT,
                        header.msg_name.cast(),
                        header.msg_namelen,
                    )
                };
                return if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(1) };
            }
            // SAFETY: the first `count` headers point to iovecs and addresses of ours and, through them, to slots of
            // the batch; the kernel reads them and writes `msg_len` only.
            let sent = unsafe {
                libc::sendmmsg(
                    descriptor,
                    self.headers.as_mut_ptr(),
                    count as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                )
            };
            usize::try_from(sent).map_err(|_| io::Error::last_os_error())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::io;
    use std::net::{SocketAddr, UdpSocket};

    use super::Wait;

    pub(super) struct System {
        received: Vec<(usize, Option<SocketAddr>)>,
        slots: usize,
    }

    impl System {
        pub(super) fn new(slots: usize, _: usize) -> System {
            System { received: Vec::with_capacity(slots), slots }
        }

        pub(super) fn receive(
            &mut self,
            bytes: &mut [u8],
            size: usize,
            socket: &UdpSocket,
            wait: Wait,
        ) -> io::Result<usize> {
            self.received.clear();
            socket.set_nonblocking(wait == Wait::Poll)?;
            for slot in bytes.chunks_exact_mut(size).take(self.slots) {
                match socket.recv_from(slot) {
                    Ok((length, source)) => self.received.push((length, Some(source))),
                    Err(error) if self.received.is_empty() => return Err(error),
                    Err(_) => break,
                }
                socket.set_nonblocking(true)?;
            }
            Ok(self.received.len())
        }

        pub(super) fn length(&self, place: usize) -> usize {
            self.received[place].0
        }

        pub(super) fn source(&self, place: usize) -> Option<SocketAddr> {
            self.received[place].1
        }

        pub(super) fn stamp(&self, _: usize) -> Option<u64> {
            None
        }

        pub(super) fn ecn(&self, _: usize) -> trunkline_core::Ecn {
            trunkline_core::Ecn::NotCapable
        }

        pub(super) fn reply(
            &mut self,
            bytes: &[u8],
            size: usize,
            received: usize,
            socket: &UdpSocket,
            mut choose: impl FnMut(usize) -> bool,
        ) -> io::Result<usize> {
            let mut sent = 0;
            for place in (0..received).filter(|&place| choose(place)) {
                let (length, Some(to)) = self.received[place] else { continue };
                match socket.send_to(&bytes[place * size..][..length.min(size)], to) {
                    Ok(_) => sent += 1,
                    Err(error) if sent == 0 => return Err(error),
                    Err(_) => break,
                }
            }
            Ok(sent)
        }
    }
}
