//! A relay makes no allocation per packet.

#![cfg(target_os = "linux")]

use trunkline_core::{Port, Seed, Time};
use trunkline_experiment::{Experiment, Files, FilesError};
use trunkline_testkit::alloc::{CountingAllocator, allocations_during};
use trunkline_wire::device::{Frame, Layer};
use trunkline_wire::relay::{CoreConfig, RelayCore, Stations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct NoFiles;

impl Files for NoFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
        Err(FilesError::new(format!("`{path}` is not there")))
    }
}

fn relay(queue: &str) -> RelayCore {
    let text = format!(
        "name = \"t\"\nduration = \"1 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
         rate = \"1 Gbit/s\"\ndelay = \"1 ms\"\nqueue = {{ kind = \"{queue}\" }}\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n\
         transport = \"udp\"\nsource = {{ kind = \"voice\" }}\n"
    );
    let experiment =
        Experiment::parse(&text, "t.toml", &NoFiles).unwrap_or_else(|problems| panic!("{problems}"));
    let medium = experiment.points.first().scenario.build_links(Seed::new(7, 0)).remove(0);
    RelayCore::new(CoreConfig { medium, layer: Layer::Ip, stations: Stations::Two, mtus: vec![1500; 2] })
}

/// A packet of 200 bytes of one of 40 flows.
fn packet(flow: u8) -> Vec<u8> {
    let mut packet = vec![0; 200];
    packet[0] = 0x45;
    packet[9] = 17;
    packet[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2]);
    packet[20..24].copy_from_slice(&[27, flow % 40, 27, 1]);
    packet
}

#[test]
fn relayed_packets_cost_no_allocation() {
    for queue in ["fifo", "fq-codel", "round-robin"] {
        let mut relay = relay(queue);
        // Frames that have left come again.
        let mut frames: Vec<Frame> =
            (0..160).map(|flow| Frame { at: Time::ZERO, bytes: packet(flow) }).collect();
        let mut now = 0;
        let mut relayed = 0;
        let mut round = |frames: &mut Vec<Frame>| {
            for (port, frame) in [0, 1].into_iter().cycle().zip(frames.drain(..)) {
                relay.take(Port(port), Frame { at: Time::from_nanos(now), ..frame });
            }
            now += 10_000_000;
            relay.run(Time::from_nanos(now));
            (0..2).for_each(|port| relay.leaving(Port(port), usize::MAX, frames));
            relayed += frames.len();
        };
        for _ in 0..4 {
            round(&mut frames);
        }
        let (allocations, ()) = allocations_during(|| (0..20).for_each(|_| round(&mut frames)));
        assert_eq!((allocations, frames.len(), relayed), (0, 160, 24 * 160), "{queue}");
    }
}
