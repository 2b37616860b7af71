//! Drives the medium of one link by the monotonic clock.
