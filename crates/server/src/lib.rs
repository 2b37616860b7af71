//! The page and its API, from one program: experiments are drawn, checked, run, watched and compared in a browser, and
//! everything that the page does can be done by any other program too.
//!
//! - [`serve`] listens; what it needs to know stands in [`Options`].
//! - [`api`] has the types of the API; [`openapi`] is its document, made from them and from the handlers.
//! - Every experiment, plan, study and probe is a job with a thread of its own, which can be watched and stopped; what it
//!   measures is in the store and outlives the server.
//!
//! It has no logic that another face would need: that is in the libraries which it calls.

pub mod api;
mod app;
mod compare;
mod drawing;
mod extract;
mod forms;
mod jobs;
mod papers;
mod routes;

pub use app::App;
pub use routes::openapi;
