//! Learned paths through the API: listed, described, and used by experiments.

#![allow(clippy::unwrap_used, reason = "where something is missing the test has failed")]

mod common;

use common::TestServer;
use serde_json::{Value, json};
use trunkline_learn::library::PathDetails;
use trunkline_server::api;

/// As `trunkline learn` writes it.
const HOME: &str = "# The path to b.\ndoc = \"The path to b\"\n\n[forward]\nrate = \"8 Mbit/s\"   # 7.9 to 8.1 Mbit/s\n\
     delay = \"15 ms\"\n\n[backward]\nrate = \"2 Mbit/s\"\n";

#[test]
fn paths_of_the_library_and_of_the_folder_are_listed_described_and_used() {
    let place = tempfile::tempdir().unwrap();
    let library = place.path().join("paths");
    std::fs::create_dir(&library).unwrap();
    trunkline_runner::set_library(library.clone());
    let server = TestServer::start_in(place.path(), |_| ());
    let files = place.path().join("files");
    let listed = || serde_json::from_value::<api::Paths>(server.get("/api/v1/paths").json()).unwrap();
    assert!(listed().paths.is_empty());

    std::fs::write(library.join("office.toml"), "rate = \"1 Mbit/s\"\ndelay = \"30 ms\"\n").unwrap();
    std::fs::write(library.join("broken.toml"), "rate =").unwrap();
    std::fs::write(library.join("home.toml"), "rate = \"1 Mbit/s\"\n").unwrap();
    std::fs::write(files.join("home.toml"), HOME).unwrap();
    std::fs::write(files.join("experiment.toml"), common::SHORT).unwrap();
    std::fs::write(files.join("no.toml"), "no").unwrap();
    std::fs::write(place.path().join("secret.toml"), HOME).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.toml", files.join("link.toml")).unwrap();
    let found = listed();
    let names: Vec<_> = found.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["home", "office"]);
    assert_eq!(found.paths[0].directions[1].rate, "2 Mbit/s", "that of the folder is used");
    assert!(matches!(&found.problems[..], [one] if one.contains("broken.toml")), "{:?}", found.problems);

    let home: PathDetails = serde_json::from_value(server.get("/api/v1/paths/home").json()).unwrap();
    assert_eq!((home.text.as_str(), home.notes.as_slice()), (HOME, &["The path to b.".to_owned()][..]));
    assert_eq!(
        (home.parts[0].direction.as_str(), home.parts[0].values[0].evidence.as_str()),
        ("forward", "7.9 to 8.1 Mbit/s")
    );
    for none in ["experiment", "link", "..%2Fsecret", "nobody"] {
        let reply = server.get(&format!("/api/v1/paths/{none}"));
        assert_eq!(reply.status, 404, "{none}: {}", reply.text());
    }

    // An experiment names them.
    for (name, delay) in [("office", "30 ms"), ("home", "15 ms")] {
        let link = format!("profile = \"{name}\"");
        let text = common::SHORT.replace("rate = \"1 Mbit/s\"\ndelay = \"20 ms\"", &link);
        assert!(text.contains(&link));
        let checked = server.post("/api/v1/check", &json!({ "text": text })).json();
        assert_eq!(checked["problems"], Value::Array(Vec::new()), "{delay}: {checked}");
    }
    let secret =
        common::SHORT.replace("rate = \"1 Mbit/s\"\ndelay = \"20 ms\"", "profile = \"../secret.toml\"");
    let checked = server.post("/api/v1/check", &json!({ "text": secret })).json();
    assert!(checked["problems"][0]["message"].as_str().unwrap().contains("outside"), "{checked}");
}
