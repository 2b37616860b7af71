//! `trunkline receive`: what senders send is played or recorded here.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use trunkline_audio::pipeline::{PlayerSettings, Stream};
use trunkline_core::Duration;
use trunkline_io::{Wakeup, pace};
use trunkline_peer::Peer;
use trunkline_sound::{Place, SoundError, Wanted};

use super::conduct::{Limits, conduct, play_out};
use super::desk::Desk;
use super::exact::{Recording, not_a_file, refusal};
use super::link::Ways;
use super::recordings::{RecordingLimits, Recordings};
use super::send::encoding;
use super::words::Word;
use super::worker::{Aim, End};
use super::{Event, Observer, ProgramError};
use crate::line::Ended;
use crate::request::{Facts, Request};
use crate::server::{Handler, Server, ServerOptions, Stop};
use crate::session::Session;
use crate::settings::Settings;

/// The end of what a sender sent is played when it has gone; who comes next waits so long for that.
const HANDOVER: Duration = Duration::from_secs(2);

/// How what comes is played.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceiveOptions {
    /// Where the control port is, and for how many clients.
    pub server: ServerOptions,
    /// Where audio goes to. Each session opens it anew, with the channels of its stream; sessions after the first record
    /// into `take-2.wav`, `take-3.wav` and so on, without replacing files that exist.
    pub to: Place,
    /// Channels of the device, whatever comes; those of the stream if absent.
    pub channels: Option<u16>,
    /// Whether streams of more channels are mixed down rather than refused.
    pub mix: bool,
    /// So many senders are played at once; more are refused.
    pub senders: usize,
    /// Frames of a block of the device; JACK has its own.
    pub block_frames: Option<u32>,
    /// Whether exactly the samples that were sent are recorded, in the file [`to`](Self::to): nothing is resampled or concealed.
    pub exact: bool,
    /// How much is recorded, where [`to`](Self::to) is a file.
    pub recordings: RecordingLimits,
    /// How it is played.
    pub player: PlayerSettings,
    /// Whether it ends with the first session.
    pub once: bool,
    /// The JACK server, if not the usual one.
    pub jack_server: Option<String>,
}

impl ReceiveOptions {
    /// One sender after the other to `to`.
    pub fn new(to: Place) -> ReceiveOptions {
        ReceiveOptions {
            server: ServerOptions::default(),
            to,
            channels: None,
            mix: false,
            senders: 1,
            block_frames: None,
            exact: false,
            recordings: RecordingLimits::default(),
            player: PlayerSettings::default(),
            once: false,
            jack_server: None,
        }
    }

    /// The device for a session that goes `to` this place.
    pub(super) fn wanted(&self, stream: &Stream, to: Place) -> Wanted {
        // One channel is heard on both ears, but recorded once.
        let ears = if matches!(to, Place::Jack { .. } | Place::Alsa { .. }) { 2 } else { 1 };
        Wanted {
            encoding: encoding(stream.codec, Some(&to)),
            playback: Some((to, self.channels.unwrap_or(stream.channels.max(ears)))),
            sample_rate: Some(stream.sample_rate),
            block_frames: self.block_frames,
            server: self.jack_server.clone(),
            ..Wanted::default()
        }
    }

    /// Options of sockets: nothing here sends to speak of.
    pub(super) fn settings(&self) -> Settings {
        Settings::default()
    }
}

/// Plays what senders send until it is stopped; `ready` is told where once the control port is open.
///
/// # Errors
/// The control port cannot be opened, there is no folder to record into, or nothing can be played there.
pub fn receive(
    options: ReceiveOptions,
    stop: &Stop,
    observer: &dyn Observer,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), ProgramError> {
    options.to.check_playback()?;
    if options.exact && !matches!(options.to, Place::File(_)) {
        return Err(SoundError::Wanted(not_a_file(&options.to)).into());
    }
    check_folder(&options.to)?;
    let server = options.server.clone();
    let sessions = AtomicU64::new(0);
    let (once, failure) = (options.once, Mutex::new(None));
    let playing = AtomicUsize::new(0);
    let recordings = Recordings::new(options.recordings);
    let receiver = Receiver { options, observer, sessions, playing, recordings, failure: &failure };
    let server = Server::bind(server, receiver)?;
    ready(server.local_address().map_err(ProgramError::system("the control port has no address"))?);
    server.serve(stop)?;
    drop(server);
    // Of several sessions, each has told how it ended.
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner).filter(|_| once) {
        Some(why) => Err(ProgramError::NotWhole(why)),
        None => Ok(()),
    }
}

/// A recording that cannot be made is better known now than when the first sender comes.
fn check_folder(to: &Place) -> Result<(), SoundError> {
    let Place::File(path) = to else { return Ok(()) };
    match path.parent() {
        Some(folder) if folder != Path::new("") && !folder.is_dir() => {
            let why = "cannot be written: its folder does not exist".to_owned();
            Err(SoundError::File { path: path.clone(), why })
        }
        _ => Ok(()),
    }
}

struct Receiver<'o> {
    options: ReceiveOptions,
    observer: &'o dyn Observer,
    sessions: AtomicU64,
    /// Senders that are played now.
    playing: AtomicUsize,
    recordings: Recordings,
    /// Why the last session failed, or why a recording that had to be whole is not.
    failure: &'o Mutex<Option<String>>,
}

