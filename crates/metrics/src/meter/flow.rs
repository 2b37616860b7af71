//! Statistics of one flow while it runs, and of one of its channels.

use trunkline_core::{Bytes, Duration, FlowId, Rate, Ratio, Time};

use crate::bundle::{Member, MemberDelay, Part};
use crate::bursts::LossRun;
use crate::delays::Delays;
use crate::jitter::{InterarrivalJitter, IpdvPairs};
use crate::limited::{LimitedBy, Reached};
use crate::meter::activity::{Activity, within};
use crate::meter::delivery::{Delivery, Window};
use crate::meter::listening::ListeningMeter;
use crate::meter::member::MemberMeter;
use crate::meter::outstanding::{Arrival, Outstanding};
use crate::meter::sink::SinkMeter;
use crate::meter::voice::{Packet, Played, VoiceMeter};
use crate::moments::Moments;
use crate::over_time::LatencyOverTime;
use crate::percentile::PerMille;
use crate::playout::Playout;
use crate::record::{Fate, FlowMeta, FlowOutcome, Lasting, OnNetwork, TraceSink};
use crate::reordering::NextExpected;
use crate::robust::robust_delay;
use crate::summary::{
    Counts, FlowSummary, JitterSummary, Measured, RobustDelay, SinkSummary, ThroughputSummary, share,
};
use crate::throughput::jain_fairness;
use crate::transfers::Transfers;

/// Most points of a latency distribution in a summary.
const CURVE_POINTS: usize = 512;

/// A flow that delivers less than this of its offered load in time is behind: the rest waited at its sender.
const DELIVERED: f64 = 0.99;

/// What is kept of one channel of one member: one block, in which what every message needs stands first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Channel {
    pub(super) outstanding: Outstanding,
    pub(super) flow: u32,
    pub(super) member: u32,
    pub(super) channel: u16,
    next_expected: NextExpected,
    /// [`Time::MAX`] before the first message was due.
    first_due: Time,
    /// [`Time::MAX`] before the first.
    last_arrival: Time,
    /// The latest send time of what has arrived.
    newest: Time,
    delivered: Bytes,
    jitter: InterarrivalJitter,
    pub(super) losses: LossRun,
    ipdv: IpdvPairs,
    playout: Playout,
}

/// What is kept of a flow.
#[derive(Debug)]
pub(super) struct FlowMeter {
    pub(super) meta: FlowMeta,
    pub(super) summary: FlowSummary,
    pub(super) schedule_error: Delays,
    pub(super) send_call: Delays,
    latency: Delays,
    latency_from_due: Delays,
    /// The longest time by which a message was sent before one of its channel that arrived earlier.
    displaced: Duration,
    /// The messages of all dropped packets were reported.
    pub(super) knows_drops: bool,
    ipdv: Delays,
    interarrival: Moments,
    over_time: LatencyOverTime,
    /// The first latencies in the order of arrival, for the robust estimates.
    first: Vec<Duration>,
    transfers: Transfers,
    offered: Bytes,
    window: Window,
    delivery: Delivery,
    /// Payload of answers within the window.
    answers: Bytes,
    /// Audio that was heard in time, and that which found no room before it got into a message.
    heard: Bytes,
    overflowed: Bytes,
    activity: Activity,
    /// Each by itself, if there are several.
    sinks: Vec<SinkMeter>,
    /// Each by itself, if there are several and a bundle wants to know.
    members: Vec<MemberMeter>,
    pub(super) voice: Option<Box<VoiceMeter>>,
    pub(super) listening: Option<Box<ListeningMeter>>,
}

impl Channel {
    pub(super) fn new(flow: u32, member: u32, channel: u16) -> Channel {
        Channel {
            outstanding: Outstanding::default(),
            flow,
            member,
            channel,
            next_expected: NextExpected::default(),
            first_due: Time::MAX,
            last_arrival: Time::MAX,
            newest: Time::ZERO,
            delivered: Bytes::ZERO,
            jitter: InterarrivalJitter::default(),
            losses: LossRun::default(),
            ipdv: IpdvPairs::default(),
            playout: Playout::default(),
        }
    }
}

