//! The recorder that measures: joins what was sent with what was received, writes the trace and makes the summary.

mod activity;
mod channels;
mod delivery;
mod flow;
mod listening;
mod member;
mod outstanding;
mod sink;
mod voice;
mod window;

use trunkline_core::{Bytes, Duration, FlowId, Time};

use crate::bundle;
use crate::meter::channels::{Channels, Walk};
use crate::meter::flow::{Channel, ChannelSums, FlowMeter};
use crate::meter::outstanding::{Arrival, Bounds, Entry, Limits, OnArrival, OnSent};
use crate::record::{BundleMeta, DriverOutcome, Fate, FlowMeta, Observation, Record, Recorder, TraceSink};
use crate::summary::{Counts, Measured, RepetitionSummary};

/// Makes one [`Record`] of every message (of several sinks one for each) and, at the end, the summary of all. Of flows
/// without sinks it counts what was sent, and makes no records.
///
/// Contract: make it with the flows of the scenario, let one driver record into it, then call
/// [`finish`](Meter::finish). Times are counted from the start of the measurement. A message's `Received` may be
/// reported before its `Sent`, as long as it is not more than 65,536 messages of its channel ahead; a `Received`
/// further ahead is counted as stray. A message without any `Sent` until the end counts as sent, with its header's time
/// for both due and sent. What belongs to no flow, member or channel of the scenario is ignored, and so is the second
/// `Sent` of a message.
///
/// Records are written when a message is settled: refused at once, received when both reports are there, lost or unfinished
/// when [`finish`](Meter::finish) is called. Every further copy makes a duplicate's record, however late it comes.
///
/// Memory is bounded for runs of any length: less than 1 KiB for a channel in use, and some 50 MB for messages that are
/// neither received nor known to be lost. Of these, the last 262,144 that were overtaken (most of the messages sent
/// after them have arrived) are remembered; an older one is written as lost early. Should it arrive after all, it is
/// counted as what it then is, and a second record is written, which corrects the first; the loss bursts keep it. Each
/// channel remembers its last 256 such messages (6 KiB more, on channels that have them); an arrival of an older one
/// counts as a duplicate.
pub struct Meter<'t> {
    trace: &'t mut (dyn TraceSink + Send),
    flows: Vec<FlowMeter>,
    bundles: Vec<BundleMeta>,
    channels: Channels,
    bounds: Bounds,
    /// How long sinks listen after the measurement; `None` if that is not known.
    drain: Option<Duration>,
}

/// How one flow stands while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowProgress<'m> {
    /// Its name in the file.
    pub flow: &'m str,
    /// Messages so far. `lost` grows at the end only (see [`Meter`]); until then `outstanding` closes the sum.
    pub counts: Counts,
    /// Messages that were sent and are neither received nor lost yet.
    pub outstanding: u64,
    /// Payload received so far, each message once.
    pub received: Bytes,
}

/// How much a [`Meter`] remembers of messages that are not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Messages on their way, with those settled between them.
    pub windows: usize,
    /// Messages that were overtaken and are probably lost.
    pub overtaken: usize,
}

impl<'t> Meter<'t> {
    /// A recorder for these flows (the scenario's, in the file's order) that writes their records to `trace`.
    pub fn new(flows: &[FlowMeta], trace: &'t mut (dyn TraceSink + Send)) -> Meter<'t> {
        Meter::with_limits(flows, trace, Limits::DEFAULT)
    }

    fn with_limits(flows: &[FlowMeta], trace: &'t mut (dyn TraceSink + Send), limits: Limits) -> Meter<'t> {
        Meter {
            trace,
            flows: flows.iter().map(FlowMeter::new).collect(),
            bundles: Vec::new(),
            channels: Channels::new(flows),
            bounds: Bounds::new(limits),
            drain: None,
        }
    }

    /// Sinks listen for so long after the measurement, unless the run is stopped before. With this, what may still be under
    /// way when they stop is told from what is lost.
    pub fn with_drain(mut self, drain: Duration) -> Meter<'t> {
        self.drain = Some(drain);
        self.flows.iter_mut().for_each(|flow| flow.listen(drain));
        self
    }

    /// Makes summaries of these bundles too, for which each member of their flows is measured by itself: some 16 KiB
    /// more for each member.
    pub fn with_bundles(mut self, bundles: &[BundleMeta]) -> Meter<'t> {
        for &flow in bundles.iter().flat_map(|bundle| &bundle.flows) {
            if let Some(flow) = self.flows.get_mut(flow) {
                flow.measure_members();
            }
        }
        self.bundles = bundles.to_vec();
        self
    }

