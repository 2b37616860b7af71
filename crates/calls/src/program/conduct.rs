//! One session from its beginning to its end: a thread that works for it, and one that looks at it.

use std::sync::atomic::Ordering;
use std::sync::{PoisonError, mpsc};
use std::thread;

use trunkline_core::Duration;
use trunkline_io::{pace, process};
use trunkline_sound::Status;

use super::desk::Desk;
use super::figures::Figures;
use super::incoming::Incoming;
use super::link::{Link, Ways};
use super::outgoing::Outgoing;
use super::words::Sending;
use super::worker::{Aim, End, Shared, Worker};
use super::{Event, ProgramError};

/// How often is looked whether it has to end: what the end of a file holds back must not be late.
const WATCH: std::time::Duration = std::time::Duration::from_millis(10);
/// How often is told how it is doing.
const LOOK: Duration = Duration::from_millis(100);

/// The thread of the network comes right behind those of sound, whose priority under JACK is 5 or more.
pub(crate) const PRIORITY: u8 = 4;

const ADVICE: &str = "the network thread runs at normal priority, so audio may be late on a busy machine: \
    allow real-time scheduling with the line `@audio - rtprio 95` in `/etc/security/limits.d/audio.conf` for \
    a user of the group `audio`, or with `sudo setcap cap_sys_nice+ep` on the program";

/// What ends a session from this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) blocks: u64,
    pub(super) lasting: Duration,
}

impl Limits {
    /// Until it is stopped.
    pub(super) const NONE: Limits = Limits { blocks: u64::MAX, lasting: Duration::MAX };
}

/// Joins a session with a device until it ends, and says how it ended and how it went.
///
/// # Errors
/// The device or the system does not allow it.
pub(super) fn conduct(
    session: &mut dyn Link,
    ways: Ways,
    desk: &mut Desk,
    aim: Aim,
    limits: Limits,
    is_stopped: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(End, Figures), ProgramError> {
    let shared = Shared::default();
    let stream = desk.stream;
    let outgoing = ways.packer.map(|packer| Outgoing::new(&stream, packer, limits.blocks));
    let incoming = ways.unpacker.map(|unpacker| Incoming::new(unpacker, &stream));
    desk.begin();
    let narrowed = desk.narrowed;
    let Desk { device, wakeup, arriving, ends, overflows, .. } = desk;
    let worker = Worker {
        aim,
        session,
        outgoing,
        incoming,
        ends,
        arriving,
        wakeup,
        shared: &shared,
        parts: stream.parts() as u64,
        lasting: limits.lasting,
        began: crate::now(),
        all_sent: false,
        sender: Sending::default(),
        player: None,
        is_limited: false,
        narrowed,
    };
    let (refused, told) = mpsc::channel();
    let looking = thread::current();
    let overflowed = overflows.captured.load(Ordering::Relaxed);
    let (lost, mut status, mut failure) = (device.xruns(), Status::Running, None);
    let complete = |mut figures: Figures| {
        figures.counts.xruns = device.xruns() - lost;
        figures.counts.overflowed += overflows.captured.load(Ordering::Relaxed) - overflowed;
        figures
    };
    let (end, figures) = thread::scope(|scope| {
        let work = thread::Builder::new().name("network".to_owned()).spawn_scoped(scope, move || {
            pace::reduce_timer_slack();
            if process::run_in_real_time(PRIORITY).is_err() {
                // Whoever would hear it may be gone.
                let _ = refused.send(());
            }
            let result = worker.run();
            looking.unpark();
            result
        });
        let work = work.map_err(ProgramError::system("cannot start the network thread"))?;
        let (mut advice, mut look) = (None, crate::now());
        while !work.is_finished() {
            thread::park_timeout(WATCH);
            if is_stopped() {
                shared.stop.store(true, Ordering::Relaxed);
                wakeup.set();
            }
            if advice.is_none() {
                advice = device.advice().or_else(|| told.try_recv().ok().map(|()| ADVICE));
                advice.iter().for_each(|advice| tell(Event::Advice(advice)));
            }
            let left_out = device.xruns() - lost + overflows.captured.load(Ordering::Relaxed) - overflowed;
            shared.left_out.store(left_out, Ordering::Relaxed);
            let now = device.status();
            if now != status {
                match &now {
                    Status::Waiting { why } => tell(Event::DeviceLost(why)),
                    Status::Finished => {
                        shared.captured_all.store(true, Ordering::Relaxed);
                        wakeup.set();
                    }
                    Status::Failed { why } => {
                        failure = Some(why.clone());
                        shared.stop.store(true, Ordering::Relaxed);
                        wakeup.set();
                    }
                    _ => tell(Event::DeviceBack),
                }
                status = now;
            }
            if crate::now() >= look {
                look = crate::now() + LOOK;
                let figures = shared.figures.lock().unwrap_or_else(PoisonError::into_inner).clone();
                tell(Event::Going(&complete(figures)));
            }
        }
        work.join().map_err(|_| ProgramError::Panicked)
    })?;
    // A file waits for the next session.
    device.hold(true);
    match failure.or(shared.failure.into_inner()) {
        Some(why) => Err(ProgramError::Device(why)),
        None => Ok((end, complete(figures))),
    }
}

/// Waits until what has arrived is played.
pub(super) fn play_out(figures: &Figures) {
    let stages = figures.stages;
    pace::sleep(stages.playout + stages.resampling + stages.playback + stages.playback + MARGIN);
}

const MARGIN: Duration = Duration::from_millis(50);
