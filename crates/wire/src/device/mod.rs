//! Where a relay reads frames from and writes them to, one per station of a link.

mod offload;
mod ring;
mod tun;

use std::io;
use std::os::fd::BorrowedFd;

use trunkline_core::Time;

use ring::RingDevice;
use tun::TunDevice;

/// Makes the TUN interface `name` in the calling thread's network namespace, which is down and without addresses, and
/// returns its other side, for packets of at most `mtu` bytes. The interface is there as long as that.
///
/// # Errors
/// Without `/dev/net/tun` or the right to (`CAP_NET_ADMIN` in the namespace); if there is one of that name.
pub fn open_tun(name: &str, mtu: usize) -> io::Result<Box<dyn Device>> {
    Ok(Box::new(TunDevice::create(name, mtu)?))
}

/// Takes what arrives at the Ethernet interface `name` of the calling thread's network namespace, whose MTU is that of the
/// link already. Both ends of its pair have no other offloads than TCP's
/// ([`limit_offloads`](trunkline_io::interface::limit_offloads)).
///
/// # Errors
/// If there is no such interface; without the right to (`CAP_NET_RAW` in the namespace).
pub fn open_ring(name: &str) -> io::Result<Box<dyn Device>> {
    Ok(Box::new(RingDevice::open(name)?))
}

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
    /// When it arrived, or is due: in nanoseconds of the monotonic clock, without an epoch.
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

    /// Whether frames bear the time at which the kernel had them, which is before they can be received, and not that at
    /// which they were received.
    fn is_stamped(&self) -> bool;

    /// Hands over waiting frames in the order of their arrival, and returns true if more may be waiting: it stops after `most`
    /// packets of the kernel, each of which may be several frames. Never waits. `buffer` returns an empty buffer with room for
    /// the largest frame.
    ///
    /// # Errors
    /// If the device is gone.
    fn receive(
        &mut self,
        most: usize,
        buffer: &mut dyn FnMut() -> Vec<u8>,
        take: &mut dyn FnMut(Frame),
    ) -> io::Result<bool>;

    /// Sends frames, in their order, and says how many the kernel took; it takes no more than its buffers hold, and the
    /// others are lost.
    ///
    /// # Errors
    /// If the device is gone.
    fn send(&mut self, frames: &[Frame]) -> io::Result<usize>;

    /// Frames lost since the last time that this was asked, because the relay came too late for them.
    fn overflowed(&mut self) -> u64;

    /// Readable while there are frames to receive.
    fn descriptor(&self) -> BorrowedFd<'_>;
}

/// Whether an error means that the interface is no more, and not just down, full or not fond of a packet.
fn is_gone(error: &io::Error) -> bool {
    use nix::libc::{EBADF, EBADFD, ENODEV, ENXIO};
    matches!(error.raw_os_error(), Some(EBADF | EBADFD | ENODEV | ENXIO))
}
