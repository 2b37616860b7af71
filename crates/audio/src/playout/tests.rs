use proptest::prelude::*;

use super::*;
use crate::conceal::Method;

const MILLISECOND: u64 = 1_000_000;

/// Mono at 8 kHz in packets of 10 ms.
fn settings(depth: Depth) -> Settings {
    Settings {
        channels: 1,
        sample_rate: 8_000,
        packet_frames: 80,
        part_channels: 1,
        depth,
        ahead: Duration::ZERO,
        conceal: Method::Waveform,
    }
}

fn fixed(depth_ms: u64) -> Playout {
    Playout::new(settings(Depth::Fixed(Duration::from_millis(depth_ms)))).unwrap()
}

fn adaptive(late: f64) -> Playout {
    let (least, most) = (Duration::from_millis(10), Duration::from_millis(300));
    Playout::new(settings(Depth::Adaptive { least, most, late })).unwrap()
}

/// A packet of which every sample says which one it is.
fn packet(sequence: u32) -> [f32; 80] {
    [f32::from(sequence as u16 % 1000) / 1000.0 + 0.0005; 80]
}

fn at(milliseconds: u64) -> Time {
    Time::from_nanos(milliseconds * MILLISECOND)
}

/// Inserts packets at their times, in milliseconds, and pulls blocks of 10 ms until `until`.
fn run(playout: &mut Playout, arrivals: &[(u64, u32)], until: u64) -> Vec<f32> {
    let mut arrivals = arrivals.to_vec();
    arrivals.sort_by_key(|&(time, _)| time);
    let mut arrivals = arrivals.into_iter().peekable();
    let mut heard = Vec::new();
    for block in 0..until / 10 {
        while let Some((time, sequence)) = arrivals.next_if(|&(time, _)| time <= block * 10) {
            playout.insert(at(time), sequence, &packet(sequence));
        }
        let mut out = [0.0; 80];
        playout.pull(at(block * 10), &mut out);
        heard.extend(out);
    }
    heard
}

#[test]
fn a_packet_is_played_when_the_depth_has_passed() {
    let mut playout = fixed(25);
    assert_eq!(playout.insert(at(100), 7, &packet(7)), Arrival::Queued);
    assert_eq!(playout.insert(at(110), 8, &packet(8)), Arrival::Queued);
    let mut out = [9.0; 240];
    let pulled = playout.pull(at(120), &mut out);
    assert_eq!(pulled, Pulled { waiting: 40, concealed: 40 }); // 5 ms, and 5 ms after both packets
    assert!(out[..40].iter().all(|&sample| sample == 0.0));
    assert_eq!(out[40..120], packet(7));
    assert_eq!(out[120..200], packet(8));
    assert_eq!(playout.counters(), Counters { played: 2, missing: 1, underruns: 1, ..Counters::default() });
}

#[test]
fn reordered_packets_are_played_in_order() {
    let arrivals: Vec<(u64, u32)> = (0..50).map(|n| (u64::from(n ^ 1) * 10, n)).collect();
    let mut playout = fixed(30);
    let heard = run(&mut playout, &arrivals, 400);
    // Number 1 comes first, and 0 is in time before it.
    let expected: Vec<f32> = (0..38).flat_map(packet).collect();
    assert_eq!(heard[2 * 80..], expected);
    let counters = playout.counters();
    assert_eq!((counters.missing, counters.late), (0, 0));
    assert!(counters.reordered >= 19, "{counters:?}");
}

#[test]
fn late_lost_and_duplicate_are_told_apart() {
    // 10 comes 40 ms late, 20 never, 30 twice, 12 once more when it has been played.
    let mut arrivals: Vec<(u64, u32)> =
        (0..60).filter(|&n| n != 20).map(|n| (u64::from(n) * 10 + if n == 10 { 40 } else { 0 }, n)).collect();
    arrivals.extend([(300, 30), (250, 12), (260, 10)]);
    let mut playout = fixed(20);
    run(&mut playout, &arrivals, 500);
    let counters = playout.counters();
    assert_eq!((counters.missing, counters.late, counters.lost(), counters.duplicate), (2, 1, 1, 3));
    assert_eq!((counters.reordered, counters.underruns), (1, 0));
}

