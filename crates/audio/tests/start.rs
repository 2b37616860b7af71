//! A fixed playout delay is what was asked from the first second on, however a session begins.
//!
//! The sender's samples are the time at which they were captured, so that what is played tells its age.

use proptest::prelude::*;
use trunkline_audio::conceal::Method;
use trunkline_audio::format::Encoding;
use trunkline_audio::pipeline::{
    Blocks, Codec, DeviceFormat, NativePacker, NativeUnpacker, Packer, Player, PlayerSettings, Stream,
    Unpacker,
};
use trunkline_audio::playout::Depth;
use trunkline_core::{Duration, Time};
use trunkline_testkit::cases::cases;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// The clock begins here, so that audio may be older than the session.
const EPOCH: u64 = 10 * SECOND;

/// Samples run from -1 to 1 in so many seconds.
const SCALE: f64 = 60.0;

/// How a session begins. Times are milliseconds.
#[derive(Clone, Copy, Debug)]
struct Start {
    channels: u16,
    /// Kilobits per second of a line that packets pass one after the other; 0 for one that takes no time.
    line: u64,
    stream_rate: u32,
    stream_block: u32,
    device_rate: u32,
    device_block: u32,
    asked: u64,
    /// One way, for every packet.
    delay: u64,
    /// Packets take up to so much longer, uniformly.
    jitter: u64,
    /// Most of them by much less: the fourth power of what is uniform.
    skewed: bool,
    /// The sender has captured for so long when it begins to send, and sends all of it at once.
    backlog: u64,
    /// What was sent in this time arrives together at its end: neighbour discovery, or a slow start.
    held: u64,
    /// The device plays since so long before the first packet is sent.
    early: u64,
    /// The device plays nothing for so long, two seconds after the first packet was sent.
    lost: u64,
}

const USUAL: Start = Start {
    channels: 1,
    line: 0,
    stream_rate: 48_000,
    stream_block: 128,
    device_rate: 48_000,
    device_block: 128,
    asked: 10,
    delay: 25,
    jitter: 0,
    skewed: false,
    backlog: 0,
    held: 0,
    early: 0,
    lost: 0,
};

/// Uniform between 0 and 1, the same in every run.
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 8) / f64::from(1 << 24)
    }
}

/// What was heard.
struct Heard {
    /// Seconds since the first packet came, and from the microphone to the loudspeaker, once per block of the device.
    age: Vec<(f64, f64)>,
    /// From the microphone to the loudspeaker as asked, in seconds.
    asked: f64,
    /// Blocks of which something was made up after the first second.
    made_up: usize,
    /// The delay as the player tells it after the first second, in seconds.
    told: Vec<f64>,
    /// Received audio that was left out, as the player counts it, in seconds.
    left_out: f64,
}

