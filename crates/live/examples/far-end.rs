//! The other end of a live run as a program of its own: what `trunkline far-end` does, for tests.

fn main() -> Result<(), trunkline_live::LiveError> {
    trunkline_live::far_end::serve_standard_streams()
}
