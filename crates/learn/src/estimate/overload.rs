//! The response of a path to an overload: the queue over time, the first loss, and the fate of a second flow.

use crate::estimate::statistics::{quantile, sorted};
use crate::observations::{ObservedFlow, Packet};

/// The response to one pulse. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    /// When it began, and its length.
    pub(crate) begins: f64,
    pub(crate) lasts: f64,
    /// The pulse's rate at the network layer in bits per second.
    pub(crate) sent: f64,
    /// Rate at which all of our packets arrived in the second half of the pulse.
    pub(crate) arrived: f64,
    /// Largest queueing delay of its packets.
    pub(crate) largest: f64,
    /// Queueing delay of its packets in its last third: quartiles.
    pub(crate) late: [f64; 3],
    /// From the begin to the departure of the first packet that was lost.
    pub(crate) first_loss: Option<f64>,
    /// From the begin to the first packet that waited: longer than the transmission of two packets.
    pub(crate) onset: Option<f64>,
    /// Share and number of its packets that were lost.
    pub(crate) loss: f64,
    pub(crate) lost: usize,
    /// Median queueing delay and loss of the thin flow in that time.
    pub(crate) beside: Option<(f64, f64)>,
}

impl Response {
    /// Returns true if more than this share of its packets was lost, and not just a few.
    pub(crate) fn is_lossy(&self, share: f64) -> bool {
        self.loss > share && self.lost >= 8
    }
}

/// The response to a pulse, beside which the packets of `thin` were sent. `base` is the delay of an empty path for a size.
pub(crate) fn response(pulse: &ObservedFlow, thin: &[Packet], base: impl Fn(u32) -> f64) -> Option<Response> {
    let (first, last) = (pulse.packets.first()?, pulse.packets.last()?);
    let (begins, ends) = (first.sent.as_secs_f64(), last.sent.as_secs_f64());
    let lasts = (ends - begins).max(1e-6);
    let queued = |packet: &Packet| packet.delay.map(|delay| delay as f64 / 1e9 - base(packet.bytes));
    let bits: f64 = pulse.packets.iter().map(|packet| f64::from(packet.bytes) * 8.0).sum();
    let delays: Vec<f64> = pulse.packets.iter().filter_map(queued).collect();
    let from = begins + 0.67 * lasts;
    let late = pulse.packets.iter().filter(|packet| packet.sent.as_secs_f64() >= from).filter_map(queued);
    let late = sorted(&late.collect::<Vec<_>>());
    let since = |packet: &Packet| packet.sent.as_secs_f64() - begins;
    let lost = pulse.packets.iter().filter(|packet| packet.delay.is_none());
    let interval = lasts / pulse.packets.len() as f64;
    let onset =
        pulse.packets.iter().find(|packet| queued(packet).is_some_and(|q| q > 2e-3f64.max(4.0 * interval)));
    let inside = thin.iter().filter(|packet| {
        let at = packet.sent.as_secs_f64();
        at >= from && at <= ends
    });
    let inside: Vec<&Packet> = inside.collect();
    let beside = (inside.len() >= 4).then(|| {
        let delays: Vec<f64> = inside.iter().filter_map(|packet| queued(packet)).collect();
        (quantile(&sorted(&delays), 0.5), 1.0 - delays.len() as f64 / inside.len() as f64)
    });
    // What arrives while the second half of the pulse is sent: behind a full queue, the rate of the bottleneck.
    let middle = (begins + 0.5 * lasts, ends);
    let arrived = pulse.packets.iter().chain(thin).filter_map(|packet| {
        let at = packet.received()? as f64 / 1e9 - base(packet.bytes);
        (at >= middle.0 && at < middle.1).then(|| f64::from(packet.bytes) * 8.0)
    });
    Some(Response {
        begins,
        lasts,
        sent: bits / (lasts + interval),
        arrived: arrived.sum::<f64>() / (middle.1 - middle.0).max(1e-6),
        largest: delays.iter().copied().fold(0.0, f64::max),
        late: [0.25, 0.5, 0.75].map(|share| quantile(&late, share)),
        first_loss: lost.map(since).next(),
        onset: onset.map(since),
        loss: 1.0 - delays.len() as f64 / pulse.packets.len() as f64,
        lost: pulse.packets.len() - delays.len(),
        beside,
    })
}