fn play(start: &Start, seconds: u64) -> Heard {
    let stream = Stream {
        channels: start.channels,
        sample_rate: start.stream_rate,
        block_frames: start.stream_block,
        codec: Codec::Pcm(Encoding::I24),
        ..Stream::default()
    };
    let device = DeviceFormat {
        channels: start.channels,
        sample_rate: start.device_rate,
        block_frames: start.device_block,
    };
    let (arrivals, path) = arrivals(start, &stream, seconds);
    let first = arrivals.first().map_or(0, |(at, _)| *at);
    let mut arrivals = arrivals.into_iter().peekable();
    let depth = Depth::Fixed(Duration::from_millis(start.asked));
    let settings = PlayerSettings { depth, conceal: Method::Waveform, drift: true };
    let mut player = Player::new(&stream, device, settings).expect("a stream");
    let mut unpacker = NativeUnpacker::new(&stream).expect("a stream");
    let block = u64::from(start.device_block) * SECOND / u64::from(start.device_rate);
    let begin = EPOCH - start.early * MILLISECOND;
    let channels = usize::from(start.channels);
    let mut out = vec![0.0; start.device_block as usize * channels];
    let (mut age, mut told, mut made_up) = (Vec::new(), Vec::new(), 0);
    for n in 0.. {
        let now = begin + n * u64::from(start.device_block) * SECOND / u64::from(start.device_rate);
        if start.lost > 0
            && (EPOCH + 2 * SECOND..EPOCH + 2 * SECOND + start.lost * MILLISECOND).contains(&now)
        {
            continue;
        }
        if now > EPOCH + seconds * SECOND {
            break;
        }
        while let Some((at, packet)) = arrivals.next_if(|(at, _)| *at <= now) {
            let at = Time::from_nanos(at);
            unpacker.unpack(at, &packet, &mut |block| _ = player.insert(at, block)).expect("a packet");
        }
        let pulled = player.pull(Time::from_nanos(now), &mut out);
        let since = (now as f64 - first as f64) / 1e9;
        if pulled.waiting + pulled.concealed == 0 {
            // The last frame is the oldest of what was taken from the buffer now: a splice is behind it soonest.
            let last = start.device_block as usize - 1;
            let captured = f64::from(out[last * channels]) * SCALE;
            let sounds = (now as f64 - EPOCH as f64) / 1e9 + last as f64 / f64::from(start.device_rate);
            age.push((since, sounds - captured));
        }
        if since > 1.0 {
            made_up += usize::from(pulled.waiting + pulled.concealed > 0);
            told.push(player.stats().playout.as_secs_f64());
        }
    }
    let asked = start.asked as f64 / 1e3 + block as f64 / 1e9 + player.stats().resampling.as_secs_f64();
    let asked = path + asked;
    Heard { age, asked, made_up, told, left_out: player.stats().left_out.as_secs_f64() }
}

/// When each packet arrives, and the packet; and how long it takes from the capture of the first frame of a block to the arrival
/// of its last packet, in seconds, on the average of those after the first second.
fn arrivals(start: &Start, stream: &Stream, seconds: u64) -> (Vec<(u64, Vec<u8>)>, f64) {
    let capture = DeviceFormat {
        channels: stream.channels,
        sample_rate: stream.sample_rate,
        block_frames: stream.block_frames,
    };
    let mut blocks = Blocks::new(stream, capture).expect("a stream");
    let mut packer = NativePacker::new(stream).expect("a stream");
    let mut noise = Noise(start.delay as u32 + 7);
    let mut arrivals: Vec<(u64, Vec<u8>)> = Vec::new();
    let (mut path, mut count) = (0.0, 0.0);
    let frames = u64::from(stream.block_frames);
    let time_of = |frame: u64| frame as i64 * SECOND as i64 / i64::from(stream.sample_rate);
    let backlog = (start.backlog * MILLISECOND) as i64;
    for n in 0.. {
        // Nanoseconds since the sender began to send.
        let (first, end) = (time_of(n * frames) - backlog, time_of((n + 1) * frames) - backlog);
        if first > (seconds * SECOND) as i64 {
            return (arrivals, path / count);
        }
        let sample = |frame| ((time_of(n * frames + frame) - backlog) as f64 / 1e9 / SCALE) as f32;
        let frame = |frame| core::iter::repeat_n(sample(frame), start.channels.into());
        let samples: Vec<f32> = (0..frames).flat_map(frame).collect();
        let captured = Time::from_nanos((EPOCH as i64 + first) as u64);
        let sent = end.max(0).max((start.held * MILLISECOND) as i64) as u64;
        let share = noise.next().powi(if start.skewed { 4 } else { 1 });
        let jitter = (start.jitter * MILLISECOND) as f64 * share;
        let due = EPOCH + sent + start.delay * MILLISECOND + jitter as u64;
        let mut at = due;
        blocks.push(captured, &samples, &mut |block| {
            packer.pack(&block, &mut |packet| {
                // With the headers of UDP and IP.
                let bits = 8 * (packet.len() as u64 + 28);
                let passing = (bits * MILLISECOND).checked_div(start.line).unwrap_or(0);
                // Packets do not overtake each other.
                at = arrivals.last().map_or(due, |(last, _)| due.max(*last)) + passing;
                arrivals.push((at, packet.to_vec()));
            });
        });
        if at > EPOCH + SECOND {
            (path, count) = (path + (at - captured.as_nanos()) as f64 / 1e9, count + 1.0);
        }
    }
    unreachable!("blocks have no end")
}

