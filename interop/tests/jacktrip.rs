//! JackTrip at the other end: as client, as server and as hub, between JACK servers of their own and ours.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use trunkline_audio::pipeline::Stream;
use trunkline_calls::Peers;
use trunkline_calls::foreign::Foreign;
use trunkline_calls::foreign::jacktrip::{JackTripOptions, answer, call, call_hub};
use trunkline_interop::live::converse;
use trunkline_interop::tone::{ToneWindows, tone};
use trunkline_interop::{PATIENCE, Program, is_installed};
use trunkline_io::jack::{Client, Direction, Period, Process};
use trunkline_testkit::jack::Server;
use trunkline_testkit::real_time::in_real_time_within;

const RATE: u32 = 48_000;
const PERIOD: u32 = 128;
/// What JackTrip is given to send, and what we send: 100 and 80 samples in a period.
const THEIRS: f64 = 480.0;
const OURS: f64 = 600.0;
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// 10 ms, four periods of JACK's.
const WINDOW: usize = 480;
/// JackTrip queues four periods of 128 frames, 10.7 ms: a stall this long empties the queue.
const JACKTRIPS_QUEUE: Duration = Duration::from_millis(10);
/// Windows to listen to: 3 s.
const ENOUGH: usize = 300;

fn is_all_installed() -> bool {
    is_installed("jackd", "the Debian package `jackd2`")
        && is_installed("jacktrip", "the Debian package `jacktrip`")
}

/// A JACK server without a sound card, JackTrip as its client, and we as another that talks into it and listens.
struct Room {
    heard: Arc<Mutex<Vec<f32>>>,
    client: Client,
    jacktrip: Program,
    _server: Server,
}

impl Room {
    fn open(jacktrip: &str) -> Room {
        let server = Server::start(RATE, PERIOD).expect("it is installed");
        let name = server.name();
        let heard = Arc::new(Mutex::new(Vec::with_capacity(60 * RATE as usize)));
        let voice = Voice { at: 0, heard: Arc::clone(&heard) };
        let client = patiently(|| {
            let mut client = Client::open("friend", Some(name)).ok()?;
            client.register("mouth", Direction::Output).ok()?;
            client.register("ear", Direction::Input).ok()?;
            Some(client)
        });
        let arguments = format!("JACK_DEFAULT_SERVER={name} jacktrip {jacktrip} -J peer -D");
        let jacktrip = Program::start("env", &arguments.split(' ').collect::<Vec<_>>());
        let mut room = Room { heard, client, jacktrip, _server: server };
        room.client.activate(Box::new(voice)).expect("the server is there");
        room
    }

    /// Connects us with JackTrip's first channels, once it is there and at work.
    fn connect(&self) {
        let peer = |direction, what: &str| {
            self.client.ports(direction, false).into_iter().find(|port| port.contains(what))
        };
        patiently(|| {
            let into = peer(Direction::Input, ":send_1")?;
            let out_of = peer(Direction::Output, ":receive_1")?;
            let both =
                self.client.connect("friend:mouth", &into) && self.client.connect(&out_of, "friend:ear");
            both.then_some(())
        });
    }

