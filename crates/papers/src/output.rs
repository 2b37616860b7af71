//! The JSON of studies: what `trunkline papers --json` and `trunkline paper --json` print.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Number, Value};
use trunkline_report::output::Backend;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Schema, SchemaType, Type};

/// The published studies that can be repeated.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Studies {
    /// All of them.
    pub studies: Vec<ListedStudy>,
}

/// A published study.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ListedStudy {
    /// Its name on the command line: `hawley1989`.
    pub name: &'static str,
    /// The paper's title.
    pub title: &'static str,
    /// Its authors.
    pub authors: &'static str,
    /// The year it was published.
    pub year: u16,
    /// The part of it that is reproduced, in a sentence.
    pub reproduced: &'static str,
    /// The names of its tables.
    pub tables: Vec<&'static str>,
    /// The numbers of its figures.
    pub figures: Vec<u32>,
}

/// A cell of a study's tables, as a line of its own.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StudyCell {
    /// The name of this layout: `study-cell`.
    pub kind: &'static str,
    /// The version of this layout.
    pub format: u32,
    /// The study's name.
    pub paper: &'static str,
    /// The table's name.
    pub table: &'static str,
    /// The row's key columns, by their names: numbers or words.
    #[schema(schema_with = numbers_or_words)]
    pub row: BTreeMap<String, Value>,
    /// The column, with its unit.
    pub metric: &'static str,
    /// The published figure, in the column's unit; null if it was not published.
    #[schema(value_type = Option<f64>, required = true)]
    pub published: Option<Number>,
    /// The simulated figure, in the column's unit; null if it was not simulated.
    #[schema(value_type = Option<f64>, required = true)]
    pub simulated: Option<Number>,
    /// The measured figure, in the column's unit, of tables that are measured; null if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>)]
    pub measured: Option<Option<Number>>,
    /// The backend, of tables that are measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Backend, required = false)]
    pub on: Option<Backend>,
    /// The class of our figure: `fitted`, `structural`, `predicted`, `blind` or `formula`; missing in tables of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub class: Option<&'static str>,
    /// The figure that was predicted before the published one was seen; missing if it was not blind.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = f64, required = false)]
    pub blind: Option<Number>,
    /// `contradicted` if the paper itself speaks against the published figure, which counts all the same; `doubtful` if it may
    /// have been misread, so that medians and goals leave it out; missing otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub doubt: Option<&'static str>,
    /// True if it repeats another cell, so that medians and goals leave it out.
    pub repeats: bool,
    /// The reason why the simulation cannot reproduce this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub note: Option<&'static str>,
}

/// A constant of a study's model that was found again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct StudyConstant {
    /// The study's name.
    pub paper: &'static str,
    /// The constant.
    pub constant: String,
    /// The published cells that it is found from.
    pub cells: String,
    /// Its value in the study's files.
    #[schema(schema_with = value)]
    pub value: Value,
    /// The value that the cells give; null if none near that of the files fits.
    #[schema(required = true, schema_with = found)]
    pub found: Option<Value>,
    /// The unit of both; empty for a number or a word.
    pub unit: String,
    /// The largest difference of the two, as a share of the value.
    pub within: f64,
}

fn numbers_or_words() -> Object {
    let all = ObjectBuilder::new().additional_properties(Some(Schema::Object(one_of(&[]).build())));
    all.description(Some("The row's key columns, by their names: numbers or words.")).build()
}

fn value() -> Object {
    one_of(&[]).description(Some("Its value in the study's files: a number or a word.")).build()
}

fn found() -> Object {
    let doc = "The value that the cells give; null if none near that of the files fits.";
    one_of(&[Type::Null]).description(Some(doc)).build()
}

/// A number, a word, or one of these.
fn one_of(others: &[Type]) -> ObjectBuilder {
    let types = [Type::Number, Type::String].into_iter().chain(others.iter().cloned());
    ObjectBuilder::new().schema_type(SchemaType::Array(types.collect()))
}