/// From the first second on the delay is what was asked, within a period of the sound card, and nothing bends it: with
/// clocks that agree, it stays where it is.
fn assert_as_asked(start: &Start) -> Result<(), TestCaseError> {
    let heard = play(start, 6);
    let period = f64::from(start.device_block) / f64::from(start.device_rate);
    // So much does the mean of jitter show in 0.4 s: packets that do not overtake each other are late together. Five standard
    // deviations of an even distribution, since thousands of moments are looked at.
    let packets = 0.4 * f64::from(start.stream_rate) / f64::from(start.stream_block);
    let unsure = start.jitter as f64 / 1e3 * (0.2 + 1.5 / packets.sqrt());
    let later: Vec<&(f64, f64)> = heard.age.iter().filter(|(since, _)| *since >= 1.0).collect();
    prop_assert!(later.len() as f64 * period > 4.0, "only {} blocks were heard: {start:?}", later.len());
    for (since, age) in &later {
        let off = age - heard.asked;
        prop_assert!(off.abs() <= period + unsure, "{:.2} ms off after {since:.2} s: {start:?}", 1e3 * off);
    }
    let moved = (later[later.len() - 1].1 - later[0].1).abs();
    prop_assert!(moved <= 0.3e-3 + unsure, "moved by {:.2} ms: {start:?}", 1e3 * moved);
    let asked = start.asked as f64 / 1e3;
    for told in &heard.told {
        let near = asked - 1e-3 - unsure..=asked + 2.0 * period + unsure;
        prop_assert!(near.contains(told), "told {told}: {start:?}");
    }
    if start.jitter < start.asked / 2 {
        // Of much jitter more is learned in the second second, which may need another splice.
        let splices = if start.jitter > 5 { 4 } else { 0 };
        prop_assert!(heard.made_up <= splices, "{} made up: {start:?}", heard.made_up);
    }
    Ok(())
}

#[track_caller]
fn assert_all(starts: impl IntoIterator<Item = Start>) {
    for start in starts {
        if let Err(error) = assert_as_asked(&start) {
            panic!("{error}");
        }
    }
}

#[test]
fn a_path_of_any_delay_changes_nothing() {
    assert_all([0, 5, 25, 100, 400].map(|delay| Start { delay, ..USUAL }));
}

/// A sender that connects has captured meanwhile: three round trips of audio, all at once.
#[test]
fn a_sender_that_sends_old_audio_first_is_not_heard_late() {
    assert_all([15, 30, 150, 480].map(|backlog| Start { backlog, ..USUAL }));
    assert_all([(10, 150), (80, 150), (80, 480)].map(|(asked, backlog)| Start { asked, backlog, ..USUAL }));
}

#[test]
fn first_packets_that_are_held_up_change_nothing() {
    assert_all([5, 40, 82, 300].map(|held| Start { held, ..USUAL }));
    assert_all([5, 40, 82, 300].map(|held| Start { held, asked: 100, ..USUAL }));
}

/// The beginning of what was held up has missed its turn: the player says how much of it was left out.
#[test]
fn what_is_left_out_is_told() {
    assert!(play(&USUAL, 3).left_out == 0.0);
    for (held, asked) in [(82, 10), (300, 10), (300, 100)] {
        let left_out = play(&Start { held, asked, ..USUAL }, 3).left_out;
        let expected = (held - asked) as f64 / 1e3;
        assert!((left_out - expected).abs() < 8e-3, "{left_out} left out, not {expected}");
    }
}

#[test]
fn it_does_not_matter_who_begins() {
    assert_all([0, 1, 7, 500].map(|early| Start { early, backlog: 60, ..USUAL }));
}

#[test]
fn blocks_and_rates_change_nothing() {
    for (stream_rate, stream_block, device_rate, device_block) in [
        (48_000, 64, 48_000, 64),
        (48_000, 64, 48_000, 1024),
        (48_000, 960, 48_000, 64),
        (44_100, 470, 48_000, 128),
        (44_100, 128, 44_100, 100),
        (8_000, 160, 48_000, 256),
        (96_000, 256, 44_100, 512),
    ] {
        let start = Start { stream_rate, stream_block, device_rate, device_block, ..USUAL };
        assert_all([start, Start { backlog: 150, ..start }, Start { held: 82, asked: 40, ..start }]);
    }
}

