//! The way from a wire over this machine to the networks beyond it: forwarding, and translation of addresses.
//!
//! Rules are in a table of nftables that the kernel removes with this process. Interfaces that do not forward are switched to
//! forward, and back when the wire goes down; the first process of the outside host does that if this process is killed.

mod nftables;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::settings;
use nftables::{Batch, Expression, Hook, OwnedTable};

/// The addresses of all links, see [`crate::plan`].
const IPV4: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(198, 18, 0, 0), Ipv4Addr::new(255, 254, 0, 0));
const IPV6: (Ipv6Addr, Ipv6Addr) =
    (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), Ipv6Addr::new(0xffff, 0xffff, 0xffff, 0, 0, 0, 0, 0));

/// Returns true for an address of a link.
pub(super) fn is_of_wires(address: Ipv4Addr) -> bool {
    address & IPV4.1 == IPV4.0
}

/// What has been changed on the machine; changed back when this is dropped, by a thread in the machine's network.
#[derive(Debug)]
pub(super) struct WayOut {
    /// Dropped after forwarding has ended.
    _table: OwnedTable,
    forwarding: Vec<String>,
}

impl WayOut {
    /// Opens it in the network of the calling thread, for a wire whose interfaces there have names that begin with `prefix`.
    /// `remember` is told, before anything is changed, the settings that a process that outlives this one has to write back.
    pub(super) fn open(
        prefix: &str,
        remember: &mut dyn FnMut(&str, &str) -> io::Result<()>,
    ) -> io::Result<WayOut> {
        let forwarding = settings::not_forwarding()?;
        let (own, others): (Vec<String>, Vec<String>) =
            forwarding.into_iter().partition(|interface| interface.starts_with(prefix));
        let table = table(prefix, &others).commit()?;
        // From here on what was changed is changed back if something fails.
        let mut way_out = WayOut { _table: table, forwarding: Vec::new() };
        for interface in &others {
            remember(&settings::forwarding_key(interface), "0")?;
            way_out.forwarding.push(interface.clone());
            settings::set_forwarding(interface, true)?;
        }
        // These go with the wire.
        own.iter().try_for_each(|interface| settings::set_forwarding(interface, true))?;
        Ok(way_out)
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        for interface in &self.forwarding {
            // It may have gone meanwhile.
            let _ = settings::set_forwarding(interface, false);
        }
    }
}

/// What comes from the wire's hosts gets the machine's address. What comes from an interface that did not forward before goes
/// on to the wire only.
fn table(prefix: &str, switched: &[String]) -> Batch {
    let mut batch = Batch::new(&format!("trunkline-{}", prefix.trim_end_matches('-')));
    batch.chain("out", Hook::SourceNat);
    let sources: [(bool, &[u8], &[u8]); 2] =
        [(true, &IPV4.0.octets(), &IPV4.1.octets()), (false, &IPV6.0.octets(), &IPV6.1.octets())];
    for (ipv4, address, mask) in sources {
        let mut rule = Expression::is_ipv4(ipv4).to_vec();
        rule.extend(Expression::source_in(address, mask));
        rule.extend(Expression::leaves_not_by(prefix));
        rule.push(Expression::masquerade());
        batch.rule("out", &rule);
    }
    batch.chain("between", Hook::Forward);
    for interface in switched {
        let mut rule = Expression::came_from(interface).to_vec();
        rule.extend(Expression::leaves_not_by(prefix));
        rule.push(Expression::drop());
        batch.rule("between", &rule);
    }
    batch
}
