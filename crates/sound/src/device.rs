//! The device: opened once, kept open.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clocked::Clock;
use crate::cycle::{Callbacks, Cycle};
use crate::error::SoundError;
use crate::file::Reader;
use crate::hardware::{Hardware, Running};
use crate::jack::Jack;
use crate::place::Place;
use crate::shared::{Shared, Status, lock};
use crate::soft::{Soft, other_rate};
use crate::wanted::{Format, Wanted};

/// Makes the callbacks for a device of this format, or says why that cannot be (one sentence). Called for every device that
/// is opened: when a card comes back, its format may be another.
pub type Make = Box<dyn FnMut(Format) -> Result<Box<dyn Callbacks>, String> + Send>;

/// Opens what is wanted.
///
/// # Errors
/// If it cannot be had now. What goes away later is waited for instead.
pub fn open(wanted: Wanted, make: Make) -> Result<Device, SoundError> {
    wanted.check()?;
    let shared = Arc::new(Shared::default());
    shared.held.store(wanted.hold, Ordering::Relaxed);
    let (stop, stopped) = mpsc::channel();
    let (opened, first) = mpsc::channel();
    let keeper = Keeper { wanted, make, shared: Arc::clone(&shared), stopped, soft: None };
    let thread = std::thread::Builder::new()
        .name("sound-keeper".to_owned())
        .spawn(move || keeper.run(&opened))
        .map_err(|error| SoundError::Thread(error.to_string()))?;
    first.recv().unwrap_or_else(|_| Err(SoundError::Thread("it ended at once".to_owned())))?;
    Ok(Device { shared, stop: Some(stop), keeper: Some(thread) })
}

/// An open device. Dropping it closes it.
#[derive(Debug)]
pub struct Device {
    shared: Arc<Shared>,
    /// Dropped to stop.
    stop: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl Device {
    /// What it is, or was when it was last there.
    pub fn format(&self) -> Format {
        *lock(&self.shared.format)
    }

    /// What it is doing.
    pub fn status(&self) -> Status {
        match self.shared.failure() {
            Some(why) => Status::Failed { why },
            None if self.shared.finished.load(Ordering::Relaxed) => Status::Finished,
            None => lock(&self.shared.status).clone(),
        }
    }

    /// Stops a file that is captured where it is, or lets it go on. Other sources have no end, and are not stopped.
    pub fn hold(&self, held: bool) {
        self.shared.held.store(held, Ordering::Relaxed);
    }

    /// Blocks that were lost because somebody was too slow, as the device counts them: JACK's and ALSA's xruns, blocks that a
    /// paced thread or a file's reader or writer missed.
    pub fn xruns(&self) -> u64 {
        self.shared.xruns()
    }

    /// What would make the sound more dependable: [`REAL_TIME_ADVICE`], where that is refused.
    pub fn advice(&self) -> Option<&'static str> {
        self.shared.refused.load(Ordering::Relaxed).then_some(REAL_TIME_ADVICE)
    }
}

/// What to do where [`trunkline_io::process::run_in_real_time`] is refused: for the threads of a device, and as well for
/// those that carry its packets.
pub const REAL_TIME_ADVICE: &str = "the audio thread runs at normal priority, so audio may stutter on a busy \
                                    machine: allow real-time scheduling with the line `@audio - rtprio 95` in \
                                    `/etc/security/limits.d/audio.conf` for a user of the group `audio`, or with \
                                    `sudo setcap cap_sys_nice+ep` on the program";

impl Drop for Device {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(keeper) = self.keeper.take() {
            // If it has panicked, that was its last word.
            let _ = keeper.join();
        }
    }
}

/// How often a device is looked after, and how long a lost one is left alone.
const CHECK: Duration = Duration::from_millis(50);
const RETRY: Duration = Duration::from_millis(250);

/// The thread that opens a device and opens it again.
struct Keeper {
    wanted: Wanted,
    make: Make,
    shared: Arc<Shared>,
    stopped: Receiver<()>,
    soft: Option<Soft>,
}

