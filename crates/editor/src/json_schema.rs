//! The JSON Schema of an experiment file, by which editors complete and check it.

use serde_json::{Map, Value, json};
use trunkline_core::schema::{Default as Preset, Kind, Parameter};

use trunkline_experiment::schema::{
    self, Alternative, DISTRIBUTIONS, EVERY, FARTHEST, Key, Limited, OneOf, Part, RANGE_KEYS, SECTIONS,
    SERIES, SINK, Schema, SeriesKind, Shape, default_value,
};

const NAME: &str = "^[A-Za-z0-9_-]+$";
const DURATION: &str = "(ns|us|µs|μs|ms|s|min|h)";
const SIZE: &str = "(B|[kK]B|MB|GB|KiB|MiB|GiB)";
const NUMBER: &str = r"^\s*\+?[0-9._]+([eE][+-]?[0-9]+)?\s*";

/// The JSON Schema (draft 2020-12) of an experiment file. What it allows may still be refused by
/// [`Experiment::parse`](trunkline_experiment::Experiment::parse), which knows more: which hosts there are, what fits together.
pub fn json_schema() -> Value {
    let schema = Schema::default();
    let mut sections = properties(&schema.experiment);
    for (section, doc) in SECTIONS {
        let mut value = match *section {
            "hosts" => named(object(properties(&schema.host), required(&schema.host))),
            "link" => named(link(&schema)),
            "flow" => named(object(properties(&schema.flow), required(&schema.flow))),
            "bundle" => named(object(properties(&schema.bundle), required(&schema.bundle))),
            "sweep" => json!({
                "type": "object",
                "additionalProperties": { "anyOf": [{ "type": "array", "minItems": 1 }, range(), { "type": "object" }] },
            }),
            _ => limits(),
        };
        describe(&mut value, doc);
        sections.insert((*section).to_owned(), value);
    }
    let mut needed = required(&schema.experiment);
    needed.push(json!("hosts"));
    let mut whole = object(sections, needed);
    insert(&mut whole, "$schema", json!("https://json-schema.org/draft/2020-12/schema"));
    insert(&mut whole, "title", json!("Trunkline experiment file"));
    insert(&mut whole, "$defs", Value::Object(definitions(&schema)));
    whole
}

/// Swept values by their ends.
fn range() -> Value {
    let key = |(name, doc): &(&str, &str)| {
        let mut value = match *name {
            "factor" => json!({ "type": "number", "exclusiveMinimum": 1 }),
            "points" => json!({ "type": "integer", "minimum": 2 }),
            "scale" => json!({ "enum": ["linear", "logarithmic"] }),
            _ => json!({ "type": ["string", "number"] }),
        };
        describe(&mut value, doc);
        ((*name).to_owned(), value)
    };
    object(RANGE_KEYS.iter().map(key).collect(), vec![json!("from"), json!("to")])
}

/// What stands in several places: keys of several kinds, the directions of a link, distributions.
fn definitions(schema: &Schema) -> Map<String, Value> {
    let mut definitions = Map::new();
    for key in schema.flow.iter().chain(schema.direction.iter().flatten()) {
        if let Shape::OneOf(one_of) = &key.shape {
            definitions.insert(key.name.to_owned(), one(one_of));
        }
    }
    for (medium, keys) in schema.direction.iter().enumerate() {
        definitions.insert(direction_of(medium), object(properties(keys), Vec::new()));
    }
    definitions.insert("durations".to_owned(), distribution(quantity(DURATION)));
    definitions.insert("sizes".to_owned(), distribution(quantity(SIZE)));
    definitions
}

/// The name of what may stand in one direction of a link over this medium.
fn direction_of(medium: usize) -> String {
    format!("direction-{}", trunkline_network::medium::KINDS[medium].name)
}

/// What is defined once, under this name.
fn defined(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A table of named tables.
fn named(each: Value) -> Value {
    json!({ "type": "object", "propertyNames": { "pattern": NAME }, "additionalProperties": each })
}

fn object(properties: Map<String, Value>, required: Vec<Value>) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn insert(object: &mut Value, key: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(key.to_owned(), value);
    }
}

fn describe(value: &mut Value, doc: &str) {
    insert(value, "description", json!(doc));
}

fn required(keys: &[Key]) -> Vec<Value> {
    keys.iter().filter(|key| key.default == Preset::Required).map(|key| json!(key.name)).collect()
}

fn properties(keys: &[Key]) -> Map<String, Value> {
    keys.iter().map(|key| (key.name.to_owned(), property(key))).collect()
}

