//! Transports and their options.

mod dccp;
mod quic;
mod rtp;
mod sctp;
mod tcp;
mod udp;
mod urp;
mod xtp;

use trunkline_core::schema::{Parameter, Values};
use trunkline_transport::Features;

use crate::model::Transport;
pub use tcp::{OnSockets, tcp_key_on_sockets};

/// A transport that an experiment file can name: `transport = { kind = "tcp", window = "16 KiB" }`.
pub(crate) struct TransportKind {
    /// The word in the file.
    pub(crate) name: &'static str,
    /// One paragraph: what it is in each backend and where it is defined.
    pub(crate) doc: &'static str,
    /// Its parameters.
    pub(crate) parameters: &'static [Parameter],
    /// What it promises.
    pub(crate) features: &'static Features,
    /// The largest payload of a message in bytes, without the header of a measured message.
    pub(crate) max_message: u64,
    /// Makes its options from its values.
    pub(crate) read: fn(&Values) -> Transport,
}

/// Every transport that an experiment file can name.
pub(crate) const KINDS: &[TransportKind] = &[
    udp::KIND,
    udp::LITE,
    tcp::KIND,
    tcp::MULTIPATH,
    urp::KIND,
    dccp::KIND,
    xtp::KIND,
    rtp::KIND,
    quic::KIND,
    sctp::KIND,
];

const NONE: &str = "none";

/// What every transport that an experiment file can name promises, in the order of the reference.
pub const TRANSPORTS: &[&Features] = &{
    let mut all = [KINDS[0].features; KINDS.len()];
    let mut index = 0;
    while index < KINDS.len() {
        all[index] = KINDS[index].features;
        index += 1;
    }
    all
};
