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
    /// What of it is reproduced, in a sentence.
    pub reproduced: String,
    /// Its tables.
    pub tables: Vec<PaperTableName>,
    /// Its figures.
    pub figures: Vec<PaperFigure>,
    /// What of it takes real time: measured live always, on the wire if one asks for that.
    pub real_time: Vec<PaperRealTime>,
}

/// Tables of a study that are measured, or can be.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperRealTime {
    /// On what: `live` or `wire`.
    pub on: Backend,
    /// The tables that it is for.
    pub tables: Vec<String>,
    /// How long it takes at most, in seconds.
    pub length_s: f64,
    /// How many blocks each channel of audio sends, if they are counted: with fewer it is as much shorter.
    #[schema(required = true)]
    pub blocks: Option<u64>,
}

/// A table of a study.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperTableName {
    /// For addresses.
    pub name: String,
    /// What it shows.
    pub title: String,
}

/// A figure of a study.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperFigure {
    /// For addresses: its number in the paper, or a name.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Whether ours is kept: without it there is nothing to draw.
    pub ours: bool,
}

/// A study with its tables.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Study {
    /// What it is.
    pub paper: Paper,
    /// Its tables: published, and as we find them if that is kept.
    pub tables: Vec<PaperTable>,
    /// What the simulation is to reach, and whether it does, if ours is kept.
    pub goals: Vec<PaperGoal>,
    /// Its experiment files and what they name, for `/files/`.
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
    /// What it shows.
    pub title: String,
    /// The columns that tell rows apart.
    pub keys: Vec<String>,
    /// The others.
    pub columns: Vec<PaperColumn>,
    /// Its rows.
    pub rows: Vec<PaperRow>,
    /// Whether ours is kept.
    pub ours: bool,
    /// How ours was had last: simulated or measured; missing if none is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Backend>,
}

/// A column of figures.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperColumn {
    /// Its name, with the unit.
    pub name: String,
    /// How many digits behind the point are shown.
    pub decimals: usize,
}

/// A row.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperRow {
    /// The cells that tell it from others: numbers or words.
    #[schema(value_type = BTreeMap<String, Value>)]
    pub keys: BTreeMap<String, Value>,
    /// One for each column.
    pub cells: Vec<PaperCell>,
    /// Why the simulation cannot follow here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A cell.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperCell {
    /// As printed; null if it was not published.
    #[schema(required = true)]
    pub published: Option<String>,
    /// Whether the print is in doubt.
    pub doubtful: bool,
    /// Ours; null if it is not kept.
    #[schema(required = true)]
    pub ours: Option<f64>,
    /// The relative error of ours.
    #[schema(required = true)]
    pub error: Option<f64>,
}

/// What the simulation is to reach.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PaperGoal {
    /// In a sentence.
    pub title: String,
    /// Whether it is reached; null if it was not judged.
    #[schema(required = true)]
    pub met: Option<bool>,
    /// What was found.
    pub found: String,
}

/// A study to repeat.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewStudy {
    /// Only these tables; all if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<String>>,
    /// How often each point is simulated; as the study's files say if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub repetitions: Option<u32>,
    /// Where the tables that the study has for it are had; simulated if missing. What is measured live always is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<StudyBackend>,
    /// How many blocks each channel of audio sends, in studies that count them; as many as in the study if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 10, maximum = 1_000_000)]
    pub blocks: Option<u64>,
}

/// Where tables of a study are had that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StudyBackend {
    /// Simulated.
    Sim,
    /// Measured in real time, over emulated links of the server's machine.
    Wire,
}

/// What repeating a study found.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StudyResult {
    /// The study's name.
    pub paper: String,
    /// Its tables.
    pub tables: Vec<PaperTable>,
    /// What was to be reached.
    pub goals: Vec<PaperGoal>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}