    /// Counts windows with our tone in what came out of JackTrip.
    fn count(&self, windows: &mut ToneWindows) -> (usize, usize) {
        count(windows, &self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Counts windows with the tone from the first sound on.
fn count(windows: &mut ToneWindows, heard: &[f32]) -> (usize, usize) {
    let first = heard.iter().position(|sample| *sample != 0.0);
    first.map_or((0, 0), |first| windows.count(&heard[first..]))
}

/// JackTrip fills a gap in what it receives, so that a late packet costs a window. On a machine that is on time nine of ten
/// windows or more are the tone and nothing else.
fn assert_is_clean(whose: &str, (tones, windows): (usize, usize)) {
    assert!(tones * 10 >= windows * 9, "{whose} tone fills {tones} of {windows} windows");
}

/// Says a tone, and keeps what it hears.
struct Voice {
    at: u64,
    heard: Arc<Mutex<Vec<f32>>>,
}

impl Process for Voice {
    fn process(&mut self, period: &mut Period<'_>) {
        let frames = period.frames();
        period.output(0).copy_from_slice(&tone(THEIRS, RATE, self.at, frames));
        self.at += frames as u64;
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(period.input(0));
    }
}

fn patiently<T>(look: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn free_port() -> u16 {
    let socket = UdpSocket::bind((HERE, 0)).expect("loopback has a free port");
    socket.local_addr().expect("it is bound").port()
}

/// Both talk until both have listened for three seconds, then we leave and JackTrip says that we did.
fn talk(mut room: Room, foreign: Foreign) {
    let (stream, _) = foreign.receives.as_ref().expect("it sends");
    assert_eq!((stream.sample_rate, stream.block_frames), (RATE, PERIOD));
    room.connect();
    let mut theirs = ToneWindows::new(WINDOW, THEIRS, RATE, 0.001);
    let mut ours = ToneWindows::new(WINDOW, OURS, RATE, 0.01);
    let heard = converse(foreign, OURS, |heard| {
        count(&mut theirs, &heard.samples).1 >= ENOUGH && room.count(&mut ours).1 >= ENOUGH
    });
    assert_eq!(heard.ended, None);
    assert!(heard.blocks.is_sorted_by(|before, block| before + 1 == *block), "a gap in {:?}", heard.blocks);
    assert_is_clean("JackTrip's", count(&mut theirs, &heard.samples));
    assert_is_clean("our", room.count(&mut ours));
    room.jacktrip.wait_until_it_says("Peer Stopped");
}

#[test]
fn a_client_is_received_and_answered() {
    if !is_all_installed() {
        return;
    }
    in_real_time_within(JACKTRIPS_QUEUE, || {
        let port = free_port();
        let room = Room::open(&format!("-c 127.0.0.1 -B {} -P {port} -n 2 -r 2 -b 24", free_port()));
        let options = JackTripOptions::default();
        let deadline = Instant::now() + PATIENCE;
        let foreign =
            answer(SocketAddr::new(HERE, port), &options, &Peers::Near, &|| Instant::now() > deadline)
                .expect("the port is free");
        let foreign = foreign.expect("JackTrip calls");
        assert_eq!(foreign.sends.as_ref().map(|(stream, _)| stream.channels), Some(2));
        talk(room, foreign);
    });
}

#[test]
fn a_server_is_called() {
    if !is_all_installed() {
        return;
    }
    in_real_time_within(JACKTRIPS_QUEUE, || {
        let port = free_port();
        let room = Room::open(&format!("-s -B {port} -n 1"));
        let stream = Stream { channels: 1, sample_rate: RATE, block_frames: PERIOD, ..Stream::default() };
        let options = JackTripOptions::default();
        let patience = trunkline_core::Duration::from_secs(60);
        let foreign = call(&format!("127.0.0.1:{port}"), &stream, &options, patience).expect("it answers");
        talk(room, foreign);
    });
}

/// A hub that gives each client its own sound back.
#[test]
fn a_hub_is_called() {
    if !is_all_installed() {
        return;
    }
    in_real_time_within(JACKTRIPS_QUEUE, || {
        let [port, data] = [free_port(), free_port()];
        let mut room = Room::open(&format!("-S -B {port} -U {data} -p 1"));
        room.jacktrip.wait_until_it_says("Waiting for client connections");
        let stream = Stream { channels: 2, sample_rate: RATE, block_frames: PERIOD, ..Stream::default() };
        let options = JackTripOptions::default();
        let patience = trunkline_core::Duration::from_secs(60);
        let foreign = call_hub(&format!("127.0.0.1:{port}"), "trunkline", &stream, &options, patience)
            .expect("it answers");
        let mut ours = ToneWindows::new(WINDOW, OURS, RATE, 0.01);
        let heard = converse(foreign, OURS, |heard| count(&mut ours, &heard.samples).1 >= ENOUGH);
        assert_eq!(heard.ended, None);
        assert_is_clean("our", count(&mut ours, &heard.samples));
    });
}
