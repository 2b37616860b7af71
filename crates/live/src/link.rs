//! The near end's side of the session: the far end as a process or thread, and the pipes to it.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use trunkline_core::Duration;

use crate::error::LiveError;
use crate::events::Input;
use crate::far_end;
use crate::options::FarEnd;
use crate::place::{self, Place};
use crate::protocol::{FromFar, ToFar};

/// A far end that was started, and is ended again however the run ends.
pub(crate) struct Link {
    to: Option<Box<dyn Write + Send>>,
    peer: Peer,
}

enum Peer {
    Process(Child),
    Thread(Option<JoinHandle<()>>),
}

/// How long a far end that was told to end may take.
const PATIENCE: Duration = Duration::from_secs(2);

impl Link {
    /// Starts the far end at its place. What it says comes to `inbox`.
    pub(crate) fn start(
        far_end: &FarEnd,
        place: &dyn Place,
        inbox: SyncSender<Input>,
    ) -> Result<Link, LiveError> {
        match far_end {
            FarEnd::Process { program, arguments } => {
                let failed = |error| LiveError::Start { program: program.display().to_string(), error };
                let mut command = Command::new(program);
                command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
                // A group of its own: Ctrl-C is for the near end, which then ends this one in order.
                std::os::unix::process::CommandExt::process_group(&mut command, 0);
                let mut child = place.spawn(command).map_err(failed)?;
                let (to, from) = (child.stdin.take(), child.stdout.take());
                let mut link = Link { to: None, peer: Peer::Process(child) };
                let (Some(to), Some(from)) = (to, from) else {
                    return Err(failed(io::ErrorKind::BrokenPipe.into()));
                };
                link.to = Some(Box::new(to));
                listen(from, inbox)?;
                Ok(link)
            }
            FarEnd::Thread => {
                let pipes = io::pipe().and_then(|there| Ok((there, io::pipe()?)));
                let ((input, to), (from, output)) =
                    pipes.map_err(LiveError::system("a pipe cannot be made"))?;
                let serve = move || _ = far_end::serve(input, output);
                let start = || std::thread::Builder::new().name("far-end".to_owned()).spawn(serve);
                let thread = place::at(place, start).flatten();
                let thread = thread.map_err(LiveError::system("a thread cannot be started"))?;
                listen(from, inbox)?;
                Ok(Link { to: Some(Box::new(to)), peer: Peer::Thread(Some(thread)) })
            }
        }
    }

    /// Says something. If nobody hears it, the end of the other pipe will tell.
    pub(crate) fn say(&mut self, what: &ToFar) {
        if let Some(to) = &mut self.to {
            let _ = what.write(to);
        }
    }

    /// Ends the far end, by force if it does not end by itself, and says how it ended.
    pub(crate) fn close(&mut self) -> String {
        self.to = None;
        match &mut self.peer {
            Peer::Process(child) => reap(child),
            Peer::Thread(thread) => match thread.take().map(JoinHandle::join) {
                Some(Err(_)) => "has panicked".to_owned(),
                _ => "has ended".to_owned(),
            },
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

fn reap(child: &mut Child) -> String {
    let step = Duration::from_millis(2);
    for _ in 0..PATIENCE.as_nanos() / step.as_nanos() {
        match child.try_wait() {
            Ok(Some(status)) => return format!("has ended ({status})"),
            Ok(None) => trunkline_io::pace::sleep(step),
            Err(_) => break,
        }
    }
    // It may have ended by itself meanwhile: then there is nothing to kill.
    let _ = child.kill();
    match child.wait() {
        Ok(status) => format!("did not end by itself and was stopped ({status})"),
        Err(error) => format!("cannot be waited for ({error})"),
    }
}

/// Passes on what the far end says, until its pipe ends.
fn listen(mut from: impl Read + Send + 'static, inbox: SyncSender<Input>) -> Result<(), LiveError> {
    let hear = move || {
        loop {
            let (heard, last) = match FromFar::read(&mut from) {
                Ok(Some(frame)) => (Ok(frame), false),
                Ok(None) => (Err(None), true),
                Err(error) => (Err(Some(error.to_string())), true),
            };
            if inbox.send(Input::Far(heard)).is_err() || last {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("hear-far-end".to_owned()).spawn(hear);
    thread.map(|_| ()).map_err(LiveError::system("a thread cannot be started"))
}
