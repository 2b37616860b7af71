//! Linux's TCP beside and against ours, over a TUN interface in a network namespace.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use trunkline_interop::kernel::{KernelHost, alone};
use trunkline_testkit::real_time::in_real_time_within;
use trunkline_testkit::script::{Script, all_in, play, show};

/// So many scripts run at the same time: they mostly wait.
const AT_ONCE: usize = 16;
/// Timers of 1 ms decide what Linux sends: whether it waits for more to send, or to acknowledge. A peer that stalls for longer
/// between two segments gets another answer.
const STALL: Duration = Duration::from_millis(2);

/// The scripts for the kernel, and how many are for the engine alone.
fn scripts() -> (Vec<Script>, usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/transport/tests/tcp/scripts");
    let (ours, both): (Vec<_>, Vec<_>) =
        all_in(&folder).into_iter().partition(|script| script.engine_only.is_some());
    (both, ours.len())
}

/// Runs a script against the kernel; `None` where that is refused.
fn run(script: &Script) -> Option<Result<(), String>> {
    alone(|| {
        let mut host =
            KernelHost::new(&script.settings).map_err(|problem| format!("{}: {problem}", script.name))?;
        let transcript = play(script, &mut host).map_err(|failure| failure.to_string())?;
        show(script, &transcript);
        Ok(())
    })
}

#[test]
fn the_kernel_holds_every_script_that_is_not_the_engine_s_alone() {
    let (scripts, ours) = scripts();
    println!("{} scripts for the kernel, {ours} for the engine alone", scripts.len());
    let is_allowed = alone(|| ()).is_some();
    if !is_allowed {
        return;
    }
    // Those that hold need not hold again.
    let open: Mutex<Vec<&Script>> = Mutex::new(scripts.iter().collect());
    in_real_time_within(STALL, || {
        let todo = open.lock().expect("nobody panicked").clone();
        let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    while let Some(script) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Some(Err(failure)) = run(script) {
                            failures.lock().expect("nobody panicked").push((*script, failure));
                        }
                    }
                });
            }
        });
        let failures = failures.into_inner().expect("nobody panicked");
        *open.lock().expect("nobody panicked") = failures.iter().map(|(script, _)| *script).collect();
        let texts: Vec<&str> = failures.iter().map(|(_, text)| &text[..]).collect();
        assert!(
            failures.is_empty(),
            "{} of {} scripts:\n{}",
            failures.len(),
            scripts.len(),
            texts.join("\n")
        );
    });
}
