//! Flows that need more of the system than sockets of UDP and TCP. What is missing is skipped.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use trunkline_io::tcp::{StreamProtocol, TcpSetup};
use trunkline_io::udp::SocketOptions;
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_testkit::real_time::in_real_time;
use trunkline_testkit::skips::{Missing, skip, skip_without};

use crate::support::{GoOn, process, run, run_with, scenario, scenario_with};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Directly over IP.
const RAW: [&str; 4] =
    ["\"dccp\"", "\"xtp\"", "\"sctp\"", "{ kind = \"sctp\", style = \"one-to-many\", streams = 4 }"];
const LITE: &str = "{ kind = \"udp-lite\", checksum-coverage = \"40 B\" }";

fn voice(transport: &str, keys: &str) -> String {
    format!(
        "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\n\
         source = {{ kind = \"voice\", samples = 80 }}\nchannels = 3\n{keys}"
    )
}

/// Checks that raw sockets can be opened; a skip if not.
fn has_raw(address: IpAddr) -> bool {
    match trunkline_io::raw::open(33, address, None, SocketOptions::default()) {
        Ok(_) => true,
        Err(error) => {
            let is_permitted = error.kind() != ErrorKind::PermissionDenied;
            assert!(!is_permitted || address.is_ipv6(), "{error}");
            let why = format!("raw sockets at {address} cannot be opened: {error}");
            if is_permitted {
                skip_without(Missing::Ipv6, &why)
            } else {
                skip(&why)
            }
            false
        }
    }
}

fn has_udp_lite() -> bool {
    let socket =
        trunkline_io::udp::open_lite(SocketAddr::new(LOCALHOST, 0), None, SocketOptions::default(), None);
    socket.inspect_err(|error| skip_without(Missing::KernelUdpLite, &error.to_string())).is_ok()
}

fn has_mptcp() -> bool {
    let setup = TcpSetup { protocol: StreamProtocol::Mptcp, ..TcpSetup::default() };
    let listener = trunkline_io::tcp::listen(SocketAddr::new(LOCALHOST, 0), &setup);
    listener.inspect_err(|error| skip_without(Missing::KernelMptcp, &error.to_string())).is_ok()
}

#[test]
fn packets_directly_over_ip_reach_their_conversation_and_no_other() {
    for address in [LOCALHOST, Ipv6Addr::LOCALHOST.into()] {
        if !has_raw(address) {
            continue;
        }
        for transport in RAW {
            in_real_time(|| {
                let scenario = scenario("200 ms", &voice(transport, "reflect = true\ncount = 3\n"));
                let options = LiveOptions { address, ..LiveOptions::new(process()) };
                trunkline_live::check(&scenario, &options).unwrap();
                let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
                let outcome = outcome.unwrap();
                assert_eq!(memory.all_arrived(), 20 * 9, "{transport} at {address}");
                assert_eq!(memory.stray, 0);
                let counters = &outcome.flows[0].transport_counters;
                assert_eq!(counters["connections-broken"], 0, "{transport}: {counters:?}");
                for fault in ["checksum-errors", "malformed"] {
                    assert_eq!(counters.get(fault).copied().unwrap_or(0), 0, "{transport}: {counters:?}");
                }
            });
        }
    }
}

#[test]
fn one_conversation_over_ip_hears_nothing_of_itself() {
    // An address of its own, for at any other XTP would count the packets of tests beside this one.
    let address = Ipv4Addr::new(127, 0, 0, 3).into();
    if !has_raw(address) {
        return;
    }
    for transport in RAW {
        in_real_time(|| {
            let scenario = scenario("200 ms", &voice(transport, "reflect = true\n"));
            let options = LiveOptions { address, ..LiveOptions::new(FarEnd::Thread) };
            let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
            let outcome = outcome.unwrap();
            assert_eq!(memory.all_arrived(), 20 * 3, "{transport}");
            let counters = &outcome.flows[0].transport_counters;
            assert_eq!(counters.get("strays").copied().unwrap_or(0), 0, "{transport}: {counters:?}");
        });
    }
}

#[test]
fn runs_over_ip_beside_each_other_do_not_mix() {
    in_real_time(|| {
        if !has_raw(LOCALHOST) {
            return;
        }
        let run_one = |transport: &str| {
            let scenario = scenario("300 ms", &voice(transport, "reflect = true\n"));
            let (memory, outcome) = run(&scenario, process());
            outcome.unwrap();
            assert_eq!(memory.all_arrived(), 30 * 3, "{transport}");
        };
        for transport in RAW {
            std::thread::scope(|scope| [0, 1].map(|_| _ = scope.spawn(|| run_one(transport))));
        }
    });
}

/// Both ends of a transaction use one key: on one host their packets are not told apart by it.
#[test]
fn transactions_over_ip_are_not_confused_by_what_comes_back() {
    in_real_time(|| {
        let address = Ipv4Addr::new(127, 0, 0, 4).into();
        if !has_raw(address) {
            return;
        }
        let flow = "[flow.ask]\nfrom = \"a\"\nto = \"b\"\nreflect = true\n\
                    transport = { kind = \"xtp\", service = \"transaction\" }\n\
                    source = { kind = \"interactive\", message = \"100 B\", answer = \"10 B\", messages = 500 }\n";
        let scenario = scenario_with("until = \"ask\"\n", "20 s", flow);
        let options = LiveOptions { address, ..LiveOptions::new(process()) };
        let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
        assert_eq!(memory.all_arrived(), 500);
        let counters = &outcome.unwrap().flows[0].transport_counters;
        assert_eq!(counters["strays"], 0, "{counters:?}");
    });
}

