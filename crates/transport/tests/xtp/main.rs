//! XTP 4.0 from outside: the conformance suite, each mechanism by what it puts on the wire, and everything at once over
//! bad paths.

#![allow(clippy::unwrap_used, reason = "these are tests, and so are their helpers")]

mod bad_paths;
mod conformance;
mod groups;
mod judge;
mod mechanisms;
mod services;
mod wiretap;