#[test]
fn sequence_numbers_wrap() {
    let arrivals: Vec<(u64, u32)> =
        (0..100).map(|n| (n * 10, (u32::MAX - 49).wrapping_add(n as u32))).collect();
    let mut playout = fixed(20);
    run(&mut playout, &arrivals, 1000);
    let counters = playout.counters();
    assert_eq!((counters.played, counters.missing, counters.restarts), (98, 0, 0));
}

#[test]
fn a_sender_that_starts_again_is_followed_and_a_forged_packet_is_not() {
    let again = 3_000_000_000;
    let mut arrivals: Vec<(u64, u32)> = (0..50).map(|n| (n * 10, n as u32)).collect();
    arrivals.extend((50..100).map(|n| (n * 10, again + n as u32)));
    arrivals.push((255, 77_777));
    let mut playout = fixed(20);
    run(&mut playout, &arrivals, 1000);
    let counters = playout.counters();
    assert_eq!((counters.restarts, counters.refused), (1, 2));
    assert_eq!(playout.current[0], packet(again + 97)[0]);
}

#[test]
fn a_sender_that_counts_from_the_start_again_is_not_taken_for_its_own_past() {
    let arrivals: Vec<(u64, u32)> = (0..600).map(|n| (n * 10, n as u32 % 300)).collect();
    let mut playout = fixed(20);
    run(&mut playout, &arrivals, 6000);
    let counters = playout.counters();
    assert_eq!((counters.restarts, counters.refused, counters.duplicate), (1, 1, 0));
}

#[test]
fn a_path_that_becomes_longer_is_followed() {
    let arrivals: Vec<(u64, u32)> =
        (0..200).map(|n| (n * 10 + if n < 50 { 0 } else { 500 }, n as u32)).collect();
    let mut playout = fixed(20);
    run(&mut playout, &arrivals, 2000);
    let counters = playout.counters();
    assert_eq!((counters.restarts, counters.underruns), (1, 1));
    assert!(counters.played > 140, "{counters:?}");
}

/// Two parts of two channels, of which one is missing now and then: the others are played as they came.
#[test]
fn a_missing_part_leaves_the_others_alone() {
    let depth = Depth::Fixed(Duration::from_millis(10));
    let mut playout = Playout::new(Settings { channels: 4, part_channels: 2, ..settings(depth) }).unwrap();
    for n in 0..40 {
        let samples = [packet(n), packet(n)].concat();
        for channels in [0..2, 2..4].into_iter().filter(|part| part.start == 0 || n % 8 != 5) {
            let packet = Packet { channels, samples: &samples, origin: Origin::Sent };
            assert_eq!(playout.insert_part(at(u64::from(n) * 10), n, packet), Arrival::Queued);
        }
        let mut out = [9.0; 4 * 80];
        let pulled = playout.pull(at(u64::from(n) * 10), &mut out);
        let Some(playing) = n.checked_sub(1) else { continue };
        assert_eq!(pulled.concealed, if playing % 8 == 5 { 80 } else { 0 });
        assert!(out.chunks_exact(4).all(|frame| frame[..2] == [packet(playing)[0]; 2]));
        if ![5, 6].contains(&(playing % 8)) {
            assert!(out.chunks_exact(4).all(|frame| frame[2..] == frame[..2]));
        }
    }
    assert_eq!((playout.counters().missing, playout.counters().underruns), (5, 0));
}

