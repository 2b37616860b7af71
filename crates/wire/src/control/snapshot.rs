//! What a wire's links have counted, as told to others: names, and plain numbers with their units.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use trunkline_core::Duration;
use trunkline_network::{DropCause, MarkCause, MediumCounters};

use crate::relay::{FlowCounters, FlowDirection, LINK_DOWN, PortCounters, RelayCounters, Volume};

/// Counters of all links since the wire came up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct WireSnapshot {
    /// The wire's name.
    pub wire: String,
    /// Its links, in the file's order.
    pub links: Vec<LinkSnapshot>,
    /// The reason why its capture has ended early, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_failure: Option<String>,
}

/// One link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkSnapshot {
    /// Its name.
    pub link: String,
    /// Time of reading by the wire's clock, in nanoseconds. A rate is a difference of counters over that of these times.
    pub at_ns: u64,
    /// Whether it is up.
    pub up: bool,
    /// Whether its relay has ended, because an interface is gone; then all else is missing.
    #[serde(default)]
    pub ended: bool,
    /// Counters of the packets that entered at each port.
    pub directions: Vec<DirectionSnapshot>,
    /// The flows seen lately.
    pub flows: Vec<FlowSnapshot>,
}

/// Counters of the packets from one host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DirectionSnapshot {
    /// The host.
    pub from: String,
    /// The host at the other end; null on a medium of several.
    #[schema(required = true)]
    pub to: Option<String>,
    /// Packets received from the host.
    pub offered: Packets,
    /// Packets that the link delivered, including duplicates.
    pub delivered: Packets,
    /// Packets in the queue.
    pub waiting: Packets,
    /// Packets dropped, by cause; causes that did not occur are absent.
    pub dropped: BTreeMap<String, u64>,
    /// Packets marked "congestion experienced", by cause.
    pub marked: BTreeMap<String, u64>,
    /// Packets lost before the link, because the relay was not scheduled in time: an error of the instrument.
    pub overflowed: u64,
    /// Packets for the host that its kernel did not accept.
    pub refused: u64,
    /// Bytes on the line, including the link's framing.
    pub transmitted_bytes: u64,
    /// Time in which the line was busy, in nanoseconds.
    pub busy_ns: u64,
    /// Times in the queue of packets that were transmitted.
    pub sojourn: Sojourn,
}

/// Packets and their bytes at the network layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = PacketCount)]
pub struct Packets {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes, network header included.
    pub bytes: u64,
}

/// Times that packets spent in a queue. Quantiles cover the time since the wire came up and are at most 0.8 % off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Sojourn {
    /// Number of packets.
    pub count: u64,
    /// The sum of all times, in nanoseconds.
    pub total_ns: u64,
    /// The median, in nanoseconds.
    pub p50_ns: u64,
    /// The 99th percentile, in nanoseconds.
    pub p99_ns: u64,
    /// The 99.9th percentile, in nanoseconds.
    pub p999_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FlowSnapshot {
    /// Its number on the link, which is reused after a long silence.
    pub flow: u32,
    /// Its protocol and ends, `udp 198.18.0.1:5004 198.18.0.2:5004`, or `other` for packets that are not IP.
    pub name: String,
    /// Counters from the end that sent the first packet, and back.
    pub directions: [FlowSide; 2],
}

/// One direction of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FlowSide {
    /// Packets that entered the link.
    pub offered: Packets,
    /// Packets that the link delivered.
    pub delivered: Packets,
    /// Packets in the link.
    pub waiting: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets marked "congestion experienced".
    pub marked: u64,
    /// Sum of the times from end to end of the link, in nanoseconds.
    pub transit_total_ns: u64,
    /// The longest of them, in nanoseconds.
    pub transit_max_ns: u64,
}

impl LinkSnapshot {
    /// Of a relay that has ended.
    pub(super) fn ended(link: &str) -> LinkSnapshot {
        LinkSnapshot { link: link.to_owned(), ended: true, ..LinkSnapshot::default() }
    }

