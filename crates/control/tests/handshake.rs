//! Who is let in, and who is talked with.
#![allow(clippy::unwrap_used, reason = "helpers of tests, too")]

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use common::{PATIENCE, accept, identity, impostor, listener};
use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use trunkline_control::{Identity, PeerError, Pulse, connect};
use trunkline_core::Duration;
use trunkline_testkit::skips::{Missing, skip_without};

/// What a listener says of somebody who connects with a bare socket.
fn refusal(patience: Duration, connect: impl FnOnce(TcpStream) + Send) -> PeerError {
    let listener = listener(&identity(), Pulse::default());
    thread::scope(|scope| {
        let address = listener.local_address();
        scope.spawn(move || connect(TcpStream::connect(address).unwrap()));
        let incoming = listener.accept_within(PATIENCE).unwrap().expect("somebody connects");
        incoming.handshake(patience).unwrap_err()
    })
}

#[test]
fn an_agent_with_another_key_is_not_talked_with() {
    let (near, known, other) = (identity(), identity(), identity());
    let listener = listener(&other, Pulse::default());
    let address = listener.local_address().to_string();
    thread::scope(|scope| {
        let refused = scope.spawn(|| accept(&listener).unwrap_err());
        let error = connect(&address, &near, &known.fingerprint(), PATIENCE).unwrap_err();
        let (expected, found) = (known.fingerprint(), other.fingerprint());
        let said = format!("presented a different key than the enrolled one ({found} instead of {expected})");
        assert!(error.to_string().contains(&said), "{error}");
        assert!(error.to_string().contains("`trunkline agent forget NAME`"), "{error}");
        refused.join().unwrap();
    });
}

#[test]
fn plain_text_is_not_spoken() {
    let error = refusal(PATIENCE, |mut socket| {
        socket.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
    });
    assert!(error.to_string().ends_with("it does not send TLS"), "{error}");

    let address = impostor(|mut socket| {
        let _ = socket.read(&mut [0; 4096])?;
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
        socket.read_to_end(&mut Vec::new()).map(|_| ())
    });
    let (near, known) = (identity(), identity());
    let error = connect(&address.to_string(), &near, &known.fingerprint(), PATIENCE).unwrap_err();
    assert!(error.to_string().ends_with("it does not send TLS"), "{error}");
    assert!(error.to_string().starts_with(&format!("the agent at {address} does not speak")), "{error}");
}

/// A greeting of TLS 1.2 (RFC 5246 section 7.4.1.2), with one suite and no extension but that for signatures.
fn hello_of_tls_1_2() -> Vec<u8> {
    let extensions = [0x00, 0x0d, 0x00, 0x04, 0x00, 0x02, 0x08, 0x07];
    let mut body = vec![0x03, 0x03];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0xc0, 0x2b, 1, 0, 0, extensions.len() as u8]);
    body.extend(extensions);
    let mut hello = vec![0x16, 0x03, 0x01, 0, body.len() as u8 + 4, 1, 0, 0, body.len() as u8];
    hello.extend(body);
    hello
}

#[test]
fn older_tls_is_refused() {
    let mut answer = Vec::new();
    let error = refusal(PATIENCE, |mut socket| {
        socket.write_all(&hello_of_tls_1_2()).unwrap();
        let _ = socket.read_to_end(&mut answer);
    });
    assert!(error.to_string().ends_with("it does not support TLS 1.3"), "{error}");
    // A fatal alert: protocol_version (RFC 8446 section 6.2).
    assert_eq!(answer.get(answer.len().saturating_sub(2)..), Some(&[2, 70][..]), "{answer:?}");

    let address = impostor(|mut socket| {
        let _ = socket.read(&mut [0; 4096])?;
        socket.write_all(&[0x15, 0x03, 0x03, 0, 2, 2, 70])?;
        socket.read_to_end(&mut Vec::new()).map(|_| ())
    });
    let error = connect(&address.to_string(), &identity(), &identity().fingerprint(), PATIENCE).unwrap_err();
    assert!(error.to_string().ends_with("it does not support TLS 1.3"), "{error}");
}

