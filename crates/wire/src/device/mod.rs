//! Where a relay reads frames from and writes them to, one per station of a link.
