//! Bulk transfers there and back, which load the network.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use trunkline_calls::{Client, Facts, Line as _, Packets, Role, Session, Waiter, now};
use trunkline_core::{Bytes, Duration, Rate, Time};

use super::{Deadline, request};
use crate::configuration::Marking;
use crate::trace::Bulk;
use crate::transport::Transport;

/// Bytes handed over at once.
const PIECE: usize = 1_400;

/// Packets handed over between two looks at the line.
const BATCH: usize = 32;

/// Transfers under way.
pub(super) struct Transfers {
    there: Option<JoinHandle<Result<Rate, String>>>,
    back: Option<JoinHandle<Result<Rate, String>>>,
    /// When they end.
    end: Arc<Deadline>,
}

impl Transfers {
    /// Starts both, for so long at most.
    pub(super) fn start(
        server: &str,
        client: Client,
        facts: &Facts,
        lasting: Duration,
        until: &Arc<Deadline>,
    ) -> Transfers {
        let end = Arc::new(Deadline(0.into()));
        end.set(until.get());
        let run = |role: Role, carry: fn(Session, &Deadline) -> Rate| {
            let (server, client, end) = (server.to_owned(), client.clone(), end.clone());
            let work = move || {
                let request = request(Transport::TCP, role, Marking::BestEffort);
                let session = client.connect(&server, request).map_err(|error| error.to_string())?;
                Ok(carry(session, &end))
            };
            thread::Builder::new().name("bulk".to_owned()).spawn(work).ok()
        };
        let source = Role::Source {
            // More than the server's bounds is refused.
            rate: facts.most_rate,
            packet: PIECE as u32,
            // It may begin later than the blocks, and go on to their end.
            lasting: (lasting * 2).min(facts.longest_source),
        };
        Transfers { there: run(Role::Sink, send), back: run(source, take), end }
    }

    /// Ends them and tells what they have reached.
    ///
    /// # Errors
    /// Why the network was not loaded.
    pub(super) fn finish(self) -> Result<Bulk, String> {
        self.end.set(now());
        let of = |transfer: Option<JoinHandle<Result<Rate, String>>>| {
            let failed = || "cannot load the network: a thread failed".to_owned();
            let rate = transfer.ok_or_else(failed)?.join().map_err(|_| failed())?;
            rate.map_err(|why| format!("cannot load the network: {why}"))
        };
        Ok(Bulk { there: of(self.there)?, back: of(self.back)? })
    }
}

/// Sends until the end.
fn send(mut session: Session, end: &Deadline) -> Rate {
    let mut waiter = Waiter::default();
    let mut batch = Packets::default();
    for _ in 0..BATCH {
        batch.push(&[0; PIECE]);
    }
    let begun = now();
    let mut is_open = true;
    while is_open && !end.is_over() {
        let refused = session.counters().refused;
        is_open = session.send_all(now(), &batch).is_ok();
        if session.counters().refused > refused {
            waiter.wait(&session, None, now() + LOOK);
        }
        is_open &= session.turn(now(), &mut |_, _| {}).is_ok();
    }
    // What the other end has counted last, and the moment of that are not known together; what this end has handed over is.
    let counters = session.counters();
    rate(counters.sent_bytes.saturating_sub(counters.timed_out.saturating_mul(PIECE as u64)), begun)
}

/// Takes until the end.
fn take(mut session: Session, end: &Deadline) -> Rate {
    let mut waiter = Waiter::default();
    let begun = now();
    while !end.is_over() {
        waiter.wait(&session, None, now() + LOOK);
        if session.turn(now(), &mut |_, _| {}).is_err() {
            break;
        }
    }
    rate(session.counters().received_bytes, begun)
}

/// How often is looked whether the end has come.
const LOOK: Duration = Duration::from_millis(20);

fn rate(bytes: u64, begun: Time) -> Rate {
    Rate::of(Bytes(bytes), now().since(begun))
}
