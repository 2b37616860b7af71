//! The voice path of one flow while it runs.

use trunkline_core::{Duration, FlowId, Time};

use crate::delays::Delays;
use crate::margins::Margins;
use crate::playback::{Arrived, Playback, SAMPLE, TalkSpurts};
use crate::record::FlowMeta;
use crate::voice_path::{Margin, VoiceEvent, VoiceEventKind, VoicePath, VoicePathSummary};

/// Counts what happens at the FIFOs of a flow's channels, and plays what arrives.
#[derive(Debug)]
pub(super) struct VoiceMeter {
    path: VoicePath,
    first: FlowId,
    channels_per_member: u16,
    summary: VoicePathSummary,
    start_up: Delays,
    margin: Margins,
    /// Of all members, one after the other.
    channels: Vec<Channel>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Channel {
    playback: Playback,
    spurts: TalkSpurts,
    /// When the first message was due of the talk spurt that is about to be played.
    spurt_due: Time,
    /// When the last message was due that the source has handed over.
    last_due: Time,
    /// The number after that of the latest message that has arrived.
    next: Option<u32>,
    /// The audio of messages of this talk spurt that have not come, less the silences that stood for it.
    missing: Duration,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) member: u32,
    pub(super) channel: u16,
    pub(super) sequence: u32,
    pub(super) due: Time,
    pub(super) received: Time,
    /// Its payload: a byte each.
    pub(super) samples: u32,
}

/// How a message was played.
#[derive(Clone, Copy, Debug)]
pub(super) struct Played {
    /// How long after it was due, or after the first of its talk spurt if that begins with it; `None` if more must arrive
    /// first.
    pub(super) from_due: Option<Duration>,
    /// True if all of it was played, and as early as if every message before it had come: the silence of a lost message is
    /// that message's own.
    pub(super) in_time: bool,
}

impl Channel {
    /// Counts the audio of messages that have not come before this one, or that came after all.
    fn note(&mut self, sequence: u32, length: Duration, is_first: bool) {
        let next = self.next.unwrap_or(sequence);
        match sequence.wrapping_sub(next) {
            ahead if ahead > u32::MAX / 2 => {
                self.missing = self.missing.saturating_sub(length);
                return;
            }
            _ if is_first => self.missing = Duration::ZERO,
            ahead => self.missing += length * u64::from(ahead),
        }
        self.next = Some(sequence.wrapping_add(1));
    }

    /// Returns true if a silence stands for audio that has not come, and for nothing else.
    fn is_of_missing(&mut self, silence: Duration) -> bool {
        let explained = silence <= self.missing;
        self.missing = self.missing.saturating_sub(silence);
        explained
    }
}

impl VoiceMeter {
    /// Of a flow that has a voice path.
    pub(super) fn new(meta: &FlowMeta) -> Option<Box<VoiceMeter>> {
        let channels = meta.ids() as usize * usize::from(meta.channels);
        Some(Box::new(VoiceMeter {
            path: meta.voice_path?,
            first: meta.first,
            channels_per_member: meta.channels,
            summary: VoicePathSummary::default(),
            start_up: Delays::default(),
            margin: Margins::default(),
            channels: vec![Channel::default(); channels],
        }))
    }

    /// A message that the source handed over, whether the transport took it or not.
    pub(super) fn due(&mut self, member: u32, channel: u16, due: Time) {
        if let Some(channel) = self.channel(member, channel) {
            channel.last_due = channel.last_due.max(due);
        }
    }

    /// Samples found no room on their way in.
    pub(super) fn overflowed(&mut self, member: FlowId, channel: u16, at: Time, samples: u32) -> VoiceEvent {
        self.summary.capture_overflows += 1;
        self.summary.capture_lost += u64::from(samples);
        let member = member.0.saturating_sub(self.first.0);
        let length = SAMPLE * u64::from(samples);
        VoiceEvent { member, channel, kind: VoiceEventKind::CaptureOverflow, at, length, samples }
    }

    /// Plays a message; `None` if there is no D/A side.
    pub(super) fn arrived(&mut self, packet: Packet, mut tell: impl FnMut(&VoiceEvent)) -> Option<Played> {
        let Packet { member, channel, received, .. } = packet;
        let path = self.path;
        let (fifo, state) = (path.playback?, self.channel(member, channel)?);
        let is_first = state.spurts.begins(path, packet.sequence, packet.due, packet.samples);
        if is_first {
            state.spurt_due = packet.due;
        }
        state.note(packet.sequence, SAMPLE * u64::from(packet.samples), is_first);
        let spurt_due = state.spurt_due;
        let arrived = state.playback.arrival(fifo, received, packet.samples, is_first);
        let Arrived { begins, margin, underflow, lost } = arrived;
        let is_late = underflow.is_some_and(|(_, silence)| !state.is_of_missing(silence));
        if let Some(begins) = begins {
            // The first sample had come when all but one were still to come.
            self.start_up.record(begins.since(spurt_due) + SAMPLE * u64::from(path.samples));
        }
        if let Some(margin) = margin {
            self.margin.record(margin);
        }
        if let Some((since, silence)) = underflow {
            tell(&self.silent(member, channel, since, silence));
        }
        if lost > 0 {
            self.summary.playback_overflows += 1;
            self.summary.playback_lost += u64::from(lost);
            let (kind, length) = (VoiceEventKind::PlaybackOverflow, Duration::ZERO);
            tell(&VoiceEvent { member, channel, kind, at: received, length, samples: lost });
        }
        let waits = |margin: Margin| if margin.is_missed() { Duration::ZERO } else { margin.magnitude() };
        let from_due = match begins {
            Some(begins) => Some(begins.since(spurt_due)),
            None => margin.map(|margin| received.since(packet.due) + waits(margin)),
        };
        Some(Played { from_due, in_time: lost == 0 && !is_late })
    }

    /// The figures. Channels that have waited for messages that were due until the `end` of their member's sink have been
    /// silent until then; of a speaker who pauses nobody knows.
    pub(super) fn finish(
        mut self,
        end: impl Fn(usize) -> Time,
        mut tell: impl FnMut(&VoiceEvent),
    ) -> VoicePathSummary {
        for place in 0..self.channels.len() {
            let channels = usize::from(self.channels_per_member);
            let (member, channel) = (place / channels, place % channels);
            let end = end(member);
            let Channel { playback, spurts, last_due, .. } = self.channels[place];
            let is_waited_for = spurts.latest_due().is_some_and(|due| due < last_due) && !self.path.pauses;
            if let Some(empty) = playback.empty_at().filter(|&empty| is_waited_for && empty < end) {
                tell(&self.silent(member as u32, channel as u16, empty, end.since(empty)));
            }
        }
        VoicePathSummary { start_up: self.start_up.summary(), margin: self.margin.summary(), ..self.summary }
    }

    fn silent(&mut self, member: u32, channel: u16, at: Time, length: Duration) -> VoiceEvent {
        self.summary.underflows += 1;
        self.summary.silence += length;
        self.summary.silence_longest = self.summary.silence_longest.max(length);
        VoiceEvent { member, channel, kind: VoiceEventKind::Underflow, at, length, samples: 0 }
    }

    fn channel(&mut self, member: u32, channel: u16) -> Option<&mut Channel> {
        let place = member as usize * usize::from(self.channels_per_member) + usize::from(channel);
        self.channels.get_mut(place)
    }
}

#[cfg(test)]
mod tests;
