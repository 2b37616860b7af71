use super::super::negotiation::{Feature, Place};
use super::*;

fn value(endpoint: &DccpEndpoint, place: Place, feature: Feature) -> u64 {
    endpoint.negotiation.value(place, feature)
}

/// What both ends hold of a feature at the near end, and of one at the far end.
fn values(wire: &Wire, feature: Feature) -> [[u64; 2]; 2] {
    [
        [value(&wire.near, Place::Local, feature), value(&wire.far, Place::Remote, feature)],
        [value(&wire.near, Place::Remote, feature), value(&wire.far, Place::Local, feature)],
    ]
}

/// An open connection whose client sends these options next, in an Ack.
fn forge(wire: &mut Wire, options: &[u8]) {
    let number = wire.near.sequences.advance();
    wire.near.sent.push(wire.now, false, 0);
    let header = Header {
        source: NEAR.port,
        destination: FAR.port,
        ccval: 0,
        coverage: 0,
        long: true,
        sequence: number.value(),
        body: Body::Ack { ack: wire.near.sequences.gsr.value() },
    };
    let mut packet = Vec::new();
    encode(&header, options, &[], PSEUDO_HEADER, &mut packet);
    wire.carry(From::Near, &packet);
}

/// Whether the server's next packet has this option.
fn answers(wire: &mut Wire, option: &[u8]) -> bool {
    let packets = wire.packets(From::Far);
    let options = packets.first().map_or(&[][..], |packet| read(packet).options);
    Options::new(options).any(|other| Some(other) == Options::new(option).next())
}

#[test]
fn both_ends_agree_on_everything_within_the_handshake() {
    for ccid in Ccid::ALL {
        let config = DccpConfig {
            ccid,
            short_sequence_numbers: true,
            data_checksum: true,
            checksum_coverage: 4,
            min_checksum_coverage: 2,
            ecn: false,
            sequence_window: 5000,
            ..DccpConfig::default()
        };
        let wire = Wire::open(&config);
        let number = u64::from(ccid.number());
        let vectors = u64::from(ccid == Ccid::TcpLike);
        for (feature, expected) in [
            (Feature::Ccid, number),
            (Feature::AllowShortSequenceNumbers, 1),
            (Feature::SequenceWindow, 5000),
            (Feature::EcnIncapable, 1),
            (Feature::SendAckVector, vectors),
            (Feature::SendNdpCount, 1),
            (Feature::CheckDataChecksum, 1),
        ] {
            assert_eq!(values(&wire, feature), [[expected; 2]; 2], "{ccid:?}: {feature:?}");
        }
        assert_eq!([wire.near.ccid(), wire.far.ccid()], [ccid; 2]);
        // Both cover twelve bytes and take four or more: the server's lists begin with what it would like best.
        assert_eq!(values(&wire, Feature::MinChecksumCoverage), [[4; 2], [2; 2]]);
    }
}

#[test]
fn the_server_s_preference_wins() {
    let client = DccpConfig { ccid: Ccid::Tfrc, ..DccpConfig::default() };
    let server = DccpConfig { ccid: Ccid::TcpLike, ..DccpConfig::default() };
    let mut wire = Wire::with(&client, &server);
    wire.settle();
    assert_eq!(values(&wire, Feature::Ccid), [[2; 2]; 2]);
    assert_eq!(values(&wire, Feature::SendAckVector), [[1; 2]; 2], "CCID 2 needs them");
    let mut wire = Wire::with(&server, &client);
    wire.settle();
    assert_eq!(values(&wire, Feature::Ccid), [[3; 2]; 2]);
    for from in [From::Near, From::Far] {
        wire.send(from, b"works").unwrap();
    }
    wire.settle();
    assert_eq!([wire.received(From::Near), wire.received(From::Far)], [[b"works"]; 2]);
}

#[test]
fn a_coverage_that_the_peer_does_not_take_is_not_used() {
    // The client would cover 4 bytes; the server wants 12 or all.
    let client = DccpConfig { checksum_coverage: 2, ..DccpConfig::default() };
    let server = DccpConfig { min_checksum_coverage: 4, ..DccpConfig::default() };
    let mut wire = Wire::with(&client, &server);
    wire.settle();
    wire.send(From::Near, &[1; 50]).unwrap();
    let packets = wire.packets(From::Near);
    assert_eq!(read(&packets[0]).header.coverage, 0);
}

#[test]
fn features_change_while_open() {
    // CCID 3 leaves the Ack Ratio alone.
    let mut wire = Wire::open(&DccpConfig { ccid: Ccid::Tfrc, ..DccpConfig::default() });
    wire.near.negotiation.announce(Feature::AckRatio, 7);
    wire.near.negotiation.announce(Feature::SequenceWindow, 4096);
    wire.settle();
    assert_eq!(values(&wire, Feature::AckRatio)[0], [7; 2]);
    assert_eq!(values(&wire, Feature::SequenceWindow)[0], [4096; 2]);
}

