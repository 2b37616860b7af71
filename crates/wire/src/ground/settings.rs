//! How a host's kernel is set: it forwards if it stands between links, and sends nothing of its own accord.

use std::fs;
use std::io;
use std::path::Path;

/// Whether this kernel does IPv6.
pub(super) fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6").exists()
}

/// Lets the network namespace of the calling thread forward packets.
pub(super) fn forward() -> io::Result<()> {
    set("ipv4/ip_forward", "1")?;
    // A host that sends back to where it came from is what the file says, not a mistake to be told about.
    set("ipv4/conf/all/send_redirects", "0")?;
    if has_ipv6() { set("ipv6/conf/all/forwarding", "1") } else { Ok(()) }
}

/// Keeps an interface quiet, or with `default` all that come: no addresses, routers or redirects but those of the plan,
/// and packets are taken wherever they come from, since the way back may be another.
pub(super) fn quieten(interface: &str) {
    let of_interface = [
        ("ipv4", "rp_filter", "0"),
        ("ipv4", "send_redirects", "0"),
        ("ipv4", "accept_redirects", "0"),
        ("ipv6", "disable_ipv6", "0"),
        ("ipv6", "accept_dad", "0"),
        ("ipv6", "accept_ra", "0"),
        ("ipv6", "accept_redirects", "0"),
        ("ipv6", "router_solicitations", "0"),
        // No link-local addresses but those that we give: the kernel would look for others that have them.
        ("ipv6", "addr_gen_mode", "1"),
    ];
    for (family, key, value) in of_interface {
        // Some kernels lack some of these; without them there is a packet more now and then.
        let _ = set(&format!("{family}/conf/{interface}/{key}"), value);
    }
    // A link may be slow: ask for a hardware address, once a second, until the answer can be there. Not all kernels let
    // user namespaces set this.
    for family in ["ipv4", "ipv6"] {
        for key in ["mcast_solicit", "ucast_solicit"] {
            let _ = set(&format!("{family}/neigh/{interface}/{key}"), "120");
        }
    }
}

fn set(key: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/sys/net/{key}");
    // Somebody may have set it so already where it cannot be written.
    if fs::read_to_string(&path).is_ok_and(|now| now.trim() == value) {
        return Ok(());
    }
    fs::write(&path, value).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))
}
