//! TUN interfaces and packet rings, each in a network namespace of its own thread.

use std::io::{self, IoSlice};
use std::net::UdpSocket;

use trunkline_core::Duration;
use trunkline_testkit::skips::{Missing, skip_without};

use crate::offload::Offload;
use crate::packet_ring::PacketRing;
use crate::tun::Tun;
use crate::{Interest, Poller, interface};

/// Runs `test` on a thread in a network namespace of its own, whose loopback interface is up.
fn alone(test: fn()) {
    let inside = move || {
        // SAFETY: takes an integer; the new namespace is this thread's alone.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
            let error = io::Error::last_os_error();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            return skip_without(
                Missing::Namespaces,
                "network namespaces need CAP_SYS_ADMIN, which this user does not have",
            );
        }
        interface::set_up("lo").unwrap();
        test();
    };
    std::thread::spawn(inside).join().unwrap();
}

fn wait(descriptor: impl std::os::fd::AsFd) {
    let mut poller = Poller::new([(descriptor.as_fd(), Interest::Read)]);
    assert_eq!(poller.wait(Duration::from_secs(5)).unwrap(), 1);
}

#[test]
fn a_tun_interface_carries_packets_both_ways() {
    alone(|| {
        let tun = Tun::create("tun-test").unwrap();
        assert_eq!(Tun::create("tun-test").unwrap_err().raw_os_error(), Some(libc::EBUSY));
        interface::set_address("tun-test", [10, 9, 0, 1], 24).unwrap();
        interface::set_up("tun-test").unwrap();
        let socket = UdpSocket::bind("10.9.0.1:7000").unwrap();
        socket.send_to(b"there", "10.9.0.2:7000").unwrap();
        let mut packet = Vec::with_capacity(2048);
        loop {
            wait(&tun);
            packet.clear();
            tun.receive(&mut packet).unwrap();
            // Not what the kernel says of itself over IPv6.
            if packet[0] >> 4 == 4 {
                break;
            }
        }
        assert_eq!(&packet[28..], b"there");
        // The same packet from the other host: addresses change places, and sums do not notice.
        let (from, to) = ([10, 9, 0, 1], [10, 9, 0, 2]);
        packet[12..16].copy_from_slice(&to);
        packet[16..20].copy_from_slice(&from);
        tun.send(&packet).unwrap();
        wait(&socket);
        let mut back = [0; 16];
        let (length, sender) = socket.recv_from(&mut back).unwrap();
        assert_eq!((&back[..length], sender), (b"there".as_slice(), "10.9.0.2:7000".parse().unwrap()));
    });
}

#[test]
fn an_empty_tun_interface_does_not_wait() {
    alone(|| {
        let tun = Tun::create("tun-test").unwrap();
        let error = tun.receive(&mut Vec::with_capacity(64)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(tun.send(&[0; 20]).is_err(), "version 0 is no IP packet");
    });
}

#[test]
fn a_packet_ring_receives_with_stamps_and_sends() {
    alone(|| {
        assert!(crate::packet_ring::is_supported());
        let mut ring = PacketRing::open("lo").unwrap();
        assert_eq!(ring.receive(8, |_| ()), 0);
        let socket = UdpSocket::bind("127.0.0.1:7000").unwrap();
        let before = crate::clock::raw_now();
        for number in 0..3u8 {
            socket.send_to(&[number; 40], "127.0.0.1:7000").unwrap();
        }
        wait(&ring);
        let mut frames = Vec::new();
        while frames.len() < 3 {
            ring.receive(2, |frame| frames.push((frame.stamp, frame.bytes.to_vec())));
        }
        let offset = crate::clock::realtime_offset();
        let mut last = before;
        for (number, (stamp, bytes)) in (0..).zip(&frames) {
            assert_eq!(bytes[14 + 28..], [number; 40]);
            let at = stamp.saturating_add_signed(-offset);
            // The offset is known to some hundred nanoseconds.
            assert!(at + 10_000 >= last && at <= crate::clock::raw_now() + 10_000, "{at} after {last}");
            last = at;
        }
        let nothing_left = Offload::default().write();
        let pieces: Vec<_> =
            frames.iter().map(|(_, bytes)| [&nothing_left, &bytes[..]].map(IoSlice::new)).collect();
        let sent = ring.send(pieces.iter().map(|pieces| &pieces[..])).unwrap();
        assert_eq!((sent, ring.overflowed()), (3, 0));
        // The loopback interface receives what it sends.
        let mut again = Vec::new();
        while again.len() < 3 {
            ring.receive(8, |frame| again.push(frame.bytes.to_vec()));
        }
        assert!(frames.iter().map(|(_, bytes)| bytes).eq(&again));
    });
}

#[test]
fn offloads_are_switched_off() {
    alone(|| {
        let _tun = Tun::create("tun-test").unwrap();
        interface::limit_offloads("tun-test", &[]).unwrap();
        assert_eq!(interface::limit_offloads("nobody", &[]).unwrap_err().raw_os_error(), Some(libc::ENODEV));
    });
}
