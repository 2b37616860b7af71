//! Marks in the ECN field.

use trunkline_core::{Ecn, Packet, Time};

use crate::fate::{Fate, Fates, MarkCause};

/// Marks `packet` "congestion experienced" and says so; false if it is not ECN-capable and has to be dropped instead.
///
/// A packet that another queue has already marked carries the signal: nothing happens to it (RFC 3168 section 5).
pub(super) fn mark(now: Time, packet: &mut Packet, cause: MarkCause, fates: &mut Fates) -> bool {
    match packet.ecn {
        Ecn::NotCapable => false,
        Ecn::CongestionExperienced => true,
        Ecn::Ect0 | Ecn::Ect1 => {
            packet.ecn = Ecn::CongestionExperienced;
            fates.0.push(Fate::Marked { at: now, id: packet.id, flow: packet.flow, cause });
            true
        }
    }
}
