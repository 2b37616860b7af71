//! Packet sockets: Ethernet frames from and to an interface. They are received through a ring of memory shared with the
//! kernel (`TPACKET_V2`, packet(7)), which stamps each with the time at which it had it; they are sent in batches.
//!
//! Sending does not use a ring: over a veth pair the kernel copies frames anyway, and a ring was no faster.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use socket2::{Domain, Socket, Type};

use crate::interface;

/// A packet socket on one interface.
#[derive(Debug)]
pub struct PacketRing {
    ring: Ring,
    socket: OwnedFd,
    /// The slot that the kernel fills next.
    next: usize,
    mtu: usize,
    batch: Batch,
}

/// A frame in the ring.
#[derive(Clone, Copy, Debug)]
pub struct RingFrame<'r> {
    /// When the kernel had it, in nanoseconds of the calendar's clock; [`Stamps`](crate::clock::Stamps) leads to the
    /// monotonic clock.
    pub stamp: u64,
    /// The frame, from its destination address on; cut to [`PacketRing::largest`].
    pub bytes: &'r [u8],
}

impl PacketRing {
    /// How many frames the kernel keeps for a reader that is late; fewer of those that are larger than usual.
    pub const FRAMES: usize = 4096;

    /// Frames that one system call sends at most.
    pub const BATCH: usize = 64;

    /// Opens a socket on an interface of the calling thread's network namespace. From now on it keeps what arrives there,
    /// and not what it sends itself.
    ///
    /// # Errors
    /// If there is no such interface; without the right to (`CAP_NET_RAW`).
    pub fn open(name: &str) -> io::Result<PacketRing> {
        let index = interface::index(name)?;
        let mtu = interface::mtu(name)?;
        // Without a protocol nothing arrives before it is bound to its interface.
        let socket: OwnedFd = Socket::new(Domain::PACKET, Type::RAW, None)?.into();
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as libc::c_int))?;
        set(&socket, libc::PACKET_IGNORE_OUTGOING, &1)?;
        set(&socket, libc::PACKET_QDISC_BYPASS, &1)?;
        let slot = (libc::TPACKET2_HDRLEN + PADDING + ETHERNET_HEADER + mtu).next_power_of_two();
        let block = slot.max(BLOCK);
        let slots = (MEMORY / slot).clamp(FEWEST, PacketRing::FRAMES);
        let request = libc::tpacket_req {
            tp_block_size: block as libc::c_uint,
            tp_block_nr: (slots * slot / block) as libc::c_uint,
            tp_frame_size: slot as libc::c_uint,
            tp_frame_nr: slots as libc::c_uint,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let ring = Ring::map(&socket, slot, slots)?;
        socket2::SockRef::from(&socket).set_send_buffer_size(8 << 20)?;
        bind(&socket, index)?;
        Ok(PacketRing { ring, socket, next: 0, mtu, batch: Batch::new() })
    }

    /// The largest frame that it carries.
    pub fn largest(&self) -> usize {
        ETHERNET_HEADER + self.mtu
    }

    /// Hands `take` the frames that are there, at most `most`, in the order of their arrival, and says how many. Never
    /// waits, and makes no system call.
    #[inline]
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(RingFrame<'_>)) -> usize {
        for received in 0..most {
            let Some(slot) = self.ring.filled(self.next) else { return received };
            take(slot.frame);
            slot.status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.ring.slots;
        }
        most
    }

    /// Sends frames, without waiting, and says how many the kernel took: it stops at the first that it does not take.
    /// With more than [`PacketRing::BATCH`] it sends the first ones.
    ///
    /// # Errors
    /// That of the first frame, if none was taken.
    pub fn send<'f>(&mut self, frames: impl Iterator<Item = &'f [u8]>) -> io::Result<usize> {
        self.batch.send(&self.socket, frames)
    }

    /// How many frames found the ring full since the last time that this was asked.
    pub fn overflowed(&mut self) -> u64 {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of_val(&statistics) as libc::socklen_t;
        // SAFETY: `statistics` is a valid place for the result, of the length given.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &mut length,
            )
        };
        if result == 0 { u64::from(statistics.tp_drops) } else { 0 }
    }

    /// Takes back the error that makes the socket readable although nothing has arrived: the interface went down.
    pub fn take_error(&self) -> Option<io::Error> {
        socket2::SockRef::from(&self.socket).take_error().ok().flatten()
    }
}

