//! What each kind of flow does.

use trunkline_live::{FarEnd, LiveOptions, Receive, Spin};
use trunkline_testkit::real_time::in_real_time;

use crate::support::{GoOn, process, run, run_with, scenario, scenario_with};

const VOICE: &str = "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                     source = { kind = \"voice\", samples = 80 }\nchannels = 3\n";

#[test]
fn reflected_voice_comes_back() {
    in_real_time(|| {
        let scenario = scenario("300 ms", &format!("{VOICE}reflect = true\ncount = 2\n"));
        for far_end in [FarEnd::Thread, process()] {
            let (memory, outcome) = run(&scenario, far_end);
            let outcome = outcome.unwrap();
            // 3 channels of 2 members, every 10 ms; each begins somewhere in its first interval.
            assert_eq!(memory.all_arrived(), 30 * 6);
            assert_eq!(memory.send_calls, 30 * 6);
            assert_eq!(memory.stray, 0);
            assert!(!outcome.partial);
            assert_eq!(outcome.duration, scenario.duration);
            assert!(outcome.stalls.is_some() && outcome.cpu.is_some_and(|cpu| !cpu.is_zero()));
        }
    });
}

#[test]
fn voice_that_is_not_reflected_is_reported_by_the_sink() {
    in_real_time(|| {
        let scenario = scenario("300 ms", VOICE);
        for far_end in [FarEnd::Thread, process()] {
            let (memory, outcome) = run(&scenario, far_end);
            assert!(!outcome.unwrap().partial);
            assert_eq!(memory.all_arrived(), 30 * 3);
        }
    });
}

#[test]
fn polling_kernel_stamps_and_sleeping_make_no_difference_to_what_arrives() {
    let scenario = scenario("200 ms", &format!("{VOICE}reflect = true\n"));
    for (receive, spin, kernel_stamps) in
        [(Receive::Polling, Spin::Always, false), (Receive::Blocking, Spin::Never, cfg!(target_os = "linux"))]
    {
        in_real_time(|| {
            let options = LiveOptions { receive, spin, kernel_stamps, ..LiveOptions::new(FarEnd::Thread) };
            let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
            outcome.unwrap();
            assert_eq!(memory.all_arrived(), 20 * 3);
        });
    }
}

#[test]
fn many_members_share_the_sockets() {
    in_real_time(|| {
        let scenario = scenario("200 ms", &format!("{VOICE}count = 100\nreflect = true\n"));
        let (memory, outcome) = run(&scenario, FarEnd::Thread);
        outcome.unwrap();
        assert_eq!(memory.all_arrived(), 20 * 3 * 100);
    });
}

#[test]
fn bulk_over_tcp_arrives_whole() {
    in_real_time(|| {
        let scenario = scenario(
            "300 ms",
            "[flow.bulk]\nfrom = \"a\"\nto = \"b\"\n\
             transport = { kind = \"tcp\", window = \"64 KiB\" }\n\
             source = { kind = \"bulk\", message = \"8 KiB\", bytes = \"400 KiB\" }\ncount = 2\n",
        );
        for far_end in [FarEnd::Thread, process()] {
            let (memory, outcome) = run(&scenario, far_end);
            let outcome = outcome.unwrap();
            assert_eq!(memory.all_arrived(), 2 * 50);
            assert_eq!(memory.stray, 0);
            let counters = &outcome.flows[0].transport_counters;
            assert_eq!(counters["connections-broken"], 0);
            assert!(!cfg!(target_os = "linux") || counters["segments-sent"] > 10, "{counters:?}");
        }
    });
}

#[test]
fn unlimited_bulk_ends_with_the_run() {
    in_real_time(|| {
        let scenario = scenario(
            "200 ms",
            "[flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = { kind = \"tcp\", window = \"32 KiB\" }\n\
             source = { kind = \"bulk\", message = \"8 KiB\" }\n",
        );
        let (memory, outcome) = run(&scenario, FarEnd::Thread);
        assert!(!outcome.unwrap().partial);
        assert!(memory.all_arrived() > 10);
    });
}

#[test]
fn requests_wait_for_their_answers() {
    for transport in ["udp", "tcp"] {
        in_real_time(|| {
            let scenario = scenario(
                "500 ms",
                &format!(
                    "[flow.ask]\nfrom = \"a\"\nto = \"b\"\ntransport = \"{transport}\"\nreflect = true\n\
                 source = {{ kind = \"interactive\", message = \"64 B\", messages = 40 }}\n"
                ),
            );
            let (memory, outcome) = run(&scenario, process());
            assert!(!outcome.unwrap().partial);
            assert_eq!(memory.all_arrived(), 40, "{transport}");
        });
    }
}

#[test]
fn reflected_voice_over_tcp_comes_back() {
    in_real_time(|| {
        let scenario = scenario(
            "200 ms",
            &VOICE.replace("\"udp\"", "\"tcp\"").replace("channels", "reflect = true\nchannels"),
        );
        let (memory, outcome) = run(&scenario, FarEnd::Thread);
        outcome.unwrap();
        assert_eq!(memory.all_arrived(), 20 * 3);
    });
}

