//! Live runs over the loopback interface: a second of traffic each at most. Nothing here judges a clock.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod carriers;
mod ceilings;
mod channels;
mod conformance;
mod endings;
mod engines;
mod flows;
mod limits;
mod pairs;
mod refusals;
mod support;
mod versions;
