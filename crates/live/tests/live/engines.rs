//! Flows over protocol engines of ours, whose packets travel in UDP datagrams.

use trunkline_core::Seed;
use trunkline_live::{FarEnd, LiveError, LiveOptions, Receive};
use trunkline_metrics::Meter;
use trunkline_testkit::real_time::in_real_time;
use trunkline_testkit::skips::{Missing, skip_without};

use crate::support::{GoOn, Memory, process, run, run_with, scenario, scenario_with};

const XTP: &str = "{ kind = \"xtp\", encapsulation = \"udp\" }";
const DCCP: &str = "{ kind = \"dccp\", encapsulation = \"udp\" }";
const SCTP: &str = "{ kind = \"sctp\", encapsulation = \"udp\" }";
/// Members that share an association, and messages that overtake each other.
const ONE_TO_MANY: &str =
    "{ kind = \"sctp\", encapsulation = \"udp\", style = \"one-to-many\", streams = 4 }";
const PR_SCTP: &str = "{ kind = \"sctp\", encapsulation = \"udp\", ordered = false, retransmissions = 0 }";
const DATAGRAMS: &str = "{ kind = \"quic\", mode = \"datagrams\" }";

/// Those that repair what is lost.
const RELIABLE: [&str; 6] =
    ["\"urp\"", XTP, SCTP, ONE_TO_MANY, "\"quic\"", "{ kind = \"quic\", mode = \"streams\" }"];
/// Those that do not, but hold their sender back.
const HOLDING_BACK: [&str; 3] = [DCCP, PR_SCTP, DATAGRAMS];

fn all() -> impl Iterator<Item = &'static str> {
    RELIABLE.into_iter().chain(HOLDING_BACK).chain(["\"rtp\""])
}

fn voice(transport: &str, keys: &str) -> String {
    format!(
        "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\n\
         source = {{ kind = \"voice\", samples = 80 }}\nchannels = 3\n{keys}"
    )
}

fn bulk(transport: &str, source: &str) -> String {
    format!(
        "[flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nsource = {{ kind = \"bulk\", {source} }}\n"
    )
}

#[test]
fn reflected_voice_comes_back() {
    for transport in all() {
        let scenario = scenario("300 ms", &voice(transport, "reflect = true\ncount = 2\n"));
        for far_end in [FarEnd::Thread, process()] {
            in_real_time(|| {
                let (memory, outcome) = run(&scenario, far_end.clone());
                let outcome = outcome.unwrap();
                assert_eq!(memory.all_arrived(), 30 * 6, "{transport}");
                assert_eq!((memory.send_calls, memory.stray), (30 * 6, 0), "{transport}");
                assert!(!outcome.partial);
                assert_eq!(outcome.flows[0].transport_counters["connections-broken"], 0, "{transport}");
            });
        }
    }
}

#[test]
fn what_an_engine_holds_back_accumulates_in_fifos() {
    in_real_time(|| {
        // A third of what three channels and their headers need.
        let slow = "{ kind = \"xtp\", encapsulation = \"udp\", rate = \"100 kbit/s\", burst = \"2 KB\", window = \"2 KiB\" }";
        let fifo = voice(slow, "playback = \"fifo\"\n").replace("80 }", "80, fifo = 300 }");
        let scenario = scenario("500 ms", &fifo);
        let mut none = ();
        let mut recorder = (Memory::default(), Meter::new(&[scenario.flows[0].meta.clone()], &mut none));
        let options = LiveOptions::new(FarEnd::Thread);
        let outcome =
            trunkline_live::run(&scenario, Seed::new(7, 0), &options, &mut recorder, &mut GoOn).unwrap();
        let (memory, meter) = recorder;
        let received: u64 =
            memory.messages.values().filter(|seen| seen.received == 1).map(|seen| seen.length).sum();
        assert!(memory.messages.values().any(|seen| seen.length > 80));
        let lost = memory.samples_lost;
        assert!(lost > 0 && received + lost <= 3 * 50 * 80, "{received} received, {lost} lost");
        let path = meter.finish(outcome).flows.remove(0).voice_path.unwrap();
        assert_eq!(path.capture_lost, lost);
        assert_eq!(path.start_up.map(|delay| delay.count), Some(3));
    });
}