#[test]
fn who_says_nothing_is_dropped() {
    let soon = Duration::from_millis(100);
    let held = refusal(soon, |mut socket| {
        // Until the other end drops it.
        let _ = socket.read_to_end(&mut Vec::new());
    });
    assert!(matches!(held, PeerError::TimedOut { .. }), "{held}");

    let dripping = refusal(soon, |mut socket| {
        for byte in hello_of_tls_1_2().iter().cycle() {
            thread::sleep(std::time::Duration::from_millis(5));
            if socket.write_all(&[*byte]).is_err() {
                break;
            }
        }
    });
    assert!(matches!(dripping, PeerError::TimedOut { .. }), "{dripping}");

    let quiet = impostor(|mut socket| socket.read_to_end(&mut Vec::new()).map(|_| ()));
    let error = connect(&quiet.to_string(), &identity(), &identity().fingerprint(), soon).unwrap_err();
    let said = format!("the agent at {quiet} timed out after 100 ms while exchanging keys");
    assert_eq!(error.to_string(), said);
}

#[test]
fn who_leaves_in_between_is_told_of() {
    let error = refusal(PATIENCE, |mut socket| socket.write_all(&hello_of_tls_1_2()[..20]).unwrap());
    assert!(matches!(error, PeerError::CutOff { .. }), "{error}");
    let gone = impostor(|_| Ok(()));
    let error = connect(&gone.to_string(), &identity(), &identity().fingerprint(), PATIENCE).unwrap_err();
    assert!(matches!(error, PeerError::CutOff { .. }), "{error}");
}

#[test]
fn where_nothing_listens_is_said() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = connect(&free.to_string(), &identity(), &identity().fingerprint(), PATIENCE).unwrap_err();
    let said = format!("nothing listens on {free}; is `trunkline agent` running there, on this port?");
    assert_eq!(error.to_string(), said);
    assert!(!error.is_bad_input());
}

#[test]
fn what_is_no_address_is_said() {
    for (address, why) in [
        ("", "there is no host in it"),
        (":4781", "there is no host in it"),
        ("host:0", "`0` is not a port (1 to 65535)"),
        ("host:65536", "`65536` is not a port (1 to 65535)"),
        ("host:http", "`http` is not a port (1 to 65535)"),
        ("[::1", "the `[` is not closed"),
        ("[::1]4781", "`:` is missing"),
        ("[host]:4781", "`host` is not an IPv6 address"),
        ("a host:1", "there is no host in it"),
        ("http://host:1", "`//host:1` is not a port (1 to 65535)"),
    ] {
        let error = connect(address, &identity(), &identity().fingerprint(), PATIENCE).unwrap_err();
        assert!(error.is_bad_input(), "{error}");
        let said =
            format!("`{address}` is not the address of an agent: {why}; expected `host:port` or `host`");
        assert_eq!(error.to_string(), said);
    }
    let error = connect("nowhere.invalid:1", &identity(), &identity().fingerprint(), PATIENCE).unwrap_err();
    assert!(error.to_string().contains("cannot resolve the name `nowhere.invalid`"), "{error}");
}

#[test]
fn a_port_that_is_taken_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = trunkline_control::Listener::bind(address, &identity()).unwrap_err();
    assert!(!error.is_bad_input());
    assert!(error.to_string().starts_with(&format!("the agent cannot listen on {address}: ")), "{error}");
}

#[test]
fn ipv6_is_spoken() {
    let (near, far) = (identity(), identity());
    let Ok(listener) = trunkline_control::Listener::bind("[::1]:0", &far) else {
        return skip_without(Missing::Ipv6, "IPv6 is not available on the loopback interface");
    };
    let address = listener.local_address().to_string();
    thread::scope(|scope| {
        scope.spawn(|| accept(&listener).unwrap());
        connect(&address, &near, &far.fingerprint(), PATIENCE).unwrap();
    });
}

/// Talks with anybody: an attacker does not care.
#[derive(Debug)]
struct Careless;