impl FlowMeter {
    pub(super) fn new(meta: &FlowMeta) -> FlowMeter {
        let summary = FlowSummary {
            flow: meta.name.clone(),
            transport: meta.transport.clone(),
            members: meta.members,
            channels: u32::from(meta.channels),
            measured: meta.measured,
            ..FlowSummary::default()
        };
        FlowMeter {
            meta: meta.clone(),
            summary,
            schedule_error: Delays::without_deviation(),
            send_call: Delays::without_deviation(),
            latency: Delays::default(),
            latency_from_due: Delays::without_deviation(),
            displaced: Duration::ZERO,
            knows_drops: false,
            ipdv: Delays::without_deviation(),
            interarrival: Moments::default(),
            over_time: LatencyOverTime::default(),
            first: Vec::new(),
            transfers: Transfers::default(),
            offered: Bytes::ZERO,
            window: Window::new(meta),
            delivery: Delivery::default(),
            answers: Bytes::ZERO,
            heard: Bytes::ZERO,
            overflowed: Bytes::ZERO,
            activity: Activity::default(),
            voice: VoiceMeter::new(meta),
            listening: ListeningMeter::new(meta),
            sinks: match meta.sinks.as_slice() {
                [] | [_] => Vec::new(),
                several => {
                    let presence = |sink: usize| meta.presence.get(sink).cloned();
                    several
                        .iter()
                        .enumerate()
                        .map(|(sink, name)| SinkMeter::new(name, presence(sink)))
                        .collect()
                }
            },
            members: Vec::new(),
        }
    }

    /// From now on measures each member by itself. Of a single one the flow's figures are the member's.
    pub(super) fn measure_members(&mut self) {
        if self.members.is_empty() && self.meta.ids() > 1 {
            self.members.resize_with(self.meta.ids() as usize, MemberMeter::new);
        }
    }

    /// Counts what became of a message on its way to one sink.
    #[inline]
    pub(super) fn count(&mut self, member: u32, change: impl Fn(&mut Counts)) {
        change(&mut self.summary.counts);
        if let Some(sink) = self.sink(member) {
            change(&mut sink.counts);
        }
        if let Some(member) = self.members.get_mut(member as usize) {
            change(&mut member.counts);
        }
    }

    /// Counts a message more, or less, that was sent and did not arrive.
    pub(super) fn count_missing(&mut self, member: u32, fate: Fate, change: i64) {
        self.count(member, |counts| {
            let count = if fate == Fate::Lost { &mut counts.lost } else { &mut counts.unfinished };
            *count = count.saturating_add_signed(change);
        });
    }

    /// The fate of a message that was sent and had not arrived when the sink stopped to listen, if it has. It may still have
    /// been under way if others took longer than it had time to, or if all drops were reported, and if none arrived that was
    /// sent later by more than messages of the flow overtake each other.
    pub(super) fn fate_of_missing(&self, channel: &Channel, sent: Time, listened: Option<Time>) -> Fate {
        let sink = (channel.member / self.meta.members.max(1)) as usize;
        let reliable = self.meta.reliable.get(sink).is_some_and(|reliable| *reliable);
        let listened = listened.map(|listened| self.meta.end_of_id(channel.member as usize, listened));
        let least = self.meta.propagation.get(sink).copied().unwrap_or_default();
        let takes = self.latency.longest().max(least);
        let is_overtaken = channel.newest > sent + self.displaced;
        let is_under_way =
            !is_overtaken && listened.is_some_and(|listened| self.knows_drops || sent + takes > listened);
        if reliable || is_under_way { Fate::Unfinished } else { Fate::Lost }
    }

