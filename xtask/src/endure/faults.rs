//! A path that cuts connections, and strangers.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A TCP proxy whose connections can be cut.
pub(super) struct Proxy {
    pub(super) address: String,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// Starts one in front of a server on this host. Its threads end with the program.
    pub(super) fn start(to: &str) -> std::io::Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?.to_string();
        let (open, to) = (Arc::new(Mutex::new(Vec::new())), to.to_owned());
        let all: Arc<Mutex<Vec<TcpStream>>> = Arc::clone(&open);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(&to)) else { continue };
                let (Ok(back), Ok(forth)) = (client.try_clone(), server.try_clone()) else { continue };
                let kept = [&client, &server].map(TcpStream::try_clone);
                all.lock().unwrap_or_else(PoisonError::into_inner).extend(kept.into_iter().flatten());
                thread::spawn(move || pass(client, forth));
                thread::spawn(move || pass(server, back));
            }
        });
        Ok(Proxy { address, open })
    }

    /// Ends every connection that has passed so far.
    pub(super) fn cut(&self) {
        for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // It may have ended already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    // Either end may close at any time.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

/// Bytes that strangers send: none, beginnings, and noise.
const WORDS: [&[u8]; 6] = [
    b"",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/1.1\r\nhost: ",
    b"POST /api/v1/check HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{",
    b"{\"say\":\"hello\",\"version\":4294967296}\n\0\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\xff\xff\xff\xff noise \0\r\n\r\n",
];

/// Connects to a server again and again and says these things; half of the connections stay open until they are dropped.
pub(super) fn strangers(address: &str) -> Vec<TcpStream> {
    let mut half_open = Vec::new();
    for (number, words) in WORDS.iter().chain(&WORDS).enumerate() {
        let Ok(mut stream) = TcpStream::connect(address) else { continue };
        // That the server closes is right.
        let _ = stream.write_all(words);
        if number < WORDS.len() {
            half_open.push(stream);
        }
    }
    half_open
}

/// The status and body of a request to an HTTP server, or what was wrong.
pub(super) fn request(address: &str, method: &str, path: &str, body: &str) -> Result<(u16, String), String> {
    let problem = |e: std::io::Error| format!("{method} {path}: {e}");
    let mut stream = TcpStream::connect(address).map_err(problem)?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(problem)?;
    let head = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    // A server may answer and close before it has read everything.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    match status {
        Some(status) => {
            Ok((status, answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned())))
        }
        None => Err(format!("{method} {path}: {answer:?} {:?}", read.err())),
    }
}
