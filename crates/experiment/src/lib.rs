//! The experiment file: schema, units, validation with positions, expansion of sweeps and repetitions into points, and
//! the building of pure objects from them. Reads no files itself: it is given text, and what it needs beside (speech,
//! traces) through [`Files`].
//!
//! [`Experiment::parse`] goes through these steps: TOML to a tree in which every value knows its place; the swept values
//! into a copy of the tree for every point; each copy against the schema (its [`reference()`]) to a [`Scenario`]. A driver
//! takes a scenario and asks it for [links](Scenario::build_links) and [sources](Scenario::build_source).

mod alike;
mod bounds;
mod build;
mod change;
mod cut;
pub mod edit;
mod experiment;
mod files;
mod fuzz;
mod limits;
mod link_profile;
pub mod model;
mod place;
mod points;
mod problem;
mod quantity;
mod range;
mod read;
mod reference;
pub mod schema;
mod searchable;
mod setting;
mod shown;
mod singles;
mod speech;
mod summaries;
mod sweep;
mod transport;
mod tree;

pub use bounds::Bounds;
pub use change::LinkChange;
pub use experiment::Experiment;
pub use files::{Files, FilesError, NamedFiles};
#[doc(hidden)]
pub use fuzz::fuzz_parse;
pub use limits::Grain;
pub use link_profile::{is_built_in_profile, profile_of_draw};
pub use model::{
    Answer, Axis, CustomKey, Direction, Ends, Figure, Flow, Framing, Host, Impairments, Kernel, Limit, Link,
    Loss, Operator, PacketEvent, PacketStep, Path, PathStep, Progress, Scenario, Single, Sink, Source,
    Subject, Supervisor,
};
pub use points::{Point, Points};
pub use problem::{Problem, Problems, enumerate, nearest, suggestion};
pub use reference::{reference, reference_of};
pub use searchable::Searchable;
pub use setting::Setting;
pub use shown::shown_among;
pub use transport::{TRANSPORTS, Transport, transports, transports_of};
