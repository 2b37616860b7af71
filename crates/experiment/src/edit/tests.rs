//! Edits as a person sees them: the text before and after.

use serde_json::{Value, json};

use super::*;

fn path(dotted: &str) -> Vec<String> {
    dotted.split('/').map(str::to_owned).collect()
}

fn set(text: &str, at: &str, value: Value) -> String {
    apply(text, &[Edit::Set { path: path(at), value }]).expect(at)
}

fn remove(text: &str, at: &str) -> String {
    apply(text, &[Edit::Remove { path: path(at) }]).expect(at)
}

fn rename(text: &str, section: Section, from: &str, to: &str) -> String {
    apply(text, &[Edit::Rename { section, from: from.into(), to: to.into() }]).expect(from)
}

fn add(text: &str, section: Section, name: Option<&str>, values: Value) -> String {
    let Value::Object(values) = values else { panic!("a table") };
    apply(text, &[Edit::Add { section, name: name.map(str::to_owned), values }]).expect("added")
}

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
fn a_value_takes_the_place_of_another_and_comments_stay() {
    let edited = set(FILE, "flow/voice/source/samples", json!(160));
    assert_eq!(edited, FILE.replace("samples = 80", "samples = 160"));
    let edited = set(FILE, "name", json!("two \"calls\""));
    assert_eq!(edited, FILE.replace("\"voice\"     #", r#""two \"calls\""     #"#));
    // What says the same already stays as it is written.
    assert_eq!(set(FILE, "flow/voice/source", json!({ "samples": 80, "kind": "voice" })), FILE);
}

#[test]
fn keys_go_where_a_person_would_write_them() {
    let edited = set(FILE, "flow/voice/count", json!(3));
    assert_eq!(edited, FILE.replace("path = [\"trunk\"]\n", "path = [\"trunk\"]\ncount = 3\n"));
    let edited = set(FILE, "link/trunk/backward/delay", json!("3 ms"));
    assert_eq!(edited, FILE.replace("\"1 Mbit/s\"\n", "\"1 Mbit/s\"\ndelay = \"3 ms\"\n"));
    let edited = set(FILE, "link/trunk/forward/delay", json!("3 ms"));
    let forward = "\n[link.trunk.forward]\ndelay = \"3 ms\"\n";
    assert_eq!(edited, FILE.replace("\"1 Mbit/s\"\n", &format!("\"1 Mbit/s\"\n{forward}")));
    let edited = set(FILE, "seed", json!(7));
    assert_eq!(edited, FILE.replace("\"30 s\"\n", "\"30 s\"\nseed = 7\n"));
    let edited = set(FILE, "hosts/berlin/processor", json!("ottawa"));
    assert_eq!(edited, FILE.replace("berlin = {}", "berlin = { processor = \"ottawa\" }"));
    let edited = set(FILE, "hosts/ottawa/position", json!([1, 2]));
    assert_eq!(edited, FILE.replace("mac.toml\" }", "mac.toml\", position = [1, 2] }"));
    let edited = set(FILE, "sweep/link.trunk.rate", json!(["1 Mbit/s"]));
    assert!(edited.contains("\"8 KiB\" }]\n\"link.trunk.rate\" = [\"1 Mbit/s\"]\n"), "{edited}");
    let edited = set(FILE, "limits/flow.voice.latency.p99", json!("< 10 ms"));
    assert!(edited.contains("\"< 1 %\"\n\"flow.voice.latency.p99\" = \"< 10 ms\"\n# The end.\n"), "{edited}");
}

#[test]
fn a_word_becomes_the_table_that_it_stands_for() {
    let text = "[link.a]\nloss = \"1 %\"\n[flow.a]\nsource = \"voice\"\n";
    let edited = set(text, "flow/a/source/samples", json!(80));
    assert_eq!(edited, text.replace("\"voice\"", "{ kind = \"voice\", samples = 80 }"));
    let edited = set(text, "link/a/queue/limit", json!("1 KiB"));
    assert!(edited.contains("queue = { kind = \"fifo\", limit = \"1 KiB\" }"), "{edited}");
    let edited = set(text, "flow/a/source/kind", json!("bulk"));
    assert_eq!(edited, text.replace("\"voice\"", "{ kind = \"bulk\" }"));
}

#[test]
fn swept_values_change_one_by_one() {
    let edited = set(FILE, "sweep/flow.voice.count", json!([1, 3, 4]));
    assert_eq!(edited, FILE.replace("    2,\n", "    3,\n"));
    let edited = set(FILE, "sweep/flow.voice.count", json!([1, 4]));
    assert_eq!(edited, FILE.replace("    2,\n", ""));
    let edited =
        set(FILE, "sweep/flow.voice.transport", json!(["udp", { "kind": "tcp", "window": "9 KiB" }]));
    assert_eq!(edited, FILE.replace("\"8 KiB\"", "\"9 KiB\""));
    let edited = set(FILE, "sweep/flow.voice.transport", json!(["udp", "dccp"]));
    assert_eq!(edited, FILE.replace("{ kind = \"tcp\", window = \"8 KiB\" }", "\"dccp\""));
}

#[test]
fn a_table_is_made_to_hold_what_another_says() {
    let edited = set(FILE, "link/trunk", json!({ "between": ["berlin", "ottawa"], "rate": "9 Mbit/s" }));
    let expected = FILE.replace("\"2 Mbit/s\"", "\"9 Mbit/s\"");
    assert_eq!(edited, expected.replace("\n[link.trunk.backward]\nrate = \"1 Mbit/s\"\n", ""));
    let edited = set(FILE, "sweep", json!({ "flow.voice.count": [1, 2, 4] }));
    let transport = FILE.lines().find(|line| line.starts_with("flow.voice.transport")).unwrap();
    assert_eq!(edited, FILE.replace(&format!("{transport}\n"), ""));
}

#[test]
fn what_is_removed_goes_with_its_line() {
    let edited = remove(FILE, "flow/voice/source");
    assert_eq!(edited, FILE.replace("source = { kind = \"voice\", samples = 80 } # 10 ms\n", ""));
    let edited = remove(FILE, "flow/voice/source/kind");
    assert_eq!(edited, FILE.replace("kind = \"voice\", samples", "samples"));
    let edited = remove(FILE, "flow/voice/source/samples");
    assert_eq!(edited, FILE.replace(", samples = 80", ""));
    assert_eq!(remove(FILE, "hosts/ottawa/profile"), FILE.replace("{ profile = \"hosts/mac.toml\" }", "{}"));
    assert_eq!(remove(FILE, "limits/flow.voice.loss"), FILE.replace("\"flow.voice.loss\" = \"< 1 %\"\n", ""));
    assert!(!remove(FILE, "sweep/flow.voice.transport").contains("transport = [\"udp\""));
    let refused = apply(FILE, &[Edit::Remove { path: path("flow/video") }]);
    assert_eq!(refused.unwrap_err().to_string(), "there is no `flow.video` in the file");
}

#[test]
fn what_named_a_removed_thing_goes_too() {
    let edited = remove(FILE, "flow/voice");
    for gone in ["[flow", "# Calls", "[bundle", "flow.voice", "voice\"]"] {
        assert!(!edited.contains(gone), "{gone} in\n{edited}");
    }
    assert!(edited.contains("# The end.\n") && edited.contains("# The Atlantic.\n"));
    let edited = remove(FILE, "hosts/ottawa");
    assert_eq!(
        edited.replace("[sweep]\n", "").replace("[limits]\n", ""),
        "# What this is about.\nname = \"voice\"     # as in lists\nduration = \"30 s\"\n\n[hosts]\nberlin = {}\n\n\n\
         # The end.\n"
    );
    let edited = remove(FILE, "link/trunk");
    assert!(!edited.contains("trunk") && !edited.contains("Atlantic"), "{edited}");
    let several = "[hosts]\na = {}\nb = {}\nc = {}\n[link.lan]\nmedium = \"ethernet\"\nbetween = [\"a\", \"b\", \"c\"]\n\
                   [link.lan.station.c]\nrate = \"1 Mbit/s\"\n[flow.x]\nfrom = \"a\"\nto = [\"b\", { host = \"c\" }]\n";
    let edited = remove(several, "hosts/c");
    assert!(edited.contains("between = [\"a\", \"b\"]\n") && edited.contains("to = [\"b\"]\n"), "{edited}");
    assert!(!edited.contains("station") && !edited.contains("rate"), "{edited}");
}

#[test]
fn a_name_is_another_wherever_it_is_named() {
    let file = r#"until = "a"
[hosts.a]
[hosts.b]
processor = "a"
[hosts]
c.profile = "a"
[link.a]
medium = "ethernet"
between = ['a', "b", "c"]
station.a.rate = "1 Mbit/s"
[link.b.station."a"]
delay = "1 ms"
[flow.a]
from = "a"
to = ["b", { host = "a" }, { join = "1 s", host = 'a' }]
source = "a"
path = ["a"]
[flow."b"]
from = "b"
to = { host = "a" }
[bundle]
a = { flows = ["a", "b"] }
[sweep]
"flow.a.count, flow.b.count" = [1, 2]
flow.a.from = ["a", "b"]
"flow.b.to , flow.b.transport" = [["a", "a"], ["c", "a"]]
"link.a.station.a.rate" = ["a"]
hosts.a.profile = ["a"]
[limits]
"flow.a.sink.a.loss" = "< 1 %"
bundle.a.a.loss.max = "< 1 %"
"#;
    let hosts = rename(file, Section::Hosts, "a", "z");
    let expected = file
        .replace("[hosts.a]", "[hosts.z]")
        .replace("processor = \"a\"", "processor = \"z\"")
        .replace("['a', \"b\"", "['z', \"b\"")
        .replace("station.a.rate = \"1 M", "station.z.rate = \"1 M")
        .replace("station.\"a\"", "station.\"z\"")
        .replace("from = \"a\"", "from = \"z\"")
        .replace("host = \"a\"", "host = \"z\"")
        .replace("host = 'a'", "host = 'z'")
        .replace("flow.a.from = [\"a\"", "flow.a.from = [\"z\"")
        .replace("[[\"a\", \"a\"]", "[[\"z\", \"a\"]")
        .replace("\"link.a.station.a.rate\"", "\"link.a.station.z.rate\"")
        .replace("hosts.a.profile", "hosts.z.profile")
        .replace("sink.a.loss", "sink.z.loss");
    assert_eq!(hosts, expected);
    let flows = rename(file, Section::Flow, "a", "z");
    let expected = file
        .replace("until = \"a\"", "until = \"z\"")
        .replace("[flow.a]", "[flow.z]")
        .replace("flows = [\"a\"", "flows = [\"z\"")
        .replace("\"flow.a.count", "\"flow.z.count")
        .replace("flow.a.from", "flow.z.from")
        .replace("\"flow.a.sink", "\"flow.z.sink");
    assert_eq!(flows, expected);
    let links = rename(file, Section::Link, "a", "z");
    let expected = file
        .replace("[link.a]", "[link.z]")
        .replace("path = [\"a\"]", "path = [\"z\"]")
        .replace("\"link.a.", "\"link.z.");
    assert_eq!(links, expected);
    let bundles = rename(file, Section::Bundle, "a", "z");
    assert_eq!(bundles, file.replace("\na = { flows", "\nz = { flows").replace("bundle.a.a", "bundle.z.a"));
}

#[test]
fn a_name_must_be_free_and_good() {
    let try_rename = |to: &str| {
        apply(FILE, &[Edit::Rename { section: Section::Hosts, from: "berlin".into(), to: to.into() }])
    };
    assert_eq!(
        try_rename("ottawa").unwrap_err().to_string(),
        "a host `ottawa` already exists; choose another name"
    );
    for bad in ["", "a b", "a.b", "ü", "a\""] {
        assert_eq!(try_rename(bad), Err(EditError::Name(bad.escape_debug().to_string())));
    }
    assert_eq!(try_rename("berlin").as_deref(), Ok(FILE));
}

#[test]
fn what_is_added_gets_a_free_name_and_what_it_must_have() {
    let edited = add(FILE, Section::Hosts, None, json!({}));
    assert_eq!(edited, FILE.replace("} # old\n", "} # old\nhost-1 = {}\n"));
    let edited = add(FILE, Section::Flow, None, json!({ "from": "ottawa", "to": "berlin" }));
    let flow =
        "\n[flow.voice-2]\nfrom = \"ottawa\"\nto = \"berlin\"\ntransport = \"udp\"\nsource = \"voice\"\n";
    assert_eq!(edited, FILE.replace("path = [\"trunk\"]\n", &format!("path = [\"trunk\"]\n{flow}")));
    let edited = add(
        FILE,
        Section::Link,
        Some("lan"),
        json!({ "between": ["ottawa", "berlin"], "forward": { "loss": "1 %" } }),
    );
    let link = "\n[link.lan]\nbetween = [\"ottawa\", \"berlin\"]\nrate = \"10 Mbit/s\"\n\n\
                [link.lan.forward]\nloss = \"1 %\"\n";
    assert_eq!(edited, FILE.replace("\"1 Mbit/s\"\n", &format!("\"1 Mbit/s\"\n{link}")));
    let refused =
        apply(FILE, &[Edit::Add { section: Section::Flow, name: Some("voice".into()), values: Tree::new() }]);
    assert_eq!(refused.unwrap_err().to_string(), "a flow `voice` already exists; choose another name");
}

#[test]
fn a_file_grows_from_nothing_in_the_usual_order() {
    let grown = apply(
        "",
        &[
            Edit::Add { section: Section::Hosts, name: Some("a".into()), values: Tree::new() },
            Edit::Add { section: Section::Hosts, name: Some("b".into()), values: Tree::new() },
            Edit::Add { section: Section::Flow, name: None, values: Tree::new() },
            Edit::Set { path: path("limits/flow.voice.loss"), value: json!("< 1 %") },
            Edit::Add { section: Section::Link, name: None, values: Tree::new() },
            Edit::Set { path: path("name"), value: json!("new") },
            Edit::Set { path: path("duration"), value: json!("1 s") },
            Edit::Place { host: "b".into(), x: 300.4, y: -20.0 },
        ],
    )
    .unwrap();
    let expected = r#"name = "new"
duration = "1 s"

[hosts]
a = {}
b = { position = [300, -20] }

[link.a-b]
between = ["a", "b"]
rate = "10 Mbit/s"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = "voice"

[limits]
"flow.voice.loss" = "< 1 %"
"#;
    assert_eq!(grown, expected);
    assert!(crate::Experiment::parse(&grown, "new.toml", &()).is_ok());
}

#[test]
fn every_shape_of_a_table_can_be_edited() {
    for text in [
        "hosts = { a = {}, b = {} }\n",
        "hosts.a = {}\nhosts.b = {}\n",
        "[hosts.a]\n\n[hosts.b]\n",
        "[hosts]\na = {}\n[hosts.b]\n",
        "[hosts]\r\na = {}\r\nb = {}\r\n",
        "[\"hosts\"]\n'a' = {}\n\"b\" = {} # no end of line",
    ] {
        let edited = add(text, Section::Hosts, Some("c"), json!({}));
        let edited = set(&edited, "hosts/b/profile", json!("x.toml"));
        let edited = set(&edited, "hosts/c/agent", json!("c:1"));
        let outline = outline(&edited).unwrap();
        let of = |name: &str| outline.hosts.iter().find(|host| host.name == name).expect(name);
        assert_eq!(outline.hosts.len(), 3, "{edited}");
        assert_eq!(of("b").keys["profile"], "x.toml", "{edited}");
        assert_eq!(of("c").keys["agent"], "c:1", "{edited}");
        assert_eq!(text.contains("\r\n"), edited.contains("\r\n"));
        assert!(
            !edited.replace("\r\n", "").contains('\r')
                && (!text.contains('\r') || !edited.replace("\r\n", "").contains('\n'))
        );
        let without = remove(&edited, "hosts/b");
        assert!(!without.contains("x.toml"), "{without}");
    }
}

#[test]
fn a_new_table_does_not_come_between_keys_of_another() {
    let text = "link.trunk.rate = \"1 Mbit/s\"\nseed = 7\n";
    let edited = set(text, "flow/voice/from", json!("a"));
    assert_eq!(edited, format!("{text}\n[flow.voice]\nfrom = \"a\"\n"));
    let text = "[link]\ntrunk = { rate = \"1 Mbit/s\" }\n\n[flow.voice]\nfrom = \"a\"\n";
    let edited = set(text, "bundle/all/flows", json!(["voice"]));
    assert_eq!(edited, format!("{text}\n[bundle.all]\nflows = [\"voice\"]\n"));
}

#[test]
fn what_cannot_be_said_or_is_not_toml_is_refused() {
    let refused = |text: &str, at: &str, value: Value| {
        apply(text, &[Edit::Set { path: path(at), value }]).unwrap_err().to_string()
    };
    assert_eq!(refused(FILE, "seed", Value::Null), "TOML has no null; remove the key instead");
    assert!(refused(FILE, "seed", json!(u64::MAX)).contains("too large a number"));
    assert!(refused(FILE, "name/first", json!("a")).contains("`name` is \"voice\", which has no keys"));
    assert!(refused(FILE, "link/trunk/between/host", json!("a")).contains("is a list"));
    assert!(
        refused("name = ", "name", json!("a"))
            .starts_with("the text is not TOML; fix that first:\nexperiment.toml:1:")
    );
    assert!(apply(FILE, &[Edit::Set { path: Vec::new(), value: json!(1) }]).is_err());
    for at in ["flow", "flow/from"] {
        assert!(
            refused("[[flow]]\nfrom = \"a\"\n", at, json!("b")).contains("is in a list of tables"),
            "{at}"
        );
    }
    let nowhere = apply(FILE, &[Edit::Place { host: "paris".into(), x: 0.0, y: 0.0 }]);
    assert_eq!(nowhere, Err(EditError::Missing("hosts.paris".into())));
}

#[test]
fn a_place_is_two_numbers_in_reach() {
    let checked = |position: &str| {
        let text = format!(
            "name = \"x\"\nduration = \"1 s\"\n[hosts]\na = {{ position = {position} }}\nb = {{}}\n[link.l]\n\
             between = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
             source = \"voice\"\n"
        );
        crate::Experiment::parse(&text, "x.toml", &()).map(drop).map_err(|problems| problems.to_string())
    };
    assert_eq!(checked("[-20, 80.5]"), Ok(()));
    for bad in ["[1]", "[1, 2, 3]", "\"left\"", "[1, \"2\"]", "[nan, 1]", "[1e9, 1]"] {
        let told = checked(bad).expect_err(bad);
        assert!(told.contains("`position` must be two numbers such as `[120, 80]`"), "{told}");
    }
    // Without a drawing nothing is different, so there is nothing to sweep.
    let swept = set(FILE, "sweep/hosts.berlin.position", json!([[1, 2], [3, 4]]));
    let problems = crate::Experiment::parse(&swept, "x.toml", &()).expect_err("no such key").to_string();
    assert!(problems.contains("hosts.berlin.position"), "{problems}");
}
