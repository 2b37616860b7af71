//! A packet socket's ring on one end of a pair of virtual Ethernet interfaces.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_core::Time;
use trunkline_io::clock::{self, Stamps};
use trunkline_io::packet_ring::PacketRing;

use super::offload::{self, Joined};
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
    /// Frames that made no sense.
    refused: u64,
    joined: Vec<Joined>,
}

impl RingDevice {
    pub(super) fn open(name: &str) -> io::Result<RingDevice> {
        Ok(RingDevice {
            ring: PacketRing::open(name)?,
            stamps: Stamps::new(),
            emptied: true,
            in_vain: 0,
            refused: 0,
            joined: Vec::with_capacity(PacketRing::BATCH),
        })
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
    ) -> io::Result<bool> {
        let RingDevice { ring, stamps, emptied, refused, .. } = self;
        let largest = ring.largest();
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
            let (frame, at) = ((frame.offload, frame.bytes), Time::from_nanos(at));
            *refused += offload::take_apart(Layer::Ethernet, frame, (at, largest), buffer, take);
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
        Ok(received == most)
    }

    fn send(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let mut taken = 0;
        for frames in frames.chunks(PacketRing::BATCH) {
            self.joined.clear();
            offload::join(Layer::Ethernet, frames, &mut self.joined);
            let mut pieces = [IoSlice::new(&[]); 2 * PacketRing::BATCH];
            offload::pieces(&self.joined, frames, &mut pieces);
            let (mut joined, mut pieces) = (&self.joined[..], &pieces[..]);
            while !joined.is_empty() {
                let mut rest = pieces;
                let packets = joined.iter().map(|one| rest.split_off(..=one.frames).unwrap_or_default());
                let (sent, passed) = match self.ring.send(packets) {
                    Ok(sent) => (sent, sent),
                    Err(error) if is_gone(&error) => return Err(error),
                    // The first of these is lost.
                    Err(_) => (0, 1),
                };
                let frames = |joined: &[Joined]| joined.iter().map(|one| one.frames).sum::<usize>();
                taken += frames(&joined[..sent]);
                pieces = &pieces[frames(&joined[..passed]) + passed..];
                joined = &joined[passed..];
            }
        }
        Ok(taken)
    }

    fn overflowed(&mut self) -> u64 {
        self.ring.overflowed() + core::mem::take(&mut self.refused)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}
