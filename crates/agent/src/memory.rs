//! Memory that controllers may take of the agent beside the records of their parts.
//!
//! `RLIMIT_DATA` makes an allocation beyond the owner's limit fail, and a failed allocation ends the process. So what a
//! controller can bring about is counted before, and refused while there is room: its connections, what it sends, and the
//! reading of an experiment.

use trunkline_control::message::Prepare;
use trunkline_control::{Held, Memory, NoMemory, Refusal, RefusalKind, Share};
use trunkline_core::Bytes;

use crate::config::Config;

/// The daemon's own: its data, threads for strangers, and heaps that are not full.
const OWN: u64 = 96 << 20;

/// A connection: the stack of its thread, and buffers of TLS.
pub(crate) const CONNECTION: Bytes = Bytes(640 << 10);
/// A part that is sent to a controller: the stack of its thread, and a chunk.
pub(crate) const STREAM: Bytes = Bytes(640 << 10);
/// A part that is judged: the stack of its thread.
const JUDGING: u64 = 3 << 20;
/// While an experiment is read, for each byte of its text (`docs/security.md`: limits on what peers send).
const READING: u64 = 128;
/// And for each byte of the files that it names: as received, as kept, and decoded.
const FILE: u64 = 12;

/// The memory that all controllers may take together.
pub(crate) fn for_controllers(config: &Config, of_host: Bytes) -> Memory {
    let limit = config.limits.memory.map_or(of_host.count() / 2, |limit| limit.count().min(of_host.count()));
    // A heap has holes.
    let left = limit.saturating_sub(OWN).max(limit / 4);
    Memory::new(Bytes(left / 4 * 3))
}

/// Memory that judging a part takes.
pub(crate) fn of_judging(request: &Prepare) -> Bytes {
    let files: usize = request.files.values().map(Vec::len).sum();
    Bytes(JUDGING + request.experiment.len() as u64 * READING + files as u64 * FILE)
}

/// Takes memory for the buffers of a part's engines, which hold what waits to be sent, acknowledged or read.
///
/// # Errors
/// If the controller may not have so much.
pub(crate) fn take_buffers(share: &Share, host: &str, buffers: Bytes) -> Result<Held, Refusal> {
    share.take(buffers).map_err(|error| {
        let why = format!(
            "the transports of the part may hold {buffers} in their buffers, and that takes {error}; the owner of {host} limits              the memory of its agent: make `window` or `send-buffer` smaller, or ask the owner for more"
        );
        Refusal::new(RefusalKind::Limit, why)
    })
}

/// The refusal that a controller receives.
pub(crate) fn refused(host: &str, what: &str, error: &NoMemory) -> Refusal {
    let why = format!(
        "{what} takes {error}; the owner of {host} limits the memory of its agent: end other parts or \
        connections, use smaller files, or ask the owner for more"
    );
    Refusal::new(RefusalKind::Limit, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owners_limit_leaves_room_for_the_daemon_itself() {
        let capacity = |memory: Option<u64>| {
            let mut config = Config::with_name("ottawa");
            config.limits.memory = memory.map(Bytes);
            let key = "0".repeat(52).parse().unwrap();
            let share = for_controllers(&config, Bytes(8 << 30)).share(key);
            // Half of it is the most that one peer may have.
            match share.take(Bytes(u64::MAX)) {
                Err(error) => (error.most.count() * 2) >> 20,
                Ok(_) => panic!("there is no limit"),
            }
        };
        assert_eq!([Some(512 << 20), Some(64 << 20), None].map(capacity), [312, 12, 3000]);
    }
}
