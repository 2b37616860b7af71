//! Finds the largest or smallest value of a key that keeps an experiment's limits, with repetitions and a stated
//! confidence, on any backend.
//!
//! A [`Question`] and an experiment make a [`Plan`]; [`run`] carries it out. The [`search`] says which value comes next,
//! the [`judge`](Terms) whether it keeps the limits; the runner measures, and the store keeps all that was measured as one
//! run. The answer is shown on the [`terminal`](terminal()), as [JSON](json()) and as a [page](html()) with its figures.

mod answered;
mod draws;
mod figures;
mod forecast;
mod html;
mod json;
mod judge;
pub mod output;
mod overload;
mod plan;
mod run;
pub mod search;
mod sheet;
mod terminal;
mod text;
mod work;

pub use answered::answered;
pub use figures::svg;
pub use forecast::Forecast;
pub use html::html;
pub use json::{FORMAT, KIND, json, of_plan};
pub use judge::{Judged, Terms};
pub use overload::{Overloaded, Rising, Unfinished};
pub use plan::{Means, Nearness, Plan, PlanError, Question};
pub use run::{Answer, Found, Observer, Trial, run};
pub use search::{Edge, Goal, Verdict};
pub use terminal::terminal;
pub use text::cautions;
