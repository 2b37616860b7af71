//! Pairing: from a code at one end to sessions between two hosts that know each other's keys.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use trunkline_calls::{
    Bounds, Client, Keys, Line as _, Peers, Request, Role, SESSIONS, ServerOptions, Session, SessionError,
    SharedKey, TransportChoice, now,
};
use trunkline_core::Duration;
use trunkline_peer::message::Purpose;
use trunkline_peer::wire::Frame;
use trunkline_peer::{Channel, PairingCode, PeerError, Received, RefusalKind};
use trunkline_testkit::mutation::{Mutator, Proxy, panics_of, seed};

use crate::support::{PATIENCE, Running, packet, until};

/// A host with keys of its own.
struct Host {
    home: TempDir,
    keys: Keys,
}

impl Host {
    fn new(name: &str) -> Host {
        let home = tempfile::tempdir().unwrap();
        let keys = Keys::new(home.path().join("peer"), name);
        Host { home, keys }
    }

    /// A server of this host, for strangers of a network that nobody here is in.
    fn serve(&self) -> Running {
        self.serve_with(ServerOptions::default())
    }

    fn serve_with(&self, options: ServerOptions) -> Running {
        let peers = Peers::In(vec!["192.0.2.0/24".parse().unwrap()]);
        Running::with(ServerOptions { peers, keys: Some(self.keys.clone()), ..options }, ())
    }

    fn client(&self) -> Client {
        Client { keys: Some(self.keys.clone()), ..Client::default() }
    }

    fn ask(&self, server: &str) -> Result<Session, SessionError> {
        self.client().connect(server, Request::new(Role::Echo, TransportChoice::udp()))
    }

    fn enrol(&self, server: &Running, code: &PairingCode) -> Result<(), PeerError> {
        self.keys.enrol(&server.address.to_string(), code, PATIENCE).map(drop)
    }
}

/// A server at `studio` that `laptop` has paired with.
fn paired() -> (Host, Running, Host) {
    let (studio, laptop) = (Host::new("studio"), Host::new("laptop"));
    let (server, code) = (studio.serve(), studio.keys.begin().unwrap());
    laptop.enrol(&server, &code).unwrap();
    (studio, server, laptop)
}

fn refusal(result: Result<(), PeerError>) -> (RefusalKind, String) {
    match result {
        Err(PeerError::Refused { refusal, .. }) => (refusal.kind, refusal.why),
        other => panic!("{other:?} is not a refusal"),
    }
}

fn why(result: Result<Session, SessionError>) -> String {
    match result.map(drop) {
        Err(SessionError::Refused { why, .. }) => why,
        other => panic!("{other:?} is not a refusal"),
    }
}

fn echoes(session: &mut Session) {
    session.send(now(), &packet(7, 100)).unwrap();
    assert_eq!(until(session, |_, arrived| arrived.len() == 1).unwrap(), [packet(7, 100)]);
}

#[test]
fn a_known_client_is_served_from_any_network_and_a_stranger_is_told_to_pair() {
    let (studio, server, laptop) = paired();
    echoes(&mut laptop.ask(&server.address.to_string()).unwrap());
    // By its name, too.
    echoes(&mut laptop.ask("studio").unwrap());
    let stranger = why(Host::new("stranger").ask(&server.address.to_string()));
    assert!(stranger.contains("it serves 192.0.2.0/24, not 127.0.0.1"), "{stranger}");
    assert!(stranger.contains("pair with it (`--pair`)"), "{stranger}");

    let [client, seen] = [&studio, &laptop].map(|host| host.keys.identity().unwrap().fingerprint());
    assert_eq!(studio.keys.clients().unwrap().named("laptop").unwrap().unwrap().fingerprint, seen);
    let known = laptop.keys.servers().unwrap().named("studio").unwrap().unwrap();
    assert_eq!((known.fingerprint, known.address), (client, Some(server.address.to_string())));
    // That one may send does not mean that it may be sent to.
    assert_eq!(laptop.keys.clients().unwrap().list().unwrap(), []);
    let mode = |path: &str| fs::metadata(studio.home.path().join(path)).unwrap().mode() & 0o777;
    assert_eq!(["peer", "peer/clients"].map(mode), [0o700; 2]);
    assert_eq!(["peer/key.pem", "peer/pairing", "peer/clients/laptop.toml"].map(mode), [0o600; 3]);
}

