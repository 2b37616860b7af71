//! The received audio: one WAV file per channel, written as the messages arrive.
//!
//! A message's place in the file follows from its sequence number, so order, duplicates and gaps need no care: what
//! never arrives stays what the file was extended with, silence.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use trunkline_audio::wav::ReceivedWav;
use trunkline_core::{FlowId, Time};
use trunkline_experiment::{Flow, Scenario};
use trunkline_metrics::{Observation, Recorder};

/// How much of a channel is collected before it is written: 4 s of speech.
const COLLECTED: usize = 64 << 10;

/// Writes the payload of every flow that keeps it.
pub(crate) struct AudioRecorder {
    /// By member over all flows; `None` for members whose payload nobody keeps.
    members: Vec<Option<MemberAudio>>,
    problem: Option<io::Error>,
}

struct MemberAudio {
    samples_per_packet: u64,
    channels: Vec<ChannelAudio>,
}

/// One channel's file and the run of PCM that will be written to it next.
struct ChannelAudio {
    file: File,
    path: PathBuf,
    length: u64,
    run: Vec<u8>,
    run_starts: u64,
}

impl AudioRecorder {
    /// Creates a silent file of full length for every channel of every flow that keeps its payload, in `directory`,
    /// which is made if there is any.
    pub(crate) fn create(scenario: &Scenario, directory: &Path) -> io::Result<AudioRecorder> {
        let mut members = Vec::new();
        for flow in &scenario.flows {
            let samples_per_packet = samples_per_packet(flow).filter(|_| flow.meta.keeps_payload);
            for member in 0..flow.meta.ids() {
                let Some(samples_per_packet) = samples_per_packet else {
                    members.push(None);
                    continue;
                };
                let mut channels = Vec::with_capacity(usize::from(flow.meta.channels));
                for channel in 0..flow.meta.channels {
                    std::fs::create_dir_all(directory)?;
                    let path = directory.join(format!("{}-{member}-{channel}.wav", flow.meta.name));
                    let samples = scenario.duration.as_nanos() / ReceivedWav::SAMPLE_NANOS;
                    channels.push(ChannelAudio::create(path, samples)?);
                }
                members.push(Some(MemberAudio { samples_per_packet, channels }));
            }
        }
        Ok(AudioRecorder { members, problem: None })
    }

    /// Writes what is left, and says which files there are.
    pub(crate) fn finish(mut self) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for channel in self.members.iter_mut().flatten().flat_map(|member| &mut member.channels) {
            if let Err(problem) = channel.flush() {
                self.problem.get_or_insert(problem);
            }
            paths.push(channel.path.clone());
        }
        match self.problem {
            Some(problem) => Err(problem),
            None => Ok(paths),
        }
    }
}

impl Recorder for AudioRecorder {
    fn record(&mut self, _: Time, _: FlowId, _: Observation) {}

    fn payload(&mut self, flow: FlowId, channel: u16, sequence: u32, payload: &[u8]) {
        let Some(Some(member)) = self.members.get_mut(flow.0 as usize) else { return };
        let offset = ReceivedWav::offset_of(sequence, member.samples_per_packet);
        let Some(channel) = member.channels.get_mut(usize::from(channel)) else { return };
        // A full disk must not stop the measurement: the first problem is kept and told at the end.
        if let Err(problem) = channel.put(offset, payload) {
            self.problem.get_or_insert(problem);
        }
    }
}

/// How many samples each message of a flow carries; `None` if it carries no audio.
fn samples_per_packet(flow: &Flow) -> Option<u64> {
    (trunkline_traffic::KINDS[flow.source.kind].samples_per_packet)(&flow.source.values)
}

impl ChannelAudio {
    fn create(path: PathBuf, samples: u64) -> io::Result<ChannelAudio> {
        let file = File::create(&path)?;
        let length = ReceivedWav::HEADER_LENGTH as u64 + 2 * samples;
        file.set_len(length)?;
        file.write_all_at(&ReceivedWav::header(samples), 0)?;
        Ok(ChannelAudio { file, path, length, run: Vec::new(), run_starts: 0 })
    }

    /// Takes mu-law samples that belong at `offset`.
    fn put(&mut self, offset: u64, payload: &[u8]) -> io::Result<()> {
        if offset + 2 * payload.len() as u64 > self.length {
            return Ok(()); // after the end of the run: the last, partly filled packet
        }
        if offset != self.run_starts + self.run.len() as u64 || self.run.len() >= COLLECTED {
            self.flush()?;
            self.run_starts = offset;
        }
        ReceivedWav::decode_into(payload, &mut self.run);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.file.write_all_at(&self.run, self.run_starts);
        self.run.clear();
        written
    }
}