#[test]
fn parts_that_are_none_of_the_stream_are_refused() {
    let depth = Depth::Fixed(Duration::from_millis(10));
    let mut playout = Playout::new(Settings { channels: 5, part_channels: 2, ..settings(depth) }).unwrap();
    let samples = [0.5; 5 * 80];
    for channels in [0..1, 1..3, 0..3, 3..5, 4..6, 6..8, 2..2] {
        let packet = Packet { samples: &samples[..channels.len() * 80], channels, origin: Origin::Sent };
        assert_eq!(playout.insert_part(at(0), 0, packet.clone()), Arrival::Refused, "{packet:?}");
    }
    for channels in [0..2, 2..4, 4..5] {
        let packet = Packet { samples: &samples[..channels.len() * 80], channels, origin: Origin::Sent };
        assert_eq!(playout.insert_part(at(0), 0, packet), Arrival::Queued);
    }
    assert_eq!(playout.insert(at(0), 0, &samples), Arrival::Duplicate);
    assert_eq!(playout.counters().duplicate, 3);
}

#[test]
fn a_packet_of_another_length_is_refused() {
    let mut playout = fixed(20);
    assert_eq!(playout.insert(at(0), 0, &[0.0; 79]), Arrival::Refused);
    assert_eq!(playout.insert(at(0), 0, &[]), Arrival::Refused);
    assert_eq!(playout.insert(at(0), 0, &packet(0)), Arrival::Queued);
}

#[test]
fn fill_falls_as_time_passes_and_rises_by_a_packet() {
    let mut playout = fixed(20);
    assert_eq!(playout.fill(at(0)), None);
    playout.insert(at(0), 0, &packet(0));
    playout.insert(at(10), 1, &packet(1));
    playout.pull(at(20), &mut [0.0; 80]);
    playout.insert(at(20), 2, &packet(2));
    assert_eq!(playout.fill(at(20)), Some(240.0));
    assert_eq!(playout.fill(at(25)), Some(200.0));
    playout.insert(at(25), 3, &packet(3));
    assert_eq!(playout.fill(at(25)), Some(280.0));
}

/// Jitter of up to 80 ms from the second second on: a fixed depth of 10 ms loses most of it, the adaptive one learns.
#[test]
fn the_adaptive_depth_follows_the_network() {
    let jitter = |n: u64| if (100..2000).contains(&n) { n * 7919 % 81 } else { n * 7919 % 3 };
    let arrivals: Vec<(u64, u32)> = (0..12_000).map(|n| (n * 10 + jitter(n), n as u32)).collect();
    let mut playout = adaptive(0.01);
    run(&mut playout, &arrivals[..1900], 18_500);
    let stormy = playout.depth();
    assert!((78..=84).contains(&(stormy.as_nanos() / MILLISECOND)), "{stormy}");
    let missed = playout.counters().missing;
    assert!(missed < 100, "{:?}", playout.counters());

    let mut playout = adaptive(0.01);
    run(&mut playout, &arrivals, 119_000);
    let (calm, counters) = (playout.depth(), playout.counters());
    assert!(calm <= Duration::from_millis(10), "{calm}");
    assert!(counters.skipped >= 6, "it came back: {counters:?}");
    let (playing, frame) = playout.position().unwrap();
    assert_eq!(counters.turns(), u64::from(playing) + u64::from(frame > 0), "{counters:?}");
    let fill = playout.fill(at(118_990)).unwrap();
    assert!(fill <= 4.0 * 80.0, "{fill}");
    assert_eq!(counters.restarts, 0);
}

/// 100 ms shorter at once: every packet left out may be heard, so that they are half a second apart.
#[test]
fn a_path_that_becomes_shorter_is_followed_slowly() {
    let arrivals: Vec<(u64, u32)> =
        (0..2000).map(|n| (n * 10 + if n < 300 { 150 } else { 50 }, n as u32)).collect();
    let skipped_by = |until| {
        let mut playout = adaptive(0.1);
        run(&mut playout, &arrivals, until);
        playout.counters().skipped
    };
    let (soon, later) = (skipped_by(4_500), skipped_by(10_000));
    assert!((1..=4).contains(&soon), "{soon}");
    assert!((8..=10).contains(&later), "{later}");
}

