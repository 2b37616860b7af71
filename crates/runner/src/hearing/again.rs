//! The sound of a channel, reconstructed after its run from its source and its records.

use std::path::Path;

use trunkline_audio::conceal::Concealer;
use trunkline_core::Seed;
use trunkline_experiment::Scenario;
use trunkline_metrics::Fate;
use trunkline_store::{StoreError, read_trace};
use trunkline_traffic::MessageBuffer;

use super::request::{audio_of, method_of};

/// Length of the reconstructed sound, in seconds: an hour would take hundreds of megabytes.
const LONGEST: usize = 600;

/// The sent and the heard audio of a channel, aligned with each other.
#[derive(Clone, Debug)]
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
}

/// Makes the sound of a channel of a repetition with this seed and trace. `None` if the flow has no audio in messages of one
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
    read_trace(trace, &mut |record| {
        let place = record.sequence as usize;
        let is_it = record.member == member && record.channel == channel && place < most;
        if is_it && record.fate != Fate::Duplicate {
            if fates.len() <= place {
                fates.resize(place + 1, Fate::Lost);
            }
            fates[place] = record.fate;
        }
    })?;

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

    let mut heard = sent.clone();
    let mut concealer = Concealer::new(method_of(&of.meta), 1, format.sample_rate, samples);
    for (piece, fate) in heard.chunks_mut(samples).zip(&fates) {
        match fate {
            Fate::Received => concealer.received(piece),
            _ => concealer.lost(piece),
        }
    }
    Ok(Some(ChannelSound { sample_rate: format.sample_rate, sent, heard, samples, fates }))
}