/// A sound card that is not served for a while plays on where it was: the buffer is deeper by that, until it is put right.
#[test]
fn a_device_that_loses_time_is_put_right_within_a_second() {
    for (lost, device_block) in [(3, 128), (20, 128), (300, 128), (40, 1024)] {
        let heard = play(&Start { lost, device_block, asked: 400, ..USUAL }, 6);
        let period = f64::from(device_block) / 48_000.0;
        let off = |from: f64, to: f64| {
            let during = heard.age.iter().filter(|(since, _)| (from..to).contains(since));
            during.map(|(_, age)| (age - heard.asked).abs()).fold(0.0, f64::max)
        };
        assert!(off(1.0, 1.9) <= period && off(3.3, 6.0) <= period, "{} {}", off(1.0, 1.9), off(3.3, 6.0));
        let deeper = lost as f64 / 1e3 - period;
        assert!(off(1.9, 3.3) > deeper, "the device did lose time: {}", off(1.9, 3.3));
    }
}

/// The packets of a block pass a slow line one after the other: the block has come with the last of them.
#[test]
fn a_block_waits_from_its_last_packet_on() {
    // 77 % of the line, and 83 %: the packets of a block are 1.7 and 5.4 ms apart.
    let narrow = Start { channels: 2, line: 4000, stream_block: 256, ..USUAL };
    let slow =
        Start { channels: 4, line: 1000, stream_rate: 8000, stream_block: 160, device_rate: 8000, ..narrow };
    for start in [narrow, slow] {
        assert_all([start, Start { backlog: 30, ..start }, Start { asked: 30, device_block: 64, ..start }]);
    }
}

/// The clock correction keeps to the typical packet, although the mean one is slower by 2.2 ms. A start knows it to 1 ms or
/// so: the mean of ten starts is known better.
#[test]
fn skewed_jitter_is_not_taken_for_drift() {
    let moved = |delay| {
        let start = Start { delay, jitter: 16, skewed: true, stream_block: 960, asked: 20, ..USUAL };
        let heard = play(&start, 40);
        let mean = |from: f64, to: f64| {
            let during = heard.age.iter().filter(|(since, _)| (from..to).contains(since));
            let (sum, count) = during.fold((0.0, 0.0), |(sum, count), (_, age)| (sum + age, count + 1.0));
            sum / count
        };
        mean(30.0, 40.0) - mean(1.7, 3.0)
    };
    let mean = (20..30).map(moved).sum::<f64>() / 10.0;
    assert!(mean.abs() < 0.7e-3, "moved by {:.2} ms", 1e3 * mean);
}

#[test]
fn jitter_is_taken_on_the_average() {
    for (jitter, asked) in [(2, 10), (5, 20), (10, 40), (20, 60)] {
        let start = Start { jitter, asked, ..USUAL };
        assert_all([start, Start { backlog: 150, ..start }, Start { held: 82, ..start }]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..cases(48) })]

    #[test]
    fn however_a_session_begins_the_delay_is_what_was_asked(
        (stream_rate, stream_block) in prop::sample::select(vec![
            (48_000, 64), (48_000, 256), (44_100, 128), (44_100, 470), (96_000, 512), (8_000, 160),
        ]),
        device_rate in prop::sample::select(vec![44_100, 48_000, 96_000]),
        device_block in prop::sample::select(vec![64, 128, 256, 512, 1024]),
        (asked, jitter) in prop::sample::select(vec![(3, 0), (10, 0), (10, 2), (20, 8), (80, 20), (300, 5)]),
        delay in 0..200u64,
        backlog in 0..500u64,
        held in 0..300u64,
        early in 0..100u64,
    ) {
        assert_as_asked(&Start {
            stream_rate, stream_block, device_rate, device_block, asked, delay, jitter, backlog, held, early, ..USUAL
        })?;
    }
}
