//! A real server on a port of its own, and a client that shows every byte.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "where something is missing the test has failed")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trunkline_server::{Connections, Options, ServeError, Server, Transport};
use trunkline_store::Store;

/// Nothing here takes so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A short experiment: two points of two repetitions.
pub(crate) const SHORT: &str = r#"
name = "short"
duration = "2 s"
repetitions = 2
seed = 7

[hosts]
berlin = {}
ottawa = {}

[link.trunk]
between = ["berlin", "ottawa"]
rate = "1 Mbit/s"
delay = "20 ms"
loss = "1 %"

[flow.voice]
from = "berlin"
to = "ottawa"
transport = "udp"
source = { kind = "voice", samples = 80 }

[sweep]
"flow.voice.count" = [1, 2]

[limits]
"flow.voice.latency.p99" = "< 100 ms"
"#;

/// One that goes on until it is stopped: days of virtual time, in repetitions that are over soon.
pub(crate) fn long() -> String {
    SHORT
        .replace("\"short\"", "\"long\"")
        .replace("repetitions = 2", "repetitions = 1000")
        .replace("2 s", "100 s")
}

/// A server at work; ended when dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) folder: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
    /// Kept for its life.
    _place: Option<tempfile::TempDir>,
}

impl TestServer {
    /// On loopback, for everybody.
    pub(crate) fn start() -> TestServer {
        let place = tempfile::tempdir().unwrap();
        let mut server = TestServer::start_in(place.path(), |_| ());
        server._place = Some(place);
        server
    }

    /// With its folders below `place`, and with other options.
    pub(crate) fn start_in(place: &Path, change: impl FnOnce(&mut Options)) -> TestServer {
        let mut options = options(place);
        change(&mut options);
        let server = Server::bind(options).unwrap();
        let address = server.address();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.serve(&seen));
        TestServer { address, folder: place.to_path_buf(), stop, thread: Some(thread), _place: None }
    }

    /// Ends it in order, and says how that went.
    pub(crate) fn end(&mut self) -> Result<(), ServeError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap())
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, &[("content-type", "application/json")], Some(body.to_string().as_bytes()))
    }

    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Reply {
        ask(self.address, method, path, headers, body)
    }

    /// Begins a run and gives its job.
    pub(crate) fn run(&self, text: &str) -> Value {
        let reply = self.post("/api/v1/runs", &json!({ "text": text, "backend": "sim" }));
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()
    }

    /// Waits until a job is over, and gives it.
    pub(crate) fn wait(&self, job: &Value) -> Value {
        let path = format!("/api/v1/jobs/{}", job["job"].as_str().unwrap());
        self.wait_until(&path, |job| matches!(job["state"].as_str(), Some("done" | "failed" | "stopped")))
    }

    /// Waits until an answer is as wanted.
    pub(crate) fn wait_until(&self, path: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.get(path).json();
            if is_wanted(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{path}: {answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A complete run of [`SHORT`]: its number.
    pub(crate) fn measured(&self) -> u64 {
        let job = self.wait(&self.run(SHORT));
        assert_eq!(job["state"], "done", "{job}");
        job["run"].as_u64().unwrap()
    }

    /// Watches: the events one by one.
    pub(crate) fn watch(&self, path: &str, last: Option<&str>) -> Events {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let last = last.map(|last| format!("last-event-id: {last}\r\n")).unwrap_or_default();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\n{last}\r\n", self.address).unwrap();
        let mut lines = BufReader::new(stream);
        let (status, _) = head(&mut lines);
        assert_eq!(status, 200);
        Events { lines: BufReader::new(Chunks { lines, left: 0, is_over: false }) }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // A test that has failed already says why.
        let _ = self.end();
    }
}

/// What a server on loopback is told.
pub(crate) fn options(place: &Path) -> Options {
    let files = place.join("files");
    std::fs::create_dir_all(&files).unwrap();
    Options {
        listen: "127.0.0.1:0".parse().unwrap(),
        transport: Transport::Plain,
        authenticate: false,
        connections: Connections::default(),
        store: Store::open(&place.join("store")).unwrap(),
        place: "a store of tests".to_owned(),
        files,
        folder: place.join("config"),
        secrets: place.join("secrets"),
        program: PathBuf::from("/nowhere/trunkline"),
        wire: Err("tests make no wires".to_owned()),
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Asks one question.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        request += &format!("host: {address}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    if let Some(body) = body {
        request += &format!("content-length: {}\r\n", body.len());
    }
    request += "\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    // A server that refuses a body may close before it has all of it.
    let _ = stream.write_all(body.unwrap_or_default());
    let mut lines = BufReader::new(stream);
    let (status, headers) = head(&mut lines);
    let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let mut body = Vec::new();
    match is_chunked {
        true => Chunks { lines, left: 0, is_over: false }.read_to_end(&mut body).map(|_| ()),
        false => lines.read_to_end(&mut body).map(|_| ()),
    }
    .unwrap();
    Reply { status, headers, body }
}

fn head(lines: &mut BufReader<TcpStream>) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {line:?}")).parse().unwrap();
    let mut headers = Vec::new();
    loop {
        line.clear();
        lines.read_line(&mut line).unwrap();
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
            None => return (status, headers),
        }
    }
}

/// A chunked body.
struct Chunks {
    lines: BufReader<TcpStream>,
    left: usize,
    is_over: bool,
}

impl std::io::Read for Chunks {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        if self.left == 0 {
            let mut line = String::new();
            if self.lines.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            self.left = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
            if self.left == 0 {
                self.is_over = true;
                return Ok(0);
            }
        }
        let length = into.len().min(self.left);
        let read = self.lines.read(&mut into[..length])?;
        self.left -= read;
        if self.left == 0 {
            self.lines.read_line(&mut String::new())?;
        }
        Ok(read)
    }
}

/// What somebody who watches is told.
pub(crate) struct Events {
    lines: BufReader<Chunks>,
}

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Iterator for Events {
    type Item = Told;

    /// The next event; `None` at the end of the connection.
    fn next(&mut self) -> Option<Told> {
        let (mut id, mut name, mut data) = (None, String::new(), String::new());
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(':') {
                Some(("id", value)) => id = Some(value.trim().to_owned()),
                Some(("event", value)) => name = value.trim().to_owned(),
                Some(("data", value)) => data += value.trim(),
                Some(_) => {}
                None if name.is_empty() => {}
                None => return Some(Told { id, name, data: serde_json::from_str(&data).unwrap() }),
            }
        }
    }
}
