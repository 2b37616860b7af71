//! A TUN interface: IP packets, one system call for each.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_core::Time;
use trunkline_io::clock;
use trunkline_io::tun::Tun;

use super::{Device, Frame, Layer, is_gone};

/// A TUN interface. The kernel does not stamp what it passes on: frames bear the time at which they are read.
pub(super) struct TunDevice {
    tun: Tun,
    mtu: usize,
    /// Packets that were larger than they may be.
    oversized: u64,
    /// A buffer into which nothing came.
    spare: Option<Vec<u8>>,
}

impl TunDevice {
    pub(super) fn create(name: &str, mtu: usize) -> io::Result<TunDevice> {
        Ok(TunDevice { tun: Tun::create(name)?, mtu, oversized: 0, spare: None })
    }
}

impl Device for TunDevice {
    fn layer(&self) -> Layer {
        Layer::Ip
    }

    fn largest(&self) -> usize {
        // The kernel cuts a packet to the room that it finds: what fills the last byte was larger than it may be.
        self.mtu + 1
    }

    fn is_stamped(&self) -> bool {
        false
    }

    fn receive(
        &mut self,
        most: usize,
        buffer: &mut dyn FnMut() -> Vec<u8>,
        take: &mut dyn FnMut(Frame),
    ) -> io::Result<usize> {
        let mut received = 0;
        while received < most {
            let mut bytes = self.spare.take().unwrap_or_else(&mut *buffer);
            if let Err(error) = self.tun.receive(&mut bytes) {
                self.spare = Some(bytes);
                return if is_gone(&error) { Err(error) } else { Ok(received) };
            }
            if bytes.len() > self.mtu {
                self.oversized += 1;
                bytes.clear();
                self.spare = Some(bytes);
                continue;
            }
            take(Frame { at: Time::from_nanos(clock::raw_now()), bytes });
            received += 1;
        }
        Ok(most)
    }

    fn send(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let mut taken = 0;
        for frame in frames {
            match self.tun.send(&frame.bytes) {
                Ok(()) => taken += 1,
                Err(error) if is_gone(&error) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(taken)
    }

    /// Only those that were larger than the interface's MTU: the kernel counts the others at the interface.
    fn overflowed(&mut self) -> u64 {
        core::mem::take(&mut self.oversized)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
