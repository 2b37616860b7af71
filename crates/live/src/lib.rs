//! Runs a point on real sockets.
