//! A recording of exactly the samples that were sent: every block in its place, nothing resampled, nothing made up.
//!
//! Blocks are written as they come, not at the pace of a clock. What a network reorders is put in order again within a
//! second of audio; after that, silence of the same length stands in the place of what is missing, and the recording says
//! that it is not whole.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{self, SyncSender};
use std::thread::JoinHandle;

use trunkline_audio::format::Encoding;
use trunkline_audio::pipeline::{Codec, Stream};
use trunkline_audio::playout::{Counters, Origin};
use trunkline_core::{Duration, Time, count};
use trunkline_sound::file::Writer;
use trunkline_sound::{Place, SoundError};

use super::ProgramError;
use super::halves::Arrived;
use super::words::Sending;
use super::worker::End;

/// Blocks that wait for the disk, as a time in seconds: beyond that the network waits too.
const BACKLOG: u32 = 5;
/// A gap that is longer than this, in seconds, is not filled: what comes behind it is refused.
const LONGEST_GAP: u32 = 600;
/// When all has been sent, how long after the last arrival what is missing counts as lost. Shorter than the sender waits for the
/// last counts.
const QUIET: Duration = Duration::from_millis(500);
/// Blocks that are held back, since the sender may say that the last ones are not full.
const HELD_BACK: usize = 2;

/// Why a stream cannot be recorded exactly to a place, in a sentence without its full stop.
pub(super) fn refusal(stream: &Stream, to: &Place) -> Option<String> {
    let is_flac = to.to_string().to_ascii_lowercase().ends_with(".flac");
    match stream.codec {
        Codec::Pcm(Encoding::F32) if is_flac => Some(
            "it records exactly what is sent to a FLAC file, which has no floating-point samples; send `--format i24`, or \
             record to a `.wav` file"
                .to_owned(),
        ),
        Codec::Pcm(_) => None,
        Codec::Pcmu | Codec::Pcma | Codec::Opus { .. } => Some(
            "it records exactly what is sent, which a lossy codec cannot carry; send `--format i16`, `i24` \
             or `f32`"
                .to_owned(),
        ),
    }
}

/// Puts the blocks of a stream in order.
struct Order {
    channels: usize,
    frames: usize,
    /// Parts of a block.
    parts: u64,
    /// So many blocks are waited for one that is missing.
    window: i64,
    longest_gap: i64,
    held: BTreeMap<i64, Pending>,
    /// Blocks of the last longest gap that were written without some of their channels, with those that had come.
    gaps: BTreeMap<i64, Vec<bool>>,
    /// The first that was written.
    first: Option<i64>,
    /// The next to write; not known before the first ones have come.
    next: Option<i64>,
    highest: Option<i64>,
    counters: Counters,
    /// Parts that were sent, once nothing more of them is expected.
    sent: Option<u64>,
}

/// A block of which some channels have come.
struct Pending {
    samples: Vec<f32>,
    present: Vec<bool>,
    parts: u64,
}

impl Pending {
    fn new(channels: usize, frames: usize) -> Pending {
        Pending { samples: vec![0.0; channels * frames], present: vec![false; channels], parts: 0 }
    }
}

impl Order {
    fn new(stream: &Stream) -> Order {
        let blocks = |seconds: u32| {
            i64::from((seconds * stream.sample_rate).div_ceil(stream.block_frames.max(1))).max(2)
        };
        Order {
            channels: stream.channels.into(),
            frames: stream.block_frames as usize,
            parts: stream.parts() as u64,
            window: blocks(1),
            longest_gap: blocks(LONGEST_GAP),
            held: BTreeMap::new(),
            gaps: BTreeMap::new(),
            first: None,
            next: None,
            highest: None,
            counters: Counters::default(),
            sent: None,
        }
    }

    /// Takes a block, or a part of one, and emits those whose turn has come.
    fn take(&mut self, arrived: &Arrived, samples: &[f32], emit: &mut dyn FnMut(Vec<f32>)) {
        let (first, count) = (usize::from(arrived.first_channel), usize::from(arrived.channels));
        if count == 0 || first + count > self.channels || samples.len() != count * self.frames {
            self.counters.refused += 1;
            return;
        }
        let highest = self.highest.unwrap_or(i64::from(arrived.sequence));
        let number = highest + i64::from(arrived.sequence.wrapping_sub(highest as u32) as i32);
        if number > highest + self.longest_gap {
            self.counters.refused += 1;
            return;
        }
        if let Some(next) = self.next.filter(|next| number < *next) {
            let present = self.gaps.get_mut(&number).map(|present| &mut present[first..first + count]);
            match present {
                Some(present) if !present.contains(&true) => {
                    present.fill(true);
                    self.counters.late += 1;
                }
                None if number < (next - self.longest_gap).max(self.first.unwrap_or(next)) => {
                    self.counters.late += 1;
                }
                _ => self.counters.duplicate += 1,
            }
            return;
        }
        self.counters.reordered += u64::from(number < highest && arrived.origin == Origin::Sent);
        let (channels, frames) = (self.channels, self.frames);
        let pending = self.held.entry(number).or_insert_with(|| Pending::new(channels, frames));
        if pending.present[first..first + count].contains(&true) {
            self.counters.duplicate += 1;
            return;
        }
        pending.present[first..first + count].fill(true);
        pending.parts += 1;
        for (frame, part) in pending.samples.chunks_exact_mut(channels).zip(samples.chunks_exact(count)) {
            frame[first..first + count].copy_from_slice(part);
        }
        self.highest = Some(highest.max(number));
        self.release(false, emit);
    }

