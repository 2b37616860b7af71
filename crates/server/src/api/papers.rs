//! Published studies, and what we find in their place.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Backend;

/// A published study.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Paper {
    /// For addresses: `hawley1989`.
    pub name: String,
    /// The paper's title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// The year it was published.
    pub year: u16,
    /// The part of it that is reproduced, in a sentence.
    pub reproduced: String,
    /// Its tables.
    pub tables: Vec<PaperTableName>,
    /// Its figures.
    pub figures: Vec<PaperFigure>,
    /// The tables that take real time: measured live always, or on the wire on request.
    pub real_time: Vec<PaperRealTime>,
}

/// Tables of a study that are measured, or can be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperRealTime {
    /// The backend: `live` or `wire`.
    pub on: Backend,
    /// The tables that it measures.
    pub tables: Vec<String>,
    /// Maximum duration, in seconds.
    pub length_s: f64,
    /// Number of blocks that each channel of audio sends, if they are counted; with fewer, it takes less time.
    #[schema(required = true)]
    pub blocks: Option<u64>,
}

/// A table of a study.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperTableName {
    /// For addresses.
    pub name: String,
    /// Its description.
    pub title: String,
}

/// A figure of a study.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperFigure {
    /// For addresses: its number in the paper, or a name.
    pub name: String,
    /// Its description.
    pub title: String,
    /// Whether our values are stored; without them there is nothing to draw.
    pub ours: bool,
}

/// A study with its tables.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Study {
    /// The study.
    pub paper: Paper,
    /// Its tables: the published values, and ours if they are stored.
    pub tables: Vec<PaperTable>,
    /// The goals of the simulation, and whether they are met, if our values are stored.
    pub goals: Vec<PaperGoal>,
    /// Its experiment files and the files that they name, for `/files/`.
    pub files: Vec<String>,
    /// The job that repeats it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// A table.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperTable {
    /// For addresses.
    pub name: String,
    /// Its description.
    pub title: String,
    /// The columns that identify rows.
    pub keys: Vec<String>,
    /// The others.
    pub columns: Vec<PaperColumn>,
    /// Its rows.
    pub rows: Vec<PaperRow>,
    /// Whether our values are stored.
    pub ours: bool,
    /// The backend of our latest values; missing if none are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Backend>,
}

/// A column of figures.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperColumn {
    /// Its name, with the unit.
    pub name: String,
    /// Number of digits shown after the decimal point.
    pub decimals: usize,
}

/// A row.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperRow {
    /// The cells that identify it: numbers or words.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub keys: BTreeMap<String, Value>,
    /// One for each column.
    pub cells: Vec<PaperCell>,
    /// The reason why the simulation cannot reproduce this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A cell.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperCell {
    /// As printed; null if it was not published.
    #[schema(required = true)]
    pub published: Option<String>,
    /// Whether the printed value is in doubt.
    pub doubtful: bool,
    /// Our value; null if it is not stored.
    #[schema(required = true)]
    pub ours: Option<f64>,
    /// The relative error of our value.
    #[schema(required = true)]
    pub error: Option<f64>,
}

/// A goal of the simulation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperGoal {
    /// In a sentence.
    pub title: String,
    /// Whether it was met; null if it was not judged.
    #[schema(required = true)]
    pub met: Option<bool>,
    /// The finding.
    pub found: String,
}

/// A study to repeat.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStudy {
    /// Only these tables; all if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<String>>,
    /// Number of times that each point is simulated; as in the study's files if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub repetitions: Option<u32>,
    /// The backend of tables that can also be measured; `sim` if missing. Some are measured live always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<StudyBackend>,
    /// Number of blocks that each channel of audio sends, in studies that count them; as in the study if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 10, maximum = 1_000_000)]
    pub blocks: Option<u64>,
}

/// The backend of a study's tables that can also be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StudyBackend {
    /// Simulated.
    Sim,
    /// Measured in real time, over emulated links of the server's machine.
    Wire,
}

/// The result of repeating a study.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StudyResult {
    /// The study's name.
    pub paper: String,
    /// Its tables.
    pub tables: Vec<PaperTable>,
    /// The goals.
    pub goals: Vec<PaperGoal>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}
