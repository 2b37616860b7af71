//! One cell: what is carried over which line, and what is measured of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Simulated seconds of every cell.
pub(crate) const SECONDS: u32 = 30;
/// Between two packets of the call, in nanoseconds, as of G.711 with 10 ms in a packet.
pub(crate) const INTERVAL: u64 = 10_000_000;
/// Payload of a packet of the call, in bytes.
pub(crate) const VOICE: usize = 80;
/// The Ethernet header, which a veth device counts beside a packet, in bytes.
pub(crate) const OVERHEAD: u64 = 14;

/// The queue of the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Queue {
    /// A FIFO, by its length in bandwidth-delay products.
    Fifo(f64),
    /// CoDel with its defaults.
    Codel,
    /// CoDel that marks; the transfers negotiate ECN.
    CodelEcn,
    /// FQ-CoDel with its defaults.
    FqCodel,
    /// FQ-CoDel, which marks by default; the transfers negotiate ECN.
    FqCodelEcn,
    /// FQ-CoDel that marks packets which have waited for longer than this, in milliseconds; for DCTCP.
    Marking(u64),
    /// PIE with its defaults.
    Pie,
}

/// One cell of the matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// Mbit/s.
    pub(crate) rate: u64,
    /// The round trip of the empty path, in milliseconds.
    pub(crate) round_trip: u64,
    /// Before the line, in either direction.
    pub(crate) queue: Queue,
    /// The number of transfers.
    pub(crate) flows: u32,
    /// Their congestion control.
    pub(crate) control: String,
    /// Packets lost at random, in per cent, in the direction of the transfers.
    pub(crate) loss: f64,
    /// Bytes of each transfer; 0 for one without an end.
    pub(crate) volume: u64,
}

impl Cell {
    /// The bandwidth-delay product, in bytes.
    pub(crate) fn product(&self) -> f64 {
        (self.rate * self.round_trip * 1000 / 8) as f64
    }

    /// Returns true if the transfers ask for ECN themselves; DCTCP does so anyway.
    pub(crate) fn negotiates_ecn(&self) -> bool {
        matches!(self.queue, Queue::CodelEcn | Queue::FqCodelEcn)
    }

    /// All cells of the matrix.
    pub(crate) fn all() -> Vec<Cell> {
        CELLS.iter().map(|cell| cell.parse().unwrap_or_else(|error| panic!("{cell}: {error}"))).collect()
    }
}

