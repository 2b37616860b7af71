use std::os::fd::BorrowedFd;

use trunkline_audio::pipeline::{NativePacker, NativeUnpacker, Unpacker as _};
use trunkline_io::Interest;
use trunkline_transport::{Features, features};

use super::*;
use crate::line::{LineCounters, Refused};
use crate::program::ring::{Room, ring};

/// Keeps what is sent.
#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Line for Kept {
    fn descriptors<'l>(&'l self, _: &mut dyn FnMut(BorrowedFd<'l>, Interest)) {}

    fn send(&mut self, _: Time, packet: &[u8]) -> Result<(), Refused> {
        self.0.push(packet.to_vec());
        Ok(())
    }

    fn send_all(&mut self, _: Time, packets: &Packets) -> Result<(), Ended> {
        self.0.extend(packets.iter().map(<[u8]>::to_vec));
        Ok(())
    }

    fn turn(&mut self, _: Time, _: &mut dyn FnMut(Time, &[u8])) -> Result<(), Ended> {
        Ok(())
    }

    fn unsent(&self) -> usize {
        0
    }

    fn next_timeout(&self) -> Option<Time> {
        None
    }

    fn counters(&self) -> LineCounters {
        LineCounters::default()
    }

    fn features(&self) -> &'static Features {
        &features::UDP
    }

    fn largest(&self) -> usize {
        65_507
    }

    fn close(&mut self, _: Time) {}
}

/// A card is away for a tenth of a second: the numbers of its blocks say for how long, and those of the new card go on.
#[test]
fn numbers_go_on_when_a_device_comes_back() {
    let stream = Stream { channels: 1, sample_rate: 48_000, block_frames: 48, ..Stream::default() };
    let device = DeviceFormat { channels: 1, sample_rate: 48_000, block_frames: 48 };
    let packer = Box::new(NativePacker::new(&stream).unwrap());
    let (mut outgoing, mut line) = (Outgoing::new(&stream, packer, 8), Kept::default());
    let mut now = Time::from_nanos(5_000_000_000);
    for card in 0..2 {
        let (mut writer, reader) = ring(Room { stretches: 8, longest: 48, samples: 8 * 48 });
        let mut end = CaptureEnd::new(reader, &stream, device).unwrap();
        if card > 0 {
            now += Duration::from_millis(100);
            outgoing.begin_anew(now);
        }
        for _ in 0..5 {
            assert!(writer.write(Captured { first: now, called: now }, &[0.5; 48]));
            now += Duration::from_millis(1);
        }
        outgoing.turn(&mut end, &mut line).unwrap();
    }
    let mut numbers = Vec::new();
    let mut unpacker = NativeUnpacker::new(&stream).unwrap();
    for packet in &line.0 {
        unpacker.unpack(now, packet, &mut |block| numbers.push(block.sequence)).unwrap();
    }
    assert_eq!(numbers[..5], [0, 1, 2, 3, 4]);
    assert!((104..=106).contains(&numbers[5]), "{numbers:?}");
    assert_eq!(numbers[6..], [numbers[5] + 1, numbers[5] + 2], "eight blocks were allowed");
    assert!(outgoing.is_done());
    assert_eq!((outgoing.trips.sent, outgoing.blocks), (8, 8));
}
