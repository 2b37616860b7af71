//! Live runs over the loopback interface: a second of traffic each at most. Nothing here judges a clock.

mod endings;
mod flows;
mod refusals;
mod support;
