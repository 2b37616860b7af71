//! How fast the FDDI ring is: packet-hops and token rotations per second, alone and in the simulator with 10,000 voice
//! channels, and what an idle ring costs.
//!
//! `cargo run --release -p trunkline-benches --bin ring`

use std::fmt::Write;
use std::time::Instant;

use clap::Parser;
use trunkline_benches::{GoOn, Spread, experiment};
use trunkline_core::{Amount, Bytes, Destination, Duration, Packet, PacketId, Port, Seed, Time};
use trunkline_metrics::{FlowMeta, Meter};
use trunkline_network::impairment::Impairments;
use trunkline_network::medium::{self, PortConfig};
use trunkline_network::{Medium, Outcome, queue};
use trunkline_testkit::values::values;

/// Speed of the ring.
#[derive(Parser)]
struct Options {
    /// Rounds of each measurement
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Stations on the ring
    #[arg(long, default_value_t = 100)]
    stations: u16,
    /// Voice channels in the simulator
    #[arg(long, default_value_t = 10_000)]
    channels: u32,
    /// Simulated seconds of them
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Packets of each measurement of the ring alone
    #[arg(long, default_value_t = 1_000_000)]
    packets: u64,
}

fn main() {
    let options = Options::parse();
    anstream::println!(
        "{} stations, {} rounds, medians (smallest to largest)\n",
        options.stations,
        options.rounds
    );
    for (what, gap) in [
        ("a packet every 25 us", Duration::from_micros(25)),
        ("a packet every ms", Duration::from_millis(1)),
        ("a packet every hour", Duration::from_secs(3600)),
    ] {
        let rounds: Vec<[f64; 2]> = (0..options.rounds).map(|_| alone(&options, gap)).collect();
        let [nanos, rotations] = [0, 1].map(|i| rounds.iter().map(|round| round[i]).collect::<Vec<_>>());
        anstream::println!(
            "the ring alone, {what:21} {:.0} ns each, {:.3} million rotations per second",
            Spread::of(&nanos),
            Spread::of(&rotations)
        );
    }
    let rounds: Vec<[f64; 3]> = (0..options.rounds).map(|_| simulated(&options)).collect();
    let [hops, rotations, speed] = [0, 1, 2].map(|i| rounds.iter().map(|round| round[i]).collect::<Vec<_>>());
    anstream::println!(
        "\n{} voice channels on a ring of 1 Gbit/s in the simulator:\n  {:.2} million packet-hops per second\n  \
         {:.3} million token rotations per second\n  {:.1} times as fast as real time",
        options.channels,
        Spread::of(&hops),
        Spread::of(&rotations),
        Spread::of(&speed)
    );
}

/// Nanoseconds per packet of 200 B of which one comes in every `gap`, at one station after the other, and millions of
/// token rotations per second.
fn alone(options: &Options, gap: Duration) -> [f64; 2] {
    let mut ring = ring(options.stations);
    let (mut out, mut now, mut buffers) = (Outcome::default(), Time::ZERO, Vec::new());
    let start = Instant::now();
    for id in 0..options.packets {
        now += gap;
        let from = (id * 7 % u64::from(options.stations)) as u16;
        let to = Destination::Port(Port((from + options.stations / 2) % options.stations));
        let bytes: Vec<u8> = buffers.pop().unwrap_or_default();
        let packet = Packet { id: PacketId(id), size: Bytes(200), to, bytes, ..Packet::default() };
        ring.offer(now, Port(from), packet, &mut out);
        while let Some(next) = ring.next_event().filter(|&next| next <= now + gap) {
            ring.advance(next, &mut out);
        }
        buffers.extend(out.deliveries.drain(..).map(|delivery| delivery.packet.bytes));
    }
    let took = start.elapsed().as_secs_f64();
    assert!(out.fates.0.is_empty(), "the ring is meant to carry all");
    let figures = ring.figures(now.since(Time::ZERO));
    let rotations =
        figures.iter().find(|figure| figure.name == "token-rotations").and_then(|figure| figure.amount);
    [took * 1e9 / options.packets as f64, count(rotations) / took / 1e6]
}

fn ring(stations: u16) -> Box<dyn Medium> {
    let kind = medium::find("fddi").expect("it is registered");
    let (shared, own) = (values(kind.shared, &[]), values(kind.parameters, &[]));
    let fifo = &queue::KINDS[0];
    let port = |port| PortConfig {
        place: format!("link.ring/{port}"),
        values: &own,
        queue: (fifo.build)(&values(fifo.parameters, &[]), Seed::new(1, 0).stream("queue")),
        impairments: Impairments::default(),
    };
    (kind.build)(&shared, (0..stations).map(port).collect(), Seed::new(1, 0))
}

/// Millions of packet-hops and of token rotations per second, and simulated seconds per second.
fn simulated(options: &Options) -> [f64; 3] {
    let experiment = experiment(&scenario(options));
    let scenario = &experiment.points.first().scenario;
    let metas: Vec<FlowMeta> = scenario.flows.iter().map(|flow| flow.meta.clone()).collect();
    let mut trace = ();
    let mut meter = Meter::new(&metas, &mut trace);
    let started = Instant::now();
    let outcome = trunkline_simulator::run(scenario, Seed::new(7, 0), &mut meter, &mut GoOn)
        .unwrap_or_else(|error| panic!("{error}"));
    let summary = meter.finish(outcome);
    let took = started.elapsed().as_secs_f64();
    let lost: u64 = summary.flows.iter().map(|flow| flow.counts.sent - flow.counts.received).sum();
    assert_eq!(lost, 0, "the scenario is meant to lose nothing");
    let hops: u64 = summary.links.iter().map(|link| link.delivered).sum();
    let figures = &summary.media[0].figures;
    let rotations =
        figures.iter().find(|(name, _)| name == "token-rotations").and_then(|(_, amount)| *amount);
    [hops as f64 / took / 1e6, count(rotations) / took / 1e6, f64::from(options.seconds) / took]
}

/// Every station sends its share of the channels, 320 samples every 40 ms, to the station opposite: 640 Mbit/s of speech,
/// for which a ring of 100 Mbit/s has no room.
fn scenario(options: &Options) -> String {
    let stations = options.stations;
    let mut text = format!("name = \"ring\"\nduration = \"{} s\"\nseed = 7\n[hosts]\n", options.seconds);
    let mut write = |line: std::fmt::Arguments| _ = text.write_fmt(line); // to a string: cannot fail
    (0..stations).for_each(|s| write(format_args!("s{s} = {{}}\n")));
    let names: Vec<String> = (0..stations).map(|s| format!("\"s{s}\"")).collect();
    write(format_args!(
        "[link.ring]\nmedium = \"fddi\"\nrate = \"1 Gbit/s\"\nbetween = [{}]\n",
        names.join(", ")
    ));
    for s in 0..stations {
        let to = (s + stations / 2) % stations;
        let count = options.channels / u32::from(stations);
        write(format_args!(
            "[flow.v{s}]\nfrom = \"s{s}\"\nto = \"s{to}\"\ntransport = \"udp\"\ncount = {count}\n"
        ));
        write(format_args!("source = {{ kind = \"voice\", samples = 320 }}\n"));
    }
    text
}

fn count(amount: Option<Amount>) -> f64 {
    match amount {
        Some(Amount::Count(count)) => count as f64,
        other => panic!("{other:?} is no count"),
    }
}
