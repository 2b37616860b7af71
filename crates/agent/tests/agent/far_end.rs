//! Strangers at a far end: nothing is sent to an address that has not proved itself.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use trunkline_control::FromAgent;
use trunkline_testkit::skips::skip;

use crate::support::{Ground, VOICE, experiment, part, tally};

/// Far ends of their own, whose sockets no other test has.
const FAR: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 31);
const OTHER_FAR: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 32);
/// Whose address is put into datagrams that it has not sent.
const VICTIM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

/// The ports of this machine's sockets at an address, by the kernel's table (`udp` or `tcp`).
fn ports(table: &str, address: Ipv4Addr) -> Vec<u16> {
    let text = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
    let local = format!("{:08X}", u32::from_ne_bytes(address.octets()));
    let entries = text.lines().filter_map(|line| line.split_whitespace().nth(1)?.split_once(':'));
    entries
        .filter(|(ip, _)| *ip == local)
        .filter_map(|(_, port)| u16::from_str_radix(port, 16).ok())
        .collect()
}

/// A datagram with any source address.
fn datagram(from: SocketAddrV4, to: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let length = 28 + payload.len() as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(from.ip().octets());
    packet.extend(to.ip().octets());
    // No checksum: that is allowed over IPv4.
    for field in [from.port(), to.port(), length - 20, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

#[test]
fn a_spoofed_source_gets_nothing() {
    let raw = |protocol| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol)));
    let (Ok(sniffer), Ok(spoofer)) = (raw(17), raw(255)) else {
        return skip("raw sockets need CAP_NET_RAW, which this user does not have");
    };
    let ground = Ground::new();
    let (near, far) = (ground.agent("near", "127.0.0.2", ""), ground.agent("far", &FAR.to_string(), ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let mut line = desk.connect(&near);
    let endpoint = desk.connect(&far).offer(&far, &part(0), &near);
    let others = ports("udp", FAR);
    line.prepare(&part(0), &experiment("4 s", VOICE), endpoint);
    let mine = ports("udp", FAR).into_iter().filter(|port| !others.contains(port)).collect::<Vec<_>>();
    let [port] = mine[..] else { panic!("the far end has the ports {mine:?}") };
    let reflector = SocketAddrV4::new(FAR, port);
    sniffer.bind(&SocketAddr::from((FAR, 0)).into()).unwrap();
    sniffer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    spoofer.set_header_included_v4(true).unwrap();
    let victim = UdpSocket::bind((VICTIM, 0)).unwrap();
    let SocketAddr::V4(at_victim) = victim.local_addr().unwrap() else { unreachable!() };

    line.attach(&part(0), 0);
    line.start(&part(0));
    // A datagram of the near end, with the right key, as somebody on the way could have seen it.
    let mut buffer = [0; 2048];
    let genuine = loop {
        let length = (&sniffer).read(&mut buffer).unwrap();
        let packet = &buffer[..length];
        if length > 28 && packet[22..24] == port.to_be_bytes() {
            break packet[28..].to_vec();
        }
    };
    let mut wrong_key = genuine.clone();
    wrong_key.iter_mut().take(12).for_each(|byte| *byte ^= 0x5a);
    let mut sent = 0;
    for payload in [&genuine, &wrong_key, &vec![0; 1000], &Vec::new()] {
        for _ in 0..25 {
            let to = SocketAddr::V4(reflector);
            spoofer.send_to(&datagram(at_victim, reflector, payload), &to.into()).unwrap();
            // And from the victim's own socket, without any spoofing.
            victim.send_to(payload, reflector).unwrap();
            sent += 2 * payload.len();
        }
    }
    assert!(sent > 50_000);
    assert!(matches!(line.hear(), FromAgent::Finished(_)));
    victim.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(victim.recv(&mut [0; 2048]).is_err(), "the far end has answered somebody who has proved nothing");
    // And the part is none the worse for it.
    let tally = tally(&line.chunks);
    assert!(tally.sent == 400 && tally.received >= 390, "{tally:?}");
}

#[test]
fn a_stranger_who_connects_to_a_far_ends_listener_gets_nothing() {
    let ground = Ground::new();
    let (near, far) =
        (ground.agent("near", "127.0.0.2", ""), ground.agent("far", &OTHER_FAR.to_string(), ""));
    let desk = ground.controller("studio", &[&near, &far]);
    let mut line = desk.connect(&near);
    let endpoint = desk.connect(&far).offer(&far, &part(0), &near);
    let others = ports("tcp", OTHER_FAR);
    let flow = "transport = \"tcp\"\nreflect = true\nsource = { kind = \"voice\", samples = 80 }";
    line.prepare(&part(0), &experiment("2 s", flow), endpoint);
    let mine: Vec<u16> = ports("tcp", OTHER_FAR).into_iter().filter(|port| !others.contains(port)).collect();
    line.attach(&part(0), 0);
    line.start(&part(0));
    let mut tried = 0;
    for port in mine {
        // From an address that has joined nothing.
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((VICTIM, 0)).into()).unwrap();
        let to = SocketAddr::from((OTHER_FAR, port));
        if socket.connect_timeout(&to.into(), Duration::from_secs(5)).is_err() {
            continue;
        }
        tried += 1;
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let _ = std::io::Write::write_all(&mut stream, &[7; 500]);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
    }
    assert!(tried > 0);
    assert!(matches!(line.hear(), FromAgent::Finished(_)));
    let tally = tally(&line.chunks);
    assert!(tally.sent == 200 && tally.received >= 190, "{tally:?}");
}