    /// The counts. Once nothing more is expected of the parts that were sent, those without a turn are missing too: the first
    /// and the last ones.
    fn counters(&self) -> Counters {
        let mut counters = self.counters;
        let without_turn = self.sent.map_or(0, |sent| sent.saturating_sub(counters.turns()));
        counters.missing = counters.missing.saturating_add(without_turn);
        counters
    }

    /// Emits what is in order, and what has been waited for long enough; at the end everything.
    fn release(&mut self, is_end: bool, emit: &mut dyn FnMut(Vec<f32>)) {
        while let (Some((&lowest, _)), Some(highest)) = (self.held.first_key_value(), self.highest) {
            let next = self.next.unwrap_or(lowest);
            let is_over = is_end || highest - next >= self.window;
            let is_whole = self.next.is_some()
                && self.held.get(&next).is_some_and(|pending| pending.present.iter().all(|is| *is));
            if !is_over && !is_whole {
                return;
            }
            let Pending { samples, present, parts } =
                self.held.remove(&next).unwrap_or_else(|| Pending::new(self.channels, self.frames));
            self.counters.played += parts;
            self.counters.missing += self.parts.saturating_sub(parts);
            if present.contains(&false) {
                self.gaps.insert(next, present);
                while self.gaps.first_key_value().is_some_and(|(&gap, _)| gap < next - self.longest_gap) {
                    self.gaps.pop_first();
                }
            }
            emit(samples);
            self.first.get_or_insert(next);
            self.next = Some(next + 1);
        }
    }
}

/// A file that is written by a thread of its own, which may wait for the disk.
pub(super) struct Recording {
    order: Order,
    tail: Tail,
    /// When a packet arrived last, or the sender said that it has sent everything.
    heard: Time,
    /// True once the sender has said so.
    is_all_sent: bool,
    to_writer: Option<SyncSender<Vec<f32>>>,
    writer: Option<JoinHandle<Result<(), SoundError>>>,
    /// What [`finish`](Self::finish) or [`failure`](Self::failure) has found out.
    pub(super) outcome: Result<(), String>,
}

/// The last blocks that were put in order, and are not yet written.
struct Tail {
    blocks: VecDeque<Vec<f32>>,
    /// Frames that were put in order.
    frames: u64,
    channels: u64,
}

impl Tail {
    /// Takes the next block and writes the first one; returns false if it cannot be written.
    fn push(&mut self, block: Vec<f32>, to_writer: Option<&SyncSender<Vec<f32>>>) -> bool {
        self.frames += block.len() as u64 / self.channels.max(1);
        self.blocks.push_back(block);
        if self.blocks.len() <= HELD_BACK {
            return true;
        }
        let first = self.blocks.pop_front().unwrap_or_default();
        to_writer.is_some_and(|writer| writer.send(first).is_ok())
    }
}

impl Recording {
    /// Creates the file.
    ///
    /// # Errors
    /// It cannot be created, or its format has no such audio; or there is no thread to be had.
    pub(super) fn create(place: &Place, stream: &Stream) -> Result<Recording, ProgramError> {
        let Place::File(path) = place else {
            return Err(SoundError::Wanted(not_a_file(place)).into());
        };
        let encoding = super::send::encoding(stream.codec, Some(place));
        let mut file = Writer::create(path, stream.channels, stream.sample_rate, encoding)?;
        let blocks = BACKLOG * stream.sample_rate / stream.block_frames.max(1);
        let (to_writer, blocks) = mpsc::sync_channel::<Vec<f32>>(blocks as usize + 1);
        let writer = std::thread::Builder::new()
            .name("recording".to_owned())
            .spawn(move || {
                for block in blocks {
                    file.write(&block)?;
                }
                file.finish()
            })
            .map_err(ProgramError::system("cannot start the thread that writes the recording"))?;
        Ok(Recording {
            order: Order::new(stream),
            tail: Tail { blocks: VecDeque::new(), frames: 0, channels: stream.channels.into() },
            heard: Time::ZERO,
            is_all_sent: false,
            to_writer: Some(to_writer),
            writer: Some(writer),
            outcome: Ok(()),
        })
    }

