//! ALSA without a sound card: its `file` and `null` plugins take a card's place, in a configuration that the test makes. They
//! have no clock, so nothing here says when anything happens.

#![cfg(feature = "alsa")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use trunkline_core::Time;
use trunkline_sound::{Callbacks, Device, Format, Place, Status, Wanted, open};

/// Where ALSA finds its configuration: it reads that once per process, so the tests run in another, which has this set.
const CONFIGURATION: &str = "ALSA_CONFIG_PATH";

/// Runs this test again, alone, with cards whose files are in a directory; says which directory if this is that run.
fn with_cards(test: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(CONFIGURATION) {
        return Some(Path::new(&path).parent().unwrap().to_owned());
    }
    let directory = tempfile::tempdir().unwrap();
    let configuration = directory.path().join("asoundrc");
    let card = |name: &str, slave: &str, format: &str| {
        format!(
            r#"
            pcm.{name} {{
                type plug
                slave {{
                    format {format}
                    pcm {{ type file file "{0}/{name}.out" infile "{0}/{name}.in" format raw slave.pcm {slave} }}
                }}
                hint {{ show on description "{name}" }}
            }}
            "#,
            directory.path().display()
        )
    };
    let text = ["pcm.nowhere { type null }".to_owned(), card("floats", "nowhere", "FLOAT_LE"), card("shorts", "nowhere", "S16_LE")];
    std::fs::write(&configuration, text.concat()).unwrap();
    for name in ["floats", "shorts"] {
        std::fs::write(directory.path().join(format!("{name}.in")), [0x40; 1 << 20]).unwrap();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CONFIGURATION, &configuration)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
    None
}

#[test]
fn x() {
    let Some(directory) = with_cards("x") else { return };
    println!("{directory:?}");
}
