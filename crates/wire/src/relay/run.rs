//! The relay's thread.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use trunkline_core::{Duration, Port};
use trunkline_io::pace::reduce_timer_slack;
use trunkline_io::tun::Tun;
use trunkline_io::{Interest, MonotonicClock, Poller, Wakeup};

use super::command::{RelayCommand, RelayHandle};
use super::counters::RelayCounters;
use super::state::{CoreConfig, RelayCore};
use crate::device::{Device, Frame};

/// Frames that are taken from a device, or given to one, at a time.
const BATCH: usize = 64;
/// Batches that are taken at most when the relay is stopped: a queue of a device.
const LAST_BATCHES: usize = Tun::QUEUE as usize / BATCH;
/// A sleep without end, in lengths that every kernel knows.
const LONGEST: Duration = Duration::from_secs(3600);
/// What is due sooner than this is not worth a sleep.
const NEAR: Duration = Duration::from_micros(20);

/// How a relay keeps time.
#[derive(Clone, Copy, Debug)]
pub struct RelayOptions {
    /// The clock, whose epoch is the time zero of all links of a wire.
    pub clock: MonotonicClock,
    /// How long before a packet is due the relay stops sleeping: [`Duration::ZERO`] spares the processor,
    /// [`Duration::MAX`] never sleeps, and takes a core of its own.
    pub spin: Duration,
    /// The core on which it runs, if not on any.
    pub core: Option<usize>,
}

/// Starts the relay of the link `name`, on a thread of its own. `devices` are those of its stations, by port.
///
/// # Errors
/// If the system refuses the thread.
pub fn start(
    name: &str,
    config: CoreConfig,
    devices: Vec<Box<dyn Device>>,
    options: RelayOptions,
) -> io::Result<RelayHandle> {
    let (sender, commands) = channel();
    let wakeup = Arc::new(Wakeup::new()?);
    let woken = Arc::clone(&wakeup);
    // The kernel shows 15 bytes of it.
    let thread = std::thread::Builder::new()
        .name(format!("link-{name}"))
        .spawn(move || relay(config, devices, &options, &commands, &woken))?;
    Ok(RelayHandle::new(sender, wakeup, thread))
}

/// Relays on the calling thread, until it is told to stop or a device is gone.
///
/// # Errors
/// If a device is gone.
pub fn relay(
    config: CoreConfig,
    mut devices: Vec<Box<dyn Device>>,
    options: &RelayOptions,
    commands: &Receiver<RelayCommand>,
    wakeup: &Wakeup,
) -> io::Result<RelayCounters> {
    reduce_timer_slack();
    if let Some(core) = options.core {
        trunkline_io::process::pin_to_core(core)?;
    }
    let clock = options.clock;
    let mut core = RelayCore::new(config);
    let mut leaving: Vec<Frame> = Vec::with_capacity(BATCH);
    // Descriptors of its own, since the devices change.
    let descriptors = devices.iter().map(|device| device.descriptor()).chain([wakeup.as_fd()]);
    let descriptors: Vec<OwnedFd> =
        descriptors.map(|fd| fd.try_clone_to_owned()).collect::<io::Result<_>>()?;
    let mut poller = Poller::new(descriptors.iter().map(|fd| (fd.as_fd(), Interest::Read)));
    let is_stamped = devices.iter().any(|device| device.is_stamped());
    loop {
        let before = clock.now();
        let received = receive(&mut core, &mut devices, clock)?;
        // What the kernel had stamped before is all received now; of what it stamps later we know nothing.
        core.run(if is_stamped { before } else { clock.now() });
        send(&mut core, &mut devices, &mut leaving)?;
        core.pass();
        match obey(&mut core, &mut devices, commands) {
            Go::On => {}
            Go::Stop => {
                // What was sent before this was stopped has come to the link.
                for _ in 0..LAST_BATCHES {
                    if receive(&mut core, &mut devices, clock)? == 0 {
                        break;
                    }
                }
                core.run(clock.now());
                core.pass();
                return Ok(count(&mut core, &mut devices));
            }
        }
        if received == 0 {
            wait(&core, &mut poller, options, wakeup)?;
        }
    }
}

/// Takes what has arrived, and says how much that was.
fn receive(
    core: &mut RelayCore,
    devices: &mut [Box<dyn Device>],
    clock: MonotonicClock,
) -> io::Result<usize> {
    let mut total = 0;
    for (port, device) in (0..).map(Port).zip(devices) {
        let (buffers, mut intake) = core.intake(port);
        let has_more = device.receive(BATCH, &mut || buffers.get(), &mut |frame| {
            intake.take(Frame { at: clock.from_raw(frame.at.as_nanos()), ..frame });
            total += 1;
        })?;
        core.set_more(port, has_more);
    }
    Ok(total)
}

/// Sends what is due.
fn send(core: &mut RelayCore, devices: &mut [Box<dyn Device>], leaving: &mut Vec<Frame>) -> io::Result<()> {
    for (port, device) in (0..).map(Port).zip(devices) {
        loop {
            core.leaving(port, BATCH, leaving);
            if leaving.is_empty() {
                break;
            }
            let taken = device.send(leaving)?;
            core.count_lost(port, 0, (leaving.len() - taken) as u64);
            core.recycle(leaving);
        }
    }
    Ok(())
}

/// Sleeps until something arrives, is due soon, or is commanded.
fn wait(
    core: &RelayCore,
    poller: &mut Poller<'_>,
    options: &RelayOptions,
    wakeup: &Wakeup,
) -> io::Result<()> {
    if options.spin == Duration::MAX {
        core::hint::spin_loop();
        return Ok(());
    }
    let left = core.next_event().map_or(Duration::MAX, |next| next.since(options.clock.now()));
    let awake = options.spin.max(NEAR);
    if left > awake {
        poller.wait((left - awake).min(LONGEST))?;
        // Its place is behind those of the stations.
        if poller.ready().any(|place| place == core.stations()) {
            wakeup.clear();
        }
    }
    Ok(())
}

enum Go {
    On,
    Stop,
}

/// Does what was commanded.
fn obey(core: &mut RelayCore, devices: &mut [Box<dyn Device>], commands: &Receiver<RelayCommand>) -> Go {
    loop {
        match commands.try_recv() {
            Ok(RelayCommand::Change(change)) => core.change(change),
            // Whoever asked may have gone.
            Ok(RelayCommand::Up(up, done)) => {
                core.set_up(up);
                let _ = done.send(());
            }
            Ok(RelayCommand::Capture(capture, done)) => {
                core.set_capture(capture);
                let _ = done.send(());
            }
            Ok(RelayCommand::Count(answer)) => {
                let _ = answer.send(count(core, devices));
            }
            Ok(RelayCommand::Stop) | Err(TryRecvError::Disconnected) => return Go::Stop,
            Err(TryRecvError::Empty) => return Go::On,
        }
    }
}

fn count(core: &mut RelayCore, devices: &mut [Box<dyn Device>]) -> RelayCounters {
    for (port, device) in (0..).map(Port).zip(devices) {
        core.count_lost(port, device.overflowed(), 0);
    }
    core.counters()
}
