//! The glossary: what the names in a report mean, with their sources.

use trunkline_metrics::figures::{FigureKind, definitions, of_flows};

/// What a figure of a flow, or a word of a report, means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// The figure's name in files and JSON; `None` of a word that explains others.
    pub figure: Option<&'static str>,
    /// What it is called in text.
    pub name: &'static str,
    /// Its meaning.
    pub text: String,
    /// Standard or paper; empty if the text says it all.
    pub source: &'static str,
}

/// What every figure of a flow means, then every other word of the glossary.
pub fn meanings() -> impl Iterator<Item = Meaning> {
    let figures = of_flows().map(|&FigureKind { id, name, definition, .. }| Meaning {
        figure: Some(id),
        name,
        text: definition.text(),
        source: definition.source,
    });
    let is_of_flows = |id: &str| of_flows().any(|figure| figure.definition.id == id);
    let others = definitions().filter(move |definition| !is_of_flows(definition.id));
    figures.chain(others.map(|other| Meaning {
        figure: None,
        name: other.name,
        text: other.text(),
        source: other.source,
    }))
}
