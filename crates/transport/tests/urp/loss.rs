//! What goes wrong on the way, and how it is put right.

use super::*;

/// Sends five blocks, each in a packet of its own, with a window of three; these packets of the near end and these of the
/// far end are lost, counted from 0.
fn after_losing(lost: &[u64], lost_answers: &[u64]) -> Pair {
    let mut pair = connected(config(256, 3), &Path::with_latency(LATENCY));
    let first = Side::BOTH.map(|side| pair.path_counters(side).sent);
    pair.path(Side::Near).drop = lost.iter().map(|n| first[0] + n).collect();
    pair.path(Side::Far).drop = lost_answers.iter().map(|n| first[1] + n).collect();
    let sent = pattern(256 * 5);
    assert_eq!(pair.send(Side::Near, &sent), Ok(()));
    assert_eq!(transfer(&mut pair, Side::Near, &[]).concat(), sent);
    pair
}

fn counters(pair: &Pair, side: Side, names: &[&str]) -> Vec<u64> {
    names.iter().map(|name| pair.counter(side, name)).collect()
}

const SENDER: &[&str] = &["blocks-sent", "retransmissions", "rejects-received", "timeouts"];
const RECEIVER: &[&str] = &["blocks-received", "blocks-out-of-sequence", "rejects-sent"];

#[test]
fn nothing_is_sent_twice_without_a_reason() {
    let pair = after_losing(&[], &[]);
    assert_eq!(counters(&pair, Side::Near, SENDER), [5, 0, 0, 0]);
    assert_eq!(counters(&pair, Side::Far, RECEIVER), [5, 0, 0]);
}

#[test]
fn a_lost_block_brings_one_rej_and_goes_back_to_it() {
    let start = connected(UrpConfig::default(), &Path::with_latency(LATENCY)).now();
    let pair = after_losing(&[0], &[]);
    assert_eq!(counters(&pair, Side::Near, SENDER), [5, 3, 1, 0]);
    assert_eq!(counters(&pair, Side::Far, RECEIVER), [5, 2, 1], "blocks 2 and 3 are rejected by one REJ");
    // A round trip for the rejected window, one for its repetition, one for the rest.
    assert_eq!(pair.now().since(start), LATENCY * 2 * 3);
}

#[test]
fn a_lost_rej_is_made_good_after_the_timeout() {
    let start = connected(UrpConfig::default(), &Path::with_latency(LATENCY)).now();
    let pair = after_losing(&[0], &[0]);
    assert_eq!(counters(&pair, Side::Near, SENDER), [5, 3, 0, 1]);
    // From the last block on: the timeout, ENQ and its answer, the window again, and the rest.
    assert_eq!(pair.now().since(start), Duration::from_secs(1) + LATENCY * 2 * 3);
}

#[test]
fn a_lost_last_block_is_made_good_after_the_timeout() {
    let pair = after_losing(&[4], &[]);
    assert_eq!(counters(&pair, Side::Near, SENDER), [5, 1, 0, 1]);
}

#[test]
fn a_lost_enquiry_or_answer_is_repeated() {
    for (lost, lost_answers, timeouts) in [
        (vec![4, 5], vec![], 2),
        // The ECHO of the last block, then both parts of the answer to ENQ, then either.
        (vec![], vec![4], 1),
        (vec![], vec![4, 5, 6], 2),
        (vec![], vec![4, 5], 2),
        (vec![], vec![4, 6], 1),
    ] {
        let pair = after_losing(&lost, &lost_answers);
        let retransmissions = u64::from(!lost.is_empty());
        let expected = [5, retransmissions, 0, timeouts];
        assert_eq!(counters(&pair, Side::Near, SENDER), expected, "{lost:?}, {lost_answers:?}");
    }
}

#[test]
fn a_lost_echo_costs_nothing_when_another_follows() {
    let pair = after_losing(&[], &[0]);
    assert_eq!(counters(&pair, Side::Near, SENDER), [5, 0, 0, 0]);
}

#[test]
fn a_lost_repetition_waits_for_the_timeout() {
    // Block 1 and its repetition: blocks behind it are rejected, but not by a second REJ.
    let pair = after_losing(&[0, 3], &[]);
    assert_eq!(counters(&pair, Side::Near, SENDER), [5, 6, 1, 1]);
    assert_eq!(counters(&pair, Side::Far, RECEIVER), [5, 4, 1]);
}