impl AsFd for PacketRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether this kernel has packet sockets at all, be the caller allowed to open one or not.
pub fn is_supported() -> bool {
    let socket = Socket::new(Domain::PACKET, Type::RAW, None);
    !socket.is_err_and(|error| error.raw_os_error() == Some(libc::EAFNOSUPPORT))
}

const ETHERNET_HEADER: usize = 14;
/// Between the slot's header and the frame there are the sender's address and the alignment of the network header.
const PADDING: usize = size_of::<libc::sockaddr_ll>() + 32;
/// What a ring takes of the kernel's memory at most, unless its frames are very large: all of them at the usual MTU.
const MEMORY: usize = 8 << 20;
const FEWEST: usize = 256;
/// The kernel takes the ring's memory in blocks that are contiguous.
const BLOCK: usize = 1 << 16;

/// The memory that is shared with the kernel.
#[derive(Debug)]
struct Ring {
    start: *mut u8,
    slot: usize,
    slots: usize,
}

// SAFETY: the memory belongs to this alone until it is unmapped, and every access needs `&mut PacketRing`.
unsafe impl Send for Ring {}

/// A slot that the kernel has filled.
struct Slot<'r> {
    status: &'r AtomicU32,
    frame: RingFrame<'r>,
}

impl Ring {
    fn map(socket: &OwnedFd, slot: usize, slots: usize) -> io::Result<Ring> {
        // SAFETY: a new mapping of the ring that the socket has been given, with its length; nobody else knows it.
        let start = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                slot * slots,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { start: start.cast(), slot, slots })
    }

    /// The frame in a slot, if the kernel has filled it.
    #[inline]
    fn filled(&self, place: usize) -> Option<Slot<'_>> {
        debug_assert!(place < self.slots);
        // SAFETY: `place` is below `slots`, so the slot lies in the mapping; slots begin at multiples of their size, a
        // power of two, and are aligned for a header. The status is shared with the kernel, hence atomic.
        let (start, status) = unsafe {
            let start = self.start.add(place * self.slot);
            (start, AtomicU32::from_ptr(start.cast()))
        };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has written header and frame, and leaves both alone until the status says so.
        let header = unsafe { start.cast::<libc::tpacket2_hdr>().read() };
        let offset = usize::from(header.tp_mac).min(self.slot);
        let length = (header.tp_snaplen as usize).min(self.slot - offset);
        // SAFETY: as above; offset and length stay within the slot.
        let bytes = unsafe { core::slice::from_raw_parts(start.add(offset), length) };
        let stamp = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        Some(Slot { status, frame: RingFrame { stamp, bytes } })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), self.slot * self.slots) };
    }
}

/// The headers of `sendmmsg`; they point to a batch during the call only.
struct Batch {
    iovecs: Box<[libc::iovec; PacketRing::BATCH]>,
    headers: Box<[libc::mmsghdr; PacketRing::BATCH]>,
}

// SAFETY: the pointers lead into the boxes here, which are owned together, and to frames during a call only.
unsafe impl Send for Batch {}

impl Batch {
    fn new() -> Batch {
        let nothing = libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 };
        let mut iovecs = Box::new([nothing; PacketRing::BATCH]);
        // SAFETY: all-zero bytes are a valid mmsghdr.
        let mut headers: Box<[libc::mmsghdr; PacketRing::BATCH]> = Box::new(unsafe { core::mem::zeroed() });
        for (iovec, header) in iovecs.iter_mut().zip(headers.iter_mut()) {
            header.msg_hdr.msg_iov = iovec;
            header.msg_hdr.msg_iovlen = 1;
        }
        Batch { iovecs, headers }
    }

    fn send<'f>(&mut self, socket: &OwnedFd, frames: impl Iterator<Item = &'f [u8]>) -> io::Result<usize> {
        let mut count = 0;
        for (iovec, frame) in self.iovecs.iter_mut().zip(frames) {
            *iovec = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            count += 1;
        }
        // SAFETY: the first `count` headers point to iovecs of ours, and these to frames that outlive the call; the
        // kernel reads them.
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT as _,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

impl core::fmt::Debug for Batch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Batch")
    }
}

fn bind(socket: &OwnedFd, index: i32) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { core::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `address` is a link-layer address of the length given.
    if unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    let (pointer, length) = ((&raw const *value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: `value` is of the length given, and the kernel only reads it.
    if unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, pointer, length) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
