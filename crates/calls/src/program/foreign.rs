//! `send` and `receive` with another program at the other end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_audio::pipeline::{PlayerSettings, Protection, Stream};
use trunkline_audio::sdp::{self, Media, Origin};
use trunkline_core::Duration;
use trunkline_io::{Wakeup, clock, pace};
use trunkline_sound::{Format, Place, Wanted};

use super::conduct::{Limits, conduct, play_out};
use super::desk::Desk;
use super::figures::Figures;
use super::link::Ways;
use super::receive::ReceiveOptions;
use super::recordings::Recordings;
use super::send::{RETRY, SendOptions, Sent};
use super::worker::{Aim, End};
use super::{Event, Observer, ProgramError};
use crate::foreign::jacktrip::{self, JackTripOptions, resolution};
use crate::foreign::{Foreign, ForeignError, any, resolve, rtp};
use crate::server::Stop;

/// The port for RTP where none is named (RFC 3551 section 8).
const RTP_PORT: u16 = 5004;

/// How RTP is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpOptions {
    /// How much time a packet carries; a block of the device, if absent.
    pub packet_time: Option<Duration>,
    /// The address of the interface to send from, if not the system's choice.
    pub interface: Option<IpAddr>,
    /// How many routers a packet to a group may pass, plus one.
    pub ttl: u8,
}

/// Sends RTP to the address that [`SendOptions::host`] is, until the file ends, until it was long enough or until `stop` is
/// set. `announce` is given the description first.
///
/// # Errors
/// The device cannot be had, RTP has no format for the stream, the address cannot be sent to, or `announce` fails.
pub fn send_rtp(
    options: &SendOptions,
    rtp: &RtpOptions,
    announce: impl FnOnce(&sdp::Session) -> io::Result<()>,
    stop: &AtomicBool,
    observer: &dyn Observer,
) -> Result<Sent, ProgramError> {
    let peer = resolve(&options.host, RTP_PORT)?;
    let (decide, packet_time) = (options.clone(), rtp.packet_time);
    let mut desk = open(options.wanted(), (options.player, true), move |format| {
        let stream = decide.stream(format)?;
        let block = packet_time.map(|time| frames_of(time, stream.sample_rate));
        let stream = Stream { block_frames: block.unwrap_or(stream.block_frames), ..stream };
        stream.check().map_err(|error| error.to_string())?;
        Ok(stream)
    })?;
    let mut media = Media::of(&desk.stream, peer).ok_or(ForeignError::NoFormat)?;
    media.ttl = peer.is_ipv4().then_some(rtp.ttl).filter(|_| peer.ip().is_multicast());
    let from = rtp.interface.unwrap_or_else(|| any(peer.ip()));
    let foreign = rtp::send(&media, &desk.stream, from, &options.settings)?;
    let seconds = (crate::now().as_nanos() as i64).saturating_add(clock::realtime_offset()) / 1_000_000_000;
    let seconds = seconds.unsigned_abs();
    let origin = Origin {
        session: seconds,
        version: seconds,
        host: foreign.local.ip().to_string(),
        ..Origin::default()
    };
    announce(&sdp::Session { name: "Trunkline".to_owned(), origin, media: vec![media] })
        .map_err(ProgramError::system("cannot write the session description"))?;
    carry(Aim::Send, foreign, &mut desk, options, stop, observer)
}

/// Plays what is sent over RTP as `media` says, until `stop` is set. A group is joined on the interface with this address, if
/// not where the system chooses.
///
/// # Errors
/// The device cannot be had, or the address cannot be listened at.
pub fn receive_rtp(
    options: &ReceiveOptions,
    media: &Media,
    interface: Option<IpAddr>,
    stop: &Stop,
    observer: &dyn Observer,
) -> Result<(), ProgramError> {
    let on = interface.unwrap_or_else(|| any(media.address));
    let foreign = rtp::receive(media, on, &options.settings())?;
    let stream = media.stream();
    let mut tell = |event: Event<'_>| observer.event(1, event);
    let recordings = Recordings::new(options.recordings);
    let to = recordings.next(&options.to, &mut tell)?;
    let recorded = recordings.begin(&to);
    let mut desk = open(options.wanted(&stream, to), (options.player, options.mix), move |_| Ok(stream))?;
    let is_stopped = || stop.is_stopped() || recorded.as_ref().is_some_and(|recorded| recorded.is_over());
    let limit = || recorded.as_ref().and_then(|recorded| recorded.why());
    let until = Until { is_over: &is_stopped, limit: &limit };
    talk("rtp", Aim::Play, foreign, &mut desk, Limits::NONE, until, &mut tell).map(|_| ())
}

/// Calls a JackTrip server, or a hub as a client of this name, sends it what the device captures and plays what it sends,
/// until the file ends, until it was long enough, until `stop` is set or until the server leaves. The sample rate is that
/// of the device, unless another is asked for.
///
/// # Errors
/// The device cannot be had, or JackTrip does not answer or in another format.
pub fn send_jacktrip(
    options: &SendOptions,
    hub: Option<&str>,
    stop: &AtomicBool,
    observer: &dyn Observer,
) -> Result<Sent, ProgramError> {
    let jacktrip = JackTripOptions {
        resolution: resolution(options.codec).ok_or(ForeignError::Compressed)?,
        redundancy: match options.protection {
            Protection::Repeat(repeats) => repeats + 1,
            _ => 1,
        },
        settings: options.settings,
    };
    let decide = options.clone();
    let mut desk = open(options.wanted(), (options.player, true), move |format| {
        let sample_rate = Some(decide.sample_rate.unwrap_or(format.sample_rate));
        SendOptions { sample_rate, protection: Protection::None, ..decide }.stream(format)
    })?;
    let patience = Duration::from_secs(10);
    let foreign = match hub {
        Some(name) => jacktrip::call_hub(&options.host, name, &desk.stream, &jacktrip, patience)?,
        None => jacktrip::call(&options.host, &desk.stream, &jacktrip, patience)?,
    };
    carry(Aim::Talk, foreign, &mut desk, options, stop, observer)
}

