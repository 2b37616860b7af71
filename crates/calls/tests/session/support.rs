//! A server in a thread, and what tests do with sessions.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use serde_json::Value;
use trunkline_calls::{
    Client, Ended, Handler, Line as _, Request, Role, Server, ServerOptions, Session, SessionError, Stop,
    Waiter, now,
};
use trunkline_core::{Duration, Time};
use trunkline_peer::message::VERSION;
use trunkline_peer::wire::tag;

/// Nothing that works takes so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server that is stopped when it is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) clients: Box<dyn Fn() -> usize>,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn new() -> Running {
        Running::with(ServerOptions::default(), ())
    }

    pub(crate) fn with(options: ServerOptions, handler: impl Handler + 'static) -> Running {
        Running::at(ServerOptions { address: "127.0.0.1:0".parse().unwrap(), ..options }, handler)
    }

    /// At an address of its own.
    pub(crate) fn at(options: ServerOptions, handler: impl Handler + 'static) -> Running {
        let server = Arc::new(Server::bind(options, handler).unwrap());
        let (address, stop) = (server.local_address().unwrap(), Arc::new(Stop::new().unwrap()));
        let (its_server, its_stop) = (Arc::clone(&server), Arc::clone(&stop));
        let thread = Some(std::thread::spawn(move || its_server.serve(&its_stop).unwrap()));
        Running { address, clients: Box::new(move || server.clients()), stop, thread }
    }

    pub(crate) fn connect(&self, role: Role, transport: &str) -> Session {
        self.ask(Request::new(role, transport.parse().unwrap())).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn ask(&self, request: Request) -> Result<Session, SessionError> {
        Client::default().connect(&self.address.to_string(), request)
    }

    /// A control connection on which the test itself speaks.
    pub(crate) fn speak(&self) -> Raw {
        let stream = TcpStream::connect(self.address).unwrap();
        Raw::new(stream)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        self.thread.take().map(JoinHandle::join);
    }
}

/// A frame of the protocol: length, tag and body.
pub(crate) fn frame(tag: u8, body: &str) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).unwrap();
    [&length.to_be_bytes()[..], &[tag], body.as_bytes()].concat()
}

/// The greeting of this version for a purpose.
pub(crate) fn hello_for(purpose: &str) -> Vec<u8> {
    frame(b'H', &format!(r#"{{"version":{VERSION},"program":"test","purpose":"{purpose}"}}"#))
}

/// The greeting of a client of this version.
pub(crate) fn hello() -> Vec<u8> {
    hello_for("session")
}

/// The request of an echo over UDP, with its greeting.
pub(crate) fn echo_please() -> Vec<u8> {
    [hello(), frame(b'M', r#"{"open":{"request":{"role":"echo","transport":"udp"}}}"#)].concat()
}

/// A control connection without a client behind it.
pub(crate) struct Raw(BufReader<TcpStream>);

impl Raw {
    pub(crate) fn new(stream: TcpStream) -> Raw {
        stream.set_read_timeout(Some(PATIENCE.to_std())).unwrap();
        Raw(BufReader::new(stream))
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) {
        // A server that has had enough may have closed already.
        let _ = self.0.get_mut().write_all(bytes);
    }

    /// The body of the next frame that is JSON; `None` at the end.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).ok()?;
            let [a, b, c, d, tag] = head;
            let mut body = vec![0; u32::from_be_bytes([a, b, c, d]) as usize - 1];
            self.0.read_exact(&mut body).ok()?;
            if tag != tag::TIME_REQUEST {
                return Some(serde_json::from_slice(&body).unwrap());
            }
        }
    }

    /// The next line; `None` at the end.
    pub(crate) fn hear_line(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(1..) => Some(serde_json::from_str(&line).unwrap()),
            _ => None,
        }
    }

    /// The reason why the server refuses.
    pub(crate) fn hear_refusal(&mut self) -> String {
        let said = self.hear().unwrap();
        let why = said["refused"]["refusal"]["why"].as_str();
        why.unwrap_or_else(|| panic!("{said} refuses nothing")).to_owned()
    }

    /// Opens an echo over UDP, and says the key and the port.
    pub(crate) fn open_echo(&mut self) -> ([u8; 8], u16) {
        self.say(&echo_please());
        assert_eq!(self.hear().unwrap()["version"], VERSION);
        let said = self.hear().unwrap();
        let opened = &said["opened"];
        let port = u16::try_from(opened["port"].as_u64().unwrap()).unwrap();
        (opened["key"].as_u64().unwrap().to_be_bytes(), port)
    }
}

/// The other end of a client that a test answers by itself: reads the greeting and the request, and accepts with packets to
/// this port.
pub(crate) fn answer_client(control: TcpStream, port: u16) -> Raw {
    let mut raw = Raw::new(control);
    raw.hear().unwrap();
    raw.hear().unwrap();
    raw.say(&frame(b'W', &format!(r#"{{"version":{VERSION},"program":"test","name":""}}"#)));
    let facts = r#"{"program":"","sample-rates":[],"channels":0,"transports":[]}"#;
    raw.say(&frame(b'M', &format!(r#"{{"opened":{{"key":7,"port":{port},"seed":0,"facts":{facts}}}}}"#)));
    raw
}

/// A packet with this number, filled up to `size`.
pub(crate) fn packet(number: u32, size: usize) -> Vec<u8> {
    let mut packet = number.to_be_bytes().to_vec();
    packet.resize(size.max(4), number as u8);
    packet
}

/// Turns the session until `done`, and says what has arrived.
pub(crate) fn until(
    session: &mut Session,
    mut done: impl FnMut(&Session, &[Vec<u8>]) -> bool,
) -> Result<Vec<Vec<u8>>, Ended> {
    let deadline = now() + PATIENCE;
    let (mut waiter, mut arrived) = (Waiter::default(), Vec::new());
    while !done(session, &arrived) {
        assert!(now() < deadline, "nothing more has arrived than {} packets", arrived.len());
        session.turn(now(), &mut |_: Time, packet| arrived.push(packet.to_vec()))?;
        if !done(session, &arrived) {
            waiter.wait(session, None, deadline.min(now() + Duration::from_millis(20)));
        }
    }
    Ok(arrived)
}
