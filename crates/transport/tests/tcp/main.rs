//! Classic TCP end to end: the conformance suite, what a bad path may do to it, how much a window carries, allocation, and
//! tshark's opinion.

mod allocation;
mod goodput;
mod judge;
mod properties;