#[test]
fn flows_of_no_members_are_no_flows() {
    let scenario = scenario("100 ms", &format!("{VOICE}count = 0\n"));
    let (memory, outcome) = run(&scenario, FarEnd::Thread);
    assert_eq!(outcome.unwrap().flows.len(), 1);
    assert!(memory.messages.is_empty());
}

#[test]
fn requests_are_answered_in_the_size_that_was_asked_for() {
    for (transport, reflect) in [("udp", true), ("udp", false), ("tcp", true), ("tcp", false)] {
        let scenario = scenario_with(
            "until = \"ask\"\n",
            "10 s",
            &format!(
                "[flow.ask]\nfrom = \"a\"\nto = \"b\"\ntransport = \"{transport}\"\nreflect = {reflect}\n\
                 source = {{ kind = \"interactive\", message = \"700 B\", answer = \"4 B\", messages = 40 }}\n"
            ),
        );
        let (memory, outcome) = run(&scenario, process());
        assert!(!outcome.unwrap().partial);
        assert_eq!(memory.all_arrived(), 40, "{transport}");
        let expected = if reflect { 4 } else { 700 };
        assert!(memory.of_flow(0).iter().all(|seen| seen.length == expected), "{transport} {reflect}");
        assert_eq!(memory.stray, 0);
    }
}

#[test]
fn transfers_follow_one_another_and_are_measured() {
    let scenario = scenario_with(
        "until = \"bulk\"\n",
        "20 s",
        "[flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = { kind = \"tcp\", window = \"64 KiB\" }\nchannels = 2\n\
         source = { kind = \"mpuke\", message = \"1024 B\", bytes = \"1 MB\", transfers = 3 }\n",
    );
    for far_end in [FarEnd::Thread, process()] {
        let (mut memory, outcome) = run(&scenario, far_end);
        assert!(!outcome.unwrap().partial);
        // 976 messages of 1024 B and one of 576 B each.
        assert_eq!(memory.all_arrived(), 2 * 3 * 977);
        memory.transfers.sort_unstable();
        assert_eq!(memory.transfers, [0, 0, 0, 1, 1, 1].map(|channel| (0, channel, 1_000_000)));
    }
}

#[test]
fn a_run_ends_with_the_flow_that_it_waits_for() {
    for transport in ["udp", "tcp"] {
        let scenario = scenario_with(
            "until = \"ask\"\ndrain = \"300 ms\"\n",
            "1000 s",
            &format!(
                "{VOICE}reflect = true\n[flow.ask]\nfrom = \"a\"\nto = \"b\"\ntransport = \"{transport}\"\ncount = 2\n\
                 source = {{ kind = \"ipuke\", message = \"1 B\", answer = \"4 B\", messages = 20, think = \"5 ms\" }}\n\
                 [flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = {{ kind = \"tcp\", window = \"16 KiB\" }}\n\
                 source = {{ kind = \"bulk\", message = \"1 KiB\" }}\n"
            ),
        );
        let (memory, outcome) = run(&scenario, FarEnd::Thread);
        let outcome = outcome.unwrap();
        assert!(!outcome.partial);
        assert!(outcome.duration < scenario.duration / 10, "{}", outcome.duration);
        assert_eq!(memory.of_flow(1).len() + memory.of_flow(2).len(), 40);
        assert!(memory.all_arrived() > 40);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_kernels_connections_are_sampled() {
    in_real_time(|| {
        let bulk = |name: &str, rest: &str| {
            format!(
                "[flow.{name}]\nfrom = \"a\"\nto = \"b\"\n{rest}\n\
                 source = {{ kind = \"bulk\", message = \"1 KB\", interval = \"5 ms\" }}\n"
            )
        };
        let flows = [
            bulk("stream", "transport = \"tcp\"\ncount = 2"),
            bulk("datagrams", "transport = \"udp\""),
            bulk("more", "transport = \"tcp\""),
        ];
        let (_, outcome) = run(&scenario("300 ms", &flows.concat()), FarEnd::Thread);
        let flows = outcome.unwrap().flows;
        assert!(flows[1].connection.is_empty(), "UDP has no connection");
        for flow in [&flows[0], &flows[2]] {
            let samples = &flow.connection;
            // At most one each 10 ms, and one at the end.
            assert!((3..=32).contains(&samples.len()), "{}", samples.len());
            assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
            for sample in samples {
                assert!(
                    sample.congestion_window.count() > 0 && sample.smoothed_round_trip.is_some(),
                    "{sample:?}"
                );
                let of = sample.retransmissions;
                assert_eq!(
                    [of.fast, of.rack, of.tail_probe, of.timeout],
                    [None; 4],
                    "the kernel reports no causes"
                );
            }
        }
    });
}
