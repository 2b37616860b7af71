//! Devices against real JACK servers (`jackd` with its dummy driver): synchronous ones, which wait for a client that the
//! machine is late to run, so that what is heard depends on us only. On a busy machine they take minutes, so two of them run alone.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trunkline_audio::format::Encoding;
use trunkline_core::Time;
use trunkline_io::jack::{Client, Direction, Period, Process};
use trunkline_sound::file::Writer;
use trunkline_sound::{Callbacks, Device, Format, Place, Status, Wanted, open};
use trunkline_testkit::jack::Server;
use trunkline_testkit::real_time::in_real_time;

/// Tries until it can be done: for the hundredth part of a second that a server takes, or the seconds of a busy machine.
fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(result) = attempt() {
            return result;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}: not within half a minute");
}

/// libjack serves one server at a time: so do the tests of one process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open_device(wanted: Wanted, make: impl Fn(Format) -> Box<dyn Callbacks> + Send + 'static) -> Device {
    open(wanted, Box::new(move |format| Ok(make(format)))).unwrap()
}

/// Plays frames that say where they belong: the first channel has their number, the second a tone.
struct Player {
    number: u32,
    rate: u32,
    /// How long it takes each time.
    pause: Duration,
}

fn player(format: Format) -> Box<dyn Callbacks> {
    Box::new(Player { number: 0, rate: format.sample_rate, pause: Duration::ZERO })
}

fn tone(number: u32, rate: u32) -> f32 {
    (std::f64::consts::TAU * 440.0 * f64::from(number) / f64::from(rate)).sin() as f32
}

impl Callbacks for Player {
    fn captured(&mut self, _: Time, _: &[f32]) {}

    fn render(&mut self, _: Time, frames: &mut [f32]) {
        std::thread::sleep(self.pause);
        for frame in frames.chunks_mut(2) {
            self.number += 1;
            frame.copy_from_slice(&[self.number as f32, tone(self.number, self.rate)]);
        }
    }
}

/// What was heard on two channels.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<f32>>>);

impl Callbacks for Heard {
    fn captured(&mut self, _: Time, frames: &[f32]) {
        self.0.lock().unwrap().extend_from_slice(frames);
    }

    fn render(&mut self, _: Time, _: &mut [f32]) {}
}

impl Heard {
    fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    /// Waits for so many frames after the last of the two connections, and asserts that they are the player's, all of them.
    fn assert_whole(&self, frames: usize, rate: u32) {
        let heard = until("the tone is heard", || {
            let heard = self.0.lock().unwrap();
            let silent = heard.chunks(2).rposition(|frame| frame[0] == 0.0).map_or(0, |at| at + 1);
            // The tone itself is silent at times, but its connection comes a few periods after the other.
            let start = 2 * silent + 2 * heard[2 * silent..].chunks(2).position(|frame| frame[1] != 0.0)?;
            (heard.len() >= start + 2 * frames).then(|| heard[start..].to_vec())
        });
        let first = heard[0] as u32;
        for (frame, number) in heard.chunks(2).zip(first..) {
            assert_eq!(frame, [number as f32, tone(number, rate)], "frame {number} of those from {first}");
        }
    }
}

fn wanted(server: &str, client: &str) -> Wanted {
    Wanted { server: Some(server.to_owned()), client: client.to_owned(), ..Wanted::default() }
}

fn play(server: &str) -> Device {
    let playback = Some((Place::Jack { ports: Some(String::new()) }, 2));
    open_device(Wanted { playback, ..wanted(server, "player") }, player)
}

fn listen(server: &str, heard: &Heard) -> Device {
    let capture = Some((Place::Jack { ports: Some("player:output_*".to_owned()) }, 2));
    let heard = heard.clone();
    open_device(Wanted { capture, ..wanted(server, "listener") }, move |_| Box::new(heard.clone()))
}

#[test]
fn a_tone_is_heard_whole_at_every_period() {
    in_real_time(a_tone_is_heard_whole);
}

