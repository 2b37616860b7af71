use trunkline_core::Distribution;
use trunkline_core::schema::Value;

use super::*;

/// A host that costs nothing but this.
fn host(given: &[(&str, Value)]) -> HostModel {
    let value = |parameter: &Parameter| {
        if let Some((_, value)) = given.iter().find(|(name, _)| *name == parameter.name) {
            return value.clone();
        }
        match parameter.name {
            "large-from" => Value::Bytes(Bytes(512)),
            "one-burst-at-a-time" => Value::Flag(false),
            "interruptions" => Value::Ratio(trunkline_core::Ratio::default()),
            _ if parameter.default == Preset::Absent => Value::Absent,
            _ => Value::Duration(Duration::ZERO),
        }
    };
    let values = PARAMETERS.iter().map(|parameter| (parameter.name, value(parameter))).collect();
    HostModel::new(&Values::new(values), "hosts.a", Seed::new(1, 0))
}

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

fn millis(n: u64) -> Value {
    Value::Duration(Duration::from_millis(n))
}

fn pieces(host: &HostModel, length: usize) -> Vec<Piece> {
    let mut handed = 0;
    let mut pieces = Vec::new();
    while handed < length {
        pieces.push(host.piece(length, handed));
        handed += pieces[pieces.len() - 1].length;
    }
    pieces
}

#[test]
fn a_host_without_costs_does_everything_at_once() {
    let mut host = host(&[]);
    assert_eq!(host.costs(), Costs::default());
    assert_eq!(host.send_message(ms(1), 1.0), ms(1));
    assert_eq!(host.send_packet(ms(2), Bytes(1500), 1.0), ms(2));
    assert_eq!(host.receive_packet(ms(3), Bytes(1500), false, 1.0), ms(3));
    assert_eq!(pieces(&host, 5000), [Piece { length: 5000, gap: Duration::ZERO }]);
}

#[test]
fn one_processor_serves_in_order() {
    let mut host = host(&[("send-packet", millis(2)), ("receive-message", millis(5))]);
    assert_eq!(host.send_packet(ms(0), Bytes(1), 1.0), ms(2));
    assert_eq!(host.send_packet(ms(1), Bytes(1), 1.0), ms(4));
    assert_eq!(host.receive_message(ms(3), 1.0), ms(9));
    assert_eq!(host.send_packet(ms(20), Bytes(1), 1.0), ms(22));
}

#[test]
fn an_idle_processor_reads_while_a_packet_comes_in() {
    let byte = Value::Duration(Duration::from_micros(10));
    let mut host = host(&[("receive-byte", byte), ("receive-packet", millis(1))]);
    assert_eq!(
        host.receive_packet(ms(50), Bytes(1000), false, 1.0),
        ms(51),
        "read by the time its last byte is here"
    );
    assert_eq!(
        host.receive_packet(ms(52), Bytes(1000), false, 1.0),
        ms(62),
        "1 ms was left to read in, then 10 ms of bytes"
    );
}

#[test]
fn the_interface_works_beside_the_processor_on_one_packet_each_way() {
    let mut host = host(&[("send-packet", millis(1)), ("interface-packet", millis(3))]);
    assert!(host.costs().interface);
    assert_eq!(host.send_packet(ms(0), Bytes(1), 1.0), ms(4));
    assert_eq!(host.send_packet(ms(0), Bytes(1), 1.0), ms(7), "behind the one before, ready at 2 ms");
    assert_eq!(host.receive_at_interface(ms(1), Bytes(1)), ms(4), "the other way is free");
    assert_eq!(host.send_packet(ms(20), Bytes(1), 1.0), ms(24));
}

#[test]
fn packets_for_several_hosts_cost_more_and_clocks_go_in_steps() {
    let mut host = host(&[("receive-group", millis(2)), ("clock", millis(5))]);
    assert_eq!(host.receive_packet(ms(1), Bytes(1), false, 1.0), ms(1));
    assert_eq!(host.receive_packet(ms(1), Bytes(1), true, 1.0), ms(3));
    assert_eq!([ms(4), ms(5), ms(14)].map(|at| host.clock(at)), [ms(0), ms(5), ms(10)]);
}

#[test]
fn messages_are_cut_into_stream_blocks_and_these_into_bursts() {
    let size = |n| Value::Bytes(Bytes(n));
    let host = host(&[
        ("stream-block", size(64)),
        ("large-stream-block", size(1024)),
        ("burst", size(80)),
        ("stream-block-gap", millis(2)),
        ("burst-gap", millis(1)),
    ]);
    let lengths = |length| pieces(&host, length).iter().map(|piece| piece.length).collect::<Vec<_>>();
    assert_eq!(lengths(64), [64]);
    assert_eq!(lengths(65), [64, 1]);
    assert_eq!(lengths(511).len(), 8);
    assert_eq!(lengths(512), [80, 80, 80, 80, 80, 80, 32]);
    assert_eq!(lengths(1024 + 81).len(), 13 + 2);
    let gaps = |length| {
        pieces(&host, length).iter().map(|piece| piece.gap.as_nanos() / 1_000_000).collect::<Vec<_>>()
    };
    assert_eq!(gaps(130), [0, 2, 2]);
    assert_eq!(gaps(512)[..3], [0, 1, 1]);
    assert_eq!(gaps(1025)[12..], [1, 2], "the second large block");
}

#[test]
fn noise_and_interruptions_are_drawn_for_messages() {
    let exponential = |mean| Value::Distribution(Distribution::Exponential { mean });
    let mut host = host(&[
        ("noise", exponential(1_000_000)),
        ("interruptions", Value::Ratio(trunkline_core::Ratio::new(0.01).expect("a share"))),
        ("interruption", exponential(50_000_000)),
    ]);
    let mut delays: Vec<u64> =
        (0..10_000u64).map(|k| host.send_message(ms(k * 1000), 1.0).since(ms(k * 1000)).as_nanos()).collect();
    delays.sort_unstable();
    let median = delays[5000] as f64 / 1e6;
    assert!((median - core::f64::consts::LN_2).abs() < 0.05, "{median} ms");
    assert!(
        delays.iter().filter(|&&delay| delay > 15_000_000).count() > 40,
        "a hundred interruptions of 50 ms"
    );
}

#[test]
fn packets_take_as_much_longer_as_they_are_more_effort_and_noise_does_not() {
    let noise = Value::Distribution(Distribution::Constant(1_000_000));
    let mut host = host(&[
        ("send-packet", millis(2)),
        ("receive-packet", millis(4)),
        ("receive-message", millis(4)),
        ("receive-noise", noise),
    ]);
    assert_eq!(host.send_packet(ms(0), Bytes(1), 1.5), ms(3));
    assert_eq!(host.receive_packet(ms(10), Bytes(1), false, 0.5), ms(13));
    assert_eq!(host.receive_message(ms(20), 1.5), ms(26));
}
