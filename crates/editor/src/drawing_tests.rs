use serde_json::json;

use crate::drawing;

const FILE: &str = r#"# What this is about.
name = "voice"     # as in lists
duration = "30 s"

[hosts]
berlin = {}
ottawa = { profile = "hosts/mac.toml" } # old

# The Atlantic.
[link.trunk]
between = ["berlin", "ottawa"]   # forward is west
rate = "2 Mbit/s"

[link.trunk.backward]
rate = "1 Mbit/s"

# Calls.
[flow.voice]
from = "berlin"
to = "ottawa"
transport = "udp"
source = { kind = "voice", samples = 80 } # 10 ms
path = ["trunk"]

[bundle.all]
flows = ["voice"]

[sweep]
"flow.voice.count" = [
    1, # one
    2,
    4, # many
]
flow.voice.transport = ["udp", { kind = "tcp", window = "8 KiB" }]

[limits]
"flow.voice.loss" = "< 1 %"
# The end.
"#;

#[test]
fn beside_a_link_is_what_was_chosen_for_it() {
    let label = |keys: &str| {
        let text = format!("[link.trunk]\nbetween = [\"a\", \"b\"]\n{keys}");
        drawing(&text).unwrap().links[0].label.clone()
    };
    let line = "rate = \"2 Mbit/s\"\ndelay = \"5 ms\"\n";
    assert_eq!(label(line), "2 Mbit/s · 5 ms");
    assert_eq!(label(&format!("{line}queue = \"fifo\"\n")), "2 Mbit/s · 5 ms · fifo");
    let queue = "queue = { kind = \"round-robin\", quantum = \"64 B\" }\n";
    assert_eq!(label(&format!("{line}{queue}")), "2 Mbit/s · 5 ms · round-robin");
    assert_eq!(label(queue), "round-robin");
    // What is no queue yet, while somebody writes it.
    assert_eq!(label(&format!("{line}queue = {{}}\n")), "2 Mbit/s · 5 ms");
}

#[test]
fn a_drawing_tells_what_is_there_and_how_it_reads() {
    let drawn = drawing(FILE).unwrap();
    assert_eq!(drawn.title, "voice");
    assert_eq!(drawn.links[0].label, "2 Mbit/s");
    assert_eq!(drawn.links[0].medium, "serial");
    assert_eq!(drawn.links[0].keys["backward"], json!({ "rate": "1 Mbit/s" }));
    assert_eq!((drawn.flows[0].label.as_str(), drawn.flows[0].count), ("voice · udp", 1));
    assert_eq!(drawn.sweep[0].key, "flow.voice.count");
    assert_eq!(drawn.sweep[1].values[1], json!({ "kind": "tcp", "window": "8 KiB" }));
    assert_eq!((drawn.limits[0].key.as_str(), drawn.limits[0].limit.as_str()), ("flow.voice.loss", "< 1 %"));
    assert_eq!(drawn.experiment, json!({ "name": "voice", "duration": "30 s" }).as_object().unwrap().clone());
    // Nothing of it needs to be an experiment.
    let odd = drawing(
        "hosts = 1\n[link.a]\nbetween = [1, \"x\"]\n[flow.b]\nto = [{}]\ncount = -1\nx = 1979-05-27\n",
    )
    .unwrap();
    assert_eq!((odd.hosts.len(), odd.links[0].between.as_slice()), (0, &["x".to_owned()][..]));
    assert_eq!(odd.flows[0].keys["x"], "1979-05-27");
    assert!(drawing("a = ").is_err());
}
