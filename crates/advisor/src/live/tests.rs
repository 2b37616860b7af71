use std::net::TcpListener;

use trunkline_calls::{Bounds, Server, ServerOptions, Stop};
use trunkline_core::Duration;

use super::*;
use crate::configuration::Blocks;
use crate::plan::Stage;

fn step(until: Time) -> Step {
    let blocks = Blocks { sample_rate: 48_000, frames: 128, channels: 1, sample_bytes: 2 };
    Step {
        configuration: Configuration {
            transport: Transport::UDP,
            blocks,
            load: Load::Idle,
            marking: Marking::Expedited,
        },
        stage: Stage::Transports,
        settling: Duration::ZERO,
        lasting: Duration::from_millis(100),
        until,
    }
}

/// Connects, since the system does that for it, and never says anything.
fn silent() -> (TcpListener, Live) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap().to_string();
    (listener, Live { server, client: Client::default() })
}

#[test]
fn a_server_that_says_nothing_is_left_when_time_is_up() {
    let (_listener, mut live) = silent();
    let until = now() + Duration::from_millis(400);
    live.measure(&step(until), &()).unwrap_err();
    // Ten times as much as a busy machine should need.
    assert!(now() < until + Duration::from_secs(4));
}

#[test]
fn bulk_keeps_within_the_bounds_of_the_server() {
    let usual = ServerOptions::default();
    let options = ServerOptions {
        address: "127.0.0.1:0".parse().unwrap(),
        all: Bounds { rate: 1_000_000, ..usual.all },
        longest_source: Duration::from_millis(50),
        ..usual
    };
    let (server, stop) = (Server::bind(options, ()).unwrap(), Stop::new().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(&stop).unwrap());
        let mut live =
            Live { server: server.local_address().unwrap().to_string(), client: Client::default() };
        let mut step = step(now() + Duration::from_secs(10));
        step.configuration.load = Load::Bulk;
        let measured = live.measure(&step, &());
        stop.stop();
        assert!(measured.unwrap().bulk.is_some());
    });
}

#[test]
fn a_measurement_that_is_stopped_ends_long_before_its_time() {
    struct Stopped;
    impl Observer for Stopped {
        fn is_stopped(&self) -> bool {
            true
        }
    }
    let (_listener, mut live) = silent();
    let begun = now();
    live.measure(&step(begun + Duration::from_secs(60)), &Stopped).unwrap_err();
    assert!(now().since(begun) < Duration::from_secs(30));
}
