//! A packet costs no allocation once everything has grown to its size.

mod support;

use support::{GoOn, parse, run};
use trunkline_metrics::Meter;
use trunkline_testkit::alloc::{CountingAllocator, allocations_during, peak_during};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn ten_times_the_packets_allocate_nothing_more() {
    let allocations = |seconds: u32| {
        let experiment = parse(&format!(
            "name = \"test\"\nduration = \"{seconds} s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
             between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nqueue = {{ kind = \"fifo\", limit = \"20 packets\" }}\n\
             [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = {{ kind = \"voice\" }}\nchannels = 4\nreflect = true\n\
             [flow.load]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
             source = {{ kind = \"load\", message = \"1000 B\", interval = \"9 ms\" }}\n"
        ));
        let (count, outcome) =
            allocations_during(|| run(&experiment.points.first().scenario, 7, &mut (), &mut GoOn));
        let delivered: u64 = outcome.links.iter().map(|link| link.delivered).sum();
        (count, delivered)
    };
    let (short, few) = allocations(3);
    let (long, many) = allocations(30);
    assert!(many > 9 * few, "{few} and {many} packets");
    // The event queue's buckets may still grow a little when more bits of the clock come into use.
    assert!(long < short + 64, "{short} allocations for {few} packets, {long} for {many}");
}

#[test]
fn ten_times_the_voice_through_fifos_allocates_nothing_more() {
    let allocations = |seconds: u32| {
        let experiment = parse(&format!(
            "name = \"test\"\nduration = \"{seconds} s\"\n[hosts]\na = {{}}\n[hosts.b]\n[link.trunk]\n\
             between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\njitter = {{ kind = \"exponential\", mean = \"30 ms\" }}\n\
             [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nchannels = 4\n\
             source = {{ kind = \"voice\", fifo = 800 }}\nplayback = {{ kind = \"fifo\", depth = 320 }}\n"
        ));
        let scenario = &experiment.points.first().scenario;
        let mut trace = ();
        let mut meter = Meter::new(&[scenario.flows[0].meta.clone()], &mut trace);
        let (count, outcome) = allocations_during(|| run(scenario, 7, &mut meter, &mut GoOn));
        let path = meter.finish(outcome).flows.remove(0).voice_path.unwrap();
        assert!(path.underflows > 0 && path.playback_overflows > 0, "{path:?}");
        count
    };
    let (short, long) = (allocations(3), allocations(30));
    // Of 10,800 packets more: lists of measured delays double now and then, and the longest delays become longer.
    assert!(long < short + 200, "{short} and {long} allocations");
}

/// All that the simulator and the meter hold for a call with 10 ms of speech in a packet and two or three packets on their way.
#[test]
fn what_a_channel_of_voice_takes_is_small() {
    let peak = |channels: u32| {
        let experiment = parse(&format!(
            "name = \"test\"\nduration = \"100 ms\"\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
             between = [\"a\", \"b\"]\nrate = \"10 Gbit/s\"\ndelay = \"20 ms\"\n\
             [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nsource = {{ kind = \"voice\" }}\ncount = {channels}\n"
        ));
        let scenario = &experiment.points.first().scenario;
        let (peak, summary) = peak_during(|| {
            let mut trace = ();
            let mut meter = Meter::new(&[scenario.flows[0].meta.clone()], &mut trace);
            let outcome = run(scenario, 7, &mut meter, &mut GoOn);
            meter.finish(outcome)
        });
        assert_eq!(summary.flows[0].counts.received, u64::from(10 * channels));
        peak
    };
    // Lists double: between powers of two there is the same room to spare.
    let (few, many) = (peak(3_000), peak(12_000));
    let each = (many - few) / 9_000;
    assert!(each < 1_250, "{each} bytes for a channel");
}
