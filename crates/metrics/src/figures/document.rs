//! The definitions in `docs/metrics.md`, written from the table: the page explains them, and cannot contradict them.

use core::fmt::Write as _;

use super::{Definition, FigureKind, Quantity, all, definitions};

const BEGIN: &str = "<!-- definition: ";
const END: &str = "<!-- end of definition -->";

/// Why the page cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// A block of a definition that the table does not have.
    #[error("line {line}: no definition `{id}`")]
    Unknown {
        /// The block's first line, from 1.
        line: usize,
        /// The id it asks for.
        id: String,
    },
    /// A block that nothing ends.
    #[error("line {line}: the block of `{id}` has no `{END}`")]
    Open {
        /// Its first line, from 1.
        line: usize,
        /// The definition.
        id: String,
    },
    /// A definition that is not in the page exactly once.
    #[error("the definition `{id}` has {blocks} blocks `{BEGIN}{id} -->`; expected one")]
    Blocks {
        /// The definition.
        id: &'static str,
        /// Its number of blocks.
        blocks: usize,
    },
}

/// The page with each block between `<!-- definition: ID -->` and `<!-- end of definition -->` written from the table: the
/// definition, its source, and its figures with their units, owners and limits.
///
/// # Errors
/// Unless each definition of the table has one block.
pub fn documented(page: &str) -> Result<String, DocumentError> {
    let mut written = String::with_capacity(page.len());
    let mut lines = page.lines().enumerate();
    let mut found = Vec::new();
    while let Some((place, line)) = lines.next() {
        written.push_str(line);
        written.push('\n');
        let Some(id) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let unknown = || DocumentError::Unknown { line: place + 1, id: id.to_owned() };
        let definition = definitions().find(|known| known.id == id).ok_or_else(unknown)?;
        if !lines.any(|(_, line)| line == END) {
            return Err(DocumentError::Open { line: place + 1, id: id.to_owned() });
        }
        block(&mut written, definition);
        found.push(definition.id);
    }
    for Definition { id, .. } in definitions() {
        let blocks = found.iter().filter(|known| *known == id).count();
        if blocks != 1 {
            return Err(DocumentError::Blocks { id, blocks });
        }
    }
    Ok(written)
}

/// Writing to a String cannot fail.
fn block(page: &mut String, definition: &Definition) {
    let _ = write!(page, "> **{}**: {}", definition.name, definition.text());
    if !definition.source.is_empty() {
        let _ = write!(page, " Source: {}.", definition.source);
    }
    let mut figures = all().filter(|figure| figure.definition.id == definition.id).peekable();
    if figures.peek().is_some() {
        page.push_str("\n>\n> | figure | name | unit | of | limit |\n> | --- | --- | --- | --- | --- |");
    }
    for figure in figures {
        let of = owners(figure);
        let limit = figure.limit.map_or_else(String::new, |limit| format!("`{}`", limit.key));
        let anchor = format!("<a id=\"{}{}\"></a>", prefix(figure), figure.id);
        let _ = write!(
            page,
            "\n> | {anchor}`{}` | {} | {} | {of} | {limit} |",
            figure.id.replace('-', "_"),
            figure.name,
            unit(figure)
        );
    }
    let _ = writeln!(page, "\n\n{END}");
}

/// The beginning of an anchor: figures of flows and of others may have the same id, and so may other anchors of the page.
fn prefix(figure: &FigureKind) -> &'static str {
    match (figure.of_flow, figure.of_link) {
        (Some(_), _) => "figure-",
        (_, Some(_)) => "link-",
        _ if figure.is_of_bundles() || figure.is_of_connections() => "bundle-",
        _ => "",
    }
}

fn owners(figure: &FigureKind) -> String {
    let owners = [
        ("flow", figure.of_flow.is_some()),
        ("sink", figure.is_of_sinks()),
        ("bundle", figure.is_of_bundles()),
        ("transport of a bundle", figure.is_of_connections()),
        ("link", figure.of_link.is_some()),
    ];
    let owners: Vec<&str> = owners.iter().filter(|(_, is_of)| *is_of).map(|(owner, _)| *owner).collect();
    if owners.is_empty() { "medium".to_owned() } else { owners.join(", ") }
}

fn unit(figure: &FigureKind) -> &'static str {
    match figure.quantity {
        Quantity::Share => "share",
        Quantity::Number => "number",
        other => other.base_unit(),
    }
}
