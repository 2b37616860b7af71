//! Every option by what it does: who sends what, and when, in virtual time over a path of 10 ms.

use std::sync::{Arc, Mutex};

use trunkline_core::{Duration, Rate, Seed, Time};
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::tcp::{
    AckConfig, BufferConfig, EcnConfig, Hystart, KeepaliveConfig, Nagle, Pacing, Recovery, TcpConfig,
    TcpEndpoint, TimeoutConfig, WindowUpdates,
};
use trunkline_transport::{CloseReason, Event, Transmit};

use crate::observed::{Observed, Observer};

const MS: Duration = Duration::from_millis(1);
const SYN: u8 = 2;
const ACK: u8 = 16;

/// A segment that was sent.
#[derive(Clone, Debug)]
struct Sent {
    at: Duration,
    from: Side,
    packet: Vec<u8>,
    /// When it leaves the host's interface.
    departs: Time,
}

impl Sent {
    fn flags(&self) -> u8 {
        self.packet[13]
    }

    /// Bits of ECN: AE, CWR, ECE.
    fn ecn_bits(&self) -> (bool, bool, bool) {
        (self.packet[12] & 1 != 0, self.packet[13] & 128 != 0, self.packet[13] & 64 != 0)
    }

    fn sequence(&self) -> u32 {
        u32::from_be_bytes([self.packet[4], self.packet[5], self.packet[6], self.packet[7]])
    }

    fn window(&self) -> u64 {
        u16::from_be_bytes([self.packet[14], self.packet[15]]).into()
    }

    fn data(&self) -> &[u8] {
        &self.packet[usize::from(self.packet[12] >> 4) * 4..]
    }

    fn has_option(&self, kind: u8) -> bool {
        let mut options = &self.packet[20..usize::from(self.packet[12] >> 4) * 4];
        loop {
            match options {
                [first, ..] if *first == kind => return true,
                [] | [0, ..] => return false,
                [1, rest @ ..] => options = rest,
                [_, length, ..] => options = options.get(usize::from(*length)..).unwrap_or(&[]),
                _ => return false,
            }
        }
    }
}

/// Notes what an end sends.
struct Log {
    side: Side,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Observer for Log {
    fn sends(&mut self, now: Time, transmit: &Transmit, segment: &[u8]) {
        let (at, departs) = (now.since(Time::ZERO), transmit.earliest.max(now));
        let sent = Sent { at, from: self.side, packet: segment.to_vec(), departs };
        self.sent.lock().expect("nobody panicked").push(sent);
    }
}

/// Two ends over 10 ms each way, and what they have sent.
struct Run {
    pair: Pair,
    log: Arc<Mutex<Vec<Sent>>>,
    received: usize,
}

impl Run {
    fn between(near: TcpConfig, far: TcpConfig, out: Path, back: Path) -> Run {
        let log = Arc::<Mutex<Vec<Sent>>>::default();
        let noted =
            |endpoint, side| Box::new(Observed { endpoint, observer: Log { side, sent: log.clone() } });
        let near = TcpEndpoint::connect(NEAR, FAR, near, 1).expect("the configuration is possible");
        let far = TcpEndpoint::listen(FAR, far, 2).expect("the configuration is possible");
        let (near, far) = (noted(near, Side::Near), noted(far, Side::Far));
        let pair = Pair::new(near, far, [out, back], Seed::new(1, 0));
        Run { pair, log: log.clone(), received: 0 }
    }

    /// Both ends alike, over a path on which these packets of the near end are lost.
    fn lossy(config: &TcpConfig, drop: &[u64]) -> Run {
        let out = Path { drop: drop.to_vec(), ..Path::with_latency(MS * 10) };
        Run::between(config.clone(), config.clone(), out, Path::with_latency(MS * 10))
    }

    /// The same without loss, and connected.
    fn of(config: &TcpConfig) -> Run {
        Run::lossy(config, &[]).connected()
    }

    fn connected(mut self) -> Run {
        let end = self.pair.now() + Duration::from_secs(60);
        while !self.pair.take_event(Side::Near, Event::Connected) {
            assert!(self.pair.step_until(end), "the ends never connect");
        }
        self
    }