    /// What became of the parts of blocks.
    pub(super) fn counters(&self) -> Counters {
        self.order.counters()
    }

    /// Why the file can no longer be written, as soon as that is known: the error is the outcome.
    pub(super) fn failure(&mut self) -> Option<String> {
        if self.to_writer.is_some() && self.writer.as_ref().is_some_and(JoinHandle::is_finished) {
            self.to_writer = None;
            self.outcome = self.written();
        }
        self.to_writer.is_none().then(|| self.outcome.clone().err()).flatten()
    }

    /// Joins the writer, which has ended or is about to, and returns its error.
    fn written(&mut self) -> Result<(), String> {
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => Err(error.to_string()),
            Some(Err(_)) => Err("the thread that writes the recording has failed".to_owned()),
            Some(Ok(Ok(()))) | None => Ok(()),
        }
    }

    /// Takes a block, or a part of one; says whether it could be given to the disk.
    pub(super) fn take(&mut self, arrived: &Arrived, samples: &[f32]) -> bool {
        self.heard = self.heard.max(arrived.at);
        let Recording { order, tail, to_writer, .. } = self;
        let mut is_written = true;
        order.take(arrived, samples, &mut |block| is_written &= tail.push(block, to_writer.as_ref()));
        is_written
    }

    /// When all has been sent, puts in order what is there, once that is everything or a transport that is not `reliable` has
    /// been quiet for some time: then the sender learns the outcome of all packets before it leaves.
    pub(super) fn settle(&mut self, sender: &Sending, now: Time, reliable: bool) {
        let Some(sent) = sender.blocks else { return };
        if !core::mem::replace(&mut self.is_all_sent, true) {
            self.heard = self.heard.max(now);
        }
        let held: u64 = self.order.held.values().map(|pending| pending.parts).sum();
        let is_quiet = !reliable && now >= self.heard + QUIET;
        if is_quiet || (held > 0 && self.order.counters.played + held >= sent) {
            self.release();
        }
        if is_quiet {
            self.order.sent = Some(sent);
        }
    }

    fn release(&mut self) {
        let Recording { order, tail, to_writer, .. } = self;
        order.release(true, &mut |block| _ = tail.push(block, to_writer.as_ref()));
    }

    /// Writes what is left and completes the file, when the session has ended like this. [`outcome`](Self::outcome) then says
    /// whether the recording is whole.
    pub(super) fn finish(&mut self, sender: &Sending, end: &End) {
        let Some(writer) = self.to_writer.clone() else { return };
        self.release();
        if let Some(sent) = sender.blocks {
            self.order.sent = Some(sent);
        }
        let wholeness = wholeness(self.order.counters(), sender, end);
        // The sender fills its last block with silence.
        let end = sender.frames.unwrap_or(self.tail.frames);
        let mut beyond = self.tail.frames.saturating_sub(end).saturating_mul(self.tail.channels) as usize;
        for block in self.tail.blocks.iter_mut().rev() {
            let cut = beyond.min(block.len());
            block.truncate(block.len() - cut);
            beyond -= cut;
        }
        // A writer that has failed says why when it is joined.
        self.tail.blocks.drain(..).for_each(|block| _ = writer.send(block));
        drop(writer);
        self.to_writer = None;
        self.outcome = self.written().and(wholeness);
    }
}

/// Why there is no exact recording to a place that is no file.
pub(super) fn not_a_file(place: &Place) -> String {
    format!(
        "`--exact` records to a file, but `{place}` is not a file; give `--to` a path that ends in `.wav` or `.flac`"
    )
}

/// Whether all has arrived that was sent; if not, why not.
fn wholeness(counters: Counters, sender: &Sending, end: &End) -> Result<(), String> {
    let Some(sent) = sender.blocks else {
        return Err(match end {
            End::Stopped => {
                "the recording is incomplete: the receiver stopped before the sender had sent everything"
            }
            _ => "cannot tell whether the recording is complete: the sender did not report how much it sent",
        }
        .to_owned());
    };
    let missing = sent.saturating_sub(counters.played).max(counters.missing);
    if missing > 0 {
        return Err(format!(
            "the recording is incomplete: {missing} of {} missing, and silence replaces those between others",
            if sent == 1 { "1 packet is".to_owned() } else { format!("{sent} packets are") }
        ));
    }
    if sender.left_out > 0 {
        return Err(format!(
            "the recording is incomplete: the sender lost {} before sending",
            count(sender.left_out, "block")
        ));
    }
    Ok(())
}