#[test]
fn voice_that_is_not_reflected_is_reported_by_the_sink() {
    for transport in all() {
        in_real_time(|| {
            let scenario = scenario("300 ms", &voice(transport, ""));
            let (memory, outcome) = run(&scenario, process());
            assert!(!outcome.unwrap().partial);
            assert_eq!(memory.all_arrived(), 30 * 3, "{transport}");
        });
    }
}

#[test]
fn bulk_arrives_whole() {
    for transport in RELIABLE.into_iter().chain(HOLDING_BACK) {
        in_real_time(|| {
            let source = "message = \"1000 B\", bytes = \"200 KB\"";
            let scenario =
                scenario_with("until = \"bulk\"\n", "20 s", &(bulk(transport, source) + "count = 2\n"));
            let (memory, outcome) = run(&scenario, process());
            let outcome = outcome.unwrap();
            assert!(!outcome.partial && outcome.duration < scenario.duration, "{transport}");
            assert_eq!(memory.of_flow(0).len() + memory.of_flow(1).len(), 400, "{transport}");
            assert_eq!(memory.stray, 0, "{transport}");
            if RELIABLE.contains(&transport) {
                assert_eq!(memory.all_arrived(), 400, "{transport}");
            }
        });
    }
}

#[test]
fn unlimited_bulk_ends_with_the_run() {
    for transport in RELIABLE.into_iter().chain(HOLDING_BACK) {
        in_real_time(|| {
            let scenario = scenario("200 ms", &bulk(transport, "message = \"1000 B\""));
            let (memory, outcome) = run(&scenario, process());
            assert!(!outcome.unwrap().partial);
            let received = memory.of_flow(0).iter().filter(|seen| seen.received == 1).count();
            assert!(received > 10, "{transport}: {received}");
        });
    }
}

#[test]
fn requests_are_answered() {
    for transport in all() {
        for reflect in [true, false] {
            let scenario = scenario_with(
                "until = \"ask\"\n",
                "20 s",
                &format!(
                    "[flow.ask]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\nreflect = {reflect}\n\
                     source = {{ kind = \"interactive\", message = \"700 B\", answer = \"4 B\", messages = 40 }}\n"
                ),
            );
            let (memory, outcome) = run(&scenario, process());
            assert!(!outcome.unwrap().partial);
            assert_eq!(memory.all_arrived(), 40, "{transport}");
            let expected = if reflect { 4 } else { 700 };
            assert!(memory.of_flow(0).iter().all(|seen| seen.length == expected), "{transport} {reflect}");
        }
    }
}

/// Whether a counter tells of what was sent again.
fn is_repair(name: &str) -> bool {
    name.contains("retransmi") || name.contains("lost")
}

#[test]
fn a_lossy_path_loses_nothing_of_a_reliable_transport() {
    for transport in [
        "{ kind = \"urp\", timeout = \"20 ms\" }",
        "{ kind = \"xtp\", encapsulation = \"udp\", wait = \"20 ms\" }",
        SCTP,
        "\"quic\"",
    ] {
        let source = "message = \"1000 B\", bytes = \"100 KB\"";
        let flow = bulk(transport, source) + "reflect = true\n";
        let scenario = scenario_with("until = \"bulk\"\ndrain = \"20 s\"\n", "20 s", &flow);
        let options = LiveOptions { lose_every: 20, ..LiveOptions::new(process()) };
        let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
        let outcome = outcome.unwrap();
        assert_eq!(memory.all_arrived(), 100, "{transport}");
        let counters = &outcome.flows[0].transport_counters;
        assert!(
            counters.iter().any(|(name, count)| is_repair(name) && *count > 0),
            "{transport}: {counters:?}"
        );
    }
}

#[test]
fn a_lossy_path_loses_some_of_an_unreliable_transport_and_corrupts_none() {
    in_real_time(|| {
        let scenario = scenario("300 ms", &voice(DCCP, ""));
        let options = LiveOptions { lose_every: 10, ..LiveOptions::new(process()) };
        let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
        outcome.unwrap();
        let seen = memory.of_flow(0);
        let received: u32 = seen.iter().map(|seen| seen.received).sum();
        assert!(seen.iter().all(|seen| seen.sent == 1 && seen.received <= 1));
        assert!((1..90).contains(&received) && seen.len() == 90, "{received} of {}", seen.len());
        assert_eq!(memory.stray, 0);
    });
}

