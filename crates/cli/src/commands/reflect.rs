//! `trunkline reflect`

use trunkline_calls::{Bounds, ServerOptions, program};
use trunkline_core::{Bytes, Rate};

use super::peer::{code, invitation};
use super::receive::{server, stop_on_signal, whom};
use super::send::failure;
use crate::args::Global;
use crate::args::session::Reflect;
use crate::output::{self, Failure};
use crate::sessions::Sessions;

pub(super) fn reflect(global: &Global, arguments: &Reflect) -> Result<u8, Failure> {
    let stop = stop_on_signal()?;
    let sessions = Sessions::new(global.json);
    let usual = server(arguments.listen, &arguments.access)?;
    let count = usize::from(arguments.sessions);
    let of_address = arguments.sessions_per_address.map_or(count.div_ceil(2), usize::from);
    let (rate, memory) = (arguments.max_rate.bits_per_second(), arguments.max_memory);
    let options = ServerOptions {
        all: Bounds { sessions: count, rate, memory },
        each: Bounds { sessions: of_address, rate: rate / 5 * 4, memory: Bytes(memory.count() / 2) },
        ..usual
    };
    let (sessions_of, rate_of) = (options.each.sessions, Rate::from_bits_per_second(options.each.rate));
    let may = format!(
        "hold {count} sessions and receive {}, one address {sessions_of} sessions and {rate_of}",
        arguments.max_rate
    );
    let whom = whom(&options, &may, true);
    let code = code(arguments.access.pair)?;
    let ready = |address| {
        sessions.note(&format!("reflecting at {address}\n{whom}{}", invitation(address, code.as_ref())));
    };
    program::reflect(options, &stop, &sessions, ready).map_err(failure)?;
    Ok(output::DONE)
}
