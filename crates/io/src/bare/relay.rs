//! Relays between two interfaces that do nothing but pass packets on, at once or after a fixed time.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const BATCH: usize = 64;

/// How a relay waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How long each packet is kept, in nanoseconds.
    pub delay: u64,
    /// How long before a packet is due it stops sleeping; `u64::MAX`: it never sleeps.
    pub spin: u64,
}

/// Relays between two TUN interfaces that do not block.
pub fn tun(ends: [BorrowedFd<'_>; 2], waiting: Waiting, over: &AtomicBool) {
    let ends = ends.map(|end| end.as_raw_fd());
    let mut bytes = [0u8; 2048];
    let mut kept: [VecDeque<(u64, Vec<u8>)>; 2] = Default::default();
    while !over.load(Ordering::Relaxed) {
        let mut idle = true;
        for (way, (from, to)) in [(ends[0], ends[1]), (ends[1], ends[0])].into_iter().enumerate() {
            for _ in 0..BATCH {
                // SAFETY: at most as many bytes are written as there are.
                let got = unsafe { libc::read(from, bytes.as_mut_ptr().cast(), bytes.len()) };
                let Ok(got) = usize::try_from(got) else { break };
                idle = false;
                if waiting.delay == 0 {
                    write(to, &bytes[..got]);
                } else {
                    kept[way].push_back((now() + waiting.delay, bytes[..got].to_vec()));
                }
            }
            while let Some((_, bytes)) = kept[way].pop_front_if(|(due, _)| *due <= now()) {
                write(to, &bytes);
            }
        }
        if idle {
            sleep(ends, due(&kept), waiting.spin);
        }
    }
}

fn write(to: RawFd, bytes: &[u8]) {
    // SAFETY: so many bytes are read from a valid place.
    unsafe { libc::write(to, bytes.as_ptr().cast(), bytes.len()) };
}

fn due(kept: &[VecDeque<(u64, Vec<u8>)>; 2]) -> u64 {
    let heads = kept.iter().filter_map(|kept| kept.front());
    heads.map(|head| head.0).min().unwrap_or(u64::MAX)
}

fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid place for the result.
    unsafe { libc::clock_gettime(which, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn sleep(ends: [RawFd; 2], due: u64, spin: u64) {
    if spin == u64::MAX {
        return;
    }
    let left = due.saturating_sub(now()).saturating_sub(spin).min(100_000_000);
    if left == 0 {
        return;
    }
    let mut entries = ends.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let timeout = libc::timespec { tv_sec: 0, tv_nsec: left as libc::c_long };
    // SAFETY: pointer and length are those of one array; the timeout is valid.
    unsafe { libc::ppoll(entries.as_mut_ptr(), 2, &timeout, core::ptr::null()) };
}

/// A packet socket with a receive ring, on the interface with this index in the calling thread's network namespace.
#[derive(Debug)]
pub struct RingEnd {
    socket: OwnedFd,
    start: *mut u8,
    next: usize,
}

// SAFETY: the memory belongs to this alone.
unsafe impl Send for RingEnd {}

const SLOT: usize = 2048;
const SLOTS: usize = 4096;

impl RingEnd {
    /// Opens it.
    ///
    /// # Panics
    /// If the system refuses.
    pub fn open(interface: i32) -> RingEnd {
        // SAFETY: integers only, or values of ours with their lengths; the mapping is new and belongs to the result.
        unsafe {
            let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
            assert!(socket >= 0, "no packet socket: {}", std::io::Error::last_os_error());
            let socket = OwnedFd::from_raw_fd(socket);
            let set = |option: libc::c_int, value: *const libc::c_void, length: usize| {
                let result = libc::setsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_PACKET,
                    option,
                    value,
                    length as libc::socklen_t,
                );
                assert_eq!(result, 0, "option {option}: {}", std::io::Error::last_os_error());
            };
            let (version, one) = (libc::tpacket_versions::TPACKET_V2 as libc::c_int, 1 as libc::c_int);
            set(libc::PACKET_VERSION, (&raw const version).cast(), 4);
            set(libc::PACKET_IGNORE_OUTGOING, (&raw const one).cast(), 4);
            set(libc::PACKET_QDISC_BYPASS, (&raw const one).cast(), 4);
            let request = libc::tpacket_req {
                tp_block_size: 1 << 16,
                tp_block_nr: (SLOT * SLOTS / (1 << 16)) as libc::c_uint,
                tp_frame_size: SLOT as libc::c_uint,
                tp_frame_nr: SLOTS as libc::c_uint,
            };
            set(libc::PACKET_RX_RING, (&raw const request).cast(), size_of_val(&request));
            let start = libc::mmap(
                core::ptr::null_mut(),
                SLOT * SLOTS,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            );
            assert_ne!(start, libc::MAP_FAILED, "no memory: {}", std::io::Error::last_os_error());
            bind(&socket, interface, libc::ETH_P_ALL as u16);
            RingEnd { socket, start: start.cast(), next: 0 }
        }
    }

    fn slot(&self, place: usize) -> *mut u8 {
        // SAFETY: the remainder is below the number of slots.
        unsafe { self.start.add(place % SLOTS * SLOT) }
    }

    /// The frame in a slot with its stamp, if there is one.
    fn frame(&self, place: usize) -> Option<(&[u8], u64)> {
        let slot = self.slot(place);
        // SAFETY: the slot begins with a header of which the status is shared; with the flag set all of it is ours.
        unsafe {
            if AtomicU32::from_ptr(slot.cast()).load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return None;
            }
            let header = slot.cast::<libc::tpacket2_hdr>().read();
            let bytes =
                core::slice::from_raw_parts(slot.add(header.tp_mac.into()), header.tp_snaplen as usize);
            Some((bytes, u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec)))
        }
    }

    fn give_back(&mut self, count: usize) {
        for _ in 0..count {
            // SAFETY: as above.
            unsafe { AtomicU32::from_ptr(self.slot(self.next).cast()) }
                .store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.next += 1;
        }
    }
}

