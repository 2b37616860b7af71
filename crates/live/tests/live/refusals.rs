//! What cannot be run, and how that is said.

use std::net::UdpSocket;

use trunkline_live::{FarEnd, LiveError, LiveOptions};

use crate::support::{GoOn, process, run, run_with, scenario};

const TCP: &str =
    "[flow.bulk]\nfrom = \"a\"\nto = \"b\"\nsource = { kind = \"bulk\", message = \"8 KiB\" }\n";

#[test]
fn a_port_in_use_is_named_with_what_to_do() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let scenario = scenario("100 ms", &format!("{TCP}transport = \"tcp\"\n"));
    for far_end in [FarEnd::Thread, process()] {
        let options = LiveOptions { port, ..LiveOptions::new(far_end) };
        let (memory, result) = run_with(&scenario, &options, &mut GoOn);
        let error = result.unwrap_err();
        assert!(!error.is_bad_input());
        let expected = format!(
            "port {port} on 127.0.0.1 is in use; choose another with `--port`, or 0 to let the system choose"
        );
        assert_eq!(error.to_string(), expected);
        assert!(memory.messages.is_empty());
    }
}

#[test]
fn an_address_of_somebody_else_is_refused() {
    let scenario = scenario("100 ms", &format!("{TCP}transport = \"tcp\"\n"));
    let options = LiveOptions { address: "192.0.2.1".parse().unwrap(), ..LiveOptions::new(FarEnd::Thread) };
    let (_, result) = run_with(&scenario, &options, &mut GoOn);
    assert!(matches!(result, Err(LiveError::AddressNotHere { .. })), "{result:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_unknown_congestion_control_is_answered_with_those_there_are() {
    let mut scenario = (*scenario("100 ms", &format!("{TCP}transport = \"tcp\"\n"))).clone();
    let warp = trunkline_core::schema::Value::Text("warp".to_owned());
    scenario.flows[0].transport = scenario.flows[0].transport.clone().with("congestion-control", warp);
    let (_, result) = run(&scenario, process());
    let error = result.unwrap_err();
    assert!(error.is_bad_input());
    assert!(
        error.to_string().starts_with("flow `bulk` cannot be set up: the kernel does not offer"),
        "{error}"
    );
}

#[test]
fn a_far_end_that_is_no_program_is_named() {
    let scenario = scenario("100 ms", &format!("{TCP}transport = \"tcp\"\n"));
    let far_end = FarEnd::Process { program: "/nonexistent/trunkline".into(), arguments: Vec::new() };
    let (_, result) = run(&scenario, far_end);
    assert!(matches!(&result, Err(LiveError::Start { program, .. }) if program == "/nonexistent/trunkline"));
}

#[test]
fn a_program_that_is_no_far_end_is_found_out() {
    let scenario = scenario("100 ms", &format!("{TCP}transport = \"tcp\"\n"));
    for (program, arguments) in [("true", vec![]), ("echo", vec!["hello, world".into()])] {
        let (_, result) = run(&scenario, FarEnd::Process { program: program.into(), arguments });
        assert!(matches!(result, Err(LiveError::FarEndLost { .. })), "{result:?}");
    }
}

/// What such ends said before hosts greeted each other, frame by frame.
#[test]
fn an_end_that_is_too_old_is_told_so() {
    let frame = |tag: u8, body: &[u8]| {
        let length = u32::try_from(body.len() + 1).unwrap().to_be_bytes();
        [&length[..], &[tag], body].concat()
    };
    let mut answer = Vec::new();
    let open = frame(b'O', br#"{"version":11,"flows":[]}"#);
    let error = trunkline_live::far_end::serve(open.as_slice(), &mut answer).unwrap_err();
    let too_old = "the near end runs a version of Trunkline that is too old for this one; update it";
    assert_eq!(error.to_string(), too_old);
    assert_eq!(answer, frame(b'X', format!(r#"{{"other":"{too_old}"}}"#).as_bytes()));

    let refusal = frame(b'X', br#"{"other":"a frame with the unknown tag 0x48"}"#);
    let octal: String = refusal.iter().map(|byte| format!("\\{byte:03o}")).collect();
    let arguments = vec!["-c".into(), format!("printf '{octal}'; cat >/dev/null").into()];
    let scenario = scenario("100 ms", &format!("{TCP}transport = \"tcp\"\n"));
    let error =
        run(&scenario, FarEnd::Process { program: "sh".into(), arguments }).1.unwrap_err().to_string();
    assert!(
        error.contains("the far end runs a version of Trunkline that is too old for this one"),
        "{error}"
    );
}

#[test]
fn an_ecn_field_is_for_the_simulator() {
    let options = LiveOptions::new(FarEnd::Thread);
    let over = |ecn| {
        let flow = "[flow.voice]\nfrom = \"a\"\nto = \"b\"\nsource = { kind = \"voice\", samples = 80 }\n";
        let transport = format!("transport = {{ kind = \"udp\", ecn = \"{ecn}\" }}\n");
        trunkline_live::check(&scenario("100 ms", &format!("{flow}{transport}")), &options)
    };
    let error = over("ect1").unwrap_err();
    let expected = "flow `voice` cannot be set up: `ecn` of transport `udp` works in `sim` only";
    assert!(error.is_bad_input() && error.to_string().starts_with(expected), "{error}");
    assert!(over("not-ect").is_ok());
}

#[test]
fn sinks_come_and_go_in_the_simulator_only() {
    let flow =
        "[flow.voice]\nfrom = \"a\"\ntransport = \"udp\"\nsource = { kind = \"voice\", samples = 80 }\n";
    for keys in ["join = \"50 ms\"", "leave = \"1 s\"", "fail = \"1 s\""] {
        let scenario = scenario("100 ms", &format!("{flow}to = {{ host = \"b\", {keys} }}\n"));
        let error = trunkline_live::check(&scenario, &LiveOptions::new(FarEnd::Thread)).unwrap_err();
        let expected = "flow `voice` cannot be set up: `join`, `leave` and `fail` work in `sim` only";
        assert!(error.is_bad_input() && error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn messages_without_a_header_are_for_the_simulator() {
    let scenario = scenario("100 ms", &format!("{TCP}transport = \"tcp\"\nframing = \"none\"\n"));
    let options = LiveOptions::new(FarEnd::Thread);
    let expected = "flow `bulk` cannot be set up: `framing = \"none\"` works in `sim` only";
    for error in [
        trunkline_live::check(&scenario, &options).unwrap_err(),
        run(&scenario, FarEnd::Thread).1.unwrap_err(),
    ] {
        assert!(error.is_bad_input() && error.to_string().starts_with(expected), "{error}");
    }
}