/// Rate and round trip, queue, flows, loss, volume.
const CELLS: &[&str] = &[
    // One flow, a FIFO of one product.
    "2M,10ms,fifo-4,1,cubic",
    "2M,40ms,fifo-1,1,cubic",
    "2M,100ms,fifo-1,1,cubic",
    "10M,10ms,fifo-1,1,cubic",
    "10M,40ms,fifo-1,1,cubic",
    "10M,100ms,fifo-1,1,cubic",
    "50M,10ms,fifo-1,1,cubic",
    "50M,40ms,fifo-1,1,cubic",
    "50M,100ms,fifo-1,1,cubic",
    // Shallow and deep.
    "10M,40ms,fifo-0.25,1,cubic",
    "10M,100ms,fifo-0.25,1,cubic",
    "50M,40ms,fifo-0.25,1,cubic",
    "2M,40ms,fifo-4,1,cubic",
    "10M,40ms,fifo-4,1,cubic",
    "10M,100ms,fifo-4,1,cubic",
    "50M,40ms,fifo-4,1,cubic",
    // Several flows.
    "10M,40ms,fifo-1,2,cubic",
    "10M,40ms,fifo-1,4,cubic",
    "10M,40ms,fifo-1,16,cubic",
    "50M,40ms,fifo-1,4,cubic",
    "50M,40ms,fifo-1,16,cubic",
    "10M,100ms,fifo-4,4,cubic",
    // Active queue management.
    "2M,40ms,codel,1,cubic",
    "10M,40ms,codel,1,cubic",
    "10M,40ms,codel,4,cubic",
    "50M,40ms,codel,1,cubic",
    "2M,40ms,fq-codel,1,cubic",
    "10M,40ms,fq-codel,1,cubic",
    "10M,40ms,fq-codel,4,cubic",
    "50M,40ms,fq-codel,4,cubic",
    "2M,40ms,pie,1,cubic",
    "10M,40ms,pie,1,cubic",
    "10M,40ms,pie,4,cubic",
    "50M,40ms,pie,1,cubic",
    // Reno, BBR and DCTCP.
    "2M,40ms,fifo-1,1,reno",
    "10M,40ms,fifo-1,1,reno",
    "10M,100ms,fifo-1,1,reno",
    "10M,40ms,codel,4,reno",
    "10M,40ms,fifo-1,1,bbr",
    "10M,40ms,fifo-4,1,bbr",
    "50M,40ms,fifo-1,1,bbr",
    "10M,40ms,codel,1,bbr",
    "10M,10ms,marking-1,1,dctcp",
    "10M,40ms,marking-5,4,dctcp",
    "50M,10ms,marking-1,4,dctcp",
    // Marks instead of losses.
    "10M,40ms,codel-ecn,1,cubic",
    "10M,40ms,codel-ecn,4,cubic",
    "10M,40ms,fq-codel-ecn,1,cubic",
    "50M,40ms,fq-codel-ecn,4,cubic",
    "10M,40ms,codel-ecn,4,reno",
    // Random loss.
    "10M,40ms,fifo-1,1,cubic,0.1%",
    "10M,40ms,fifo-1,1,cubic,1%",
    "10M,40ms,fifo-1,1,cubic,3%",
    "10M,40ms,fifo-1,4,cubic,1%",
    "10M,40ms,fifo-1,1,reno,1%",
    "10M,40ms,fifo-1,1,bbr,1%",
    // Short transfers.
    "10M,40ms,fifo-1,1,cubic,0%,10KB",
    "10M,40ms,fifo-1,1,cubic,0%,100KB",
    "10M,40ms,fifo-1,1,cubic,0%,1MB",
    "10M,100ms,fifo-1,1,cubic,0%,1MB",
    "50M,40ms,fifo-1,1,cubic,0%,1MB",
    "10M,40ms,fifo-1,4,cubic,0%,1MB",
    "10M,40ms,fifo-1,1,cubic,1%,100KB",
];

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Queue::Fifo(products) => write!(f, "fifo-{products}"),
            Queue::Codel => f.write_str("codel"),
            Queue::CodelEcn => f.write_str("codel-ecn"),
            Queue::FqCodel => f.write_str("fq-codel"),
            Queue::FqCodelEcn => f.write_str("fq-codel-ecn"),
            Queue::Marking(milliseconds) => write!(f, "marking-{milliseconds}"),
            Queue::Pie => f.write_str("pie"),
        }
    }
}

impl FromStr for Queue {
    type Err = String;

    fn from_str(text: &str) -> Result<Queue, String> {
        match text {
            "codel" => Ok(Queue::Codel),
            "codel-ecn" => Ok(Queue::CodelEcn),
            "fq-codel" => Ok(Queue::FqCodel),
            "fq-codel-ecn" => Ok(Queue::FqCodelEcn),
            "pie" => Ok(Queue::Pie),
            _ => {
                let fifo = text.strip_prefix("fifo-").and_then(|products| products.parse().ok());
                let marking = text.strip_prefix("marking-").and_then(|time| time.parse().ok());
                fifo.map(Queue::Fifo)
                    .or(marking.map(Queue::Marking))
                    .ok_or_else(|| format!("`{text}` is not a queue"))
            }
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { rate, round_trip, queue, flows, control, loss, volume } = self;
        write!(f, "{rate}M,{round_trip}ms,{queue},{flows},{control}")?;
        match volume {
            0 if *loss == 0.0 => Ok(()),
            0 => write!(f, ",{loss}%"),
            _ if volume % 1_000_000 == 0 => write!(f, ",{loss}%,{}MB", volume / 1_000_000),
            _ => write!(f, ",{loss}%,{}KB", volume / 1000),
        }
    }
}

impl FromStr for Cell {
    type Err = String;

