//! The socket of a running wire.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read as _, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::controller::Controller;
use super::{Reply, prometheus};
use crate::WireError;

/// The longest request, and the longest header of HTTP.
const LONGEST: u64 = 64 << 10;
/// Connections at a time; more are closed at once.
const MOST: usize = 32;
/// A client that takes longer to read an answer has gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// Listens at a socket until it is dropped; then connections are closed.
#[derive(Debug)]
pub struct ControlServer {
    path: PathBuf,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// By a number of their own.
    connections: Mutex<BTreeMap<u64, UnixStream>>,
}

impl ControlServer {
    /// Makes the socket, for this user only, and answers there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn start(path: &Path, controller: Arc<Controller>) -> Result<ControlServer, WireError> {
        let refused = |error: io::Error| WireError::State {
            path: path.to_path_buf(),
            problem: match error.kind() {
                io::ErrorKind::InvalidInput => {
                    "this path is too long for a socket; set XDG_RUNTIME_DIR to a folder with a shorter one"
                        .into()
                }
                _ => format!("the socket cannot be made: {error}"),
            },
        };
        let listener = UnixListener::bind(path).map_err(refused)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(refused)?;
        let shared = Arc::<Shared>::default();
        let of_listener = Arc::clone(&shared);
        let thread = thread::Builder::new().name("control".into());
        let listener = thread.spawn(move || listen(&listener, &controller, &of_listener)).map_err(refused)?;
        Ok(ControlServer { path: path.to_path_buf(), shared, listener: Some(listener) })
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // Wakes the listener; if that is not possible it is left waiting until the process ends.
        let woken = UnixStream::connect(&self.path).is_ok();
        if let Some(listener) = self.listener.take().filter(|_| woken) {
            let _ = listener.join();
        }
        for connection in self.shared.connections().values() {
            let _ = connection.shutdown(Shutdown::Both);
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, UnixStream>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn listen(listener: &UnixListener, controller: &Arc<Controller>, shared: &Arc<Shared>) {
    for (number, stream) in (0..).zip(listener.incoming()) {
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
        let Ok((stream, known)) = stream.and_then(|stream| Ok((stream.try_clone()?, stream))) else {
            // Out of descriptors: others will be closed.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        if shared.connections().len() >= MOST {
            continue;
        }
        shared.connections().insert(number, known);
        let (controller, shared_too) = (Arc::clone(controller), Arc::clone(shared));
        let started = thread::Builder::new().name("control-client".into()).spawn(move || {
            // Whatever goes wrong with a client is its own affair.
            let _ = serve(stream, &controller);
            shared_too.connections().remove(&number);
        });
        if started.is_err() {
            shared.connections().remove(&number);
        }
    }
}

fn serve(stream: UnixStream, controller: &Controller) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut answers = stream.try_clone()?;
    converse(&mut BufReader::new(stream), &mut answers, controller)
}

/// Answers one request after another, until there are no more or one is of HTTP.
pub(super) fn converse(
    requests: &mut impl BufRead,
    answers: &mut impl Write,
    controller: &Controller,
) -> io::Result<()> {
    loop {
        let Some(line) = line(requests)? else { return Ok(()) };
        if let Some(target) = http_target(&line) {
            return serve_http(target, requests, answers, controller);
        }
        let reply = match serde_json::from_str(&line) {
            Ok(request) => controller.handle(&request),
            Err(error) => Reply::Refused(format!("invalid request: {error}")),
        };
        let mut text = serde_json::to_vec(&reply)?;
        text.push(b'\n');
        answers.write_all(&text)?;
    }
}

/// A line of at most [`LONGEST`] bytes; `None` at the end.
fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    from.take(LONGEST).read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(text) => Ok(Some(text.trim_end_matches('\r').to_owned())),
        None if line.is_empty() => Ok(None),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// What is asked for, if a line begins a request of HTTP (RFC 9112 section 3): method and path.
fn http_target(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    version.starts_with("HTTP/1.").then_some((method, path))
}

/// Answers one request and closes.
fn serve_http(
    (method, path): (&str, &str),
    requests: &mut impl BufRead,
    answers: &mut impl Write,
    controller: &Controller,
) -> io::Result<()> {
    let mut header = requests.take(LONGEST);
    while line(&mut header)?.is_some_and(|line| !line.is_empty()) {}
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", controller.metrics()),
        ("GET" | "HEAD", _) => ("404 Not Found", "there is `/metrics`\n".to_owned()),
        _ => ("405 Method Not Allowed", "only `GET /metrics` is served\n".to_owned()),
    };
    write!(
        answers,
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n",
        prometheus::CONTENT_TYPE,
        body.len()
    )?;
    if method != "HEAD" {
        answers.write_all(body.as_bytes())?;
    }
    Ok(())
}
