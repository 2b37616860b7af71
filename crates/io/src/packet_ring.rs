//! Packet sockets: Ethernet frames from and to an interface. They are received through a ring of memory shared with the
//! kernel (`TPACKET_V2`, packet(7)), which stamps each with the time at which it had it; they are sent in batches.
//!
//! Sending does not use a ring: over a veth pair the kernel copies frames anyway, and a ring was no faster.
//!
//! Frames have an [`Offload`] in front, in both directions. A frame of several segments is larger than a slot of the ring: the
//! kernel puts it into the socket's receive buffer and marks its slot.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use socket2::{Domain, Socket, Type};

use crate::interface;
use crate::offload::Offload;

/// A packet socket on one interface.
pub struct PacketRing {
    ring: Ring,
    socket: OwnedFd,
    /// The slot that the kernel fills next.
    next: usize,
    mtu: usize,
    /// Room for a frame from the receive buffer, behind its offload.
    large: Box<[u8]>,
    /// Frames that found the receive buffer full.
    lost: u64,
    headers: Box<[libc::mmsghdr; PacketRing::BATCH]>,
}

/// A frame that was received.
#[derive(Clone, Copy, Debug)]
pub struct RingFrame<'r> {
    /// When the kernel had it, in nanoseconds of the calendar's clock; [`Stamps`](crate::clock::Stamps) leads to the
    /// monotonic clock.
    pub stamp: u64,
    /// The work that the kernel has left; `None` if it is unknown.
    pub offload: Option<Offload>,
    /// The frame, from its destination address on.
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
        set(&socket, libc::PACKET_VNET_HDR, &1)?;
        set(&socket, libc::PACKET_COPY_THRESH, &1)?;
        let front = libc::TPACKET2_HDRLEN + PADDING + Offload::LENGTH;
        let slot = (front + ETHERNET_HEADER + mtu).next_power_of_two();
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
        let buffers = socket2::SockRef::from(&socket);
        buffers.set_send_buffer_size(BUFFER as usize)?;
        // Beyond the system's limit, where that is allowed.
        if set_of(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &BUFFER).is_err() {
            buffers.set_recv_buffer_size(BUFFER as usize)?;
        }
        bind(&socket, index)?;
        // SAFETY: all-zero bytes are a valid mmsghdr.
        let headers = Box::new(unsafe { core::mem::zeroed() });
        let large = vec![0; Offload::LENGTH + ETHERNET_HEADER + LARGEST].into();
        Ok(PacketRing { ring, socket, next: 0, mtu, large, lost: 0, headers })
    }

    /// The largest frame that it carries, but for those that are to be cut.
    pub fn largest(&self) -> usize {
        ETHERNET_HEADER + self.mtu
    }

    /// Hands `take` the frames that are there, at most `most`, in the order of their arrival, and says how many. Never
    /// waits, and makes no system call but for frames that are larger than a slot.
    #[inline]
    pub fn receive(&mut self, most: usize, mut take: impl FnMut(RingFrame<'_>)) -> usize {
        for received in 0..most {
            let Some(slot) = self.ring.filled(self.next) else { return received };
            if slot.is_whole {
                take(slot.frame);
            } else if slot.is_copied
                && let Some((offload, bytes)) = receive_large(&self.socket, &mut self.large)
            {
                take(RingFrame { offload, bytes, ..slot.frame });
            } else {
                self.lost += 1;
            }
            slot.status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next = (self.next + 1) % self.ring.slots;
        }
        most
    }

    /// Sends frames, without waiting, and says how many the kernel took: it stops at the first that it does not take.
    /// With more than [`PacketRing::BATCH`] it sends the first ones. A frame is in pieces: an [`Offload`], then the frame itself.
    ///
    /// # Errors
    /// That of the first frame, if none was taken.
    pub fn send<'f>(&mut self, frames: impl Iterator<Item = &'f [IoSlice<'f>]>) -> io::Result<usize> {
        let mut count = 0;
        for (header, pieces) in self.headers.iter_mut().zip(frames) {
            // An IoSlice is an iovec, and the kernel only reads.
            header.msg_hdr.msg_iov = pieces.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_iovlen = pieces.len() as _;
            count += 1;
        }
        // SAFETY: the first `count` headers point to pieces that outlive the call, as all that they point to; the kernel reads
        // them.
        let sent = unsafe {
            libc::sendmmsg(
                self.socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT as _,
            )
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Returns the number of frames that found the ring or the receive buffer full, and resets it.
    pub fn overflowed(&mut self) -> u64 {
        let lost = core::mem::take(&mut self.lost);
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
        lost + if result == 0 { u64::from(statistics.tp_drops) } else { 0 }
    }

    /// Takes back the error that makes the socket readable although nothing has arrived: the interface went down.
    pub fn take_error(&self) -> Option<io::Error> {
        socket2::SockRef::from(&self.socket).take_error().ok().flatten()
    }
}

impl core::fmt::Debug for PacketRing {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PacketRing").field("mtu", &self.mtu).finish_non_exhaustive()
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
/// The largest packet of IP.
const LARGEST: usize = 1 << 16;
/// The size of the kernel's buffer for each direction.
const BUFFER: libc::c_int = 8 << 20;
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
// SAFETY: the pointers in the headers are used during a call of `send` only, which sets them.
unsafe impl Send for PacketRing {}

/// A slot that the kernel has filled.
struct Slot<'r> {
    status: &'r AtomicU32,
    /// True if the slot has all of the frame.
    is_whole: bool,
    /// True if the receive buffer has all of it.
    is_copied: bool,
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
        let now = status.load(Ordering::Acquire);
        if now & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel has written header and frame, and leaves both alone until the status says so.
        let header = unsafe { start.cast::<libc::tpacket2_hdr>().read() };
        let offset = usize::from(header.tp_mac).min(self.slot);
        let length = (header.tp_snaplen as usize).min(self.slot - offset);
        let front = offset.min(Offload::LENGTH);
        // SAFETY: as above; offset and length stay within the slot, and the offload is behind the slot's header.
        let bytes = unsafe { core::slice::from_raw_parts(start.add(offset - front), front + length) };
        let (front, bytes) = bytes.split_at(front);
        let stamp = u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec);
        let frame = RingFrame { stamp, offload: front.last_chunk().and_then(Offload::read), bytes };
        let is_whole = header.tp_snaplen == header.tp_len && length == header.tp_len as usize;
        Some(Slot { status, is_whole, is_copied: now & libc::TP_STATUS_COPY != 0, frame })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and nothing borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), self.slot * self.slots) };
    }
}

/// Takes the next frame of the receive buffer.
fn receive_large<'l>(socket: &OwnedFd, large: &'l mut [u8]) -> Option<(Option<Offload>, &'l [u8])> {
    // SAFETY: at most as many bytes are written as there is room.
    let got = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            large.as_mut_ptr().cast(),
            large.len(),
            libc::MSG_DONTWAIT | libc::MSG_TRUNC,
        )
    };
    let (front, frame) = large.get(..usize::try_from(got).ok()?)?.split_first_chunk()?;
    Some((Offload::read(front), frame))
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
    set_of(socket, libc::SOL_PACKET, option, value)
}

fn set_of<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let (pointer, length) = ((&raw const *value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: `value` is of the length given, and the kernel only reads it.
    if unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, pointer, length) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
