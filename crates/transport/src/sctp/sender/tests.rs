use super::super::wire::Header;
use super::*;

/// All that may be sent now; how many packets.
fn send(sender: &mut Sender) -> usize {
    let mut packet = vec![0; COMMON_HEADER];
    let mut count = 0;
    while sender.write(Time::ZERO, &mut packet) {
        packet.truncate(COMMON_HEADER);
        count += 1;
    }
    count
}

/// All that the windows allow, in many bursts.
fn fill(sender: &mut Sender) {
    sender.burst = MAX_BURST;
    while send(sender) > 0 {
        sender.burst = MAX_BURST;
    }
}

/// RFC 9260 section 6.1, rule D: Max.Burst packets of new data for each SACK, however much it acknowledges, and for each
/// message.
#[test]
fn no_more_than_four_packets_of_new_data_leave_at_once() {
    let mut sender = Sender::new(&SctpConfig::default(), 1);
    sender.agree(1 << 20, 1, true);
    sender.congestion = Congestion::new(20_000);
    for _ in 0..60 {
        sender.push(Time::ZERO, &[1; 1000]);
    }
    assert_eq!(send(&mut sender), 4);
    fill(&mut sender);
    let all = sender.outstanding.len() as u32;
    assert!(all > 30 && all < 60, "{all}");
    sender.acknowledge(Time::ZERO, all, Some(1 << 20), &[]);
    assert_eq!((send(&mut sender), send(&mut sender)), (4, 0));
    sender.push(Time::ZERO, &[1; 1000]);
    assert_eq!(send(&mut sender), 4);
}

#[test]
fn what_the_peer_throws_away_again_is_sent_again() {
    let config = SctpConfig::default();
    let mut sender = Sender::new(&config, 1);
    sender.agree(100_000, 1, true);
    for n in 0..3 {
        sender.push(Time::ZERO, &[n; 100]);
    }
    let tsns = |sender: &mut Sender, now| {
        let mut packet = Vec::new();
        wire::begin(&mut packet, 1, 2, 3);
        sender.write(now, &mut packet);
        wire::seal(&mut packet);
        let chunks = Header::verify(&packet).map(|(_, chunks)| chunks);
        chunks.into_iter().flatten().filter_map(|chunk| wire::u32_at(chunk.value, 0)).collect::<Vec<_>>()
    };
    let now = Time::ZERO;
    assert_eq!(tsns(&mut sender, now), [1, 2, 3]);
    sender.acknowledge(now, 1, Some(100_000), &[0, 2, 0, 2]);
    assert_eq!(tsns(&mut sender, now), []);
    // It may be that SACKs came in another order: that is left to the timer.
    sender.acknowledge(now, 1, Some(100_000), &[]);
    assert_eq!(tsns(&mut sender, now), []);
    let now = now + trunkline_core::Duration::from_secs(1);
    sender.handle_timeout(now);
    assert_eq!(tsns(&mut sender, now), [2, 3]);
    sender.acknowledge(now, 3, Some(100_000), &[]);
    assert!(sender.is_empty() && sender.timer().is_none());
    // What was never sent cannot be acknowledged.
    sender.acknowledge(now, 9, Some(100_000), &[]);
    assert_eq!(sender.acknowledged(), 3);
}

#[test]
fn a_shutdown_says_nothing_of_what_lies_behind_gaps() {
    let mut sender = Sender::new(&SctpConfig::default(), 1);
    sender.agree(100_000, 1, true);
    for n in 0..3 {
        sender.push(Time::ZERO, &[n; 100]);
    }
    fill(&mut sender);
    sender.acknowledge(Time::ZERO, 1, Some(100_000), &[0, 2, 0, 2]);
    sender.acknowledge(Time::ZERO, 1, None, &[]);
    assert_eq!((sender.beyond_gap, sender.lost), (1, 0));
}

#[test]
fn no_more_is_outstanding_than_numbers_can_tell_apart() {
    let mut sender = Sender::new(&SctpConfig { send_buffer: 1 << 20, ..SctpConfig::default() }, 1);
    sender.agree(1 << 30, 1, true);
    sender.congestion = Congestion::new(1 << 20);
    for _ in 0..40_000 {
        sender.push(Time::ZERO, &[1]);
    }
    fill(&mut sender);
    assert_eq!(sender.outstanding.len(), 32_767);
}

#[test]
fn losses_within_a_round_trip_halve_the_window_once() {
    let mut sender = Sender::new(&SctpConfig::default(), 1);
    sender.agree(1 << 20, 1, true);
    sender.congestion = Congestion::new(20_000);
    for _ in 0..70 {
        sender.push(Time::ZERO, &[1; 1000]);
    }
    fill(&mut sender);
    assert!(sender.outstanding.len() > 30);
    // The first and the twentieth are lost.
    for last in 2..8u8 {
        sender.acknowledge(Time::ZERO, 0, Some(1 << 20), &[0, 2, 0, last]);
    }
    let window = sender.congestion.window();
    for last in 21..25u8 {
        sender.acknowledge(Time::ZERO, 19, Some(1 << 20), &[0, 2, 0, last - 19]);
    }
    assert_eq!(sender.lost, 1);
    assert_eq!(sender.congestion.window(), window);
}
