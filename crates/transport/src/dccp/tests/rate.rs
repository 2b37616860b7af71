//! The sender of CCID 3 against RFC 5348.

use super::super::feedback::Feedback;
use super::super::sent::Sent;
use super::super::seq::Seq;
use super::super::tfrc_sender::Sender;
use super::*;

/// A sender whose packets are numbered from 0, and reports as told.
struct Flow {
    sender: Sender,
    sent: Sent,
    /// When each packet went.
    times: Vec<Time>,
    now: Time,
    size: usize,
    rtt: Duration,
}

impl Flow {
    fn new(small_packets: bool, rtt_millis: u64, size: usize) -> Flow {
        Flow {
            sender: Sender::new(small_packets, Some(Duration::from_millis(rtt_millis))),
            sent: Sent::new(Seq::new(0)),
            times: Vec::new(),
            now: Time::ZERO + Duration::from_secs(10),
            size,
            rtt: Duration::from_millis(rtt_millis),
        }
    }

    fn send(&mut self) {
        let counter = self.sender.counter(self.now);
        self.sent.push(self.now, true, counter);
        self.sender.on_sent(self.now, Seq::new(self.times.len() as u64), self.size);
        self.times.push(self.now);
    }

    /// Sends as fast as allowed for so long; how many packets.
    fn send_for(&mut self, time: Duration) -> usize {
        let (until, before) = (self.now + time, self.times.len());
        while self.sender.allowed_at() <= until {
            self.now = self.now.max(self.sender.allowed_at());
            self.send();
        }
        self.now = until;
        self.times.len() - before
    }

    /// A report on the last packet that was sent at least a round trip ago: a receive rate and the data lengths of loss
    /// intervals, newest first.
    fn report(&mut self, rate: u32, lengths: &[u32]) {
        let mut option = vec![0];
        for &length in lengths {
            // Every interval begins with one loss, except for the first of all.
            option.extend_from_slice(&length.saturating_sub(1).to_be_bytes()[1..]);
            option.extend_from_slice(&1u32.to_be_bytes()[1..]);
            option.extend_from_slice(&length.to_be_bytes()[1..]);
        }
        if lengths.is_empty() {
            option.extend_from_slice(&[0, 0, 9, 0, 0, 0, 0, 0, 0]);
        }
        let earlier = self.times.partition_point(|&at| at + self.rtt <= self.now);
        let mut feedback = Feedback::new(Seq::new(earlier as u64 - 1));
        feedback.take(&Opt::ReceiveRate(rate));
        feedback.take(&Opt::ElapsedTime(0));
        feedback.take(&Opt::LossIntervals(&option));
        self.sender.on_feedback(self.now, &feedback, &mut self.sent);
    }
}

fn close(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.02, "{found} instead of {expected}");
}

#[test]
fn it_begins_with_the_window_of_rfc_3390_per_round_trip() {
    for (size, window) in [(160, 640.0), (1000, 4000.0), (1460, 4380.0), (3000, 6000.0)] {
        let mut flow = Flow::new(false, 100, size);
        flow.send();
        close(flow.sender.rate(), window / 0.1);
    }
    let mut flow = Flow::new(true, 100, 160);
    flow.send();
    close(flow.sender.rate(), 43_800.0);
}

#[test]
fn without_losses_it_doubles_every_round_trip_up_to_twice_what_arrives() {
    let mut flow = Flow::new(false, 100, 1000);
    flow.send();
    let mut rates = Vec::new();
    for received in [0, 40_000, 80_000, 160_000, 160_000, 160_000] {
        flow.send_for(Duration::from_millis(130));
        flow.report(received, &[]);
        rates.push((flow.sender.rate() / 10_000.0).round());
    }
    assert_eq!(rates, [8.0, 16.0, 16.0, 32.0, 32.0, 32.0]);
}

#[test]
fn with_losses_it_follows_the_equation() {
    let mut flow = Flow::new(false, 100, 1000);
    for _ in 0..100 {
        flow.send_for(Duration::from_millis(101));
        flow.report(10_000_000, &[100, 100, 100, 100, 100, 100, 100, 100, 100]);
    }
    assert!((flow.sender.loss_event_rate() - 0.01).abs() < 1e-9);
    let rtt = flow.sender.round_trip().unwrap();
    close(flow.sender.rate(), throughput(1000.0, rtt, 0.01));
}

#[test]
fn without_feedback_it_halves() {
    let mut flow = Flow::new(false, 100, 1000);
    for _ in 0..10 {
        flow.send_for(Duration::from_millis(101));
        flow.report(200_000, &[1000, 1000]);
    }
    let before = flow.sender.rate();
    flow.send();
    for halvings in 1..4 {
        let at = flow.sender.next_timeout().unwrap();
        assert!(at.since(flow.now) >= Duration::from_millis(400), "four round trips at least");
        flow.now = at;
        flow.sender.handle_timeout(at);
        flow.send();
        close(flow.sender.rate(), before / f64::from(1 << halvings));
    }
}

#[test]
fn an_idle_sender_keeps_its_initial_rate_and_then_its_timer_rests() {
    let mut flow = Flow::new(false, 100, 1000);
    for rate in [0, 40_000, 80_000, 160_000, 320_000, 320_000, 320_000] {
        flow.send_for(Duration::from_millis(101));
        flow.report(rate, &[]);
    }
    assert!(flow.sender.rate() > 100_000.0);
    let mut expirations = 0;
    while let Some(at) = flow.sender.next_timeout() {
        flow.now = at;
        flow.sender.handle_timeout(at);
        expirations += 1;
    }
    assert!((1..10).contains(&expirations), "{expirations}");
    let initial = 40_000.0;
    assert!((initial..2.0 * initial).contains(&flow.sender.rate()), "{}", flow.sender.rate());
}

#[test]
fn packets_are_spread_and_a_pause_earns_no_more_than_a_burst_of_eight() {
    let mut flow = Flow::new(false, 100, 1000);
    flow.send();
    // 40 packets per second.
    assert_eq!(flow.send_for(Duration::from_secs(1)), 40);
    assert!(flow.sender.allowed_at().since(flow.now) <= Duration::from_millis(25));
    flow.now += Duration::from_millis(500);
    // A round trip's worth is four packets, and the one that is due.
    let mut burst = 0;
    while flow.sender.allowed_at() <= flow.now {
        flow.send();
        burst += 1;
    }
    assert_eq!(burst, 5);
}

#[test]
fn small_packets_are_ten_milliseconds_apart_and_pay_for_their_headers() {
    let mut flow = Flow::new(true, 100, 20);
    flow.send();
    // 43,800 bytes per second would be 782 packets of 56 bytes.
    assert_eq!(flow.send_for(Duration::from_secs(1)), 100);
    for _ in 0..50 {
        flow.send_for(Duration::from_millis(100));
        flow.report(2000, &[20, 20, 20, 20, 20, 20, 20, 20, 20]);
    }
    let rtt = flow.sender.round_trip().unwrap();
    let expected = throughput(1460.0, rtt, 0.05).min(2.0 * 2000.0 * 56.0 / 20.0);
    close(flow.sender.rate(), expected);
}

#[test]
fn the_window_counter_moves_a_quarter_round_trip_at_a_time() {
    let mut flow = Flow::new(false, 100, 1000);
    let mut counters = Vec::new();
    for _ in 0..10 {
        counters.push(flow.sender.counter(flow.now));
        flow.now += Duration::from_millis(13);
    }
    assert_eq!(counters, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    flow.now += Duration::from_secs(5);
    assert_eq!(flow.sender.counter(flow.now), 9, "never more than five at once");
}
