//! `trunkline send`

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trunkline_audio::conceal::Method;
use trunkline_audio::pipeline::{Packing, PlayerSettings, Protection};
use trunkline_audio::sdp;
use trunkline_calls::program::{self, ProgramError, RtpOptions, SendOptions};
use trunkline_calls::{Settings, SharedKey};
use trunkline_sound::Place;
use trunkline_sound::file::Reader;

use super::peer::{keys, pair_with};
use crate::args::session::{Playing, Send};
use crate::args::{Conceal, Global};
use crate::output::{self, Failure};
use crate::sessions::Sessions;

/// The most bytes of a key; of a larger file, only the first ones count.
const LONGEST_KEY: u64 = 4096;

pub(super) fn send(global: &Global, arguments: &Send) -> Result<u8, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    on_signal(move || stopped.store(true, Ordering::Relaxed))?;
    warn_of_cut(&arguments.from);
    let key = shared_key(arguments.key_file.as_deref())?;
    pair_with(&arguments.host, arguments.pair.as_ref())?;
    let options = SendOptions { key, keys: keys(), ..options(arguments) };
    let (sessions, foreign) = (Sessions::new(global.json), &arguments.foreign);
    let sent = if foreign.rtp {
        let rtp =
            RtpOptions { packet_time: foreign.packet_time, interface: foreign.interface, ttl: foreign.ttl };
        let announce = |session: &sdp::Session| match &foreign.sdp {
            Some(file) => std::fs::write(file, session.to_string())
                .map_err(|error| std::io::Error::other(format!("`{}`: {error}", file.display()))),
            None => Ok(()),
        };
        program::send_rtp(&options, &rtp, announce, &stop, &sessions)
    } else if foreign.jacktrip {
        program::send_jacktrip(&options, foreign.hub.as_deref(), &stop, &sessions)
    } else {
        program::send(&options, &stop, &sessions)
    };
    let sent = sent.map_err(failure)?;
    Ok(if sent.stopped { output::INTERRUPTED } else { output::DONE })
}

/// Says so if what is sent is a file that is cut short. What else is wrong with it is told when it is played.
fn warn_of_cut(from: &Place) {
    if let Place::File(path) | Place::Loop(path) = from
        && let Ok(file) = Reader::open(path)
    {
        file.cut_short().into_iter().for_each(|why| output::warn_about(path, why));
    }
}

fn options(arguments: &Send) -> SendOptions {
    let stream = &arguments.stream;
    let protection = match (stream.redundancy, stream.fec) {
        (Some(repeats), _) => Protection::Repeat(repeats.into()),
        (None, Some(correction)) => correction.0,
        (None, None) => Protection::None,
    };
    let fragment = stream.fragment.map(|bytes| bytes as usize);
    let packing = Packing { per_channel: stream.per_channel, fragment, ..Packing::default() };
    let settings = Settings {
        send_timeout: arguments.sockets.send_timeout,
        priority: Some(arguments.sockets.priority),
        dscp: arguments.sockets.dscp,
        ..Settings::default()
    };
    SendOptions {
        host: arguments.host.clone(),
        from: arguments.from.clone(),
        to: arguments.to.clone(),
        channels: arguments.channels,
        sample_rate: stream.rate,
        block_frames: stream.block,
        codec: stream.format.0,
        protection,
        packing,
        transport: arguments.transport.clone(),
        settings,
        player: player(&arguments.playing),
        lasting: arguments.duration,
        blocks: arguments.blocks,
        reconnect: arguments.reconnect,
        jack_server: arguments.playing.jack_server.clone(),
        key: None,
        keys: None,
    }
}

/// The key in a file that only its owner can read.
pub(super) fn shared_key(path: Option<&Path>) -> Result<Option<SharedKey>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let unreadable = |error: std::io::Error| {
        Failure::about(path, format_args!("`{}` cannot be read: {error}", path.display()))
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().map_err(unreadable)?.permissions().mode();
        if mode & 0o077 != 0 {
            let shown = path.display();
            return Err(Failure::about(
                path,
                format_args!(
                    "other users can read the key file `{shown}`; make a new key there, and run `chmod 600 {shown}`"
                ),
            ));
        }
    }
    let mut text = Vec::new();
    file.take(LONGEST_KEY).read_to_end(&mut text).map_err(unreadable)?;
    let key = SharedKey::new(&text);
    key.map(Some).map_err(|why| Failure::about(path, format_args!("`{}`: {why}", path.display())))
}

pub(super) fn player(playing: &Playing) -> PlayerSettings {
    let conceal = match playing.conceal {
        Conceal::Silence => Method::Silence,
        Conceal::Repetition => Method::Repetition,
        Conceal::Waveform => Method::Waveform,
    };
    PlayerSettings { depth: playing.playout.0, conceal, drift: true }
}

/// The first Ctrl-C (or SIGTERM) ends in order, and what was measured is printed; a second one ends at once.
pub(super) fn on_signal(stop: impl Fn() + std::marker::Send + 'static) -> Result<(), Failure> {
    let seen = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(output::INTERRUPTED));
        }
        stop();
    })
    .map_err(|e| Failure::environment(format_args!("cannot catch Ctrl-C: {e}")))
}

pub(super) fn failure(error: ProgramError) -> Failure {
    if error.is_bad_input() { Failure::input(error) } else { Failure::environment(error) }
}
