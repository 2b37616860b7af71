//! The TCP of the 1990s.

mod allocation;
mod goodput;
mod judge;
mod properties;