#[test]
fn a_wrong_code_and_a_used_one_enrol_nobody() {
    let (studio, laptop, other) = (Host::new("studio"), Host::new("laptop"), Host::new("other"));
    let server = studio.serve();
    let void = studio.keys.begin().unwrap();
    let code = studio.keys.begin().unwrap();
    let (kind, why) = refusal(laptop.enrol(&server, &void));
    assert_eq!(kind, RefusalKind::WrongCode);
    assert!(why.contains("`--pair` or `trunkline peer pair` printed; attempts left: 4"), "{why}");
    assert_eq!(studio.keys.clients().unwrap().list().unwrap(), []);
    assert_eq!(laptop.keys.servers().unwrap().list().unwrap(), []);

    laptop.enrol(&server, &code).unwrap();
    let (kind, why) = refusal(other.enrol(&server, &code));
    assert_eq!(kind, RefusalKind::CodeUsed);
    assert!(why.contains("make a new one with `--pair` or `trunkline peer pair`"), "{why}");
    assert_eq!(studio.keys.clients().unwrap().list().unwrap().len(), 1);
}

#[test]
fn a_code_of_another_host_is_not_tried() {
    let (studio, laptop, other) = (Host::new("studio"), Host::new("laptop"), Host::new("other"));
    let (server, code) = (studio.serve(), other.keys.begin().unwrap());
    studio.keys.begin().unwrap();
    let error = laptop.enrol(&server, &code).unwrap_err();
    assert!(matches!(error, PeerError::OtherHost { .. }), "{error}");
    assert!(error.to_string().starts_with("this code is not from the server at 127.0.0.1:"), "{error}");
}

#[test]
fn without_a_code_nobody_pairs() {
    let (studio, laptop) = (Host::new("studio"), Host::new("laptop"));
    let (server, code) = (studio.serve(), studio.keys.begin().unwrap());
    fs::remove_file(studio.home.path().join("peer/pairing")).unwrap();
    let (kind, why) = refusal(laptop.enrol(&server, &code));
    assert_eq!(kind, RefusalKind::NoCode);
    assert!(why.contains("no pairing code is open"), "{why}");
}

#[test]
fn a_revoked_client_is_refused_and_its_session_ends() {
    let (studio, server, laptop) = paired();
    let mut session = laptop.ask("studio").unwrap();
    echoes(&mut session);
    studio.keys.clients().unwrap().remove("laptop").unwrap();
    let refused = why(laptop.ask("studio"));
    assert!(refused.contains("it does not know the key of this host"), "{refused}");
    assert!(refused.contains("`trunkline peer pair`"), "{refused}");
    until(&mut session, |_, _| false).unwrap_err();
    let deadline = now() + PATIENCE;
    while (server.clients)() > 0 {
        assert!(now() < deadline, "a client that was revoked still has a session");
        std::thread::yield_now();
    }
    // A new code lets it in again.
    laptop.enrol(&server, &studio.keys.begin().unwrap()).unwrap();
    echoes(&mut laptop.ask("studio").unwrap());
}

