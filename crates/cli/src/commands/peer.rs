//! `trunkline peer`: hosts that have paired for sessions.

use std::net::SocketAddr;
use std::path::PathBuf;

use trunkline_agent::privileges;
use trunkline_calls::{DEFAULT_PORT, Keys};
use trunkline_control::{Pairing, PairingCode, Peer};
use trunkline_core::Duration;

use super::agent::{control, moment, reachable, usual_name};
use crate::args::Global;
use crate::args::peer::{Peer as Arguments, PeerAction};
use crate::json::{PairingOutput, PeersOutput};
use crate::output::{self, Failure};

/// Timeout of a server.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn peer(global: &Global, arguments: &Arguments) -> Result<u8, Failure> {
    let keys = required_keys()?;
    match &arguments.action {
        PeerAction::Pair => {
            let code = keys.begin().map_err(control)?;
            let address = reachable(None, DEFAULT_PORT);
            if global.json {
                let key = keys.identity().map_err(control)?.fingerprint().to_string();
                output::print_json(&PairingOutput { address, code: code.to_string(), key });
            } else {
                output::print(instruction(&address, &code));
            }
        }
        PeerAction::List => list(global, &keys)?,
        PeerAction::Revoke { name } => {
            keys.clients().and_then(|clients| clients.remove(name)).map_err(control)?;
            output::note(format_args!("{name} is revoked; within seconds its sessions here end"));
        }
        PeerAction::Forget { name } => {
            keys.servers().and_then(|servers| servers.remove(name)).map_err(control)?;
            output::note(format_args!(
                "{name} is forgotten here; it still knows this host until `trunkline peer revoke` is run there"
            ));
        }
    }
    Ok(output::DONE)
}

fn list(global: &Global, keys: &Keys) -> Result<(), Failure> {
    let (servers, clients) = match keys.exist() {
        true => {
            let list = |peers: Result<trunkline_control::Peers, _>| peers.and_then(|peers| peers.list());
            (list(keys.servers()).map_err(control)?, list(keys.clients()).map_err(control)?)
        }
        false => (Vec::new(), Vec::new()),
    };
    if global.json {
        output::print_json(&PeersOutput { servers, clients });
        return Ok(());
    }
    if servers.is_empty() && clients.is_empty() {
        output::note(
            "this host has not paired with any other; run `trunkline peer pair` where `reflect` or `receive` runs",
        );
    }
    let row = |peer: &Peer| {
        let address = peer.address.clone().unwrap_or_default();
        vec![peer.name.clone(), address, moment(peer.enrolled), peer.fingerprint.to_string()]
    };
    let tables: Vec<String> = [("server", &servers), ("may connect here", &clients)]
        .into_iter()
        .filter(|(_, peers)| !peers.is_empty())
        .map(|(what, peers)| {
            let head = [what, "address", "paired", "key"].map(str::to_owned).to_vec();
            let rows: Vec<Vec<String>> = std::iter::once(head).chain(peers.iter().map(row)).collect();
            output::table(&rows, output::screen())
        })
        .collect();
    if !tables.is_empty() {
        output::print(tables.join("\n\n"));
    }
    Ok(())
}

/// The keys of this host for sessions; `None` if it has no place for them.
pub(super) fn keys() -> Option<Keys> {
    let from = |name| std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let folder = match from("XDG_STATE_HOME") {
        Some(state) => state.join("trunkline/peer"),
        // Root does not use the home of another user, which that user could redirect.
        None if privileges::is_root() => "/var/lib/trunkline-peer".into(),
        None => from("HOME")?.join(".local/state/trunkline/peer"),
    };
    Some(Keys::new(folder, usual_name()))
}

fn required_keys() -> Result<Keys, Failure> {
    keys().ok_or_else(|| {
        Failure::environment("neither XDG_STATE_HOME nor HOME is set, so keys cannot be stored")
    })
}

/// Pairs with a server if there is a code.
pub(super) fn pair_with(server: &str, code: Option<&PairingCode>) -> Result<(), Failure> {
    let Some(code) = code else { return Ok(()) };
    let peer = required_keys()?.enrol(server, code, PATIENCE).map_err(control)?;
    output::note(format_args!("paired with {0}: from now on `{0}` can stand for its address", peer.name));
    Ok(())
}

/// A new code for a server, if one is wanted.
pub(super) fn code(wanted: bool) -> Result<Option<PairingCode>, Failure> {
    if wanted { required_keys()?.begin().map_err(control).map(Some) } else { Ok(None) }
}

/// The sentence for the owner of a server that listens there.
pub(super) fn invitation(listens: SocketAddr, code: Option<&PairingCode>) -> String {
    code.map_or(String::new(), |code| {
        format!("\n{}", instruction(&reachable(Some(listens), DEFAULT_PORT), code))
    })
}

fn instruction(address: &str, code: &PairingCode) -> String {
    format!(
        "Within {} minutes, run this on the other host (or `probe` in place of `send`):\n\n    trunkline send {address} \
         --pair {code}\n",
        Pairing::VALID.as_mins()
    )
}
