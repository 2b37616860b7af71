//! DCCP between simulated hosts: how it shares a bottleneck, and what becomes of voice that does not get out.

mod support;

use support::{flow, parse, simulate};
use trunkline_metrics::RepetitionSummary;

/// Flows from `a` to `b` over one bottleneck of 8 Mbit/s with 25 ms each way.
fn beside(queue: &str, flows: &str) -> RepetitionSummary {
    simulate(&parse(&format!(
        "name = \"test\"\nduration = \"60 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
         between = [\"a\", \"b\"]\nrate = \"8 Mbit/s\"\ndelay = \"25 ms\"\nqueue = {queue}\n{flows}"
    )))
}

fn bulk(name: &str, transport: &str, start: &str) -> String {
    format!(
        "[flow.{name}]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nstart = \"{start}\"\n\
         source = {{ kind = \"bulk\", message = \"1040 B\" }}\n"
    )
}

/// Twice what the path holds.
const FIFO: &str = "{ kind = \"fifo\", limit = \"100 packets\" }";
const CODEL: &str = "\"codel\"";
const MARKING: &str = "{ kind = \"codel\", ecn = true }";
const CCID_2: &str = "\"dccp\"";
const CCID_3: &str = "{ kind = \"dccp\", congestion-control = \"ccid-3\" }";
const RENO: &str = "{ kind = \"tcp\", window = \"1 MiB\", congestion-control = \"reno\" }";
const CUBIC: &str = "{ kind = \"tcp\", window = \"1 MiB\", congestion-control = \"cubic\" }";

/// The share of the first of two flows of a whole minute, the mean over five starts of the second: in a FIFO without any
/// randomness the phase decides whose packets are dropped (Floyd and Jacobson 1992). Between them they fill the link.
fn share(queue: &str, first: &str, second: &str) -> f64 {
    let starts = ["100 ms", "130 ms", "170 ms", "230 ms", "310 ms"];
    starts.iter().map(|start| share_of(queue, first, (second, start))).sum::<f64>() / starts.len() as f64
}

fn share_of(queue: &str, first: &str, (second, start): (&str, &str)) -> f64 {
    let summary = beside(queue, &(bulk("one", first, "0 s") + &bulk("two", second, start)));
    let [first, second] =
        ["one", "two"].map(|name| flow(&summary, name).throughput.user.bits_per_second() as f64);
    assert!(first + second > 6.5e6, "{first} and {second} bit/s of 8 Mbit/s");
    first / (first + second)
}

#[test]
fn flows_of_one_kind_share_alike() {
    for transport in [CCID_2, CCID_3] {
        let share = share(FIFO, transport, transport);
        assert!((0.375..0.625).contains(&share), "{transport}: {share}");
    }
}

#[test]
fn smooth_rates_are_fair_to_tcp() {
    // RFC 5348 section 1: within a factor of two of the rate of standard TCP. CUBIC takes more than that (RFC 9438 section 5.1), and
    // so does Reno as Linux has it in a FIFO: after the end of each burst it is acknowledged at once.
    for (queue, tcp, least) in
        [(FIFO, RENO, 0.25), (FIFO, CUBIC, 0.2), (CODEL, RENO, 0.333), (CODEL, CUBIC, 0.2)]
    {
        let share = share(queue, CCID_3, tcp);
        println!("beside {tcp} in {queue}: {share}");
        assert!((least..0.667).contains(&share), "beside {tcp} in {queue}: {share}");
    }
}

#[test]
fn marks_slow_it_down_without_losses() {
    let summary = beside(MARKING, &bulk("marked", CCID_2, "0 s"));
    let marked = flow(&summary, "marked");
    assert!(marked.transport_counters["congestion-marks"] > 10, "{:?}", marked.transport_counters);
    // But for the end of slow start.
    assert!(marked.counts.lost < 100, "{:?}", marked.counts);
    assert!(marked.throughput.user.bits_per_second() > 6_000_000, "{:?}", marked.throughput);
}

/// Voice on a link that carries half of it.
fn voice(options: &str) -> RepetitionSummary {
    simulate(&parse(&format!(
        "name = \"test\"\nduration = \"30 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
         between = [\"a\", \"b\"]\nrate = \"48 kbit/s\"\ndelay = \"10 ms\"\n\
         queue = {{ kind = \"fifo\", limit = \"5 packets\" }}\n[flow.voice]\nfrom = \"a\"\nto = \"b\"\n\
         transport = {{ kind = \"dccp\", congestion-control = \"ccid-3\"{options} }}\n\
         source = {{ kind = \"voice\", samples = 80 }}\n"
    )))
}

#[test]
fn voice_that_does_not_get_out_in_time_is_dropped_at_the_sender() {
    for (options, counter) in [
        (", lifetime = \"50 ms\"", "expired"),
        (", send-queue = \"2 packets\", when-full = \"drop-oldest\"", "dropped-oldest"),
        (", send-queue = \"2 packets\", when-full = \"drop-newest\"", "dropped-newest"),
    ] {
        let summary = voice(options);
        let voice = flow(&summary, "voice");
        let dropped = voice.transport_counters[counter];
        assert!(dropped > 1000, "{counter} in {:?}", voice.transport_counters);
        // Every message has one fate: received, dropped at the sender, or lost in the network.
        assert!(support::nearly(voice.counts.sent, 3000), "{:?}", voice.counts);
        let lost_under_way = voice.counts.lost - dropped;
        assert!(voice.counts.received > 1000 && lost_under_way < 300, "{options}: {:?}", voice.counts);
        // The network's queue holds 5 packets of 116 bytes, 97 ms; what waits at the sender is bounded too.
        let latency = voice.latency.expect("messages were received");
        assert!(latency.max.as_millis_f64() < 250.0, "{options}: {latency:?}");
    }
    let waiting = flow(&voice(""), "voice").latency.expect("messages were received");
    assert!(waiting.max.as_secs_f64() > 1.0, "without a policy everything is late: {waiting:?}");
}

#[test]
fn partial_coverage_lets_damage_behind_it_pass() {
    let flows = |options: &str| {
        format!(
            "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = {{ kind = \"dccp\"{options} }}\n\
             source = {{ kind = \"voice\", samples = 160 }}\n"
        )
    };
    let lost = |options: &str| {
        let experiment = support::experiment("corrupt = \"5 %\"", &flows(options));
        let summary = simulate(&experiment);
        let counts = flow(&summary, "voice").counts;
        counts.lost + counts.unfinished
    };
    let (whole, partial) = (lost(""), lost(", checksum-coverage = \"40 B\""));
    // A flipped bit is within the covered 56 of 216 bytes, or a few more where options stand.
    assert!((1..whole / 2).contains(&partial), "{partial} lost with partial coverage, {whole} without");
}

#[test]
fn voice_on_a_good_link_is_not_held_back() {
    for congestion_control in ["ccid-2", "ccid-3", "ccid-4"] {
        let summary = simulate(&support::experiment(
            "",
            &format!(
                "[flow.voice]\nfrom = \"a\"\nto = \"b\"\nreflect = true\n\
                 transport = {{ kind = \"dccp\", congestion-control = \"{congestion_control}\" }}\n\
                 source = {{ kind = \"voice\", samples = 160 }}\n"
            ),
        ));
        let voice = flow(&summary, "voice");
        let counts = voice.counts;
        assert!(support::nearly(counts.sent, 500) && counts.lost == 0, "{congestion_control}: {counts:?}");
        // There and back 20 ms and twice some 236 bytes at 1 Mbit/s; now and then behind an acknowledgement.
        let latency = voice.latency.expect("messages were received");
        assert!(latency.max.as_millis_f64() < 28.0, "{congestion_control}: {latency:?}");
    }
}

/// Losses often leave CCID 2 a window of one or two packets, each of which is acknowledged at once: a call gets through but for
/// its timeouts.
#[test]
fn a_call_over_a_lossy_path_is_not_left_to_delayed_acknowledgements() {
    for loss in ["loss", "corrupt"] {
        let summary = simulate(&parse(&format!(
            "name = \"test\"\nduration = \"10 s\"\nseed = 7\n[hosts]\na = {{}}\nb = {{}}\n[link.trunk]\n\
             between = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n{loss} = \"5 %\"\n\
             [flow.call]\nfrom = \"a\"\nto = \"b\"\ntransport = {CCID_2}\n\
             source = {{ kind = \"load\", message = \"160 B\", interval = \"20 ms\" }}\n"
        )));
        let counts = &flow(&summary, "call").counts;
        println!("{loss}: {counts:?}");
        assert!(counts.received > 300, "{loss}: {counts:?}");
    }
}
