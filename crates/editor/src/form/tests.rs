use super::*;

/// Every key of one value that a form offers, with the kind that reads it.
fn all() -> Vec<(FormKey, Kind)> {
    let schema = Schema::default();
    let tables = [&schema.experiment, &schema.host, &schema.link, &schema.flow, &schema.bundle].into_iter();
    let mut found = Vec::new();
    for key in tables.chain(&schema.shared).chain(&schema.direction).flatten() {
        match &key.shape {
            Shape::Plain(kind) => found.push((form_key(key), *kind)),
            Shape::OneOf(one_of) => {
                let offered = form_key(key).alternatives.expect("a one-of has alternatives");
                for (alternative, offered) in one_of.alternatives.iter().zip(offered) {
                    assert_eq!(alternative.name, offered.name);
                    assert_eq!(alternative.parameters.len(), offered.keys.len());
                    found.extend(offered.keys.into_iter().zip(alternative.parameters.iter().map(|p| p.kind)));
                }
            }
            _ => {}
        }
    }
    found
}

/// A value as a form would write it.
fn literal(key: &FormKey, value: &str) -> String {
    match key.shape {
        FormShape::Integer | FormShape::Number | FormShape::Flag => value.to_owned(),
        _ => format!("\"{value}\""),
    }
}

fn accepts(key: &FormKey, kind: &Kind, value: &str) -> Result<(), String> {
    schema::accepts(key.name, kind, &literal(key, value))
}

#[test]
fn ends_of_ranges_defaults_and_words_pass_the_check() {
    let all = all();
    assert!(all.len() > 150, "{}", all.len());
    for (key, kind) in &all {
        let words = key.choices.iter().flatten().map(|choice| choice.name.to_owned());
        let values = [key.min.clone(), key.max.clone(), key.default.map(str::to_owned)].into_iter().flatten();
        for value in values.chain(words) {
            assert_eq!(accepts(key, kind, &value), Ok(()), "{key:?}: {value}");
        }
    }
}

#[test]
fn every_unit_that_is_offered_is_read() {
    for (key, kind) in &all() {
        for unit in key.units.into_iter().flatten() {
            // What is in range is another question: a word that is no unit is told as such.
            let read = accepts(key, kind, &format!("1 {unit}"));
            let out_of_range = |message: &String| message.contains("must be") && message.contains("not `1 ");
            assert!(read.as_ref().map_or_else(out_of_range, |()| true), "{}: {unit}: {read:?}", key.name);
        }
    }
}

#[test]
fn what_lies_beyond_the_ends_is_refused() {
    let mut tried = 0;
    for (key, kind) in &all() {
        if let (FormShape::Integer, Some(max)) = (key.shape, &key.max) {
            let beyond = max.parse::<u64>().expect("whole") + 1;
            tried += 1;
            assert!(accepts(key, kind, &beyond.to_string()).is_err(), "{}: {beyond}", key.name);
        }
        if key.shape == FormShape::Choice {
            assert!(accepts(key, kind, "no such word").is_err());
        }
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn every_key_of_the_schema_is_in_the_form_once() {
    let (form, schema) = (form_schema(), Schema::default());
    let names = |keys: &[FormKey]| keys.iter().map(|key| key.name).collect::<Vec<_>>();
    let of = |keys: &[Key]| keys.iter().map(|key| key.name).collect::<Vec<_>>();
    let section = |name: &str| form.sections.iter().find(|section| section.name == name).expect(name);
    assert_eq!(names(&section("experiment").keys), of(&schema.experiment));
    assert_eq!(names(&section("hosts").keys), of(&schema.host));
    assert_eq!(names(&section("link").keys), of(&schema.link));
    assert_eq!(names(&section("flow").keys), of(&schema.flow));
    assert_eq!(names(&section("bundle").keys), of(&schema.bundle));
    let media = &section("link").media;
    assert_eq!(media.len(), trunkline_network::medium::KINDS.len());
    for (medium, (shared, direction)) in media.iter().zip(schema.shared.iter().zip(&schema.direction)) {
        assert_eq!(names(&medium.keys), [of(shared), of(direction)].concat());
        assert_eq!(medium.shared, of(shared));
        assert!(medium.stations.min >= 2 && medium.stations.max >= medium.stations.min);
    }
    for (name, _) in SECTIONS {
        section(name);
    }
    assert!(section("limits").figures.len() > 40);
}

#[test]
fn a_distribution_that_a_form_makes_is_read() {
    let all = all();
    let drawn: Vec<_> =
        all.iter().filter(|(key, _)| matches!(key.shape, FormShape::Durations | FormShape::Sizes)).collect();
    assert!(!drawn.is_empty());
    for (key, kind) in drawn {
        for alternative in key
            .alternatives
            .iter()
            .flatten()
            .filter(|alternative| !matches!(alternative.name, "trace" | "empirical"))
        {
            let value = |part: &FormKey| match part.shape {
                FormShape::Ratio => "\"50 %\"".to_owned(),
                FormShape::Number => part.max.clone().expect("a range"),
                _ => format!("\"{}\"", part.max.clone().or(part.min.clone()).expect("a range")),
            };
            let parts = alternative.keys.iter().map(|part| format!(", {} = {}", part.name, value(part)));
            let table = format!("{{ kind = \"{}\"{} }}", alternative.name, parts.collect::<String>());
            let read = trunkline_experiment::schema::accepts(key.name, kind, &table);
            assert!(read.is_ok(), "{table}: {read:?}");
        }
    }
}
