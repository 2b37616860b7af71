use super::super::options::Opt;
use super::*;

/// A sender that sends as fast as it may, and a network that answers as told, with packets numbered from 0.
struct Flow {
    sender: Sender,
    sent: Sent,
    next: Seq,
    rtt: RoundTrip,
    now: Time,
}

impl Flow {
    fn new() -> Flow {
        let mut rtt = RoundTrip::default();
        rtt.sample(Duration::from_millis(100));
        Flow {
            sender: Sender::new(1000),
            sent: Sent::new(Seq::new(0)),
            next: Seq::new(0),
            rtt,
            now: Time::ZERO + Duration::from_secs(1),
        }
    }

    /// Sends what the window allows; how many.
    fn send(&mut self) -> u64 {
        let mut count = 0;
        while self.sender.may_send() {
            self.sent.push(self.now, true, 0);
            self.sender.on_sent(self.now, &self.rtt);
            self.next = self.next.next();
            count += 1;
        }
        count
    }

    /// An acknowledgement of `ack` with this vector.
    fn acknowledge(&mut self, ack: u64, vector: &[u8]) {
        self.take(ack, &[Opt::AckVector { nonce: false, vector }]);
    }

    fn take(&mut self, ack: u64, options: &[Opt<'_>]) {
        let mut feedback = Feedback::new(Seq::new(ack));
        for option in options {
            feedback.take(option);
        }
        let newest = self.next.minus(1);
        self.sender.on_feedback(self.now, &feedback, &mut self.sent, newest, &self.rtt);
    }

    fn window(&self) -> u64 {
        self.sender.state().0
    }
}

#[test]
fn the_initial_window_is_that_of_rfc_3390() {
    for (size, window) in [(500, 4), (1095, 4), (1460, 3), (2190, 2), (9000, 2)] {
        assert_eq!(Sender::new(size).window(), window, "{size} bytes");
    }
}

#[test]
fn slow_start_grows_by_one_for_two_packets() {
    let mut flow = Flow::new();
    assert_eq!(flow.send(), 4);
    // Ack Ratio 2: two acknowledgements of two packets each.
    flow.acknowledge(1, &[1]);
    assert_eq!((flow.window(), flow.send()), (5, 3));
    flow.acknowledge(3, &[1]);
    assert_eq!((flow.window(), flow.send()), (6, 3));
    // No more than Ack Ratio / 2 per acknowledgement, however much it acknowledges.
    flow.acknowledge(9, &[5]);
    assert_eq!(flow.window(), 7);
}

#[test]
fn three_later_packets_make_a_loss_and_the_window_halves_once_per_window() {
    let mut flow = Flow::new();
    flow.sender.cwnd = 10;
    assert_eq!(flow.send(), 10);
    // 0 and 3 are missing; two later packets are not enough for 3.
    flow.acknowledge(2, &[1, 0xC0]);
    assert_eq!(flow.sender.state().2, 8);
    flow.acknowledge(5, &[1, 0xC0, 1, 0xC0]);
    // 0 is lost: four are acknowledged, one lost, five are under way.
    assert_eq!(flow.sender.state(), (5, 5, 5));
    flow.acknowledge(6, &[2, 0xC0, 1, 0xC0]);
    assert_eq!(flow.sender.state(), (5, 5, 3), "the same congestion event");
    assert_eq!(flow.send(), 2);
    // A loss among those sent after the first was noticed is a new event.
    flow.acknowledge(9, &[2]);
    assert_eq!(flow.send(), 3);
    flow.acknowledge(14, &[3, 0xC0]);
    assert_eq!(flow.window(), 2);
}

#[test]
fn a_duplicate_acknowledgement_changes_nothing() {
    let mut flow = Flow::new();
    flow.send();
    flow.acknowledge(1, &[1]);
    let before = flow.sender.state();
    flow.acknowledge(1, &[1]);
    assert_eq!(flow.sender.state(), before);
}

#[test]
fn a_mark_counts_as_a_loss() {
    let mut flow = Flow::new();
    flow.sender.cwnd = 10;
    flow.send();
    flow.acknowledge(1, &[0x40, 0]);
    assert_eq!(flow.sender.state(), (5, 5, 8));
}

#[test]
fn congestion_avoidance_grows_by_one_per_window() {
    let mut flow = Flow::new();
    (flow.sender.cwnd, flow.sender.ssthresh) = (10, 5);
    let mut last = 0;
    let mut windows = Vec::new();
    for _ in 0..33 {
        flow.send();
        last += 1;
        flow.acknowledge(last - 1, &[0]);
        windows.push(flow.window());
    }
    assert_eq!([windows[8], windows[9], windows[19], windows[20], windows[32]], [10, 11, 11, 12, 13]);
}

#[test]
fn a_timeout_starts_over_and_doubles() {
    let mut flow = Flow::new();
    flow.sender.cwnd = 20;
    flow.send();
    let timeout = flow.rtt.timeout();
    assert_eq!(flow.sender.next_timeout(), Some(flow.now + timeout));
    flow.now += timeout;
    flow.sender.handle_timeout(flow.now, &mut flow.sent, flow.next.minus(1));
    assert_eq!(flow.sender.state(), (1, 10, 0));
    assert_eq!(flow.send(), 1);
    assert_eq!(flow.sender.next_timeout(), Some(flow.now + timeout * 2));
    // What was given up does not free the window again when it turns out to have arrived.
    flow.acknowledge(19, &[19]);
    assert_eq!(flow.sender.state().2, 1);
}

#[test]
fn a_full_receive_buffer_takes_one_packet_off_for_each_and_ends_slow_start() {
    let mut flow = Flow::new();
    flow.sender.cwnd = 10;
    flow.send();
    flow.take(9, &[Opt::AckVector { nonce: false, vector: &[9] }, Opt::DataDropped(&[0x80 | 2 << 4 | 2])]);
    let (cwnd, ssthresh, _) = flow.sender.state();
    assert_eq!((cwnd, ssthresh), (7, 10));
}

#[test]
fn an_idle_sender_decays() {
    let mut flow = Flow::new();
    flow.sender.cwnd = 64;
    let sent = flow.send();
    flow.acknowledge(sent - 1, &[63]);
    flow.now += flow.rtt.timeout() * 3;
    let before = flow.window();
    flow.send();
    assert_eq!(flow.window(), before / 8);
}

#[test]
fn a_window_that_is_not_used_comes_down_to_the_initial_one() {
    let mut flow = Flow::new();
    flow.sender.cwnd = 64;
    // A packet every 10 ms, each acknowledged at once.
    let mut windows = Vec::new();
    for number in 0..400 {
        flow.sent.push(flow.now, true, 0);
        flow.sender.on_sent(flow.now, &flow.rtt);
        flow.next = flow.next.next();
        flow.acknowledge(number, &[0]);
        flow.now += Duration::from_millis(10);
        windows.push(flow.window());
    }
    windows.dedup();
    assert_eq!(windows, [64, 34, 19, 11, 7, 5, 4]);
    // One that is full is kept.
    let sent = flow.send();
    flow.now += flow.rtt.timeout();
    flow.acknowledge(400 + sent - 1, &[3]);
    assert!(flow.window() >= 4);
}

#[test]
fn the_ack_ratio_doubles_with_lost_acknowledgements_and_comes_back() {
    let mut flow = Flow::new();
    (flow.sender.cwnd, flow.sender.ssthresh) = (40, 40);
    flow.sender.on_ack_congestion();
    flow.sender.on_ack_progress(40);
    assert_eq!(flow.sender.ack_ratio(), 4);
    // 40 / (16 - 4) = 3.3 windows without loss until it falls by one, then 40 / (9 - 3) = 6.7.
    let ratios: Vec<u64> = (0..11)
        .map(|_| {
            flow.sender.on_ack_progress(40);
            flow.sender.ack_ratio()
        })
        .collect();
    assert_eq!(ratios, [4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 2]);
    // Never more than half the window.
    flow.sender.cwnd = 5;
    flow.sender.on_ack_congestion();
    flow.sender.on_ack_progress(5);
    assert_eq!(flow.sender.ack_ratio(), 3);
}

#[test]
fn the_receiver_acknowledges_at_its_ratio_and_at_once_when_something_is_amiss() {
    let now = Time::ZERO;
    let mut receiver = Receiver::default();
    assert!(!receiver.on_packet(now, true, false, 2));
    assert_eq!(receiver.next_timeout(), Some(now + ACK_DELAY));
    assert!(receiver.on_packet(now, true, false, 2));
    receiver.on_acknowledged();
    assert_eq!(receiver.next_timeout(), None);
    assert!(receiver.on_packet(now, true, true, 2));
    assert!(!receiver.on_packet(now, false, true, 2), "acknowledgements are not acknowledged");
}

/// RFC 4341 section 6.1.1: not more than half the window, rounded up, and two or more from four packets on.
#[test]
fn the_ack_ratio_follows_a_small_window() {
    let mut sender = Sender::new(1000);
    for (window, ratio) in [(1, 1), (2, 1), (3, 2), (4, 2), (100, 2)] {
        sender.cwnd = window;
        assert_eq!(sender.ack_ratio(), ratio, "{window}");
    }
    (sender.cwnd, sender.acks.ratio) = (6, 8);
    assert_eq!(sender.ack_ratio(), 3);
}
