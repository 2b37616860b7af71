//! Our end of a conversation with another program, in real time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use trunkline_audio::pipeline::Block;
use trunkline_audio::playout::Origin;
use trunkline_calls::foreign::Foreign;
use trunkline_calls::{Waiter, now};
use trunkline_core::{Duration, Time};

use crate::PATIENCE;
use crate::tone::tone;

/// What one has heard.
#[derive(Debug, Default)]
pub struct Heard {
    /// The first channel.
    pub samples: Vec<f32>,
    /// Numbers of the blocks.
    pub blocks: Vec<u32>,
    /// What the line ended with.
    pub ended: Option<String>,
}

/// Sends a tone of this frequency on all channels, if the conversation sends anything, and listens, until `is_enough` or
/// the other end leaves; then leaves too.
///
/// # Panics
/// If it is not enough within a minute.
pub fn converse(mut foreign: Foreign, hz: f64, mut is_enough: impl FnMut(&Heard) -> bool) -> Heard {
    let mut heard = Heard::default();
    let (began, started) = (now(), Instant::now());
    let mut waiter = Waiter::default();
    let mut sent = 0u32;
    while heard.ended.is_none() && !is_enough(&heard) {
        assert!(started.elapsed() < PATIENCE, "heard {} blocks only", heard.blocks.len());
        let mut due = now() + Duration::from_millis(10);
        if let Some((stream, packer)) = &mut foreign.sends {
            let (frames, rate) = (stream.block_frames, stream.sample_rate);
            let time = |block: u32| {
                began
                    + Duration::from_nanos(
                        u64::from(block) * u64::from(frames) * 1_000_000_000 / u64::from(rate),
                    )
            };
            while time(sent) <= now() {
                let mono = tone(hz, rate, u64::from(sent) * u64::from(frames), frames as usize);
                let samples: Vec<f32> =
                    mono.iter().flat_map(|&sample| vec![sample; usize::from(stream.channels)]).collect();
                let block = Block {
                    sequence: sent,
                    captured: time(sent),
                    arrived: Time::ZERO,
                    first_channel: 0,
                    channels: stream.channels,
                    samples: &samples,
                    origin: Origin::Sent,
                };
                let line = &mut foreign.line;
                packer.pack(&block, &mut |packet| line.send(now(), packet).expect("loopback takes it"));
                sent += 1;
            }
            due = time(sent);
        }
        waiter.wait(&*foreign.line, None, due);
        let receives = &mut foreign.receives;
        let turned = foreign.line.turn(now(), &mut |at, packet| {
            let Some((_, unpacker)) = receives else { return };
            let unpacked = unpacker.unpack(at, packet, &mut |block| {
                heard.samples.extend(block.samples.iter().step_by(usize::from(block.channels)));
                heard.blocks.push(block.sequence);
            });
            assert_eq!(unpacked, Ok(()), "{packet:02x?}");
        });
        heard.ended = turned.err().map(|ended| ended.to_string());
    }
    foreign.line.close(now());
    heard
}

/// The same in a thread for as long as `meanwhile` takes.
pub fn converse_while<T>(foreign: Foreign, hz: f64, meanwhile: impl FnOnce() -> T) -> (Heard, T) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let end = scope.spawn(|| converse(foreign, hz, |_| is_over.load(Ordering::Relaxed)));
        // Whatever happens there, the thread ends.
        let _over = SetWhenDropped(&is_over);
        let result = meanwhile();
        is_over.store(true, Ordering::Relaxed);
        (end.join().expect("it has not panicked"), result)
    })
}

struct SetWhenDropped<'b>(&'b AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
