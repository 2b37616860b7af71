//! The relay's thread, over devices that are pairs of sockets.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use trunkline_core::{Duration, PacketId, Port, Time};
use trunkline_io::{MonotonicClock, clock};

use super::{config, ipv4, number};
use crate::device::{Device, Frame, Layer};
use crate::relay::{Capture, RelayEnded, RelayHandle, RelayOptions, start};

struct Pipe(UnixDatagram);

impl Device for Pipe {
    fn layer(&self) -> Layer {
        Layer::Ip
    }
    fn largest(&self) -> usize {
        2048
    }
    fn is_stamped(&self) -> bool {
        false
    }
    fn receive(
        &mut self,
        most: usize,
        buffer: &mut dyn FnMut() -> Vec<u8>,
        take: &mut dyn FnMut(Frame),
    ) -> io::Result<bool> {
        let mut bytes = [0; 2048];
        for _ in 0..most {
            let Ok(got) = self.0.recv(&mut bytes) else { return Ok(false) };
            if got == 1 {
                return Err(io::Error::other("gone"));
            }
            let mut buffer = buffer();
            buffer.extend_from_slice(&bytes[..got]);
            take(Frame { at: Time::from_nanos(clock::raw_now()), bytes: buffer });
        }
        Ok(true)
    }
    fn send(&mut self, frames: &[Frame]) -> io::Result<usize> {
        Ok(frames.iter().filter(|frame| self.0.send(&frame.bytes).is_ok()).count())
    }
    fn overflowed(&mut self) -> u64 {
        0
    }
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A relay, and the stations' ends.
fn relayed(keys: &str, spin: Duration) -> (RelayHandle, [UnixDatagram; 2]) {
    let pairs = [(); 2].map(|()| UnixDatagram::pair().unwrap());
    let (mut devices, mut stations): (Vec<Box<dyn Device>>, Vec<_>) = (Vec::new(), Vec::new());
    for (own, station) in pairs {
        own.set_nonblocking(true).unwrap();
        station.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        devices.push(Box::new(Pipe(own)));
        stations.push(station);
    }
    let options = RelayOptions { clock: MonotonicClock::starting_now(), spin, core: None };
    let handle = start("test", config(keys), devices, options).unwrap();
    (handle, stations.try_into().unwrap())
}

fn receive(station: &UnixDatagram) -> u32 {
    let mut bytes = [0; 2048];
    let got = station.recv(&mut bytes).expect("what was sent arrives within seconds");
    number(&bytes[..got])
}

#[test]
fn frames_pass_both_ways_sleeping_and_spinning() {
    for spin in [Duration::ZERO, Duration::from_micros(200), Duration::MAX] {
        let (relay, [a, b]) = relayed("rate = \"1 Gbit/s\"\ndelay = \"2 ms\"", spin);
        for number in 0..100 {
            a.send(&ipv4(1, 0, number, 100)).unwrap();
            b.send(&ipv4(1, 0, 1000 + number, 100)).unwrap();
        }
        for number in 0..100 {
            assert_eq!((receive(&b), receive(&a)), (number, 1000 + number));
        }
        let counters = relay.stop().unwrap();
        assert!(counters.ports.iter().all(|port| port.delivered.packets == 100 && port.refused == 0));
    }
}

#[test]
fn a_relay_obeys_while_it_sleeps() {
    let (relay, [a, b]) = relayed("rate = \"1 Gbit/s\"", Duration::ZERO);
    assert_eq!(relay.counters().unwrap().ports[0].offered.packets, 0);
    relay.set_up(false).unwrap();
    assert!(!relay.counters().unwrap().up);
    a.send(&ipv4(1, 0, 1, 100)).unwrap();
    while relay.counters().unwrap().ports[0].cut == 0 {}
    relay.set_up(true).unwrap();
    assert!(relay.counters().unwrap().up);
    a.send(&ipv4(1, 0, 2, 100)).unwrap();
    assert_eq!(receive(&b), 2);
    let transmitted = relay.change(|_, medium, _| medium.counters(trunkline_core::Port(0)).transmitted);
    assert_eq!(transmitted.map(|bytes| bytes.count()), Ok(100));
    relay.stop().unwrap();
    assert_eq!(relay.counters(), Err(RelayEnded));
}

struct Arrivals(Arc<AtomicU32>);

impl Capture for Arrivals {
    fn arrived(&mut self, _: Time, _: Port, _: PacketId, _: &[u8]) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn delivered(&mut self, _: Time, _: Port, _: PacketId, _: &[u8]) {}
    fn dropped(&mut self, _: Time, _: Port, _: PacketId, _: &[u8], _: &'static str) {}
    fn passed(&mut self, _: Time) {}
}

#[test]
fn a_capture_has_every_frame_from_its_start_to_the_stop() {
    for _ in 0..500 {
        let (relay, [a, _b]) = relayed("rate = \"1 Gbit/s\"", Duration::ZERO);
        let arrivals = Arc::new(AtomicU32::new(0));
        relay.capture(Some(Box::new(Arrivals(Arc::clone(&arrivals))))).unwrap();
        a.send(&ipv4(1, 0, 0, 100)).unwrap();
        let counters = relay.stop().unwrap();
        assert_eq!((counters.ports[0].offered.packets, arrivals.load(Ordering::Relaxed)), (1, 1));
    }
}

#[test]
fn a_relay_whose_device_is_gone_says_so() {
    let (relay, [a, _b]) = relayed("rate = \"1 Gbit/s\"", Duration::ZERO);
    a.send(&[0]).unwrap();
    while relay.counters().is_ok() {}
    assert_eq!(relay.stop().unwrap_err().to_string(), "gone");
}

#[test]
fn a_relay_that_panics_has_ended_and_says_so() {
    let (relay, _stations) = relayed("rate = \"1 Gbit/s\"", Duration::ZERO);
    let changed = relay.change(|_, _, _| -> () { panic!("on purpose") });
    assert_eq!(changed, Err(RelayEnded));
    assert_eq!(relay.counters(), Err(RelayEnded));
    assert_eq!(relay.stop().unwrap_err().to_string(), "the relay's thread panicked");
}
