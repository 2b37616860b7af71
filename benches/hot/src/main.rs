//! Does one hot path's work under callgrind: `hot PATH`. Without a path it lists them. `cargo xtask instructions` runs all.

use std::process::ExitCode;

use trunkline_hot::Part;
use trunkline_hot::codecs::{self, Chunk, Encoding, Finding};
use trunkline_hot::metrics::SentAndReceived;
use trunkline_hot::network::MediumHop;
use trunkline_hot::queues::{Order, QueueHop};
use trunkline_hot::simulated::Simulation;
use trunkline_hot::traffic::Production;
use trunkline_hot::transport::{TcpBulk, UdpExchange};
use trunkline_network::{medium, queue};
use trunkline_traffic as traffic;

/// Units of work, at least.
const UNITS: u64 = 1000;

type Make = Box<dyn Fn() -> Box<dyn Part>>;

fn main() -> ExitCode {
    let paths = paths();
    let Some(name) = std::env::args().nth(1) else {
        for (name, _) in &paths {
            anstream::println!("{name}");
        }
        return ExitCode::SUCCESS;
    };
    let Some((_, make)) = paths.iter().find(|(known, _)| *known == name) else {
        anstream::eprintln!("hot: there is no path `{name}`");
        return ExitCode::from(2);
    };
    let mut part = make();
    anstream::println!("{}", counted(part.as_mut()));
    ExitCode::SUCCESS
}

/// The work that is counted; returns its units. Callgrind knows it by its name.
#[inline(never)]
fn counted(part: &mut dyn Part) -> u64 {
    let mut done = 0;
    while done < UNITS {
        done += part.step();
    }
    done
}

/// Every path with its name.
fn paths() -> Vec<(String, Make)> {
    let mut paths: Vec<(String, Make)> = Vec::new();
    fn add<P: Part + 'static>(paths: &mut Vec<(String, Make)>, name: &str, make: impl Fn() -> P + 'static) {
        paths.push((name.replace(", ", "-").replace(' ', "-"), Box::new(move || Box::new(make()))));
    }
    add(&mut paths, "simulation/hop of a call", Simulation::of_calls);
    add(&mut paths, "simulation/packet of TCP", Simulation::of_tcp);
    for kind in queue::KINDS {
        add(&mut paths, &format!("queue/{}", kind.name), move || QueueHop::new(kind, 1000, Order::Steady));
    }
    for kind in medium::KINDS {
        add(&mut paths, &format!("link/{}, idle", kind.name), move || MediumHop::new(kind, 0));
        add(&mut paths, &format!("link/{}, congested", kind.name), move || MediumHop::new(kind, 50));
    }
    // What a custom source costs is the cost of its function.
    for kind in traffic::KINDS.iter().filter(|kind| kind.name != traffic::CUSTOM) {
        add(&mut paths, &format!("source/{}", kind.name), move || Production::new(kind, 1));
    }
    add(&mut paths, "transport/UDP, 160 B", || UdpExchange::new(160));
    add(&mut paths, "transport/TCP, 8 KiB", TcpBulk::new);
    add(&mut paths, "meter/sent and received", || SentAndReceived::new(1000));
    add(&mut paths, "framing/encode", || Encoding(codecs::datagram(1, 80)));
    add(&mut paths, "framing/find", || Finding(codecs::datagram(1, 80)));
    add(&mut paths, "framing/take apart", || Chunk::new(160));
    paths
}
