//! `trunkline receive`

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use trunkline_audio::foreign::jacktrip;
use trunkline_audio::sdp;
use trunkline_calls::program::{self, ReceiveOptions, RecordingLimits};
use trunkline_calls::{Bounds, Peers, ServerOptions, Stop};
use trunkline_sound::Place;

use super::peer::{code, invitation, keys};
use super::send::{failure, on_signal, player, shared_key};
use crate::args::Global;
use crate::args::session::{Access, Receive};
use crate::output::{self, Failure};
use crate::sessions::Sessions;

pub(super) fn receive(global: &Global, arguments: &Receive) -> Result<u8, Failure> {
    let stop = stop_on_signal()?;
    let sessions = Sessions::new(global.json);
    let usual = server(arguments.listen, &arguments.access)?;
    // A sender that waits for another to end has a place too.
    let places = usize::from(arguments.senders) + 16;
    let server = ServerOptions {
        all: Bounds { sessions: places, ..usual.all },
        each: Bounds { sessions: places - 8, ..usual.each },
        ..usual
    };
    let to = match &arguments.to {
        Place::File(_) => {
            format!("record up to {} in up to {} files", arguments.max_size, arguments.max_files)
        }
        to => format!("play audio at `{to}`"),
    };
    let whom = whom(&server, &to, !arguments.foreign.jacktrip);
    let code = code(arguments.access.pair)?;
    let options = ReceiveOptions {
        server,
        to: arguments.to.clone(),
        channels: arguments.channels,
        mix: arguments.mix,
        senders: arguments.senders.into(),
        block_frames: arguments.block,
        exact: arguments.exact,
        recordings: RecordingLimits {
            length: arguments.max_length,
            bytes: arguments.max_size,
            files: arguments.max_files,
            free: arguments.min_free,
        },
        player: player(&arguments.playing),
        once: arguments.once,
        jack_server: arguments.playing.jack_server.clone(),
    };
    let foreign = &arguments.foreign;
    let waiting = |address: SocketAddr| format!("waiting for senders at {address}");
    let ready = |address: SocketAddr| {
        sessions.note(&format!("{}\n{whom}{}", waiting(address), invitation(address, code.as_ref())));
    };
    let received = if let Some(file) = &foreign.sdp {
        let session = describe(file)?;
        // Of several media, the first that can be played.
        program::receive_rtp(&options, &session.media[0], foreign.interface, &stop, &sessions)
    } else if foreign.jacktrip {
        let local = arguments.listen.unwrap_or((Ipv4Addr::UNSPECIFIED, jacktrip::PORT).into());
        ready(local);
        program::receive_jacktrip(&options, &foreign.from, local, &stop, &sessions)
    } else {
        program::receive(options, &stop, &sessions, ready)
    };
    received.map_err(failure)?;
    Ok(output::DONE)
}

/// The session description in a file.
fn describe(file: &Path) -> Result<sdp::Session, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::about(file, format_args!("`{}` cannot be read: {error}", file.display()))
    })?;
    text.parse().map_err(|error| Failure::about(file, format_args!("`{}`: {error}", file.display())))
}

/// Set by Ctrl-C.
pub(super) fn stop_on_signal() -> Result<Arc<Stop>, Failure> {
    let stop = Stop::new().map_err(|e| Failure::environment(format_args!("cannot create a pipe: {e}")))?;
    let stop = Arc::new(stop);
    let told = Arc::clone(&stop);
    on_signal(move || told.stop())?;
    Ok(stop)
}

/// The options of a server that listens and serves as was asked.
pub(super) fn server(listen: Option<SocketAddr>, access: &Access) -> Result<ServerOptions, Failure> {
    let usual = ServerOptions::default();
    let key = shared_key(access.key_file.as_deref())?;
    let peers = match (access.allow.is_empty(), key) {
        (false, _) => Peers::In(access.allow.clone()),
        (true, Some(_)) => Peers::All,
        (true, None) => Peers::Near,
    };
    Ok(ServerOptions { address: listen.unwrap_or(usual.address), peers, key, keys: keys(), ..usual })
}

/// A sentence about who is served, and what they may do.
pub(super) fn whom(options: &ServerOptions, what: &str, may_have_keys: bool) -> String {
    let peers = &options.peers;
    let (pair, key) = if may_have_keys { ("`--pair`, ", " or `--key-file FILE`") } else { ("", "") };
    match (options.key, peers) {
        (Some(_), Peers::All) => {
            format!("serves peers that have the key, from any address; they may {what}")
        }
        (Some(_), _) => format!("serves peers in {peers} that have the key; they may {what}"),
        (None, Peers::In(_)) => format!("serves anyone in {peers}, without a key; they may {what}"),
        (None, _) => format!(
            "serves anyone on {peers}, without a key; they may {what}; peers on the Internet need {pair}`--allow \
             NETWORK`{key}"
        ),
    }
}
