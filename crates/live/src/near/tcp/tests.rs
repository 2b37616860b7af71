use std::net::TcpListener;
use std::sync::mpsc::sync_channel;

use trunkline_core::Seed;
use trunkline_experiment::Experiment;
use trunkline_io::MonotonicClock;
use trunkline_metrics::Observation;
use trunkline_traffic::Source;
use trunkline_transport::framing::{Cover, Key};

use super::*;
use crate::events::{Input, Pool};
use crate::near::Stage;
use crate::start::Start;

const LONG: Duration = Duration::from_secs(20);

/// A source that always has something to send.
fn source() -> Box<dyn Source> {
    let text = "name = \"test\"\nduration = \"20 s\"\n[hosts]\na = {}\nb = {}\n[link.wire]\n\
                between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n[flow.bulk]\nfrom = \"a\"\nto = \"b\"\n\
                transport = \"tcp\"\nsource = { kind = \"bulk\", message = \"8 KiB\" }\n";
    let experiment =
        Experiment::parse(text, "test.toml", &()).unwrap_or_else(|problems| panic!("{problems}"));
    experiment.points.first().scenario.build_source(0, 0, Seed::new(1, 0)).unwrap()
}

fn conversation(stream: TcpStream) -> Conversation {
    Conversation {
        talker: Talker::new(source(), FlowId(0), 1),
        spec: TalkerSpec {
            key: Key(7),
            cover: Some(Cover::default()),
            send_timeout: None,
            is_saturating: true,
        },
        sender: 1,
        stream,
        answers: None,
        spin: Duration::ZERO,
        awaited: false,
        turn: None,
        over_time: None,
    }
}

/// Sends to a peer that does this with its end of the connection, until that breaks; says how it did, and how many
/// messages were refused.
fn send_to(peer: impl FnOnce(TcpStream)) -> (Option<&'static str>, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer(listener.accept().unwrap().0);
    let stage = Stage::new(&Start::of(1, None).awaited);
    let (inbox, observed) = sync_channel(1024);
    let clock = MonotonicClock::starting_now();
    let stop = Time::ZERO + LONG;
    let common = Common { clock, stop, key: Key(7), stage: &stage, inbox, pool: Pool::default() };
    let spoken = send(conversation(stream), &common);
    drop(common);
    let batches = observed.iter().filter_map(|input| match input {
        Input::Departures { batch, .. } => Some(batch),
        _ => None,
    });
    let refused = |event: &crate::events::Event| matches!(event.what, Observation::Refused { .. });
    let refused = batches.map(|batch| batch.events.iter().filter(|event| refused(event)).count()).sum();
    (spoken.broken, refused)
}

#[test]
fn a_peer_that_goes_is_noticed_and_how_it_went() {
    let resets = |stream: TcpStream| {
        trunkline_io::tcp::abort_on_close(&stream).unwrap();
        drop(stream);
    };
    let (how, refused) = send_to(resets);
    assert_eq!(how, Some("reset-by-peer"));
    assert!(refused > 0);
    // A close is answered with data, and that with a reset, of which the next call tells one way or the other.
    let (how, refused) = send_to(drop);
    assert!(matches!(how, Some("closed-by-peer" | "reset-by-peer")), "{how:?}");
    assert!(refused > 0);
}