#[test]
fn what_is_late_or_comes_twice_is_thrown_away_by_the_circuit() {
    let path = Path { duplicate: 1.0, ..Path::with_latency(LATENCY) };
    let mut pair = connected(UrpConfig::default(), &path);
    let sent = pattern(5000);
    assert_eq!(transfer(&mut pair, Side::Near, std::slice::from_ref(&sent)).concat(), sent);
    assert_eq!(counters(&pair, Side::Near, SENDER), [20, 0, 0, 0]);
    assert_eq!(pair.counter(Side::Far, "late-packets"), 20);
    assert_eq!(pair.counter(Side::Far, "duplicate-blocks"), 0);
}

#[test]
fn damage_is_found_by_the_circuit() {
    let path = Path { corrupt: 0.1, ..Path::with_latency(LATENCY) };
    let mut pair = connected(UrpConfig::default(), &path);
    let sent = pattern(100_000);
    let received = transfer(&mut pair, Side::Near, std::slice::from_ref(&sent)).concat();
    assert!(received == sent);
    assert_eq!(pair.counter(Side::Far, "checksum-errors"), pair.path_counters(Side::Near).corrupted);
}

#[test]
fn a_path_slower_than_the_timeout_loses_no_throughput() {
    // A round trip of three seconds: the sender asks in each, and sends nothing twice.
    let mut pair = connected(config(256, 7), &Path::with_latency(Duration::from_millis(1500)));
    let sent = pattern(256 * 7 * 10);
    let start = pair.now();
    pair.send(Side::Near, &sent).unwrap();
    let mut received = Vec::new();
    while received.len() < sent.len() {
        assert!(pair.step_until(Time::MAX));
        received.extend(pair.receive_all(Side::Far).concat());
    }
    assert_eq!(received, sent);
    assert_eq!(pair.now().since(start), Duration::from_millis(1500) + Duration::from_secs(3) * 9);
    assert!(pair.counter(Side::Near, "timeouts") >= 9);
    assert_eq!(pair.counter(Side::Near, "retransmissions"), 0);
}

#[test]
fn blocks_that_come_twice_do_not_make_a_busy_sender_go_back_for_ever() {
    // A message is lost. ENQ asks for it, and new data follow ENQ at once, so that its answer and a REJ both tell of the
    // loss: the sender goes back twice, and the second time in vain.
    let mut pair = connected(config(64, 7), &Path::with_latency(LATENCY));
    pair.path(Side::Near).drop = vec![pair.path_counters(Side::Near).sent];
    let sent = pattern(64 * 1000);
    pair.send(Side::Near, &sent[..64]).unwrap();
    pair.drive_for(Duration::from_secs(1) + LATENCY / 2);
    let received = transfer(&mut pair, Side::Near, &[sent[64..].to_vec()]);
    assert!(received.concat() == sent);
    assert_eq!(counters(&pair, Side::Near, SENDER), [1000, 14, 1, 1]);
    assert_eq!(pair.counter(Side::Far, "duplicate-blocks"), 7);
}

#[test]
fn a_block_that_lost_a_piece_is_rejected() {
    let mut pair = connected(config(256, 3), &Path::with_latency(LATENCY));
    let first = pair.path_counters(Side::Near).sent;
    pair.path(Side::Near).drop = vec![first + 1];
    let sent = pattern(256);
    for piece in sent.chunks(64) {
        pair.send_message(Side::Near, Message::piece(piece)).unwrap();
    }
    assert_eq!(transfer(&mut pair, Side::Near, &[]).concat(), sent);
    assert_eq!(pair.counter(Side::Far, "blocks-of-wrong-length"), 1);
    assert_eq!(pair.counter(Side::Near, "retransmissions"), 1);
    assert_eq!(pair.counter(Side::Near, "timeouts"), 0);
}

#[test]
fn going_back_amid_a_block_needs_no_timeout() {
    // Block 1 is lost, block 2 brings the REJ while pieces of block 3 have left already.
    let mut pair = connected(config(256, 7), &Path::with_latency(LATENCY));
    let first = pair.path_counters(Side::Near).sent;
    pair.path(Side::Near).drop = vec![first];
    let sent = pattern(600);
    pair.send_message(Side::Near, Message::piece(&sent[..550])).unwrap();
    pair.drive_for(LATENCY);
    pair.send_message(Side::Near, Message::piece(&sent[550..580])).unwrap();
    pair.drive_for(LATENCY * 3);
    pair.send_message(Side::Near, Message::new(&sent[580..])).unwrap();
    assert_eq!(transfer(&mut pair, Side::Near, &[]).concat(), sent);
    assert_eq!(pair.counter(Side::Near, "retransmissions"), 2);
    assert_eq!(pair.counter(Side::Near, "timeouts"), 0);
}
