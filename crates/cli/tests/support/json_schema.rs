//! The part of JSON Schema (2020-12) that our generated schemas use. A keyword that is not known here is a failure, so that
//! nothing goes unchecked.

use serde_json::{Map, Value};

/// Keywords that check nothing.
const ANNOTATIONS: &[&str] = &["$schema", "$defs", "title", "description", "default", "examples"];

/// What of `value` is not as `schema` says, with its place: `/runs/0/seed is missing`. A key that the schema does not
/// describe counts too. `root` has the definitions.
///
/// # Panics
/// If the schema has a keyword that is not known here, or a reference that leads nowhere.
pub fn problems(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
    problems_at(root, schema, value, "")
}

struct Checked<'s> {
    root: &'s Value,
    problems: Vec<String>,
}

impl<'s> Checked<'s> {
    fn check(&mut self, schema: &Value, value: &Value, place: &str) {
        let Value::Object(keywords) = schema else { panic!("{schema} is no schema") };
        for (keyword, argument) in keywords {
            match keyword.as_str() {
                "$ref" => self.check(self.referred(argument), value, place),
                "oneOf" => self.one_of(argument, value, place),
                "type" => self.require(is_of(argument, value), place, &format!("is no {argument}: {value}")),
                "format" => {
                    self.require(has_format(argument, value), place, &format!("is no {argument}: {value}"))
                }
                "const" => self.require(argument == value, place, &format!("is not {argument}: {value}")),
                "enum" => {
                    let is_one = argument.as_array().is_some_and(|all| all.contains(value));
                    self.require(is_one, place, &format!("is none of {argument}: {value}"));
                }
                "minimum" => {
                    let is_enough = value.as_f64().is_none_or(|number| Some(number) >= argument.as_f64());
                    self.require(is_enough, place, &format!("is less than {argument}: {value}"));
                }
                "uniqueItems" => {
                    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                    let is_new = |(index, item)| !items.iter().take(index).any(|other: &Value| other == item);
                    self.require(items.iter().enumerate().all(is_new), place, "has an item twice");
                }
                "propertyNames" => {
                    for key in value.as_object().into_iter().flat_map(Map::keys) {
                        self.check(argument, &key.as_str().into(), &format!("{place}/{key}"));
                    }
                }
                "items" | "prefixItems" => self.items(keywords, value, place),
                "required" => self.required(argument, value, place),
                // With `properties` or, in a map, without.
                "properties" => self.keys(keywords, value, place),
                "additionalProperties" if !keywords.contains_key("properties") => {
                    self.keys(keywords, value, place)
                }
                "additionalProperties" => {}
                other => {
                    assert!(ANNOTATIONS.contains(&other), "the keyword `{other}` is not known: {schema}");
                }
            }
        }
    }

    fn require(&mut self, holds: bool, place: &str, problem: &str) {
        if !holds {
            self.problems.push(format!("{place} {problem}"));
        }
    }

    fn referred(&self, reference: &Value) -> &'s Value {
        let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
        let found = pointer.and_then(|pointer| self.root.pointer(pointer));
        found.unwrap_or_else(|| panic!("{reference} leads nowhere"))
    }

    fn one_of(&mut self, schemas: &Value, value: &Value, place: &str) {
        let schemas = schemas.as_array().map(Vec::as_slice).unwrap_or_default();
        let tried: Vec<Vec<String>> =
            schemas.iter().map(|one| problems_at(self.root, one, value, place)).collect();
        let fitting = tried.iter().filter(|problems| problems.is_empty()).count();
        if fitting != 1 {
            // Those of the nearest tell most.
            let nearest = tried.into_iter().min_by_key(Vec::len).unwrap_or_default().join("; ");
            self.problems.push(format!("{place} fits {fitting} of {} schemas: {nearest}", schemas.len()));
        }
    }

    fn items(&mut self, keywords: &Map<String, Value>, value: &Value, place: &str) {
        let first =
            keywords.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            let place = format!("{place}/{index}");
            match first.get(index).or(keywords.get("items")) {
                Some(Value::Bool(allowed)) => self.require(*allowed, &place, "is one too many"),
                Some(schema) => self.check(schema, item, &place),
                None => self.require(false, &place, "is not described"),
            }
        }
    }

    fn required(&mut self, keys: &Value, value: &Value, place: &str) {
        let Value::Object(map) = value else { return };
        for key in keys.as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.require(map.contains_key(key), place, &format!("has no `{key}`"));
        }
    }

    fn keys(&mut self, keywords: &Map<String, Value>, value: &Value, place: &str) {
        for (key, value) in value.as_object().into_iter().flatten() {
            let place = format!("{place}/{key}");
            let known = keywords.get("properties").and_then(|properties| properties.get(key));
            match known.or(keywords.get("additionalProperties")) {
                Some(Value::Bool(true)) => {}
                Some(Value::Bool(false)) | None => self.require(false, &place, "is not described"),
                Some(schema) => self.check(schema, value, &place),
            }
        }
    }
}

fn problems_at(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut checked = Checked { root, problems: Vec::new() };
    checked.check(schema, value, place);
    checked.problems
}

/// Whether a value is of a type, or of one of several.
fn is_of(types: &Value, value: &Value) -> bool {
    match types {
        Value::Array(several) => several.iter().any(|one| is_of(one, value)),
        one => match one.as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("number") => value.is_number(),
            Some("boolean") => value.is_boolean(),
            Some("null") => value.is_null(),
            _ => panic!("the type {one} is not known"),
        },
    }
}

/// Whether a number is in the range, or a text in the form, that `format` names. Null is for `type` to judge.
fn has_format(format: &Value, value: &Value) -> bool {
    let at_most = |most: u64| value.as_u64().is_some_and(|number| number <= most);
    value.is_null()
        || match format.as_str() {
            // OpenAPI has no unsigned formats; `minimum` says that there is no sign.
            Some("int32") => {
                at_most(u32::MAX.into()) || value.as_i64().is_some_and(|n| i32::try_from(n).is_ok())
            }
            Some("int64") => value.is_u64() || value.is_i64(),
            Some("float" | "double") => value.is_number(),
            Some("date-time") => value.as_str().is_some_and(|text| text.contains('T') && text.ends_with('Z')),
            _ => panic!("the format {format} is not known"),
        }
}
