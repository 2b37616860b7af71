//! `trunkline send`: a device's audio to a reflector or a receiver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use trunkline_audio::format::Encoding;
use trunkline_audio::pipeline::{Codec, Packing, PlayerSettings, Protection, Stream, StreamError};
use trunkline_core::{Duration, Time};
use trunkline_io::{Wakeup, pace};
use trunkline_sound::file::Reader;
use trunkline_sound::{Format, Place, Wanted};

use super::conduct::{Limits, conduct, play_out};
use super::desk::Desk;
use super::figures::Figures;
use super::link::Ways;
use super::worker::{Aim, End};
use super::{Event, Observer, ProgramError};
use crate::choice::TransportChoice;
use crate::client::Client;
use crate::error::SessionError;
use crate::key::SharedKey;
use crate::keys::Keys;
use crate::request::{Request, Role};
use crate::session::Session;
use crate::settings::Settings;

/// What is sent, where to, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct SendOptions {
    /// `HOST` or `HOST:PORT`.
    pub host: String,
    /// Where audio comes from.
    pub from: Place,
    /// Where what a reflector sends back goes to; if absent, its round trips are measured and nothing else.
    pub to: Option<Place>,
    /// Channels; a file has its own.
    pub channels: u16,
    /// Frames per second on the network; [`SendOptions::usual_rate`] of the codec if absent.
    pub sample_rate: Option<u32>,
    /// Frames of a block of the device; JACK has its own.
    pub block_frames: u32,
    /// How samples are written on the network.
    pub codec: Codec,
    /// What is sent besides, against loss.
    pub protection: Protection,
    /// How blocks become packets.
    pub packing: Packing,
    /// The transport of the packets.
    pub transport: TransportChoice,
    /// Options of the sockets.
    pub settings: Settings,
    /// How what comes back is played.
    pub player: PlayerSettings,
    /// Ends after this time.
    pub lasting: Option<Duration>,
    /// Ends after so many blocks.
    pub blocks: Option<u64>,
    /// Whether it keeps trying when the other end is not there or goes away.
    pub reconnect: bool,
    /// The JACK server, if not the usual one.
    pub jack_server: Option<String>,
    /// The key that the server has too, if it asks for one.
    pub key: Option<SharedKey>,
    /// The keys of this host, with those of servers that it has paired with.
    pub keys: Option<Keys>,
}

/// How sending went.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// What was carried.
    pub stream: Stream,
    /// The last session.
    pub figures: Figures,
    /// Whether it was ended from outside.
    pub stopped: bool,
}

/// How long a missing peer is left alone.
pub(super) const RETRY: Duration = Duration::from_secs(1);

impl SendOptions {
    /// Two channels of `from` to a host as the study sent them, over UDP: 16 bits in blocks of 512 frames of the device, a send
    /// timeout of 40 ms; nothing that comes back is played.
    pub fn new(host: &str, from: Place) -> SendOptions {
        SendOptions {
            host: host.to_owned(),
            from,
            to: None,
            channels: 2,
            sample_rate: None,
            block_frames: 512,
            codec: Codec::default(),
            protection: Protection::None,
            packing: Packing::default(),
            transport: TransportChoice::udp(),
            settings: Settings::default(),
            player: PlayerSettings::default(),
            lasting: None,
            blocks: None,
            reconnect: false,
            jack_server: None,
            key: None,
            keys: None,
        }
    }

    /// Frames per second, unless others are asked for: those of the study for uncompressed audio, those of telephony for
    /// G.711, those that Opus has.
    pub fn usual_rate(codec: Codec) -> u32 {
        match codec {
            Codec::Pcm(_) => 44_100,
            Codec::Pcmu | Codec::Pcma => 8_000,
            Codec::Opus { .. } => 48_000,
        }
    }

