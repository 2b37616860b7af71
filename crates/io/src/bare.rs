//! Yardsticks for benches: the barest loops over system calls that do what a driver does, with nothing measured,
//! checked or kept. They share no code with the rest of this crate.

#[cfg(target_os = "linux")]
pub mod relay;

use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sleeps to absolute moments `interval` nanoseconds apart, spins for the last `spin`, and says how late it was each
/// time.
#[cfg(target_os = "linux")]
pub fn pace(interval: u64, spin: u64, count: usize) -> Vec<u64> {
    let now = || {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid place for the result.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    // SAFETY: takes an integer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
    let mut errors = Vec::with_capacity(count);
    let mut due = now() + interval;
    for _ in 0..count {
        let wake = due - spin;
        let until = libc::timespec {
            tv_sec: (wake / 1_000_000_000) as libc::time_t,
            tv_nsec: (wake % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: `until` is a valid time; nothing is written with TIMER_ABSTIME.
        unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, core::ptr::null_mut())
        };
        let mut at = now();
        while at < due {
            at = now();
        }
        errors.push(at - due);
        due += interval;
    }
    errors
}

/// Sends every datagram back to where it came from, until `over`. The socket has a receive timeout, or `polling`.
pub fn echo(socket: &UdpSocket, polling: bool, over: &AtomicBool) {
    let descriptor = socket.as_raw_fd();
    let mut bytes = [0u8; 2048];
    let flags = if polling { libc::MSG_DONTWAIT } else { 0 };
    // SAFETY: all-zero bytes are a valid address of no family.
    let mut from: libc::sockaddr_storage = unsafe { core::mem::zeroed() };
    while !over.load(Ordering::Relaxed) {
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: bytes and address are ours, with their lengths.
        unsafe {
            let to = (&raw mut from).cast::<libc::sockaddr>();
            let got =
                libc::recvfrom(descriptor, bytes.as_mut_ptr().cast(), bytes.len(), flags, to, &mut length);
            if got >= 0 {
                libc::sendto(descriptor, bytes.as_ptr().cast(), got as usize, 0, to, length);
            }
        }
    }
}

/// Sends datagrams of zeros as fast as it goes, `batch` per call, and says how many: with offload as one piece.
#[cfg(target_os = "linux")]
pub fn flood(socket: &UdpSocket, size: usize, batch: usize, offload: bool, over: &AtomicBool) -> u64 {
    let bytes = vec![0u8; size * batch];
    let mut iovecs: Vec<libc::iovec> = (0..batch)
        .map(|n| libc::iovec { iov_base: bytes[n * size..].as_ptr().cast_mut().cast(), iov_len: size })
        .collect();
    let mut headers: Vec<libc::mmsghdr> = iovecs
        .iter_mut()
        .map(|iovec| {
            // SAFETY: all-zero bytes are a valid mmsghdr.
            let mut header: libc::mmsghdr = unsafe { core::mem::zeroed() };
            header.msg_hdr.msg_iov = iovec;
            header.msg_hdr.msg_iovlen = 1;
            header
        })
        .collect();
    let descriptor = socket.as_raw_fd();
    let mut sent = 0;
    while !over.load(Ordering::Relaxed) {
        // SAFETY: bytes, iovecs and headers are ours and outlive the call.
        let taken = unsafe {
            if offload {
                let taken = libc::send(descriptor, bytes.as_ptr().cast(), bytes.len(), 0);
                if taken > 0 { batch as i32 } else { 0 }
            } else {
                libc::sendmmsg(descriptor, headers.as_mut_ptr(), batch as libc::c_uint, 0)
            }
        };
        sent += u64::try_from(taken).unwrap_or(0);
    }
    sent
}

/// Receives as fast as it goes, 64 per call, and says how many. The socket has a receive timeout, unless it polls.
#[cfg(target_os = "linux")]
pub fn sink(socket: &UdpSocket, size: usize, polling: bool, over: &AtomicBool) -> u64 {
    const BATCH: usize = 64;
    let mut bytes = vec![0u8; size * BATCH];
    let mut iovecs: Vec<libc::iovec> = bytes
        .chunks_exact_mut(size)
        .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: size })
        .collect();
    let mut headers: Vec<libc::mmsghdr> = iovecs
        .iter_mut()
        .map(|iovec| {
            // SAFETY: all-zero bytes are a valid mmsghdr.
            let mut header: libc::mmsghdr = unsafe { core::mem::zeroed() };
            header.msg_hdr.msg_iov = iovec;
            header.msg_hdr.msg_iovlen = 1;
            header
        })
        .collect();
    let flags = if polling { libc::MSG_DONTWAIT } else { libc::MSG_WAITFORONE };
    let mut received = 0;
    loop {
        // SAFETY: bytes, iovecs and headers are ours and outlive the call.
        let got = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                flags as _,
                core::ptr::null_mut(),
            )
        };
        match u64::try_from(got) {
            Ok(got) => received += got,
            Err(_) if over.load(Ordering::Relaxed) => return received,
            Err(_) => {}
        }
    }
}
