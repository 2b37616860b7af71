//! What redundancy would have made of what was measured.
//!
//! Every packet of a trace stands for a slot of the network: what was sent in it would have been lost or delayed as that
//! packet was. So losses in bursts defeat redundancy here as they would have in fact; nothing is taken to be independent.

use trunkline_audio::pipeline::Protection;

/// What is tried, the cheapest first.
pub const PROTECTIONS: [Protection; 8] = [
    Protection::None,
    Protection::Xor { data: 8 },
    Protection::Xor { data: 4 },
    Protection::Xor { data: 2 },
    Protection::ReedSolomon { data: 4, parity: 2 },
    Protection::ReedSolomon { data: 8, parity: 4 },
    Protection::Repeat(1),
    Protection::Repeat(2),
];

/// Blocks of data and of parity in a group.
fn group(protection: Protection) -> Option<(usize, usize)> {
    match protection {
        Protection::None | Protection::Repeat(_) => None,
        Protection::Xor { data } => Some((data, 1)),
        Protection::ReedSolomon { data, parity } => Some((data, parity)),
    }
}

/// How many times as much audio, and how many times as many packets, are sent.
pub(crate) fn cost(protection: Protection) -> (f64, f64) {
    match (protection, group(protection)) {
        (Protection::Repeat(repeats), _) => (1.0 + repeats as f64, 1.0),
        (_, Some((data, parity))) => {
            let times = (data + parity) as f64 / data as f64;
            (times, times)
        }
        (_, None) => (1.0, 1.0),
    }
}

/// How much later than the fastest packet each packet's audio is there, in nanoseconds; [`NEVER`] if it is not. `extra` has
/// the same of the slots of the network, which lie `interval` nanoseconds apart. One sequence for every place at which
/// groups could have begun; what the end of the trace leaves undecided is left out.
pub(crate) fn protected(extra: &[u64], interval: u64, protection: Protection) -> Vec<Vec<u64>> {
    match (protection, group(protection)) {
        (Protection::Repeat(repeats), _) => vec![repeated(extra, interval, repeats)],
        (_, Some((data, parity))) => (0..data + parity)
            .map(|start| grouped(extra.get(start..).unwrap_or(&[]), interval, data, parity))
            .collect(),
        (_, None) => vec![extra.to_vec()],
    }
}

/// What never arrives.
pub(crate) const NEVER: u64 = u64::MAX;

fn repeated(extra: &[u64], interval: u64, repeats: usize) -> Vec<u64> {
    let soonest = |slots: &[u64]| {
        let with_wait = slots.iter().zip(0u64..).map(|(extra, after)| extra.saturating_add(after * interval));
        with_wait.min().unwrap_or(NEVER)
    };
    extra.windows(repeats + 1).map(soonest).collect()
}

fn grouped(extra: &[u64], interval: u64, data: usize, parity: usize) -> Vec<u64> {
    let mut there = Vec::with_capacity(extra.len());
    let mut arrivals = Vec::with_capacity(data + parity);
    for group in extra.chunks_exact(data + parity) {
        // Parity leaves right after the last packet of data.
        let sent = |index: usize| index.min(data - 1) as u64 * interval;
        arrivals.clear();
        arrivals.extend(group.iter().enumerate().map(|(index, extra)| extra.saturating_add(sent(index))));
        arrivals.sort_unstable();
        // Any `data` packets of a group give all of it.
        let complete = arrivals[data - 1];
        let own = group[..data].iter().enumerate();
        there.extend(own.map(|(index, own)| match complete {
            NEVER => *own,
            complete => (*own).min(complete.saturating_sub(sent(index))),
        }));
    }
    there
}
