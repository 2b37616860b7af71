//! Commands and questions to a running relay.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use trunkline_core::{PacketId, Port, Time};
use trunkline_io::Wakeup;
use trunkline_network::{Medium, Outcome};

use super::counters::RelayCounters;

/// A change of a medium: it is given the link's virtual time, up to which everything has been done.
pub type Change = Box<dyn FnOnce(Time, &mut dyn Medium, &mut Outcome) + Send>;

/// Commands, which a relay obeys between two packets. Those with a sender of `()` answer when they are obeyed.
pub enum RelayCommand {
    /// Changes the medium.
    Change(Change),
    /// Takes the link down or up. While it is down, whatever arrives at either end is lost.
    Up(bool, Sender<()>),
    /// Says what has been counted.
    Count(Sender<RelayCounters>),
    /// Shows every packet from now on to this capture, or to none.
    Capture(Option<Box<dyn Capture>>, Sender<()>),
    /// Ends the relay; what has arrived is taken before, and what is on its way is lost.
    Stop,
}

/// Sees every packet of a link as it passes. Called on the relay's thread between two packets: whoever has to wait for a
/// disk hands a copy to a thread of its own.
///
/// A frame is what the devices carry, see [`Layer`](crate::device::Layer); a duplicate made by the link has its
/// original's number.
pub trait Capture: Send {
    /// A frame came from the station at `port`.
    fn arrived(&mut self, at: Time, port: Port, id: PacketId, frame: &[u8]);

    /// A frame is given to the station at `port`, with the marks and errors that the link has made.
    fn delivered(&mut self, at: Time, port: Port, id: PacketId, frame: &[u8]);

    /// A frame that came from `port` was dropped at `at`: for the name of a [`DropCause`](trunkline_network::DropCause),
    /// or [`LINK_DOWN`].
    fn dropped(&mut self, at: Time, port: Port, id: PacketId, frame: &[u8], cause: &'static str);

    /// All that happened up to `until` has been shown: what is shown later is not earlier.
    fn passed(&mut self, until: Time);
}

/// The cause of a drop while the link is down.
pub const LINK_DOWN: &str = "link-down";

/// A running relay, from the outside; may be used by several threads. The relay ends when this is dropped.
pub struct RelayHandle {
    commands: Sender<RelayCommand>,
    wakeup: Arc<Wakeup>,
    thread: Mutex<Option<JoinHandle<std::io::Result<RelayCounters>>>>,
}

/// The relay has ended: its devices are gone, or it was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the link's relay has ended")]
pub struct RelayEnded;

impl RelayHandle {
    pub(super) fn new(
        commands: Sender<RelayCommand>,
        wakeup: Arc<Wakeup>,
        thread: JoinHandle<std::io::Result<RelayCounters>>,
    ) -> RelayHandle {
        RelayHandle { commands, wakeup, thread: Mutex::new(Some(thread)) }
    }

    /// What has been counted so far.
    ///
    /// # Errors
    /// If the relay has ended.
    pub fn counters(&self) -> Result<RelayCounters, RelayEnded> {
        self.ask(RelayCommand::Count)
    }

    /// Lets `change` work on the medium, between two packets, and returns what it returns.
    ///
    /// # Errors
    /// If the relay has ended.
    pub fn change<R: Send + 'static>(
        &self,
        change: impl FnOnce(Time, &mut dyn Medium, &mut Outcome) -> R + Send + 'static,
    ) -> Result<R, RelayEnded> {
        self.ask(|answer| {
            RelayCommand::Change(Box::new(move |at, medium, out| {
                // Whoever asked may have gone.
                let _ = answer.send(change(at, medium, out));
            }))
        })
    }

    /// Takes the link down or up; returns when it is.
    ///
    /// # Errors
    /// If the relay has ended.
    pub fn set_up(&self, up: bool) -> Result<(), RelayEnded> {
        self.ask(|done| RelayCommand::Up(up, done))
    }

    /// Shows every packet to `capture`, or to none, that arrives after this has returned.
    ///
    /// # Errors
    /// If the relay has ended.
    pub fn capture(&self, capture: Option<Box<dyn Capture>>) -> Result<(), RelayEnded> {
        self.ask(|done| RelayCommand::Capture(capture, done))
    }

    /// Ends the relay and says what it has counted. After that it is as if it had never counted.
    ///
    /// # Errors
    /// That which ended it before: a device that is gone.
    pub fn stop(&self) -> std::io::Result<RelayCounters> {
        // One that has ended by itself need not be told.
        let _ = self.tell(RelayCommand::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread.map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(std::io::Error::other("the relay's thread panicked")),
            None => Ok(RelayCounters::default()),
        }
    }

    fn tell(&self, command: RelayCommand) -> Result<(), RelayEnded> {
        self.commands.send(command).map_err(|_| RelayEnded)?;
        self.wakeup.set();
        Ok(())
    }

    fn ask<R>(&self, command: impl FnOnce(Sender<R>) -> RelayCommand) -> Result<R, RelayEnded> {
        let (answer, answered): (Sender<R>, Receiver<R>) = channel();
        self.tell(command(answer))?;
        answered.recv().map_err(|_| RelayEnded)
    }
}

impl Drop for RelayHandle {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

impl core::fmt::Debug for RelayHandle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RelayHandle").finish_non_exhaustive()
    }
}