    fn from_str(text: &str) -> Result<Cell, String> {
        let mut parts = text.split(',');
        let mut next = |suffix: &str, otherwise: &str| {
            let part = parts.next().unwrap_or(otherwise);
            part.strip_suffix(suffix)
                .map(str::to_owned)
                .ok_or_else(|| format!("`{part}` does not end in `{suffix}`"))
        };
        let number = |text: String| text.parse::<u64>().map_err(|e| format!("`{text}`: {e}"));
        let rate = number(next("M", "")?)?;
        let round_trip = number(next("ms", "")?)?;
        let queue = next("", "")?.parse()?;
        let flows = next("", "")?.parse().map_err(|e| format!("flows: {e}"))?;
        let control = next("", "")?;
        let loss = next("%", "0%")?.parse().map_err(|e| format!("loss: {e}"))?;
        let volume = next("B", "0KB")?;
        let unit = if volume.ends_with('M') { 1_000_000 } else { 1000 };
        let volume = number(volume.trim_end_matches(['K', 'M']).to_owned())? * unit;
        Ok(Cell { rate, round_trip, queue, flows, control, loss, volume })
    }
}

/// The figures of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Payload of all transfers, in Mbit/s; over the whole time, or until the last of them was complete.
    pub(crate) goodput: f64,
    /// When the last of them was complete, in milliseconds; 0 if they have no end.
    pub(crate) completion: f64,
    /// One-way delay of the call, in milliseconds.
    pub(crate) mean: f64,
    /// The same, at the 95th percentile.
    pub p95: f64,
    /// The same, at the 99th percentile.
    pub p99: f64,
    /// Packets of the call lost, in per cent.
    pub(crate) loss: f64,
    /// Jain's index of the transfers' goodputs.
    pub(crate) fairness: f64,
    /// Segments retransmitted, of all transfers.
    pub(crate) retransmitted: u64,
}

impl Measured {
    /// The figures of the call from the delays of the packets that arrived, in milliseconds.
    pub(crate) fn of_call(mut delays: Vec<f64>, sent: usize) -> Measured {
        delays.sort_by(f64::total_cmp);
        let at = |share: f64| match delays.len() {
            0 => f64::NAN,
            count => delays[((count as f64 * share).ceil() as usize).clamp(1, count) - 1],
        };
        Measured {
            mean: delays.iter().sum::<f64>() / delays.len() as f64,
            p95: at(0.95),
            p99: at(0.99),
            loss: 100.0 * (1.0 - delays.len() as f64 / sent as f64),
            ..Measured::default()
        }
    }

    /// The same with the figures of the transfers, from the bytes that each delivered in this time.
    pub(crate) fn with_transfers(self, delivered: &[u64], seconds: f64) -> Measured {
        let sum: f64 = delivered.iter().map(|bytes| *bytes as f64).sum();
        let squares: f64 = delivered.iter().map(|bytes| (*bytes as f64).powi(2)).sum();
        Measured {
            goodput: sum * 8.0 / seconds / 1e6,
            fairness: sum * sum / (squares * delivered.len() as f64),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_written_as_it_is_read() {
        assert!(Cell::all().len() >= 48);
        for (cell, text) in Cell::all().iter().zip(CELLS) {
            assert_eq!(cell.to_string(), *text);
        }
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let call = Measured::of_call((1..=100).map(f64::from).collect(), 200);
        assert_eq!((call.mean, call.p95, call.p99, call.loss), (50.5, 95.0, 99.0, 50.0));
    }

    #[test]
    fn jain_s_index_is_one_over_n_if_one_has_everything() {
        let measured = Measured::default().with_transfers(&[1_000_000, 0, 0, 0], 8.0);
        assert_eq!((measured.goodput, measured.fairness), (1.0, 0.25));
    }
}
