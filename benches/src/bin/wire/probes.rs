//! Datagrams that measure: with the time at which they left.

use std::net::{SocketAddr, UdpSocket};

use trunkline_io::clock::raw_now;
use trunkline_io::pace::sleep_until_raw;

/// Sends a datagram with the time every `interval` nanoseconds and waits for those sent before, on one thread: nobody else
/// has to be woken. Sorted one-way times, and how many did not come.
pub(crate) fn one_way(
    from: &UdpSocket,
    to: &UdpSocket,
    address: SocketAddr,
    interval: u64,
    count: usize,
) -> (Vec<u64>, usize) {
    to.set_nonblocking(true).expect("sockets can be polled");
    let mut times = Vec::with_capacity(count);
    let mut due = raw_now();
    let (mut sent, mut until) = (0, u64::MAX);
    let mut bytes = [0; 128];
    while times.len() < count && raw_now() < until {
        if sent < count && raw_now() >= due {
            bytes[..8].copy_from_slice(&raw_now().to_ne_bytes());
            // What the interface does not take is missing.
            let _ = from.send_to(&bytes[..64], address);
            sent += 1;
            due += interval;
            if sent == count {
                until = raw_now() + 200_000_000;
            }
        }
        let mut back = [0; 128];
        while let Ok(got) = to.recv(&mut back) {
            let stamp = back.first_chunk().map_or(0, |stamp| u64::from_ne_bytes(*stamp));
            if got == 64 {
                times.push(raw_now() - stamp);
            }
        }
    }
    times.sort_unstable();
    let missing = sent - times.len();
    (times, missing)
}

/// Sends a datagram with the time every `interval` nanoseconds.
pub(crate) fn send(socket: &UdpSocket, interval: u64, count: usize) {
    let mut due = raw_now() + interval;
    for _ in 0..count {
        sleep_until_raw(due - 300_000.min(interval));
        while raw_now() < due {}
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&raw_now().to_ne_bytes());
        let _ = socket.send(&bytes);
        due += interval;
    }
}

/// How long datagrams of [`send`] took, sorted, until none comes for a second.
pub(crate) fn receive(socket: &UdpSocket) -> Vec<u64> {
    socket.set_nonblocking(true).expect("sockets can be polled");
    let (mut times, mut last) = (Vec::new(), u64::MAX - 1_000_000_000);
    let mut bytes = [0; 128];
    while raw_now() < last + 1_000_000_000 {
        if let Ok(got) = socket.recv(&mut bytes) {
            last = raw_now();
            let stamp = bytes.first_chunk().map_or(0, |stamp| u64::from_ne_bytes(*stamp));
            if got == 64 {
                times.push(last.saturating_sub(stamp));
            }
        }
    }
    times.sort_unstable();
    times
}
