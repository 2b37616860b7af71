//! The network's thread of a session: it joins the rings of a device, the pipeline and the line.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, OnceLock};

use trunkline_audio::pipeline::Stages;
use trunkline_core::{Duration, Time};
use trunkline_io::Wakeup;

use super::desk::Ends;
use super::figures::{Counts, Figures};
use super::incoming::Incoming;
use super::link::Link;
use super::outgoing::{CaptureEnd, Outgoing};
use super::words::{Playing, Sending, Word};
use crate::line::Ended;
use crate::wait::Waiter;

/// How often it is told how a session is doing, and how often the other end is told.
const LOOK: Duration = Duration::from_millis(100);
const TELL: Duration = Duration::from_secs(1);
/// When everything is sent, how long it may take to come back.
const LEAVE: Duration = Duration::from_millis(1200);
/// The same until the other end has played it and has sent its last counts.
const LEAVE_PLAYER: Duration = Duration::from_secs(3);

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    /// What is captured goes there and comes back.
    Echo,
    /// What is captured is played there.
    Send,
    /// What comes is played here.
    Play,
    /// Both, with another program.
    Talk,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It was to be stopped.
    Stopped,
    /// All that was to be sent was sent.
    Done,
    /// The other end has gone, or the way there: why, in a sentence.
    Gone(String),
    /// The other end has reached a limit of recordings, and says which.
    Limit(String),
}

/// What the thread shares with the one that looks at it.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// End it.
    pub(super) stop: AtomicBool,
    /// The device has captured all that there is.
    pub(super) captured_all: AtomicBool,
    /// Blocks that were lost between the device and the network's thread.
    pub(super) left_out: AtomicU64,
    /// How it is doing.
    pub(super) figures: Mutex<Figures>,
    /// The error of the recording's file, once it cannot be written.
    pub(super) failure: OnceLock<String>,
}

/// A session, and what it joins.
pub(super) struct Worker<'w> {
    pub(super) aim: Aim,
    pub(super) session: &'w mut dyn Link,
    /// Unless it only plays.
    pub(super) outgoing: Option<Outgoing>,
    /// Unless it only sends.
    pub(super) incoming: Option<Incoming>,
    pub(super) ends: &'w mut Option<Ends>,
    pub(super) arriving: &'w mut Receiver<Ends>,
    pub(super) wakeup: &'w Wakeup,
    pub(super) shared: &'w Shared,
    /// Parts of a block: each counts.
    pub(super) parts: u64,
    /// Ends after this time.
    pub(super) lasting: Duration,
    pub(super) began: Time,
    /// Whether nothing more will be sent.
    pub(super) all_sent: bool,
    /// What the other end has told last.
    pub(super) sender: Sending,
    pub(super) player: Option<Playing>,
    /// True if samples of a file lose bits in the stream.
    pub(super) narrowed: bool,
    /// True if a limit of recordings is reached at the other end.
    pub(super) is_limited: bool,
}