/// Deeper and shallower again under a tone: no step that the tone and a seam of 1 ms would not make.
#[test]
fn a_change_of_depth_makes_no_click() {
    let tone =
        |frame: u32| (0.5 * libm::sin(f64::from(frame) * 165.0 / 8_000.0 * core::f64::consts::TAU)) as f32;
    let mut playout = adaptive(0.01);
    let (mut heard, mut out) = (Vec::new(), [0.0; 80]);
    let mut arrivals: Vec<(u64, u32)> = (0..5_000)
        .map(|n| (u64::from(n) * 10 + if (100..300).contains(&n) { u64::from(n) * 7919 % 60 } else { 0 }, n))
        .collect();
    arrivals.sort_by_key(|&(time, _)| time);
    let mut arrivals = arrivals.into_iter().peekable();
    for block in 0..5_000 {
        while let Some((time, sequence)) = arrivals.next_if(|&(time, _)| time <= block * 10) {
            playout.insert(
                at(time),
                sequence,
                &core::array::from_fn::<f32, 80, _>(|n| tone(sequence * 80 + n as u32)),
            );
        }
        playout.pull(at(block * 10), &mut out);
        heard.extend(out);
    }
    let counters = playout.counters();
    assert!(counters.added >= 4 && counters.skipped >= 4, "{counters:?}");
    let steps = heard.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    let largest = steps.fold(0.0, f32::max);
    let own = (0..80).map(|n| (tone(n + 1) - tone(n)).abs()).fold(0.0, f32::max);
    assert!(largest < own + 2.0 * 0.5 / 8.0, "{largest}, the tone's own is {own}");
}

#[test]
fn settings_have_bounds() {
    let good = settings(Depth::Fixed(Duration::ZERO));
    let depth = |depth| Settings { depth, ..good };
    let (short, long) = (Duration::from_millis(10), Duration::from_secs(11));
    for (settings, error) in [
        (Settings { channels: 0, ..good }, SettingsError::Channels),
        (Settings { sample_rate: 0, ..good }, SettingsError::SampleRate),
        (Settings { packet_frames: 0, ..good }, SettingsError::PacketFrames),
        (depth(Depth::Fixed(long)), SettingsError::Depth),
        (depth(Depth::Adaptive { least: short, most: Duration::ZERO, late: 0.1 }), SettingsError::Depth),
        (depth(Depth::Adaptive { least: short, most: short, late: f64::NAN }), SettingsError::Late),
        (
            Settings { channels: 256, sample_rate: 768_000, ..depth(Depth::Fixed(Duration::from_secs(10))) },
            SettingsError::TooLarge,
        ),
    ] {
        assert_eq!(Playout::new(settings).err(), Some(error));
    }
    assert!(Playout::new(good).is_ok());
}

#[derive(Clone, Debug)]
enum Step {
    /// A packet this far from the last one, of this length.
    Insert(u32, usize),
    Pull(usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4u32).prop_map(|ahead| Step::Insert(ahead, 20)),
        2 => (-30i32..30).prop_map(|ahead| Step::Insert(ahead as u32, 20)),
        1 => (any::<u32>(), 0..50usize).prop_map(|(ahead, length)| Step::Insert(ahead, length)),
        4 => (0..60usize).prop_map(Step::Pull),
        3 => (0..20 * MILLISECOND).prop_map(Step::Pass),
        1 => any::<u64>().prop_map(|nanos| Step::Pass(nanos >> 8)),
    ]
}

