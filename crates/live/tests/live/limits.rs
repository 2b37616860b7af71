//! Messages that a transport does not carry.

use trunkline_testkit::real_time::in_real_time;

use crate::support::{process, run, scenario};

#[test]
fn what_is_larger_than_a_packet_is_refused_and_the_limit_is_said() {
    in_real_time(|| {
        let source = "{ kind = \"load\", message = { kind = \"uniform\", min = \"100 B\", max = \"3 KiB\" }, \
                      interval = \"5 ms\" }";
        for transport in
            ["{ kind = \"dccp\", encapsulation = \"udp\" }", "{ kind = \"quic\", mode = \"datagrams\" }"]
        {
            let flow = format!(
                "[flow.mixed]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nsource = {source}\n"
            );
            let (memory, outcome) = run(&scenario("300 ms", &flow), process());
            let outcome = outcome.unwrap();
            let refused: u32 = memory.of_flow(0).iter().map(|seen| seen.refused).sum();
            let counters = &outcome.flows[0].transport_counters;
            let said = |(name, count): (&String, &u64)| {
                Some((name.strip_prefix("refused-larger-than-")?.parse::<u64>().ok()?, *count))
            };
            let (limit, count) = counters.iter().find_map(said).unwrap();
            assert!((1000..1500).contains(&limit), "{transport}: {limit}");
            assert!(refused > 0 && count == u64::from(refused), "{transport}: {count} of {refused}");
            assert!(memory.of_flow(0).iter().all(|seen| seen.length <= limit), "{transport}");
            assert!(memory.of_flow(0).iter().any(|seen| seen.received == 1), "{transport}");
        }
    });
}
