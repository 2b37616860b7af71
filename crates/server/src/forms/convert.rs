//! From the library's description of a file's keys to that of the API.

use trunkline_experiment::form;

use crate::api::{
    Alternative, Choice, FigureOf, FormFigure, FormKey, FormMedium, FormSchema, FormSection, FormShape,
    Section, Stations,
};

impl From<form::FormSchema> for FormSchema {
    fn from(schema: form::FormSchema) -> FormSchema {
        FormSchema { sections: schema.sections.into_iter().filter_map(section).collect() }
    }
}

/// A section; every one that the library has is one of the API.
fn section(section: form::FormSection) -> Option<FormSection> {
    let name = match section.name {
        "experiment" => Section::Experiment,
        "hosts" => Section::Hosts,
        "link" => Section::Link,
        "flow" => Section::Flow,
        "bundle" => Section::Bundle,
        "sweep" => Section::Sweep,
        "limits" => Section::Limits,
        _ => return None,
    };
    Some(FormSection {
        name,
        doc: section.doc.to_owned(),
        keys: keys(section.keys),
        media: section.media.into_iter().map(medium).collect(),
        figures: section.figures.into_iter().map(figure).collect(),
    })
}

fn keys(keys: Vec<form::FormKey>) -> Vec<FormKey> {
    keys.into_iter().map(key).collect()
}

fn key(key: form::FormKey) -> FormKey {
    FormKey {
        name: key.name.to_owned(),
        doc: key.doc.to_owned(),
        required: key.required,
        default: key.default.map(str::to_owned),
        shape: shape(key.shape),
        units: key.units.map(owned),
        min: key.min,
        max: key.max,
        choices: key.choices.map(|choices| choices.into_iter().map(choice).collect()),
        alternatives: key.alternatives.map(|all| all.into_iter().map(alternative).collect()),
        keys: key.keys.map(keys),
        share: key.share,
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn choice(choice: form::FormChoice) -> Choice {
    Choice { name: choice.name.to_owned(), doc: choice.doc.to_owned() }
}

fn alternative(alternative: form::FormAlternative) -> Alternative {
    Alternative {
        name: alternative.name.to_owned(),
        aliases: owned(alternative.aliases),
        doc: alternative.doc.to_owned(),
        keys: keys(alternative.keys),
    }
}

fn medium(medium: form::FormMedium) -> FormMedium {
    FormMedium {
        name: medium.name.to_owned(),
        doc: medium.doc.to_owned(),
        stations: Stations { min: medium.stations.min, max: Some(medium.stations.max) },
        keys: keys(medium.keys),
        shared: owned(&medium.shared),
    }
}

fn figure(figure: form::FormFigure) -> FormFigure {
    FormFigure {
        of: match figure.of {
            form::FigureOf::Flow => FigureOf::Flow,
            form::FigureOf::Sink => FigureOf::Sink,
            form::FigureOf::Bundle => FigureOf::Bundle,
            form::FigureOf::Transport => FigureOf::Transport,
        },
        name: figure.name.to_owned(),
        doc: figure.doc.to_owned(),
        shape: shape(figure.shape),
        units: figure.units.map(owned),
    }
}

fn shape(shape: form::FormShape) -> FormShape {
    match shape {
        form::FormShape::Text => FormShape::Text,
        form::FormShape::Duration => FormShape::Duration,
        form::FormShape::Rate => FormShape::Rate,
        form::FormShape::Bytes => FormShape::Bytes,
        form::FormShape::Limit => FormShape::Limit,
        form::FormShape::Ratio => FormShape::Ratio,
        form::FormShape::Integer => FormShape::Integer,
        form::FormShape::Number => FormShape::Number,
        form::FormShape::Flag => FormShape::Flag,
        form::FormShape::Choice => FormShape::Choice,
        form::FormShape::Host => FormShape::Host,
        form::FormShape::Hosts => FormShape::Hosts,
        form::FormShape::Flow => FormShape::Flow,
        form::FormShape::Flows => FormShape::Flows,
        form::FormShape::Sinks => FormShape::Sinks,
        form::FormShape::Links => FormShape::Links,
        form::FormShape::OneOf => FormShape::OneOf,
        form::FormShape::File => FormShape::File,
        form::FormShape::Direction => FormShape::Direction,
        form::FormShape::Stations => FormShape::Stations,
        form::FormShape::Durations => FormShape::Durations,
        form::FormShape::Sizes => FormShape::Sizes,
        form::FormShape::Position => FormShape::Position,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_description_is_lost_on_the_way() {
        let description = trunkline_experiment::form_schema();
        let api = FormSchema::from(description.clone());
        assert_eq!(serde_json::to_value(api).ok(), serde_json::to_value(description).ok());
    }
}
