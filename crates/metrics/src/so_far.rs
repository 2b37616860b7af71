//! Figures of a flow while it runs, from its records so far.

use crate::delays::Delays;
use crate::moments::Moments;
use crate::playout::Playout;
use crate::quality::{Losses, Unheard};
use crate::record::{Fate, FlowMeta, Record};
use crate::summary::{Counts, FlowSummary, Measured};

/// Takes the records of a flow in the order in which a [`Meter`](crate::Meter) writes them. A message counts as lost once messages
/// that were sent after it have arrived, and as received again if it arrives after all.
#[derive(Clone, Debug)]
pub struct SoFar {
    meta: FlowMeta,
    latency: Delays,
    counts: Counts,
    /// The channels of the first member, then those of the next.
    channels: Vec<Channel>,
    arrived: Losses,
    heard: Losses,
    from_due: Moments,
}

#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    playout: Playout,
    arrived: Unheard,
    heard: Unheard,
}

impl SoFar {
    /// The figures that its summaries have. All others are known at the end of the repetition.
    pub const FIGURES: &[&str] = &[
        "latency_mean",
        "latency_p50",
        "latency_p90",
        "latency_p99",
        "latency_p999",
        "latency_max",
        "loss",
        "late",
        "loss_and_late",
        "undelivered",
        "not_in_time",
        "affected",
        "mos",
        "r",
        "ppl",
    ];

    /// Makes the figures of a flow without any record yet.
    pub fn new(meta: &FlowMeta) -> SoFar {
        SoFar {
            meta: meta.clone(),
            latency: Delays::without_deviation(),
            counts: Counts::default(),
            channels: Vec::new(),
            arrived: Losses::default(),
            heard: Losses::default(),
            from_due: Moments::default(),
        }
    }

    /// Takes a record.
    pub fn record(&mut self, record: &Record) {
        let place = record.member as usize * usize::from(self.meta.channels) + usize::from(record.channel);
        if record.fate == Fate::Duplicate {
            return;
        }
        if self.channels.len() <= place {
            self.channels.resize(place + 1, Channel::default());
        }
        let channel = &mut self.channels[place];
        channel.arrived.due(record.sequence);
        channel.heard.due(record.sequence);
        match record.fate {
            Fate::Refused => self.counts.refused += 1,
            Fate::Unfinished => self.counts.unfinished += 1,
            Fate::Received => self.counts.received += 1,
            Fate::Late => self.counts.late += 1,
            Fate::Lost | Fate::Duplicate => {}
        }
        let (Some(received), Fate::Received | Fate::Late) = (record.received, record.fate) else { return };
        self.latency.record(received.since(record.sent.unwrap_or(record.due)));
        channel.arrived.heard(record.sequence, &mut self.arrived);
        if let Some(delay) = self.meta.playout {
            channel.playout.is_late(delay, record.due, received);
        }
        if record.fate == Fate::Received {
            channel.heard.heard(record.sequence, &mut self.heard);
            let from_due = self.meta.playout.and_then(|delay| channel.playout.from_due(delay));
            from_due.into_iter().for_each(|from_due| self.from_due.add(from_due));
        }
    }