impl Worker<'_> {
    /// Works until the session is over, and says how it went.
    pub(super) fn run(mut self) -> (End, Figures) {
        let end = self.work();
        self.hear();
        if let Some(playback) = self.ends.as_mut().and_then(|ends| ends.playback.as_mut()) {
            playback.finish(&self.sender, &end);
            playback.hear(&self.sender, self.session.line().features().reliable);
        }
        (end, self.figures(false))
    }

    fn work(&mut self) -> End {
        let mut waiter = Waiter::default();
        let (mut look, mut told) = (self.began + LOOK, None::<Time>);
        let mut leaving: Option<(End, Time)> = None;
        loop {
            self.wakeup.clear();
            let now = crate::now();
            self.attach(now);
            let due = match self.turn(now, leaving.is_none()) {
                Ok(due) => due,
                Err(Ended(why)) => {
                    // Who wants to leave does not mind that the other end leaves too.
                    let ended = if self.is_limited { End::Limit(why) } else { End::Gone(why) };
                    return leaving.map_or(ended, |(end, _)| end);
                }
            };
            if now >= look {
                look = now + LOOK;
                self.publish();
            }
            // A sender that has sent everything waits for what became of it.
            let every = if self.sender.blocks.is_some() { LOOK } else { TELL };
            if told.is_none_or(|told| now >= told + every) {
                told = Some(now);
                self.tell();
            }
            leaving = match leaving {
                Some((end, deadline)) if self.has_arrived() || now >= deadline => return end,
                None => {
                    let leave = if self.aim == Aim::Send { LEAVE_PLAYER } else { LEAVE };
                    self.is_over(now).map(|end| (end, now + leave))
                }
                leaving => leaving,
            };
            if leaving.is_some() && !core::mem::replace(&mut self.all_sent, true) {
                self.tell();
            }
            self.wait(&mut waiter, due.map_or(look, |due| look.min(due)));
        }
    }

    /// Takes the ends of a device that was opened meanwhile.
    fn attach(&mut self, now: Time) {
        while let Ok(new) = self.arriving.try_recv() {
            let again = self.ends.replace(new).is_some();
            if let Some(outgoing) = &mut self.outgoing
                && again
            {
                outgoing.begin_anew(now);
            }
        }
    }

    /// Sends what was captured, takes what has arrived, hears what was told. Returns when a missing block's turn comes for
    /// which others wait.
    fn turn(&mut self, now: Time, sending: bool) -> Result<Option<Time>, Ended> {
        let capture = self.ends.as_mut().and_then(|ends| ends.capture.as_mut());
        if let (Some(outgoing), Some(capture)) = (&mut self.outgoing, capture) {
            match sending {
                true => outgoing.turn(capture, self.session.line_mut())?,
                false => capture.clear(),
            }
        }
        let Worker { aim, session, outgoing, incoming, ends, .. } = self;
        let mut playback = ends.as_mut().and_then(|ends| ends.playback.as_mut());
        let result = session.line_mut().turn(now, &mut |at, packet| {
            // What another program sends is not what it was sent.
            let returns = outgoing.as_mut().filter(|_| *aim == Aim::Echo);
            let trips = returns.map(|outgoing| &mut outgoing.trips);
            if let Some(incoming) = incoming {
                incoming.take(at, packet, trips, playback.as_deref_mut());
            }
        });
        self.hear();
        result.map(|()| self.release())
    }

    fn release(&mut self) -> Option<Time> {
        let Worker { aim, outgoing, incoming, ends, .. } = self;
        let playback = ends.as_mut().and_then(|ends| ends.playback.as_mut());
        let trips = outgoing.as_mut().filter(|_| *aim == Aim::Echo).map(|outgoing| &mut outgoing.trips);
        incoming.as_mut()?.release(crate::now(), trips, playback)
    }

    fn hear(&mut self) {
        if let Some(playback) = self.ends.as_mut().and_then(|ends| ends.playback.as_mut()) {
            playback.hear(&self.sender, self.session.line().features().reliable);
            if let Some(why) = playback.failure() {
                self.shared.failure.get_or_init(|| why);
                self.shared.stop.store(true, Ordering::Relaxed);
            }
        }
        while let Some(told) = self.session.told() {
            match serde_json::from_value(told) {
                Ok(Word::Sending(sending)) => self.sender = sending,
                Ok(Word::Playing(playing)) => self.player = Some(playing),
                Ok(Word::Limit) => self.is_limited = true,
                // Of another version.
                Err(_) => {}
            }
        }
    }

    /// Whether nothing more is to be sent, and why.
    fn is_over(&mut self, now: Time) -> Option<End> {
        if self.shared.stop.load(Ordering::Relaxed) {
            return Some(End::Stopped);
        }
        let outgoing = self.outgoing.as_mut()?;
        if outgoing.is_done() || now.since(self.began) >= self.lasting {
            return Some(End::Done);
        }
        if self.shared.captured_all.load(Ordering::Relaxed) {
            if let Some(capture) = self.ends.as_mut().and_then(|ends| ends.capture.as_mut())
                && let Err(Ended(why)) = outgoing.flush(capture, self.session.line_mut())
            {
                return Some(End::Gone(why));
            }
            return Some(End::Done);
        }
        None
    }

    /// Whether the turn of all that was sent has come, as far as that can be known.
    fn has_arrived(&self) -> bool {
        match (self.aim, &self.outgoing) {
            (Aim::Echo, Some(outgoing)) => outgoing.trips.out() == 0,
            (Aim::Send, Some(outgoing)) if self.session.is_answered() => {
                let sent = outgoing.blocks * self.parts;
                // A player that does not know the end yet has turns beyond it.
                self.player.is_some_and(|player| player.blocks == Some(sent) && player.expected >= sent)
            }
            _ => true,
        }
    }

    fn wait(&self, waiter: &mut Waiter, until: Time) {
        waiter.wait(self.session.line(), Some(self.wakeup), until);
    }

    /// Tells the other end what it cannot know.
    fn tell(&mut self) {
        let now = crate::now();
        // At the end both ends give averages of the whole session, so the sender's are of the whole too.
        let figures = self.figures(!self.all_sent);
        let Stages { capture, block, packet, playout, resampling, playback, network } = figures.stages;
        let word = match self.aim {
            Aim::Echo | Aim::Talk => return,
            Aim::Send => {
                let offset = self.session.offset(now).map(|offset| (offset.estimate, offset.bound));
                let outgoing = self.outgoing.as_ref().filter(|_| self.all_sent);
                let blocks = outgoing.map(|outgoing| outgoing.blocks * self.parts);
                let frames = outgoing.and_then(|outgoing| outgoing.frames);
                let left_out = self.shared.left_out.load(Ordering::Relaxed);
                let capturing = self.ends.as_ref().and_then(|ends| ends.capture.as_ref());
                let resampled = capturing.is_some_and(CaptureEnd::is_resampled);
                let narrowed = self.narrowed;
                Word::Sending(Sending {
                    offset,
                    capture,
                    block,
                    packet,
                    blocks,
                    frames,
                    left_out,
                    resampled,
                    narrowed,
                })
            }
            Aim::Play => {
                let Counts {
                    received, expected, lost, late, concealed, recovered, reordered, duplicate, ..
                } = figures.counts;
                Word::Playing(Playing {
                    network: network.zip(figures.network_bound),
                    playout,
                    resampling,
                    playback,
                    drift_ppm: figures.drift_ppm,
                    received,
                    expected,
                    lost,
                    late,
                    concealed,
                    recovered,
                    reordered,
                    duplicate,
                    blocks: self.sender.blocks,
                })
            }
        };
        // The next turn tells why, if it cannot be told.
        let _ = self.session.tell(&word);
    }

    fn publish(&mut self) {
        let figures = self.figures(true);
        // Whoever looks at it now sees it the next time.
        if let Ok(mut shared) = self.shared.figures.try_lock() {
            *shared = figures;
        }
    }
}
