//! What an experiment file says of one direction.

use trunkline_core::schema::{Limit, Values};
use trunkline_core::{Bytes, Duration, FlowId, Rate};

use super::PER_FLOW;
use crate::gcra::Contract;
use crate::impairment::Impairments;
use crate::medium::PortConfig;
use crate::queue::Queue;

/// One direction of an ATM link. Rates are of cells with their headers.
pub struct AtmConfig {
    /// The place in the experiment, from which random streams are named: `link.trunk/berlin-ottawa`.
    pub place: String,
    /// With a channel for each flow, how much may wait for each; otherwise all packets share one channel.
    pub per_flow: Option<Limit>,
    /// What the host's line carries.
    pub line: Rate,
    /// What the source keeps to.
    pub shaper: Contract,
    /// What the network holds each channel to.
    pub contract: Contract,
    /// What it does with cells that do not conform.
    pub policing: Policing,
    /// What the switch's output line carries.
    pub rate: Rate,
    /// How many cells may wait for it.
    pub buffer: u64,
    /// With how many in the buffer tagged ones are lost.
    pub clp_threshold: u64,
    /// When cells are discarded because of others of their packet.
    pub discard: Discard,
    /// Propagation delay.
    pub delay: Duration,
    /// The largest packet at the network layer.
    pub mtu: Bytes,
    /// What stands before a packet: LLC/SNAP.
    pub overhead: Bytes,
    /// Whose cells are recorded by themselves.
    pub observe: FlowId,
    /// The queue in front of the channel that all packets share, empty.
    pub queue: Box<dyn Queue>,
    /// What happens to packets behind the output line.
    pub impairments: Impairments,
}

/// What a network does with cells that do not conform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policing {
    /// Counts them.
    Pass,
    /// Sets their cell loss priority to 1.
    Tag,
    /// Discards them.
    Discard,
}

/// Discarding of cells because of others of their packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discard {
    /// With how many in the buffer a packet that begins is discarded whole.
    pub early: Option<u64>,
    /// Whether the rest of a packet of which a cell was discarded is, but for its last cell.
    pub partial: bool,
}

impl From<PortConfig<'_>> for AtmConfig {
    /// # Panics
    /// If the values are not those of this medium's parameters: a mistake in the program, never in a file.
    fn from(port: PortConfig<'_>) -> AtmConfig {
        let values = port.values;
        let buffer = values.integer("buffer");
        AtmConfig {
            place: port.place,
            per_flow: (values.text("vc") == PER_FLOW).then(|| values.limit("vc-limit")),
            line: values.rate("line"),
            shaper: contract(values, ["shape-pcr", "shape-scr", "shape-mbs"], Duration::ZERO),
            contract: contract(values, ["pcr", "scr", "mbs"], values.duration("cdvt")),
            policing: match values.text("policing").as_str() {
                "pass" => Policing::Pass,
                "tag" => Policing::Tag,
                _ => Policing::Discard,
            },
            rate: values.rate("rate"),
            buffer,
            clp_threshold: values.integer_if_given("clp-threshold").unwrap_or(buffer).min(buffer),
            discard: Discard { early: values.integer_if_given("epd"), partial: values.flag("ppd") },
            delay: values.duration("delay"),
            mtu: values.bytes("mtu"),
            overhead: values.bytes("overhead"),
            observe: FlowId(u32::try_from(values.integer("observe")).unwrap_or(u32::MAX)),
            queue: port.queue,
            impairments: port.impairments,
        }
    }
}

fn contract(values: &Values, [pcr, scr, mbs]: [&str; 3], cdvt: Duration) -> Contract {
    let (pcr, scr, mbs) = (values.rate_if_given(pcr), values.rate_if_given(scr), values.integer(mbs));
    let peak = pcr.map_or(Contract::NONE, |pcr| Contract::peak(pcr, cdvt));
    match scr {
        Some(scr) => peak.and_sustained(scr, mbs, pcr.unwrap_or_else(|| values.rate("line")), cdvt),
        None => peak,
    }
}