    /// The figures so far: those of [`FIGURES`](SoFar::FIGURES), and no others.
    pub fn summary(&mut self) -> FlowSummary {
        let (mut arrived, mut heard) = (self.arrived, self.heard);
        for channel in &self.channels {
            let mut channel = *channel;
            channel.arrived.finish(&mut arrived);
            channel.heard.finish(&mut heard);
        }
        let Counts { refused, unfinished, .. } = self.counts;
        let counts = Counts {
            sent: arrived.messages.saturating_sub(refused),
            lost: arrived.unheard.saturating_sub(refused + unfinished),
            ..self.counts
        };
        // FIFOs play what only a meter follows.
        let is_followed = self.meta.voice_path.is_none();
        let is_audio = is_followed && self.meta.carries_audio && self.meta.measured != Measured::Nothing;
        let from_due = (self.from_due.count() > 0).then(|| self.from_due.mean());
        let listening = self.meta.listening.filter(|_| is_followed);
        FlowSummary {
            flow: self.meta.name.clone(),
            transport: self.meta.transport.clone(),
            members: self.meta.members,
            channels: u32::from(self.meta.channels),
            measured: self.meta.measured,
            counts,
            loss: counts.share(counts.lost),
            unfinished: counts.share(unfinished),
            refused: counts.share(refused),
            late: counts.share(counts.late),
            affected: (is_audio && heard.messages > 0).then(|| heard.ppl()),
            latency: self.latency.summary(),
            quality: listening.and_then(|listening| listening.judge(from_due, &heard)),
            ..FlowSummary::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use trunkline_core::{Bytes, Duration, FlowId, Time};

    use super::*;
    use crate::Meter;
    use crate::figures;
    use crate::quality::{CODECS, Listening};
    use crate::record::{DriverOutcome, Observation, Recorder as _, TraceSink};

    #[derive(Default)]
    struct Kept(Vec<Record>);

    impl TraceSink for Kept {
        fn write(&mut self, _: usize, record: &Record) {
            self.0.push(*record);
        }
    }

    fn call() -> FlowMeta {
        FlowMeta {
            measured: Measured::RoundTrip,
            ends: Time::from_nanos(10_000_000_000),
            playout: Some(Duration::from_millis(40)),
            carries_audio: true,
            listening: Some(Listening { codec: CODECS[0], packet: Duration::from_millis(10) }),
            ..crate::meter::tests::meta(0, 2, 1)
        }
    }

    #[test]
    fn after_the_last_record_the_figures_are_those_of_the_meter() {
        let (meta, mut kept) = (call(), Kept::default());
        let mut meter = Meter::new(std::slice::from_ref(&meta), &mut kept);
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        for sequence in 0..500_u32 {
            for member in 0..2_u32 {
                let (due, flow) = (ms(10 * u64::from(sequence)), FlowId(member));
                if sequence % 97 == 5 {
                    let what = Observation::Refused { channel: 0, sequence, due, payload: Bytes(80) };
                    meter.record(due, flow, what);
                    continue;
                }
                meter.record(due, flow, Observation::Sent { channel: 0, sequence, due, payload: Bytes(80) });
                if sequence % 50 == 7 + member {
                    continue; // lost
                }
                let takes = if sequence % 20 == 3 { 90 } else { 20 + u64::from(sequence % 5) };
                let (sent, reflected) = (due, Time::ZERO);
                let what =
                    Observation::Received { channel: 0, sequence, sent, reflected, payload: Bytes(80) };
                meter.record(due + Duration::from_millis(takes), flow, what);
            }
        }
        let outcome = DriverOutcome { duration: Duration::from_secs(5), ..DriverOutcome::default() };
        let summary = meter.finish(outcome).flows.remove(0);
        let mut so_far = SoFar::new(&meta);
        kept.0.iter().for_each(|record| so_far.record(record));
        let end = so_far.summary();
        assert_eq!((end.counts.sent, end.counts.lost), (summary.counts.sent, summary.counts.lost));
        for id in SoFar::FIGURES {
            let figure = figures::flow(id);
            let (here, there) = (figure.value(&end), figure.value(&summary));
            assert!(here.is_some() && here == there, "{id}: {here:?} and {there:?}");
        }
    }

    #[test]
    fn messages_under_way_are_not_lost_but_those_that_were_overtaken_are() {
        let mut so_far = SoFar::new(&call());
        let record = |sequence: u32| {
            let due = Time::from_nanos(u64::from(sequence) * 10_000_000);
            let received = Some(due + Duration::from_millis(20));
            let (sent, reflected, fate) = (Some(due), None, Fate::Received);
            Record { member: 0, channel: 0, sequence, due, sent, received, reflected, payload: 80, fate }
        };
        let mut lost = |sequence| {
            so_far.record(&record(sequence));
            so_far.summary().counts.lost
        };
        assert_eq!([0, 1, 3, 4, 2].map(&mut lost), [0, 0, 1, 1, 0]);
    }
}