    /// How every flow stands, in the file's order. Cheap enough for a line of progress many times a second.
    pub fn progress(&self) -> impl ExactSizeIterator<Item = FlowProgress<'_>> {
        self.flows.iter().map(|flow| {
            let counts = flow.summary.counts;
            let settled = counts.received + counts.late + counts.lost + counts.unfinished;
            FlowProgress {
                flow: &flow.meta.name,
                counts,
                outstanding: counts.sent.saturating_sub(settled),
                received: flow.received(),
            }
        })
    }

    /// How much is remembered now.
    pub fn remembered(&self) -> Remembered {
        let (windows, overtaken) = self.bounds.remembered();
        Remembered { windows, overtaken }
    }

    /// Settles what is left (what was sent and not received is lost; or unfinished, over a reliable transport or if it may
    /// still be under way) and makes the summary. Call it after the drain time.
    pub fn finish(self, outcome: DriverOutcome) -> RepetitionSummary {
        let Meter { trace, mut flows, bundles, channels, drain, .. } = self;
        let listens = drain.map(|drain| if outcome.partial { Duration::ZERO } else { drain });
        let listened = listens.map(|listens| Time::ZERO + outcome.duration + listens);
        for (flow, outcome) in flows.iter_mut().zip(&outcome.flows) {
            flow.knows_drops = outcome.knows_drops;
            listens.into_iter().for_each(|listens| flow.listen(listens));
        }
        let mut sums: Vec<ChannelSums> = flows.iter().map(ChannelSums::new).collect();
        for mut channel in channels.into_used() {
            let index = channel.flow as usize;
            for (number, entry) in std::mem::take(&mut channel.outstanding).into_unsettled() {
                settle(&mut channel, number, entry, &mut flows[index], trace, listened);
            }
            channel.losses.end(&mut flows[index].summary.loss_bursts);
            sums[index].add(&channel);
        }
        for (index, flow) in flows.iter_mut().enumerate() {
            if let Some(voice) = flow.voice.take() {
                let end = |id| flow.meta.end_of_id(id, Time::ZERO + outcome.duration);
                flow.summary.voice_path = Some(voice.finish(end, |event| trace.event(index, event)));
            }
            flow.summary.quality = flow.listening.take().and_then(|listening| listening.finish());
        }
        let summaries = bundles.iter().map(|meta| {
            let part = |&index: &usize| {
                let network = outcome.flows.get(index).and_then(|flow| flow.network);
                Some(flows.get_mut(index)?.part(outcome.duration, network, sums.get(index)?))
            };
            bundle::summary(meta, &meta.flows.iter().filter_map(part).collect::<Vec<_>>())
        });
        let bundles = summaries.collect();
        let mut outcomes = outcome.flows.into_iter();
        RepetitionSummary {
            flows: flows
                .into_iter()
                .zip(sums)
                .map(|(flow, sums)| flow.finish(outcome.duration, outcomes.next().unwrap_or_default(), sums))
                .collect(),
            bundles,
            links: outcome.links,
            media: outcome.media,
            stalls: outcome.stalls,
            duration: outcome.duration,
            cpu: outcome.cpu,
            partial: outcome.partial,
        }
    }

    #[inline]
    fn sent(&mut self, at: Time, place: u32, sequence: u32, due: Time, payload: u32) {
        let channel = &mut self.channels[place];
        let flow = &mut self.flows[channel.flow as usize];
        if let Some(voice) = &mut flow.voice {
            voice.due(channel.member, channel.channel, due);
        }
        if let Some(listening) = &mut flow.listening {
            listening.due(channel.member, channel.channel, sequence);
        }
        if flow.meta.measured == Measured::Nothing {
            flow.count(channel.member, |counts| counts.sent += 1);
            return flow.offered(channel, due, payload);
        }
        let entry = Entry::Sent { due, sent: at, payload };
        match channel.outstanding.sent(sequence, entry, place, &mut self.bounds) {
            OnSent::New => {
                flow.count(channel.member, |counts| counts.sent += 1);
                flow.offered(channel, due, payload);
                self.give_up_excess();
            }
            OnSent::Arrived(arrival) => {
                self.join_early(place, (sequence, due, payload), arrival.of_message_sent(at));
            }
            OnSent::Ignored => {}
        }
    }

    fn refused(&mut self, place: u32, sequence: u32, due: Time, payload: u32) {
        let channel = &mut self.channels[place];
        match channel.outstanding.sent(sequence, Entry::Refused, place, &mut self.bounds) {
            OnSent::New => {
                let flow = &mut self.flows[channel.flow as usize];
                flow.count(channel.member, |counts| counts.refused += 1);
                flow.offered(channel, due, payload);
                if let Some(voice) = &mut flow.voice {
                    voice.due(channel.member, channel.channel, due);
                }
                if let Some(listening) = &mut flow.listening {
                    listening.due(channel.member, channel.channel, sequence);
                }
                let record = Record {
                    member: channel.member,
                    channel: channel.channel,
                    sequence,
                    due,
                    sent: None,
                    received: None,
                    reflected: None,
                    payload,
                    fate: Fate::Refused,
                };
                self.trace.write(channel.flow as usize, &record);
                self.give_up_excess();
            }
            // What has arrived was sent, whatever the sender made of it.
            OnSent::Arrived(arrival) => self.join_early(place, (sequence, due, payload), arrival),
            OnSent::Ignored => {}
        }
    }

    #[inline]
    fn received(&mut self, place: u32, sequence: u32, mut arrival: Arrival) {
        let channel = &mut self.channels[place];
        let flow = &mut self.flows[channel.flow as usize];
        let fate_and_due = match channel.outstanding.arrived(sequence, arrival, place, &mut self.bounds) {
            OnArrival::First { due, sent, payload } => {
                arrival = arrival.of_message_sent(sent);
                flow.arrived(channel, sequence, &arrival, Some(payload));
                (flow.joined(channel, due, arrival.received), due)
            }
            OnArrival::Early => {
                flow.arrived(channel, sequence, &arrival, None);
                self.give_up_excess();
                return;
            }
            OnArrival::GivenUp { due, sent, payload } => {
                arrival = arrival.of_message_sent(sent);
                // It was given up long before the end.
                let fate = flow.fate_of_missing(channel, sent, None);
                flow.count_missing(channel.member, fate, -1);
                flow.arrived(channel, sequence, &arrival, Some(payload));
                (flow.joined(channel, due, arrival.received), due)
            }
            OnArrival::Duplicate => {
                flow.count(channel.member, |counts| counts.duplicate += 1);
                (Fate::Duplicate, arrival.sent)
            }
            OnArrival::Stranger => {
                flow.summary.stray += Bytes(u64::from(arrival.payload));
                return;
            }
        };
        let (fate, due) = fate_and_due;
        if fate != Fate::Duplicate {
            flow.play(channel, sequence, due, &arrival, fate, self.trace);
        }
        self.trace.write(channel.flow as usize, &record_of(channel, sequence, due, arrival, fate));
    }

    /// Settles a message that arrived before it was reported as sent.
    fn join_early(&mut self, place: u32, (sequence, due, payload): (u32, Time, u32), arrival: Arrival) {
        let channel = &mut self.channels[place];
        let flow = &mut self.flows[channel.flow as usize];
        flow.count(channel.member, |counts| counts.sent += 1);
        flow.offered(channel, due, payload);
        flow.asked(channel, &arrival, payload);
        let fate = flow.joined(channel, due, arrival.received);
        flow.play(channel, sequence, due, &arrival, fate, self.trace);
        self.trace.write(channel.flow as usize, &record_of(channel, sequence, due, arrival, fate));
    }

    #[inline]
    fn give_up_excess(&mut self) {
        while let Some((place, number)) = self.bounds.excess() {
            let channel = &mut self.channels[place];
            if let Some(entry) = channel.outstanding.give_up(number) {
                let flow = &mut self.flows[channel.flow as usize];
                settle(channel, number, entry, flow, self.trace, None);
            }
        }
    }
}

