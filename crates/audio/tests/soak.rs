//! Two sound cards whose clocks drift apart, a network between them that delays every packet differently but loses none:
//! for as long as anybody listens, there is no click and nothing is concealed.
//!
//! A minute in the usual tests; an hour in the long run (`cargo xtask soak`).

use trunkline_audio::conceal::Method;
use trunkline_audio::format::Encoding;
use trunkline_audio::pipeline::{
    Blocks, Codec, DeviceFormat, NativePacker, NativeUnpacker, Packer, Player, PlayerSettings, Stream,
    Unpacker,
};
use trunkline_audio::playout::Depth;
use trunkline_core::{Duration, Time};

const SECOND: f64 = 1e9;
const TONE: f64 = 440.0;

/// A minute, or an hour if the tests are asked for ten thousand cases.
#[allow(clippy::print_stdout, reason = "`cargo xtask soak` reads it")]
fn minutes() -> u32 {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(0u32);
    let minutes = (cases / 166).clamp(1, 60);
    println!("property: {minutes} minutes");
    minutes
}

/// A card's clock: too fast by so much at first, by `swing` more and less in the course of ten minutes, as it warms up
/// and cools down.
struct Card {
    rate: u32,
    off: f64,
    swing: f64,
    /// Nanoseconds of true time, and frames until then.
    now: f64,
    frames: u64,
}

impl Card {
    fn new(rate: u32, off: f64, swing: f64) -> Card {
        Card { rate, off, swing, now: 0.0, frames: 0 }
    }

    /// A block later.
    fn advance(&mut self, frames: u32) {
        let turns = self.now / (600.0 * SECOND);
        let fast = self.off + self.swing * libm::sin(core::f64::consts::TAU * turns);
        self.now += f64::from(frames) * SECOND / (f64::from(self.rate) * (1.0 + fast));
        self.frames += u64::from(frames);
    }
}

/// Uniform between 0 and 1, the same in every run.
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 8) / f64::from(1 << 24)
    }
}

/// Finds what is no tone: three samples in a row of a sine have a second difference that is a multiple of the middle one.
/// A frame that is left out or doubled shows as about the tone's own step.
struct Detector {
    twice_cosine: f64,
    last: [f64; 2],
    worst: f64,
    heard: u64,
}

impl Detector {
    fn new(rate: u32) -> Detector {
        let step = core::f64::consts::TAU * TONE / f64::from(rate);
        Detector { twice_cosine: 2.0 * libm::cos(step), last: [0.0; 2], worst: 0.0, heard: 0 }
    }

    fn hear(&mut self, sample: f32) {
        let sample = f64::from(sample);
        let off = sample + self.last[0] - self.twice_cosine * self.last[1];
        self.last = [self.last[1], sample];
        self.heard += 1;
        if self.heard > 2 {
            self.worst = self.worst.max(off.abs());
        }
    }
}

struct Session {
    stream: Stream,
    capture: u32,
    playback: u32,
    depth: Depth,
    drift: bool,
    /// How much too fast the two cards are, at first.
    off: [f64; 2],
    /// Seconds of which nothing is expected: the filters fill, and an adaptive buffer learns.
    warmup: f64,
}

impl Default for Session {
    fn default() -> Session {
        let stream = Stream {
            channels: 1,
            sample_rate: 48_000,
            block_frames: 64,
            codec: Codec::Pcm(Encoding::I24),
            ..Stream::default()
        };
        Session {
            stream,
            capture: 48_000,
            playback: 48_000,
            depth: fixed(12),
            drift: true,
            off: [80e-6, -60e-6],
            warmup: 1.0,
        }
    }
}

struct Heard {
    worst: f64,
    concealed: usize,
    missing: u64,
    drift_ppm: Option<f64>,
    amplitude: f64,
}

