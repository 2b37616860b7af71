//! Keeps what arrives for the listeners of one repetition, and writes what they heard.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use trunkline_audio::format::{Encoding, Endian, Format};
use trunkline_audio::wav::header_of;
use trunkline_core::{FlowId, Ratio, Time};
use trunkline_experiment::{Flow, Scenario};
use trunkline_metrics::{Observation, Record, Recorder};
use trunkline_store::{ClosedRepetition, read_trace};
use trunkline_traffic::AudioFormat;

use super::payloads::Payloads;
use super::request::audio_of;
use super::track::{Playing, Track};
use super::{Hear, Heard, Sound};
use crate::error::{HearError, RunnerError};
use crate::task::Task;

/// Frames written at a time.
const WRITTEN: usize = 4096;

/// The listeners of one repetition. Memory: what they hear, as it was received.
pub(crate) struct Ears<'h> {
    hear: &'h Hear,
    /// By flow id; `None` of members that nobody listens to.
    members: BTreeMap<u32, Vec<Payloads>>,
}

impl<'h> Ears<'h> {
    pub(crate) fn new(hear: &'h Hear, scenario: &Scenario) -> Ears<'h> {
        let mut members = BTreeMap::new();
        for sound in &hear.sounds {
            for flow in scenario.flows.iter().filter(|flow| sound.is_of(&flow.meta)) {
                let channels = vec![Payloads::default(); usize::from(flow.meta.channels)];
                members.entry(flow.meta.first.0 + sound.member).or_insert(channels);
            }
        }
        Ears { hear, members }
    }

    /// Writes what was heard, by the records of the repetition. Files without a name of their own go into `folder`.
    pub(crate) fn finish(
        self,
        scenario: &Scenario,
        closed: &ClosedRepetition,
        folder: &Path,
        task: Task,
        is_alone: bool,
    ) -> Result<Vec<Heard>, RunnerError> {
        let mut heard = Vec::new();
        for sound in &self.hear.sounds {
            let flows = scenario.flows.iter().zip(closed.traces());
            let Some((flow, (_, trace))) = flows.into_iter().find(|(flow, _)| sound.is_of(&flow.meta)) else {
                continue;
            };
            let (Some(format), Some(payloads)) =
                (audio_of(flow), self.members.get(&(flow.meta.first.0 + sound.member)))
            else {
                continue;
            };
            let tracks = self.tracks(sound, flow, format, payloads, trace)?;
            let path = sound.path(folder, (task.stored, task.repetition), is_alone);
            let wrote = write(&path, format.sample_rate, &tracks);
            let frames = wrote.map_err(|error| HearError::Write { path: path.clone(), error })?;
            heard.push(Heard {
                key: sound.key.clone(),
                of: (task.stored, task.repetition),
                path,
                frames,
                sample_rate: format.sample_rate,
                concealed: concealed(&tracks),
            });
        }
        Ok(heard)
    }

    fn tracks(
        &self,
        sound: &Sound,
        flow: &Flow,
        format: AudioFormat,
        payloads: &[Payloads],
        trace: &Path,
    ) -> Result<Vec<Track>, RunnerError> {
        let channels = sound.channels(&flow.meta);
        let mut records: Vec<Vec<Record>> = channels.clone().map(|_| Vec::new()).collect();
        read_trace(trace, &mut |record| {
            if record.member == sound.member && channels.contains(&record.channel) {
                records[usize::from(record.channel - channels.start)].push(*record);
            }
        })?;
        let packetiser = (trunkline_traffic::KINDS[flow.source.kind].packetiser)(&flow.source.values);
        let playing = Playing {
            playout: flow.meta.playout,
            path: flow.meta.voice_path.and_then(|path| Some((path, path.playback?))),
            pauses: packetiser.is_some_and(|packetiser| packetiser.pauses),
        };
        let tracks = channels.zip(records).filter_map(|(channel, records)| {
            let longest = records.iter().map(|record| format.samples(record.payload as usize)).max();
            let mut track = Track::new(format, self.hear.method(&flow.meta), longest.unwrap_or(1));
            track.play(playing, &records, payloads.get(usize::from(channel))?);
            Some(track)
        });
        Ok(tracks.collect())
    }
}

impl Recorder for Ears<'_> {
    fn record(&mut self, _: Time, _: FlowId, _: Observation) {}

    fn payload(&mut self, flow: FlowId, channel: u16, sequence: u32, payload: &[u8]) {
        let channels = self.members.get_mut(&flow.0);
        if let Some(channel) = channels.and_then(|channels| channels.get_mut(usize::from(channel))) {
            channel.keep(sequence, payload);
        }
    }
}

fn concealed(tracks: &[Track]) -> Ratio {
    let sum = |of: fn(&Track) -> usize| tracks.iter().map(of).sum::<usize>() as f64;
    let (received, made) = (sum(|track| track.received), sum(|track| track.concealed));
    Ratio::new(made / (received + made).max(1.0)).unwrap_or_default()
}

/// Writes the tracks as the channels of one file, and says how many frames it has. Those that end early become silent.
fn write(path: &PathBuf, sample_rate: u32, tracks: &[Track]) -> io::Result<u64> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let frames = tracks.iter().map(|track| track.samples.len()).max().unwrap_or(0);
    let channels = u16::try_from(tracks.len()).unwrap_or(u16::MAX);
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&header_of(channels, sample_rate, frames as u64))?;
    let format = Format { encoding: Encoding::I16, endian: Endian::Little };
    let (mut samples, mut bytes) = (Vec::new(), Vec::new());
    for begin in (0..frames).step_by(WRITTEN) {
        samples.clear();
        bytes.clear();
        for frame in begin..frames.min(begin + WRITTEN) {
            samples.extend(tracks.iter().map(|track| track.samples.get(frame).copied().unwrap_or(0.0)));
        }
        format.encode(&samples, &mut bytes);
        file.write_all(&bytes)?;
    }
    file.flush()?;
    Ok(frames as u64)
}