impl Keeper {
    fn run(mut self, opened: &Sender<Result<(), SoundError>>) {
        let (home, returned) = mpsc::channel();
        let mut running = match self.open(false, &home) {
            Ok(running) => Some(running),
            Err(error) => {
                let _ = opened.send(Err(error));
                return;
            }
        };
        let _ = opened.send(Ok(()));
        let mut is_just_lost = false;
        loop {
            let pause = if running.is_some() || is_just_lost { CHECK } else { RETRY };
            match self.stopped.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
            match &mut running {
                // What is soft comes home with the end of what is lost or fails to start.
                Some(device) => {
                    if let Err(why) = device.check() {
                        *lock(&self.shared.status) = Status::Waiting { why };
                        running = None;
                        is_just_lost = true;
                        self.soft = returned.try_iter().last();
                    }
                }
                None => match self.open(true, &home) {
                    Ok(device) => {
                        running = Some(device);
                        *lock(&self.shared.status) = Status::Running;
                    }
                    Err(error) => {
                        *lock(&self.shared.status) = Status::Waiting { why: error.to_string() };
                        is_just_lost = false;
                        self.soft = returned.try_iter().last().or(self.soft.take());
                    }
                },
            }
        }
    }

    fn open(&mut self, again: bool, home: &Sender<Soft>) -> Result<Box<dyn Running>, SoundError> {
        let input = if self.soft.is_some() { None } else { Soft::input(&self.wanted)? };
        let kept = self.soft.as_ref().map(|soft| soft.format().sample_rate);
        let rate = input.as_ref().map(Reader::sample_rate).or(kept).or(self.wanted.sample_rate);
        let hardware = hardware(&self.wanted, rate, again, &self.shared)?;
        let mut format = hardware.format();
        if let Some(reader) = &input {
            if reader.sample_rate() != format.sample_rate {
                return Err(other_rate(reader.sample_rate(), format.sample_rate));
            }
            format.capture_channels = reader.channels();
        }
        let kept = match &self.soft {
            Some(soft) if soft.fits(format.sample_rate)? => self.soft.take(),
            _ => None,
        };
        if let Some(soft) = &kept {
            format.capture_channels = soft.format().capture_channels;
        }
        let made = (self.make)(format).map_err(SoundError::Refused);
        let (callbacks, soft) = match (made, kept) {
            (Ok(callbacks), Some(soft)) => (callbacks, soft),
            (Ok(callbacks), None) => (callbacks, Soft::make(&self.wanted, input, format, &self.shared)?),
            (Err(error), kept) => {
                self.soft = kept;
                return Err(error);
            }
        };
        let cycle = Cycle::new(callbacks, soft, home.clone(), Arc::clone(&self.shared), format);
        let running = hardware.start(cycle)?;
        *lock(&self.shared.format) = format;
        Ok(running)
    }
}

/// The hardware that drives both directions.
fn hardware(
    wanted: &Wanted,
    rate: Option<u32>,
    again: bool,
    shared: &Arc<Shared>,
) -> Result<Box<dyn Hardware>, SoundError> {
    let places = || wanted.capture.iter().chain(&wanted.playback).map(|(place, _)| place);
    let has_jack = places().any(|place| matches!(place, Place::Jack { .. }));
    let has_alsa = places().any(|place| matches!(place, Place::Alsa { .. }));
    match (has_jack, has_alsa) {
        (true, true) => Err(SoundError::Wanted(
            "JACK and ALSA have different clocks and cannot be the two directions of one device; use one of \
            them, with a file, a tone, noise or `none` for the other direction"
                .to_owned(),
        )),
        (true, false) => Ok(Box::new(Jack::open(wanted, again, Arc::clone(shared))?)),
        #[cfg(feature = "alsa")]
        (false, true) => Ok(Box::new(crate::alsa::Alsa::open(wanted, rate, Arc::clone(shared))?)),
        #[cfg(not(feature = "alsa"))]
        (false, true) => Err(SoundError::Alsa(
            "this `trunkline` was built without ALSA; build it with `cargo build --release --features alsa` (on Debian after \
             `apt install libasound2-dev pkg-config`), or use `jack`, which PipeWire serves too"
                .to_owned(),
        )),
        (false, false) => Ok(Box::new(Clock {
            format: Format {
                sample_rate: rate.unwrap_or(48_000),
                block_frames: wanted.block_frames.unwrap_or(128),
                ..wanted.channels()
            },
        })),
    }
}