impl Recorder for Meter<'_> {
    fn dropped(&mut self, flow: FlowId, channel: u16, sequence: u32) {
        if let Some(place) = self.channels.place(Walk::Sending, flow, channel) {
            self.channels[place].outstanding.dropped(sequence);
        }
    }

    fn end_measurement(&mut self, at: Time) {
        self.flows.iter_mut().for_each(|flow| flow.end_measurement(at));
    }

    fn record(&mut self, at: Time, flow: FlowId, what: Observation) {
        match what {
            Observation::Sent { channel, sequence, due, payload } => {
                if let Some(place) = self.channels.place(Walk::Sending, flow, channel) {
                    self.sent(at, place, sequence, due, length(payload));
                }
            }
            Observation::Received { channel, sequence, sent, reflected, payload } => {
                if let Some(place) = self.channels.place(Walk::Arriving, flow, channel) {
                    let payload = length(payload);
                    self.received(place, sequence, Arrival { received: at, sent, reflected, payload });
                }
            }
            Observation::Refused { channel, sequence, due, payload } => {
                if let Some(place) = self.channels.place(Walk::Sending, flow, channel) {
                    self.refused(place, sequence, due, length(payload));
                }
            }
            Observation::Transferred { channel, began, bytes } => {
                if let Some(index) = self.channels.flow(flow) {
                    self.flows[index].transferred(flow, channel, at.since(began), bytes);
                }
            }
            Observation::Overflowed { channel, samples } => {
                if let Some(index) = self.channels.flow(flow)
                    && let Some(voice) = &mut self.flows[index].voice
                {
                    let event = voice.overflowed(flow, channel, at, samples);
                    self.trace.event(index, &event);
                    self.flows[index].overflowed(samples);
                    if let Some(listening) = &mut self.flows[index].listening {
                        listening.overflowed(event.length);
                    }
                }
            }
            Observation::Stray { bytes } => {
                if let Some(flow) = self.channels.flow(flow) {
                    self.flows[flow].summary.stray += bytes;
                }
            }
            Observation::SendCall { error_nanos, took_nanos } => {
                if let Some(flow) = self.channels.flow(flow) {
                    let flow = &mut self.flows[flow];
                    flow.schedule_error.record(Duration::from_nanos(error_nanos));
                    flow.send_call.record(Duration::from_nanos(took_nanos));
                }
            }
        }
    }
}

