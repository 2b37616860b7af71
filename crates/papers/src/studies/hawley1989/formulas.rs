//! Tables 1 and 2: what the paper computes and does not measure.

use crate::value::Keys;

/// T1 without its synchronisation bit, in KB/s: 1.544 Mbit/s * 192 / 193 / 8.
const LINE: f64 = 192.0;
/// Overhead of a trunk frame in bytes; a quantum goes in a frame of its own.
const FRAME: f64 = 8.0;
/// The trailer of a URP block on the trunk: its own frame, 4 bytes, 2 of them stuffed.
const TRAILER: f64 = 14.0;
/// Processor cycles per envelope from memory to the output FIFO.
const CYCLES: f64 = 19.7;
/// Microseconds per cycle at 16 MHz.
const CYCLE: f64 = 0.0625;

/// Table 1, section 2.1: 192 KB/s * B / (B + 14 + 8 * B/Q) of a block B and a quantum Q, in KB/s to one decimal.
pub(super) fn throughput(keys: &Keys) -> Option<f64> {
    let (quantum, block) = (keys.number("quantum_bytes")?, keys.number("urp_block_bytes")?);
    // Divided by B, so that a block without end needs no case of its own.
    let rate = LINE / (1.0 + TRAILER / block + FRAME / quantum);
    Some((rate * 10.0).round() / 10.0)
}

/// Table 2, section 2.2: channels * quantum * 19.7 cycles * 62.5 ns, in microseconds.
///
/// The paper prints whole microseconds. Those below a millisecond are rounded (78.8 as 79, 157.6 as 158), those above
/// are cut (1260.8 as 1260, 2521.6 as 2521); so are ours. Where between 0.63 and 1.26 ms that changes is not to be seen.
pub(super) fn queueing_delay(keys: &Keys) -> Option<f64> {
    let envelopes = keys.number("active_channels")? * keys.number("quantum_bytes")?;
    let delay = envelopes * CYCLES * CYCLE;
    Some(if delay < 1000.0 { delay.round() } else { delay.floor() })
}
