//! A path between two hosts that changes packets: of our engines, of the kernel's streams, and datagrams.
//!
//! The control connection passes as it is, since the packets would not flow without it. The path listens on the ports of the
//! packets at another address of the loopback interface. A session's server names its port on the control connection; that of
//! agents is encrypted, so that the path finds their ports in the kernel's tables of sockets.

use std::collections::{BTreeSet, VecDeque};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::mutation::Mutator;

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The state of sockets in the kernel's table.
const LISTENING: &str = "0A";
/// Bytes at the beginning of a connection within which an agent names its ports.
const PORTS_WITHIN: usize = 16 << 10;
/// Packets that may come again later, or in part.
const REMEMBERED: usize = 64;

/// The path. It ends when it is dropped.
#[derive(Debug)]
pub struct Middle {
    address: SocketAddr,
    changed: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

/// Shared by both directions of a path.
#[derive(Clone)]
struct Shared {
    server: SocketAddr,
    /// The ports at which the path is open to an agent; `None` if the server names its port on the control connection.
    open: Option<Arc<Mutex<BTreeSet<u16>>>>,
    /// One packet in this number is changed.
    every: usize,
    changed: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Middle {
    /// Starts a path to this server that listens on another address of this host and changes one packet in `every`.
    ///
    /// # Errors
    /// If the system gives it no port.
    pub fn start(server: SocketAddr, at: IpAddr, every: usize, seed: u64) -> std::io::Result<Middle> {
        Middle::with(server, None, at, every, seed)
    }

    /// Starts a path to an agent. Nobody else may have sockets at the agent's address.
    ///
    /// # Errors
    /// If the system gives it no port.
    pub fn to_agent(agent: SocketAddrV4, at: IpAddr, every: usize, seed: u64) -> std::io::Result<Middle> {
        let open = BTreeSet::from([agent.port()]);
        Middle::with(agent.into(), Some(Arc::new(Mutex::new(open))), at, every, seed)
    }

    fn with(
        server: SocketAddr,
        open: Option<Arc<Mutex<BTreeSet<u16>>>>,
        at: IpAddr,
        every: usize,
        seed: u64,
    ) -> std::io::Result<Middle> {
        let listener = TcpListener::bind((at, 0))?;
        let address = listener.local_addr()?;
        let (changed, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let shared =
            Shared { server, open, every, changed: Arc::clone(&changed), is_over: Arc::clone(&is_over) };
        thread::spawn(move || {
            let mut mutator = Mutator::new(seed);
            for client in listener.incoming() {
                if shared.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(client) = client else { continue };
                let (shared, seed) = (shared.clone(), mutator.below(usize::MAX) as u64);
                thread::spawn(move || control(client, at, &shared, seed));
            }
        });
        Ok(Middle { address, changed, is_over })
    }

    /// The address to which a client connects.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of packets, or pieces of streams, that were changed so far.
    pub fn changed(&self) -> u64 {
        self.changed.load(Ordering::Relaxed)
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // It waits for a connection.
        drop(TcpStream::connect(self.address));
    }
}

/// Passes a control connection on, and opens the way of its packets before the client hears of it.
fn control(mut client: TcpStream, at: IpAddr, shared: &Shared, seed: u64) {
    let Ok(mut server) = TcpStream::connect(shared.server) else { return };
    let (Ok(mut forth), Ok(mut back)) = (server.try_clone(), client.try_clone()) else { return };
    let session = Shared { is_over: Arc::new(AtomicBool::new(false)), ..shared.clone() };
    thread::spawn(move || {
        // Either end may close at any time.
        let _ = std::io::copy(&mut back, &mut forth);
        let _ = forth.shutdown(Shutdown::Both);
    });
    let (mut heard, mut is_open, mut buffer) = (Vec::new(), false, [0; 4096]);
    let (mut mutator, mut passed) = (Mutator::new(seed), 0);
    while let Ok(length @ 1..) = server.read(&mut buffer) {
        passed += length;
        if let (Some(open), IpAddr::V4(server)) = (&shared.open, shared.server.ip()) {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            let all = if passed < PORTS_WITHIN { ports(server) } else { Vec::new() };
            for port in all.into_iter().filter(|port| open.insert(*port)) {
                // It may be another connection's, and is open as long as the path.
                packets(at, port, shared, mutator.below(usize::MAX) as u64);
            }
        } else if !is_open {
            heard.extend_from_slice(&buffer[..length]);
            if let Some(port) = port(&heard) {
                is_open = true;
                packets(at, port, &session, mutator.below(usize::MAX) as u64);
            }
        }
        if client.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    session.is_over.store(true, Ordering::Relaxed);
    let _ = client.shutdown(Shutdown::Both);
}

/// The port of the packets, once the server has named it.
fn port(heard: &[u8]) -> Option<u16> {
    let heard = String::from_utf8_lossy(heard);
    let (_, opened) = heard.split_once("\"opened\"")?;
    let (_, port) = opened.split_once("\"port\":")?;
    port.split(|byte: char| !byte.is_ascii_digit()).next()?.parse().ok()
}

/// The ports at which this host has sockets for datagrams, or listens for streams, at an address.
fn ports(at: Ipv4Addr) -> Vec<u16> {
    let at = format!("{:08X}", u32::from_ne_bytes(at.octets()));
    let of = |table: &str, state: &str| {
        let text = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        let sockets = text.lines().filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let (address, port) = fields.next()?.split_once(':')?;
            (address == at && fields.nth(1)?.starts_with(state))
                .then(|| u16::from_str_radix(port, 16).ok())?
        });
        sockets.collect::<Vec<u16>>()
    };
    [of("udp", ""), of("tcp", LISTENING)].concat()
}

/// Opens both kinds of sockets at this port: either may be what the transport uses.
fn packets(at: IpAddr, port: u16, session: &Shared, seed: u64) {
    let to = SocketAddr::new(session.server.ip(), port);
    let mut mutator = Mutator::new(seed);
    let mut mutator = || Mutator::new(mutator.below(usize::MAX) as u64);
    if let Ok(listener) = TcpListener::bind((at, port)) {
        let (session, [one, other]) = (session.clone(), [mutator(), mutator()]);
        thread::spawn(move || streams(&listener, to, &session, [one, other]));
    }
    let near = UdpSocket::bind((at, port));
    // From the address from which the control connection comes.
    let far = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|far| far.connect(to).map(|()| far));
    let (Ok(near), Ok(far)) = (near, far) else { return };
    let [near, far] = [near, far].map(Arc::new);
    let client = Arc::new(Mutex::new(None));
    for (from, into, is_forth) in [(Arc::clone(&near), Arc::clone(&far), true), (far, near, false)] {
        let (session, client, mutator) = (session.clone(), Arc::clone(&client), mutator());
        thread::spawn(move || datagrams(&from, &into, is_forth, &client, &session, mutator));
    }
}

/// Passes datagrams on in one direction.
fn datagrams(
    from: &UdpSocket,
    into: &UdpSocket,
    is_forth: bool,
    client: &Mutex<Option<SocketAddr>>,
    session: &Shared,
    mutator: Mutator,
) {
    let mut change = Change { mutator, held: None, before: VecDeque::new() };
    let mut buffer = vec![0; 1 << 16];
    // Without a timeout it would not end.
    if from.set_read_timeout(Some(POLL_INTERVAL)).is_err() {
        return;
    }
    while !session.is_over.load(Ordering::Relaxed) {
        let (length, sender) = match from.recv_from(&mut buffer) {
            Ok(received) => received,
            // Also that nobody listens on the other side any more.
            Err(_) => continue,
        };
        if is_forth {
            *client.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        }
        let packet = buffer[..length].to_vec();
        let is_changed = change.mutator.below(session.every) == 0;
        let packets = if is_changed { change.of(packet.clone()) } else { vec![packet.clone()] };
        session.changed.fetch_add(u64::from(is_changed), Ordering::Relaxed);
        change.remember(packet);
        for packet in packets.into_iter().chain(if is_changed { None } else { change.held.take() }) {
            // Too long, or nobody listens any more.
            let _ = match *client.lock().unwrap_or_else(PoisonError::into_inner) {
                _ if is_forth => into.send(&packet),
                Some(client) => into.send_to(&packet, client),
                None => continue,
            };
        }
    }
}

/// Changes packets, and their order and number.
struct Change {
    mutator: Mutator,
    /// Sent after the next one.
    held: Option<Vec<u8>>,
    before: VecDeque<Vec<u8>>,
}

impl Change {
    /// The packets that travel on instead of one.
    fn of(&mut self, mut packet: Vec<u8>) -> Vec<Vec<u8>> {
        let chosen = self.mutator.below(self.before.len());
        let earlier = self.before.get(chosen).cloned().unwrap_or_default();
        let at = self.mutator.below(packet.len().min(earlier.len()) + 1);
        match self.mutator.below(12) {
            // One place, or several.
            0..=3 => self.mutator.damage(&mut packet),
            4 => (0..5).for_each(|_| self.mutator.damage(&mut packet)),
            5 => packet.truncate(at),
            6 => packet.extend((0..self.mutator.below(200)).map(|number| number as u8)),
            // The beginning of this one and the end of another.
            7 => {
                packet.truncate(at);
                packet.extend_from_slice(&earlier[at..]);
            }
            8 => return vec![packet.clone(), packet],
            9 => return vec![earlier, packet],
            10 => {
                let before = self.held.replace(packet);
                return before.into_iter().collect();
            }
            _ => return Vec::new(),
        }
        vec![packet]
    }

