//! The meter: a message that is sent and received, and exact percentiles afterwards.

use trunkline_core::{Bytes, Duration, FlowId, Time};
use trunkline_metrics::summary::Measured;
use trunkline_metrics::{FlowMeta, Meter, Observation, PerMille, PercentileSelector, Recorder};

use crate::Part;

/// A meter of one flow whose messages arrive in the order of sending. Unit: a `Sent` and a `Received`.
pub struct SentAndReceived {
    meter: Meter<'static>,
    channels: u64,
    next: u64,
    now: Time,
}

impl SentAndReceived {
    /// Messages that are on their way at any time.
    const UNDER_WAY: u64 = 100;

    /// A flow of one member with these channels.
    pub fn new(channels: u16) -> SentAndReceived {
        let flow = FlowMeta {
            name: "voice".to_owned(),
            transport: "udp".to_owned(),
            first: FlowId(0),
            members: 1,
            channels,
            measured: Measured::OneWay,
            lasting: trunkline_metrics::Lasting::Run,
            ends: Time::MAX,
            propagation: Vec::new(),
            wander: Duration::ZERO,
            reliable: Vec::new(),
            presence: Vec::new(),
            is_answered: false,
            send_limit: None,
            is_greedy: false,
            playout: None,
            keeps_payload: false,
            sinks: vec!["b".to_owned()],
            voice_path: None,
            listening: None,
            carries_audio: false,
        };
        let mut pair = SentAndReceived {
            meter: Meter::new(&[flow], Box::leak(Box::new(()))),
            channels: u64::from(channels),
            next: 0,
            now: Time::ZERO,
        };
        // As in a long run: windows have grown, and a histogram has taken the place of kept delays.
        for _ in 0..100_000 {
            pair.step();
        }
        pair
    }

    fn of(&self, message: u64) -> (u16, u32) {
        ((message % self.channels) as u16, (message / self.channels) as u32)
    }
}

impl Part for SentAndReceived {
    fn step(&mut self) -> u64 {
        let payload = Bytes(80);
        self.now += Duration::from_nanos(8_000 + self.next.wrapping_mul(7_919) % 4_096);
        let (channel, sequence) = self.of(self.next);
        let sent = Observation::Sent { channel, sequence, due: self.now, payload };
        self.meter.record(self.now, FlowId(0), sent);
        if let Some(earlier) = self.next.checked_sub(SentAndReceived::UNDER_WAY) {
            let (channel, sequence) = self.of(earlier);
            let sent = Time::from_nanos(self.now.as_nanos().saturating_sub(1_000_000));
            let received = Observation::Received { channel, sequence, sent, reflected: Time::ZERO, payload };
            self.meter.record(self.now, FlowId(0), received);
        }
        self.next += 1;
        1
    }
}

/// The percentiles of a summary from a trace of some length. Unit: a value of the trace.
pub struct Percentiles {
    trace: Vec<Duration>,
    ranks: Vec<u64>,
}

impl Percentiles {
    /// Of a trace of this length.
    pub fn new(length: u32) -> Percentiles {
        let delay = |n: u32| Duration::from_nanos(50_000_000 + u64::from(n.wrapping_mul(2_654_435_761) >> 4));
        let ranks = PerMille::SUMMARY.map(|percentile| percentile.rank(u64::from(length)));
        Percentiles { trace: (0..length).map(delay).collect(), ranks: ranks.to_vec() }
    }
}

impl Part for Percentiles {
    fn step(&mut self) -> u64 {
        let mut selector = PercentileSelector::new(self.trace.len() as u64, &self.ranks);
        while selector.wants_pass() {
            for &value in &self.trace {
                selector.push(value);
            }
            selector.end_pass().expect("every pass is the same");
        }
        std::hint::black_box(selector.values());
        self.trace.len() as u64
    }
}