#[test]
fn bulk_over_ip_arrives_whole() {
    if !has_raw(LOCALHOST) {
        return;
    }
    for transport in ["\"xtp\"", "\"sctp\""] {
        in_real_time(|| {
            let flow = format!(
                "[flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = {transport}\n\
             source = {{ kind = \"bulk\", message = \"1000 B\", bytes = \"200 KB\" }}\n"
            );
            let scenario = scenario_with("until = \"bulk\"\ndrain = \"20 s\"\n", "20 s", &flow);
            let (memory, outcome) = run(&scenario, process());
            assert!(!outcome.unwrap().partial);
            assert_eq!(memory.all_arrived(), 200, "{transport}");
        });
    }
}

#[cfg(target_os = "linux")]
#[test]
fn without_the_right_to_raw_sockets_it_is_said_what_to_do() {
    let FarEnd::Process { program, arguments } = process() else { unreachable!("it is a program") };
    let bereft = std::process::Command::new("setpriv").args(["--bounding-set=-net_raw", "true"]).status();
    if !bereft.is_ok_and(|status| status.success()) {
        return skip("`setpriv` cannot take the right to raw sockets away; it needs CAP_SETPCAP");
    }
    let arguments = ["--bounding-set=-net_raw".into(), program.into_os_string()].into_iter().chain(arguments);
    let far_end = FarEnd::Process { program: "setpriv".into(), arguments: arguments.collect() };
    let error = run(&scenario("100 ms", &voice("\"dccp\"", "")), far_end).1.unwrap_err();
    assert!(error.is_bad_input());
    let text = error.to_string();
    assert!(text.starts_with("flow `voice` cannot be set up: raw sockets for IP protocol 33 need"), "{text}");
    assert!(
        text.contains("CAP_NET_RAW") && text.contains("setcap") && text.contains("encapsulation"),
        "{text}"
    );
}

#[test]
fn udp_lite_carries_messages_as_udp_does() {
    if !has_udp_lite() {
        return;
    }
    for (address, far_end) in [(LOCALHOST, FarEnd::Thread), (Ipv6Addr::LOCALHOST.into(), process())] {
        in_real_time(|| {
            let scenario = scenario("200 ms", &voice(LITE, "reflect = true\ncount = 2\n"));
            let options = LiveOptions { address, ..LiveOptions::new(far_end.clone()) };
            trunkline_live::check(&scenario, &options).unwrap();
            let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
            let outcome = outcome.unwrap();
            assert_eq!(memory.all_arrived(), 20 * 6);
            let counters = &outcome.flows[0].transport_counters;
            assert_eq!(counters["packets-received"], 2 * 20 * 6, "{counters:?}");
        });
    }
}

#[test]
fn mptcp_is_mptcp_and_says_so() {
    in_real_time(|| {
        if !has_mptcp() {
            return;
        }
        let scenario = scenario("200 ms", &voice("\"mptcp\"", "reflect = true\ncount = 2\n"));
        let options = LiveOptions::new(process());
        trunkline_live::check(&scenario, &options).unwrap();
        let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
        assert_eq!(memory.all_arrived(), 20 * 6);
        let counters = &outcome.unwrap().flows[0].transport_counters;
        let counts = ["connections-multipath", "connections-fallen-back-to-tcp", "connections-broken"];
        assert_eq!(counts.map(|name| counters[name]), [2, 0, 0], "{counters:?}");
        assert!(counters["segments-sent"] > 0);
    });
}

#[test]
fn the_kernel_s_sctp_carries_or_it_is_said_what_is_missing() {
    in_real_time(|| {
        let setup = TcpSetup { protocol: StreamProtocol::Sctp, ..TcpSetup::default() };
        let has_sctp = trunkline_io::tcp::listen(SocketAddr::new(LOCALHOST, 0), &setup).is_ok();
        let transport = "{ kind = \"sctp\", engine = \"kernel\" }";
        let scenario = scenario("200 ms", &voice(transport, "reflect = true\ncount = 2\n"));
        let options = LiveOptions::new(process());
        let checked = trunkline_live::check(&scenario, &options);
        let (memory, outcome) = run_with(&scenario, &options, &mut GoOn);
        if has_sctp {
            checked.unwrap();
            outcome.unwrap();
            assert_eq!(memory.all_arrived(), 20 * 6);
            return;
        }
        for error in [checked.unwrap_err(), outcome.unwrap_err()] {
            let text = error.to_string();
            let begins = "flow `voice` cannot be set up: the kernel offers no SCTP: ";
            assert!(error.is_bad_input() && text.starts_with(begins), "{text}");
        }
        skip_without(Missing::KernelSctp, "the kernel's SCTP carries nothing: it has none");
    });
}
