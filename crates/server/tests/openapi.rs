//! The document of the API: complete, and the one that is committed.

use std::collections::BTreeSet;

use serde_json::Value;

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = serde_json::to_value(trunkline_server::openapi()).unwrap();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 30);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn every_operation_says_what_it_does() {
    let document = serde_json::to_value(trunkline_server::openapi()).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path}");
            assert!(operation["responses"]["default"].is_object(), "{method} {path}");
        }
    }
}

#[test]
fn the_committed_document_is_this_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    let committed: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let made = serde_json::to_value(trunkline_server::openapi()).unwrap();
    assert!(committed == made, "make it again: trunkline serve --openapi > crates/server/openapi.json");
}