    /// The stream that a device of this format makes: a block of the one is a block of the other.
    pub(super) fn stream(&self, device: Format) -> Result<Stream, String> {
        let sample_rate = self.sample_rate.unwrap_or(Self::usual_rate(self.codec));
        let frames = u64::from(device.block_frames) * u64::from(sample_rate);
        let frames = (frames as f64 / f64::from(device.sample_rate.max(1))).round();
        let block_frames = match self.codec {
            Codec::Opus { .. } => opus_frames(frames as u32, sample_rate),
            _ => (frames as u32).max(1),
        };
        let stream = Stream {
            channels: device.capture_channels,
            sample_rate,
            block_frames,
            codec: self.codec,
            protection: self.protection,
            packing: self.packing,
        };
        let half = f64::from(sample_rate) / 2.0;
        if let Place::Tone { hertz } = &self.from
            && let Some(high) = hertz.iter().find(|hertz| **hertz >= half)
        {
            return Err(format!(
                "there is no tone of {high} Hz at the network's {sample_rate} samples per second; expected less than {half} \
                 Hz, or a higher `--rate`"
            ));
        }
        stream.check().map_err(|error| match error {
            StreamError::BlockFrames(frames) => format!(
                "a block of {} frames at the device's {} Hz becomes {frames} frames at {sample_rate} Hz on \
                the network, where the maximum is {}: choose a smaller block (`--block`, or that of JACK) or \
                a lower `--rate`",
                device.block_frames,
                device.sample_rate,
                Stream::LONGEST_BLOCK,
            ),
            error => error.to_string(),
        })?;
        Ok(stream)
    }

    /// True if it sends a file whose samples have more bits than those of the stream. False if the file cannot be read: opening
    /// the device reports that.
    fn narrows(&self) -> bool {
        match (&self.from, self.codec) {
            (Place::File(path) | Place::Loop(path), Codec::Pcm(encoding)) => {
                Reader::open(path).is_ok_and(|file| !file.fits(encoding))
            }
            _ => false,
        }
    }

    /// Channels of what comes back: as many as are sent, of which a file has its own number. A device has its own too.
    fn returned_channels(&self, to: &Place) -> u16 {
        match (&self.from, to) {
            (Place::File(path) | Place::Loop(path), Place::File(_)) => {
                Reader::open(path).map_or(self.channels, |file| file.channels())
            }
            _ => self.channels,
        }
    }

    pub(super) fn wanted(&self) -> Wanted {
        Wanted {
            capture: Some((self.from.clone(), self.channels)),
            playback: self.to.clone().map(|to| (to.clone(), self.returned_channels(&to))),
            sample_rate: None,
            block_frames: Some(self.block_frames),
            server: self.jack_server.clone(),
            encoding: encoding(self.codec, self.to.as_ref()),
            ..Wanted::default()
        }
    }
}

/// Sends until the file ends, until it was long enough, until `stop` is set, or until the other end goes away.
///
/// # Errors
/// The device cannot be had, the other end is not there or has gone.
pub fn send(options: &SendOptions, stop: &AtomicBool, observer: &dyn Observer) -> Result<Sent, ProgramError> {
    let wakeup = Wakeup::new().map_err(ProgramError::system("cannot create a pipe"))?;
    let decide = options.clone();
    let mut desk = Desk::open(
        options.wanted(),
        move |format| decide.stream(format),
        (options.player, true),
        Arc::new(wakeup),
    )?;
    desk.narrowed = options.narrows();
    let began = crate::now();
    let mut number = 0;
    loop {
        let Some(mut session) = connect(options, desk.stream, stop, observer, number + 1)? else {
            let (stream, figures) = (desk.stream, Figures::default());
            return Ok(Sent { stream, figures, stopped: true });
        };
        number += 1;
        let mut tell = |event: Event<'_>| observer.event(number, event);
        tell(Event::Began {
            peer: session.peer(),
            transport: options.transport.to_string(),
            stream: Some(desk.stream),
        });
        let aim = if session.facts().channels == 0 { Aim::Echo } else { Aim::Send };
        let limits = options.limits(began);
        let is_stopped = || stop.load(Ordering::Relaxed);
        let ways = Ways::native(&desk.stream, aim)?;
        let (end, figures) = conduct(&mut session, ways, &mut desk, aim, limits, &is_stopped, &mut tell)?;
        if aim == Aim::Echo && options.to.is_some() {
            play_out(&figures);
        }
        let gone = match &end {
            End::Gone(why) | End::Limit(why) => Some(why.as_str()),
            End::Stopped | End::Done => None,
        };
        tell(Event::Ended { figures: Some(&figures), why: gone });
        match end {
            End::Gone(why) if options.reconnect => {
                tell(Event::Retrying(&why));
                pace::sleep(RETRY);
            }
            End::Gone(why) => return Err(ProgramError::Gone(why)),
            End::Limit(why) => return Err(ProgramError::Limit(why)),
            end => return Ok(Sent { stream: desk.stream, figures, stopped: end == End::Stopped }),
        }
    }
}

