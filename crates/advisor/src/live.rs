//! Measures over real sockets, against a reflector.

mod blocks;
mod bulk;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use trunkline_calls::{Client, Request, Role, SessionError, Settings, TransportChoice, now};
use trunkline_core::{Duration, Time};

use crate::configuration::{Configuration, Load, Marking};
use crate::plan::Step;
use crate::probe::{Observer, Prober};
use crate::trace::Measured;
use crate::transport::Transport;
use bulk::Transfers;

/// How often an observer is asked whether it has stopped.
const ASK: Duration = Duration::from_millis(50);

/// A step is left so much before it must be over, for what then still has to be done.
const MARGIN: Duration = Duration::from_millis(20);

/// Measures by sessions with a server that echoes.
#[derive(Clone, Debug)]
pub struct Live {
    server: String,
    client: Client,
}

impl Live {
    /// Measures against this server (`HOST`, `HOST:PORT`), if it is there.
    ///
    /// # Errors
    /// Why there is no server.
    pub fn new(server: &str, patience: Duration) -> Result<Live, SessionError> {
        Live::by(server, Client { patience, ..Client::default() })
    }

    /// Measures as this client, which may have keys that the server asks for. Its timeout is that of the first connection.
    ///
    /// # Errors
    /// Why there is no server.
    pub fn by(server: &str, client: Client) -> Result<Live, SessionError> {
        let request = request(Transport::UDP, Role::Echo, Marking::Expedited);
        match client.connect(server, request) {
            // That a transport does not get through is no reason not to try the others.
            Ok(_) | Err(SessionError::NotHeard { .. } | SessionError::Transport { .. }) => {
                Ok(Live { server: server.to_owned(), client })
            }
            Err(error) => Err(error),
        }
    }
}

impl Prober for Live {
    fn now(&self) -> Time {
        now()
    }

    /// Opening a session may block, so it is done by a thread that is left to itself when time is up.
    fn measure(&mut self, step: &Step, observer: &dyn Observer) -> Result<Measured, String> {
        let until = Arc::new(Deadline(AtomicU64::new(0)));
        until.set(Time::ZERO + step.until.since(Time::ZERO + MARGIN));
        let (tell, told) = channel();
        let work = {
            let (server, client, step, until) =
                (self.server.clone(), self.client.clone(), *step, until.clone());
            move || {
                // Nobody listens any more if time is up.
                let _ = tell.send(measure(&server, client, &step, &until));
            }
        };
        thread::Builder::new()
            .name("probe".to_owned())
            .spawn(work)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
        loop {
            let left = step.until.since(now());
            match told.recv_timeout(left.min(ASK).to_std()) {
                Ok(measured) => return measured,
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    until.set(Time::ZERO);
                    return Err("no result arrived in time".to_owned());
                }
                Err(RecvTimeoutError::Timeout) if observer.is_stopped() => {
                    until.set(Time::ZERO);
                    // What came back until now is there at once, unless the session is still being opened.
                    let left = told.recv_timeout((ASK * 2).to_std());
                    return left.unwrap_or_else(|_| Err("it was stopped".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the measurement hit a bug; please report it".to_owned());
                }
            }
        }
    }
}

/// When a measurement has to be over; it may come earlier than was thought.
#[derive(Debug)]
struct Deadline(AtomicU64);

impl Deadline {
    fn get(&self) -> Time {
        Time::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, time: Time) {
        self.0.store(time.as_nanos(), Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        now() >= self.get()
    }
}

fn measure(server: &str, client: Client, step: &Step, until: &Arc<Deadline>) -> Result<Measured, String> {
    let Configuration { transport, load, marking, .. } = step.configuration;
    let client = Client { patience: until.get().since(now()), ..client };
    let session =
        client.connect(server, request(transport, Role::Echo, marking)).map_err(|error| error.to_string())?;
    let transfers = match load {
        Load::Idle => None,
        Load::Bulk => {
            Some(Transfers::start(server, client, session.facts(), step.settling + step.lasting, until))
        }
    };
    let trace = blocks::round_trips(session, step, until)?;
    let bulk = transfers.map(Transfers::finish).transpose()?;
    Ok(Measured { trace, bulk })
}

fn request(transport: Transport, role: Role, marking: Marking) -> Request {
    let choice: TransportChoice = transport.name().parse().unwrap_or_else(|_| TransportChoice::udp());
    let mut settings = Settings::default();
    if transport.is_reliable() {
        settings.send_timeout = SEND_TIMEOUT;
    }
    if marking == Marking::BestEffort {
        settings.dscp = 0;
    }
    Request { settings, ..Request::new(role, choice) }
}

/// What is to arrive whatever it takes waits longer for room than the study's 40 ms.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(2);
