use super::*;

#[test]
fn a_client_closes_with_close_and_reset() {
    let mut wire = Wire::open(&DccpConfig::default());
    wire.events(From::Near);
    wire.events(From::Far);
    let now = wire.now;
    wire.near.close(now, Close::Graceful);
    let close = wire.packets(From::Near);
    assert_eq!((bodies(&close), wire.near.state), (vec![6], State::Closing));
    wire.carry(From::Near, &close[0]);
    let reset = wire.packets(From::Far);
    assert!(matches!(body(&reset[0]), Body::Reset { code: 1, .. }));
    assert_eq!(wire.events(From::Far), [Event::Closed(CloseReason::Peer)]);
    wire.carry(From::Far, &reset[0]);
    assert_eq!(wire.events(From::Near), [Event::Closed(CloseReason::Local)]);
    assert_eq!((wire.near.state, wire.near.next_timeout()), (State::Closed, None));
    assert_eq!(wire.near.reset(), Some(Reset::plain(ResetCode::Closed)));
}

#[test]
fn a_server_asks_the_client_to_close_so_that_it_keeps_timewait() {
    let mut wire = Wire::open(&DccpConfig::default());
    wire.events(From::Near);
    wire.events(From::Far);
    let now = wire.now;
    wire.far.close(now, Close::Graceful);
    let request = wire.packets(From::Far);
    assert_eq!((bodies(&request), wire.far.state), (vec![5], State::CloseReq));
    wire.carry(From::Far, &request[0]);
    assert_eq!(wire.events(From::Near), [Event::Closed(CloseReason::Peer)]);
    wire.settle();
    assert_eq!(wire.events(From::Far), [Event::Closed(CloseReason::Local)]);
    assert_eq!((wire.near.state, wire.far.state), (State::Closed, State::Closed));
}

/// A Reset that does not acknowledge the Request may be anybody's: it ends nothing, and no Reset answers it (RFC 4340 section
/// 8.5 step 4).
#[test]
fn a_reset_of_another_connection_neither_ends_a_request_nor_is_answered() {
    let mut wire = Wire::new(&DccpConfig::default());
    let request = wire.packets(From::Near);
    let number = read(&request[0]).header.sequence;
    let reset = |ack| {
        let body = Body::Reset { ack, code: 3, data: [0; 3] };
        let header = Header {
            body,
            source: FAR.port,
            destination: NEAR.port,
            sequence: 0,
            ..read(&request[0]).header
        };
        let mut reset = Vec::new();
        encode(&header, &[], &[], PSEUDO_HEADER, &mut reset);
        reset
    };
    wire.carry(From::Far, &reset((number + 1) & ((1 << 48) - 1)));
    assert_eq!((wire.near.state, bodies(&wire.packets(From::Near))), (State::Request, vec![]));
    assert_eq!(counter(&wire.near, "sequence-invalid"), 1);
    wire.carry(From::Far, &reset(number));
    assert_eq!(wire.events(From::Near), [Event::Closed(CloseReason::Reset)]);
    assert!(wire.packets(From::Near).is_empty());
}

#[test]
fn what_waits_is_sent_before_the_close() {
    let mut wire = Wire::open(&DccpConfig::default());
    for n in 0..20 {
        wire.send(From::Near, &[n; 100]).unwrap();
    }
    let now = wire.now;
    wire.near.close(now, Close::Graceful);
    assert_eq!(wire.send(From::Near, b"more"), Err(SendError::Closed(CloseReason::Local)));
    wire.wait(Duration::from_secs(5));
    assert_eq!(wire.received(From::Far).len(), 20);
    assert_eq!(wire.events(From::Far), [Event::Connected, Event::Readable, Event::Closed(CloseReason::Peer)]);
    assert_eq!(wire.far.send(wire.now, Message::new(b"x")), Err(SendError::Closed(CloseReason::Peer)));
}

#[test]
fn the_end_waits_for_the_reader() {
    let mut wire = Wire::open(&DccpConfig::default());
    wire.events(From::Far);
    wire.send(From::Near, b"last").unwrap();
    let now = wire.now;
    wire.near.close(now, Close::Graceful);
    wire.settle();
    assert_eq!(wire.events(From::Far), [Event::Readable]);
    assert_eq!(wire.received(From::Far), [b"last"]);
    assert_eq!(wire.events(From::Far), [Event::Closed(CloseReason::Peer)]);
}

#[test]
fn both_may_close_at_once() {
    let mut wire = Wire::open(&DccpConfig::default());
    wire.events(From::Near);
    wire.events(From::Far);
    let now = wire.now;
    wire.near.close(now, Close::Graceful);
    wire.far.close(now, Close::Graceful);
    wire.settle();
    for end in [From::Near, From::Far] {
        assert_eq!(wire.events(end), [Event::Closed(CloseReason::Local)]);
    }
    assert_eq!((wire.near.state, wire.far.state), (State::Closed, State::Closed));
}

