//! A packet socket's ring on one end of a pair of virtual Ethernet interfaces.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_core::Time;
use trunkline_io::clock;
use trunkline_io::packet_ring::PacketRing;

use super::{Device, Frame, Layer, is_gone};

/// How long the distance between the calendar's clock and the monotonic one is taken for granted, in nanoseconds.
const OFFSET_HOLDS: u64 = 100_000_000;
/// After so many looks at an empty ring the socket is asked whether that which keeps it readable is an error.
const PATIENCE: u32 = 64;

/// A packet socket. The kernel stamps a frame when it arrives, however late it is read.
pub(super) struct RingDevice {
    ring: PacketRing,
    /// How far the calendar's clock is ahead, and until when that holds.
    offset: (i64, u64),
    /// Looks at an empty ring, one after another.
    in_vain: u32,
}

impl RingDevice {
    pub(super) fn open(name: &str) -> io::Result<RingDevice> {
        Ok(RingDevice { ring: PacketRing::open(name)?, offset: (0, 0), in_vain: 0 })
    }

    fn offset(&mut self, now: u64) -> i64 {
        if now >= self.offset.1 {
            self.offset = (clock::realtime_offset(), now + OFFSET_HOLDS);
        }
        self.offset.0
    }
}

impl Device for RingDevice {
    fn layer(&self) -> Layer {
        Layer::Ethernet
    }

    fn largest(&self) -> usize {
        self.ring.largest()
    }

    fn is_stamped(&self) -> bool {
        true
    }

    fn receive(
        &mut self,
        most: usize,
        buffer: &mut dyn FnMut() -> Vec<u8>,
        take: &mut dyn FnMut(Frame),
    ) -> io::Result<usize> {
        let mut now = clock::raw_now();
        let offset = self.offset(now);
        let received = self.ring.receive(most, |frame| {
            let mut at = frame.stamp.saturating_add_signed(-offset);
            // Nothing arrives in the future, whatever is done to the calendar's clock.
            if at > now {
                now = clock::raw_now();
                at = at.min(now);
            }
            let mut bytes = buffer();
            bytes.extend_from_slice(frame.bytes);
            take(Frame { at: Time::from_nanos(at), bytes });
        });
        self.in_vain = if received == 0 { self.in_vain + 1 } else { 0 };
        if self.in_vain == PATIENCE {
            self.in_vain = 0;
            if let Some(error) = self.ring.take_error()
                && is_gone(&error)
            {
                return Err(error);
            }
        }
        Ok(received)
    }

    fn send(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let (mut done, mut taken) = (0, 0);
        while done < frames.len() {
            match self.ring.send(frames[done..].iter().map(|frame| &frame.bytes[..])) {
                Ok(sent) => (done, taken) = (done + sent, taken + sent),
                Err(error) if is_gone(&error) => return Err(error),
                // The first of these is lost.
                Err(_) => done += 1,
            }
        }
        Ok(taken)
    }

    fn overflowed(&mut self) -> u64 {
        self.ring.overflowed()
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