#[test]
fn a_path_that_carries_nothing_is_named_with_how_long_it_was_tried() {
    for (name, transport) in [("urp", "\"urp\""), ("sctp", SCTP)] {
        let scenario = scenario("100 ms", &voice(transport, ""));
        let patience = trunkline_core::Duration::from_millis(300);
        let options = LiveOptions { lose_every: 1, patience, ..LiveOptions::new(process()) };
        let (memory, result) = run_with(&scenario, &options, &mut GoOn);
        let error = result.unwrap_err();
        assert!(matches!(error, LiveError::NotConnected { .. }) && !error.is_bad_input());
        let text = error.to_string();
        assert!(text.starts_with("flow `voice` cannot connect to 127.0.0.1:"), "{text}");
        assert!(text.ends_with(&format!("over `{name}`: no reply within 300 ms")), "{text}");
        assert!(memory.messages.is_empty());
    }
}

#[test]
fn what_waits_for_the_whole_send_timeout_is_given_up() {
    // One message fits the window, and the next is due long before the far end can have answered.
    let scenario = scenario(
        "50 ms",
        "[flow.load]\nfrom = \"a\"\nto = \"b\"\n\
         transport = { kind = \"quic\", window = \"1 KiB\", send-timeout = \"1 us\" }\n\
         source = { kind = \"load\", message = \"900 B\", interval = \"5 us\" }\n",
    );
    let (memory, outcome) = run(&scenario, process());
    assert!(!outcome.unwrap().partial);
    let seen = memory.of_flow(0);
    assert!(seen.len().abs_diff(10_000) <= 1, "{}", seen.len());
    assert!(seen.iter().all(|seen| seen.sent + seen.refused == 1));
    assert!(seen.iter().any(|seen| seen.refused == 1));
}

#[test]
fn all_kinds_of_flows_run_beside_each_other() {
    let flows = voice("\"udp\"", "reflect = true\n").replace("voice]", "datagrams]")
        + &voice("\"tcp\"", "reflect = true\n").replace("voice]", "stream]")
        + &voice(DCCP, "reflect = true\n")
        + &voice("\"urp\"", "reflect = true\n").replace("voice]", "circuit]");
    let scenario = scenario("200 ms", &flows);
    for receive in [Receive::Blocking, Receive::Polling] {
        in_real_time(|| {
            let options = LiveOptions { receive, ..LiveOptions::new(process()) };
            let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
            assert!(!outcome.unwrap().partial);
            assert_eq!(memory.all_arrived(), 4 * 20 * 3);
        });
    }
}

#[test]
fn ports_follow_the_one_that_was_asked_for() {
    in_real_time(|| {
        // Below the range from which systems choose ports by themselves, as for the tests beside this one.
        let first = 20_000 + (std::process::id() % 5_000) as u16;
        let bind = |port| std::net::UdpSocket::bind(("127.0.0.1", port)).ok();
        let (port, taken) =
            (first..first + 100).find_map(|port| bind(port).and(Some((port, bind(port + 1)?)))).unwrap();
        let scenario = scenario("100 ms", &voice("\"urp\"", ""));
        let options = LiveOptions { port, ..LiveOptions::new(process()) };
        let error = run_with(&scenario, &options, &mut GoOn).1.unwrap_err();
        assert!(matches!(error, LiveError::PortInUse { port: named, .. } if named == port + 1), "{error}");
        drop(taken);
        let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
        outcome.unwrap();
        assert_eq!(memory.all_arrived(), 10 * 3);
    });
}

#[test]
fn many_members_have_a_socket_each() {
    for transport in ["\"urp\"", DCCP] {
        in_real_time(|| {
            let flow =
                voice(transport, "reflect = true\ncount = 60\n").replace("channels = 3", "channels = 1");
            let scenario = scenario("200 ms", &flow);
            let (memory, outcome) = run(&scenario, process());
            assert!(!outcome.unwrap().partial);
            assert_eq!(memory.all_arrived(), 20 * 60, "{transport}");
        });
    }
}

#[test]
fn addresses_of_either_family_will_do() {
    let address = std::net::IpAddr::from(std::net::Ipv6Addr::LOCALHOST);
    if std::net::UdpSocket::bind((address, 0)).is_err() {
        return skip_without(Missing::Ipv6, "IPv6 is not available on the loopback interface");
    }
    for transport in all() {
        in_real_time(|| {
            let scenario = scenario("100 ms", &voice(transport, "reflect = true\n"));
            let options = LiveOptions { address, ..LiveOptions::new(process()) };
            let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
            outcome.unwrap();
            assert_eq!(memory.all_arrived(), 10 * 3, "{transport}");
        });
    }
}
