use super::*;

#[test]
fn a_connection_opens_in_three_packets_and_one_to_confirm() {
    let mut wire = Wire::new(&DccpConfig { service_code: 77, ..DccpConfig::default() });
    let request = wire.packets(From::Near);
    assert_eq!(body(&request[0]), Body::Request { service: 77 });
    assert_eq!(wire.send(From::Near, b"x"), Err(SendError::Closed(CloseReason::NotConnected)));
    wire.carry(From::Near, &request[0]);
    let response = wire.packets(From::Far);
    let number = read(&request[0]).header.sequence;
    assert_eq!(body(&response[0]), Body::Response { ack: number, service: 77 });
    wire.carry(From::Far, &response[0]);
    assert_eq!((wire.near.state, wire.events(From::Near)), (State::PartOpen, vec![Event::Connected]));
    let ack = wire.packets(From::Near);
    assert_eq!(bodies(&ack), [3]);
    wire.carry(From::Near, &ack[0]);
    assert_eq!((wire.far.state, wire.events(From::Far)), (State::Open, vec![Event::Connected]));
    let confirmation = wire.packets(From::Far);
    assert_eq!(bodies(&confirmation), [3]);
    wire.carry(From::Far, &confirmation[0]);
    assert_eq!(wire.near.state, State::Open);
    assert!(wire.packets(From::Near).is_empty());
    // Every timer of the handshake is off.
    assert_eq!([wire.near.next_timeout(), wire.far.next_timeout()], [None, None]);
}

#[test]
fn in_partopen_data_goes_with_an_acknowledgement() {
    let mut wire = Wire::new(&DccpConfig { ccid: Ccid::Tfrc, ..DccpConfig::default() });
    let request = wire.packets(From::Near);
    wire.carry(From::Near, &request[0]);
    let response = wire.packets(From::Far);
    wire.now += Duration::from_millis(10);
    wire.carry(From::Far, &response[0]);
    wire.send(From::Near, b"early").unwrap();
    let packets = wire.packets(From::Near);
    assert_eq!(bodies(&packets), [4]);
    wire.carry(From::Near, &packets[0]);
    assert_eq!((wire.far.state, wire.received(From::Far)), (State::Open, vec![b"early".to_vec()]));
}

#[test]
fn lost_packets_of_the_handshake_are_repeated() {
    // Each of the first four packets is lost in turn.
    for lost in 0..4 {
        let mut wire = Wire::new(&DccpConfig::default());
        let mut count = 0;
        for _ in 0..20 {
            for from in [From::Near, From::Far] {
                for packet in wire.packets(from) {
                    if count != lost {
                        wire.carry(from, &packet);
                    }
                    count += 1;
                }
            }
            let next = [&wire.near, &wire.far].into_iter().filter_map(Endpoint::next_timeout).min();
            let Some(at) = next else { break };
            wire.now = at;
            wire.near.handle_timeout(at);
            wire.far.handle_timeout(at);
        }
        assert_eq!((wire.near.state, wire.far.state), (State::Open, State::Open), "without packet {lost}");
    }
}

#[test]
fn requests_back_off_until_the_patience_ends() {
    let mut wire = Wire::new(&DccpConfig::default());
    let mut times = Vec::new();
    loop {
        times.extend(wire.packets(From::Near).iter().map(|_| wire.now.as_secs_f64()));
        let Some(at) = wire.near.next_timeout() else { break };
        wire.now = at;
        wire.near.handle_timeout(at);
    }
    assert_eq!(times, [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 60.0], "the last is the reset");
    let reason = CloseReason::TimedOut(Duration::from_secs(60));
    assert_eq!(wire.events(From::Near), [Event::Closed(reason)]);
    assert_eq!(wire.send(From::Near, b"x"), Err(SendError::Closed(reason)));
}

#[test]
fn a_server_refuses_another_service() {
    let client = DccpConfig { service_code: 1, ..DccpConfig::default() };
    let mut wire = Wire::with(&client, &DccpConfig { service_code: 2, ..DccpConfig::default() });
    wire.settle();
    assert_eq!(wire.events(From::Near), [Event::Closed(CloseReason::Reset)]);
    assert_eq!(wire.near.reset(), Some(Reset::plain(ResetCode::BadServiceCode)));
    assert_eq!(wire.far.state, State::Listen);
}

#[test]
fn data_on_a_request_is_dropped_and_reported() {
    let mut wire = Wire::new(&DccpConfig::default());
    let request = wire.packets(From::Near);
    let whole = read(&request[0]);
    let mut with_data = Vec::new();
    encode(&whole.header, whole.options, b"eager", PSEUDO_HEADER, &mut with_data);
    wire.carry(From::Near, &with_data);
    let response = wire.packets(From::Far);
    assert!(Options::new(read(&response[0]).options).any(|option| option == Opt::DataDropped(&[0x80])));
    wire.carry(From::Far, &response[0]);
    wire.settle();
    assert_eq!((wire.far.state, wire.received(From::Far)), (State::Open, Vec::new()));
}

