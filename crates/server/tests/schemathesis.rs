//! The API against its own description: schemathesis makes requests of it, right and wrong ones, and judges the answers.

mod common;

use std::path::Path;
use std::process::Command;

use common::TestServer;
use trunkline_testkit::skips::skip;

/// What is not asked at random: events that do not end, archives, which nobody makes at random, and what would send packets to
/// whatever name comes out.
const LEFT_OUT: [&str; 4] = ["/events", "/runs/import", "/probe", "/agents"];

/// What every answer is judged by. Not that right requests are accepted: a text that is any text is no experiment file.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,\
                      negative_data_rejection,unsupported_method";

/// The Python that has schemathesis: `$PYTHON`, or the one on the path. If neither has, says how to get it.
fn python() -> Option<String> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import schemathesis"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    skip(&format!(
        "`{python}` has no schemathesis; install `interop/peers/api-requirements.txt` in a virtual environment whose Python \
         `$PYTHON` names"
    ));
    None
}

#[test]
fn answers_are_as_described() {
    let Some(python) = python() else { return };
    let server = TestServer::start();
    server.measured();
    let description = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi.json");
    let mut schemathesis = Command::new(python);
    schemathesis.current_dir(&server.folder).args(["-m", "schemathesis.cli", "run"]).arg(description);
    schemathesis.arg("--url").arg(format!("http://{}/api/v1", server.address));
    schemathesis.args(["--phases", "examples,coverage,fuzzing", "--max-examples", "15", "--seed", "7"]);
    schemathesis.args([
        "--max-time",
        "40",
        "--request-timeout",
        "30",
        "--checks",
        CHECKS,
        "--warnings",
        "off",
    ]);
    schemathesis.args(["--no-color", "--workers", "1"]);
    for path in LEFT_OUT {
        schemathesis.args(["--exclude-path", path]);
    }
    let output = schemathesis.output().expect("it is installed");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
