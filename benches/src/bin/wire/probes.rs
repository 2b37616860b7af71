//! Datagrams that measure: with the time at which they left.

use std::net::{SocketAddr, UdpSocket};

use trunkline_core::Duration;
use trunkline_io::clock::{raw_now, realtime_offset};
use trunkline_io::pace;
use trunkline_io::udp::{ReceiveBatch, Wait, set_receive_timeout, stamp_received};

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

/// Sends so many datagrams, each with the time at which it left, about a millisecond apart, and not in step with one.
pub(crate) fn send(socket: &UdpSocket, count: usize) {
    for _ in 0..count {
        pace::sleep(Duration::from_nanos(1_037_000));
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&raw_now().to_ne_bytes());
        // What the interface does not take is missing.
        let _ = socket.send(&bytes);
    }
}

/// How long datagrams of [`send`] took until the kernel had them, until none comes for a second.
pub(crate) fn receive(socket: &UdpSocket) -> Vec<u64> {
    stamp_received(socket).expect("the kernel stamps");
    let mut batch = ReceiveBatch::new(16, 128);
    let mut times = Vec::new();
    set_receive_timeout(socket, Duration::from_secs(10)).expect("sockets have timeouts");
    while batch.receive(socket, Wait::Block).expect("the socket receives") > 0 {
        set_receive_timeout(socket, Duration::from_secs(1)).expect("sockets have timeouts");
        let ahead = realtime_offset();
        for place in 0..batch.len() {
            let sent = batch.datagram(place).first_chunk().map_or(0, |sent| u64::from_ne_bytes(*sent));
            let stamp = batch.stamp(place).unwrap_or(0).saturating_add_signed(-ahead);
            times.push(stamp.saturating_sub(sent));
        }
    }
    times
}
