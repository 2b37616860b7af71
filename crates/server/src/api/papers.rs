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
    /// The errors of our values, by class: each published cell once.
    pub classes: Vec<PaperClassErrors>,
    /// The goals of the simulation, and whether our values meet them.
    pub goals: Vec<PaperGoal>,
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
    /// The tables that it draws.
    pub tables: Vec<String>,
    /// True if there are values of ours; without them there is nothing to draw.
    pub ours: bool,
}

/// A study with its tables.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Study {
    /// The study.
    pub paper: Paper,
    /// Its tables: the published values, and ours.
    pub tables: Vec<PaperTable>,
    /// Words of its tables as its figures spell them: `hardware FIFO` for `hfifo`.
    pub words: BTreeMap<String, String>,
    /// Number of constants that were taken from published cells.
    pub constants: usize,
    /// Number of constants from elsewhere or assumed.
    pub assumed: usize,
    /// Its experiment files and the files that they name, for `/files/`.
    pub files: Vec<String>,
    /// The tables that take real time: measured live always, or on the wire on request.
    pub real_time: Vec<PaperRealTime>,
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
    /// True if there are values of ours.
    pub ours: bool,
    /// True if this server found them; otherwise the program came with them.
    #[serde(default)]
    pub here: bool,
    /// The backend of our latest values; missing without any.
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
    /// Our value; null if there is none.
    #[schema(required = true)]
    pub ours: Option<f64>,
    /// The relative error of our value.
    #[schema(required = true)]
    pub error: Option<f64>,
    /// The class of our value; missing in tables that are not the paper's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<PaperClass>,
    /// True if it repeats another cell: it is not counted.
    #[serde(default)]
    pub repeats: bool,
}

/// The worth of one of our values as a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PaperClass {
    /// The published value, or one that determines it, went into a constant.
    Fitted,
    /// A rule of the model was read off it.
    Structural,
    /// It was seen, and not used.
    Predicted,
    /// It was not seen until the model was fixed.
    Blind,
    /// A formula of the paper, one of its values, or a setting.
    Formula,
}

/// The errors of the cells of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PaperClassErrors {
    /// The class.
    pub class: PaperClass,
    /// Number of published cells that it has.
    pub cells: usize,
    /// The median size of the relative errors; null if nothing was compared.
    #[schema(required = true)]
    pub median: Option<f64>,
    /// The largest of them, with its sign.
    #[schema(required = true)]
    pub worst: Option<f64>,
    /// The median size when the published values had not been seen; null if they had.
    #[schema(required = true)]
    pub blind_median: Option<f64>,
    /// The largest error then.
    #[schema(required = true)]
    pub blind_worst: Option<f64>,
    /// Number of cells that were published as zero: they have no relative error.
    pub zeros: usize,
    /// Number of them that are zero here too.
    pub zeros_alike: usize,
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
