//! Published studies as experiments: each is a set of experiment files, the tables it printed, and a mapping between the
//! two. [`run()`] simulates what the tables ask for; [`Results`] holds every cell as published and as simulated;
//! [`tables()`], [`summary()`], [`json()`] and [`write()`] show them.
//!
//! A [`Study`] is data: to add one, add a folder to `papers/` with its experiment files, its published tables and a
//! `study.toml` that maps the two. Folders are embedded, so an installed program needs no files; the experiment files run
//! with `trunkline run` too.

mod calibrate;
mod compare;
mod csv_table;
mod expression;
mod figures;
mod findings;
mod flags;
mod goals;
mod html;
mod json;
mod mapping;
mod measure;
pub mod output;
mod read;
mod reading;
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

pub use calibrate::{Recalibrated, calibrate};
pub use compare::{ClassErrors, Errors, classes, relative_error};
pub use findings::Finding;
pub use goals::{Judged, Outcome, judge};
pub use html::html;
pub use json::{CELL_FORMAT, CELL_KIND, CONSTANT_FORMAT, CONSTANT_KIND, constant, json, listed};
pub use real_time::{RealTime, real_time};
pub use results::{Cell, Doubt, Printed, Results, Row, TableResults};
pub use run::{How, Observer, PaperError, accepted, published, run};
pub use studies::{find, studies};
pub use study::{
    Axis, AxisValue, Calibration, Cells, Class, Classed, Experiment, Figure, Goal, Metric, NotReproduced,
    Note, Reference, Repeat, Rows, Rule, Scatter, Series, Study, Table,
};
pub use terminal::{list, summary, tables};
pub use value::{Keys, Value};
pub use write::{WriteError, drawn, picture, write};
