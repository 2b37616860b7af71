//! What a browser waits for: the bytes of the page's first load, and how long the server takes for it, for the lists, and for a
//! trace of a million messages.
//!
//! `cargo run --release -p trunkline-benches --bin page`

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anstream::println;
use clap::Parser;
use serde_json::{Value, json};
use trunkline_benches::Spread;
use trunkline_server::{Connections, Options, Server, Transport};
use trunkline_store::Store;

/// What a browser waits for.
#[derive(Parser)]
struct Arguments {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 20)]
    rounds: u32,
    /// Messages of the trace
    #[arg(long, default_value_t = 1_000_000)]
    records: u32,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let place = tempfile::tempdir()?;
    let server = Server::bind(options(place.path())?)?;
    let address = server.address();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(&stop));
        let measured = measure(address, &arguments);
        stop.store(true, Ordering::Relaxed);
        let served = serving.join().map_err(|_| "the server has failed")?;
        measured.and(Ok(served?))
    })
}

fn measure(address: SocketAddr, arguments: &Arguments) -> Result<()> {
    let first = first_load(address)?;
    println!("first load: {} files", first.len());
    for (path, bytes) in &first {
        println!("  {path:<40} {:>8.1} kB", *bytes as f64 / 1e3);
    }
    println!(
        "  {:<40} {:>8.1} kB compressed",
        "all",
        first.iter().map(|(_, bytes)| bytes).sum::<usize>() as f64 / 1e3
    );
    let load = rounds(arguments.rounds, || first_load(address).map(|_| ()))?;
    println!("  one after the other on connections of their own: {load:.1} ms");

    let (run, records) = trace(address, arguments.records)?;
    println!("a trace of {records} messages:");
    let flow = format!("/api/v1/runs/{run}/points/0/repetitions/0/flows/voice");
    let run = format!("/api/v1/runs/{run}");
    for (what, path) in [
        ("the run with its figures", run.as_str()),
        ("the list of runs", "/api/v1/runs"),
        ("latency, all of it", &format!("{flow}/latency")),
        ("latency, a tenth of it", &format!("{flow}/latency?from=60&to=76")),
        ("latency, a hundredth of it: exact", &format!("{flow}/latency?from=60&to=61.6")),
        ("its distribution", &format!("{flow}/cdf")),
    ] {
        let bytes = get(address, path)?.len();
        let time = rounds(arguments.rounds, || get(address, path).map(|_| ()))?;
        println!("  {what:<40} {time:>8.1} ms, {:.1} kB", bytes as f64 / 1e3);
    }
    Ok(())
}

/// Milliseconds.
fn rounds(rounds: u32, mut one: impl FnMut() -> Result<()>) -> Result<Spread> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let since = Instant::now();
        one()?;
        times.push(since.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Spread::of(&times))
}

/// What a browser loads before it can show the first page: the document, and what that names. Each with its compressed bytes.
fn first_load(address: SocketAddr) -> Result<Vec<(String, usize)>> {
    let document = String::from_utf8(get_plain(address, "/")?)?;
    let mut named = BTreeSet::from(["/".to_owned()]);
    for attribute in ["src=\"", "href=\""] {
        for (place, _) in document.match_indices(attribute) {
            let path = document[place + attribute.len()..].split('"').next().unwrap_or_default();
            let path = path.trim_start_matches("./").trim_start_matches('/');
            // Links to elsewhere, and into the page itself, are not loaded.
            if !path.is_empty() && !path.starts_with('#') && !path.contains(':') && !path.starts_with("api/")
            {
                named.insert(format!("/{path}"));
            }
        }
    }
    named.into_iter().map(|path| Ok((path.clone(), get(address, &path)?.len()))).collect()
}

/// A run with a trace of so many messages, and how many they are.
fn trace(address: SocketAddr, records: u32) -> Result<(u64, u64)> {
    let seconds = f64::from(records) / 6400.0;
    let text = format!(
        "name = \"a long trace\"\nduration = \"{seconds} s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
         rate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\ncount = 64\n\
         source = {{ kind = \"voice\", samples = 80 }}\n"
    );
    let body = json!({ "text": text, "backend": "sim" }).to_string();
    let begun: Value = serde_json::from_slice(&ask(address, "POST", "/api/v1/runs", Some(&body), true)?)?;
    let job = format!("/api/v1/jobs/{}", begun["job"].as_str().unwrap_or_default());
    loop {
        let job: Value = serde_json::from_slice(&get_plain(address, &job)?)?;
        match job["state"].as_str() {
            Some("done") => {
                let run = job["run"].as_u64().ok_or("it has no run")?;
                let report: Value =
                    serde_json::from_slice(&get_plain(address, &format!("/api/v1/runs/{run}/json"))?)?;
                let sent = &report["points"][0]["runs"][0]["flows"][0]["figures"]["sent"]["mean"];
                return Ok((run, sent.as_f64().unwrap_or_default() as u64));
            }
            Some("waiting" | "running") => std::thread::sleep(Duration::from_millis(50)),
            _ => return Err(format!("the trace cannot be made: {job}").into()),
        }
    }
}

fn get(address: SocketAddr, path: &str) -> Result<Vec<u8>> {
    ask(address, "GET", path, None, true)
}

fn get_plain(address: SocketAddr, path: &str) -> Result<Vec<u8>> {
    ask(address, "GET", path, None, false)
}

/// The body of an answer, as it comes over the network.
fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&str>,
    is_compressed: bool,
) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let compressed = if is_compressed && body.is_none() { "accept-encoding: br\r\n" } else { "" };
    let body = body.unwrap_or_default();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{compressed}content-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    if !line.contains(" 20") {
        return Err(format!("{path}: {}", line.trim()).into());
    }
    let mut is_chunked = false;
    while !line.trim().is_empty() {
        line.clear();
        lines.read_line(&mut line)?;
        is_chunked |= line.to_ascii_lowercase().starts_with("transfer-encoding: chunked");
    }
    let mut body = Vec::new();
    if !is_chunked {
        lines.read_to_end(&mut body)?;
        return Ok(body);
    }
    loop {
        line.clear();
        lines.read_line(&mut line)?;
        let length = u64::from_str_radix(line.trim(), 16)?;
        (&mut lines).take(length).read_to_end(&mut body)?;
        lines.read_line(&mut String::new())?;
        if length == 0 {
            return Ok(body);
        }
    }
}

fn options(place: &Path) -> Result<Options> {
    Ok(Options {
        listen: "127.0.0.1:0".parse()?,
        transport: Transport::Plain,
        authenticate: false,
        connections: Connections::default(),
        store: Store::open(&place.join("store"))?,
        place: "a store of its own".to_owned(),
        files: place.to_path_buf(),
        folder: place.join("config"),
        secrets: place.join("secrets"),
        program: std::env::current_exe()?,
        wire: Err("no wires are made here".to_owned()),
    })
}