    /// The sink that has messages under this number of a member, if there are several.
    #[inline]
    fn sink(&mut self, member: u32) -> Option<&mut SinkMeter> {
        if self.sinks.is_empty() {
            return None;
        }
        self.sinks.get_mut((member / self.meta.members) as usize)
    }

    pub(super) fn received(&self) -> Bytes {
        self.delivery.all()
    }

    /// Sinks listen for so long after the measurement.
    pub(super) fn listen(&mut self, drain: Duration) {
        self.window.listen(drain);
    }

    /// The measurement ends before it was planned to.
    pub(super) fn end_measurement(&mut self, at: Time) {
        self.window.end(at);
    }

    /// Takes a message that the source handed over, whether the transport took it or not.
    #[inline]
    pub(super) fn offered(&mut self, channel: &mut Channel, due: Time, payload: u32) {
        self.activity.due(due);
        channel.first_due = channel.first_due.min(due);
        if let Some(member) = self.members.get_mut(channel.member as usize) {
            member.activity.due(due);
        }
        self.offered += Bytes(u64::from(payload));
    }

    /// Takes the first arrival of a message: all that does not need its due time. An answer has another payload than the
    /// message `asked`, which is not known if the sending has not been reported yet.
    #[inline]
    pub(super) fn arrived(
        &mut self,
        channel: &mut Channel,
        sequence: u32,
        arrival: &Arrival,
        asked: Option<u32>,
    ) {
        let Arrival { received, sent, .. } = *arrival;
        let payload = if self.meta.is_answered { asked.unwrap_or(0) } else { arrival.payload };
        let latency = received.since(sent);
        self.latency.record(latency);
        self.over_time.record(sent, latency);
        if self.first.len() < RobustDelay::CAPACITY {
            self.first.push(latency);
        }

        let reordered = u64::from(channel.next_expected.is_reordered(sequence));
        self.summary.counts.reordered += reordered;
        let payload = Bytes(u64::from(payload));
        let place = (channel.member / self.meta.members.max(1)) as usize;
        let in_window = self.delivery.arrived(&self.window, place, received, latency, payload);
        if let Some(sink) = self.sinks.get_mut(place) {
            sink.delivery.arrived(&self.window, place, received, latency, payload);
            sink.arrived(latency, reordered);
        }
        if let Some(member) = self.members.get_mut(channel.member as usize) {
            member.arrived(received, latency);
        }
        channel.jitter.arrival(sent, received);
        for variation in channel.ipdv.arrival(sequence, sent, received).into_iter().flatten() {
            self.ipdv.record(variation);
        }
        if channel.last_arrival < Time::MAX {
            self.interarrival.add(received.since(channel.last_arrival));
        }
        channel.last_arrival = received;
        if sent < channel.newest {
            self.displaced = self.displaced.max(channel.newest.since(sent));
        } else {
            channel.newest = sent;
        }

        if in_window {
            channel.delivered += payload;
            if self.meta.is_answered {
                self.answers += Bytes(u64::from(arrival.payload));
            }
        }
        self.activity.arrived(received);
    }

    /// Takes the payload of a message whose answer had arrived before its sending was reported.
    pub(super) fn asked(&mut self, channel: &mut Channel, arrival: &Arrival, payload: u32) {
        if !self.meta.is_answered {
            return;
        }
        let (received, latency) = (arrival.received, arrival.received.since(arrival.sent));
        let (place, payload) = (channel.member / self.meta.members.max(1), Bytes(u64::from(payload)));
        if self.delivery.arrived(&self.window, place as usize, received, latency, payload) {
            channel.delivered += payload;
        }
        if let Some(sink) = self.sinks.get_mut(place as usize) {
            sink.delivery.arrived(&self.window, place as usize, received, latency, payload);
        }
    }

