//! Round trips of blocks.

use trunkline_audio::packet::Header;
use trunkline_calls::{Ended, Line as _, Refused, Session, Waiter, now};
use trunkline_core::{Duration, Time};

use super::Deadline;
use crate::plan::Step;
use crate::trace::Trace;

/// How long stragglers are waited for, as a multiple of the slowest round trip, and at least.
const STRAGGLERS: u64 = 3;
const LEAST_WAIT: Duration = Duration::from_millis(100);

/// A packet begins with its block's number and its own within the block.
const NUMBERS: usize = 8;

/// Blocks on their way and back.
struct Blocks {
    /// Packets of a block.
    packets: u32,
    /// When each block was handed over.
    handed: Vec<Time>,
    /// How many packets of each are out.
    out: Vec<u32>,
    /// How long the last of them took.
    trace: Trace,
    /// Blocks of which packets are out.
    awaited: usize,
    slowest: Duration,
}

/// Sends blocks at their pace, as a session of audio would, and waits until they are back.
pub(super) fn round_trips(mut session: Session, step: &Step, until: &Deadline) -> Result<Trace, String> {
    let form = step.configuration.blocks;
    let (packets, audio) = form.packets();
    let mut packet = vec![0; (audio as usize + Header::BYTES).max(NUMBERS)];
    let mut blocks = Blocks::new(packets as u32);
    let mut waiter = Waiter::default();
    let interval = form.interval();
    let begun = now() + step.settling;
    let end = begun + step.lasting;
    let mut due = begun;
    while due < end && !until.is_over() {
        let at = now();
        if at < due {
            waiter.wait(&session, None, due);
        } else {
            // A late thread sends what is due without delay, one block after the other.
            blocks.hand(&mut session, &mut packet, at)?;
            due += interval;
        }
        blocks.turn(&mut session)?;
    }
    let sent = now();
    while blocks.awaited > 0 && !until.is_over() {
        let patience = sent + (blocks.slowest * STRAGGLERS).max(LEAST_WAIT);
        if now() >= patience && !step.configuration.transport.is_reliable() {
            break;
        }
        waiter.wait(&session, None, (now() + LEAST_WAIT).min(until.get()));
        blocks.turn(&mut session)?;
    }
    session.close(now());
    Ok(blocks.trace)
}

impl Blocks {
    fn new(packets: u32) -> Blocks {
        Blocks {
            packets,
            handed: Vec::new(),
            out: Vec::new(),
            trace: Trace::default(),
            awaited: 0,
            slowest: Duration::ZERO,
        }
    }

    fn hand(&mut self, session: &mut Session, packet: &mut [u8], at: Time) -> Result<(), String> {
        let block = self.handed.len() as u32;
        self.handed.push(at);
        self.out.push(self.packets);
        self.trace.round_trips.push(None);
        self.awaited += 1;
        for part in 0..self.packets {
            packet[..4].copy_from_slice(&block.to_be_bytes());
            packet[4..NUMBERS].copy_from_slice(&part.to_be_bytes());
            match session.send(at, packet) {
                // What is not taken is lost, and shows as such.
                Ok(()) | Err(Refused::Full) => {}
                Err(refused) => return Err(refused.to_string()),
            }
        }
        Ok(())
    }

    fn turn(&mut self, session: &mut Session) -> Result<(), String> {
        session.turn(now(), &mut |at, packet| self.arrived(at, packet)).map_err(|Ended(why)| why)
    }

    /// A duplicate counts for the packet that it is a copy of; there are few enough of them.
    fn arrived(&mut self, at: Time, packet: &[u8]) {
        let Some(number) = packet.first_chunk().map(|bytes| u32::from_be_bytes(*bytes) as usize) else {
            return;
        };
        let (Some(handed), Some(out)) = (self.handed.get(number), self.out.get_mut(number)) else { return };
        if *out == 0 {
            return;
        }
        *out -= 1;
        if *out == 0 {
            let took = at.since(*handed);
            self.slowest = self.slowest.max(took);
            self.trace.round_trips[number] = Some(took);
            self.awaited -= 1;
        }
    }
}