/// Another server at the address of a known one gets no request.
#[test]
fn a_server_with_another_key_is_not_talked_with() {
    let (_studio, server, laptop) = paired();
    let address = server.address;
    drop(server);
    let other = Host::new("studio");
    other.keys.identity().unwrap();
    let options = ServerOptions { address, ..ServerOptions::default() };
    let impostor = Running::at(ServerOptions { keys: Some(other.keys.clone()), ..options }, ());
    let error = laptop.ask("studio").map(drop).unwrap_err();
    assert!(matches!(error, SessionError::Keys(PeerError::WrongKey { .. })), "{error}");
    assert!(error.to_string().contains("run `trunkline peer forget NAME`"), "{error}");
    assert_eq!((impostor.clients)(), 0);
}

#[test]
fn a_known_client_has_a_share_of_its_own_and_needs_no_shared_key() {
    let (studio, laptop) = (Host::new("studio"), Host::new("laptop"));
    let usual = ServerOptions::default();
    let key = Some(SharedKey::new(b"correct horse battery staple").unwrap());
    let each = Bounds { sessions: 1, ..usual.each };
    let options = ServerOptions { peers: Peers::All, key, each, keys: Some(studio.keys.clone()), ..usual };
    let server = Running::with(options, ());
    laptop.enrol(&server, &studio.keys.begin().unwrap()).unwrap();
    let request = || Request::new(Role::Echo, TransportChoice::udp());
    let keyed = Client { key, ..Client::default() };
    let address = server.address.to_string();
    let _stranger = keyed.connect(&address, request()).unwrap();
    assert!(why(keyed.connect(&address, request())).contains("one address may have 1 sessions"));
    // From the same address.
    echoes(&mut laptop.ask(&address).unwrap());
    // A key that all holders share says less than its own, and is not asked for.
    let both = Client { key, ..laptop.client() };
    echoes(&mut both.connect(&address, request()).unwrap());
}

/// Silent strangers take no place from a known client.
#[test]
fn silent_strangers_keep_no_known_client_out() {
    let (_studio, server, laptop) = paired();
    let silent: Vec<_> = (0..200).map(|_| server.speak()).collect();
    echoes(&mut laptop.ask("studio").unwrap());
    drop(silent);
}

/// Carries bytes between a client and a server, and keeps them.
fn relay(to: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        let near = listener.accept().unwrap().0;
        let far = TcpStream::connect(to).unwrap();
        let ends = [(&near, &far), (&far, &near)];
        std::thread::scope(|scope| {
            for (mut from, mut into) in ends {
                let kept = &kept;
                scope.spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(read @ 1..) = from.read(&mut bytes) {
                        kept.lock().unwrap().extend_from_slice(&bytes[..read]);
                        if into.write_all(&bytes[..read]).is_err() {
                            break;
                        }
                    }
                    let _ = into.shutdown(Shutdown::Write);
                });
            }
        });
    });
    (address, seen)
}

/// The path of a known client carries neither the request nor the key of the session.
#[test]
fn the_control_connection_of_a_known_client_is_encrypted() {
    let contains = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    let (studio, server, laptop) = paired();
    let (address, seen) = relay(server.address);
    let mut known = laptop.keys.servers().unwrap().named("studio").unwrap().unwrap();
    known.address = Some(address.to_string());
    laptop.keys.servers().unwrap().add(&known).unwrap();
    echoes(&mut laptop.ask("studio").unwrap());
    {
        let seen = seen.lock().unwrap();
        assert!(seen.len() > 1000, "{} bytes", seen.len());
        assert!(!["transport", "opened", "laptop", "facts"].iter().any(|text| contains(&seen, text)));
    }
    // A stranger's is not.
    let open =
        Running::with(ServerOptions { keys: Some(studio.keys.clone()), ..ServerOptions::default() }, ());
    let (address, seen) = relay(open.address);
    echoes(&mut Host::new("stranger").ask(&address.to_string()).unwrap());
    assert!(contains(&seen.lock().unwrap(), "\"opened\""));
}