    /// Takes a message that has arrived and whose due time is known, and says whether it was in time.
    #[inline]
    pub(super) fn joined(&mut self, channel: &mut Channel, due: Time, received: Time) -> Fate {
        self.latency_from_due.record(received.since(due));
        if let Some(sink) = self.sink(channel.member) {
            sink.latency_from_due.record(received.since(due));
        }
        let late = self.meta.playout.is_some_and(|delay| channel.playout.is_late(delay, due, received));
        if late {
            self.count(channel.member, |counts| counts.late += 1);
            Fate::Late
        } else {
            self.count(channel.member, |counts| counts.received += 1);
            Fate::Received
        }
    }

    /// Plays a message, once it is known when it was due and whether its playout has gone past it.
    #[inline]
    pub(super) fn play(
        &mut self,
        channel: &Channel,
        sequence: u32,
        due: Time,
        arrival: &Arrival,
        fate: Fate,
        trace: &mut dyn TraceSink,
    ) {
        let playout = channel.playout;
        let (&Channel { flow, member, channel, .. }, &Arrival { received, payload: samples, .. }) =
            (channel, arrival);
        let packet = Packet { member, channel, sequence, due, received, samples };
        let played = self
            .voice
            .as_mut()
            .and_then(|voice| voice.arrived(packet, |event| trace.event(flow as usize, event)));
        let (in_time, from_due) = match played {
            Some(Played { from_due, in_time }) => (in_time, from_due),
            None => (fate == Fate::Received, self.meta.playout.and_then(|delay| playout.from_due(delay))),
        };
        if in_time {
            self.heard += Bytes(u64::from(samples));
            if let Some(listening) = &mut self.listening {
                listening.heard(member, channel, sequence, from_due);
            }
        }
    }

    /// Takes audio that found no room before it got into a message: one byte a sample.
    pub(super) fn overflowed(&mut self, samples: u32) {
        self.overflowed += Bytes(u64::from(samples));
    }

    /// Takes a transfer that was answered.
    pub(super) fn transferred(&mut self, member: FlowId, channel: u16, took: Duration, bytes: Bytes) {
        if channel < self.meta.channels {
            self.transfers.add((member.0, channel), Rate::of(bytes, took));
        }
    }

    /// The flow's summary, with what its channels add to it.
    pub(super) fn finish(
        mut self,
        duration: Duration,
        outcome: FlowOutcome,
        channels: ChannelSums,
    ) -> FlowSummary {
        let end_of_run = Time::ZERO + duration;
        let active = self.active(end_of_run);
        let throughput = ThroughputSummary {
            offered: Rate::of(self.offered + self.overflowed, length(active)),
            user: self.delivery.rate(&self.window, active),
            answers: self.meta.is_answered.then(|| Rate::of(self.answers, length(active))),
            network: outcome.network.map(|network| on_network(network, self.meta.lasting, active)),
            active: length(active),
        };
        let counts = self.summary.counts;
        let sinks: Vec<SinkSummary> = core::mem::take(&mut self.sinks)
            .into_iter()
            .enumerate()
            .map(|(number, sink)| sink.finish(number, &self.window, active))
            .collect();
        FlowSummary {
            loss: counts.share(counts.lost),
            unfinished: counts.share(counts.unfinished),
            refused: counts.share(counts.refused),
            late: counts.share(counts.late),
            affected: self.affected(),
            clock_error: outcome.clock_error.filter(|_| self.meta.measured == Measured::OneWay),
            latency: self.latency.summary(),
            latency_from_due: self.latency_from_due.summary(),
            jitter: self.jitter(channels.jitter),
            robust: robust_delay(&self.first),
            throughput,
            limited_by: self.limited_by(throughput),
            cut_by: None,
            transfers: self.transfers.summary(u64::from(self.meta.ids()) * u64::from(self.meta.channels)),
            voice_channels: sinks
                .iter()
                .map(|sink| sink.voice_channels)
                .min()
                .unwrap_or_else(|| self.delivery.voice_channels(&self.window, active)),
            sinks,
            fairness: self.fairness(&channels, end_of_run),
            schedule_error: self.schedule_error.summary(),
            send_call: self.send_call.summary(),
            transport_counters: outcome.transport_counters,
            latency_cdf: self.latency.cumulative(CURVE_POINTS),
            latency_over_time: self.over_time.points(),
            connection: outcome.connection,
            ..self.summary
        }
    }