#[test]
fn a_lost_reset_is_made_good() {
    let mut wire = Wire::open(&DccpConfig::default());
    wire.events(From::Near);
    let now = wire.now;
    wire.near.close(now, Close::Graceful);
    let close = wire.packets(From::Near);
    wire.carry(From::Near, &close[0]);
    assert_eq!(wire.packets(From::Far).len(), 1, "and it gets lost");
    // The repeated Close finds no connection any more.
    wire.wait(Duration::from_secs(1));
    assert_eq!(wire.events(From::Near), [Event::Closed(CloseReason::Local)]);
    assert_eq!(wire.near.reset(), Some(Reset::plain(ResetCode::NoConnection)));
}

#[test]
fn an_abort_resets() {
    let mut wire = Wire::open(&DccpConfig::default());
    wire.events(From::Far);
    let now = wire.now;
    wire.near.close(now, Close::Abort);
    wire.settle();
    assert_eq!(wire.events(From::Far), [Event::Closed(CloseReason::Reset)]);
    assert_eq!(wire.far.reset(), Some(Reset::plain(ResetCode::Aborted)));
}

#[test]
fn a_close_is_repeated_until_it_is_answered() {
    let mut wire = Wire::open(&DccpConfig { timeout: None, ..DccpConfig::default() });
    wire.events(From::Near);
    let start = wire.now;
    wire.near.close(start, Close::Graceful);
    let mut count = 0;
    loop {
        count += wire.packets(From::Near).len();
        let Some(at) = wire.near.next_timeout() else { break };
        wire.now = at;
        wire.near.handle_timeout(at);
    }
    assert!((10..20).contains(&count), "{count} packets");
    let patience = Duration::from_secs(480);
    assert_eq!(wire.events(From::Near), [Event::Closed(CloseReason::TimedOut(patience))]);
    assert_eq!(wire.now, start + patience);
}

#[test]
fn a_peer_that_is_gone_is_noticed_by_data() {
    let mut wire = Wire::open(&DccpConfig { ccid: Ccid::Tfrc, ..DccpConfig::default() });
    wire.events(From::Near);
    let start = wire.now;
    wire.send(From::Near, b"anybody there?").unwrap();
    let mut kinds = Vec::new();
    loop {
        let packets = wire.packets(From::Near);
        kinds.extend(bodies(&packets));
        let Some(at) = wire.near.next_timeout() else { break };
        wire.now = at;
        wire.near.handle_timeout(at);
    }
    assert_eq!(kinds, [2, 8, 8, 8, 8, 8, 7], "data, Syncs further and further apart, a reset");
    let patience = Duration::from_secs(60);
    assert_eq!(wire.events(From::Near), [Event::Closed(CloseReason::TimedOut(patience))]);
    assert_eq!(wire.now, start + patience);
}

#[test]
fn a_peer_without_the_connection_resets_it() {
    let mut wire = Wire::open(&DccpConfig { ccid: Ccid::Tfrc, ..DccpConfig::default() });
    wire.far = DccpEndpoint::listen(FAR, &DccpConfig::default(), 77).unwrap();
    wire.send(From::Near, b"still there?").unwrap();
    // Its first reset cannot have the right numbers: Data has no acknowledgement. A Sync helps it out.
    let data = wire.packets(From::Near);
    wire.carry(From::Near, &data[0]);
    let reset = wire.packets(From::Far);
    assert_eq!(read(&reset[0]).header.sequence, 0);
    wire.carry(From::Far, &reset[0]);
    assert_eq!(wire.near.state, State::Open);
    wire.now += Duration::from_millis(10);
    wire.settle();
    assert_eq!(wire.events(From::Near), [Event::Connected, Event::Closed(CloseReason::Reset)]);
    assert_eq!(wire.near.reset(), Some(Reset::plain(ResetCode::NoConnection)));
}

#[test]
fn data_for_an_end_that_has_closed_is_reported_and_ends_the_sending() {
    let mut wire = Wire::open(&DccpConfig::default());
    // The far end closes, but has something to send first; the near end does not know yet.
    for n in 0..40 {
        wire.send(From::Far, &[n; 1000]).unwrap();
    }
    let now = wire.now;
    wire.far.close(now, Close::Graceful);
    wire.send(From::Near, b"too late").unwrap();
    let data = wire.packets(From::Near);
    wire.carry(From::Near, &data[0]);
    let answers = wire.packets(From::Far);
    for packet in &answers {
        wire.carry(From::Far, packet);
    }
    assert_eq!(counter(&wire.far, "not-listening"), 1);
    assert_eq!(wire.send(From::Near, b"more"), Err(SendError::Closed(CloseReason::Peer)));
    assert!(wire.received(From::Far).is_empty());
}
