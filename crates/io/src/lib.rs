//! The real clock, precise sleeping, batched sockets and kernel time stamps.