    fn send(&mut self, from: Side, length: usize) {
        self.pair.send(from, &vec![7; length]).expect("the send buffer has room");
    }

    /// Goes on for a time, in which both ends read what comes.
    fn wait(&mut self, time: Duration) {
        let until = self.pair.now() + time;
        let mut bytes = Vec::new();
        loop {
            for side in Side::BOTH {
                bytes.clear();
                while self.pair.receive(side, &mut bytes) {}
                self.received += bytes.len();
            }
            if !self.pair.step_until(until) {
                break;
            }
        }
        self.pair.drive_until(until);
    }

    /// The segments that one end has sent since `from`.
    fn sent(&self, side: Side, from: Duration) -> Vec<Sent> {
        let log = self.log.lock().expect("nobody panicked");
        log.iter().filter(|sent| sent.from == side && sent.at >= from).cloned().collect()
    }

    fn now(&self) -> Duration {
        self.pair.now().since(Time::ZERO)
    }

    /// Segments with data that one end has sent since `from`: when, relative to it, and how long.
    fn data(&self, side: Side, from: Duration) -> Vec<(Duration, usize)> {
        let with_data = self.sent(side, from).into_iter().filter(|sent| !sent.data().is_empty());
        with_data.map(|sent| (sent.at - from, sent.data().len())).collect()
    }

