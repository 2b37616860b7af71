//! Measures what a network does to audio within a time budget, and says how to send it: over which transport, in blocks
//! of which size, with how deep a playout buffer and with which redundancy.
//!
//! A [`Plan`] says what to measure next, a [`Prober`] measures it ([`probe`]), and [`advise`] judges what was found. Nothing of this
//! opens a socket but [`Live`], the prober of a real network; another is the simulator.

mod advice;
mod choose;
mod command;
mod configuration;
mod experiment;
mod figures;
mod findings;
mod html;
mod json;
mod judge;
mod live;
pub mod output;
mod plan;
mod probe;
mod protect;
mod terminal;
mod trace;
mod transport;
mod units;
mod warnings;
mod words;

pub use advice::{Advice, Recommendation, Row, advise};
pub use choose::{Choice, RECORDING_MARGIN, UnknownUse, Use, choose};
pub use command::commands;
pub use configuration::{Blocks, Configuration, Load, Marking};
pub use experiment::experiment;
pub use findings::Findings;
pub use html::html;
pub use json::{FORMAT, KIND, json};
pub use judge::{DEPTH_STEP, Evidence, Judgement, LONGEST_BLOCK, Protected, Stages, rate};
pub use live::Live;
pub use plan::{Plan, Question, SIZES, Stage, Step};
pub use probe::{Observer, Probed, Prober, probe};
pub use protect::PROTECTIONS;
pub use terminal::terminal;
pub use trace::{Bulk, Measured, RoundTrips, Trace};
pub use transport::{Transport, UnknownTransport};