fn a_tone_is_heard_whole() {
    let _alone = alone();
    for period in [64, 128, 256, 512, 1024] {
        let Some(server) = Server::start(48_000, period) else { return };
        let player = play(server.name());
        let heard = Heard::default();
        let listener = listen(server.name(), &heard);
        let expected =
            Format { sample_rate: 48_000, block_frames: period, capture_channels: 0, playback_channels: 2 };
        assert_eq!(player.format(), expected);
        assert_eq!(listener.format(), Format { capture_channels: 2, playback_channels: 0, ..expected });
        heard.assert_whole(9_600, 48_000);
        assert_eq!(listener.status(), Status::Running);
    }
}

#[test]
fn a_server_that_comes_back_is_used_again_at_its_new_rate() {
    in_real_time(a_server_that_comes_back_is_used_again);
}

fn a_server_that_comes_back_is_used_again() {
    let _alone = alone();
    let Some(mut server) = Server::start(48_000, 256) else { return };
    let player = play(server.name());
    let heard = Heard::default();
    let listener = listen(server.name(), &heard);
    heard.assert_whole(1000, 48_000);

    server.crash();
    let name = server.name().to_owned();
    let is_waiting = |device: &Device| matches!(device.status(), Status::Waiting { .. }).then_some(());
    until("the player notices", || is_waiting(&player));
    until("the listener notices", || is_waiting(&listener));
    let Status::Waiting { why } = until("it is tried again", || {
        Some(player.status())
            .filter(|status| matches!(status, Status::Waiting { why } if why.contains(name.as_str())))
    }) else {
        unreachable!()
    };
    assert!(why.starts_with("the JACK server `"), "{why}");

    heard.clear();
    server.again(44_100, 128);
    until("both are back", || {
        (player.status() == Status::Running && listener.status() == Status::Running).then_some(())
    });
    assert_eq!((player.format().sample_rate, player.format().block_frames), (44_100, 128));
    heard.assert_whole(1000, 44_100);
}

/// Plays a constant on each of its ports.
struct Constant;

impl Process for Constant {
    fn process(&mut self, period: &mut Period<'_>) {
        period.output(0).fill(0.25);
        period.output(1).fill(0.5);
    }
}

/// Every client has ports before it is active, and until then the server refuses to connect them.
#[test]
fn ports_of_a_client_that_is_not_active_yet_are_connected_later() {
    let _alone = alone();
    let Some(server) = Server::start(48_000, 128) else { return };
    let mut player = Client::open("player", Some(server.name())).unwrap();
    for port in ["output_1", "output_2"] {
        player.register(port, Direction::Output).unwrap();
    }
    let heard = Heard::default();
    let listener = listen(server.name(), &heard);
    until("the listener runs", || (!heard.0.lock().unwrap().is_empty()).then_some(()));
    assert_eq!(listener.status(), Status::Running);
    player.activate(Box::new(Constant)).unwrap();
    until("both channels are heard, in their order", || {
        heard.0.lock().unwrap().chunks(2).any(|frame| frame == [0.25, 0.5]).then_some(())
    });
}

/// Plays what it captures.
#[derive(Default)]
struct Through(Vec<f32>);

impl Callbacks for Through {
    fn captured(&mut self, _: Time, frames: &[f32]) {
        self.0 = frames.to_vec();
    }

    fn render(&mut self, _: Time, frames: &mut [f32]) {
        frames[..self.0.len()].copy_from_slice(&self.0);
    }
}

