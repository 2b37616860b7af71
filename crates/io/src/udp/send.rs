//! Sending many datagrams at once.

use std::io;
use std::net::UdpSocket;

/// Memory for handing a batch of datagrams to the kernel at once, made once and used for every batch.
pub struct SendBatch {
    capacity: usize,
    #[cfg(target_os = "linux")]
    iovecs: Vec<libc::iovec>,
    #[cfg(target_os = "linux")]
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the raw pointers inside are written and used within one call of `send` and never read after it.
unsafe impl Send for SendBatch {}

impl core::fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SendBatch").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl SendBatch {
    /// Room for at most `capacity` datagrams per call (at least 1; more than 64 gain nothing).
    pub fn with_capacity(capacity: usize) -> SendBatch {
        let capacity = capacity.max(1);
        SendBatch {
            capacity,
            #[cfg(target_os = "linux")]
            iovecs: Vec::with_capacity(capacity),
            #[cfg(target_os = "linux")]
            headers: Vec::with_capacity(capacity),
        }
    }

    /// How many datagrams one call takes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sends the datagrams through a connected socket, in order, without waiting, and says how many the kernel took:
    /// the first so many of them, at most [`SendBatch::capacity`]. One datagram costs a bare `send`.
    ///
    /// # Errors
    /// That of the first datagram, when none was taken: [`io::ErrorKind::WouldBlock`] if there is no room.
    #[cfg(target_os = "linux")]
    pub fn send<'m>(
        &mut self,
        socket: &UdpSocket,
        datagrams: impl IntoIterator<Item = &'m [u8]>,
    ) -> io::Result<usize> {
        use std::os::fd::AsRawFd as _;

        self.iovecs.clear();
        self.iovecs.extend(datagrams.into_iter().take(self.capacity).map(|datagram| libc::iovec {
            iov_base: datagram.as_ptr().cast_mut().cast(),
            iov_len: datagram.len(),
        }));
        let descriptor = socket.as_raw_fd();
        if let [one] = self.iovecs[..] {
            return retry(|| {
                // SAFETY: the iovec describes a slice that outlives this call; the kernel only reads it.
                let sent = unsafe { libc::send(descriptor, one.iov_base, one.iov_len, libc::MSG_DONTWAIT) };
                if sent < 0 { -1 } else { 1 }
            });
        }
        self.headers.clear();
        for iovec in &mut self.iovecs {
            let mut header = super::system::empty_header();
            header.msg_hdr.msg_iov = iovec;
            header.msg_hdr.msg_iovlen = 1;
            self.headers.push(header);
        }
        retry(|| {
            // SAFETY: every header points to one iovec of ours, which describes a slice that outlives this call; the
            // kernel reads them and writes `msg_len` of the headers only.
            unsafe {
                libc::sendmmsg(
                    descriptor,
                    self.headers.as_mut_ptr(),
                    self.headers.len() as libc::c_uint,
                    libc::MSG_DONTWAIT as _,
                ) as isize
            }
        })
    }

    /// Sends the datagrams through a connected socket, in order, and says how many the system took: the first so many
    /// of them, at most [`SendBatch::capacity`].
    ///
    /// # Errors
    /// That of the first datagram, when none was taken.
    #[cfg(not(target_os = "linux"))]
    pub fn send<'m>(
        &mut self,
        socket: &UdpSocket,
        datagrams: impl IntoIterator<Item = &'m [u8]>,
    ) -> io::Result<usize> {
        let mut sent = 0;
        for datagram in datagrams.into_iter().take(self.capacity) {
            match socket.send(datagram) {
                Ok(_) => sent += 1,
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sent)
    }
}

/// Calls again when a signal interrupted.
#[cfg(target_os = "linux")]
fn retry(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        match usize::try_from(call()) {
            Ok(count) => return Ok(count),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
