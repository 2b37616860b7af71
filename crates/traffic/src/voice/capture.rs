//! The A/D side of a voice channel: samples come into a FIFO one by one, and a packetiser takes them out.
//!
//! Weaver and McNabb 1992, section 3: the packetiser is serviced each time `samples` have come. What it finds leaves as
//! one packet as soon as the transport takes it; while the transport takes none, samples accumulate, and what several
//! services have found leaves as one larger packet.

use trunkline_core::Time;
use trunkline_core::schema::Values;

use super::{SAMPLE, Speaker, phase};
use crate::agenda::Agenda;
use crate::fifo::Fifo;
use crate::source::{Feedback, MessageBuffer, Overflow, Source, SourceContext};

/// Speech of several channels, each with a FIFO. It hands over one packet per call, that which has waited for the longest
/// time: what the driver does not ask for stays in the FIFOs.
#[derive(Debug)]
pub(super) struct CapturedVoice {
    /// When each channel has something to hand over.
    agenda: Agenda,
    channels: Box<[Capture]>,
    /// The most samples of a packet.
    largest: usize,
    stop: Time,
}

/// One channel.
#[derive(Debug)]
struct Capture {
    speaker: Speaker,
    fifo: Fifo,
    /// When the packetiser is serviced next, and how many of the samples that come until then have come.
    service: Time,
    come: u64,
    /// When it was serviced last, and how many samples of those that it found then are in the FIFO.
    serviced: Time,
    found: usize,
    /// Which service found the oldest of these.
    due: Time,
}

impl CapturedVoice {
    pub(super) fn new(
        values: &Values,
        context: &SourceContext,
        depth: u64,
        largest: u64,
    ) -> Result<CapturedVoice, String> {
        let samples = values.integer("samples");
        for (key, value) in [("fifo", depth), ("largest", largest)] {
            if value < samples {
                return Err(format!(
                    "`{key}` is {value}; expected at least the {samples} `samples` of a packet"
                ));
            }
        }
        let mut agenda = Agenda::new(context.channels, context.stop);
        let capture = |channel| {
            let mut speaker = Speaker::new(values, context, channel)?;
            let first = context.start + phase(values, context, channel, speaker.interval());
            let service = speaker.next_slot(first);
            agenda.set(channel, service);
            let fifo = Fifo::new(depth as usize);
            Ok(Capture { speaker, fifo, service, come: 0, serviced: service, found: 0, due: service })
        };
        let channels = (0..context.channels).map(capture).collect::<Result<_, String>>()?;
        Ok(CapturedVoice { agenda, channels, largest: largest as usize, stop: context.stop })
    }
}

impl Source for CapturedVoice {
    fn next_due(&self) -> Option<Time> {
        self.agenda.first().map(|(due, _)| due)
    }

    fn produce(&mut self, now: Time, out: &mut MessageBuffer) {
        let Some((_, channel)) = self.agenda.first_by(now) else { return };
        let capture = &mut self.channels[usize::from(channel)];
        if let Some((at, samples)) = capture.advance(now, self.stop) {
            out.overflowed(Overflow { channel, at, samples });
        }
        let length = capture.found.min(self.largest);
        out.push(channel, capture.due, length, |payload| capture.fifo.pop(payload));
        capture.found -= length;
        if capture.found > 0 {
            capture.due = (capture.due + SAMPLE * length as u64).min(capture.serviced);
            self.agenda.set(channel, capture.due);
        } else {
            self.agenda.set(channel, capture.service);
        }
    }

    fn notify(&mut self, _: Time, _: Feedback) {}

    fn is_finished(&self) -> bool {
        self.agenda.first().is_none()
    }
}

impl Capture {
    /// Takes all samples in that come up to and including `now`, for packets that are due before `stop`. Of those that find
    /// no room it says when the first came, and how many they are: until something is taken out they are one overflow.
    fn advance(&mut self, now: Time, stop: Time) -> Option<(Time, u32)> {
        let samples = u64::from(self.speaker.samples);
        let mut overflow = None;
        while self.service < stop {
            let outstanding = self.service.since(now).as_nanos().div_ceil(SAMPLE.as_nanos());
            let come = samples.saturating_sub(outstanding);
            let speaker = &mut self.speaker;
            let taken = self.fifo.push((come - self.come) as usize, |places| speaker.speak(places)) as u64;
            let lost = (come - self.come - taken) as u32;
            if lost > 0 {
                speaker.skip(lost);
                // Samples of the first packet may have come before the run.
                let until_service = SAMPLE * (samples - self.come - taken - 1);
                let at = Time::ZERO + self.service.since(Time::ZERO).saturating_sub(until_service);
                overflow.get_or_insert((at, 0)).1 += lost;
            }
            self.come = come;
            if outstanding > 0 {
                break;
            }
            if self.found == 0 {
                self.due = self.service;
            }
            (self.found, self.serviced, self.come) = (self.fifo.len(), self.service, 0);
            self.service = self.speaker.next_slot(self.service + self.speaker.interval());
        }
        overflow
    }
}

#[cfg(test)]
mod tests;