    /// The flow's active time; that of an only sink is the time in which it is there. A volume of which messages are unfinished is
    /// active until the sinks stop listening: all of its bytes count.
    fn active(&mut self, end_of_run: Time) -> Option<(Time, Time)> {
        let there = self.meta.presence.first().filter(|_| self.sinks.is_empty());
        self.window.end(end_of_run);
        if let Some(there) = there {
            self.window = self.window.within(0, there);
        }
        let (begin, end) = self.activity.span(self.meta.lasting, end_of_run)?;
        let goes_on = self.meta.lasting == Lasting::Volume && self.summary.counts.unfinished > 0;
        within(Some((begin, if goes_on { end.max(end_of_run + self.window.drain()) } else { end })), there)
    }

    /// The window or the send buffer that held the flow back: its sender had more to send, and could not.
    fn limited_by(&self, throughput: ThroughputSummary) -> Option<LimitedBy> {
        let limit = self.meta.send_limit.as_ref()?;
        let counts = self.summary.counts;
        let delivered =
            throughput.user.bits_per_second() as f64 / throughput.offered.bits_per_second() as f64;
        let has_all = counts.refused + counts.unfinished == 0 && delivered >= DELIVERED;
        if !self.meta.is_greedy && has_all {
            return None;
        }
        limit.judge(Reached {
            user: throughput.user,
            wanted: (!self.meta.is_greedy).then_some(throughput.offered),
            fastest: self.delivery.fastest()?,
            message: self.delivery.fastest_payload(),
            propagation: self.meta.propagation.first().copied(),
            is_round_trip: self.meta.measured == Measured::RoundTrip,
        })
    }

    /// The share of the audio that was not heard in time.
    fn affected(&self) -> Option<Ratio> {
        let audio = (self.offered + self.overflowed).count();
        let is_asked = self.meta.carries_audio && self.meta.measured != Measured::Nothing && audio > 0;
        is_asked.then(|| share(audio.saturating_sub(self.heard.count()), audio))
    }

    /// Jain's index of the throughputs of the members, each over its own active time.
    fn fairness(&self, channels: &ChannelSums, end_of_run: Time) -> Option<f64> {
        let members = channels.delivered.iter().zip(&channels.activities).enumerate();
        jain_fairness(members.map(|(place, (delivered, activity))| {
            self.member_rate(place, *delivered, *activity, end_of_run).bits_per_second() as f64
        }))
    }

    /// The rate of a member at one sink: over its own active time, without the part that the sink does not see.
    fn member_rate(&self, place: usize, delivered: Bytes, activity: Activity, end_of_run: Time) -> Rate {
        let sink = place / self.meta.members.max(1) as usize;
        let unheard = match self.meta.presence.get(sink) {
            Some(there) => self.window.within(sink, there).unheard(),
            None => self.window.unheard(),
        };
        let active = length(activity.span(self.meta.lasting, self.meta.end_of_id(place, end_of_run)));
        Rate::of(delivered, active.saturating_sub(unheard))
    }

