//! Nanoseconds of each pure part alone: every queue and medium in the registries, framing, endpoints, codecs, sources.
//!
//! `cargo bench -p trunkline-benches --bench pure`

fn main() {}
