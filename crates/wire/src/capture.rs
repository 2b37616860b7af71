//! Captures of what crosses the ends of links, as files for Wireshark: one for each end, `LINK-HOST.pcapng`, with what the
//! host sends (outbound) and what the link hands to it (inbound). A packet that the link drops has a comment where it
//! entered that says why; a packet has the same identification in the files of both ends.
//!
//! A thread of its own writes them. When it cannot, because the disk is full, the capture ends and says so; the links go
//! on.

mod ends;
mod log;
mod pcapng;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use trunkline_io::MonotonicClock;

use crate::WireError;
use crate::device::Layer;
use crate::relay::Capture;
use ends::Ends;
use log::{Batch, Log, Tap};

/// How often the writer looks for what the relays have seen.
const LOOK: Duration = Duration::from_millis(20);

/// A link to be captured.
#[derive(Clone, Debug)]
pub struct CapturedLink {
    /// Its name.
    pub name: String,
    /// Its hosts, by port.
    pub hosts: Vec<String>,
    /// What its devices carry.
    pub layer: Layer,
}

/// A capture of all links of a wire that goes on until it is [finished](Self::finish) or dropped; may be used by several
/// threads.
#[derive(Debug)]
pub struct Captures {
    logs: Vec<Arc<Log>>,
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Why the capture has ended early.
    failure: Mutex<Option<String>>,
}

impl Captures {
    /// Makes the folder and the files, and begins. `clock` is that of the relays.
    ///
    /// # Errors
    /// If a file cannot be made or is there already, or two ends would have the same.
    pub fn start(
        directory: &Path,
        links: &[CapturedLink],
        clock: MonotonicClock,
    ) -> Result<Captures, WireError> {
        let refused = |(path, error): (PathBuf, io::Error)| WireError::State {
            path,
            problem: format!("the capture cannot be written: {error}"),
        };
        let mut names = BTreeSet::new();
        for name in
            links.iter().flat_map(|link| link.hosts.iter().map(|host| ends::file_name(&link.name, host)))
        {
            // A device, as /dev/full, is nothing that could be lost.
            if std::fs::metadata(directory.join(&name)).is_ok_and(|file| file.is_file()) {
                return Err(WireError::Captured(format!(
                    "`{}` exists already, and captures do not overwrite files; choose another folder, or remove it",
                    directory.join(name).display()
                )));
            }
            if let Some(name) = names.replace(name) {
                return Err(WireError::Captured(format!(
                    "the captures of two ends of links would both be `{name}`; rename one of the links or hosts"
                )));
            }
        }
        std::fs::create_dir_all(directory).map_err(|error| refused((directory.to_path_buf(), error)))?;
        let mut written = Vec::with_capacity(links.len());
        for link in links {
            let link_type = match link.layer {
                Layer::Ip => pcapng::LinkType::RawIp,
                Layer::Ethernet => pcapng::LinkType::Ethernet,
            };
            let ends = Ends::create(directory, &link.name, &link.hosts, link_type, clock).map_err(refused)?;
            written.push((Arc::new(Log::default()), ends));
        }
        let logs = written.iter().map(|(log, _)| Arc::clone(log)).collect();
        let shared = Arc::new(Shared::default());
        let writer = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("capture".into())
                .spawn(move || write(written, &shared))
                .map_err(WireError::system("starting the thread that writes captures"))?
        };
        Ok(Captures { logs, shared, writer: Mutex::new(Some(writer)) })
    }

    /// What the relay of the link at this place among those captured is to be given.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn of_link(&self, link: usize) -> Box<dyn Capture> {
        Box::new(Tap(Arc::clone(&self.logs[link])))
    }

    /// Why the capture has ended, if it has: one sentence. What was written until then can be read.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what is left, and says why that did not go well if it did not.
    ///
    /// # Errors
    /// In a sentence, if the capture is not complete.
    pub fn finish(&self) -> Result<(), String> {
        self.end();
        self.failure().map_or(Ok(()), Err)
    }

    fn end(&self) {
        self.shared.stop.store(true, Ordering::Release);
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            writer.thread().unpark();
            if writer.join().is_err() {
                self.shared.fail("the capture has ended: its thread panicked".to_owned());
            }
        }
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn fail(&self, reason: String) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
    }
}

/// The writer's thread.
fn write(mut links: Vec<(Arc<Log>, Ends)>, shared: &Shared) {
    let mut spare = Batch::default();
    let mut work = || -> Result<(), (PathBuf, io::Error)> {
        loop {
            // Looked at before the logs, so that nothing seen before the end is left there.
            let stop = shared.stop.load(Ordering::Acquire);
            for (log, ends) in &mut links {
                let batch = log.swap(std::mem::take(&mut spare));
                ends.take(&batch)?;
                spare = batch;
            }
            if stop {
                return links.iter_mut().try_for_each(|(_, ends)| ends.finish());
            }
            thread::park_timeout(LOOK);
        }
    };
    if let Err((path, error)) = work() {
        let why = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full".to_owned(),
            _ => error.to_string(),
        };
        let files: Vec<String> = links.iter().flat_map(|(_, ends)| ends.files()).collect();
        shared.fail(format!(
            "the capture has ended early: {}: {why}; these files hold what was written until then: {}",
            path.display(),
            files.join(", ")
        ));
    }
    for (log, _) in &links {
        log.close();
    }
}
