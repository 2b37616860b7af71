//! Pair harness, conformance and split-property suites, allocation counter.
