//! What network interfaces are told through `ioctl`, by name, in the calling thread's network namespace.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use socket2::{Domain, Socket, Type};

/// The number of an interface.
///
/// # Errors
/// If there is no such interface.
pub fn index(name: &str) -> io::Result<i32> {
    let mut request = request(name)?;
    call(libc::SIOCGIFINDEX, &mut request)?;
    // SAFETY: the call has filled in this field.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex })
}

/// The largest packet of an interface, without its link's header.
///
/// # Errors
/// If there is no such interface.
pub fn mtu(name: &str) -> io::Result<usize> {
    let mut request = request(name)?;
    call(libc::SIOCGIFMTU, &mut request)?;
    // SAFETY: the call has filled in this field.
    Ok(usize::try_from(unsafe { request.ifr_ifru.ifru_mtu }).unwrap_or(0))
}

/// Lets so many packets wait for whoever reads the interface's other side.
///
/// # Errors
/// If there is no such interface, or without the right to (`CAP_NET_ADMIN`).
pub fn set_queue_length(name: &str, packets: i32) -> io::Result<()> {
    let mut request = request(name)?;
    // In this call the kernel reads the field as the length.
    request.ifr_ifru.ifru_metric = packets;
    call(libc::SIOCSIFTXQLEN, &mut request)
}

/// Offloads of TCP, as [`Offload`](crate::offload::Offload) describes their packets.
pub const TCP_OFFLOADS: [&str; 6] = [
    "tx-scatter-gather",
    "tx-checksum-ip-generic",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp6-segmentation",
];

/// Switches off an interface's offloads, except those in `kept` (ethtool's names): without offloads the kernel computes checksums
/// and cuts segments to the MTU before packets leave the interface.
///
/// # Errors
/// If there is no such interface, or without the right to (`CAP_NET_ADMIN`); if the kernel has more features than are known here.
pub fn limit_offloads(name: &str, kept: &[&str]) -> io::Result<()> {
    const OFFLOADS: [&str; 6] =
        ["segmentation", "tx-checksum", "tx-scatter", "rx-gro", "tx-gso", "rx-udp-gro"];
    let features = features(name)?;
    let mut states = FeatureStates { command: ETHTOOL_GFEATURES, size: WORDS as u32, words: [[0; 4]; WORDS] };
    ethtool(name, &mut states)?;
    let mut wanted = FeatureRequest { command: ETHTOOL_SFEATURES, size: states.size, words: [[0; 2]; WORDS] };
    for (place, feature) in features.iter().enumerate() {
        let (word, bit) = (place / 32, 1 << (place % 32));
        let [available, _, active, _] = states.words[word];
        let is_offload = OFFLOADS.iter().any(|offload| feature.contains(offload));
        if is_offload && !kept.contains(&&**feature) && available & active & bit != 0 {
            wanted.words[word][0] |= bit;
        }
    }
    ethtool(name, &mut wanted)
}

/// The names of an interface's features, by number.
fn features(name: &str) -> io::Result<Vec<String>> {
    let mut sizes =
        SetSizes { command: ETHTOOL_GSSET_INFO, reserved: 0, sets: 1 << ETH_SS_FEATURES, sizes: [0] };
    ethtool(name, &mut sizes)?;
    // The kernel writes all names, whatever room there is.
    if sizes.sizes[0] as usize > FEATURES {
        return Err(io::Error::other(format!(
            "the kernel has {} features of interfaces, more than {FEATURES}",
            sizes.sizes[0]
        )));
    }
    let mut names = FeatureNames {
        command: ETHTOOL_GSTRINGS,
        set: ETH_SS_FEATURES,
        count: 0,
        names: [[0; 32]; FEATURES],
    };
    ethtool(name, &mut names)?;
    let text = |name: &[u8; 32]| {
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..length]).into_owned()
    };
    Ok(names.names.iter().take(names.count as usize).map(text).collect())
}

// linux/ethtool.h
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
/// Linux keeps features in 64 bits.
const FEATURES: usize = 64;
const WORDS: usize = FEATURES / 32;

#[repr(C)]
struct SetSizes {
    command: u32,
    reserved: u32,
    /// The sets of names that are asked for, a bit for each.
    sets: u64,
    sizes: [u32; 1],
}

#[repr(C)]
struct FeatureNames {
    command: u32,
    set: u32,
    count: u32,
    names: [[u8; 32]; FEATURES],
}

#[repr(C)]
struct FeatureStates {
    command: u32,
    size: u32,
    /// Available, requested, active, and never changed.
    words: [[u32; 4]; WORDS],
}

#[repr(C)]
struct FeatureRequest {
    command: u32,
    size: u32,
    /// Valid, and requested.
    words: [[u32; 2]; WORDS],
}

/// Makes a request of ethtool. `T` begins with the command and has room for the answer.
fn ethtool<T>(name: &str, value: &mut T) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut *value).cast();
    call(libc::SIOCETHTOOL, &mut request)
}

/// Brings an interface up.
///
/// # Errors
/// If there is no such interface, or without the right to (`CAP_NET_ADMIN`).
pub fn set_up(name: &str) -> io::Result<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    call(libc::SIOCSIFFLAGS, &mut request)
}

/// Gives an interface an IPv4 address, the first so many bits of which are its network's.
///
/// # Errors
/// If there is no such interface, or without the right to (`CAP_NET_ADMIN`).
pub fn set_address(name: &str, address: [u8; 4], bits: u32) -> io::Result<()> {
    let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0).to_be_bytes();
    for (what, address) in [(libc::SIOCSIFADDR, address), (libc::SIOCSIFNETMASK, mask)] {
        let mut request = request(name)?;
        // SAFETY: all-zero bytes are a valid sockaddr.
        let mut socket: libc::sockaddr = unsafe { core::mem::zeroed() };
        socket.sa_family = libc::AF_INET as libc::sa_family_t;
        for (into, byte) in socket.sa_data[2..6].iter_mut().zip(address) {
            *into = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_addr = socket;
        call_through(Domain::IPV4, what, &mut request)?;
    }
    Ok(())
}

/// A request about the interface of that name.
pub(crate) fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    // The last byte stays zero.
    if name.is_empty() || name.len() >= request.ifr_name.len() || name.contains('\0') {
        let problem =
            format!("invalid interface name `{name}`: names have 1 to {} bytes", libc::IFNAMSIZ - 1);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    for (into, &byte) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *into = byte as libc::c_char;
    }
    Ok(request)
}

fn call(what: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    call_through(Domain::UNIX, what, request)
}

/// The same through a socket of that family, whose own calls no other family knows.
fn call_through(domain: Domain, what: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    let socket: OwnedFd = Socket::new(domain, Type::DGRAM, None)?.into();
    // SAFETY: `request` is an ifreq with a name that ends in a zero; what its other field points to, where it does, lives
    // as long as the caller's frame.
    if unsafe { libc::ioctl(socket.as_raw_fd(), what as libc::Ioctl, request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_known() {
        assert!(index("lo").unwrap() > 0);
        assert!(mtu("lo").unwrap() >= 1280);
    }

    #[test]
    fn there_are_names_that_no_interface_has() {
        for name in ["", "sixteen-or-more-b", "a\0b"] {
            assert_eq!(mtu(name).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{name}");
        }
        assert_eq!(mtu("nobody").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
