//! What a listener would have heard of what was measured, with this playout depth and that redundancy.

use trunkline_audio::packet::Header;
use trunkline_audio::pipeline::Protection;
use trunkline_core::{Duration, Rate, Ratio};
use trunkline_metrics::PerMille;
use trunkline_metrics::quality::{CODECS, Codec, EModel, Losses, mos};

use crate::configuration::{Blocks, Configuration, MOST_AUDIO};
use crate::protect::{NEVER, cost, protected};
use crate::trace::Trace;
use crate::transport::Transport;

/// Depths are given in steps of this.
pub const DEPTH_STEP: Duration = Duration::from_micros(100);

/// Sound cards are taken to run in blocks as long as a block, but no longer than 512 frames at 48 kHz.
pub const LONGEST_BLOCK: Duration = Duration::from_nanos(512 * 1_000_000_000 / 48_000);

/// Where the time from mouth to ear goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// Until the sound card hands a block over.
    pub capture: Duration,
    /// Until as much is there as a block of the stream needs.
    pub block: Duration,
    /// Half of the fastest round trip.
    pub network: Duration,
    /// In the playout buffer or, of what came later than the fastest, on the way to it: the playout depth.
    pub playout: Duration,
    /// Until the sound card has played a block.
    pub playback: Duration,
}

impl Stages {
    /// From mouth to ear.
    pub fn total(self) -> Duration {
        self.capture + self.block + self.network + self.playout + self.playback
    }
}

/// A way to send, and what it would have been like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// The transport of the packets.
    pub transport: Transport,
    /// What they contain.
    pub blocks: Blocks,
    /// What protects them.
    pub protection: Protection,
    /// The playout depth. The sound card takes a block at a time, so audio has to be there up to a block of the card before
    /// its turn; what is left of the depth is how much later than the fastest a block may come.
    pub depth: Duration,
    /// Where the time from mouth to ear goes.
    pub stages: Stages,
    /// Their sum.
    pub mouth_to_ear: Duration,
    /// Blocks measured.
    pub measured: u64,
    /// Share of them that did not come back.
    pub lost: Ratio,
    /// Share of them that came back too late for the depth.
    pub late: Ratio,
    /// Share of the audio that has to be concealed: lost or late, and not replaced by redundancy in time.
    pub concealed: Ratio,
    /// The longest time for which audio had to be concealed on end.
    pub longest_gap: Duration,
    /// BurstR of what is concealed: 1 of random loss, more of loss in bursts (ITU-T G.107).
    pub burst_r: f64,
    /// The transmission rating factor R of a call, with G.711 and the concealment of its Appendix I.
    pub r: f64,
    /// The mean opinion score estimated for it.
    pub mos: f64,
    /// Bits per second on the network in each direction, headers included.
    pub rate: Rate,
}

/// What was measured of a configuration, ready to be judged.
///
/// The whole variation of a round trip counts as that of the one way, and what was lost on either way as lost: both are
/// upper bounds of what a listener at the other end has to bear, since a round trip does not tell the two ways apart.
#[derive(Clone, Debug)]
pub struct Evidence {
    configuration: Configuration,
    network: Duration,
    /// Of each trace how much later than the fastest each block was back, in nanoseconds.
    extra: Vec<Vec<u64>>,
    measured: u64,
}

/// The same with redundancy.
#[derive(Clone, Debug)]
pub struct Protected<'e> {
    evidence: &'e Evidence,
    protection: Protection,
    /// How much later than the fastest the audio of each block is there, in their order.
    sequences: Vec<Vec<u64>>,
    /// The same, sorted.
    sorted: Vec<u64>,
}

impl Evidence {
    /// From the traces of a configuration and the fastest round trip of its blocks; `None` if none of them came back.
    pub fn new<'t>(
        configuration: Configuration,
        fastest: Duration,
        traces: impl Iterator<Item = &'t Trace>,
    ) -> Option<Evidence> {
        let later = |round_trip: &Option<Duration>| {
            round_trip.map_or(NEVER, |round_trip| round_trip.saturating_sub(fastest).as_nanos())
        };
        let extra: Vec<Vec<u64>> =
            traces.map(|trace| trace.round_trips.iter().map(later).collect()).collect();
        let came_back = extra.iter().flatten().any(|extra| *extra != NEVER);
        let measured = extra.iter().map(|extra| extra.len() as u64).sum();
        came_back.then_some(Evidence { configuration, network: fastest / 2, extra, measured })
    }

    /// With redundancy; `None` if there was too little to see what it does.
    pub fn protect(&self, protection: Protection) -> Option<Protected<'_>> {
        let interval = self.configuration.blocks.interval().as_nanos();
        let sequences: Vec<Vec<u64>> =
            self.extra.iter().flat_map(|extra| protected(extra, interval, protection)).collect();
        let mut sorted = sequences.concat();
        sorted.sort_unstable();
        (!sorted.is_empty()).then_some(Protected { evidence: self, protection, sequences, sorted })
    }

    /// A block of the sound card.
    fn block(&self) -> Duration {
        self.configuration.blocks.interval().min(LONGEST_BLOCK)
    }

    /// The depth that lets blocks be so much later than the fastest, in nanoseconds.
    fn depth(&self, extra: u64) -> Duration {
        let step = DEPTH_STEP.as_nanos();
        let depth = self.block().as_nanos().saturating_add(extra);
        Duration::from_nanos(depth.div_ceil(step).saturating_mul(step))
    }

    /// How much later than the fastest blocks may be with this depth, in nanoseconds; `None` if none comes in time.
    fn allowed(&self, depth: Duration) -> Option<u64> {
        depth.as_nanos().checked_sub(self.block().as_nanos())
    }

    /// The share of blocks that come too late for `depth`, without those that were lost; and of those.
    fn shares(&self, depth: Duration) -> (Ratio, Ratio) {
        let allowed = self.allowed(depth);
        let (mut late, mut lost) = (0u64, 0u64);
        for extra in self.extra.iter().flatten() {
            lost += u64::from(*extra == NEVER);
            late += u64::from(*extra != NEVER && is_late(*extra, allowed));
        }
        (share(late, self.measured), share(lost, self.measured))
    }
}