/// Plays a tone from one card to the other for a time.
fn play(session: &Session, minutes: u32) -> Heard {
    let device = |sample_rate, block_frames| DeviceFormat { channels: 1, sample_rate, block_frames };
    let (captured, played) = (device(session.capture, 64), device(session.playback, 128));
    let mut blocks = Blocks::new(&session.stream, captured).expect("a mono stream");
    let mut packer = NativePacker::new(&session.stream).expect("a mono stream");
    let mut unpacker = NativeUnpacker::new(&session.stream).expect("a mono stream");
    let settings = PlayerSettings { depth: session.depth, conceal: Method::Waveform, drift: session.drift };
    let mut player = Player::new(&session.stream, played, settings).expect("a mono stream");

    let mut from = Card::new(session.capture, session.off[0], 15e-6);
    let mut to = Card::new(session.playback, session.off[1], 10e-6);
    let mut noise = Noise(1);
    let mut on_its_way: std::collections::VecDeque<(Time, Vec<u8>)> = Default::default();
    let mut detector = Detector::new(session.playback);
    let (mut concealed, mut amplitude) = (0, 0.0f64);
    let mut out = [0.0; 128];
    let end = f64::from(minutes) * 60.0 * SECOND;
    while to.now < end {
        while from.now <= to.now {
            let tone = |frame: u64| {
                let turns = TONE * frame as f64 / f64::from(session.capture);
                (0.5 * libm::sin(core::f64::consts::TAU * libm::fmod(turns, 1.0))) as f32
            };
            let samples: [f32; 64] = core::array::from_fn(|n| tone(from.frames + n as u64));
            let now = Time::from_nanos(from.now as u64);
            from.advance(64);
            blocks.push(now, &samples, &mut |block| {
                packer.pack(&block, &mut |packet| {
                    // Packets do not overtake each other.
                    let delay = 2e6 + 8e6 * (noise.next() * noise.next()).min(0.7);
                    let arrival = Time::from_nanos((from.now + delay) as u64);
                    let arrival = on_its_way.back().map_or(arrival, |(last, _)| arrival.max(*last));
                    on_its_way.push_back((arrival, packet.to_vec()));
                });
            });
        }
        // The callback is late now and then.
        let now = Time::from_nanos((to.now + 0.3e6 * noise.next()) as u64);
        while let Some((arrival, packet)) = on_its_way.pop_front_if(|(arrival, _)| *arrival <= now) {
            let unpacked = unpacker.unpack(arrival, &packet, &mut |block| _ = player.insert(arrival, block));
            assert_eq!(unpacked, Ok(()));
        }
        let pulled = player.pull(now, &mut out);
        if to.now > session.warmup * SECOND {
            concealed += pulled.concealed + pulled.waiting;
            out.iter().for_each(|&sample| detector.hear(sample));
            amplitude = out.iter().fold(amplitude, |most, &sample| most.max(f64::from(sample)));
        }
        to.advance(128);
    }
    let stats = player.stats();
    let (worst, missing, drift_ppm) = (detector.worst, stats.counters.missing, stats.drift_ppm);
    Heard { worst, concealed, missing, drift_ppm, amplitude }
}

fn fixed(milliseconds: u64) -> Depth {
    Depth::Fixed(Duration::from_millis(milliseconds))
}

fn assert_clean(session: &Session, minutes: u32) {
    let heard = play(session, minutes);
    assert_eq!(heard.concealed, 0);
    assert!((0.49..0.51).contains(&heard.amplitude), "{}", heard.amplitude);
    // 440 Hz moves by 0.029 from frame to frame at 48 kHz.
    assert!(heard.worst < 1e-3, "a click of {}", heard.worst);
    if minutes > 10 {
        let drift = heard.drift_ppm.expect("it was followed for long enough");
        assert!((drift - 140.0).abs() < 30.0, "{drift}");
    }
}

#[test]
fn cards_of_one_rate_that_drift_never_click() {
    assert_clean(&Session::default(), minutes());
}

/// The study's network of 44.1 kHz, and a card of that rate at the other end.
#[test]
fn cards_of_two_rates_that_drift_never_click() {
    let usual = Session::default();
    let stream = Stream { sample_rate: 44_100, block_frames: 118, ..usual.stream };
    assert_clean(&Session { stream, playback: 44_100, ..usual }, minutes());
}

#[test]
fn an_adaptive_buffer_does_not_click_once_it_knows_the_network() {
    let depth =
        Depth::Adaptive { least: Duration::from_millis(2), most: Duration::from_millis(60), late: 0.0 };
    assert_clean(&Session { depth, warmup: 20.0, ..Session::default() }, minutes());
}

/// The detector and the network are worth something: without correction the buffer runs dry.
#[test]
fn without_correction_there_are_clicks() {
    let session = Session { depth: fixed(7), drift: false, off: [-80e-6, 60e-6], ..Session::default() };
    let heard = play(&session, 2);
    assert!(heard.missing > 0 && heard.worst > 1e-3, "{} missing, {}", heard.missing, heard.worst);
}
