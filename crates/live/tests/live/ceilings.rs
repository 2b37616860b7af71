//! What the owner of a host allows holds greedy flows back, and nothing else.

use std::sync::Arc;

use trunkline_core::Rate;
use trunkline_live::{Ceiling, FarEnd, HELD_HERE, Limited, LiveOptions, in_packets};
use trunkline_metrics::DriverOutcome;
use trunkline_testkit::real_time::in_real_time;

use crate::support::{GoOn, Memory, run_with, scenario};

const RATE: Rate = Rate::from_bits_per_second(4_000_000);

/// Runs it for a second, with the first flows under a ceiling.
fn run(flows: &str, greedy: usize) -> (Memory, DriverOutcome) {
    let scenario = scenario("1 s", flows);
    let limited = Limited::new((0..greedy).collect(), vec![Arc::new(Ceiling::new(RATE))]);
    let options = LiveOptions { limited, ..LiveOptions::new(FarEnd::Thread) };
    let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
    (memory, outcome.unwrap())
}

fn sent(memory: &Memory, length: usize) -> u64 {
    let of_message = in_packets(trunkline_core::Bytes(length as u64)).0;
    memory.messages.values().filter(|seen| seen.sent == 1).count() as u64 * of_message
}

#[test]
fn greedy_conversations_share_a_rate_and_paced_ones_do_not_notice() {
    in_real_time(|| {
        let flows = "[flow.stream]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\ncount = 2\n\
                     source = { kind = \"bulk\", message = \"4 KB\" }\n\
                     [flow.engine]\nfrom = \"a\"\nto = \"b\"\ntransport = \"quic\"\n\
                     source = { kind = \"bulk\", message = \"4 KB\" }\n\
                     [flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                     source = { kind = \"voice\", samples = 80 }\n";
        let (mut memory, outcome) = run(flows, 2);
        assert_eq!(memory.of_flow(3).len(), 100, "voice");
        memory.messages.retain(|(flow, ..), _| *flow < 3);
        let counts = [0, 1, 2].map(|flow| memory.of_flow(flow).len());
        // In its second the rate comes to 500 KB; the last message of each and what a late wake-up makes up for come on top.
        let sum = sent(&memory, 4000);
        assert!((50_000..530_000).contains(&sum), "{sum} of {counts:?}");
        assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
        for flow in &outcome.flows[..2] {
            assert!(flow.transport_counters[HELD_HERE] > 300, "{:?}", flow.transport_counters);
        }
        assert_eq!(outcome.flows[2].transport_counters.get(HELD_HERE), None);
    });
}

#[test]
fn a_message_that_is_long_is_written_piece_by_piece() {
    in_real_time(|| {
        let flows = "[flow.stream]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\n\
                     source = { kind = \"bulk\", message = \"200 KB\" }\n";
        let (memory, _) = run(flows, 1);
        let arrived = memory.messages.values().filter(|seen| seen.received == 1).count();
        // 400 ms each, and the third ends in the drain time.
        assert!((2..=3).contains(&arrived), "{memory:?}");
    });
}
