//! `GET /metrics`.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::daemon::Daemon;
use crate::prometheus;

/// The longest request.
const LONGEST: u64 = 16 << 10;
/// Who takes longer to ask or to read has gone.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many are answered at a time.
const MOST: u64 = 16;

/// Answers at a socket for as long as the process lives.
pub(crate) fn serve(listener: &TcpListener, daemon: &Arc<Daemon>) {
    let answered = Arc::new(AtomicU64::new(0));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(_) => {
                // Out of descriptors: others will be closed.
                std::thread::sleep(Duration::from_millis(200));
                continue;
            }
        };
        if answered.load(Ordering::Relaxed) >= MOST {
            continue;
        }
        answered.fetch_add(1, Ordering::Relaxed);
        let (of_thread, answered_too) = (Arc::clone(daemon), Arc::clone(&answered));
        let started = daemon.spawn("metrics-client", move || {
            // Whatever goes wrong with a client is its own affair.
            let _ = answer(&stream, &of_thread);
            answered_too.fetch_sub(1, Ordering::Relaxed);
        });
        if started.is_err() {
            answered.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Answers one request and closes.
fn answer(mut stream: &TcpStream, daemon: &Daemon) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(LONGEST)).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // The header, up to the empty line.
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, body) = match (method, path.split('?').next().unwrap_or_default()) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", prometheus::text(&prometheus::Snapshot::take(daemon))),
        ("GET" | "HEAD", _) => ("404 Not Found", "there is `/metrics`\n".to_owned()),
        _ => ("405 Method Not Allowed", "only `GET /metrics` is served\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n",
        prometheus::CONTENT_TYPE,
        body.len()
    )?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}