/// A link: one object per medium.
fn link(schema: &Schema) -> Value {
    let each =
        schema.direction.iter().zip(&schema.shared).enumerate().map(|(medium, (direction, shared))| {
            let is_pair = *trunkline_network::medium::KINDS[medium].stations.end() == 2;
            let mut all = properties(&schema.link);
            let own = defined(&direction_of(medium));
            let apart = match is_pair {
                true => [("forward", Some(own.clone())), ("backward", Some(own)), ("station", None)],
                false => [("forward", None), ("backward", None), ("station", Some(named(own)))],
            };
            for (part, own) in apart {
                let doc = all.remove(part).and_then(|value| value.get("description").cloned());
                if let Some(mut own) = own {
                    insert(&mut own, "description", doc.unwrap_or_default());
                    all.insert(part.to_owned(), own);
                }
            }
            all.extend(properties(shared));
            all.extend(properties(direction));
            let mut needed = required(&schema.link);
            needed.extend(required(shared));
            let mut link = object(all, needed);
            let needed = required(direction);
            if !needed.is_empty() {
                // In the link's own table or in those of both directions; stations are not known here.
                let here = json!({ "required": needed });
                let parts = json!({ "forward": here, "backward": here });
                let there = json!({ "properties": parts, "required": ["forward", "backward"] });
                // A profile may have them.
                let profile = json!({ "required": ["profile"] });
                let any = if is_pair { json!([here, there, profile]) } else { json!([here, profile]) };
                insert(&mut link, "anyOf", any);
            }
            link
        });
    let mut media: Vec<Value> = each.collect();
    if media.len() == 1 { media.remove(0) } else { json!({ "anyOf": media }) }
}

fn property(key: &Key) -> Value {
    let mut value = match &key.shape {
        Shape::Plain(kind) => return plain(kind, key.default, key.doc),
        Shape::Host | Shape::Flow => json!({ "type": "string", "pattern": NAME }),
        Shape::Sinks => {
            let host = json!({ "type": "string", "pattern": NAME });
            let mut keys = properties(&SINK.iter().map(Key::from).collect::<Vec<_>>());
            keys.insert("host".to_owned(), host.clone());
            let sink = json!({ "anyOf": [host, object(keys, vec![json!("host")])] });
            json!({ "anyOf": [sink, { "type": "array", "items": sink }] })
        }
        Shape::Hosts => {
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 2 })
        }
        Shape::Flows => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
        Shape::Links => json!({ "type": "array", "items": { "type": "string" } }),
        Shape::Medium(media) => json!({ "enum": media.iter().map(|medium| medium.name).collect::<Vec<_>>() }),
        Shape::Direction | Shape::Stations => json!({ "type": "object" }),
        Shape::Position => {
            let number = json!({ "type": "number", "minimum": -FARTHEST, "maximum": FARTHEST });
            json!({ "type": "array", "items": number, "minItems": 2, "maxItems": 2 })
        }
        Shape::OneOf(_) => defined(key.name),
    };
    describe(&mut value, key.doc);
    if let Preset::Text(text) = key.default {
        insert(&mut value, "default", json!(text));
    }
    value
}

fn one(one_of: &OneOf) -> Value {
    let mut any: Vec<Value> = vec![json!({ "enum": one_of.words().collect::<Vec<_>>() })];
    if one_of.plain_share.is_some() {
        any.push(of_kind(&Kind::Ratio));
    }
    any.extend(one_of.alternatives.iter().map(alternative));
    json!({ "anyOf": any })
}

fn alternative(alternative: &Alternative) -> Value {
    let words: Vec<&str> =
        core::iter::once(alternative.name).chain(alternative.aliases.iter().copied()).collect();
    let property = |p: &Parameter| (p.name.to_owned(), plain(&p.kind, p.default, p.doc));
    let mut properties: Map<String, Value> = alternative.parameters.iter().map(property).collect();
    properties.insert("kind".to_owned(), json!({ "enum": words }));
    let needed = alternative.parameters.iter().filter(|p| p.default == Preset::Required).map(|p| p.name);
    let mut value =
        object(properties, core::iter::once("kind").chain(needed).map(|name| json!(name)).collect());
    describe(&mut value, alternative.doc);
    value
}

fn plain(kind: &Kind, default: Preset, doc: &str) -> Value {
    let mut value = of_kind(kind);
    describe(&mut value, doc);
    if let Preset::Text(text) = default {
        let default = match default_value(text, kind) {
            Ok(trunkline_core::schema::Value::Integer(n)) => json!(n),
            Ok(trunkline_core::schema::Value::Number(n)) => json!(n),
            Ok(trunkline_core::schema::Value::Flag(flag)) => json!(flag),
            _ => json!(text),
        };
        insert(&mut value, "default", default);
    }
    value
}

