//! The scripts of packet exchanges against the engine; `interop/tests/tcp.rs` runs them against the kernel.

use std::path::Path;

use trunkline_testkit::script::{EngineHost, Script, all_in, play, show};

fn scripts() -> Vec<Script> {
    all_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp/scripts"))
}

#[test]
fn the_engine_holds_every_script() {
    let mut failures = Vec::new();
    for script in scripts() {
        let mut host =
            EngineHost::new(&script.settings).unwrap_or_else(|problem| panic!("{}: {problem}", script.name));
        match play(&script, &mut host) {
            Err(failure) => failures.push(failure.to_string()),
            Ok(transcript) => show(&script, &transcript),
        }
    }
    assert!(failures.is_empty(), "{} scripts:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_script_names_what_it_holds() {
    for script in scripts() {
        assert!(
            script.holds.contains("RFC ") || script.holds.contains("Linux"),
            "{}: {}",
            script.name,
            script.holds
        );
    }
}