impl Handler for Receiver<'_> {
    fn facts(&self) -> Facts {
        let most = if self.options.mix { None } else { self.options.channels };
        Facts { channels: most.unwrap_or(Stream::MOST_CHANNELS), ..Facts::default() }
    }

    fn paired(&self, from: SocketAddr, outcome: Result<&Peer, &str>) {
        let outcome = outcome.map(|client| client.name.as_str());
        self.observer.event(0, Event::Pairing { from, outcome });
    }

    fn admit(&self, request: &Request, _: SocketAddr) -> Result<(), String> {
        let stream = request.stream.as_ref().ok_or("the sender must describe its stream")?;
        stream.check().map_err(|error| error.to_string())?;
        if let Some(why) = self.options.exact.then(|| refusal(stream, &self.options.to)).flatten() {
            return Err(why);
        }
        if let Some(channels) = self.options.channels
            && stream.channels > channels
            && !self.options.mix
        {
            return Err(format!(
                "it plays {channels} channels, but the stream has {}; send fewer, or start the receiver with \
                `--mix`",
                stream.channels
            ));
        }
        self.recordings.check(&self.options.to)?;
        let deadline = crate::now() + HANDOVER;
        while self.playing.load(Ordering::Relaxed) >= self.options.senders {
            if crate::now() >= deadline {
                return Err(match self.options.senders {
                    1 => "it is playing another sender; `--senders 2` allows two at once".to_owned(),
                    senders => format!("it plays {senders} senders already; `--senders` allows more"),
                });
            }
            pace::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn play(&self, session: &mut Session, stop: &Stop) {
        let _playing = match Playing::begin(&self.playing, self.options.senders) {
            Ok(playing) => playing,
            // Two asked at the same moment.
            Err(why) => return session.end(crate::now(), &Ended(why)),
        };
        let number = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let Request { transport, stream, .. } = session.request();
        let (transport, stream) = (transport.to_string(), *stream);
        let tell = |event: Event<'_>| self.observer.event(number, event);
        tell(Event::Began { peer: session.peer(), transport, stream });
        if let Err(error) = self.conduct(session, stop, number) {
            let why = error.to_string();
            self.fail(why.clone());
            tell(Event::Ended { figures: None, why: Some(&why) });
            session.end(crate::now(), &Ended(format!("the receiver stopped: {why}")));
        }
        if self.options.once {
            stop.stop();
        }
    }
}

impl Receiver<'_> {
    fn fail(&self, why: String) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    fn conduct(&self, session: &mut Session, stop: &Stop, number: u64) -> Result<(), ProgramError> {
        let mut tell = |event: Event<'_>| self.observer.event(number, event);
        let Some(stream) = session.request().stream else { return Ok(()) };
        let wakeup = Wakeup::new().map_err(ProgramError::system("cannot create a pipe"))?;
        let to = self.recordings.next(&self.options.to, &mut tell)?;
        // It counts from the moment at which its file is there.
        let recorded = self.recordings.begin(&to);
        let mut wanted = self.options.wanted(&stream, to.clone());
        let mut recording = None;
        if self.options.exact {
            recording = Some(Recording::create(&to, &stream)?);
            // Nothing is played: what arrives goes to the file as it is.
            wanted.playback = Some((Place::None, stream.channels));
        }
        let player = (self.options.player, self.options.mix);
        let mut desk = Desk::open(wanted, move |_| Ok(stream), player, Arc::new(wakeup))?;
        recording.into_iter().for_each(|recording| desk.record(recording));
        let is_stopped = || stop.is_stopped() || recorded.as_ref().is_some_and(|recorded| recorded.is_over());
        let ways = Ways::native(&stream, Aim::Play)?;
        let limits = Limits::NONE;
        let (end, figures) = conduct(session, ways, &mut desk, Aim::Play, limits, &is_stopped, &mut tell)?;
        play_out(&figures);
        let outcome = desk.outcome();
        let limit = recorded.as_ref().and_then(|recorded| recorded.why());
        let why = match (&limit, &outcome, &end) {
            (Some(why), ..) | (None, Err(why), _) | (None, Ok(()), End::Gone(why) | End::Limit(why)) => {
                Some(why.as_str())
            }
            (None, Ok(()), End::Stopped | End::Done) => None,
        };
        if self.options.exact && figures.resampled {
            tell(Event::Advice(RESAMPLED));
        }
        if self.options.exact && figures.narrowed {
            tell(Event::Advice(NARROWED));
        }
        if matches!(self.options.to, Place::File(_)) && !figures.left_out.is_zero() {
            tell(Event::Advice(&left_out(figures.left_out)));
        }
        tell(Event::Ended { figures: Some(&figures), why });
        if let Err(why) = outcome {
            self.fail(limit.clone().unwrap_or(why));
        }
        if let Some(why) = limit {
            // If it does not arrive, the sender offers to try again.
            let _ = session.tell(&Word::Limit);
            session.end(crate::now(), &Ended(why));
        }
        Ok(())
    }
}

const RESAMPLED: &str = "the sender resampled its audio, so the recorded samples differ from those of its \
    device or file: set `--rate` of `send` to the rate of that device or file";

const NARROWED: &str = "the samples of the sender's file have more bits than those of the stream, so the recorded samples are \
    rounded: set `--format i24` of `send`, or `f32` for samples of 32 bits";

/// A sentence about a recording that lacks something which arrived.
fn left_out(length: Duration) -> String {
    format!(
        "{:.1} ms of what arrived are not in the recording: they were left out to set the playout delay; `--exact` records everything",
        length.as_millis_f64()
    )
}

/// Counts a sender out when it has gone.
struct Playing<'p>(&'p AtomicUsize);

impl Playing<'_> {
    fn begin(playing: &AtomicUsize, most: usize) -> Result<Playing<'_>, String> {
        let guard = Playing(playing);
        match playing.fetch_add(1, Ordering::Relaxed) < most {
            true => Ok(guard),
            false => Err("another sender connected first".to_owned()),
        }
    }
}

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