proptest! {
    /// Hostile numbers, sizes and times: no panic, every packet accounted for, every block full of bounded samples.
    #[test]
    fn every_packet_is_accounted_for(
        adaptive: bool,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let (least, most) = (Duration::from_millis(2), Duration::from_millis(50));
        let depth = if adaptive { Depth::Adaptive { least, most, late: 0.1 } } else { Depth::Fixed(least) };
        let settings = Settings { channels: 2, packet_frames: 10, part_channels: 2, ..settings(depth) };
        let mut playout = Playout::new(settings).unwrap();
        let (mut now, mut sequence, mut inserted) = (Time::ZERO, 0u32, 0u64);
        for step in steps {
            match step {
                Step::Insert(ahead, length) => {
                    sequence = sequence.wrapping_add(ahead);
                    inserted += 1;
                    let waiting = playout.waiting();
                    let arrival = playout.insert(now, sequence, &vec![0.5; length]);
                    if arrival == Arrival::Late || arrival == Arrival::Duplicate {
                        prop_assert_eq!(playout.waiting(), waiting);
                    }
                }
                Step::Pull(samples) => {
                    let mut out = vec![9.0; samples];
                    let pulled = playout.pull(now, &mut out);
                    prop_assert!(pulled.waiting + pulled.concealed <= samples / 2);
                    prop_assert!(out.iter().all(|sample| sample.abs() <= 0.5));
                }
                Step::Pass(nanos) => now += Duration::from_nanos(nanos),
            }
            let c = playout.counters();
            let sorted = c.played + c.late + c.duplicate + c.refused + c.skipped + playout.waiting();
            prop_assert_eq!(sorted, inserted, "{:?}", c);
        }
    }

    /// Parts that are lost, doubled, late or joined: every one is accounted for.
    #[test]
    fn every_part_is_accounted_for(
        arrivals in prop::collection::vec((0..100u32, 0..4usize, 0..60 * MILLISECOND), 1..300),
        pulls in prop::collection::vec(1..40usize, 1..20),
    ) {
        const PARTS: [Range<usize>; 4] = [0..2, 2..4, 4..5, 0..4];
        let depth = Depth::Fixed(Duration::from_millis(20));
        let settings = Settings { channels: 5, packet_frames: 10, part_channels: 2, ..settings(depth) };
        let mut playout = Playout::new(settings).unwrap();
        // A block lasts 1.25 ms.
        let mut arrivals: Vec<_> = arrivals
            .into_iter()
            .map(|(number, part, delay)| (Time::from_nanos(u64::from(number) * 1_250_000 + delay), number, part))
            .collect();
        arrivals.sort();
        let mut arrivals = arrivals.into_iter().peekable();
        let (mut now, mut inserted) = (Time::ZERO, 0u64);
        for frames in pulls.into_iter().cycle().take(200) {
            while let Some((arrival, number, part)) = arrivals.next_if(|(arrival, ..)| *arrival <= now) {
                let channels = PARTS[part].clone();
                inserted += if part == 3 { 2 } else { 1 };
                let samples = vec![0.001 * (number + 1) as f32; channels.len() * 10];
                playout.insert_part(arrival, number, Packet { channels, samples: &samples, origin: Origin::Sent });
            }
            let mut out = vec![9.0; frames * 5];
            playout.pull(now, &mut out);
            prop_assert!(out.iter().all(|sample| sample.abs() <= 0.2));
            let c = playout.counters();
            let sorted = c.played + c.late + c.duplicate + c.refused + c.skipped + playout.waiting();
            prop_assert_eq!(sorted, inserted, "{:?}", c);
            now += playout.time_of(frames as u64);
        }
    }

    /// A pull of two blocks is two pulls.
    #[test]
    fn blocks_may_be_split_anywhere(split in 0..800usize, gone in prop::collection::vec(0..20u32, 0..5)) {
        let mut whole = fixed(20);
        for n in (0..20).filter(|n| !gone.contains(n)) {
            whole.insert(at(0), n, &packet(n));
        }
        let mut parts = whole.clone();
        let (mut once, mut twice) = ([0.0; 800], [0.0; 800]);
        whole.pull(at(0), &mut once);
        parts.pull(at(0), &mut twice[..split]);
        parts.pull(at(0) + whole.time_of(split as u64), &mut twice[split..]);
        prop_assert_eq!(once, twice);
        prop_assert_eq!(whole.counters(), parts.counters());
    }
}

#[test]
fn what_redundancy_brings_back_was_not_overtaken() {
    let mut playout = fixed(50);
    for (sequence, origin) in
        [(0, Origin::Sent), (3, Origin::Sent), (1, Origin::Recovered), (2, Origin::Sent)]
    {
        playout.insert_part(at(0), sequence, Packet { channels: 0..1, samples: &packet(sequence), origin });
    }
    assert_eq!(playout.counters().reordered, 1);
}
