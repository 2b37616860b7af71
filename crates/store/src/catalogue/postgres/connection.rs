//! A connection that outlives restarts of its server: it is made again, with the lock that it held, and what was under way
//! is done again.

use std::thread::sleep;
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::{Client, Error, Transaction};

use super::address::Address;
use super::schema;
use crate::StoreError;

/// The first half of the key of a run's lock; the second is the run's number.
const LOCKS: i32 = 0x7472_756E;

/// The longest pause between two attempts to connect again; the first is a tenth.
const PAUSE: Duration = Duration::from_secs(1);

/// What every session begins with. A server that no longer hears of this host gives its locks up within a minute.
const SETTINGS: &str = "SET search_path = trunkline; SET tcp_keepalives_idle = 20;
    SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 4;";

/// A connection to the server.
pub(super) struct Connection {
    address: Address,
    client: Client,
    /// The run whose lock this session holds.
    held: Option<u64>,
    /// For how long a server that is gone is waited for; not again after that was in vain, until it is back.
    patience: Duration,
}

/// Why something was not done.
pub(super) enum Failed {
    /// The server, or the way there.
    Server(Error),
    /// Anything else.
    Other(StoreError),
}

impl Failed {
    fn told(self, address: &Address) -> StoreError {
        match self {
            Failed::Server(error) => address.failed(error),
            Failed::Other(error) => error,
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Server(error)
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Failed {
        Failed::Other(error)
    }
}

impl Connection {
    /// Connects, and brings the schema up to date.
    pub(super) fn open(address: Address) -> Result<Connection, StoreError> {
        let opened = Connection::try_open(&address);
        opened.map_err(|failed| failed.told(&address))
    }

    /// Another one to the same server, which may be starting again just now.
    pub(super) fn another(&self) -> Result<Connection, StoreError> {
        let until = Instant::now() + self.patience;
        loop {
            match Connection::try_open(&self.address) {
                Err(Failed::Server(error)) if is_gone(&error) && Instant::now() < until => sleep(PAUSE / 10),
                opened => return opened.map_err(|failed| failed.told(&self.address)),
            }
        }
    }

    fn try_open(address: &Address) -> Result<Connection, Failed> {
        let mut client = address.connect()?;
        match schema::migrate(&mut client)? {
            Ok(()) => {
                client.batch_execute(SETTINGS)?;
                Ok(Connection { client, held: None, patience: address.patience(), address: address.clone() })
            }
            Err((found, known)) => {
                Err(Failed::Other(StoreError::Newer { place: address.shown().to_owned(), found, known }))
            }
        }
    }

    /// The address without its password.
    pub(super) fn shown(&self) -> &str {
        self.address.shown()
    }

    /// Does something as a whole or not at all. If the server goes meanwhile, it is done when it is back: perhaps once more,
    /// since nobody knows whether the server had done it.
    pub(super) fn whole<T>(
        &mut self,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, StoreError> {
        self.attempt(|transaction| work(transaction).map_err(Failed::Server))
    }

    /// The same of what can fail for other reasons too, which is then not done again.
    pub(super) fn attempt<T>(
        &mut self,
        mut work: impl FnMut(&mut Transaction<'_>) -> Result<T, Failed>,
    ) -> Result<T, StoreError> {
        let until = Instant::now() + self.patience;
        loop {
            let error = match self.once(&mut work) {
                Ok(done) => return Ok(done),
                Err(Failed::Other(error)) => return Err(error),
                Err(Failed::Server(error)) => error,
            };
            if !is_gone(&error) && !self.client.is_closed() {
                return Err(self.address.failed(error));
            }
            self.connect_again(until, error)?;
        }
    }

    fn once<T>(
        &mut self,
        work: &mut impl FnMut(&mut Transaction<'_>) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let mut transaction = self.client.transaction()?;
        let done = work(&mut transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Takes the lock of a run for as long as this connection lasts, restarts of the server included; false if another
    /// session has it.
    pub(super) fn hold(&mut self, run: u64) -> Result<bool, StoreError> {
        let taken = self.whole(|transaction| take(transaction, run))?;
        self.held = taken.then_some(run);
        Ok(taken)
    }

    /// Takes note that the lock need not be taken again.
    pub(super) fn release_with_session(&mut self) {
        self.held = None;
    }

    fn connect_again(&mut self, until: Instant, mut because: Error) -> Result<(), StoreError> {
        let mut pause = PAUSE / 10;
        loop {
            match self.address.connect().and_then(|client| self.prepared(client)) {
                Ok(Some(client)) => {
                    self.client = client;
                    self.patience = self.address.patience();
                    return Ok(());
                }
                // A server that has not noticed that the old session is gone still holds its lock.
                Ok(None) if Instant::now() + pause < until => {}
                Ok(None) => {
                    self.patience = Duration::ZERO;
                    return Err(StoreError::InUse { id: self.held.unwrap_or_default() });
                }
                Err(error) if is_gone(&error) && Instant::now() + pause < until => because = error,
                Err(error) => {
                    let waited = std::mem::take(&mut self.patience);
                    return Err(match is_gone(&error) && waited > Duration::ZERO {
                        true => self.address.stayed_away(because, waited),
                        false => self.address.failed(error),
                    });
                }
            }
            sleep(pause);
            pause = PAUSE.min(pause * 2);
        }
    }

    /// A new session like the one that is gone; `None` if another session has its lock.
    fn prepared(&self, mut client: Client) -> Result<Option<Client>, Error> {
        client.batch_execute(SETTINGS)?;
        if let Some(run) = self.held {
            let mut transaction = client.transaction()?;
            if !take(&mut transaction, run)? {
                return Ok(None);
            }
            // Whoever looked while the lock was nobody's took the run for interrupted.
            transaction.execute(
                "UPDATE run SET status = 'running', repair = true, finished = NULL WHERE id = $1 AND status = 'partial'",
                &[&(run as i64)],
            )?;
            transaction.commit()?;
        }
        Ok(Some(client))
    }
}

/// Takes the lock of a run for the session, if no other has it. It stays when the transaction ends, however it ends.
pub(super) fn take(transaction: &mut Transaction<'_>, run: u64) -> Result<bool, Error> {
    // Numbers beyond 31 bits would need two billion runs.
    let taken = transaction.query_one("SELECT pg_try_advisory_lock($1, $2)", &[&LOCKS, &(run as i32)])?;
    Ok(taken.get(0))
}

/// Whether the server, or the way there, is gone, so that it may come back.
fn is_gone(error: &Error) -> bool {
    let state = error.code();
    let restarts = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW];
    let by_itself = state.is_some_and(|state| restarts.contains(state) || state.code().starts_with("08"));
    let cause = std::error::Error::source(error);
    error.is_closed() || by_itself || cause.is_some_and(|cause| cause.is::<std::io::Error>())
}