#[test]
fn an_unanswered_change_is_repeated_further_and_further_apart() {
    let mut wire = Wire::open(&DccpConfig { ccid: Ccid::Tfrc, ..DccpConfig::default() });
    wire.near.negotiation.announce(Feature::AckRatio, 7);
    let start = wire.now;
    let mut times = Vec::new();
    while times.len() < 4 {
        times.extend(wire.packets(From::Near).iter().map(|_| wire.now.since(start).as_secs_f64()));
        wire.now = wire.near.next_timeout().unwrap();
        let now = wire.now;
        wire.near.handle_timeout(now);
    }
    assert_eq!(times, [0.0, 1.0, 3.0, 7.0]);
    // Meanwhile the old value holds; the last one gets through.
    assert_eq!(value(&wire.near, Place::Local, Feature::AckRatio), 2);
    wire.settle();
    assert_eq!(values(&wire, Feature::AckRatio)[0], [7; 2]);
    assert_eq!(wire.near.negotiation.next_timeout(), None);
}

#[test]
fn unknown_features_and_invalid_values_get_empty_confirms() {
    let mut wire = Wire::open(&DccpConfig::default());
    forge(&mut wire, &[32, 4, 126, 1]);
    assert!(answers(&mut wire, &[35, 3, 126]));
    // A Sequence Window below 32, and a Change R for a feature that is not negotiable.
    forge(&mut wire, &[32, 9, 3, 0, 0, 0, 0, 0, 31]);
    assert!(answers(&mut wire, &[35, 3, 3]));
    forge(&mut wire, &[34, 5, 5, 0, 3]);
    assert!(answers(&mut wire, &[33, 3, 5]));
    assert_eq!(wire.far.state, State::Open);
}

#[test]
fn what_must_be_understood_and_is_not_resets() {
    for (options, reset) in [
        (&[1, 32, 4, 126, 1][..], Reset { code: ResetCode::MandatoryError, data: [32, 126, 1] }),
        (&[1, 99, 4, 8, 9], Reset { code: ResetCode::MandatoryError, data: [99, 8, 9] }),
        (&[1, 1, 32, 4, 1, 2], Reset { code: ResetCode::OptionError, data: [1, 0, 0] }),
        // No list of ours has CCID 9.
        (&[1, 32, 4, 1, 9], Reset { code: ResetCode::MandatoryError, data: [32, 1, 9] }),
    ] {
        let mut wire = Wire::open(&DccpConfig::default());
        forge(&mut wire, options);
        assert_eq!(wire.far.reset(), Some(reset), "{options:?}");
        wire.settle();
        assert_eq!(wire.near.reset(), Some(reset), "{options:?}");
    }
}

#[test]
fn a_wrong_confirm_resets() {
    let mut wire = Wire::open(&DccpConfig::default());
    wire.far.negotiation.announce(Feature::AckRatio, 7);
    let change = wire.packets(From::Far);
    assert_eq!(change.len(), 1);
    // The client acknowledges the Change without answering it, then confirms another value.
    let gsr = read(&change[0]).header.sequence;
    wire.near.sequences.gsr = super::super::seq::Seq::new(gsr);
    forge(&mut wire, &[35, 5, 5, 0, 8]);
    assert_eq!(wire.far.reset(), Some(Reset { code: ResetCode::OptionError, data: [35, 5, 0] }));
}

#[test]
fn old_feature_options_are_ignored() {
    let mut wire = Wire::open(&DccpConfig::default());
    let options = |ratio| [32, 5, 5, 0, ratio, 0, 0, 0];
    // The first is overtaken by the second.
    let number = wire.near.sequences.advance();
    wire.near.sent.push(wire.now, false, 0);
    forge(&mut wire, &options(9));
    let mut header = read(&wire.packets(From::Far)[0].clone()).header;
    header = Header {
        source: NEAR.port,
        destination: FAR.port,
        sequence: number.value(),
        body: Body::Ack { ack: wire.near.sequences.gsr.value() },
        ..header
    };
    let mut packet = Vec::new();
    encode(&header, &options(5), &[], PSEUDO_HEADER, &mut packet);
    wire.carry(From::Near, &packet);
    assert_eq!(value(&wire.far, Place::Remote, Feature::AckRatio), 9);
    assert!(wire.packets(From::Far).is_empty());
}

#[test]
fn feature_options_on_data_are_ignored() {
    let mut wire = Wire::open(&DccpConfig::default());
    let number = wire.near.sequences.advance();
    wire.near.sent.push(wire.now, true, 0);
    let header = Header {
        source: NEAR.port,
        destination: FAR.port,
        ccval: 0,
        coverage: 0,
        long: true,
        sequence: number.value(),
        body: Body::Data,
    };
    let mut packet = Vec::new();
    encode(&header, &[1, 32, 4, 126, 1, 0, 0, 0], b"data", PSEUDO_HEADER, &mut packet);
    wire.carry(From::Near, &packet);
    assert_eq!((wire.far.state, wire.received(From::Far)), (State::Open, vec![b"data".to_vec()]));
}
