//! Published studies as experiments: each is a set of experiment files, the tables it printed, and a mapping between the
//! two. [`run()`] simulates what the tables ask for; [`Results`] holds every cell as published and as simulated;
//! [`tables()`], [`summary()`], [`json()`] and [`write()`] show them.
//!
//! A [`Study`] is data: to add one, write a module in `studies` and put it on [`STUDIES`]. Everything is embedded, so an
//! installed program needs no files; the same experiment files lie in `papers/` and run with `trunkline run`.

mod compare;
mod figures;
mod flags;
mod goals;
mod html;
mod json;
mod mapping;
mod measure;
pub mod output;
mod real_time;
mod reference;
mod results;
mod run;
mod studies;
mod study;
mod terminal;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub use compare::{Errors, relative_error};
pub use goals::{Judged, Outcome, judge};
pub use html::html;
pub use json::{CELL_FORMAT, CELL_KIND, json, listed};
pub use real_time::{RealTime, real_time};
pub use results::{Cell, Doubt, Printed, Results, Row, TableResults};
pub use run::{How, Observer, PaperError, published, run};
pub use studies::{STUDIES, find};
pub use study::{
    Axis, Cells, Embedded, Experiment, Figure, Goal, Metric, Note, Reading, Rows, Series, Study, Table,
};
pub use terminal::{list, summary, tables};
pub use value::{Keys, Value};
pub use write::{WriteError, write};
