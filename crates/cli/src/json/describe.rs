//! The JSON Schema of all layouts, and the reference page: both from the types.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use trunkline_report::output::FigureDefinition;
use utoipa::ToSchema;

use super::Output;
use super::layouts::{LAYOUTS, Layout, Schemas};

/// Where the document of an API keeps its schemas, and where a JSON Schema does.
const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

/// A layout's schema and those of all types in it.
pub(super) fn schemas<T: Output>() -> Schemas {
    let name = <T as ToSchema>::name().into_owned();
    let mut all = vec![(name.clone(), <T as utoipa::PartialSchema>::schema())];
    <T as ToSchema>::schemas(&mut all);
    (name, all)
}

/// The JSON Schema (2020-12) of everything that commands print with `--json`.
///
/// # Errors
/// If two types have one name, or a schema cannot be written as JSON: a defect.
pub fn schema() -> Result<Value, String> {
    let mut definitions: BTreeMap<String, Value> = BTreeMap::new();
    let mut any = Vec::new();
    for layout in LAYOUTS {
        let (name, schemas) = (layout.schemas)();
        for (name, schema) in schemas {
            let mut schema = serde_json::to_value(schema).map_err(|e| e.to_string())?;
            adapt(&mut schema);
            if let Some(other) = definitions.insert(name.clone(), schema.clone())
                && other != schema
            {
                return Err(format!("two types of the JSON outputs are named `{name}`"));
            }
        }
        any.push((layout, name));
    }
    merge_flattened(&mut definitions);
    for (layout, name) in &any {
        tag(definitions.get_mut(name).ok_or_else(|| format!("`{name}` has no schema"))?, layout);
    }
    Ok(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "JSON output of Trunkline",
        "description": "Every object has the name of its layout (`kind`) and that layout's version (`format`). The \
                        version increases when a key changes its meaning or is removed, not when a key is added. \
                        Times are in seconds, except keys that end in `_ns`; rates in bit/s, sizes in bytes, shares \
                        from 0 to 1.",
        "oneOf": any.iter().map(|(_, name)| json!({ "$ref": format!("{DEFINITIONS}{name}") })).collect::<Vec<_>>(),
        "$defs": definitions,
    }))
}

/// References lead to this document's definitions. Keys may be added within a version, so none are forbidden.
fn adapt(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("additionalProperties") == Some(&Value::Bool(false)) {
                map.remove("additionalProperties");
            }
            if let Some(Value::String(reference)) = map.get_mut("$ref") {
                *reference = reference.replace(COMPONENTS, DEFINITIONS);
            }
            map.values_mut().for_each(adapt);
            if !map.contains_key("description")
                && let Some(description) = map.get_mut("oneOf").and_then(of_reference)
            {
                map.insert("description".to_owned(), description);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(adapt),
        _ => {}
    }
}

/// Takes the description of a key away from the reference among its alternatives.
fn of_reference(alternatives: &mut Value) -> Option<Value> {
    let mut alternatives = alternatives.as_array_mut()?.iter_mut().filter_map(Value::as_object_mut);
    alternatives.find(|one| one.contains_key("$ref"))?.remove("description")
}

/// A type that has the keys of others becomes one object with all keys.
fn merge_flattened(definitions: &mut BTreeMap<String, Value>) {
    let before = definitions.clone();
    for schema in definitions.values_mut() {
        if schema.get("allOf").is_some() {
            let description = schema.get("description").cloned();
            *schema = merged(schema, &before);
            if let Some(description) = description {
                schema["description"] = description;
            }
        }
    }
}

fn merged(schema: &Value, definitions: &BTreeMap<String, Value>) -> Value {
    if let Some(parts) = schema["allOf"].as_array() {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for part in parts.iter().map(|part| merged(part, definitions)) {
            properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
            required.extend(part["required"].as_array().cloned().unwrap_or_default());
        }
        return json!({ "type": "object", "properties": properties, "required": required });
    }
    let name = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(DEFINITIONS));
    match name.and_then(|name| definitions.get(name)) {
        Some(definition) => merged(definition, definitions),
        None => schema.clone(),
    }
}

/// Adds the name and the version of a layout, and its warnings.
fn tag(schema: &mut Value, layout: &Layout) {
    schema["properties"]["kind"] = json!({ "description": "The name of this layout.", "const": layout.kind });
    schema["properties"]["format"] =
        json!({ "description": "The version of this layout.", "const": layout.format });
    if schema["properties"]["warnings"].is_null() {
        schema["properties"]["warnings"] = json!({
            "description": "Warnings since the last object; left out if there are none.",
            "type": "array",
            "items": { "$ref": format!("{DEFINITIONS}ErrorProblem") },
        });
    }
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    required.retain(|key| key != "kind" && key != "format");
    required.splice(0..0, [json!("kind"), json!("format")]);
    schema["required"] = required.into();
}

