//! What commands print with `--json`. Every object has the name of its layout (`kind`) and that layout's version
//! (`format`); [`schema()`] and [`reference()`] describe all of them, from the types.

mod describe;
mod layouts;
mod results;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

pub use describe::{reference, schema};
pub use layouts::{LAYOUTS, Layout};
pub use results::*;

/// What a command prints with `--json`.
pub trait Output: Serialize + ToSchema {
    /// The layout's name.
    const KIND: &str;
    /// The layout's version: it grows when a key changes its meaning or goes away, not when one is added.
    const FORMAT: u32;
}

/// The object with its layout's name and version.
pub fn tagged<T: Output>(output: &T) -> Value {
    // Keys are strings, and numbers that are not finite become null.
    let mut value = serde_json::to_value(output).unwrap_or_default();
    value["kind"] = T::KIND.into();
    value["format"] = T::FORMAT.into();
    value
}

/// Adds warnings to an object. Those of an advice are sentences without a place.
pub fn add_warnings(object: &mut Value, warnings: Vec<ErrorProblem>) {
    if warnings.is_empty() {
        return;
    }
    let own = object["warnings"].take();
    let mut all = own.as_array().cloned().unwrap_or_default();
    let has_sentences = own.is_array();
    all.extend(warnings.into_iter().map(|warning| match has_sentences {
        true => warning.message.into(),
        false => serde_json::to_value(warning).unwrap_or_default(),
    }));
    object["warnings"] = all.into();
}
