//! Congestion control end to end.

use trunkline_core::{Duration, Rate, Seed, Time};
use trunkline_testkit::pair::{Pair, Path, Side};
use trunkline_transport::SendError;
use trunkline_transport::dccp::{Ccid, DccpConfig, throughput};

use super::ends;

struct Run {
    pair: Pair,
    size: usize,
    received: u64,
    full: bool,
    started: Time,
}

impl Run {
    fn new(config: &DccpConfig, path: Path, size: usize, seed: u64) -> Run {
        let (near, far) = ends(config, seed);
        let back = Path::with_latency(path.latency);
        let mut pair = Pair::new(near, far, [Path::with_latency(path.latency), back], Seed::new(seed, 0));
        pair.drive();
        *pair.path(Side::Near) = path;
        let started = pair.now();
        Run { pair, size, received: 0, full: false, started }
    }

    fn go_on_for(&mut self, time: Duration) -> u64 {
        let until = self.pair.now() + time;
        let before = self.received;
        let message = vec![7; self.size];
        loop {
            while !self.full {
                match self.pair.send(Side::Near, &message) {
                    Ok(()) => {}
                    Err(SendError::Full) => self.full = true,
                    Err(error) => panic!("{error} at {}", self.pair.now()),
                }
            }
            if !self.pair.step_until(until) {
                break;
            }
            let mut buffer = Vec::new();
            while self.pair.receive(Side::Far, &mut buffer) {
                self.received += 1;
            }
            if self.pair.take_event(Side::Near, trunkline_transport::Event::Writable) {
                self.full = false;
            }
        }
        self.pair.drive_until(until);
        self.received - before
    }
}

#[test]
fn explore() {
    for ccid in Ccid::ALL {
        for loss in [0.0, 0.001, 0.01, 0.05, 0.1] {
            let config = DccpConfig { ccid, ..DccpConfig::default() };
            let path = Path {
                loss,
                rate: Some(Rate::from_bits_per_second(20_000_000)),
                ..Path::with_latency(Duration::from_millis(25))
            };
            let size = if ccid == Ccid::TfrcSmallPackets { 160 } else { 1000 };
            let mut run = Run::new(&config, path, size, 3);
            let mut all = Vec::new();
            for _ in 0..6 {
                all.push(run.go_on_for(Duration::from_secs(10)) as f64 * size as f64 / 10.0);
            }
            let eq = throughput(if size == 160 { 1460.0 } else { 1000.0 }, 0.05, loss.max(1e-9));
            println!(
                "{ccid:?} loss {loss}: {all:.0?} B/s; equation {eq:.0}; mathis {:.0}",
                1000.0 / 0.05 * 1.2247 / loss.sqrt()
            );
            let _ = run.started;
        }
    }
}
