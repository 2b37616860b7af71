//! `trunkline reflect`

use trunkline_session::program;

use super::receive::{server, stop_on_signal};
use super::send::failure;
use crate::args::Global;
use crate::args::session::Reflect;
use crate::output::{self, Failure};
use crate::sessions::Sessions;

pub(super) fn reflect(global: &Global, arguments: &Reflect) -> Result<u8, Failure> {
    let stop = stop_on_signal()?;
    let sessions = Sessions::new(global.json);
    let ready = |address| sessions.note(&format!("reflecting at {address}"));
    let options = server(arguments.listen, arguments.sessions.into());
    program::reflect(options, &stop, &sessions, ready).map_err(failure)?;
    Ok(output::DONE)
}