    /// When the far end has acknowledged without data since `from`, relative to it.
    fn acks(&self, from: Duration) -> Vec<Duration> {
        let bare = self.sent(Side::Far, from).into_iter().filter(|sent| sent.data().is_empty());
        bare.map(|sent| sent.at - from).collect()
    }
}

/// Linux, but for the details that blur times: no jiffies, no quick acknowledgements, nothing adaptive.
fn plain() -> TcpConfig {
    let acks = AckConfig { adaptive: false, quick: 0, tick: Duration::ZERO, ..AckConfig::default() };
    TcpConfig { tick: Duration::ZERO, acks, ..TcpConfig::default() }
}

#[test]
fn options_of_the_handshake_are_offered_or_not() {
    let syn = |config: TcpConfig| Run::of(&config).sent(Side::Near, Duration::ZERO)[0].clone();
    let (scale, sack, stamps) = (3, 4, 8);
    for kind in [scale, sack, stamps] {
        assert!(syn(plain()).has_option(kind), "{kind}");
    }
    let without = TcpConfig { sack: false, recovery: Recovery::Dupack, tail_loss_probe: false, ..plain() };
    assert!(!syn(without).has_option(sack));
    assert!(!syn(TcpConfig { timestamps: false, ..plain() }).has_option(stamps));
    assert!(!syn(TcpConfig { window_scaling: false, ..plain() }).has_option(scale));
}

#[test]
fn ecn_is_asked_for_accepted_or_neither() {
    let bits = |near, far| {
        let of = |ecn| TcpConfig { ecn, ..plain() };
        let path = || Path::with_latency(MS * 10);
        let run = Run::between(of(near), of(far), path(), path()).connected();
        let syns = |side| run.sent(side, Duration::ZERO)[0].ecn_bits();
        (syns(Side::Near), syns(Side::Far))
    };
    let (none, ece, both) = ((false, false, false), (false, false, true), (false, true, true));
    assert_eq!(bits(EcnConfig::On, EcnConfig::Accept), (both, ece));
    assert_eq!(bits(EcnConfig::On, EcnConfig::Off), (both, none));
    assert_eq!(bits(EcnConfig::Accept, EcnConfig::On), (none, none));
    assert_eq!(bits(EcnConfig::Off, EcnConfig::On), (none, none));
    // RFC 9768 section 3.1.2: what the answer says is the field of the SYN, here not ECN-capable.
    assert_eq!(bits(EcnConfig::Accurate, EcnConfig::Accurate), ((true, true, true), (false, true, false)));
    assert_eq!(bits(EcnConfig::Accurate, EcnConfig::On).1, ece);
}

#[test]
fn the_initial_window_leaves_at_once_and_no_more() {
    for initial_window in [1, 3, 10] {
        let mut run = Run::of(&TcpConfig { initial_window, ..plain() });
        let begin = run.now();
        run.send(Side::Near, 30_000);
        run.wait(MS);
        assert_eq!(run.data(Side::Near, begin).len(), initial_window as usize);
    }
}

#[test]
fn a_fixed_window_bounds_what_is_under_way_and_autotuning_lets_it_grow() {
    let largest = |receive_buffer| {
        let config = TcpConfig { receive_buffer, ..plain() };
        let mut run = Run::of(&config);
        for _ in 0..200 {
            while run.pair.send(Side::Near, &[7; 10_000]).is_ok() {}
            run.wait(MS * 10);
        }
        // All windows are scaled alike.
        run.sent(Side::Far, MS * 30).iter().map(Sent::window).max()
    };
    let scale = |max: usize| (0..14).find(|scale| max <= 65_535 << scale).expect("it is small enough");
    let fixed = largest(BufferConfig::fixed(64 << 10)).map(|window| window << scale(64 << 10));
    assert!(fixed.is_some_and(|window| (40_000..=65_536 + 2).contains(&window)), "{fixed:?}");
    let grown =
        largest(BufferConfig { initial: 64 << 10, max: 1 << 20 }).map(|window| window << scale(1 << 20));
    assert!(grown.is_some_and(|window| (500_000..=(1 << 20) + 32).contains(&window)), "{grown:?}");
}

#[test]
fn a_full_send_buffer_refuses_and_one_that_grows_takes_more() {
    let taken = |send_buffer| {
        let mut run = Run::of(&TcpConfig { send_buffer, ..plain() });
        let mut most = 0;
        for _ in 0..100 {
            let mut taken = 0;
            while run.pair.send(Side::Near, &[7; 1000]).is_ok() {
                taken += 1;
            }
            most = most.max(taken);
            run.wait(MS * 10);
        }
        most
    };
    assert!((30..=32).contains(&taken(BufferConfig::fixed(30_500))));
    assert!(taken(BufferConfig { initial: 30_500, max: 1 << 20 }) > 100);
}

#[test]
fn small_messages_are_collected_as_nagle_cork_or_nobody_says() {
    let lengths = |nagle| {
        let mut run = Run::of(&TcpConfig { nagle, tail_loss_probe: false, ..plain() });
        let begin = run.now();
        for _ in 0..4 {
            run.send(Side::Near, 100);
            run.wait(MS);
        }
        run.wait(Duration::from_secs(2));
        run.data(Side::Near, begin)
    };
    assert_eq!(lengths(Nagle::Off), [(Duration::ZERO, 100), (MS, 100), (MS * 2, 100), (MS * 3, 100)]);
    // One small segment is under way; the others wait for its acknowledgement, which is delayed by 40 ms.
    for nagle in [Nagle::Minshall, Nagle::Below(1448), Nagle::Below(400)] {
        assert_eq!(lengths(nagle), [(Duration::ZERO, 100), (MS * 60, 300)], "{nagle:?}");
    }
    assert_eq!(lengths(Nagle::Below(50)).len(), 4);
    // A cork holds even the first, as long as the shortest timeout above the round trip.
    let corked = lengths(Nagle::Cork);
    assert!(matches!(*corked, [(at, 400)] if at >= MS * 200 && at < MS * 300), "{corked:?}");
}

#[test]
fn minshalls_variant_collects_behind_a_small_segment_only() {
    let second = |nagle| {
        let mut run = Run::of(&TcpConfig { nagle, ..plain() });
        let begin = run.now();
        run.send(Side::Near, 1448);
        run.send(Side::Near, 100);
        run.wait(MS);
        run.data(Side::Near, begin).len()
    };
    assert_eq!((second(Nagle::Minshall), second(Nagle::Below(1448))), (2, 1));
}

#[test]
fn acknowledgements_wait_for_a_time_or_for_so_many_segments() {
    let times = |config: TcpConfig, segments: usize| {
        let mut run = Run::of(&config);
        let begin = run.now();
        run.send(Side::Near, 1448 * segments);
        run.wait(Duration::from_secs(1));
        run.acks(begin)
    };
    let acks = |acks: AckConfig, segments| times(TcpConfig { acks, ..plain() }, segments);
    let fixed = |delay: u64, every| AckConfig { delay: MS * delay, every, ..plain().acks };
    assert_eq!(acks(fixed(40, 2), 1), [MS * 50]);
    assert_eq!(acks(fixed(150, 2), 1), [MS * 160]);
    assert_eq!(acks(fixed(0, 2), 3), [MS * 10; 3]);
    assert_eq!(acks(fixed(40, 2), 4), [MS * 10; 2]);
    assert_eq!(acks(fixed(40, 4), 8), [MS * 10; 2]);
    // Without PSH at once: it stands in the last segment of all data, and of each burst, here of two.
    let unpushed = AckConfig { unpushed: true, ..fixed(40, 9) };
    assert_eq!(acks(unpushed, 3), [MS * 10, MS * 50]);
    let singly = TcpConfig { acks: unpushed, burst: 0, ..plain() };
    assert_eq!(times(singly, 3), [MS * 10, MS * 10, MS * 50]);
    // A new connection is acknowledged at once, for so many segments.
    let linux = AckConfig { tick: Duration::ZERO, ..AckConfig::default() };
    assert_eq!(acks(AckConfig { quick: 16, ..linux }, 8), [MS * 10; 8]);
    assert_eq!(acks(AckConfig { quick: 0, ..linux }, 8), [MS * 10; 4]);
}

#[test]
fn an_acknowledgement_waits_for_the_step_of_its_timer() {
    let mut run = Run::of(&TcpConfig {
        acks: AckConfig { delay: MS * 200, tick: MS * 200, ..plain().acks },
        ..plain()
    });
    let begin = run.now();
    run.send(Side::Near, 100);
    run.wait(Duration::from_secs(1));
    // Connected after 20 ms; the second tick behind the arrival.
    assert_eq!(run.acks(begin), [MS * 180]);
}

#[test]
fn acknowledgements_behind_a_gap_are_joined_or_not() {
    let count = |delay: Duration| {
        let mut acks = plain().acks;
        (acks.adaptive, acks.compress.delay) = (true, delay);
        let config = TcpConfig { acks, initial_window: 40, ..plain() };
        // Behind SYN and ACK the first data is lost.
        let mut run = Run::lossy(&config, &[2]).connected();
        let begin = run.now();
        run.send(Side::Near, 1448 * 30);
        run.wait(MS * 15);
        run.acks(begin).len()
    };
    assert_eq!(count(Duration::ZERO), 29);
    // Three at once for the peer's fast retransmit, one for all others.
    assert_eq!(count(MS), 4);
}

#[test]
fn what_is_lost_alone_is_repaired_by_a_probe_or_by_the_timeout() {
    let repeated = |config: TcpConfig| {
        let mut run = Run::lossy(&config, &[2]).connected();
        let begin = run.now();
        run.send(Side::Near, 100);
        run.wait(Duration::from_secs(10));
        run.data(Side::Near, begin).iter().map(|(at, _)| *at).collect::<Vec<Duration>>()
    };
    let timeout = TimeoutConfig { min: MS * 500, ..TimeoutConfig::default() };
    let without = TcpConfig { tail_loss_probe: false, timeout, ..plain() };
    // The round trip of 20 ms, and at least so much above it.
    assert_eq!(repeated(without.clone()), [Duration::ZERO, MS * 520]);
    let linux = TcpConfig { timeout: TimeoutConfig::default(), ..without.clone() };
    assert_eq!(repeated(linux), [Duration::ZERO, MS * 220]);
    let rfc = TimeoutConfig { estimator: trunkline_transport::tcp::Estimator::Rfc6298, ..timeout };
    assert_eq!(repeated(TcpConfig { timeout: rfc, ..without.clone() }), [Duration::ZERO, MS * 500]);
    // The next step of the timer, as jiffies have it.
    assert_eq!(repeated(TcpConfig { tick: MS * 300, ..without.clone() }), [Duration::ZERO, MS * 580]);
    // A probe after two round trips and what the acknowledgement of a single segment may wait.
    let probing = TcpConfig { tail_loss_probe: true, timeout: TimeoutConfig::default(), ..without };
    assert_eq!(repeated(probing.clone()), [Duration::ZERO, MS * 220]);
    let mut run = Run::lossy(&probing, &[4]).connected();
    let begin = run.now();
    run.send(Side::Near, 1448 * 3);
    run.wait(Duration::from_secs(1));
    // Two round trips behind the acknowledgement of the first two.
    let times: Vec<Duration> = run.data(Side::Near, begin).iter().map(|(at, _)| *at).collect();
    assert_eq!(times.len(), 4);
    assert!((MS * 40..MS * 260).contains(&times[3]), "{times:?}");
    assert_eq!(run.pair.counter(Side::Near, "retransmissions-tail-probe"), 1);
}

#[test]
fn timeouts_double_up_to_the_longest() {
    let timeout =
        TimeoutConfig { initial: MS * 300, min: MS * 100, max: MS * 1000, ..TimeoutConfig::default() };
    let config = TcpConfig { timeout, ..plain() };
    let run = Run::lossy(&config, &[0, 1, 2, 3]).connected();
    let times: Vec<Duration> = run.sent(Side::Near, Duration::ZERO).iter().map(|sent| sent.at).collect();
    assert_eq!(times[..5], [0, 300, 900, 1900, 2900].map(|at| MS * at));
}

#[test]
fn a_doubled_timeout_is_kept_or_forgotten() {
    let last = |keep_backoff| {
        let timeout = TimeoutConfig { keep_backoff, ..TimeoutConfig::default() };
        let config = TcpConfig { timeout, timestamps: false, tail_loss_probe: false, frto: false, ..plain() };
        // The first segment twice, then the second: what is acknowledged then was sent again, and is no sample.
        let mut run = Run::lossy(&config, &[2, 3, 5]).connected();
        run.send(Side::Near, 100);
        run.wait(MS * 700);
        let begin = run.now();
        run.send(Side::Near, 100);
        run.wait(Duration::from_secs(5));
        run.data(Side::Near, begin)[1].0
    };
    assert!(last(true) > last(false), "{} {}", last(true), last(false));
}

#[test]
fn losses_are_found_as_the_recovery_says() {
    let of = |recovery| {
        let config = TcpConfig { recovery, tail_loss_probe: false, ..plain() };
        let mut run = Run::lossy(&config, &[2]).connected();
        run.send(Side::Near, 1448 * 8);
        run.wait(Duration::from_secs(3));
        let counter = |name| run.pair.counter(Side::Near, name);
        assert_eq!(run.received, 1448 * 8);
        (counter("retransmissions"), counter("timeouts"))
    };
    for recovery in [Recovery::Rack, Recovery::Dupack, Recovery::Reno] {
        assert_eq!(of(recovery), (1, 0), "{recovery:?}");
    }
    assert_eq!(of(Recovery::Timeout).1, 1);
}

#[test]
fn rack_finds_the_loss_of_one_before_two_that_arrive() {
    let of = |recovery| {
        let config = TcpConfig { recovery, tail_loss_probe: false, ..plain() };
        let mut run = Run::lossy(&config, &[2]).connected();
        run.send(Side::Near, 1448 * 3);
        run.wait(Duration::from_secs(3));
        (run.pair.counter(Side::Near, "timeouts"), run.pair.counter(Side::Near, "retransmissions-rack"))
    };
    // Two duplicates are too few for RFC 6675; time is enough for RFC 8985.
    assert_eq!((of(Recovery::Rack), of(Recovery::Dupack)), ((0, 1), (1, 0)));
}

#[test]
fn a_spurious_timeout_is_found_out_by_f_rto() {
    let of = |frto| {
        // Without time stamps and reports of duplicates only F-RTO can tell.
        let config = TcpConfig {
            frto,
            timestamps: false,
            sack: false,
            recovery: Recovery::Dupack,
            tail_loss_probe: false,
            ..plain()
        };
        let mut run = Run::of(&config);
        run.send(Side::Near, 1448 * 20);
        run.wait(MS * 100);
        // The path becomes longer than the timeout. F-RTO needs new data to find that out.
        run.pair.path(Side::Near).latency = MS * 400;
        run.send(Side::Near, 1448 * 200);
        run.wait(Duration::from_secs(20));
        assert_eq!(run.received, 1448 * 220);
        let counter = |name| run.pair.counter(Side::Near, name);
        (counter("timeouts-spurious"), counter("retransmissions"))
    };
    let ((found, few), (missed, many)) = (of(true), of(false));
    assert_eq!((found, missed), (1, 0));
    assert!(few < many, "{few} {many}");
}

#[test]
fn slow_start_begins_again_after_idleness_or_not() {
    let burst = |slow_start_after_idle| {
        let mut run = Run::of(&TcpConfig { slow_start_after_idle, ..plain() });
        for _ in 0..5 {
            while run.pair.send(Side::Near, &[7; 10_000]).is_ok() {}
            run.wait(MS * 20);
        }
        run.wait(Duration::from_secs(3));
        let begin = run.now();
        while run.pair.send(Side::Near, &[7; 10_000]).is_ok() {}
        run.wait(MS);
        run.data(Side::Near, begin).len()
    };
    assert_eq!(burst(true), 10);
    assert!(burst(false) > 20, "{}", burst(false));
}

#[test]
fn hystart_ends_slow_start_before_a_queue_overflows() {
    let longest_round_trip = |hystart| {
        let rate = Some(Rate::from_bits_per_second(10_000_000));
        let path = Path { rate, ..Path::with_latency(MS * 25) };
        let config = TcpConfig { hystart, ..plain() };
        let mut run = Run::between(config.clone(), config, path, Path::with_latency(MS * 25)).connected();
        let end = run.pair.now() + Duration::from_secs(2);
        let mut under_way = 0;
        while run.pair.now() < end {
            while run.pair.send(Side::Near, &[7; 20_000]).is_ok() {}
            run.wait(MS * 5);
            under_way = under_way.max(run.data(Side::Near, Duration::ZERO).len() * 1448 - run.received);
        }
        under_way
    };
    // The unlimited queue of the path takes whatever slow start sends.
    let off = longest_round_trip(Hystart::Off);
    for hystart in [Hystart::Linux, Hystart::PlusPlus] {
        let on = longest_round_trip(hystart);
        assert!(on * 2 < off, "{hystart:?}: {on} of {off}");
    }
}

#[test]
fn departures_are_spread_by_pacing_and_not_without() {
    let spread = |config: TcpConfig| {
        let mut run = Run::of(&config);
        let begin = run.now();
        run.send(Side::Near, 1448 * 40);
        run.wait(MS * 100);
        let data = run.data(Side::Near, begin);
        let distinct: std::collections::BTreeSet<Duration> = data.iter().map(|(at, _)| *at).collect();
        assert_eq!(run.received, 1448 * 40);
        distinct.len()
    };
    let always = TcpConfig { pacing: Pacing::Always, burst: 0, ..plain() };
    let never = TcpConfig { pacing: Pacing::Never, ..always.clone() };
    assert!(spread(always.clone()) > 3 * spread(never.clone()), "{} {}", spread(always), spread(never));
}

#[test]
fn the_largest_pacing_rate_bounds_the_rate() {
    for name in ["cubic", "bbr"] {
        let max_pacing_rate = Some(Rate::from_bits_per_second(2_000_000));
        let congestion_control = name.parse().expect("it exists");
        let mut run = Run::of(&TcpConfig { max_pacing_rate, congestion_control, ..plain() });
        run.wait(MS * 100);
        let begin = run.received;
        for _ in 0..500 {
            while run.pair.send(Side::Near, &[7; 10_000]).is_ok() {}
            run.wait(MS * 10);
        }
        let rate = (run.received - begin) * 8 / 5;
        assert!((1_800_000..2_100_000).contains(&rate), "{name}: {rate} bit/s");
    }
}

#[test]
fn offload_makes_segments_depart_together() {
    let together = |burst| {
        let mut run = Run::of(&TcpConfig { burst, pacing: Pacing::Always, ..plain() });
        let begin = run.now();
        for _ in 0..20 {
            while run.pair.send(Side::Near, &[7; 10_000]).is_ok() {}
            run.wait(MS * 10);
        }
        let data = run.data(Side::Near, begin);
        let times: std::collections::BTreeSet<Duration> = data.iter().map(|(at, _)| *at).collect();
        data.len() as f64 / times.len() as f64
    };
    let (with, without) = (together(64 << 10), together(0));
    assert!(with > 2.0 && without < 1.5, "{with} {without}");
}

#[test]
fn an_interface_spreads_a_burst_and_takes_little_of_it_at_once() {
    let interface = Some(Rate::from_bits_per_second(10_000_000));
    let mut run = Run::of(&TcpConfig { interface, initial_window: 30, ..plain() });
    let begin = run.now();
    run.send(Side::Near, 1448 * 30);
    run.wait(MS * 100);
    let departs: Vec<Time> =
        run.sent(Side::Near, begin).iter().filter(|s| !s.data().is_empty()).map(|s| s.departs).collect();
    let gaps = departs.windows(2).map(|two| two[1].since(two[0]));
    assert_eq!(departs.len(), 30);
    assert!(gaps.clone().all(|gap| gap >= Duration::from_micros(1199)), "{:?}", gaps.min());
}

#[test]
fn an_idle_connection_is_probed_and_given_up() {
    let keepalive = Some(KeepaliveConfig { time: MS * 7000, interval: MS * 2000, probes: 3 });
    let mut run = Run::of(&TcpConfig { keepalive, ..plain() });
    run.wait(MS * 100);
    let begin = run.now();
    run.wait(Duration::from_secs(20));
    // Answered probes go on.
    assert!(run.sent(Side::Near, begin).len() >= 2);
    assert!(!run.pair.take_event(Side::Near, Event::Closed(CloseReason::TimedOut(MS))));
    let cut = run.pair.now();
    for side in Side::BOTH {
        run.pair.path(side).cut = Some(cut);
    }
    let begin = run.now();
    run.wait(Duration::from_secs(60));
    let probes = run.sent(Side::Near, begin);
    // Three probes and the reset.
    assert_eq!(probes.len(), 4, "{probes:?}");
    assert!(probes.iter().all(|probe| probe.data().is_empty()));
    let times: Vec<Duration> = probes.windows(2).map(|two| two[1].at - two[0].at).collect();
    assert_eq!(times, [MS * 2000; 3]);
    assert_eq!(probes[0].sequence().wrapping_add(1), probes[3].sequence());
}

#[test]
fn without_keep_alive_nothing_is_sent_on_an_idle_connection() {
    let mut run = Run::of(&plain());
    run.wait(MS * 100);
    let begin = run.now();
    run.wait(Duration::from_secs(100_000));
    assert!(run.sent(Side::Near, begin).is_empty() && run.sent(Side::Far, begin).is_empty());
}

/// The time that an end waits for an acknowledgement before it gives up.
fn given_up_after(config: TcpConfig) -> Duration {
    let mut run = Run::of(&config);
    run.wait(MS * 100);
    let cut = run.pair.now();
    run.pair.path(Side::Near).cut = Some(cut);
    run.send(Side::Near, 100);
    let begin = run.pair.now();
    loop {
        let events = run.pair.events(Side::Near);
        if events.iter().any(|event| matches!(event, Event::Closed(CloseReason::TimedOut(_)))) {
            return run.pair.now().since(begin);
        }
        assert!(run.pair.step_until(Time::MAX), "it never gives up");
    }
}

#[test]
fn a_connection_without_answers_is_given_up_by_the_user_timeout_or_the_retries() {
    let user_timeout = Some(Duration::from_secs(5));
    let by_user = given_up_after(TcpConfig { user_timeout, ..plain() });
    assert!((MS * 5000..MS * 6000).contains(&by_user), "{by_user}");
    // Doublings of 200 ms: 0.2 + 0.4 + 0.8 + 1.6 s, from the first repetition on.
    let by_retries = given_up_after(TcpConfig { retries: 3, ..plain() });
    assert!((MS * 3000..MS * 7000).contains(&by_retries), "{by_retries}");
    let longer = given_up_after(TcpConfig { retries: 6, ..plain() });
    assert!(longer > by_retries * 4, "{longer} {by_retries}");
}

#[test]
fn a_syn_is_repeated_so_often() {
    for syn_retries in [1, 3] {
        let config = TcpConfig { syn_retries, ..plain() };
        let mut run = Run::lossy(&config, &(0..100).collect::<Vec<u64>>());
        run.wait(Duration::from_secs(300));
        let syns =
            run.sent(Side::Near, Duration::ZERO).iter().filter(|s| s.flags() & (SYN | ACK) == SYN).count();
        assert_eq!(syns, 1 + syn_retries as usize);
    }
}

#[test]
fn reading_is_announced_as_the_option_says() {
    let updates = |window_updates| {
        let config = TcpConfig { window_updates, receive_buffer: BufferConfig::fixed(20 * 1448), ..plain() };
        let mut run = Run::of(&config);
        run.wait(MS * 100);
        run.send(Side::Near, 10 * 1448);
        // Nobody reads until all of it is acknowledged.
        run.pair.drive_for(MS * 200);
        let begin = run.now();
        run.wait(MS * 5);
        run.acks(begin).len()
    };
    assert_eq!(updates(WindowUpdates::TwoSegments), 1);
    // The window was half open, and not closed.
    assert_eq!(updates(WindowUpdates::WhenClosed), 0);
    assert_eq!(updates(WindowUpdates::Doubled), 0);
}

#[test]
fn segments_have_half_of_a_small_window_or_all_of_it() {
    let first = |half_window_segments| {
        let config = TcpConfig { half_window_segments, receive_buffer: BufferConfig::fixed(2000), ..plain() };
        let mut run = Run::of(&config);
        let begin = run.now();
        run.send(Side::Near, 6000);
        run.wait(MS);
        run.data(Side::Near, begin)[0].1
    };
    assert!(first(true) <= 1000, "{}", first(true));
    assert_eq!(first(false), 1448);
}

#[test]
fn a_window_in_bytes_holds_small_segments_by_their_size_and_grows_unused() {
    let config = |window_in_bytes| TcpConfig { initial_window: 1, window_in_bytes, ..plain() };
    let together = |window_in_bytes| {
        let mut run = Run::of(&config(window_in_bytes));
        let begin = run.now();
        (0..4).for_each(|_| run.send(Side::Near, 600));
        run.wait(MS);
        run.data(Side::Near, begin).len()
    };
    assert_eq!(together(true), 2, "1200 of 1448 bytes");
    assert_eq!(together(false), 1);
    let burst = |window_in_bytes| {
        let mut run = Run::of(&config(window_in_bytes));
        for _ in 0..8 {
            run.send(Side::Near, 100);
            run.wait(MS * 100);
        }
        let begin = run.now();
        run.send(Side::Near, 14_480);
        run.wait(MS);
        run.data(Side::Near, begin).len()
    };
    assert_eq!(burst(true), 9, "one more for every acknowledgement");
    assert_eq!(burst(false), 2, "one segment at a time never filled more");
}

#[test]
fn profiles_differ_in_what_they_send() {
    use trunkline_transport::tcp::Profile;
    let burst = |profile: Profile| {
        let mut run = Run::of(&profile.config());
        let begin = run.now();
        let syn = run.sent(Side::Near, Duration::ZERO)[0].clone();
        run.send(Side::Near, 30_000);
        run.wait(MS);
        (run.data(Side::Near, begin).len(), [3, 4, 8].map(|kind| syn.has_option(kind)))
    };
    assert_eq!(burst(Profile::Linux), (10, [true, true, true]));
    assert_eq!(burst(Profile::Windows), (10, [true, true, false]));
    assert_eq!(burst(Profile::Apple), (10, [true, true, true]));
    assert_eq!(burst(Profile::Solaris25), (1, [false; 3]));
    assert_eq!(burst(Profile::BsdReno), (1, [false; 3]));
    let repair = |profile: Profile| {
        let mut run = Run::lossy(&profile.config(), &[2]).connected();
        let begin = run.now();
        run.send(Side::Near, 100);
        run.wait(Duration::from_secs(10));
        run.data(Side::Near, begin)[1].0
    };
    // Two steps of half a second, of which a part was over.
    let bsd = repair(Profile::BsdReno);
    assert!((MS * 500..=MS * 1000).contains(&bsd), "{bsd}");
    let solaris = repair(Profile::Solaris25);
    assert!((MS * 200..MS * 400).contains(&solaris), "{solaris}");
}
