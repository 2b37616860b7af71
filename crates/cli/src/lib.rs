//! The command line of Trunkline. No logic that another face would need: it reads arguments, calls `trunkline-runner`,
//! `trunkline-store` and `trunkline-report`, and prints.

pub mod args;
pub mod commands;
mod controller;
mod escape;
pub mod json;
pub mod moments;
pub mod output;
mod progress;
mod sessions;