#[test]
fn a_file_goes_on_where_it_was_when_its_server_comes_back() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("numbers.wav");
    let mut writer = Writer::create(&path, 1, 48_000, Encoding::F32).unwrap();
    // Longer than all waits of a busy machine together, so that it does not end before it is heard again.
    let numbers: Vec<f32> = (1..8_000_000).map(|number| number as f32 / 8_388_608.0).collect();
    writer.write(&numbers).unwrap();
    writer.finish().unwrap();

    let Some(mut server) = Server::start(48_000, 128) else { return };
    let wanted = Wanted {
        capture: Some((Place::File(path), 1)),
        playback: Some((Place::Jack { ports: Some(String::new()) }, 1)),
        ..wanted(server.name(), "player")
    };
    let player = open_device(wanted, |_| Box::new(Through::default()));
    let heard = Heard::default();
    let last = |heard: &Heard| {
        let numbers = heard.0.lock().unwrap();
        numbers.iter().rev().copied().find(|number| *number > 0.0)
    };
    {
        let _listener = listen(server.name(), &heard);
        until("the file is heard", || last(&heard).map(|_| ()));
    }
    server.crash();
    until("the player notices", || matches!(player.status(), Status::Waiting { .. }).then_some(()));
    let before = last(&heard).unwrap();
    heard.clear();

    server.again(48_000, 64);
    until("the player is back", || (player.status() == Status::Running).then_some(()));
    eprintln!("{before} of the file had been heard");
    let _listener = listen(server.name(), &heard);
    until("the file is heard again", || last(&heard).map(|_| ()));
    let after = heard.0.lock().unwrap().iter().copied().find(|number| *number > 0.0).unwrap();
    assert!(before < after, "from {before} it went on at {after}");
    assert_eq!(player.format().block_frames, 64);
}

#[test]
fn who_is_too_slow_is_counted() {
    let _alone = alone();
    let Some(server) = Server::start(48_000, 64) else { return };
    let playback = Some((Place::Jack { ports: Some(String::new()) }, 2));
    let slow = |format: Format| -> Box<dyn Callbacks> {
        Box::new(Player { number: 0, rate: format.sample_rate, pause: Duration::from_millis(5) })
    };
    let player = open_device(Wanted { playback, ..wanted(server.name(), "slow") }, slow);
    until("xruns are counted", || (player.xruns() > 3).then_some(()));
}

#[test]
fn two_servers_serve_two_processes_at_once() {
    const SECOND: &str = "TRUNKLINE_SECOND_SERVER";
    let _alone = alone();
    let is_second = std::env::var_os(SECOND).is_some();
    let rate = if is_second { 44_100 } else { 48_000 };
    let Some(server) = Server::start(rate, 128) else { return };
    let _player = play(server.name());
    let heard = Heard::default();
    let _listener = listen(server.name(), &heard);
    heard.assert_whole(1000, rate);
    if is_second {
        println!("\n{SECOND}={}", server.name());
        // Until the first has no more use for this one.
        let _ = std::io::stdin().read_line(&mut String::new());
        heard.clear();
        heard.assert_whole(1000, rate);
        return;
    }
    let mut second = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "two_servers_serve_two_processes_at_once", "--nocapture"])
        .env(SECOND, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(second.stdout.take().unwrap()).lines().map(Result::unwrap);
    let name = lines.find_map(|line| line.strip_prefix(&format!("{SECOND}=")).map(str::to_owned));
    let name = name.expect("the second process hears its server and says so");
    heard.clear();
    heard.assert_whole(1000, rate);
    let playback = Some((Place::Jack { ports: None }, 2));
    let error = open(Wanted { playback, ..wanted(&name, "third") }, Box::new(|format| Ok(player(format))))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "this process uses the JACK server `{}` and cannot use `{name}` too; run another process for it",
            server.name()
        )
    );
    drop(second.stdin.take());
    assert!(second.wait().unwrap().success());
}

#[test]
fn what_is_not_there_is_named() {
    let _alone = alone();
    let Some(server) = Server::start(48_000, 1024) else { return };
    let player = play(server.name());
    let refused = |server: &str, ports: &str| {
        let capture = Some((Place::Jack { ports: Some(ports.to_owned()) }, 2));
        let wanted = Wanted { capture, ..wanted(server, "listener") };
        open(wanted, Box::new(|_| Ok(Box::new(Heard::default())))).unwrap_err().to_string()
    };
    assert_eq!(
        refused(server.name(), "playr:*"),
        "no JACK port matches `playr:*`; there are `system:capture_1`, `system:capture_2`, `player:output_1`, \
         `player:output_2`"
    );
    let name = server.name().to_owned();
    drop((player, server));
    let gone = refused(&name, "");
    assert!(gone.starts_with(&format!("the JACK server `{name}` does not respond; start it")), "{gone}");
}
