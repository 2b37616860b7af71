//! TCP flows beside a call, compared with Linux 6.1's TCP in virtual time.

use trunkline_metrics::RepetitionSummary;

use crate::support::{flow, parse, simulate};

/// A bottleneck with its queue, the load, and what Linux's TCP makes of them: goodput in Mbit/s, mean and 99th percentile of
/// the call's one-way delay in ms.
struct Cell {
    rate: u32,
    round_trip: u32,
    /// Keys of the link.
    queue: String,
    transport: &'static str,
    count: u32,
    kernel: [f64; 3],
}

/// A byte FIFO that holds a number of bandwidth-delay products.
fn fifo(megabits: u32, round_trip: u32, products: u32) -> String {
    format!("queue = {{ kind = \"fifo\", limit = \"{} B\" }}", megabits * 125 * round_trip * products)
}

fn cell(
    rate: u32,
    round_trip: u32,
    products: u32,
    transport: &'static str,
    count: u32,
    kernel: [f64; 3],
) -> Cell {
    Cell { rate, round_trip, queue: fifo(rate, round_trip, products), transport, count, kernel }
}

/// Runs a cell. The call begins at `start`, the transfers at 0.
fn run(cell: &Cell, seed: u32, start: &str) -> RepetitionSummary {
    let Cell { rate, round_trip, queue, transport, count, .. } = cell;
    let delay = f64::from(*round_trip) / 2.0;
    simulate(&parse(&format!(
        "name = \"test\"\nduration = \"30 s\"\ndrain = \"5 s\"\nseed = {seed}\n[hosts]\na = {{}}\nb = {{}}\n\
         [link.trunk]\nbetween = [\"a\", \"b\"]\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\n{queue}\n\
         [flow.bulk]\nfrom = \"a\"\nto = \"b\"\ncount = {count}\n\
         transport = {{ kind = \"tcp\", congestion-control = \"{transport}\" }}\n\
         source = {{ kind = \"bulk\", message = \"8 KiB\" }}\n\
         [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nstart = \"{start}\"\n\
         source = {{ kind = \"voice\", samples = 80 }}\n"
    )))
}

/// The same three figures here.
fn figures(summary: &RepetitionSummary) -> [f64; 3] {
    let delay = flow(summary, "voice").latency.expect("packets of the call arrived");
    [
        flow(summary, "bulk").throughput.user.bits_per_second() as f64 / 1e6,
        delay.mean.as_secs_f64() * 1e3,
        delay.p99.as_secs_f64() * 1e3,
    ]
}

#[test]
fn one_flow_fills_the_link_and_the_queue_as_linux_does() {
    let cells = [
        cell(2, 100, 1, "cubic", 1, [1.80, 122.1, 147.3]),
        cell(2, 20, 4, "cubic", 1, [1.82, 76.3, 92.0]),
        cell(10, 20, 1, "cubic", 1, [9.49, 23.5, 29.9]),
        cell(10, 100, 1, "cubic", 1, [9.38, 121.5, 149.9]),
        cell(10, 20, 4, "cubic", 4, [9.50, 81.4, 89.4]),
        cell(10, 20, 1, "reno", 1, [9.48, 20.6, 29.9]),
        cell(10, 100, 1, "reno", 1, [9.38, 104.4, 149.5]),
    ];
    for cell in &cells {
        let Cell { rate, round_trip, transport, count, kernel, .. } = cell;
        let figures = figures(&run(cell, 7, "0 s"));
        let off = |index: usize| (figures[index] / kernel[index] - 1.0).abs();
        assert!(
            off(0) < 0.05 && off(1) < 0.10 && off(2) < 0.10,
            "{count} x {transport} over {rate} Mbit/s and {round_trip} ms: {figures:?}, the kernel has {kernel:?}"
        );
    }
}

/// Queue management, random loss and BBR. The call begins a second after the transfer, when slow start is over, as it did where
/// the kernel was measured: from the beginning, the 300 ms of slow start alone would decide on the 99th percentile. With random
/// loss, that of nine runs of the kernel was 13.0 to 21.0 ms: here its mean, and more runs.
#[test]
fn beside_queue_management_loss_and_bbr_a_call_waits_as_long_as_beside_linux() {
    let lossy = format!("{}\nloss = \"1 %\"\nbackward = {{ loss = \"0 %\" }}", fifo(10, 20, 1));
    let cells = [
        ("queue = \"codel\"", "cubic", [9.47, 14.4, 20.4], 1, 0.10),
        ("queue = \"pie\"", "cubic", [9.49, 26.3, 42.9], 1, 0.10),
        (&lossy, "cubic", [5.56, 10.6, 16.3], 6, 0.20),
        (&fifo(10, 20, 4), "bbr", [9.35, 17.6, 22.3], 1, 0.10),
    ];
    for (queue, transport, kernel, runs, of_p99) in cells {
        let cell = Cell { rate: 10, round_trip: 20, queue: queue.to_owned(), transport, count: 1, kernel };
        let all: Vec<[f64; 3]> = (0..runs).map(|n| figures(&run(&cell, 7 + n, "1 s"))).collect();
        let mean = |index: usize| all.iter().map(|figures| figures[index]).sum::<f64>() / f64::from(runs);
        let off = |index: usize| (mean(index) / kernel[index] - 1.0).abs();
        assert!(
            off(0) < 0.05 && off(1) < 0.10 && off(2) < of_p99,
            "{transport} through {queue}: {all:?}, the kernel has {kernel:?}"
        );
    }
}