    /// What the flow brings into its bundle; its members were measured.
    pub(super) fn part(
        &mut self,
        duration: Duration,
        network: Option<OnNetwork>,
        channels: &ChannelSums,
    ) -> Part {
        let end_of_run = Time::ZERO + duration;
        let of_flow = self.latency.summary().map(|d| MemberDelay { mean: d.mean, p999: d.p999 });
        let active = self.active(end_of_run);
        let member = |(index, delivered): (usize, &Bytes)| {
            // A single member is measured by what its flow keeps.
            let (activity, counts, latency) = match self.members.get(index) {
                Some(member) => (member.activity, member.counts, member.latency()),
                None => (self.activity, self.summary.counts, of_flow),
            };
            Member { user: self.member_rate(index, *delivered, activity, end_of_run), counts, latency }
        };
        let members = channels.delivered.iter().enumerate().map(member).collect();
        let lasting = self.meta.lasting;
        let counted = |network: OnNetwork| {
            (network.of(lasting), active.map_or(Time::ZERO, |(_, end)| network.until(lasting, end)))
        };
        Part {
            flow: self.meta.name.clone(),
            transport: self.meta.transport.clone(),
            measured: self.meta.measured,
            active,
            unheard: self.window.unheard(),
            delivered: self.delivery.measured(),
            network: network.map(counted),
            members,
        }
    }

    fn jitter(&mut self, interarrival: JitterSum) -> Option<JitterSummary> {
        let latency = self.latency.summary().filter(|latency| latency.count > 1)?;
        Some(JitterSummary {
            mean_absolute_deviation: self.latency.mean_absolute_deviation(),
            standard_deviation: latency.standard_deviation,
            interarrival: interarrival.mean(),
            ipdv_mean: (self.ipdv.count() > 0).then(|| self.ipdv.moments().mean()),
            ipdv_p999: self.ipdv.percentile(PerMille(999)),
            // PDV is latency shifted by a constant, and so are its mean and its percentiles.
            pdv_mean: latency.mean - latency.min,
            pdv_p999: latency.p999 - latency.min,
            interarrival_mean: (self.interarrival.count() > 0).then(|| self.interarrival.mean()),
            interarrival_standard_deviation: (self.interarrival.count() > 1)
                .then(|| self.interarrival.standard_deviation()),
        })
    }
}

/// What is known of a flow only when its channels are looked at, at the end.
#[derive(Clone, Debug)]
pub(super) struct ChannelSums {
    jitter: JitterSum,
    /// What was delivered in the active time to each member, at each sink.
    delivered: Vec<Bytes>,
    /// When each of them was active.
    activities: Vec<Activity>,
}

impl ChannelSums {
    pub(super) fn new(flow: &FlowMeter) -> ChannelSums {
        let ids = flow.meta.ids() as usize;
        ChannelSums {
            jitter: JitterSum::default(),
            delivered: vec![Bytes::ZERO; ids],
            activities: vec![Activity::default(); ids],
        }
    }

    pub(super) fn add(&mut self, channel: &Channel) {
        if let Some(jitter) = channel.jitter.value() {
            self.jitter.nanos += u128::from(jitter.as_nanos());
            self.jitter.channels += 1;
        }
        if let Some(member) = self.delivered.get_mut(channel.member as usize) {
            *member += channel.delivered;
        }
        if let Some(activity) = self.activities.get_mut(channel.member as usize) {
            if channel.first_due < Time::MAX {
                activity.due(channel.first_due);
            }
            if channel.last_arrival < Time::MAX {
                activity.arrived(channel.last_arrival);
            }
        }
    }
}

/// The sum over channels of their final interarrival jitter.
#[derive(Clone, Copy, Debug, Default)]
struct JitterSum {
    nanos: u128,
    channels: u64,
}

impl JitterSum {
    fn mean(self) -> Option<Duration> {
        let channels = u128::from(self.channels);
        let mean = (self.nanos + channels / 2).checked_div(channels)?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
}

/// How long that is.
fn length(span: Option<(Time, Time)>) -> Duration {
    span.map_or(Duration::ZERO, |(first, end)| end.since(first))
}

/// The rate on the first link over the flow's active time, or over as much more of it as was measured.
fn on_network(network: OnNetwork, lasting: Lasting, active: Option<(Time, Time)>) -> Rate {
    let Some((begin, end)) = active else { return Rate::ZERO };
    Rate::of(network.of(lasting), network.until(lasting, end).since(begin))
}