    pub(super) fn new(link: &str, stations: &[String], counters: &RelayCounters) -> LinkSnapshot {
        let to = |port: usize| (stations.len() == 2).then(|| stations[1 - port].clone());
        let directions = stations.iter().zip(&counters.ports).enumerate();
        LinkSnapshot {
            link: link.to_owned(),
            at_ns: counters.at.as_nanos(),
            up: counters.up,
            ended: false,
            directions: directions
                .map(|(port, (from, counted))| direction(from, to(port), counted))
                .collect(),
            flows: counters.flows.iter().map(FlowSnapshot::from).collect(),
        }
    }
}

fn direction(from: &str, to: Option<String>, port: &PortCounters) -> DirectionSnapshot {
    let medium = &port.medium;
    let causes = DropCause::ALL.iter().map(|cause| (cause.name(), medium.dropped[cause.index()]));
    let marks = MarkCause::ALL.iter().map(|cause| (cause.name(), medium.marked[cause.index()]));
    DirectionSnapshot {
        from: from.to_owned(),
        to,
        offered: port.offered.into(),
        delivered: port.delivered.into(),
        waiting: port.waiting.into(),
        dropped: occurred(causes.chain([(LINK_DOWN, port.cut)])),
        marked: occurred(marks),
        overflowed: port.overflowed,
        refused: port.refused,
        transmitted_bytes: medium.transmitted.count(),
        busy_ns: medium.busy.total().as_nanos(),
        sojourn: Sojourn::from(medium),
    }
}

fn occurred<'c>(counts: impl Iterator<Item = (&'c str, u64)>) -> BTreeMap<String, u64> {
    counts.filter(|(_, count)| *count > 0).map(|(cause, count)| (cause.to_owned(), count)).collect()
}

impl From<Volume> for Packets {
    fn from(volume: Volume) -> Packets {
        Packets { packets: volume.packets, bytes: volume.bytes.count() }
    }
}

impl From<&MediumCounters> for Sojourn {
    fn from(medium: &MediumCounters) -> Sojourn {
        let quantile = |thousandths| medium.sojourns.quantile(thousandths).map_or(0, Duration::as_nanos);
        Sojourn {
            count: medium.dequeued,
            total_ns: medium.sojourn_total.as_nanos(),
            p50_ns: quantile(500),
            p99_ns: quantile(990),
            p999_ns: quantile(999),
            max_ns: medium.sojourns.longest().as_nanos(),
        }
    }
}

impl From<&FlowCounters> for FlowSnapshot {
    fn from(flow: &FlowCounters) -> FlowSnapshot {
        let name = flow.key.map_or("other".to_owned(), |key| {
            let protocol = match key.protocol {
                1 => "icmp".to_owned(),
                6 => "tcp".to_owned(),
                17 => "udp".to_owned(),
                33 => "dccp".to_owned(),
                58 => "icmpv6".to_owned(),
                132 => "sctp".to_owned(),
                136 => "udp-lite".to_owned(),
                number => format!("ip-{number}"),
            };
            let [from, to] = key.addresses;
            match key.ports {
                [0, 0] => format!("{protocol} {from} {to}"),
                // The identifier of an echo.
                [id, _] if protocol.starts_with("icmp") => format!("{protocol} {from} {to} {id}"),
                [source, sink] => {
                    format!("{protocol} {} {}", SocketAddr::new(from, source), SocketAddr::new(to, sink))
                }
            }
        });
        FlowSnapshot { flow: flow.flow.0, name, directions: flow.directions.map(FlowSide::from) }
    }
}

impl From<FlowDirection> for FlowSide {
    fn from(direction: FlowDirection) -> FlowSide {
        FlowSide {
            offered: direction.offered.into(),
            delivered: direction.delivered.into(),
            waiting: direction.waiting(),
            dropped: direction.dropped,
            marked: direction.marked,
            transit_total_ns: direction.transit_total.as_nanos(),
            transit_max_ns: direction.transit_max.as_nanos(),
        }
    }
}
