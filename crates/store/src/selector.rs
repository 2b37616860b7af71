//! How a user names a run.

use std::convert::Infallible;
use std::str::FromStr;

use crate::model::Backend;

/// Which run is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunSelector {
    /// The run with this number.
    Number(u64),
    /// The run that was begun last.
    Latest,
    /// The run with this folder name.
    Folder(String),
}

impl FromStr for RunSelector {
    type Err = Infallible;

    /// A number, `latest`, or the name of a run's folder. Every text is one of them.
    fn from_str(text: &str) -> Result<RunSelector, Infallible> {
        Ok(match text.trim() {
            "latest" => RunSelector::Latest,
            text => text.parse().map_or_else(|_| RunSelector::Folder(text.to_owned()), RunSelector::Number),
        })
    }
}

/// At most three of `names` that are written like `asked`, the closest first.
pub(crate) fn close<'n>(asked: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut scored: Vec<(f64, &str)> = names
        .map(|name| (strsim::jaro_winkler(asked, name), name))
        .filter(|(score, _)| *score > 0.8)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// The name of a run's folder.
pub(crate) fn folder_name(id: u64, name: &str, backend: Backend) -> String {
    format!("{id}-{}-{}", slug(name), backend.name())
}

/// `name` as a part of a file name: lower case letters, digits and single hyphens, at most 48 bytes.
pub(crate) fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars() {
        if slug.len() >= 48 {
            break;
        }
        match c {
            c if c.is_ascii_alphanumeric() || c == '_' => slug.push(c.to_ascii_lowercase()),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "unnamed".to_owned() } else { slug.to_owned() }
}
