//! Asks a running wire.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::snapshot::WireSnapshot;
use super::{Reply, Request};
use crate::WireError;

/// A wire that does not answer within this time hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to a wire's socket.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn connect(path: &Path) -> Result<Client, WireError> {
        let connected = UnixStream::connect(path).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(Client { stream: BufReader::new(stream) })
        });
        connected.map_err(|error| WireError::State {
            path: path.to_path_buf(),
            problem: format!("the wire cannot be reached: {error}"),
        })
    }

    /// What the links have counted.
    ///
    /// # Errors
    /// If the wire does not answer.
    pub fn counters(&mut self) -> Result<WireSnapshot, WireError> {
        match self.ask(&Request::Counters)? {
            Reply::Counters(snapshot) => Ok(snapshot),
            other => Err(unexpected(&other)),
        }
    }

    /// Sets a key of a link.
    ///
    /// # Errors
    /// If the wire does not answer, or refuses: that is [bad input](WireError::is_bad_input).
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), WireError> {
        match self.ask(&Request::Set { key: key.to_owned(), value: value.to_owned() })? {
            Reply::Done => Ok(()),
            Reply::Refused(why) => Err(WireError::Refused(why)),
            other => Err(unexpected(&other)),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, WireError> {
        let mut exchange = || -> io::Result<Reply> {
            let mut line = serde_json::to_vec(request)?;
            line.push(b'\n');
            self.stream.get_mut().write_all(&line)?;
            let mut answer = String::new();
            if self.stream.read_line(&mut answer)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(serde_json::from_str(&answer)?)
        };
        let why = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
                error.kind(),
                format!("no reply within {} s; its process may be stopped", PATIENCE.as_secs()),
            ),
            _ => error,
        };
        exchange().map_err(why).map_err(WireError::system("asking the wire"))
    }
}

fn unexpected(reply: &Reply) -> WireError {
    let why = if let Reply::Refused(why) = reply { why } else { "it has a different version" };
    WireError::System { doing: "asking the wire".into(), source: io::Error::other(why.to_owned()) }
}
