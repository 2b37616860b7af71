//! What the tests of the relay share.

mod frames;
mod schedule;
mod threads;

use std::sync::{Arc, Mutex};

use trunkline_core::{PacketId, Port, Seed, Time};
use trunkline_experiment::{Experiment, Files, FilesError};
use trunkline_network::Medium;

use super::{Capture, CoreConfig, RelayCore, Stations};
use crate::checksum::checksum;
use crate::device::{Frame, Layer};

const MTU: u32 = 1500;

/// The link of a file with these keys.
fn medium(keys: &str) -> Box<dyn Medium> {
    medium_between("\"a\", \"b\"", keys)
}

/// The same between these of the hosts `a` to `d`.
fn medium_between(hosts: &str, keys: &str) -> Box<dyn Medium> {
    struct NoFiles;
    impl Files for NoFiles {
        fn read(&self, path: &str) -> Result<Vec<u8>, FilesError> {
            Err(FilesError::new(format!("`{path}` is not there")))
        }
    }
    let text = format!(
        "name = \"t\"\nduration = \"1 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\nc = {{}}\nd = {{}}\n[link.l]\nbetween = [{hosts}]\n{keys}\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = {{ kind = \"voice\" }}\n"
    );
    let experiment =
        Experiment::parse(&text, "t.toml", &NoFiles).unwrap_or_else(|problems| panic!("{problems}"));
    experiment.points.first().scenario.build_links(Seed::new(7, 0)).remove(0)
}

fn config(keys: &str) -> CoreConfig {
    CoreConfig { medium: medium(keys), layer: Layer::Ip, stations: Stations::Two, mtus: vec![MTU; 2] }
}

fn relay(keys: &str) -> RelayCore {
    RelayCore::new(config(keys))
}

/// An IPv4 packet with a UDP header, this number in its payload, and a right header checksum.
fn ipv4(flow: u8, class: u8, number: u32, size: usize) -> Vec<u8> {
    let mut packet = vec![0; size.max(32)];
    let length = packet.len() as u16;
    packet[0] = 0x45;
    packet[1] = class;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    (packet[6], packet[8], packet[9]) = (0x40, 64, 17);
    packet[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 18, 0, 2]);
    packet[20..24].copy_from_slice(&[27, flow, 27, 200]);
    packet[28..32].copy_from_slice(&number.to_be_bytes());
    let sum = checksum(&[&packet[..20]]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(*packet[28..].first_chunk().unwrap())
}

fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1_000)
}

/// Everything that leaves at a port by now.
fn leaving(relay: &mut RelayCore, port: u16) -> Vec<Frame> {
    let mut frames = Vec::new();
    relay.leaving(Port(port), usize::MAX, &mut frames);
    frames
}

/// Keeps what it sees.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Seen>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Arrived(Time, Port, PacketId),
    Delivered(Time, Port, PacketId),
    Dropped(Time, Port, PacketId, &'static str),
}

impl Log {
    fn take(&self) -> Vec<Seen> {
        core::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Capture for Log {
    fn arrived(&mut self, at: Time, port: Port, id: PacketId, _: &[u8]) {
        self.0.lock().unwrap().push(Seen::Arrived(at, port, id));
    }
    fn delivered(&mut self, at: Time, port: Port, id: PacketId, _: &[u8]) {
        self.0.lock().unwrap().push(Seen::Delivered(at, port, id));
    }
    fn dropped(&mut self, at: Time, port: Port, id: PacketId, _: &[u8], cause: &'static str) {
        self.0.lock().unwrap().push(Seen::Dropped(at, port, id, cause));
    }
    fn passed(&mut self, _: Time) {}
}