#[test]
fn a_peer_that_cannot_send_ack_vectors_is_no_peer_for_ccid_2() {
    let mut wire = Wire::new(&DccpConfig::default());
    let request = wire.packets(From::Near);
    wire.carry(From::Near, &request[0]);
    let response = wire.packets(From::Far);
    // Whatever was asked for, the answer is that it is not known.
    let header = read(&response[0]).header;
    let mut poor = Vec::new();
    encode(&header, &[33, 3, 6, 35, 3, 6, 35, 3, 3, 0, 0, 0], &[], PSEUDO_HEADER, &mut poor);
    wire.carry(From::Far, &poor);
    wire.settle();
    assert!(wire.near.reset().is_some(), "the Sequence Window must be known");
    let mut wire = Wire::new(&DccpConfig { sequence_window: 100, ..DccpConfig::default() });
    let request = wire.packets(From::Near);
    wire.carry(From::Near, &request[0]);
    let response = wire.packets(From::Far);
    let header = read(&response[0]).header;
    let mut poor = Vec::new();
    encode(&header, &[33, 3, 6, 35, 3, 6, 0, 0], &[], PSEUDO_HEADER, &mut poor);
    wire.carry(From::Far, &poor);
    let ack = wire.packets(From::Near);
    let options: Vec<_> = Options::new(read(&ack[0]).options).collect();
    let demand = Opt::Feature { option: FeatureOption::ChangeR, number: 6, values: &[1] };
    assert!(options.windows(2).any(|pair| pair == [Opt::Mandatory, demand]), "{options:?}");
}

#[test]
fn init_cookies_are_echoed_until_the_handshake_is_done() {
    let mut wire = Wire::new(&DccpConfig::default());
    let request = wire.packets(From::Near);
    wire.carry(From::Near, &request[0]);
    let response = wire.packets(From::Far);
    let read_response = read(&response[0]);
    let mut options = read_response.options.to_vec();
    for cookie in [&b"first"[..], b"second"] {
        Opt::InitCookie(cookie).write(&mut options);
    }
    let mut with_cookie = Vec::new();
    encode(&read_response.header, &options, &[], PSEUDO_HEADER, &mut with_cookie);
    wire.carry(From::Far, &with_cookie);
    let ack = wire.packets(From::Near);
    let cookies: Vec<_> =
        Options::new(read(&ack[0]).options).filter(|option| matches!(option, Opt::InitCookie(_))).collect();
    assert_eq!(cookies, [Opt::InitCookie(b"first"), Opt::InitCookie(b"second")]);
    // No data until the server has answered: it might not fit beside them.
    wire.send(From::Near, b"data").unwrap();
    assert!(wire.packets(From::Near).is_empty());
    wire.carry(From::Near, &ack[0]);
    wire.settle();
    assert_eq!(wire.received(From::Far), [b"data"]);
}

#[test]
fn a_half_open_connection_is_reset_as_in_rfc_4340_section_7_5_6() {
    let mut wire = Wire::open(&DccpConfig::default());
    // The client crashes and comes back.
    wire.near = DccpEndpoint::connect(NEAR, FAR, &DccpConfig::default(), 99).unwrap();
    wire.now += Duration::from_secs(30);
    let request = wire.packets(From::Near);
    wire.carry(From::Near, &request[0]);
    let sync = wire.packets(From::Far);
    assert_eq!(bodies(&sync), [8]);
    wire.carry(From::Far, &sync[0]);
    let reset = wire.packets(From::Near);
    let number = read(&request[0]).header.sequence;
    let expected = Body::Reset { ack: read(&sync[0]).header.sequence, code: 4, data: [8, 0, 0] };
    assert_eq!(body(&reset[0]), expected);
    assert_eq!(read(&reset[0]).header.sequence, (number + 1) & ((1 << 48) - 1));
    wire.carry(From::Near, &reset[0]);
    // Unlike in the RFC's example, that number is far from the window here: another Sync tells the right one.
    assert_eq!(wire.far.state, State::Open);
    wire.wait(Duration::from_secs(2));
    assert_eq!(wire.events(From::Far), [Event::Connected, Event::Closed(CloseReason::Reset)]);
}

#[test]
fn an_acceptor_makes_an_endpoint_per_client_and_refuses_the_rest() {
    use crate::endpoint::{Accept, Acceptor as _};
    let config = DccpConfig { service_code: 5, ..DccpConfig::default() };
    let mut acceptor = DccpAcceptor::new(FAR, &config, 3).unwrap();
    let mut packet = Vec::new();
    let mut reply = Vec::new();
    let mut now = Time::ZERO;
    let request = |local: Address, to: Address, service_code, into: &mut Vec<u8>| {
        let config = DccpConfig { service_code, ..config.clone() };
        let mut client = DccpEndpoint::connect(local, to, &config, 1).unwrap();
        client.poll_transmit(Time::ZERO, into).unwrap();
        client
    };
    for port in [4000, 4001] {
        let client = Address { port, ..NEAR };
        let mut near = request(client, FAR, 5, &mut packet);
        let Accept::New(mut far) = acceptor.accept(now, client, &packet, &mut reply) else {
            panic!("a client was refused");
        };
        let transmit = far.poll_transmit(now, &mut packet).unwrap();
        assert_eq!(transmit.to, client);
        near.handle_packet(now, FAR, Ecn::NotCapable, &packet);
        assert_eq!(near.poll_event(), Some(Event::Connected));
    }
    let elsewhere = Address { port: 9, ..FAR };
    for (to, service, busy, code) in [
        (FAR, 6, false, ResetCode::BadServiceCode),
        (elsewhere, 5, false, ResetCode::ConnectionRefused),
        (FAR, 5, true, ResetCode::TooBusy),
    ] {
        now += Duration::from_secs(1);
        acceptor.set_busy(busy);
        let mut near = request(NEAR, to, service, &mut packet);
        let Accept::Reply(transmit) = acceptor.accept(now, NEAR, &packet, &mut reply) else {
            panic!("{code:?}: no reply");
        };
        assert_eq!(transmit.to, NEAR);
        near.handle_packet(now, FAR, Ecn::NotCapable, &reply);
        assert_eq!(near.reset(), Some(Reset::plain(code)));
    }
    assert!(matches!(acceptor.accept(now, NEAR, b"not a packet", &mut reply), Accept::Ignore));
    assert!(matches!(acceptor.accept(now, NEAR, &packet, &mut reply), Accept::Ignore), "too many resets");
}
