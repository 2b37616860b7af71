//! The packets that met an idle path: nothing else of ours was in the queue.

use crate::observations::{Observations, Packet, Way};

/// The packets of the thin flows of a direction that met neither a train nor a pulse of ours: by these times in seconds after
/// the last packet of a train, and of a pulse, was sent.
pub(crate) fn idle(observations: &Observations, way: Way, quiet: (f64, f64)) -> Vec<Packet> {
    let sent = |is_pulse: bool| {
        let flows = observations.of(way).filter(|flow| !is_thin(&flow.name));
        let flows = flows.filter(|flow| flow.name.contains("pulse") == is_pulse);
        let mut times: Vec<f64> =
            flows.flat_map(|flow| flow.packets.iter().map(|packet| packet.sent.as_secs_f64())).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let loads = [(sent(false), quiet.0), (sent(true), quiet.1)];
    let is_idle = |packet: &&Packet| {
        let sent = packet.sent.as_secs_f64();
        loads.iter().all(|(times, quiet)| {
            let after = times.partition_point(|&load| load <= sent);
            after.checked_sub(1).is_none_or(|before| sent - times[before] > *quiet)
        })
    };
    let flows = observations.of(way).filter(|flow| is_thin(&flow.name));
    let mut packets: Vec<Packet> =
        flows.flat_map(|flow| flow.packets.iter().filter(is_idle).copied()).collect();
    packets.sort_by_key(|packet| packet.sent);
    packets
}

/// Returns true for the flows that hardly load the path.
pub(crate) fn is_thin(name: &str) -> bool {
    name.starts_with("thin") || name.starts_with("runs")
}
