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

/// The operation of an address as documents write it: `GET /runs/{id}`, or `…/flows/{flow}/cdf` for the end of one.
fn operation<'d>(document: &'d Value, method: &str, address: &str) -> Option<&'d Value> {
    let segments: Vec<&str> = address.trim_start_matches("…/").trim_start_matches('/').split('/').collect();
    let is_alike = |path: &str| {
        let known: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let is_end = address.starts_with('…') && known.len() > segments.len();
        (is_end || known.len() == segments.len())
            && segments.iter().rev().zip(known.iter().rev()).all(|(segment, known)| {
                segment == known || (known.starts_with('{') && segment.starts_with('{'))
            })
    };
    let (_, item) = document["paths"].as_object()?.iter().find(|(path, _)| is_alike(path))?;
    item.get(method.to_lowercase())
}

#[test]
fn the_documents_name_addresses_and_parameters_that_exist() {
    let document = serde_json::to_value(trunkline_server::openapi()).unwrap();
    let mut count = 0;
    for name in ["api.md", "drawing.md", "page.md"] {
        let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        for quoted in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let (method, address) = match quoted.split_once(' ') {
                Some((method @ ("GET" | "POST" | "PUT" | "DELETE"), address)) => (method, address),
                _ if quoted.starts_with("…/") => ("GET", quoted),
                _ => continue,
            };
            let (address, query) = address.split_once('?').unwrap_or((address, ""));
            let address = address.trim_start_matches("/api/v1");
            let found = operation(&document, method, address);
            let found = found.unwrap_or_else(|| panic!("{name}: there is no `{method} {address}`"));
            for parameter in
                query.split('&').filter_map(|part| part.split('=').next()).filter(|part| !part.is_empty())
            {
                let known = found["parameters"].as_array().into_iter().flatten();
                let has = known.into_iter().any(|known| known["name"] == parameter);
                assert!(has, "{name}: `{method} {address}` has no parameter `{parameter}`");
            }
            count += 1;
        }
    }
    assert!(count > 25, "{count} addresses");
}
