use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::Identity;
use crate::wire::{Frame, WireError, tag};

const PATIENCE: Duration = Duration::from_secs(20);

fn pair() -> (Connection, Connection) {
    let (near, far) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let listener = Listener::bind("127.0.0.1:0", &far).unwrap();
    let address = listener.local_address().to_string();
    thread::scope(|scope| {
        let accepted = scope.spawn(|| {
            let incoming = listener.accept_within(PATIENCE).unwrap().expect("somebody connects");
            incoming.handshake(PATIENCE).unwrap()
        });
        let client = connect(&address, &near, &far.fingerprint(), PATIENCE).unwrap();
        let mut server = accepted.join().unwrap();
        server.trust();
        (client, server)
    })
}

/// Much to send.
#[derive(Debug, PartialEq)]
struct Chunk {
    number: u64,
    data: Vec<u8>,
}

impl Message for Chunk {
    fn to_frame(&self) -> Result<Frame, WireError> {
        Ok(Frame { tag: tag::CHUNK, body: [&self.number.to_be_bytes()[..], &self.data].concat() })
    }
    fn from_frame(frame: Frame) -> Result<Chunk, WireError> {
        let (number, data) = frame.body.split_first_chunk().ok_or(WireError::Empty)?;
        Ok(Chunk { number: u64::from_be_bytes(*number), data: data.to_vec() })
    }
}

fn chunk(number: u64) -> Chunk {
    Chunk { number, data: vec![number as u8; 50_000] }
}

#[test]
fn keys_change_while_both_ends_say_much() {
    let (client, server) = pair();
    let over = AtomicBool::new(false);
    let shared = [&client, &server].map(|end| Arc::clone(&end.reader.shared));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                shared.iter().for_each(|end| end.change_keys());
                // TLS takes it amiss if somebody does nothing else.
                thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        let talking = [client, server].map(|end| {
            scope.spawn(move || {
                let (mut reader, writer) = end.split();
                let said = thread::spawn(move || (0..200).try_for_each(|n| writer.send(&chunk(n))));
                let heard = (0..200).try_for_each(|n| match reader.receive::<Chunk>() {
                    Ok(Some(heard)) if heard == chunk(n) => Ok(()),
                    other => Err(format!("{n}: {:?}", other.map(|chunk| chunk.map(|chunk| chunk.number)))),
                });
                (said.join().unwrap().map_err(|error| error.to_string()), heard)
            })
        });
        let results = talking.map(|end| end.join().unwrap());
        over.store(true, Ordering::Relaxed);
        assert_eq!(results, [(Ok(()), Ok(())), (Ok(()), Ok(()))]);
    });
}

/// A sign of life, on purpose.
struct Ping;

impl Message for Ping {
    fn to_frame(&self) -> Result<Frame, WireError> {
        Ok(Frame { tag: tag::PING, body: Vec::new() })
    }
    fn from_frame(_: Frame) -> Result<Ping, WireError> {
        Err(WireError::Empty)
    }
}

#[test]
fn signs_of_life_are_no_answer() {
    let (mut client, server) = pair();
    let closer = server.closer();
    thread::scope(|scope| {
        scope.spawn(move || while server.send(&Ping).is_ok() {});
        let soon = Duration::from_millis(50);
        let error = client.receive_within::<Chunk>(soon, "answering").unwrap_err();
        assert!(matches!(error, PeerError::TimedOut { .. }), "{error}");
        closer.close();
    });
}

#[test]
fn a_bit_of_an_answer_is_none() {
    let (mut client, server) = pair();
    thread::scope(|scope| {
        let large = Chunk { data: vec![7; 24 << 20], ..chunk(1) };
        scope.spawn(move || server.send(&large).unwrap());
        let soon = Duration::from_millis(1);
        let error = client.receive_within::<Chunk>(soon, "answering").unwrap_err();
        assert!(matches!(error, PeerError::TimedOut { .. }), "{error}");
        // Nothing is lost by that.
        let Ok(Some(chunk)) = client.receive::<Chunk>() else { panic!("it is whole") };
        assert_eq!((chunk.number, chunk.data.len()), (1, 24 << 20));
    });
}

#[test]
fn both_ends_derive_the_same_and_others_something_else() {
    let ((client, server), (other, _server)) = (pair(), pair());
    let label = b"EXPORTER-trunkline-test";
    assert_eq!(client.export(label).unwrap(), server.export(label).unwrap());
    assert_ne!(client.export(label).unwrap(), other.export(label).unwrap());
    assert_ne!(client.export(label).unwrap(), client.export(b"EXPORTER-trunkline-other").unwrap());
}
