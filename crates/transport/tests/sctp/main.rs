//! SCTP end to end: what it does, the conformance suite, what a bad path may do to it, allocation, and tshark's opinion.

mod allocation;
mod behaviour;
mod judge;
mod properties;