impl ServerCertVerifier for Careless {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// Shows a certificate that is somebody else's.
#[derive(Debug)]
struct Stolen(Arc<CertifiedKey>);

impl ResolvesClientCert for Stolen {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
    fn has_certs(&self) -> bool {
        true
    }
}

/// What a listener says of somebody with this TLS of their own.
fn refusal_of(
    make: impl FnOnce(rustls::client::danger::DangerousClientConfigBuilder) -> ClientConfig + Send,
) -> PeerError {
    refusal(PATIENCE, |socket| {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap();
        let mut config = make(builder.dangerous());
        config.alpn_protocols = vec![b"trunkline-agent".to_vec()];
        let tls = ClientConnection::new(Arc::new(config), ServerName::try_from("trunkline").unwrap());
        let _ = StreamOwned::new(tls.unwrap(), socket).read_to_end(&mut Vec::new());
    })
}

#[test]
fn who_shows_no_key_is_not_let_in() {
    let error = refusal_of(|builder| {
        builder.with_custom_certificate_verifier(Arc::new(Careless)).with_no_client_auth()
    });
    assert!(matches!(error, PeerError::NotSpoken { .. }), "{error}");
}

#[test]
fn a_certificate_does_not_help_without_its_key() {
    let certificate = |pair: &rcgen::KeyPair| {
        let parameters = rcgen::CertificateParams::new(["trunkline".to_owned()]).unwrap();
        CertificateDer::from(parameters.self_signed(pair).unwrap())
    };
    let pair = || rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let (theirs, own) = (pair(), pair());
    let key = |pair: &rcgen::KeyPair| {
        let key = rustls::pki_types::PrivatePkcs8KeyDer::from(pair.serialize_der());
        rustls::crypto::ring::sign::any_eddsa_type(&key).unwrap()
    };
    let shown = |signer: &rcgen::KeyPair| {
        let key = CertifiedKey::new(vec![certificate(&theirs)], key(signer));
        let resolver = Arc::new(Stolen(Arc::new(key)));
        move |builder: rustls::client::danger::DangerousClientConfigBuilder| {
            let builder = builder.with_custom_certificate_verifier(Arc::new(Careless));
            builder.with_client_cert_resolver(resolver)
        }
    };
    let error = refusal_of(shown(&own));
    assert!(error.to_string().contains("BadSignature"), "{error}");
}

/// A client that would resume gets no ticket, and proves its key again.
#[test]
fn no_session_is_resumed() {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let certificate = rcgen::CertificateParams::new(["trunkline".to_owned()]).unwrap().self_signed(&pair);
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(pair.serialize_der());
    let key = rustls::crypto::ring::sign::any_eddsa_type(&key).unwrap();
    let shown = Arc::new(CertifiedKey::new(vec![certificate.unwrap().into()], key));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Careless))
        .with_client_cert_resolver(Arc::new(Stolen(shown)));
    config.alpn_protocols = vec![b"trunkline-agent".to_vec()];
    let (config, listener) = (Arc::new(config), listener(&identity(), Pulse::default()));
    for _ in 0..2 {
        thread::scope(|scope| {
            let accepted = scope.spawn(|| drop(accept(&listener).unwrap()));
            let name = ServerName::try_from("trunkline").unwrap();
            let tls = ClientConnection::new(Arc::clone(&config), name).unwrap();
            let mut stream = StreamOwned::new(tls, TcpStream::connect(listener.local_address()).unwrap());
            // Until the other end leaves: everything that it sends has come.
            let _ = stream.read_to_end(&mut Vec::new());
            accepted.join().unwrap();
            assert_eq!(stream.conn.handshake_kind(), Some(rustls::HandshakeKind::Full));
            assert_eq!(stream.conn.tls13_tickets_received(), 0);
        });
    }
}

#[test]
fn an_identity_is_found_at_both_ends() {
    // The same key from a file is known by the same fingerprint over the wire.
    let home = tempfile::tempdir().unwrap();
    let made = Identity::open(home.path()).unwrap().fingerprint();
    let (near, far) = (Identity::open(home.path()).unwrap(), identity());
    let listener = listener(&far, Pulse::default());
    let address: SocketAddr = listener.local_address();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| accept(&listener).unwrap().peer_fingerprint());
        connect(&address.to_string(), &near, &far.fingerprint(), PATIENCE).unwrap();
        assert_eq!(accepted.join().unwrap(), made);
    });
}
