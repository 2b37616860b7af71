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

/// The interfaces that do not forward IPv4, in the network namespace of the calling thread.
pub(super) fn not_forwarding() -> io::Result<Vec<String>> {
    let mut interfaces = Vec::new();
    for entry in fs::read_dir("/proc/sys/net/ipv4/conf")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let path = format!("/proc/sys/net/{}", forwarding_key(&name));
        if !["all", "default", "lo"].contains(&&*name)
            && fs::read_to_string(path).is_ok_and(|now| now.trim() == "0")
        {
            interfaces.push(name);
        }
    }
    interfaces.sort();
    Ok(interfaces)
}

/// The key of an interface's setting that lets it forward IPv4.
pub(super) fn forwarding_key(interface: &str) -> String {
    format!("ipv4/conf/{interface}/forwarding")
}

/// Lets an interface forward IPv4, or not.
pub(super) fn set_forwarding(interface: &str, forward: bool) -> io::Result<()> {
    set(&forwarding_key(interface), if forward { "1" } else { "0" })
}

/// Whether the network namespace of the calling thread forwards IPv6. A machine that does no longer takes its own routes from
/// routers (RFC 4861 section 6.2.1), so that nobody else may switch that on.
pub(super) fn forwards_ipv6() -> bool {
    fs::read_to_string("/proc/sys/net/ipv6/conf/all/forwarding").is_ok_and(|now| now.trim() == "1")
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

/// Sets a key of the network namespace of the calling thread.
pub(super) fn set(key: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/sys/net/{key}");
    // Somebody may have set it so already where it cannot be written.
    if fs::read_to_string(&path).is_ok_and(|now| now.trim() == value) {
        return Ok(());
    }
    fs::write(&path, value).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))
}