impl Protected<'_> {
    /// The smallest depth with which at most this share has to be concealed; `None` if more is lost.
    pub fn depth_for(&self, concealed: Ratio) -> Option<Duration> {
        let count = self.sorted.len();
        // One more than bounded may be late, or none: the epsilon keeps 1 % of 100 from being less than 1.
        let spare = ((count as f64 * concealed.value() + 1e-9) as usize).min(count - 1);
        let extra = Some(self.sorted[count - 1 - spare]).filter(|extra| *extra != NEVER);
        extra.map(|extra| self.evidence.depth(extra))
    }

    /// The depth with which nothing that arrived is late, nor would be if it were so many times as late; `None` if nothing
    /// arrived.
    pub fn depth_for_all(&self, times: f64) -> Option<Duration> {
        let latest = self.sorted.iter().rev().find(|extra| **extra != NEVER)?;
        Some(self.evidence.depth((*latest as f64 * times) as u64))
    }

    /// Depths that are worth a look: those with which one share more of the blocks is in time, from half of them on.
    pub fn depths(&self) -> impl Iterator<Item = Duration> + '_ {
        let shares = (500..=980).step_by(20).chain([990, 995, 998, 999, 1000]);
        let depths = shares
            .map(|share| self.sorted[PerMille(share).rank(self.sorted.len() as u64) as usize - 1])
            .filter(|extra| *extra != NEVER)
            .map(|extra| self.evidence.depth(extra));
        let mut last = None;
        depths.filter(move |depth| last.replace(*depth) != Some(*depth))
    }

    /// What it would have been like with this depth.
    pub fn at(&self, depth: Duration) -> Judgement {
        let Configuration { transport, blocks, .. } = self.evidence.configuration;
        let (losses, longest) = self.losses(depth);
        let (late, lost) = self.evidence.shares(depth);
        let block = self.evidence.block();
        let stages = Stages {
            capture: block,
            block: blocks.gathering().saturating_sub(block),
            network: self.evidence.network,
            playout: depth,
            playback: block,
        };
        let (concealed, burst_r) = (losses.ppl(), losses.burst_r());
        let r = EModel::call(&codec(), stages.total(), concealed, burst_r).r().clamp(0.0, 100.0);
        Judgement {
            transport,
            blocks,
            protection: self.protection,
            depth,
            stages,
            mouth_to_ear: stages.total(),
            measured: self.evidence.measured,
            lost,
            late,
            concealed,
            longest_gap: blocks.interval() * longest,
            burst_r,
            r,
            mos: mos(r),
            rate: rate(transport, blocks, self.protection),
        }
    }

    /// With the longest burst, in blocks.
    fn losses(&self, depth: Duration) -> (Losses, u64) {
        let (mut losses, mut longest) = (Losses::default(), 0);
        let allowed = self.evidence.allowed(depth);
        for sequence in &self.sequences {
            let mut burst = 0;
            for extra in sequence {
                let unheard = is_late(*extra, allowed);
                losses.messages += 1;
                losses.unheard += u64::from(unheard);
                losses.bursts += u64::from(unheard && burst == 0);
                burst = if unheard { burst + 1 } else { 0 };
                longest = longest.max(burst);
            }
        }
        (losses, longest)
    }
}

/// Bits per second on the network, headers included.
pub fn rate(transport: Transport, blocks: Blocks, protection: Protection) -> Rate {
    let (payload, count) = cost(protection);
    // Repeated payloads share a packet; parity has packets of its own.
    let audio = blocks.bytes() as f64 * payload;
    let parts = (audio / count / MOST_AUDIO as f64).ceil().max(1.0) * count;
    let headers = f64::from(transport.headers() + transport.session()) + Header::BYTES as f64;
    let bytes = audio + parts * headers;
    let seconds = blocks.interval().as_secs_f64();
    Rate::from_bits_per_second((bytes * 8.0 / seconds.max(1e-9)) as u64)
}

/// What calls are judged with.
fn codec() -> Codec {
    CODECS.iter().find(|codec| codec.name == "g711-plc").copied().unwrap_or(Codec::G711)
}

fn share(part: u64, whole: u64) -> Ratio {
    Ratio::new(part as f64 / whole.max(1) as f64).unwrap_or_default()
}

fn is_late(extra: u64, allowed: Option<u64>) -> bool {
    allowed.is_none_or(|allowed| extra > allowed)
}
