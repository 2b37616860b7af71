//! Classic TCP end to end: the conformance suite, what a bad path may do to it, what it does exactly when, and tshark's opinion.

mod properties;
