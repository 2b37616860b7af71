//! A TUN interface: IP packets, one system call for each, or for several of TCP.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};

use trunkline_core::Time;
use trunkline_io::clock;
use trunkline_io::offload::Offload;
use trunkline_io::tun::Tun;

use super::offload::{self, Joined};
use super::{Device, Frame, Layer, is_gone};

/// The largest packet that the kernel hands over, with its offload.
const LARGEST: usize = Offload::LENGTH + (1 << 16);
/// Frames that are joined at a time, with their offloads.
const PIECES: usize = 128;

/// A TUN interface. The kernel does not stamp what it passes on: frames bear the time at which they are read.
pub(super) struct TunDevice {
    tun: Tun,
    mtu: usize,
    /// Packets that were larger than they may be, or made no sense.
    refused: u64,
    /// The packet that is read.
    packet: Vec<u8>,
    joined: Vec<Joined>,
}

impl TunDevice {
    pub(super) fn create(name: &str, mtu: usize) -> io::Result<TunDevice> {
        let (packet, joined) = (Vec::with_capacity(LARGEST), Vec::with_capacity(PIECES / 2));
        Ok(TunDevice { tun: Tun::create_with_offloads(name)?, mtu, refused: 0, packet, joined })
    }
}

impl Device for TunDevice {
    fn layer(&self) -> Layer {
        Layer::Ip
    }

    fn largest(&self) -> usize {
        self.mtu
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
        let TunDevice { tun, mtu, refused, packet, .. } = self;
        for _ in 0..most {
            packet.clear();
            if let Err(error) = tun.receive(packet) {
                return if is_gone(&error) { Err(error) } else { Ok(false) };
            }
            let at = Time::from_nanos(clock::raw_now());
            let (offload, packet) = match packet.split_first_chunk() {
                Some((front, packet)) => (Offload::read(front), packet),
                None => (None, &[][..]),
            };
            *refused += offload::take_apart(Layer::Ip, (offload, packet), (at, *mtu), buffer, take);
        }
        Ok(true)
    }

    fn send(&mut self, frames: &[Frame]) -> io::Result<usize> {
        let mut taken = 0;
        for frames in frames.chunks(PIECES / 2) {
            self.joined.clear();
            offload::join(Layer::Ip, frames, &mut self.joined);
            let mut pieces = [IoSlice::new(&[]); PIECES];
            offload::pieces(&self.joined, frames, &mut pieces);
            let mut pieces = &pieces[..];
            for one in &self.joined {
                let (packet, rest) = pieces.split_at(one.frames + 1);
                pieces = rest;
                match self.tun.send_pieces(packet) {
                    Ok(()) => taken += one.frames,
                    Err(error) if is_gone(&error) => return Err(error),
                    Err(_) => {}
                }
            }
        }
        Ok(taken)
    }

    /// Only those that were larger than the interface's MTU: the kernel counts the others at the interface.
    fn overflowed(&mut self) -> u64 {
        core::mem::take(&mut self.refused)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
