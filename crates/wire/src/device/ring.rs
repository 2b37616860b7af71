//! A packet socket's ring on one end of a pair of virtual Ethernet interfaces.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_core::Time;
use trunkline_io::clock::{self, Stamps};
use trunkline_io::packet_ring::PacketRing;

use super::{Device, Frame, Layer, is_gone};

/// After so many looks at an empty ring the socket is asked whether that which keeps it readable is an error.
const PATIENCE: u32 = 64;

/// A packet socket. The kernel stamps a frame when it arrives, however late it is read.
pub(super) struct RingDevice {
    ring: PacketRing,
    stamps: Stamps,
    /// The last look left nothing in the ring.
    emptied: bool,
    /// Looks at an empty ring, one after another.
    in_vain: u32,
}

impl RingDevice {
    pub(super) fn open(name: &str) -> io::Result<RingDevice> {
        Ok(RingDevice { ring: PacketRing::open(name)?, stamps: Stamps::new(), emptied: true, in_vain: 0 })
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
        let RingDevice { ring, stamps, emptied, .. } = self;
        let mut now = None;
        let received = ring.receive(most, |frame| {
            let now = now.get_or_insert_with(|| {
                stamps.look(*emptied);
                clock::raw_now()
            });
            let mut at = stamps.bring(frame.stamp).unwrap_or(*now);
            // Nothing arrives in the future.
            if at > *now {
                *now = clock::raw_now();
                at = at.min(*now);
            }
            let mut bytes = buffer();
            bytes.extend_from_slice(frame.bytes);
            take(Frame { at: Time::from_nanos(at), bytes });
        });
        self.emptied = received < most;
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
