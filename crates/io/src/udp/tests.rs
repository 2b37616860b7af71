use std::net::UdpSocket;

use trunkline_core::{Duration, Ecn};
use trunkline_testkit::skips::{Missing, skip_without};

use super::*;

fn pair() -> (UdpSocket, UdpSocket) {
    let any = "127.0.0.1:0".parse().unwrap();
    let (receiver, _) = open(any, None, SocketOptions::default()).unwrap();
    let (sender, _) = open(any, Some(receiver.local_addr().unwrap()), SocketOptions::default()).unwrap();
    set_receive_timeout(&receiver, Duration::from_secs(5)).unwrap();
    set_receive_timeout(&sender, Duration::from_secs(5)).unwrap();
    (sender, receiver)
}

/// Receives until there are `count`, with their lengths and first bytes.
fn collect(batch: &mut ReceiveBatch, socket: &UdpSocket, count: usize) -> Vec<(usize, u8)> {
    let mut got = Vec::new();
    while got.len() < count {
        let received = batch.receive(socket, Wait::Block).unwrap();
        assert!(received > 0, "nothing more came after {got:?}");
        got.extend((0..received).map(|place| (batch.datagram(place).len(), batch.datagram(place)[0])));
    }
    got
}

#[test]
fn batches_arrive_whole_and_in_order() {
    let (sender, receiver) = pair();
    let datagrams: Vec<Vec<u8>> = (1..=20u8).map(|n| vec![n; usize::from(n) * 3]).collect();
    let mut send = SendBatch::with_capacity(8);
    let mut sent = 0;
    while sent < datagrams.len() {
        sent += send.send(&sender, datagrams[sent..].iter().map(Vec::as_slice)).unwrap();
    }
    let mut receive = ReceiveBatch::new(6, 100);
    let expected: Vec<(usize, u8)> = (1..=20u8).map(|n| (usize::from(n) * 3, n)).collect();
    assert_eq!(collect(&mut receive, &receiver, 20), expected);
    assert_eq!(receive.receive(&receiver, Wait::Poll).unwrap(), 0);
}

#[test]
fn a_datagram_that_is_too_long_is_seen_to_be() {
    let (sender, receiver) = pair();
    SendBatch::with_capacity(1).send(&sender, [[7u8; 50].as_slice()]).unwrap();
    let mut receive = ReceiveBatch::new(2, 40);
    assert_eq!(collect(&mut receive, &receiver, 1), [(41, 7)]);
}

#[test]
fn replies_go_to_their_senders_only() {
    let (sender, receiver) = pair();
    let any = "127.0.0.1:0".parse().unwrap();
    let (other, _) = open(any, Some(receiver.local_addr().unwrap()), SocketOptions::default()).unwrap();
    set_receive_timeout(&other, Duration::from_secs(5)).unwrap();
    sender.send(&[1]).unwrap();
    other.send(&[2]).unwrap();
    sender.send(&[3]).unwrap();
    let mut receive = ReceiveBatch::new(8, 10);
    let mut received = 0;
    while received < 3 {
        let count = receive.receive(&receiver, Wait::Block).unwrap();
        assert!(count > 0);
        received += count;
        for place in 0..count {
            assert!(receive.source(place).is_some());
            receive.datagram_mut(place)[0] += 100;
        }
        let wanted: Vec<bool> = (0..count).map(|place| receive.datagram(place)[0] != 101).collect();
        receive.reply(&receiver, |place| wanted[place]).unwrap();
    }
    let mut back = [0u8; 4];
    assert_eq!((other.recv(&mut back).unwrap(), back[0]), (1, 102));
    assert_eq!((sender.recv(&mut back).unwrap(), back[0]), (1, 103));
}

#[test]
fn buffers_are_what_was_granted() {
    let any = "127.0.0.1:0".parse().unwrap();
    let asked =
        SocketOptions { receive_buffer: Some(64 << 10), send_buffer: Some(32 << 10), priority: Some(2) };
    let (_, granted) = open(any, None, asked).unwrap();
    assert!(granted.receive >= 64 << 10 && granted.send >= 32 << 10, "{granted:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn offload_cuts_into_datagrams_of_one_size() {
    let (sender, receiver) = pair();
    set_segment_size(&sender, 30).unwrap();
    let burst: Vec<u8> = (0..100).collect();
    assert_eq!(SendBatch::with_capacity(1).send(&sender, [burst.as_slice()]).unwrap(), 1);
    let mut receive = ReceiveBatch::new(8, 100);
    assert_eq!(collect(&mut receive, &receiver, 4), [(30, 0), (30, 30), (30, 60), (10, 90)]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernel_stamps_what_arrives() {
    let (sender, receiver) = pair();
    stamp_received(&receiver).unwrap();
    let mut receive = ReceiveBatch::new(1, 10);
    // The kernel switches stamping on a little after it was told to.
    let stamp = (0..100).find_map(|_| {
        sender.send(&[1]).unwrap();
        assert_eq!(receive.receive(&receiver, Wait::Block).unwrap(), 1);
        crate::pace::sleep(Duration::from_millis(5));
        receive.stamp(0)
    });
    let monotonic =
        stamp.expect("the kernel stamps within half a second") as i64 - crate::clock::realtime_offset();
    assert!((monotonic as u64) <= crate::clock::raw_now());
}

#[cfg(target_os = "linux")]
#[test]
fn the_ecn_field_travels_with_the_datagram_beside_its_stamp() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let any = address.parse().unwrap();
        let Ok((receiver, _)) = open(any, None, SocketOptions::default()) else { continue };
        let (sender, _) = open(any, Some(receiver.local_addr().unwrap()), SocketOptions::default()).unwrap();
        set_receive_timeout(&receiver, Duration::from_secs(5)).unwrap();
        tell_ecn(&receiver).unwrap();
        stamp_received(&receiver).unwrap();
        let mut field = EcnField::new(&sender).unwrap();
        let fields = [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::NotCapable];
        for (number, ecn) in fields.into_iter().enumerate() {
            field.set(&sender, ecn).unwrap();
            sender.send(&[number as u8]).unwrap();
        }
        let mut receive = ReceiveBatch::new(8, 10);
        let mut got = Vec::new();
        while got.len() < fields.len() {
            let received = receive.receive(&receiver, Wait::Block).unwrap();
            assert!(received > 0, "nothing more came after {got:?}");
            got.extend((0..received).map(|place| receive.ecn(place)));
        }
        assert_eq!(got, fields);
    }
}

#[test]
fn udp_lite_refuses_what_is_covered_too_little() {
    let any = "127.0.0.1:0".parse().unwrap();
    let receiver = match open_lite(any, None, SocketOptions::default(), Some(20)) {
        Ok((receiver, _)) => receiver,
        Err(error) => {
            assert_eq!(error.kind(), std::io::ErrorKind::Unsupported, "{error}");
            return skip_without(Missing::KernelUdpLite, "the kernel has no UDP-Lite");
        }
    };
    set_receive_timeout(&receiver, Duration::from_secs(5)).unwrap();
    let to = Some(receiver.local_addr().unwrap());
    for (number, coverage) in [(1, Some(19)), (2, Some(20)), (3, Some(0)), (4, None)] {
        let (sender, _) = open_lite(any, to, SocketOptions::default(), coverage).unwrap();
        sender.send(&[number; 50]).unwrap();
    }
    assert_eq!(collect(&mut ReceiveBatch::new(8, 100), &receiver, 2), [(50, 2), (50, 4)]);
}