/// The reference page: every layout with its keys, types and meanings.
///
/// # Errors
/// As [`schema`].
pub fn reference() -> Result<String, String> {
    let schema = schema()?;
    let mut page = String::from(
        "# JSON output\n\n<!-- Generated by `cargo xtask generate` from crates/cli/src/json. -->\n\n\
         With `--json` a command prints its result on standard output as JSON, and nothing else there. Every object has the \
         name of its layout, `kind`, and that layout's version, `format`. The version increases when a key changes its meaning or is removed, \
         not when a key is added. [`json-output.schema.json`](json-output.schema.json) is the JSON Schema (2020-12) \
         of all of them.\n\n\
         Times are in seconds. Only keys that end in `_ns` are integers of nanoseconds: counters of a wire, and the limit of \
         an agent. Rates are in bits per second, sizes in bytes, shares from 0 to 1; moments are text, `2026-01-31T12:00:00Z`. \
         A figure without a value is null or left out.\n\n\
         A command that fails prints the [error](#error) as the last object, beside the sentence on standard error, and exits \
         with its `code`. So do mistakes on the command line. A broken limit or a missed goal (exit code 3) and an interruption \
         (exit code 130) are results, not errors.\n\n\
         Each warning on standard error is in the list `warnings` of the next object as well, with its file where it is about \
         one; those of an [advice](#advice) are sentences. A warning after the last result makes a last object, \
         [`warnings`](#warnings).\n\n\
         | `kind` | `format` | printed by |\n| --- | --- | --- |\n",
    );
    for layout in LAYOUTS {
        let commands: Vec<String> = layout.commands.iter().map(|command| printed_by(command)).collect();
        let kind = layout.kind;
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| [`{kind}`](#{kind}) | {} | {} |", layout.format, commands.join(", "));
    }
    let definitions = schema["$defs"].as_object().cloned().unwrap_or_default();
    let layouts: Vec<(String, &Layout)> =
        LAYOUTS.iter().map(|layout| ((layout.schemas)().0, layout)).collect();
    for (name, layout) in &layouts {
        section(&mut page, layout.kind, &definitions[name]);
    }
    page.push_str("\n## Figures of flows\n");
    figures(&mut page, &trunkline_report::figures());
    page.push_str("\n## Figures of bundles\n");
    figures(&mut page, &trunkline_report::bundle_figures());
    page.push_str("\n## Types in these\n");
    for (name, schema) in
        definitions.iter().filter(|(name, _)| layouts.iter().all(|(other, _)| other != *name))
    {
        section(&mut page, name, schema);
    }
    Ok(page)
}

fn figures(page: &mut String, all: &BTreeMap<String, FigureDefinition>) {
    page.push_str("\n| figure | name | unit | meaning |\n| --- | --- | --- | --- |\n");
    for (key, FigureDefinition { name, unit, definition, .. }) in all {
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{key}` | {name} | {unit} | {} |", definition.replace('|', "\\|"));
    }
}

fn printed_by(command: &str) -> String {
    match command.split(' ').next() {
        Some("every") => command.to_owned(),
        _ => format!("`trunkline {command}`"),
    }
}

fn section(page: &mut String, name: &str, schema: &Value) {
    let _ = write!(page, "\n### {name}\n\n{}\n", described(schema));
    if let Some(variants) = schema["oneOf"].as_array() {
        page.push('\n');
        for variant in variants {
            let _ = writeln!(page, "- {}: {}", type_of(variant), described(variant));
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", plain(word))).collect();
        let _ = writeln!(page, "\nOne of {}.", words.join(", "));
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    page.push_str("\n| key | type | meaning |\n| --- | --- | --- |\n");
    let required = schema["required"].as_array();
    for (key, of) in properties {
        let optional =
            if required.is_some_and(|all| all.contains(&json!(key))) { "" } else { ", may be missing" };
        let _ = writeln!(page, "| `{key}` | {}{optional} | {} |", type_of(of), described(of));
    }
}

fn described(schema: &Value) -> String {
    let own = schema["description"].as_str().unwrap_or_default();
    own.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn plain(word: &Value) -> String {
    word.as_str().map_or_else(|| word.to_string(), str::to_owned)
}

/// A type in words: `number or null`, `list of Axis`.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix(DEFINITIONS)) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if !schema["const"].is_null() {
        return format!("`{}`", plain(&schema["const"]));
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(all) = schema[several].as_array() {
            let mut words: Vec<String> = all.iter().map(type_of).collect();
            words.sort_by_key(|word| word == "null");
            return words.join(" or ");
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(|word| format!("`{}`", plain(word))).collect::<Vec<_>>().join(" or ");
    }
    let name = |name: &str| match name {
        "array" => format!("list of {}", items(schema)),
        "object" if schema["additionalProperties"].is_object() => {
            format!("{} by name", type_of(&schema["additionalProperties"]))
        }
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(one) => name(one),
        Value::Array(several) => {
            several.iter().filter_map(Value::as_str).map(name).collect::<Vec<_>>().join(" or ")
        }
        _ => "any".to_owned(),
    }
}

fn items(schema: &Value) -> String {
    match schema["prefixItems"].as_array() {
        Some(items) => items.iter().map(type_of).collect::<Vec<_>>().join(", "),
        None => type_of(&schema["items"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_and_key_is_described() {
        let schema = schema().expect("no two types have one name");
        let definitions = schema["$defs"].as_object().expect("there are definitions");
        for (name, definition) in definitions {
            assert!(!described(definition).is_empty(), "{name}");
            for (key, of) in definition["properties"].as_object().into_iter().flatten() {
                assert!(!described(of).is_empty(), "{name}: {key}");
            }
        }
        let figures = trunkline_report::figures();
        assert!(figures.values().all(|figure| !figure.definition.is_empty() && !figure.unit.is_empty()));
    }
}