/// A path that changes bytes ends pairings and sessions, and neither end; nobody else is enrolled by it. TLS notices every
/// change, so few of them begin.
#[test]
fn a_path_that_changes_pairing_ends_it_only() {
    let panics = panics_of(&["session"]);
    let (studio, server, laptop) = paired();
    let proxy = Proxy::start(server.address, seed()).unwrap();
    let patience = Duration::from_millis(300);
    let mut known = laptop.keys.servers().unwrap().named("studio").unwrap().unwrap();
    known.address = Some(proxy.address().to_string());
    laptop.keys.servers().unwrap().add(&known).unwrap();
    for round in 0..60 {
        let client = Client { patience, ..laptop.client() };
        // That an end reports an error is what should happen.
        drop(client.connect("studio", Request::new(Role::Echo, TransportChoice::udp())));
        if round % 4 == 0 {
            let code = studio.keys.begin().unwrap();
            drop(Host::new("other").keys.enrol(&proxy.address().to_string(), &code, patience));
        }
    }
    drop(proxy);
    let names: Vec<String> =
        studio.keys.clients().unwrap().list().unwrap().into_iter().map(|peer| peer.name).collect();
    assert!(names.iter().all(|name| ["laptop", "other"].contains(&name.as_str())), "{names:?}");
    known.address = Some(server.address.to_string());
    laptop.keys.servers().unwrap().add(&known).unwrap();
    echoes(&mut laptop.ask("studio").unwrap());
    assert_eq!(panics(), 0, "with {} the same happens", seed());
}

/// A known client, and one that wants to pair, send damaged messages inside of TLS.
#[test]
fn damaged_messages_of_a_known_client_end_its_connection_only() {
    let panics = panics_of(&["session"]);
    let (studio, server, laptop) = paired();
    let (identity, expected) =
        (laptop.keys.identity().unwrap(), studio.keys.identity().unwrap().fingerprint());
    let mut mutator = Mutator::new(seed());
    let (mut answered, mut refused) = (0, 0);
    for round in 0..150 {
        let (purpose, body) = match round % 3 {
            0 => (Purpose::Pair, r#"{"pair":{"proof":[1,2,3],"name":"laptop"}}"#),
            1 => (Purpose::Session, r#"{"open":{"request":{"role":"play","transport":"udp"}}}"#),
            _ => {
                (Purpose::Session, r#"{"open":{"request":{"role":"echo","transport":"{ kind = \"xtp\" }"}}}"#)
            }
        };
        let stream = TcpStream::connect(server.address).unwrap();
        let mut channel = Channel::new(stream, "the server", 16 << 10).unwrap();
        channel.pin(&SESSIONS, "studio", &identity, expected).unwrap();
        channel.greet(purpose).unwrap();
        let mut body = body.as_bytes().to_vec();
        for _ in 0..mutator.below(4) {
            mutator.damage(&mut body);
        }
        channel.send_frame(&Frame { tag: b'M', body }).unwrap();
        let deadline = now() + PATIENCE;
        // A welcome, and then a refusal or the terms of a session.
        let mut frames = 0;
        while frames < 2 {
            assert!(now() < deadline, "round {round} is not answered");
            match channel.receive() {
                Ok(Received::Frame(frame)) => {
                    frames += 1;
                    refused += usize::from(frame.body.starts_with(b"{\"refused\""));
                    answered += usize::from(frame.body.starts_with(b"{\"opened\""));
                }
                Ok(Received::Nothing) => std::thread::sleep(std::time::Duration::from_millis(1)),
                Ok(Received::End) | Err(_) => break,
            }
        }
    }
    assert!(answered > 5 && refused > 50, "{answered} sessions began, {refused} were refused");
    assert_eq!(studio.keys.clients().unwrap().list().unwrap().len(), 1);
    studio.keys.begin().unwrap();
    let deadline = now() + PATIENCE;
    // Those whose packets did not come have their places for ten seconds.
    while let Err(error) = laptop.ask("studio").map(|mut session| echoes(&mut session)) {
        assert!(now() < deadline, "{error}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(panics(), 0, "with {} the same happens", seed());
}