    fn remember(&mut self, packet: Vec<u8>) {
        self.before.push_back(packet);
        if self.before.len() > REMEMBERED {
            self.before.pop_front();
        }
    }
}

/// Passes the connections of a kernel's stream transport on.
fn streams(listener: &TcpListener, to: SocketAddr, session: &Shared, mutators: [Mutator; 2]) {
    if listener.set_nonblocking(true).is_err() {
        return;
    }
    while !session.is_over.load(Ordering::Relaxed) {
        let client = match listener.accept() {
            Ok((client, _)) => client,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(POLL_INTERVAL);
                continue;
            }
            Err(_) => return,
        };
        let Ok(server) = TcpStream::connect(to) else { continue };
        let (Ok(()), Ok(back), Ok(forth)) =
            (client.set_nonblocking(false), client.try_clone(), server.try_clone())
        else {
            continue;
        };
        let [one, other] = mutators.clone();
        for (from, into, mutator) in [(client, forth, one), (server, back, other)] {
            let session = session.clone();
            thread::spawn(move || pieces(from, into, &session, mutator));
        }
    }
}

/// Passes the bytes of a stream on in one direction.
fn pieces(mut from: TcpStream, mut into: TcpStream, session: &Shared, mut mutator: Mutator) {
    let mut buffer = vec![0; 1 << 14];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let mut piece = buffer[..length].to_vec();
        if mutator.below(session.every) == 0 {
            mutator.damage(&mut piece);
            session.changed.fetch_add(1, Ordering::Relaxed);
        }
        if into.write_all(&piece).is_err() {
            break;
        }
    }
    // Ends that have closed already cannot be shut down.
    let _ = into.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_found_when_it_is_complete() {
        let said = b"\0\0\0\x20M{\"opened\":{\"key\":5,\"port\":40123,\"seed\":0}}";
        assert_eq!(port(said), Some(40_123));
        assert_eq!(port(&said[..20]), None);
    }

    #[test]
    fn sockets_of_an_address_are_found() {
        let at = Ipv4Addr::new(127, 0, 0, 77);
        let udp = UdpSocket::bind((at, 0)).unwrap();
        let tcp = TcpListener::bind((at, 0)).unwrap();
        let client = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        let expected = [udp.local_addr().unwrap().port(), tcp.local_addr().unwrap().port()];
        assert_eq!(ports(at), expected);
        drop(client);
    }

    #[test]
    fn every_kind_of_change_happens() {
        let mut change = Change { mutator: Mutator::new(1), held: None, before: VecDeque::new() };
        let packet: Vec<u8> = (0..100).collect();
        change.remember(vec![7; 150]);
        let all: Vec<Vec<Vec<u8>>> = (0..300).map(|_| change.of(packet.clone())).collect();
        for (what, is_there) in [
            ("lost", all.iter().any(Vec::is_empty)),
            ("twice", all.iter().any(|packets| packets == &[packet.clone(), packet.clone()])),
            ("earlier", all.iter().any(|packets| packets.first() == Some(&vec![7; 150]))),
            ("shorter", all.iter().any(|packets| packets.iter().any(|packet| packet.len() < 80))),
            ("longer", all.iter().any(|packets| packets.iter().any(|packet| packet.len() > 160))),
        ] {
            assert!(is_there, "none is {what}");
        }
        assert!(change.held.is_some());
    }
}