/// Settles a message of which no more is expected, since the sink has stopped to listen or there are too many behind it.
fn settle(
    channel: &mut Channel,
    number: u64,
    entry: Entry,
    flow: &mut FlowMeter,
    trace: &mut dyn TraceSink,
    listened: Option<Time>,
) {
    let index = channel.flow as usize;
    let sequence = number as u32; // The wire's 32 bits of it.
    match entry {
        Entry::Sent { due, sent, payload } | Entry::Dropped { due, sent, payload } => {
            let is_dropped = matches!(entry, Entry::Dropped { .. });
            let fate = flow.fate_of_missing(channel, sent, listened.filter(|_| !is_dropped));
            flow.count_missing(channel.member, fate, 1);
            if fate == Fate::Lost {
                channel.losses.lost(number, &mut flow.summary.loss_bursts);
            }
            let record = Record {
                member: channel.member,
                channel: channel.channel,
                sequence,
                due,
                sent: Some(sent),
                received: None,
                reflected: None,
                payload,
                fate,
            };
            trace.write(index, &record);
        }
        Entry::Early { received, sent, reflected, payload } => {
            flow.count(channel.member, |counts| counts.sent += 1);
            flow.offered(channel, sent, payload);
            let fate = flow.joined(channel, sent, received);
            let arrival = Arrival { received, sent, reflected, payload };
            flow.play(channel, sequence, sent, &arrival, fate, trace);
            trace.write(index, &record_of(channel, sequence, sent, arrival, fate));
        }
        Entry::Unknown | Entry::Refused | Entry::Settled => {}
    }
}

fn length(payload: Bytes) -> u32 {
    u32::try_from(payload.count()).unwrap_or(u32::MAX)
}

fn record_of(channel: &Channel, sequence: u32, due: Time, arrival: Arrival, fate: Fate) -> Record {
    Record {
        member: channel.member,
        channel: channel.channel,
        sequence,
        due,
        sent: Some(arrival.sent),
        received: Some(arrival.received),
        reflected: (arrival.reflected != Time::ZERO).then_some(arrival.reflected),
        payload: arrival.payload,
        fate,
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
pub(crate) mod tests;
