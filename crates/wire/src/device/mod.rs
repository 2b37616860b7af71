//! Where a relay reads frames from and writes them to, one per station of a link.

use std::io;
use std::os::fd::BorrowedFd;

use trunkline_core::Time;

/// What a device's frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// IP packets.
    Ip,
    /// Ethernet frames, without preamble and check sequence.
    Ethernet,
}

/// A frame in a buffer of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// When it arrived, or is due.
    pub at: Time,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// The relay's end of one station's interface.
pub trait Device: Send {
    /// What its frames are.
    fn layer(&self) -> Layer;

    /// The largest frame that it carries.
    fn largest(&self) -> usize;

    /// Hands over frames that are there, at most `most` of them and in the order of their arrival, and says how many:
    /// fewer than `most` only if there are no more. Never waits. `buffer` gives an empty buffer with room for the largest
    /// frame.
    ///
    /// # Errors
    /// If the device is gone.
    fn receive(
        &mut self,
        most: usize,
        buffer: &mut dyn FnMut() -> Vec<u8>,
        take: &mut dyn FnMut(Frame),
    ) -> io::Result<usize>;

    /// Sends frames, in their order, and says how many the kernel took: it takes no more than its buffers hold.
    ///
    /// # Errors
    /// If the device is gone.
    fn send(&mut self, frames: &[Frame]) -> io::Result<usize>;

    /// Frames lost since the last time that this was asked, because the relay came too late for them.
    fn overflowed(&mut self) -> u64;

    /// Readable while there are frames to receive.
    fn descriptor(&self) -> BorrowedFd<'_>;
}
