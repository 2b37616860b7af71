//! How runs end before their time.

use trunkline_core::Duration;
use trunkline_experiment::{Progress, Supervisor};
use trunkline_live::{FarEnd, LiveOptions};
use trunkline_testkit::real_time::in_real_time;

use crate::support::{process, run, run_with, scenario};

const FLOWS: &str = "[flow.voice]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\nreflect = true\n\
                     source = { kind = \"voice\", samples = 80 }\n\
                     [flow.bulk]\nfrom = \"a\"\nto = \"b\"\ntransport = \"tcp\"\n\
                     source = { kind = \"bulk\", message = \"8 KiB\" }\n\
                     [flow.circuit]\nfrom = \"a\"\nto = \"b\"\ntransport = \"urp\"\n\
                     source = { kind = \"bulk\", message = \"8 KiB\" }\n\
                     [flow.rate]\nfrom = \"a\"\nto = \"b\"\n\
                     transport = { kind = \"dccp\", encapsulation = \"udp\" }\n\
                     source = { kind = \"voice\", samples = 80 }\nreflect = true\n";

/// Says stop once so much has passed.
struct StopAt(Duration);

impl Supervisor for StopAt {
    fn progress(&mut self, done: Duration) -> Progress {
        if done >= self.0 { Progress::Stop } else { Progress::Continue }
    }
}

#[test]
fn a_stop_keeps_what_was_measured() {
    in_real_time(|| {
        let scenario = scenario("60 s", FLOWS);
        let options = LiveOptions::new(process());
        let (memory, outcome) = run_with(&scenario, &options, &mut StopAt(Duration::from_millis(200)));
        let outcome = outcome.unwrap();
        assert!(outcome.partial);
        assert!(outcome.duration >= Duration::from_millis(200) && outcome.duration < scenario.duration);
        for flow in 0..4 {
            let received = memory.of_flow(flow).iter().filter(|seen| seen.received == 1).count();
            assert!(received > 5, "flow {flow}: {received}");
        }
    });
}

/// Ends the far end's process by force, as soon as something has happened.
#[cfg(target_os = "linux")]
struct KillFarEnd(Duration);

#[cfg(target_os = "linux")]
impl Supervisor for KillFarEnd {
    fn progress(&mut self, done: Duration) -> Progress {
        if done >= self.0 {
            // The only child with this name: tests that run beside this one have their own thread's children.
            let me = std::fs::read_link("/proc/thread-self").unwrap();
            let children = std::fs::read_to_string(format!("/proc/{}/children", me.display())).unwrap();
            for child in children.split_whitespace() {
                std::process::Command::new("kill").args(["-9", child]).status().unwrap();
            }
        }
        Progress::Continue
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_far_end_that_dies_leaves_what_was_measured() {
    in_real_time(|| {
        let scenario = scenario("60 s", FLOWS);
        let options = LiveOptions::new(process());
        let (memory, result) = run_with(&scenario, &options, &mut KillFarEnd(Duration::from_millis(200)));
        let error = result.unwrap_err();
        assert!(error.to_string().contains("SIGKILL"), "{error}");
        assert!(!error.is_bad_input());
        let outcome = error.outcome().unwrap();
        assert!(outcome.partial && outcome.duration >= Duration::from_millis(200));
        assert!(memory.of_flow(0).iter().any(|seen| seen.received == 1));
    });
}

#[test]
fn a_recorder_that_panics_ends_the_run() {
    struct Panics;
    impl trunkline_metrics::Recorder for Panics {
        fn record(
            &mut self,
            _: trunkline_core::Time,
            _: trunkline_core::FlowId,
            _: trunkline_metrics::Observation,
        ) {
            panic!("the recorder's own failure");
        }
    }
    let scenario = scenario("60 s", FLOWS);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let options = LiveOptions::new(FarEnd::Thread);
        let seed = trunkline_core::Seed::new(1, 0);
        trunkline_live::run(&scenario, seed, &options, &mut Panics, &mut StopAt(Duration::MAX))
    }));
    assert!(result.is_err());
}

#[test]
fn runs_follow_each_other_on_one_port() {
    in_real_time(|| {
        let scenario = scenario("100 ms", FLOWS);
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        for _ in 0..3 {
            let options = LiveOptions { port, ..LiveOptions::new(process()) };
            let (_, outcome) = run_with(&scenario, &options, &mut StopAt(Duration::MAX));
            outcome.unwrap();
        }
        let _ = run(&scenario, FarEnd::Thread);
    });
}
