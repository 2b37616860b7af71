//! TUN interfaces: what the kernel sends into one is read here as IP packets, and what is written here it receives.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::interface;

/// The other side of a TUN interface. The interface lives as long as this, in the network
/// namespace in which it was made, wherever this goes.
#[derive(Debug)]
pub struct Tun {
    device: File,
}

impl Tun {
    /// How many packets the kernel keeps for a reader that is late.
    pub const QUEUE: i32 = 8192;

    /// Makes the interface `name` in the calling thread's network namespace; it is down, and has no address. It has no
    /// offloads: packets come with their checksums and cut to the interface's MTU.
    ///
    /// # Errors
    /// Without `/dev/net/tun` or the right to (`CAP_NET_ADMIN` in the namespace); if there is one of that name.
    pub fn create(name: &str) -> io::Result<Tun> {
        Tun::open(name, 0)
    }

    /// The same with the offloads of TCP: every packet, in both directions, has an [`Offload`](crate::offload::Offload) in
    /// front.
    ///
    /// # Errors
    /// As for [`create`](Tun::create).
    pub fn create_with_offloads(name: &str) -> io::Result<Tun> {
        let tun = Tun::open(name, libc::IFF_VNET_HDR)?;
        let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        // SAFETY: the call takes an integer.
        match unsafe {
            libc::ioctl(tun.device.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offloads))
        } {
            0 => Ok(tun),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn open(name: &str, flags: libc::c_int) -> io::Result<Tun> {
        let device =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        let mut request = interface::request(name)?;
        let flags = flags | libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_TUN_EXCL;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: `request` is an ifreq with a name that ends in a zero and the flags.
        if unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // In a user namespace the kernel refuses this call, and takes the same by netlink.
        match interface::set_queue_length(name, Tun::QUEUE) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
            _ => Ok(Tun { device }),
        }
    }

    /// Reads a packet into the room that `into` has beyond its length; one that is larger than that is cut to it. Never
    /// waits.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none; others if the interface is gone.
    #[inline]
    pub fn receive(&self, into: &mut Vec<u8>) -> io::Result<()> {
        let room = into.spare_capacity_mut();
        // SAFETY: at most as many bytes are written as there is room.
        let got = unsafe { libc::read(self.device.as_raw_fd(), room.as_mut_ptr().cast(), room.len()) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: the kernel has written so many bytes behind the length.
        unsafe { into.set_len(into.len() + got) };
        Ok(())
    }

    /// Gives the kernel a packet, as if it had come over the interface. Never waits.
    ///
    /// # Errors
    /// If the kernel does not take it: its queue is full, the interface is down or gone, or this is no IP packet.
    #[inline]
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        // A packet goes as a whole or not at all.
        (&self.device).write(packet).map(|_| ())
    }

    /// The same with a packet in several pieces.
    ///
    /// # Errors
    /// As for [`send`](Tun::send).
    #[inline]
    pub fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        (&self.device).write_vectored(pieces).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
