//! What listeners hear, beside the traces: one file of comma-separated values per flow that has any.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use trunkline_metrics::VoiceEvent;

/// The columns. Times are nanoseconds since the start of the repetition on the source's clock.
const HEAD: &str = "member,channel,event,at_ns,length_ns,samples\n";

/// The events of one repetition. Each is written at once: they are rare, and a kill loses none.
#[derive(Debug)]
pub(crate) struct EventFiles {
    flows: Vec<EventFile>,
    /// The first thing that went wrong.
    problem: Option<io::Error>,
}

#[derive(Debug)]
struct EventFile {
    path: PathBuf,
    /// Made for the first event.
    file: Option<File>,
}

impl EventFiles {
    /// Beside these traces, one of each flow.
    pub(crate) fn beside<'t>(traces: impl Iterator<Item = &'t Path>) -> EventFiles {
        let flows = traces.map(|trace| EventFile { path: beside(trace), file: None }).collect();
        EventFiles { flows, problem: None }
    }

    /// Takes an event of the flow with this index; of an unknown flow it is dropped.
    pub(crate) fn write(&mut self, flow: usize, event: &VoiceEvent) {
        if self.problem.is_none()
            && let Some(flow) = self.flows.get_mut(flow)
        {
            self.problem = flow.write(event).err();
        }
    }

    /// The first thing that went wrong so far: events after it are lost.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.problem
            .as_ref()
            .map_or(Ok(()), |problem| Err(io::Error::new(problem.kind(), problem.to_string())))
    }
}

impl EventFile {
    fn write(&mut self, event: &VoiceEvent) -> io::Result<()> {
        let VoiceEvent { member, channel, kind, at, length, samples } = *event;
        let (at, length, kind) = (at.as_nanos(), length.as_nanos(), kind.name());
        let mut lines = String::new();
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                lines.push_str(HEAD);
                self.file.insert(File::create(&self.path)?)
            }
        };
        lines.push_str(&format!("{member},{channel},{kind},{at},{length},{samples}\n"));
        file.write_all(lines.as_bytes())
    }
}

/// Removes the events beside a trace, if there are any.
pub(crate) fn remove(trace: &Path) -> io::Result<()> {
    match fs::remove_file(beside(trace)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The file of the events beside a trace.
pub(crate) fn beside(trace: &Path) -> PathBuf {
    trace.with_extension("events.csv")
}
