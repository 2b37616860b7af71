//! Experiment files through the API: described, checked, drawn and edited.

mod common;

use common::{SHORT, TestServer};
use serde_json::{Value, json};
use trunkline_server::api;

#[test]
fn a_file_is_checked_drawn_and_edited() {
    let server = TestServer::start();
    let checked: api::Checked =
        serde_json::from_value(server.post("/api/v1/check", &json!({ "text": SHORT })).json()).unwrap();
    let summary = checked.summary.unwrap();
    assert_eq!((summary.points, summary.repetitions, summary.hosts, summary.flows), (2, 2, 2, 1));
    // Two seconds and one of drain, for each of four repetitions.
    assert_eq!(summary.duration_s, 12.0);
    assert_eq!(checked.backends.unwrap().sim, None);

    let drawn: api::Drawn =
        serde_json::from_value(server.post("/api/v1/drawing", &json!({ "text": SHORT })).json()).unwrap();
    let drawing = drawn.drawing.unwrap();
    assert_eq!((drawing.title.as_str(), drawing.hosts.len()), ("short", 2));
    assert_eq!(drawing.links[0].label, "1 Mbit/s · 20 ms");
    assert!(!drawing.hosts[0].placed && drawing.hosts[0].x < drawing.hosts[1].x);
    assert_eq!(drawing.sweep[0].values, [json!(1), json!(2)]);
    assert_eq!(drawing.sweep[0].shown, ["1", "2"]);
    let tables =
        SHORT.replace("[1, 2]", r#"[{ kind = "voice", samples = 80 }, "bulk"]"#).replace(".count", ".source");
    let drawn = server.post("/api/v1/drawing", &json!({ "text": tables })).json();
    assert_eq!(drawn["drawing"]["sweep"][0]["shown"], json!(["voice samples 80", "bulk"]), "{drawn}");

    let edits = json!([
        { "op": "rename", "section": "hosts", "from": "berlin", "to": "paris" },
        { "op": "place", "host": "paris", "x": 10, "y": 20.6 },
        { "op": "add", "section": "flow", "values": { "from": "ottawa", "to": "paris", "source": "bulk", "transport": "tcp" } },
        { "op": "remove", "path": ["sweep", "flow.voice.count"] },
        { "op": "set", "path": ["link", "trunk", "queue", "limit"], "value": "64 KiB" },
    ]);
    let edited: api::Edited =
        serde_json::from_value(server.post("/api/v1/edit", &json!({ "text": SHORT, "edits": edits })).json())
            .unwrap();
    assert_eq!(edited.problems, []);
    let drawing = edited.drawing.unwrap();
    assert_eq!((drawing.hosts[0].x, drawing.hosts[0].y, drawing.hosts[0].placed), (10.0, 21.0, true));
    assert_eq!(drawing.flows[1].name, "bulk");
    for line in [
        "paris = { position = [10, 21] }",
        "from = \"paris\"",
        "queue = { kind = \"fifo\", limit = \"64 KiB\" }",
    ] {
        assert!(edited.text.contains(line), "{line}: {}", edited.text);
    }
}

#[test]
fn a_file_that_is_wrong_is_drawn_all_the_same_and_one_that_is_not_toml_is_not() {
    let server = TestServer::start();
    let wrong = SHORT.replace("to = \"ottawa\"", "to = \"nowhere\"");
    let drawn = server.post("/api/v1/drawing", &json!({ "text": wrong })).json();
    assert_eq!(drawn["drawing"]["flows"][0]["to"], json!(["nowhere"]));
    assert_eq!(drawn["problems"].as_array().map(Vec::len), Some(1));
    let checked = server.post("/api/v1/check", &json!({ "text": wrong })).json();
    assert_eq!(checked["problems"], drawn["problems"]);
    assert_eq!(checked.get("summary"), None);

    let broken = server.post("/api/v1/drawing", &json!({ "text": "name = " }));
    assert_eq!(broken.status, 200);
    assert_eq!(broken.json().get("drawing"), None);
    assert_eq!(broken.json()["problems"][0]["line"], 1);
    let body = json!({ "text": "name = ", "edits": [{ "op": "set", "path": ["name"], "value": "x" }] });
    let refused = server.post("/api/v1/edit", &body);
    assert_eq!((refused.status, &refused.json()["error"]["problems"][0]["line"]), (400, &json!(1)));
    for edit in [
        json!({ "op": "remove", "path": ["flow", "none"] }),
        json!({ "op": "rename", "section": "sweep", "from": "a", "to": "b" }),
        json!({ "op": "set", "path": [], "value": 1 }),
        json!({ "op": "set", "path": ["name"], "value": null }),
        json!({ "op": "paint" }),
    ] {
        let reply = server.post("/api/v1/edit", &json!({ "text": SHORT, "edits": [edit] }));
        assert_eq!(reply.status, 400, "{}", reply.text());
    }
}

#[test]
fn the_description_of_all_keys_and_the_examples_are_there() {
    let server = TestServer::start();
    let schema = server.get("/api/v1/schema").json();
    let named = |of: &Value, name: &str| {
        of.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap_or(&Value::Null).clone()
    };
    assert_eq!(schema["sections"].as_array().unwrap().len(), 7);
    let transport = named(&named(&schema["sections"], "flow")["keys"], "transport");
    for word in ["udp", "quic"] {
        assert!(named(&transport["alternatives"], word)["keys"].is_array(), "{transport}");
    }

    let examples: Vec<api::Example> = serde_json::from_value(server.get("/api/v1/examples").json()).unwrap();
    assert!(examples.len() >= 14);
    for example in examples {
        let checked = server.post("/api/v1/check", &json!({ "text": example.text })).json();
        assert_eq!(checked["problems"], json!([]), "{}", example.name);
    }
    // With the files that they need there are more.
    std::fs::write(server.folder.join("files/cellular.down"), "1\n5\n9\n").unwrap();
    std::fs::write(server.folder.join("files/cellular.up"), "2\n8\n").unwrap();
    let names = |examples: Value| {
        examples.as_array().unwrap().iter().map(|one| one["name"].clone()).collect::<Vec<_>>()
    };
    assert!(names(server.get("/api/v1/examples").json()).contains(&json!("cellular-trace")));
}
