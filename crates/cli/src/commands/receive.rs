//! `trunkline receive`

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use trunkline_audio::foreign::jacktrip;
use trunkline_audio::sdp;
use trunkline_session::program::{self, ReceiveOptions, RecordingLimits};
use trunkline_session::{ServerOptions, Stop};

use super::send::{failure, on_signal, player};
use crate::args::Global;
use crate::args::session::Receive;
use crate::output::{self, Failure};
use crate::sessions::Sessions;

pub(super) fn receive(global: &Global, arguments: &Receive) -> Result<u8, Failure> {
    let stop = stop_on_signal()?;
    let sessions = Sessions::new(global.json);
    let options = ReceiveOptions {
        // Senders that are refused are told so, which takes a place.
        server: server(arguments.listen, usize::from(arguments.senders) + 16),
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
    let ready = |address: SocketAddr| sessions.note(&format!("waiting for senders at {address}"));
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
    let stop = Stop::new().map_err(|e| Failure::environment(format_args!("a pipe cannot be made: {e}")))?;
    let stop = Arc::new(stop);
    let told = Arc::clone(&stop);
    on_signal(move || told.stop())?;
    Ok(stop)
}

pub(super) fn server(listen: Option<SocketAddr>, most_clients: usize) -> ServerOptions {
    let usual = ServerOptions::default();
    ServerOptions { address: listen.unwrap_or(usual.address), most_clients, ..usual }
}
