//! An experiment file for the page and for text editors: forms of its keys, its drawing, edits of the drawing, and its JSON
//! Schema. All of them are made from the [schema](trunkline_experiment::schema) that reads the file. Edits of the text are
//! [`trunkline_experiment::edit`]'s, because `--set` needs them too.

mod drawing;
mod edit;
pub mod form;
mod json_schema;
mod keys;
mod places;

pub use drawing::{
    Drawing, DrawingAxis, DrawingBundle, DrawingFlow, DrawingHost, DrawingLimit, DrawingLink, drawing,
};
pub use edit::{Edit, Section, apply};
pub use form::form_schema;
pub use json_schema::json_schema;
pub use keys::{KeyPlace, key_places};

#[cfg(test)]
mod drawing_tests;
