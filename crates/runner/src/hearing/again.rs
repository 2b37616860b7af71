//! The sound of a channel, reconstructed after its run from its source and its records.

use std::path::Path;

use trunkline_audio::conceal::{Concealer, Method};
use trunkline_core::{Duration, Seed, Time};
use trunkline_experiment::Scenario;
use trunkline_metrics::{Fate, Record};
use trunkline_store::{StoreError, read_trace};
use trunkline_traffic::MessageBuffer;

use super::request::{audio_of, method_of};

/// Length of the reconstructed sound, in seconds: an hour would take hundreds of megabytes.
const LONGEST: usize = 600;

/// The sent and the heard audio of a channel, aligned with each other.
#[derive(Clone, Debug, Default)]
pub struct ChannelSound {
    /// Samples per second.
    pub sample_rate: u32,
    /// Sent samples, from -1 to 1.
    pub sent: Vec<f32>,
    /// The same with its missing messages concealed, as `--hear` conceals them.
    pub heard: Vec<f32>,
    /// Samples of each message.
    pub samples: usize,
    /// The fate of each message; duplicates are left out.
    pub fates: Vec<Fate>,
    /// The arrivals of its messages.
    pub arrivals: Arrivals,
    /// The concealment of missing messages.
    pub method: Method,
}

impl ChannelSound {
    /// The same sound, heard with another playout delay.
    pub fn with_playout(&self, playout: Duration) -> ChannelSound {
        let mut fates = self.fates.clone();
        self.arrivals.judge(playout, &mut fates);
        ChannelSound { fates, ..self.clone() }.concealed()
    }

    /// The heard audio made from the sent one.
    fn concealed(mut self) -> ChannelSound {
        self.heard.clone_from(&self.sent);
        let mut concealer = Concealer::new(self.method, 1, self.sample_rate, self.samples);
        for (piece, fate) in self.heard.chunks_mut(self.samples).zip(&self.fates) {
            match fate {
                Fate::Received => concealer.received(piece),
                _ => concealer.lost(piece),
            }
        }
        self
    }
}

/// Makes the sound of a channel of a repetition with this seed and trace, with its own playout delay or another one. `None` if the flow has no audio in messages of one
/// length, a `playback`, or no such member or channel. Only the first ten minutes are reconstructed.
///
/// # Errors
/// If the trace cannot be read.
pub fn channel_sound(
    scenario: &Scenario,
    flow: usize,
    (member, channel): (u32, u16),
    seed: Seed,
    trace: &Path,
    playout: Option<Duration>,
) -> Result<Option<ChannelSound>, StoreError> {
    let Some(of) = scenario.flows.get(flow).filter(|of| member < of.meta.ids() && channel < of.meta.channels)
    else {
        return Ok(None);
    };
    // The pieces that a FIFO plays and leaves out are not those of single messages.
    if of.meta.voice_path.is_some_and(|path| path.playback.is_some()) {
        return Ok(None);
    }
    let samples = (trunkline_traffic::KINDS[of.source.kind].samples_per_packet)(&of.source.values);
    // A flow that is made for several hosts is several flows, each with members of its own.
    let (singles, id) = (scenario.singles(), of.meta.first.0 + member);
    let single = singles
        .flows
        .iter()
        .position(|one| (one.meta.first.0..one.meta.first.0 + one.meta.ids()).contains(&id));
    let Some(single) = single else { return Ok(None) };
    let meta = &singles.flows[single].meta;
    // Members at further sinks hear the same sources.
    let source = singles.build_source(single, (id - meta.first.0) % meta.members, seed);
    let (Some(format), Some(samples), Ok(mut source)) = (audio_of(of), samples, source) else {
        return Ok(None);
    };
    let samples = samples as usize;
    let most = LONGEST * format.sample_rate as usize / samples;

    let mut fates = Vec::new();
    let mut arrivals = Arrivals::default();
    read_trace(trace, &mut |record| {
        let place = record.sequence as usize;
        let is_it = record.member == member && record.channel == channel && place < most;
        if is_it && record.fate != Fate::Duplicate {
            if fates.len() <= place {
                fates.resize(place + 1, Fate::Lost);
            }
            fates[place] = record.fate;
            arrivals.add(place, record);
        }
    })?;
    if let Some(playout) = playout {
        arrivals.judge(playout, &mut fates);
    }

    let (mut sent, mut messages) = (Vec::new(), MessageBuffer::default());
    while let Some(due) = source.next_due().filter(|_| sent.len() < samples * fates.len()) {
        source.produce(due, &mut messages);
        for (place, message) in messages.messages().iter().enumerate() {
            if message.channel == channel {
                format.decode(messages.bytes(place), &mut sent);
            }
        }
        messages.clear();
    }
    sent.truncate(samples * fates.len());
    fates.truncate(sent.len() / samples);

    let method = method_of(&of.meta);
    let heard = Vec::new();
    let sound =
        ChannelSound { sample_rate: format.sample_rate, sent, heard, samples, fates, arrivals, method };
    Ok(Some(sound.concealed()))
}

/// When the messages of a channel arrived.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// The first arrival of all, and when that message was due.
    first: Option<(Time, Time)>,
    /// The place of each message, when it arrived, and when it was due.
    all: Vec<(usize, Time, Time)>,
}

impl Arrivals {
    fn add(&mut self, place: usize, record: &Record) {
        let Some(received) = record.received else { return };
        if self.first.is_none_or(|(first, _)| received < first) {
            self.first = Some((received, record.due));
        }
        self.all.push((place, received, record.due));
    }

    /// Judges which messages are late with this playout delay: as [`FlowMeta::playout`](trunkline_metrics::FlowMeta::playout) says.
    fn judge(&self, playout: Duration, fates: &mut [Fate]) {
        let Some((first, first_due)) = self.first else { return };
        for (place, received, due) in &self.all {
            let deadline = (first + playout).as_nanos() + due.as_nanos();
            let is_late = received.as_nanos() + first_due.as_nanos() > deadline;
            if let Some(fate) = fates.get_mut(*place) {
                *fate = if is_late { Fate::Late } else { Fate::Received };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_playout_delay_judges_each_arrival_anew() {
        let at = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let record = |due: u64, received: Option<u64>| Record {
            member: 0,
            channel: 0,
            sequence: 0,
            due: at(due),
            sent: Some(at(due)),
            received: received.map(at),
            reflected: None,
            payload: 80,
            fate: Fate::Received,
        };
        let mut arrivals = Arrivals::default();
        let records = [record(0, Some(50)), record(10, Some(90)), record(20, None), record(30, Some(80))];
        records.iter().enumerate().for_each(|(place, record)| arrivals.add(place, record));
        let mut fates = [Fate::Late, Fate::Received, Fate::Lost, Fate::Late];
        // The second took 30 ms longer than the first one.
        arrivals.judge(Duration::from_millis(29), &mut fates);
        assert_eq!(fates, [Fate::Received, Fate::Late, Fate::Lost, Fate::Received]);
        arrivals.judge(Duration::from_millis(30), &mut fates);
        assert_eq!(fates, [Fate::Received, Fate::Received, Fate::Lost, Fate::Received]);
    }
}
