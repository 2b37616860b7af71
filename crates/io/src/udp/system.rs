//! Linux: the structures that `sendmmsg` and `recvmmsg` want.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};

/// Sets an option whose value is one integer.
pub(super) fn set_option(
    socket: &impl AsFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the value is one c_int, and its length is passed as such; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An empty message header.
pub(super) fn empty_header() -> libc::mmsghdr {
    // SAFETY: all-zero bytes are a valid mmsghdr: null pointers with lengths of zero.
    unsafe { core::mem::zeroed() }
}

/// An empty address.
pub(super) fn empty_address() -> libc::sockaddr_storage {
    // SAFETY: all-zero bytes are a valid sockaddr_storage of the family AF_UNSPEC.
    unsafe { core::mem::zeroed() }
}

/// The address that the kernel wrote, if it is IP.
pub(super) fn address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: a storage of this family holds a sockaddr_in, for which it is large and aligned enough.
            let v4 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: a storage of this family holds a sockaddr_in6, for which it is large and aligned enough.
            let v6 = unsafe { &*(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}
