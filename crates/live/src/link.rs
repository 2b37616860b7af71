//! The near end's side of the session: the far end as a process, a thread or another host, and the pipes to it.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use trunkline_core::{Duration, Time};
use trunkline_io::clock;
use trunkline_peer::clock::{Pace, TimeRequests};
use trunkline_peer::frames::{self, FrameSink, FrameSource, PipeReader, PipeWriter};
use trunkline_peer::message::Purpose;

use crate::error::LiveError;
use crate::events::Input;
use crate::far_end;
use crate::options::FarEnd;
use crate::place::{self, Place};
use crate::protocol::{FromFar, OLD_FAILURE, ToFar};
use crate::relation::FIRST_EXCHANGES;

/// A far end that was started, and is ended again however the run ends.
pub(crate) struct Link {
    to: To,
    peer: Peer,
}

/// The pipe to the far end, until it is closed.
type To = Arc<Mutex<Option<Box<dyn FrameSink>>>>;

enum Peer {
    Process(Child),
    Thread(Option<JoinHandle<()>>),
    /// On another host: its process is not ours to end.
    Elsewhere,
}

/// How often a far end with a clock of its own is asked for the time.
const PACE: Pace =
    Pace { first: FIRST_EXCHANGES, fast: Duration::from_millis(4), slow: Duration::from_millis(20) };

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
                let mut link = Link { to: To::default(), peer: Peer::Process(child) };
                let (Some(to), Some(from)) = (to, from) else {
                    return Err(failed(io::ErrorKind::BrokenPipe.into()));
                };
                link.to = greeted(to);
                listen(reader(from), false, inbox)?;
                Ok(link)
            }
            FarEnd::Thread => {
                let pipes = io::pipe().and_then(|there| Ok((there, io::pipe()?)));
                let ((input, to), (from, output)) =
                    pipes.map_err(LiveError::system("cannot create a pipe"))?;
                let serve = move || _ = far_end::serve(input, output);
                let start = || std::thread::Builder::new().name("far-end".to_owned()).spawn(serve);
                let thread = place::at(place, start).flatten();
                let thread = thread.map_err(LiveError::system("cannot start a thread"))?;
                listen(reader(from), false, inbox)?;
                Ok(Link { to: greeted(to), peer: Peer::Thread(Some(thread)) })
            }
            FarEnd::Channel(channel) => {
                let (from, to) = channel.take().ok_or_else(|| LiveError::FarEndLost {
                    reason: "was already reached over this connection".to_owned(),
                    outcome: Box::default(),
                })?;
                listen(from, true, inbox)?;
                Ok(Link { to: Arc::new(Mutex::new(Some(to))), peer: Peer::Elsewhere })
            }
        }
    }

    /// Says something. If nobody hears it, the end of the other pipe will tell.
    pub(crate) fn say(&mut self, what: &ToFar) {
        if let Some(to) = self.to.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            let _ = frames::send(to.as_mut(), what);
        }
    }

    /// Asks the far end for the time from now on until the link is closed.
    pub(crate) fn ask(&self) -> Result<(), LiveError> {
        let to = Arc::clone(&self.to);
        let ask = move || {
            let now = || Time::from_nanos(clock::raw_now());
            let mut requests = TimeRequests::new(PACE);
            loop {
                match to.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                    Some(to) => {
                        if let Some(request) = requests.poll(now())
                            && frames::send(to.as_mut(), &ToFar::Time(request)).is_err()
                        {
                            return;
                        }
                    }
                    None => return,
                }
                trunkline_io::pace::sleep(requests.next_timeout().since(now()));
            }
        };
        let thread = std::thread::Builder::new().name("ask-far-end".to_owned()).spawn(ask);
        thread.map(|_| ()).map_err(LiveError::system("cannot start a thread"))
    }

    /// Ends the far end, by force if it does not end by itself, and says how it ended.
    pub(crate) fn close(&mut self) -> String {
        *self.to.lock().unwrap_or_else(PoisonError::into_inner) = None;
        match &mut self.peer {
            Peer::Process(child) => reap(child),
            Peer::Thread(thread) => match thread.take().map(JoinHandle::join) {
                Some(Err(_)) => "has panicked".to_owned(),
                _ => "has ended".to_owned(),
            },
            Peer::Elsewhere => "was lost: its host closed the connection".to_owned(),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

/// The pipe to a process or thread that we have started, and which we greet.
fn greeted(to: impl Write + Send + 'static) -> To {
    let mut to = PipeWriter::new(to, FAR_END);
    // If nobody reads it, the end of the other pipe will tell.
    let _ = frames::greet(&mut to, Purpose::FarEnd);
    Arc::new(Mutex::new(Some(Box::new(to))))
}

fn reader(from: impl Read + Send + 'static) -> Box<dyn FrameSource> {
    Box::new(PipeReader::new(from, FAR_END))
}

const FAR_END: &str = "the far end";

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
        Ok(status) => format!("did not exit and was killed ({status})"),
        Err(error) => format!("cannot be waited for ({error})"),
    }
}

/// Passes on what the far end says, until its pipe ends.
fn listen(
    mut from: Box<dyn FrameSource>,
    mut is_welcome: bool,
    inbox: SyncSender<Input>,
) -> Result<(), LiveError> {
    let hear = move || {
        loop {
            let (said, last) = match next(from.as_mut(), &mut is_welcome) {
                Ok(Some(said)) => (Ok(said), false),
                Ok(None) => (Err(None), true),
                Err(error) => (Err(Some(error.to_string())), true),
            };
            if inbox.send(Input::Far { heard: clock::raw_now(), said }).is_err() || last {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("hear-far-end".to_owned()).spawn(hear);
    thread.map(|_| ()).map_err(LiveError::system("cannot start a thread"))
}

/// The next message of the far end, after its welcome.
fn next(from: &mut dyn FrameSource, is_welcome: &mut bool) -> Result<Option<FromFar>, LiveError> {
    if !*is_welcome {
        match from.next_frame()? {
            None => return Ok(None),
            Some(frame) if frame.tag == OLD_FAILURE => return Err(LiveError::TooOld(FAR_END)),
            Some(frame) => frames::welcomed(frame, FAR_END)?,
        };
        *is_welcome = true;
    }
    let Some(frame) = from.next_frame()? else { return Ok(None) };
    FromFar::from_frame(frame).map(Some).map_err(|error| LiveError::Protocol(error.to_string()))
}