impl SendOptions {
    pub(super) fn limits(&self, began: Time) -> Limits {
        let passed = crate::now().since(began);
        Limits {
            blocks: self.blocks.unwrap_or(u64::MAX),
            lasting: self.lasting.map_or(Duration::MAX, |lasting| lasting.saturating_sub(passed)),
        }
    }
}

/// Opens a session; `None` if it was to be stopped before there was one.
fn connect(
    options: &SendOptions,
    stream: Stream,
    stop: &AtomicBool,
    observer: &dyn Observer,
    number: u64,
) -> Result<Option<Session>, ProgramError> {
    let mut last = String::new();
    while !stop.load(Ordering::Relaxed) {
        let mut request = Request::new(Role::Play, options.transport.clone());
        request.stream = Some(stream);
        request.settings = options.settings;
        let error = match attempt(options, request, stop)? {
            None => return Ok(None),
            Some(Ok(session)) => return Ok(Some(session)),
            Some(Err(error)) => error,
        };
        let passes = matches!(
            error,
            SessionError::Unreachable { .. }
                | SessionError::Silent { .. }
                | SessionError::Refused { .. }
                | SessionError::NotHeard { .. }
                | SessionError::Ended { .. }
        );
        if !passes || !options.reconnect {
            return Err(error.into());
        }
        // Once for each reason.
        let why = error.to_string();
        if why != last {
            observer.event(number, Event::Retrying(&why));
            last = why;
        }
        pace::sleep(RETRY);
    }
    Ok(None)
}

/// Tries once to open a session; `None` if it was to be stopped meanwhile: then the thread that tries is left to itself,
/// since names and connections may take long.
fn attempt(
    options: &SendOptions,
    request: Request,
    stop: &AtomicBool,
) -> Result<Option<Result<Session, SessionError>>, ProgramError> {
    const ASK: std::time::Duration = std::time::Duration::from_millis(50);
    let (tell, told) = mpsc::channel();
    let host = options.host.clone();
    let client = Client { key: options.key, keys: options.keys.clone(), ..Client::default() };
    let work = move || {
        // Nobody listens any more if it was stopped.
        let _ = tell.send(client.connect(&host, request));
    };
    thread::Builder::new()
        .name("connect".to_owned())
        .spawn(work)
        .map_err(ProgramError::system("cannot start a thread to connect"))?;
    loop {
        match told.recv_timeout(ASK) {
            Ok(connected) => return Ok(Some(connected)),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(ProgramError::Panicked),
        }
    }
}

/// How what is played is written to a file: as exactly as it came.
pub(super) fn encoding(codec: Codec, to: Option<&Place>) -> Encoding {
    let is_flac = to.is_some_and(|to| to.to_string().to_ascii_lowercase().ends_with(".flac"));
    match codec {
        Codec::Pcm(Encoding::F32) if is_flac => Encoding::I24,
        Codec::Pcm(encoding) => encoding,
        Codec::Pcmu | Codec::Pcma | Codec::Opus { .. } => Encoding::I16,
    }
}

/// The longest frame of Opus that is no longer than a block, or the shortest: 2.5, 5, 10 or 20 ms.
fn opus_frames(block_frames: u32, sample_rate: u32) -> u32 {
    let frames = |halves| sample_rate * halves / 400;
    [8, 4, 2].into_iter().map(frames).find(|&frames| frames <= block_frames).unwrap_or(frames(1))
}