fn of_kind(kind: &Kind) -> Value {
    match kind {
        Kind::Duration { .. } => quantity(DURATION),
        Kind::Rate { .. } => quantity("([kKmMgG]?[bB][iI][tT](/s)?)"),
        Kind::Bytes { .. } => quantity(SIZE),
        Kind::Limit => quantity(&format!("(packets?|{SIZE})")),
        Kind::Ratio => {
            json!({ "anyOf": [quantity("%?"), { "type": "number", "minimum": 0, "maximum": 1 }] })
        }
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number { min, max } => {
            let mut value = json!({ "type": "number", "minimum": min });
            if max.is_finite() {
                insert(&mut value, "maximum", json!(max));
            }
            value
        }
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Text | Kind::File | Kind::DeliveryTrace => json!({ "type": "string" }),
        Kind::Choice(choices) => {
            json!({ "enum": choices.iter().map(|choice| choice.name).collect::<Vec<_>>() })
        }
        Kind::ChoiceOrFile(choices) => {
            let words: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
            json!({ "anyOf": [{ "enum": words }, { "type": "string", "pattern": r"\.toml$" }] })
        }
        Kind::OverTime(of) => series(&of_kind(of)),
        Kind::Durations { .. } => defined("durations"),
        Kind::Sizes { .. } => defined("sizes"),
    }
}

fn quantity(unit: &str) -> Value {
    json!({ "type": "string", "pattern": format!("{NUMBER}{unit}\\s*$") })
}

/// A fixed value, or a table that names a distribution of such values.
fn distribution(fixed: Value) -> Value {
    let mut any = vec![fixed.clone()];
    for kind in DISTRIBUTIONS {
        let part = |(name, part, doc): &(&str, Part, &str)| {
            let mut value = match part {
                Part::Value => fixed.clone(),
                // Its kind is the same whatever is drawn.
                part => of_kind(&part.kind(Kind::Ratio)),
            };
            describe(&mut value, doc);
            ((*name).to_owned(), value)
        };
        let mut properties: Map<String, Value> = kind.parts.iter().map(part).collect();
        properties.insert("kind".to_owned(), json!({ "const": kind.name }));
        let needed = core::iter::once("kind").chain(kind.parts.iter().map(|(name, _, _)| *name));
        let mut value = object(properties, needed.map(|name| json!(name)).collect());
        describe(&mut value, kind.doc);
        any.push(value);
    }
    json!({ "anyOf": any })
}

/// A value that is always the same, or a table of values over time.
fn series(fixed: &Value) -> Value {
    let mut any = vec![fixed.clone()];
    for SeriesKind { name, doc, steps, is_file } in SERIES {
        let pair = json!({ "type": "array", "prefixItems": [quantity(DURATION), fixed], "minItems": 2, "maxItems": 2 });
        let mut of_steps = match is_file {
            true => json!({ "type": "string" }),
            false => json!({ "type": "array", "items": pair, "minItems": 1 }),
        };
        describe(&mut of_steps, steps.1);
        let mut every = of_kind(&EVERY.2);
        describe(&mut every, EVERY.1);
        let properties = [("kind", json!({ "const": name })), (steps.0, of_steps), (EVERY.0, every)];
        let properties = properties.map(|(key, value)| (key.to_owned(), value));
        let mut value = object(properties.into_iter().collect(), vec![json!("kind"), json!(steps.0)]);
        describe(&mut value, doc);
        any.push(value);
    }
    json!({ "anyOf": any })
}

fn limits() -> Value {
    let (of_flows, of_sinks) = (figures(schema::of_flows()), figures(schema::of_sinks()));
    let (of_bundles, of_classes) = (figures(schema::of_bundles()), figures(schema::of_connections()));
    let name = "[A-Za-z0-9_-]+";
    let flow = format!("flow\\.{name}\\.((each\\.)?({of_flows})|sink\\.{name}\\.({of_sinks}))");
    let bundle = format!("bundle\\.{name}\\.(({of_bundles})|{name}\\.({of_classes}))");
    let key = format!("^({flow}|{bundle})$");
    json!({
        "type": "object",
        "patternProperties": { key: { "type": "string", "pattern": "^\\s*[<>]=?\\s*-?[0-9.]" } },
        // Dotted keys without quotes are tables in tables.
        "additionalProperties": { "type": "object" },
    })
}

fn figures(all: impl Iterator<Item = Limited>) -> String {
    all.map(|known| known.limit.key.replace('.', "\\.")).collect::<Vec<_>>().join("|")
}