/// Waits for JackTrip clients, one after the other, until `stop` is set; plays what they send, and answers with what comes
/// from `from`.
///
/// # Errors
/// The port cannot be opened.
pub fn receive_jacktrip(
    options: &ReceiveOptions,
    from: &Place,
    local: SocketAddr,
    stop: &Stop,
    observer: &dyn Observer,
) -> Result<(), ProgramError> {
    let jacktrip = JackTripOptions { settings: options.settings(), ..JackTripOptions::default() };
    let is_stopped = || stop.is_stopped();
    let recordings = Recordings::new(options.recordings);
    let mut number = 0;
    while let Some(foreign) = jacktrip::answer(local, &jacktrip, &options.server.peers, &is_stopped)? {
        number += 1;
        let mut tell = |event: Event<'_>| observer.event(number, event);
        let answered = recordings.check(&options.to).map_err(ProgramError::Limit).and_then(|()| {
            let place = recordings.next(&options.to, &mut tell)?;
            let recorded = recordings.begin(&place);
            let is_over =
                || stop.is_stopped() || recorded.as_ref().is_some_and(|recorded| recorded.is_over());
            let limit = || recorded.as_ref().and_then(|recorded| recorded.why());
            let until = Until { is_over: &is_over, limit: &limit };
            answer_one(options, from, foreign, place, until, &mut tell)
        });
        if let Err(error) = answered {
            tell(Event::Ended { figures: None, why: Some(&error.to_string()) });
            // It goes on sending, and would be heard again at once.
            pace::sleep(RETRY);
        }
        if options.once {
            break;
        }
    }
    Ok(())
}

fn answer_one(
    options: &ReceiveOptions,
    from: &Place,
    mut foreign: Foreign,
    to: Place,
    until: Until<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(), ProgramError> {
    let Some(stream) = foreign.receives.as_ref().map(|(stream, _)| *stream) else { return Ok(()) };
    let mut wanted = options.wanted(&stream, to);
    if *from == Place::None {
        foreign.sends = None;
    } else {
        wanted.capture = Some((from.clone(), stream.channels));
    }
    let mut desk = open(wanted, (options.player, options.mix), move |_| Ok(stream))?;
    talk("jacktrip", Aim::Talk, foreign, &mut desk, Limits::NONE, until, tell).map(|_| ())
}

/// As [`talk`], within the bounds of what is to be sent.
fn carry(
    aim: Aim,
    foreign: Foreign,
    desk: &mut Desk,
    options: &SendOptions,
    stop: &AtomicBool,
    observer: &dyn Observer,
) -> Result<Sent, ProgramError> {
    let transport = if aim == Aim::Send { "rtp" } else { "jacktrip" };
    let limits = options.limits(crate::now());
    let mut tell = |event: Event<'_>| observer.event(1, event);
    let is_stopped = || stop.load(Ordering::Relaxed);
    let until = Until { is_over: &is_stopped, limit: &|| None };
    let (end, figures) = talk(transport, aim, foreign, desk, limits, until, &mut tell)?;
    Ok(Sent { stream: desk.stream, figures, stopped: end == End::Stopped })
}

/// What ends a conversation from this side.
#[derive(Clone, Copy)]
struct Until<'u> {
    is_over: &'u dyn Fn() -> bool,
    /// The limit that has ended it, if one has.
    limit: &'u dyn Fn() -> Option<String>,
}

/// Joins a conversation with a device until it ends.
fn talk(
    transport: &str,
    aim: Aim,
    mut foreign: Foreign,
    desk: &mut Desk,
    limits: Limits,
    until: Until<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(End, Figures), ProgramError> {
    tell(Event::Began { peer: foreign.peer, transport: transport.to_owned(), stream: Some(desk.stream) });
    let ways = Ways {
        packer: foreign.sends.take().map(|(_, packer)| packer),
        unpacker: foreign.receives.take().map(|(_, unpacker)| unpacker),
    };
    let (end, figures) = conduct(&mut foreign, ways, desk, aim, limits, until.is_over, tell)?;
    foreign.line.close(crate::now());
    if aim != Aim::Send {
        play_out(&figures);
    }
    let limit = (until.limit)();
    let why = match (&limit, &end) {
        (Some(why), _) | (None, End::Gone(why) | End::Limit(why)) => Some(why.as_str()),
        (None, End::Stopped | End::Done) => None,
    };
    tell(Event::Ended { figures: Some(&figures), why });
    Ok((end, figures))
}

fn open(
    wanted: Wanted,
    player: (PlayerSettings, bool),
    decide: impl FnOnce(Format) -> Result<Stream, String> + Send + 'static,
) -> Result<Desk, ProgramError> {
    let wakeup = Wakeup::new().map_err(ProgramError::system("cannot create a pipe"))?;
    Ok(Desk::open(wanted, decide, player, Arc::new(wakeup))?)
}

fn frames_of(time: Duration, sample_rate: u32) -> u32 {
    ((time.as_secs_f64() * f64::from(sample_rate)).round() as u32).max(1)
}
