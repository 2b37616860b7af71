//! What the control connections of a team of agents cost one process: memory of 200 of them, at rest and after much was
//! said; how long they take to begin; round trips and bulk beside bare TCP.
//!
//! `cargo run --release -p trunkline-benches --bin controllers`

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use anstream::println;
use clap::Parser;
use trunkline_benches::{Spread, memory};
use trunkline_control::clock::TimeRequest;
use trunkline_control::message::{Chunk, Purpose};
use trunkline_control::{
    Connection, Fingerprint, FromAgent, Identity, Listener, PartId, PeerError, ToAgent, connect,
};
use trunkline_core::{Duration, Time};
use trunkline_io::process::{cpu_time, raise_open_files};
use trunkline_metrics::clocks::Turning;

/// Cost of control connections.
#[derive(Parser)]
struct Options {
    /// Control connections of one process
    #[arg(long, default_value_t = 200)]
    connections: usize,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Be the agents
    #[arg(long, hide = true)]
    agents: bool,
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a chunk.
const CHUNK: usize = 1 << 20;
/// Chunks of a round.
const CHUNKS: u64 = 64;
/// Round trips of a round.
const TRIPS: u64 = 2_000;

fn main() -> Result<()> {
    let options = Options::parse();
    raise_open_files(options.connections as u64 * 2 + 100)?;
    if options.agents { agents() } else { controller(&options) }
}

/// The other process: all of the agents behind one port.
fn agents() -> Result<()> {
    let identity = Identity::generate()?;
    let listener = Listener::bind("127.0.0.1:0", &identity)?;
    let bare = TcpListener::bind("127.0.0.1:0")?;
    println!("{} {} {}", listener.local_address(), identity.fingerprint(), bare.local_addr()?);
    thread::spawn(move || bare.incoming().try_for_each(|socket| serve_bare(socket?)));
    thread::spawn(move || -> std::result::Result<(), PeerError> {
        loop {
            let incoming = listener.accept()?;
            thread::spawn(move || incoming.handshake(PATIENCE).and_then(serve));
        }
    });
    // How much memory they take, whenever somebody asks.
    for line in std::io::stdin().lines() {
        line?;
        println!("{}", memory::peak());
    }
    Ok(())
}

/// An agent: tells the time; sends chunks when it is asked to.
fn serve(mut connection: Connection) -> std::result::Result<(), PeerError> {
    connection.hear(PATIENCE)?;
    connection.welcome("bench")?;
    connection.trust();
    let (mut reader, writer) = connection.split();
    while let Some(said) = reader.receive()? {
        match said {
            ToAgent::Time(request) => {
                writer.send(&FromAgent::Time(request.reply(Time::from_nanos(1), Turning::Never)))?;
            }
            ToAgent::Attach { part, from } => {
                for number in 0..from {
                    writer.send(&Chunk { part: part.clone(), number, data: vec![7; CHUNK] })?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The same over bare TCP: a question is eight bytes, how many chunks are wanted, or zero for an answer of eight bytes.
fn serve_bare(mut socket: TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let (mut question, chunk) = ([0; 8], vec![7; CHUNK]);
    while socket.read_exact(&mut question).is_ok() {
        match u64::from_be_bytes(question) {
            0 => socket.write_all(&question)?,
            chunks => (0..chunks).try_for_each(|_| socket.write_all(&chunk))?,
        }
    }
    Ok(())
}

fn controller(options: &Options) -> Result<()> {
    let mut child = Agents::start()?;
    let identity = Identity::generate()?;
    let before = memory::resident();
    memory::forget_peak();

    let (began, cpu) = (Instant::now(), cpu_time());
    let mut readers = Vec::new();
    let mut writers = Vec::new();
    let mut first = None;
    for _ in 0..options.connections {
        let mut connection = connect(&child.address, &identity, &child.fingerprint, PATIENCE)?;
        connection.introduce(Purpose::Control, PATIENCE)?;
        // One is used by this thread; behind every other one waits a thread, as in a controller.
        if first.is_none() {
            first = Some(connection);
            continue;
        }
        let (mut reader, writer) = connection.split();
        writers.push(writer);
        readers.push(thread::Builder::new().stack_size(256 << 10).spawn(move || {
            let mut chunks = 0u64;
            while let Ok(Some(said)) = reader.receive::<FromAgent>() {
                chunks += u64::from(matches!(said, FromAgent::Chunk(_)));
            }
            chunks
        })?);
    }
    let each = 1e3 / options.connections as f64;
    println!("{} connections, a reading thread for each:", options.connections);
    let (wall, cpu) = (began.elapsed().as_secs_f64() * each, (cpu_time() - cpu).as_secs_f64() * each);
    println!("  to begin one            {wall:.2} ms, {cpu:.2} ms of CPU at this end");
    let grown = |bytes: u64| bytes.saturating_sub(before) as f64 / 1e6;
    println!(
        "  memory at rest          {:.1} MB (the process {:.1} MB)",
        grown(memory::resident()),
        memory::resident() as f64 / 1e6
    );
    let part = PartId { run: "0".repeat(32), point: 0, repetition: 0, pair: 0, attempt: 0 };
    for writer in &writers {
        writer.send(&ToAgent::Attach { part: part.clone(), from: 1 })?;
    }
    let Some(mut one) = first else { return Err("there must be a connection".into()) };
    // Bulk beside them, so that it shows what is held while much is said.
    bulk(&mut one, &part)?;
    thread::sleep(std::time::Duration::from_secs(5));
    println!(
        "  after 1 MiB over each   {:.1} MB, {:.1} MB at the peak (the process {:.1} MB)",
        grown(memory::resident()),
        grown(memory::peak()),
        memory::peak() as f64 / 1e6
    );
    println!("  the agents' process     {:.1} MB at the peak", child.peak()? as f64 / 1e6);

    let mut bare = TcpStream::connect(&child.bare)?;
    bare.set_nodelay(true)?;
    let (mut trips, mut bare_trips, mut rates, mut bare_rates) = (vec![], vec![], vec![], vec![]);
    for _ in 0..options.rounds {
        trips.push(round_trips(&mut one)?);
        bare_trips.push(bare_round_trips(&mut bare)?);
        rates.push(bulk(&mut one, &part)?);
        bare_rates.push(bare_bulk(&mut bare)?);
    }
    println!("round trip              {:.1} us", Spread::of(&trips));
    println!("  bare TCP              {:.1} us", Spread::of(&bare_trips));
    println!("  ratio                 {:.2}", Spread::of_ratios(&trips, &bare_trips));
    println!("chunks of 1 MiB         {:.0} MB/s", Spread::of(&rates));
    println!("  bare TCP              {:.0} MB/s", Spread::of(&bare_rates));
    println!("  ratio                 {:.2}", Spread::of_ratios(&rates, &bare_rates));

    drop(writers);
    child.stop()?;
    let heard: u64 = readers.into_iter().map(|reader| reader.join().unwrap_or(0)).sum();
    if heard != options.connections as u64 - 1 {
        return Err(format!("{heard} of {} chunks have come", options.connections - 1).into());
    }
    Ok(())
}

/// Microseconds of a round trip, the mean of a round.
fn round_trips(one: &mut Connection) -> Result<f64> {
    let began = Instant::now();
    for sent in 0..TRIPS {
        one.send(&ToAgent::Time(TimeRequest { sent: Time::from_nanos(sent) }))?;
        one.receive::<FromAgent>()?.ok_or("the agents have ended")?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / TRIPS as f64)
}

fn bare_round_trips(bare: &mut TcpStream) -> Result<f64> {
    let began = Instant::now();
    for _ in 0..TRIPS {
        bare.write_all(&[0; 8])?;
        bare.read_exact(&mut [0; 8])?;
    }
    Ok(began.elapsed().as_secs_f64() * 1e6 / TRIPS as f64)
}

/// Megabytes of chunks per second.
fn bulk(one: &mut Connection, part: &PartId) -> Result<f64> {
    let began = Instant::now();
    one.send(&ToAgent::Attach { part: part.clone(), from: CHUNKS })?;
    for _ in 0..CHUNKS {
        one.receive::<Chunk>()?.ok_or("the agents have ended")?;
    }
    Ok((CHUNKS as usize * CHUNK) as f64 / 1e6 / began.elapsed().as_secs_f64())
}

fn bare_bulk(bare: &mut TcpStream) -> Result<f64> {
    let mut chunk = vec![0; CHUNK];
    let began = Instant::now();
    bare.write_all(&CHUNKS.to_be_bytes())?;
    for _ in 0..CHUNKS {
        bare.read_exact(&mut chunk)?;
    }
    Ok((CHUNKS as usize * CHUNK) as f64 / 1e6 / began.elapsed().as_secs_f64())
}

/// The process of the agents; ends with its input.
struct Agents {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    address: String,
    fingerprint: Fingerprint,
    bare: String,
}

impl Agents {
    fn start() -> Result<Agents> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--agents")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut answers = BufReader::new(child.stdout.take().ok_or("the agents have no output")?);
        let mut line = String::new();
        answers.read_line(&mut line)?;
        let mut words = line.split_whitespace().map(str::to_owned);
        let mut word = || words.next().ok_or("the agents do not say where they are");
        let (address, fingerprint, bare) = (word()?, word()?.parse()?, word()?);
        Ok(Agents { child, answers, address, fingerprint, bare })
    }

    /// The most memory that it has taken, in bytes.
    fn peak(&mut self) -> Result<u64> {
        let input = self.child.stdin.as_mut().ok_or("the agents have ended")?;
        input.write_all(b"?\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        Ok(line.trim().parse()?)
    }

    fn stop(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        self.child.wait()?;
        Ok(())
    }
}
