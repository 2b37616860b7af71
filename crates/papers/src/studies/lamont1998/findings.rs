//! What the study concludes: how many sessions fit while voice keeps its rate.

use crate::results::Results;

/// Voice throughput beside one TCP connection, by the unit of TCP.
pub(super) const VOICE_BESIDE_TCP: &[&str] = &["table09", "table10", "table11", "table12"];
/// The same beside several.
pub(super) const TCP_BESIDE_VOICE: &[&str] = &["table21", "table22", "table23", "table24"];

/// 64 kbit/s in KB/s.
const RATE: f64 = 8000.0 / 1024.0;
/// A voice session keeps its rate if it has this share of it, in the mean over the units of TCP.
const KEPT: f64 = 0.99;

pub(super) fn voice_beside_tcp(results: &Results) -> Option<String> {
    most_sessions(results, VOICE_BESIDE_TCP, &[("window_kbytes", "50")])
}

pub(super) fn voice_alone(results: &Results) -> Option<String> {
    most_sessions(results, &["table25"], &[])
}

pub(super) fn large_windows_beside_voice(results: &Results) -> Option<String> {
    most_sessions(results, TCP_BESIDE_VOICE, &[("window_kbytes", "50")])
}

pub(super) fn small_windows_beside_voice(results: &Results) -> Option<String> {
    most_sessions(results, TCP_BESIDE_VOICE, &[("window_kbytes", "8")])
}

/// The size of the bundle before the first in which voice does not keep its rate, in the mean over these tables, in rows
/// that have these cells.
fn most_sessions(results: &Results, tables: &[&str], only: &[(&str, &str)]) -> Option<String> {
    // The size of a bundle and what its voice has, in the order of the tables.
    let mut bundles: Vec<(f64, Vec<f64>)> = Vec::new();
    for table in tables {
        for (row, cell) in results.table(table)?.cells(&["udp_throughput_kbytes_s"], only) {
            let (size, rate) = (row.keys.number("bundle_count")?, cell.simulated?);
            match bundles.iter_mut().find(|(known, _)| *known == size) {
                Some((_, rates)) => rates.push(rate),
                None => bundles.push((size, vec![rate])),
            }
        }
    }
    let keeps = |rates: &[f64]| rates.iter().sum::<f64>() >= KEPT * RATE * rates.len() as f64;
    let kept = bundles.iter().take_while(|(_, rates)| keeps(rates));
    Some(kept.last().map_or(0.0, |(size, _)| *size).to_string())
}
