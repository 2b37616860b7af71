//! What a file means beyond its words: paths, directions, limits, random numbers, and the schema that editors use.

mod common;

use common::{Beside, EXAMPLES, example};
use trunkline_core::schema::{Default as Preset, Parameter};
use trunkline_core::{Duration, Seed, Time};
use trunkline_editor::json_schema;
use trunkline_experiment::{Experiment, reference};
use trunkline_metrics::Listening;
use trunkline_metrics::quality::Codec;
use trunkline_traffic::MessageBuffer;

const FILE: &str = r#"name = "meaning"
duration = "1 s"

[hosts]
a = {}
b = {}
c = {}

[link.first]
between = ["a", "b"]
rate = "2 Mbit/s"
loss = "1 %"

[link.first.backward]
rate = "64 kbit/s"

[link.second]
between = ["c", "b"]
rate = "1 Mbit/s"

[flow.voice]
from = "a"
to = "c"
transport = "udp"
source = { kind = "load", message = "80 B", interval = { kind = "exponential", mean = "10 ms" } }
"#;

fn parse(text: &str) -> Experiment {
    Experiment::parse(text, "x.toml", &Beside).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_way_back_is_the_way_there_reversed() {
    let scenario = parse(FILE).points.first().scenario.clone();
    let steps = |path: &[trunkline_experiment::PathStep]| {
        path.iter().map(|s| (s.link, s.from_port)).collect::<Vec<_>>()
    };
    assert_eq!(steps(&scenario.flows[0].to[0].forward), [(0, 0), (1, 1)]);
    assert_eq!(steps(&scenario.flows[0].to[0].backward), [(1, 0), (0, 1)]);
}

#[test]
fn a_direction_takes_what_the_link_says_but_its_own_first() {
    let scenario = parse(FILE).points.first().scenario.clone();
    let [forward, backward] = scenario.links[0].directions.as_slice() else { panic!("two directions") };
    assert_eq!((forward.rate.bits_per_second(), backward.rate.bits_per_second()), (2_000_000, 64_000));
    assert_eq!(forward.impairments, backward.impairments);
    assert_eq!(scenario.build_links(Seed::new(1, 0)).len(), 2);
}

#[test]
fn of_several_paths_the_written_one_is_taken() {
    let more = "[link.other]\nbetween = [\"a\", \"c\"]\nrate = \"1 Mbit/s\"\n[flow.voice]\npath = [\"first\", \"second\"]";
    let text = FILE.replace("[flow.voice]", more);
    assert_eq!(parse(&text).points.first().scenario.flows[0].to[0].forward.len(), 2);
    let shortest = FILE.replace("[flow.voice]", &more[..more.find("path").unwrap()]);
    assert_eq!(parse(&shortest).points.first().scenario.flows[0].to[0].forward.len(), 1);
}

/// When the messages of the first member of the first flow of that name are due.
fn due_times(experiment: &Experiment, name: &str) -> Vec<Time> {
    let scenario = &experiment.points.first().scenario;
    let flow =
        scenario.flows.iter().position(|flow| flow.meta.name == name).expect("the flow is in the file");
    let mut source =
        scenario.build_source(flow, 0, Seed::new(experiment.seed, 0)).expect("its values were checked");
    let mut messages = MessageBuffer::default();
    while let Some(due) = source.next_due() {
        source.produce(due, &mut messages);
    }
    messages.messages().iter().map(|message| message.due).collect()
}

#[test]
fn a_listener_hears_the_codec_of_the_flow() {
    let sweep = r#"
[sweep]
"flow.voice.codec" = ["g729a", { kind = "other", ie = 10, bpl = 32.5, look-ahead = "5 ms" }]
"#;
    let listening = |text: &str| -> Vec<Option<Listening>> {
        parse(text).points.iter().map(|point| point.scenario.flows[0].meta.listening).collect()
    };
    let [Some(published), Some(other)] = listening(&format!("{FILE}playout = \"40 ms\"\n{sweep}"))[..] else {
        panic!("two codecs")
    };
    // The pace of the load is that of the packets.
    assert_eq!(
        (published.codec.name, published.codec.ie, published.packet),
        ("g729a", 11.0, Duration::from_millis(10))
    );
    assert_eq!(
        (other.codec.ie, other.codec.bpl, other.codec.look_ahead),
        (10.0, 32.5, Duration::from_millis(5))
    );
    assert_eq!(listening(&format!("{FILE}playout = \"40 ms\"")), [None], "nobody knows what a load is");
    let voice = FILE.replace(
        r#""load", message = "80 B", interval = { kind = "exponential", mean = "10 ms" }"#,
        r#""voice""#,
    );
    assert_eq!(listening(&voice), [None], "nobody plays it");
    let listening = listening(&format!("{voice}playout = \"40 ms\""));
    assert_eq!(listening[0].map(|listening| listening.codec), Some(Codec::G711));
}

#[test]
fn another_flow_changes_no_draws_of_this_one() {
    let alone = due_times(&parse(FILE), "voice");
    assert!(alone.len() > 50, "{}", alone.len());
    let other = "[flow.another]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n\
                 source = { kind = \"load\", message = \"80 B\", interval = { kind = \"exponential\", mean = \"10 ms\" } }\n\
                 [flow.voice]";
    let together = parse(&FILE.replace("[flow.voice]", other));
    assert_eq!(due_times(&together, "voice"), alone);
    assert_ne!(due_times(&together, "another"), alone);
}

#[test]
fn the_reference_explains_every_key_of_the_registries() {
    let parameters = trunkline_network::queue::KINDS
        .iter()
        .map(|kind| kind.parameters)
        .chain(trunkline_network::medium::KINDS.iter().map(|kind| kind.parameters))
        .chain(trunkline_network::impairment::LOSS_KINDS.iter().map(|kind| kind.parameters))
        .chain(trunkline_traffic::KINDS.iter().map(|kind| kind.parameters))
        .chain([trunkline_network::impairment::PARAMETERS, trunkline_network::host::PARAMETERS]);
    let page = reference();
    for Parameter { name, default, doc, .. } in parameters.flatten() {
        assert!(page.contains(&format!("| `{name}` |")), "`{name}` is not in the reference");
        assert!(!doc.is_empty() && doc.ends_with('.'), "`{name}` is not explained by a sentence: {doc}");
        if let Preset::Text(text) = default {
            assert!(
                page.contains(&format!("| `{text}` |")),
                "the default of `{name}` is not in the reference"
            );
        }
    }
}

#[test]
fn the_reference_names_every_figure_and_table() {
    let page = reference();
    for word in
        ["`[link.NAME]`", "`[flow.NAME]`", "`[sweep]`", "`latency.p999`", "`gilbert-elliott`", "`bivalue`"]
    {
        assert!(page.contains(word), "{word}");
    }
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let lines: Vec<&str> = page.lines().collect();
    let is_row = |line: &&str| line.starts_with('|');
    let tables: Vec<&[&str]> =
        lines.chunk_by(|one, next| is_row(one) == is_row(next)).filter(|lines| is_row(&lines[0])).collect();
    assert!(tables.len() > 20, "{}", tables.len());
    for table in tables {
        let head = columns(table[0]);
        assert!((3..=5).contains(&head), "{}", table[0]);
        assert!(table.iter().all(|row| columns(row) == head), "a table is broken: {}", table[0]);
    }
}

#[test]
fn the_json_schema_knows_every_key_of_the_examples() {
    let schema = json_schema();
    for name in EXAMPLES {
        let file: serde_json::Value =
            serde_json::to_value(example(name).parse::<toml::Table>().unwrap()).unwrap();
        let errors: Vec<String> = jsonschema_errors(&schema, &schema, &file);
        assert!(errors.is_empty(), "{name}: {errors:?}");
        // What is defined once is looked up.
        let mut wrong = file.clone();
        wrong["flow"]
            .as_object_mut()
            .unwrap()
            .values_mut()
            .for_each(|flow| flow["transport"] = "pigeon".into());
        assert!(!jsonschema_errors(&schema, &schema, &wrong).is_empty(), "{name}");
    }
    let mut halved: serde_json::Value =
        serde_json::to_value(example("cellular-trace.toml").parse::<toml::Table>().unwrap()).unwrap();
    halved["link"]["radio"]["backward"].as_object_mut().unwrap().remove("file");
    assert_eq!(jsonschema_errors(&schema, &schema, &halved).len(), 1, "a trace is missing in one direction");
    let wrong: serde_json::Value =
        serde_json::json!({ "name": 5, "duration": "1 parsec", "hosts": {}, "flow": {}, "x": 1 });
    assert_eq!(jsonschema_errors(&schema, &schema, &wrong).len(), 3);
}

/// The part of JSON Schema that ours uses, without patterns of text: enough to see that it allows what is right.
fn jsonschema_errors(
    root: &serde_json::Value,
    schema: &serde_json::Value,
    value: &serde_json::Value,
) -> Vec<String> {
    use serde_json::Value;
    let mut errors = Vec::new();
    if let Some(name) = schema["$ref"].as_str() {
        let defined = name.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        errors.extend(jsonschema_errors(root, defined.expect("what is referred to is defined"), value));
    }
    if let Some(any) = schema["anyOf"].as_array()
        && !any.iter().any(|schema| jsonschema_errors(root, schema, value).is_empty())
    {
        errors.push(format!("{value} is none of {}", any.len()));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        errors.push(format!("{value} is not in {words:?}"));
    }
    if !schema["const"].is_null() && schema["const"] != *value {
        errors.push(format!("{value} is not {}", schema["const"]));
    }
    let right = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    if !right {
        errors.push(format!("{value} is no {}", schema["type"]));
    }
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str())
        && pattern.contains("(ns|us")
        && !["ns", "us", "ms", "s", "min", "h"].iter().any(|unit| text.ends_with(&format!(" {unit}")))
    {
        errors.push(format!("{text} is no duration"));
    }
    if let Value::Object(map) = value {
        for required in schema["required"].as_array().into_iter().flatten() {
            if required.as_str().is_none_or(|required| !map.contains_key(required)) {
                errors.push(format!("{required} is missing"));
            }
        }
        for (key, value) in map {
            let patterns = schema["patternProperties"].as_object();
            let known = &schema["properties"][key];
            if !known.is_null() {
                errors.extend(jsonschema_errors(root, known, value));
            } else if patterns.is_some_and(|p| key.starts_with("flow.") && p.len() == 1) {
                continue;
            } else if schema["additionalProperties"] == Value::Bool(false) {
                errors.push(format!("unknown key {key}"));
            } else if schema["additionalProperties"].is_object() {
                errors.extend(jsonschema_errors(root, &schema["additionalProperties"], value));
            }
        }
    }
    errors
}