impl Drop for RingEnd {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours.
        unsafe { libc::munmap(self.start.cast(), SLOT * SLOTS) };
    }
}

/// Relays between two packet sockets, from the ring of one straight to the other; what is kept is due by its kernel's stamp.
pub fn ring(ends: &mut [RingEnd; 2], waiting: Waiting, over: &AtomicBool) {
    let mut kept: [VecDeque<(u64, Vec<u8>)>; 2] = Default::default();
    let mut iovecs = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 }; BATCH];
    // SAFETY: all-zero bytes are valid headers.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { core::mem::zeroed() };
    for (iovec, header) in iovecs.iter_mut().zip(&mut headers) {
        header.msg_hdr.msg_iov = iovec;
        header.msg_hdr.msg_iovlen = 1;
    }
    let fds = [ends[0].socket.as_raw_fd(), ends[1].socket.as_raw_fd()];
    while !over.load(Ordering::Relaxed) {
        let mut idle = true;
        let ahead = clock(libc::CLOCK_REALTIME) - now();
        for way in [0, 1] {
            let end = &mut ends[way];
            let mut count = 0;
            while count < BATCH
                && let Some((bytes, stamp)) = end.frame(end.next + count)
            {
                if waiting.delay == 0 {
                    iovecs[count] =
                        libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
                } else {
                    kept[way].push_back((stamp - ahead + waiting.delay, bytes.to_vec()));
                }
                count += 1;
            }
            if count > 0 && waiting.delay == 0 {
                // SAFETY: the first `count` headers lead to frames in the ring, which are ours until given back.
                unsafe { libc::sendmmsg(fds[1 - way], headers.as_mut_ptr(), count as libc::c_uint, 0) };
            }
            end.give_back(count);
            idle &= count == 0;
            while let Some((_, bytes)) = kept[way].pop_front_if(|(due, _)| *due <= now()) {
                // SAFETY: so many bytes are read from a valid place.
                unsafe { libc::send(fds[1 - way], bytes.as_ptr().cast(), bytes.len(), 0) };
            }
        }
        if idle {
            sleep(fds, due(&kept), waiting.spin);
        }
    }
}

/// Sends the same frame over an interface again and again, as fast as it goes, past the kernel's IP.
///
/// # Panics
/// If the system refuses the socket.
pub fn inject(interface: i32, frame: &[u8], over: &AtomicBool) {
    // SAFETY: takes integers; frame, iovec and headers are ours and outlive the calls.
    unsafe {
        let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
        assert!(socket >= 0, "no packet socket: {}", std::io::Error::last_os_error());
        let socket = OwnedFd::from_raw_fd(socket);
        let one: libc::c_int = 1;
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_QDISC_BYPASS,
            (&raw const one).cast(),
            4,
        );
        bind(&socket, interface, libc::ETH_P_IP as u16);
        let mut iovec = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        let mut headers: [libc::mmsghdr; BATCH] = core::mem::zeroed();
        for header in &mut headers {
            header.msg_hdr.msg_iov = &raw mut iovec;
            header.msg_hdr.msg_iovlen = 1;
        }
        while !over.load(Ordering::Relaxed) {
            libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), BATCH as libc::c_uint, 0);
        }
    }
}

fn bind(socket: &OwnedFd, interface: i32, protocol: u16) {
    // SAFETY: all-zero bytes are a valid sockaddr_ll, and the call reads one.
    unsafe {
        let mut address: libc::sockaddr_ll = core::mem::zeroed();
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = interface;
        let length = size_of_val(&address) as libc::socklen_t;
        let result = libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length);
        assert_eq!(result, 0, "not bound: {}", std::io::Error::last_os_error());
    }
}
